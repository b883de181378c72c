//! `--place`: from what a person types to code offsets.

use crate::failure::Failure;
use raddle_symbols::Symboliser;
use raddle_wire::options::PlaceFilter;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long names like the one that was not found are looked for.
const SEARCH_TIME: Duration = Duration::from_secs(2);
/// How far around a line without code the next line with code is looked for.
const NEAR_LINES: u64 = 20;
/// Below this likeness (0 to 1) a suggestion is more of a riddle than a help.
const ALIKE: f64 = 0.6;
/// How many suggestions are made.
const SUGGESTIONS: usize = 3;
/// Where a module named without a directory is looked for, after `LD_LIBRARY_PATH`.
const LIBRARY_DIRECTORIES: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/local/lib",
    "/lib64",
    "/usr/lib64",
    "/usr/lib",
];

/// The code that the `--place` arguments mean; `program` is the target's own binary.
pub fn resolve(
    places: &[String],
    program: &Path,
    symboliser: &mut Symboliser,
) -> Result<Vec<PlaceFilter>, Failure> {
    let mut filters = Vec::new();
    for place in places {
        let (module, pattern) = match place.split_once('!') {
            Some((module, pattern)) => (named_module(module, program)?, pattern),
            None => (program.to_owned(), place.as_str()),
        };
        let ranges = symboliser.function_ranges(&module, pattern);
        if ranges.is_empty() {
            return Err(Failure::Other(not_found(place, pattern, &module, symboliser)));
        }
        let name = module.to_string_lossy().into_owned();
        filters.extend(ranges.into_iter().map(|(start, end)| PlaceFilter {
            module: name.clone(),
            start,
            end,
        }));
    }
    Ok(filters)
}

fn named_module(name: &str, program: &Path) -> Result<PathBuf, Failure> {
    find_module(name, program).ok_or_else(|| {
        let remedy = if name.contains('/') { "" } else { "; give its path" };
        Failure::Other(format!("--place: there is no module {name}{remedy}"))
    })
}

/// The file a module's name stands for, without symbolic links, as the engine reports it.
pub fn find_module(name: &str, program: &Path) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![name.into()]
    } else if program.file_name().is_some_and(|own| own == name) {
        vec![program.to_owned()]
    } else {
        let preferred = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let directories: Vec<PathBuf> = std::env::split_paths(&preferred)
            .filter(|directory| !directory.as_os_str().is_empty())
            .chain(LIBRARY_DIRECTORIES.iter().map(PathBuf::from))
            .collect();
        directories.iter().map(|directory| directory.join(name)).collect()
    };
    let found = candidates.iter().find(|path| path.is_file());
    found.and_then(|path| path.canonicalize().ok())
}

fn not_found(place: &str, pattern: &str, module: &Path, symboliser: &mut Symboliser) -> String {
    let name = module.display();
    if let Some((file, line)) = as_line(pattern) {
        let near = (1..=NEAR_LINES)
            .flat_map(|distance| [Some(line + distance), line.checked_sub(distance)])
            .flatten()
            .find(|line| !symboliser.function_ranges(module, &format!("{file}:{line}")).is_empty());
        return match near {
            Some(near) => format!(
                "--place {place}: there is no code for this line in {name}; \
                 the nearest is {file}:{near}"
            ),
            None => format!(
                "--place {place}: {name} knows no code near this line (is it built with -g?)"
            ),
        };
    }
    let what = format!("--place {place}: there is no such function in {name}");
    let like = similar(pattern, module, symboliser);
    if !like.is_empty() {
        return format!("{what}; did you mean {}?", like.join(" or "));
    }
    if symboliser.has_symbols(module) {
        format!("{what}; for another module write MODULE!{pattern}")
    } else {
        format!("{what}, which has no symbols (stripped?)")
    }
}

/// `file:line`, as the symboliser understands it.
fn as_line(pattern: &str) -> Option<(&str, u64)> {
    let (file, line) = pattern.rsplit_once(':')?;
    (!file.is_empty() && !file.ends_with(':')).then_some((file, line.parse().ok()?))
}

/// Functions called nearly so: found by asking for the name with one character free.
fn similar(pattern: &str, module: &Path, symboliser: &mut Symboliser) -> Vec<String> {
    let started = Instant::now();
    let mut names = BTreeSet::new();
    for loose in loosened(pattern) {
        if started.elapsed() > SEARCH_TIME {
            break;
        }
        for (start, _) in symboliser.function_ranges(module, &loose) {
            let function = symboliser.frames(module, start).into_iter().find_map(|f| f.function);
            names.extend(function);
        }
    }
    let mut alike: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(pattern, &name), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    alike.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

/// The pattern with one character missing, wrong or swapped, wherever it may be.
fn loosened(pattern: &str) -> Vec<String> {
    let characters: Vec<char> = pattern.chars().collect();
    let free = |at: usize, dropped: usize| -> String {
        let rest = characters.iter().skip(at + dropped);
        characters[..at].iter().chain(&['*']).chain(rest).collect()
    };
    let mut loose: Vec<String> = Vec::new();
    for at in 0..characters.len() {
        for dropped in 0..=2 {
            if at + dropped <= characters.len() && characters.len() > dropped {
                loose.push(free(at, dropped));
            }
        }
    }
    loose.push(format!("{pattern}*"));
    loose
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_covered_anywhere() {
        let loose = loosened("abc");
        for expected in ["*abc", "a*bc", "abc*", "*bc", "a*c", "ab*", "*c", "a*"] {
            assert!(loose.iter().any(|l| l == expected), "{expected} in {loose:?}");
        }
        assert!(!loosened("a").contains(&"*".to_owned()));
    }

    #[test]
    fn lines_are_told_from_functions() {
        assert_eq!(as_line("bank.c:31"), Some(("bank.c", 31)));
        assert_eq!(as_line("Queue::push"), None);
        assert_eq!(as_line("ns::3"), None);
    }

    #[test]
    fn a_module_that_is_not_there_is_said() {
        let error = named_module("libnone.so.9", Path::new("/bin/true")).unwrap_err();
        let text = "--place: there is no module libnone.so.9; give its path";
        assert_eq!(error.to_string(), text);
    }
}

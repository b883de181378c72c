//! Files that are not there, and which one beside them was meant.

use raddle_report::nearest::did_you_mean;
use std::path::Path;

/// `; did you mean ./bank?` where a file does not exist and one beside it is called nearly so.
pub fn near_file(path: &Path) -> String {
    if path.exists() {
        return String::new();
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    let listed = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let names = names_in(listed);
    let Some(wrong) = path.file_name().and_then(|name| name.to_str()) else { return String::new() };
    // The directory as it was typed: `./`, or none.
    let typed = path.to_str().and_then(|path| path.strip_suffix(wrong)).unwrap_or_default();
    did_you_mean(wrong, names.iter().map(String::as_str).filter(|name| alike(name, wrong)))
        .replacen("did you mean ", &format!("did you mean {typed}"), 1)
}

/// The same for a command by its name: `; did you mean pigz?`
pub fn near_command(name: &Path) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = std::env::split_paths(&path).flat_map(|directory| names_in(&directory));
    let names: Vec<String> = names.collect();
    let wrong = name.to_str().unwrap_or_default();
    did_you_mean(wrong, names.iter().map(String::as_str).filter(|name| alike(name, wrong)))
}

/// Among many names something is always a little like what was typed; a slip keeps the first letter and
/// nearly the length.
fn alike(name: &str, wrong: &str) -> bool {
    let slips = name.len().abs_diff(wrong.len()) <= 1;
    slips && name.len() > 2 && name.chars().next() == wrong.chars().next()
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_beside_it() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("known.toml"), "").unwrap();
        let here = scratch.path().display();
        let near = near_file(&scratch.path().join("knwon.toml"));
        assert_eq!(near, format!("; did you mean {here}/known.toml?"));
        assert_eq!(near_file(&scratch.path().join("known.toml")), "");
        assert_eq!(near_file(&scratch.path().join("elephant")), "");
        assert_eq!(near_file(&scratch.path().join("bank.toml")), "");
        assert_eq!(near_file(Path::new("/none/at/all")), "");
    }
}

//! Runs as a person speaks of them: `.raddle/4` beside where they were started, or a directory of
//! their own; and the report in each.

use crate::failure::Failure;
use crate::forms::{Form, rendered};
use raddle_execute::RunDirectory;
use raddle_report::Report;
use raddle_report::findings::text::{self, Style};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Where runs are kept, beside where they were started.
const HOME: &str = ".raddle";
/// The report in a run directory.
pub const REPORT: &str = "report.json";

/// A run directory.
#[derive(Debug)]
pub struct Run {
    path: PathBuf,
    /// We made it, under a number of our choice.
    ours: bool,
}

impl Run {
    /// Makes the directory: the user's, which must be new or empty, or the next number here.
    pub fn make(out: Option<&Path>) -> Result<Self, Failure> {
        match out {
            Some(path) => {
                RunDirectory::kept(path)?;
                Ok(Run { path: path.to_owned(), ours: false })
            }
            None => Run::next(Path::new(HOME)),
        }
    }

    /// The next number. Making the directory is what takes the number, so that runs started at the
    /// same time never share one.
    fn next(home: &Path) -> Result<Self, Failure> {
        let context = |error: io::Error| {
            let home = home.display();
            let why = format!("making a run directory in {home}: {error}");
            Failure::Other(format!("{why}; --out DIR names another place"))
        };
        std::fs::create_dir_all(home).map_err(context)?;
        let mut number = numbers(home).map_err(context)?.last().map_or(1, |last| last + 1);
        loop {
            let path = home.join(number.to_string());
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Run { path, ours: true }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(context(error)),
            }
        }
    }

    /// The run a person means: a number, a directory or a report's file; the latest if nothing. Runs are those
    /// here, or of the nearest directory above that has any.
    pub fn find(meant: Option<&str>) -> Result<PathBuf, Failure> {
        Run::find_in(&home(), meant)
    }

    fn find_in(home: &Path, meant: Option<&str>) -> Result<PathBuf, Failure> {
        let known = numbers(home).unwrap_or_default();
        let report = |number: &u64| home.join(number.to_string()).join(REPORT);
        let Some(meant) = meant else {
            let latest = known.iter().rev().map(report).find(|report| report.exists());
            let why =
                || format!("there is no report in {}; `raddle run` makes one", home.display());
            return latest.ok_or_else(|| Failure::Other(why()));
        };
        if let Some(number) = meant.parse().ok().filter(|number| known.contains(number)) {
            return Ok(report(&number));
        }
        let path = Path::new(meant);
        if path.is_dir() {
            return Ok(path.join(REPORT));
        }
        if path.exists() {
            return Ok(path.to_owned());
        }
        let known = match known.as_slice() {
            [] => format!("there are no runs in {}", home.display()),
            [one] => format!("there is {one}"),
            [first, .., last] => format!("there are {} from {first} to {last}", known.len()),
        };
        let finding = match names_a_finding(meant) {
            true => format!("; of a finding, `raddle explain {meant}` tells"),
            false => String::new(),
        };
        Err(Failure::Other(format!("there is no run {meant}; {known}{finding}")))
    }

    /// What a run is called in front of a finding: nothing if it is the latest here, its number, or
    /// its directory.
    pub fn named(report: &Path) -> Option<String> {
        if Run::find(None).is_ok_and(|latest| latest == report) {
            return None;
        }
        let directory = report.parent()?;
        let ours = directory.parent() == Some(&home());
        let number = directory.file_name().and_then(|name| name.to_str()).filter(|_| ours);
        Some(number.map_or_else(|| directory.display().to_string(), String::from))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the report, whole or not at all; returns its file.
    pub fn write(&self, report: &Report) -> Result<PathBuf, Failure> {
        let file = self.path.join(REPORT);
        let unfinished = self.path.join(format!("{REPORT}.tmp"));
        let write = || -> io::Result<()> {
            std::fs::write(&unfinished, report.to_json())?;
            std::fs::rename(&unfinished, &file)
        };
        write().map_err(Failure::during(format_args!("writing {}", file.display())))?;
        Ok(file)
    }

    /// This run is to be what was done in `part`, a directory within its own.
    pub fn adopt(&self, part: &Path) -> Result<PathBuf, Failure> {
        let adopt = || -> io::Result<()> {
            for entry in std::fs::read_dir(part)? {
                let entry = entry?;
                std::fs::rename(entry.path(), self.path.join(entry.file_name()))?;
            }
            Ok(())
        };
        adopt().map_err(Failure::during(format_args!("moving {}", part.display())))?;
        Ok(self.path.join(REPORT))
    }

    /// Nothing came of it: the number is free again.
    pub fn give_up(&self) {
        if self.ours {
            // An empty directory left behind does no harm.
            let _ = std::fs::remove_dir(self.path.join("logs"));
            let _ = std::fs::remove_dir(&self.path);
            if let Some(home) = self.path.parent() {
                let _ = std::fs::remove_dir(home);
            }
        }
    }
}

/// Where the runs are that a person speaks of here.
fn home() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let up = here.ancestors().position(|directory| directory.join(HOME).is_dir());
    let steps = std::iter::repeat_n(Path::new(".."), up.unwrap_or(0));
    steps.chain([Path::new(HOME)]).collect()
}

/// Reads a report.
pub fn read(file: &Path) -> Result<Report, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(Failure::during(format_args!("reading {}", file.display())))?;
    Report::from_json(&text).map_err(Failure::during(file.display()))
}

/// Writes a report as it was asked for.
pub fn write_rendering(
    report: &Report,
    form: Form,
    out: impl Write,
    style: &Style,
) -> Result<(), Failure> {
    match render(report, form, &mut BufWriter::new(out), style) {
        // A reader that has had enough (`| head`) is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::during("writing the report")),
    }
}

fn render(report: &Report, form: Form, out: &mut dyn Write, style: &Style) -> io::Result<()> {
    match form {
        Form::Text => text::write(report, style, out)?,
        form => out.write_all(rendered(report, form).as_bytes())?,
    }
    out.flush()
}

/// A finding as a person names it: `R1` of the latest run, `12/R1`, `DIRECTORY/R1`. Gives the
/// report's file, the report, and the finding's index in it.
pub fn find_finding(meant: &str) -> Result<(PathBuf, Report, usize), Failure> {
    let (file, report, id) = named(meant)?;
    match report.findings.iter().position(|finding| finding.id.eq_ignore_ascii_case(id)) {
        Some(at) => Ok((file, report, at)),
        None => Err(missing(id, &file, &report)),
    }
}

/// A failing execution as a person names it: `H1`, `12/H1`, `DIRECTORY/H1`. Gives the report's file, the
/// report, and the execution's index in it.
pub fn find_failure(meant: &str) -> Result<(PathBuf, Report, usize), Failure> {
    let (file, report, id) = named(meant)?;
    match report.failures.iter().position(|failure| failure.id.eq_ignore_ascii_case(id)) {
        Some(at) => Ok((file, report, at)),
        None => Err(missing(id, &file, &report)),
    }
}

/// The report in which something is named, and its name there.
fn named(meant: &str) -> Result<(PathBuf, Report, &str), Failure> {
    let (run, id) = match meant.rsplit_once('/') {
        Some((run, id)) => (Some(run), id),
        None => (None, meant),
    };
    let file = Run::find(run)?;
    let report = read(&file)?;
    Ok((file, report, id))
}

fn missing(id: &str, file: &Path, report: &Report) -> Failure {
    let range = |ids: &[&str]| match ids {
        [] => None,
        [one] => Some((*one).to_owned()),
        [first, .., last] => Some(format!("{first} to {last}")),
    };
    let findings: Vec<&str> = report.findings.iter().map(|f| f.id.as_str()).collect();
    let failures: Vec<&str> = report.failures.iter().map(|f| f.id.as_str()).collect();
    let known: Vec<String> = [range(&findings), range(&failures)].into_iter().flatten().collect();
    let known = match known.is_empty() {
        true => "it has no findings".to_owned(),
        false => format!("it has {}", known.join(" and ")),
    };
    Failure::Other(format!("there is no {id} in {}; {known}", file.display()))
}

/// Does this look like a finding's name?
pub fn names_a_finding(text: &str) -> bool {
    is_numbered(text, ['R', 'r'])
}

/// Does this look like the name of a failing execution?
pub fn names_a_failure(text: &str) -> bool {
    is_numbered(text, ['H', 'h'])
}

fn is_numbered(text: &str, letter: [char; 2]) -> bool {
    let id = text.rsplit('/').next().unwrap_or(text);
    let digits = id.strip_prefix(letter);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The runs in a directory, by number.
fn numbers(home: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(home)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_shared() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join(HOME);
        let paths: Vec<PathBuf> = std::thread::scope(|scope| {
            let makers: Vec<_> =
                (0..8).map(|_| scope.spawn(|| Run::next(&home).unwrap())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap().path).collect()
        });
        let mut names: Vec<u64> = paths
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().parse().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, (1..=8).collect::<Vec<u64>>());
        std::fs::create_dir(home.join("40")).unwrap();
        assert!(Run::next(&home).unwrap().path.ends_with("41"));
    }

    #[test]
    fn a_run_that_came_to_nothing_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join(HOME);
        Run::next(&home).unwrap().give_up();
        assert!(!home.exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_gets_a_sentence() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(HOME);
        std::fs::write(&file, "").unwrap();
        let said = Run::next(&file).unwrap_err().to_string();
        assert!(said.starts_with("making a run directory in "), "{said}");
        assert!(said.ends_with("; --out DIR names another place"), "{said}");
    }

    #[test]
    fn runs_are_found_by_number_directory_file_or_as_the_latest() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join(HOME);
        let find = |meant| Run::find_in(&home, meant).map_err(|e| e.to_string());
        let none = find(None).unwrap_err();
        assert!(none.ends_with("`raddle run` makes one"), "{none}");
        for number in ["2", "10", "11"] {
            std::fs::create_dir_all(home.join(number)).unwrap();
        }
        for number in ["2", "10"] {
            std::fs::write(home.join(number).join(REPORT), "").unwrap();
        }
        // Run 11 is still running.
        assert_eq!(find(None), Ok(home.join("10").join(REPORT)));
        assert_eq!(find(Some("2")), Ok(home.join("2").join(REPORT)));
        let directory = home.join("2");
        assert_eq!(find(directory.to_str()), Ok(directory.join(REPORT)));
        let file = directory.join(REPORT);
        assert_eq!(find(file.to_str()), Ok(file.clone()));
        assert_eq!(find(Some("7")).unwrap_err(), "there is no run 7; there are 3 from 2 to 11");
    }
}

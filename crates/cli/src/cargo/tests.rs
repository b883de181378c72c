//! Tests, each in a process of its own: listed by the harness, run by name.

use super::artifacts::Executable;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::runs;
use crate::settings::Settings;
use raddle_report::Report;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// A test, or a whole executable where the name is empty.
#[derive(Debug, Clone)]
pub struct Test {
    pub executable: Executable,
    pub name: String,
    pub arguments: Vec<OsString>,
}

/// What a test came to.
#[derive(Debug)]
pub enum Ended {
    Passed,
    Raced,
    /// It failed by itself: what it said.
    Failed(String),
    /// Raddle could not watch it: why.
    Broken(String),
}

/// Asks each harness for its tests; the words (names, `--ignored`) are the user's.
pub fn list<'a>(
    executables: impl Iterator<Item = &'a Executable>,
    words: &[OsString],
) -> Result<Vec<Test>, Failure> {
    let mut tests = Vec::new();
    for executable in executables {
        let ask = |more: &[&str]| -> Result<Vec<String>, Failure> {
            let mut command = Command::new(&executable.path);
            command.args(["--list", "--format", "terse"]).args(words).args(more);
            let output = command.current_dir(&executable.home).stdin(Stdio::null()).output();
            let name = executable.path.display();
            let output =
                output.map_err(Failure::during(format_args!("listing the tests of {name}")))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Err(Failure::Other(format!("listing the tests of {name}: {said}")));
            }
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(text.lines().filter_map(|l| l.strip_suffix(": test")).map(String::from).collect())
        };
        let asked = |word: &str| words.iter().any(|typed| typed == word);
        // The harness lists ignored tests too, and runs them only when told to.
        let ignored = match asked("--ignored") || asked("--include-ignored") {
            true => Vec::new(),
            false => ask(&["--ignored"])?,
        };
        for name in ask(&[])?.into_iter().filter(|name| !ignored.contains(name)) {
            let mut arguments: Vec<OsString> =
                vec!["--exact".into(), name.clone().into(), "--nocapture".into()];
            if asked("--ignored") || asked("--include-ignored") {
                arguments.push("--include-ignored".into());
            }
            tests.push(Test { executable: executable.clone(), name, arguments });
        }
    }
    Ok(tests)
}

/// How tests are run.
#[derive(Debug, Clone, Copy)]
pub struct Running<'a> {
    /// Where each leaves its own run.
    pub out: &'a Path,
    pub interrupt: &'a Interrupt,
    pub settings: &'a Settings,
    /// Who decides which thread runs, as it is typed.
    pub deciding: &'a [OsString],
    /// Nothing is said of those that pass.
    pub quiet: bool,
}

impl Running<'_> {
    /// Runs them, as many at a time as there are processors, and says of each what it came to. After
    /// Ctrl-C none is begun any more, and those that it ended do not count.
    pub fn all(&self, tests: &[Test]) -> Result<Vec<(Ended, Option<Report>)>, Failure> {
        let Running { out, interrupt, settings, deciding, quiet } = *self;
        std::fs::create_dir_all(out)
            .map_err(Failure::during(format_args!("making {}", out.display())))?;
        let queue = Mutex::new(tests.iter().enumerate());
        let ended = Mutex::new(Vec::new());
        let progress = Mutex::new(Progress::doing("the first tests run"));
        let say = |tell: &dyn Fn(&Progress)| {
            if let Ok(progress) = progress.lock() {
                tell(&progress);
            }
        };
        let work = || {
            while let Some((at, test)) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                let started = Instant::now();
                let state = format!("test {} of {}: {}", at + 1, tests.len(), test.name);
                say(&|progress| progress.say(state.as_str()));
                let (how, report) = run(test, &out.join((at + 1).to_string()), settings, deciding);
                if interrupt.came() {
                    return;
                }
                let took = started.elapsed().as_secs_f64();
                let (sign, more) = match &how {
                    Ended::Passed => ("PASS", String::new()),
                    Ended::Raced => {
                        let n = report.as_ref().map_or(0, |report| report.summary.findings);
                        ("RACE", format!(": {n} {}", if n == 1 { "finding" } else { "findings" }))
                    }
                    Ended::Failed(said) => ("FAIL", format!("\n{said}")),
                    Ended::Broken(why) => ("????", format!(": {why}")),
                };
                let space = if test.name.is_empty() { "" } else { " " };
                let name = &test.executable.name;
                let line = format!("{sign} {took:>7.1}s  {name}{space}{}{more}", test.name);
                if !quiet || !matches!(how, Ended::Passed) {
                    say(&|progress| progress.line(line.as_str()));
                }
                if let Ok(mut ended) = ended.lock() {
                    ended.push((at, how, report));
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(tests.len());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
        let mut ended = ended.into_inner().unwrap_or_default();
        ended.sort_by_key(|(at, ..)| *at);
        Ok(ended.into_iter().map(|(_, how, report)| (how, report)).collect())
    }
}

fn run(
    test: &Test,
    out: &Path,
    settings: &Settings,
    deciding: &[OsString],
) -> (Ended, Option<Report>) {
    let broken = |why: String| (Ended::Broken(why), None);
    let out = match std::path::absolute(out) {
        Ok(out) => out,
        Err(error) => return broken(error.to_string()),
    };
    let mut raddle = match super::raddle(settings) {
        Ok(raddle) => raddle,
        Err(error) => return broken(error.to_string()),
    };
    let ran = raddle
        .args(["run", "--quiet", "--part", "--out"])
        .arg(&out)
        .args(deciding)
        .arg("--")
        .arg(&test.executable.path)
        .args(&test.arguments)
        .current_dir(&test.executable.home)
        .env("CARGO_MANIFEST_DIR", &test.executable.home)
        .stdin(Stdio::null())
        .output();
    let output = match ran {
        Ok(output) => output,
        Err(error) => return broken(error.to_string()),
    };
    let said = || {
        let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        String::from_utf8_lossy(&text).trim_end().to_owned()
    };
    let report = match runs::read(&out.join("report.json")) {
        Ok(report) => report,
        Err(_) => return broken(said()),
    };
    let how = match &report.outcome {
        outcome if outcome.failure.is_some() => Ended::Broken(said()),
        _ if report.summary.findings > 0 => Ended::Raced,
        outcome if outcome.exit == Some(0) => Ended::Passed,
        _ => Ended::Failed(said()),
    };
    (how, Some(report))
}

//! The corpus: small programs with their expected verdict written in them, under `raddle run`.
//!
//! In the gating tier each program runs once, at -O0 and at -O2; a verdict that is wrong is asked for four times more, and
//! fails if it is wrong again. One that is wrong once in a while is printed, and left to the full tier (`./dev test
//! --full`): there a program is built also statically and without debug information, runs ten times in each way, and once
//! with `--detector hb`, and all of these must be right.
//! `RADDLE_CORPUS=text` runs only programs whose name contains the text, `RADDLE_CORPUS_RUNS=n` another
//! number of times. What the comments mean is in `corpus/README.md`.

#![allow(clippy::unwrap_used)] // A test that cannot go on panics.

#[path = "corpus/build.rs"]
mod build;
#[path = "corpus/judge.rs"]
mod judge;
#[path = "corpus/known.rs"]
mod known;
#[path = "corpus/program.rs"]
mod program;
mod support;

use build::Way;
use judge::{Detector, Judge, Wrong, WrongKind};
use known::Known;
use program::Program;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A program this small is done in a second; one that hangs must not stop the others.
const TIME_LIMIT: &str = "60s";

/// So many times a wrong verdict is asked for again in the gating tier.
const AGAIN: usize = 4;

/// A program, built one way, under one detector, some times.
struct Job<'a> {
    program: &'a Program,
    way: Way,
    detector: Detector,
    runs: usize,
    /// One wrong run may pass, if others are right.
    lenient: bool,
}

impl Job<'_> {
    fn way_name(&self) -> String {
        match self.detector {
            Detector::Hybrid => self.way.to_string(),
            Detector::HappensBefore => format!("{} hb", self.way),
        }
    }
}

/// What came of a job: in how many of its runs the verdict was wrong, and how.
struct Verdict {
    program: String,
    way: String,
    runs: usize,
    wrong_runs: usize,
    wrongs: Vec<Wrong>,
    lenient: bool,
}

#[test]
fn every_verdict_is_right() {
    if !support::has_probe() {
        return;
    }
    let full = std::env::var_os("RADDLE_TEST_FULL").is_some();
    let wanted = std::env::var("RADDLE_CORPUS").unwrap_or_default();
    let programs = program::all();
    let jobs: Vec<Job> = programs
        .iter()
        .filter(|program| program.name.contains(&wanted))
        .flat_map(|program| jobs_of(program, full))
        .collect();
    assert!(!jobs.is_empty(), "no program of the corpus is called {wanted:?}");
    let verdicts = run_all(&jobs);
    let known = Known::read();
    let failed = print_verdicts(&verdicts, &known);
    assert!(failed == 0, "{failed} verdicts are not as `corpus/` says; see the table above");
}

/// A list that names what is not there would hide a typing error.
#[test]
fn the_known_ones_exist() {
    let names: Vec<String> = program::all().into_iter().map(|program| program.name).collect();
    let ways: Vec<String> = build::ways(true).iter().map(Way::to_string).collect();
    for entry in Known::read().known {
        let missing = entry.programs.iter().find(|program| !names.contains(program));
        assert_eq!(missing, None, "in corpus/known.toml");
        let way =
            entry.ways.iter().find(|way| !ways.contains(&way.trim_end_matches(" hb").to_owned()));
        assert_eq!(way, None, "in corpus/known.toml");
    }
}

/// The promise: at least 150, and every bug with a correct twin somewhere.
#[test]
fn the_corpus_is_large_enough() {
    let programs = program::all();
    assert!(programs.len() >= 150, "{} programs", programs.len());
    for language in ["c", "cc", "rs"] {
        let of_language = |p: &&Program| p.source.extension().is_some_and(|e| e == language);
        let (race, clean): (Vec<_>, Vec<_>) =
            programs.iter().filter(of_language).partition(|p| p.name.starts_with("race/"));
        assert!(
            race.len() >= 10 && clean.len() >= 10,
            "{language}: {} and {}",
            race.len(),
            clean.len()
        );
    }
}

fn jobs_of(program: &Program, full: bool) -> Vec<Job<'_>> {
    let asked = std::env::var("RADDLE_CORPUS_RUNS").ok().and_then(|runs| runs.parse().ok());
    let runs = asked.unwrap_or(if full { 10 } else { 1 });
    let mut jobs = Vec::new();
    for way in build::ways(full) {
        let impossible = way.is_static && program.needs("dynamic");
        let undecidable = !way.debug && program.needs("debug-info");
        if !impossible && !undecidable {
            jobs.push(Job { program, way, detector: Detector::Hybrid, runs, lenient: !full });
            if full && way.debug && !way.is_static {
                let detector = Detector::HappensBefore;
                jobs.push(Job { program, way, detector, runs: 1, lenient: false });
            }
        }
    }
    jobs
}

/// Runs the jobs on all processors; the verdicts in the order of the jobs.
fn run_all(jobs: &[Job]) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, job)) = take(&next, jobs) {
                    let verdict = run_job(job);
                    verdicts.lock().unwrap().insert(index, verdict);
                }
            });
        }
    });
    verdicts.into_inner().unwrap().into_values().collect()
}

fn take<'a, 'b>(next: &AtomicUsize, jobs: &'a [Job<'b>]) -> Option<(usize, &'a Job<'b>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}

fn run_job(job: &Job) -> Verdict {
    let mut verdict = Verdict {
        program: job.program.name.clone(),
        way: job.way_name(),
        runs: job.runs,
        wrong_runs: 0,
        wrongs: Vec::new(),
        lenient: job.lenient,
    };
    let binary = match build::build(job.program, job.way) {
        Ok(binary) => binary,
        Err(what) => {
            verdict.wrong_runs = job.runs;
            verdict.wrongs.push(Wrong { kind: WrongKind::DidNotRun, what });
            return verdict;
        }
    };
    let mut left = job.runs;
    while left > 0 {
        left -= 1;
        let wrongs = run_once(job, &binary);
        if job.lenient && verdict.runs == 1 && !wrongs.is_empty() {
            verdict.runs += AGAIN;
            left += AGAIN;
        }
        verdict.wrong_runs += usize::from(!wrongs.is_empty());
        for wrong in wrongs {
            if !verdict.wrongs.contains(&wrong) {
                verdict.wrongs.push(wrong);
            }
        }
    }
    verdict
}

/// One execution; what is wrong with its verdict.
fn run_once(job: &Job, binary: &Path) -> Vec<Wrong> {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(support::raddle());
    command.args(["run", "--quiet", "--timeout", TIME_LIMIT, "--out", "found"]);
    if job.detector == Detector::HappensBefore {
        command.args(["--detector", "hb"]);
    }
    command.arg("--").arg(binary).current_dir(directory.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let text =
        std::fs::read_to_string(directory.path().join("found/report.json")).unwrap_or_default();
    let Ok(report) = serde_json::from_str(&text) else {
        return vec![Wrong {
            kind: WrongKind::DidNotRun,
            what: format!("{}: {said}", output.status),
        }];
    };
    Judge { program: job.program, debug: job.way.debug, detector: job.detector }.judge(&report)
}

/// The table of wrong verdicts, and how many of them fail the suite.
fn print_verdicts(verdicts: &[Verdict], known: &Known) -> usize {
    let mut failed = 0;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for verdict in verdicts {
        let entry = known.entry(&verdict.program, &verdict.way);
        let note = match (verdict.wrong_runs, entry) {
            (0, None) => {
                *counts.entry("right".into()).or_default() += 1;
                continue;
            }
            (0, Some(entry)) if entry.sometimes => {
                *counts.entry("right this time".into()).or_default() += 1;
                continue;
            }
            (0, Some(_)) => "RIGHT NOW: take it out of corpus/known.toml",
            (_, Some(entry)) => &format!("known: {}", entry.reason),
            (1, None) if verdict.lenient && verdict.runs > 1 => "once in a while",
            (_, None) => "WRONG",
        };
        let class = match note {
            "once in a while" => note,
            _ if verdict.wrong_runs > 0 && entry.is_some() => "known to be wrong",
            _ => "not as listed",
        };
        *counts.entry(class.into()).or_default() += 1;
        failed += usize::from(class == "not as listed");
        let runs = format!("{} of {}", verdict.wrong_runs, verdict.runs);
        println!("{:<48} {:<24} {runs:<8} {note}", verdict.program, verdict.way);
        for wrong in &verdict.wrongs {
            println!("    {:<16} {}", wrong.kind.name(), wrong.what);
        }
    }
    println!("{} verdicts: {counts:?}", verdicts.len());
    failed
}

//! `raddle hunt` on the rare bugs of `corpus/hunt`: found within so many executions, and repeated by what it
//! keeps. A handful in the gating tier, all of them in the full one.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Scratch, raddle};

/// Executions within which a bug must show.
const EXECUTIONS: u64 = 1_000;
/// Programs that may be missed of those in the corpus: the promise is nine in ten.
const MISSED_IN: usize = 10;

/// One of each sort: atomicity, a use after free, a sleeper that comes first, circles of locks.
const GATING: [&str; 6] = [
    "bank_account.c",
    "deadlock_three.c",
    "late_reader.c",
    "nested_monitor.c",
    "cxx_shared_then_unique.cc",
    "rust_opposite_locks.rs",
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

fn compile(source: &Path, to: &Path) {
    let support = format!("-I{}", corpus().join("support").display());
    let c = ["-g", "-O2", "-pthread", support.as_str()];
    let (compiler, options): (&str, Vec<&str>) = match source.extension().unwrap().to_str() {
        Some("c") => ("gcc", [&["-std=gnu17"], &c[..]].concat()),
        Some("cc") => ("g++", [&["-std=c++20"], &c[..]].concat()),
        _ => ("rustc", vec!["--edition=2024", "-Cdebuginfo=2", "-Copt-level=2"]),
    };
    let status = Command::new(compiler).args(options).arg(source).arg("-o").arg(to).status();
    assert!(status.unwrap().success(), "{}", source.display());
}

/// What was found: how to replay it, and after how many executions. None if nothing was.
fn hunt(scratch: &Scratch) -> Option<(Vec<String>, u64)> {
    let executions = EXECUTIONS.to_string();
    let arguments = ["hunt", "--quiet", "--first", "--budget", "1h", "--executions", &executions];
    let mut command = Command::new(raddle());
    command.args(arguments).args(["--", "./program"]).current_dir(scratch.path("."));
    command.env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    let runs = std::fs::read_dir(scratch.path(".raddle")).unwrap();
    let reports = runs.map(|run| run.unwrap().path().join("report.json"));
    let (run, report) = reports
        .filter_map(|file| {
            let report: Value = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
            let run = file.parent()?.file_name()?.to_str()?.to_owned();
            report["hunt"].is_object().then_some((run, report))
        })
        .next()?;
    let spent = |key: &str| report["hunt"][key].as_u64().unwrap();
    let executions = spent("detections") + spent("trials") + spent("explored");
    if report["failures"][0].is_object() {
        return Some((vec![format!("{run}/H1")], executions));
    }
    let findings = report["findings"].as_array().unwrap();
    for finding in findings {
        let orders = finding["confirmation"]["orders"].as_array().cloned().unwrap_or_default();
        let failed = orders.iter().find(|o| o["end"] != serde_json::json!({"exit": 0}));
        if let Some(order) = failed {
            let finding = format!("{run}/{}", finding["id"].as_str().unwrap());
            return Some((vec![finding, "--order".into(), order["order"].to_string()], executions));
        }
    }
    None
}

/// Finds the bug of a program and repeats it so many times; says after how many executions it was found.
fn find(name: &str, replays: u32) -> Option<u64> {
    let scratch = Scratch::new();
    compile(&corpus().join("hunt").join(name), &scratch.path("program"));
    let (what, executions) = hunt(&scratch)?;
    for _ in 0..replays {
        let mut command = Command::new(raddle());
        command.arg("replay").args(&what).current_dir(scratch.path(".")).stdin(Stdio::null());
        // What std reads of /proc for a panic's backtrace is not fixed.
        command.env("RUST_BACKTRACE", "0");
        let ran = command.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{name}: {said}");
    }
    Some(executions)
}

#[test]
fn a_handful_is_found_and_repeated() {
    if !support::has_probe() {
        return;
    }
    for name in GATING {
        let found = find(name, 5);
        assert!(found.is_some_and(|n| n <= EXECUTIONS), "{name}: {found:?}");
    }
}

#[test]
#[ignore = "full tier: an hour or two"]
fn nine_in_ten_are_found_and_each_is_repeated_a_hundred_times() {
    if !support::has_probe() {
        return;
    }
    let sources = std::fs::read_dir(corpus().join("hunt")).unwrap();
    let mut names: Vec<String> =
        sources.map(|s| s.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() >= 40, "{}", names.len());
    let missed: Vec<&String> = names
        .iter()
        .filter(|name| {
            let found = find(name, 100);
            eprintln!("{name}: {found:?}");
            found.is_none_or(|n| n > EXECUTIONS)
        })
        .collect();
    assert!(missed.len() * MISSED_IN <= names.len(), "{missed:?}");
}

//! Event-exactness: a program says in its comments which events it makes, and must make exactly
//! those.
//!
//! ```c
//! // watch: memory                      families of events (--only)
//! // build: gcc -O1 -g                  one line per way to build it; all must give the same events
//! // hooks: pool.toml                   a hook file beside the program
//! // options: --follow                  further options of `raddle events`
//! // environment: NAME=value            of the run
//! // needs: avx2                        skipped on processors without it
//! // exits: 3                           its exit code, if not 0
//! // also: futex-wake stack             events that are otherwise left out; accesses to stacks
//!
//! table[3] = 1;                      // expect: write 4 table[3]
//! // expect T2: lock-requested m; lock-acquired m
//! ```
//!
//! Expectations are lists, one per thread (T1 unless said; `P2.T1` is the first thread of the
//! second process), in the order of the file. An expectation behind code also says where: the event
//! must be at that line, unless it is inside a library. One on a line of its own may be anywhere.
//!
//! What counts is the program's own doing: events at a line of its source, and events elsewhere
//! (in a library it calls) that concern a variable of it. So code of the C library that touches the
//! program's data is caught, and what the loader does before `main` is not.

mod build;
mod diff;
mod program;
mod seen;

pub use program::Program;

use crate::support;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the programs are.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exact/programs")
}

/// Builds the program in each of its ways, runs it under Raddle and compares.
pub fn check(file: &str) {
    let program = Program::read(&programs().join(file));
    if !support::has_probe() {
        return;
    }
    if let Some(missing) = program.needs.iter().find(|feature| !processor_has(feature)) {
        eprintln!("{file}: skipped, this processor has no {missing}");
        return;
    }
    let mut wrong = String::new();
    for build in &program.builds {
        let binary = build::build(&program, build);
        let (events, exit) = run(&program, &binary);
        let seen = seen::select(&program, &binary, build, &events);
        if let Some(difference) = diff::compare(&program, build, &seen) {
            wrong += &format!("\n{file}, built by `{build}`:\n{difference}");
        }
        if exit != program.exits {
            wrong += &format!("\n{file}, built by `{build}`: exit {exit}, not {}\n", program.exits);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Runs the program and asserts that no thread acquires a lock more often than it releases it,
/// wherever the lock is: with one held for good, every thread would seem to be protected from every
/// other.
pub fn check_balance(file: &str) {
    let program = Program::read(&programs().join(file));
    if !support::has_probe() {
        return;
    }
    for build in &program.builds {
        let (events, _) = run(&program, &build::build(&program, build));
        let mut held: HashMap<(u64, &str), i64> = HashMap::new();
        for event in &events {
            let change = match event["event"].as_str() {
                Some("lock-acquired") => 1,
                Some("lock-released") => -1,
                _ => continue,
            };
            let lock = event["address"].as_str().unwrap_or("");
            *held.entry((event["thread"].as_u64().unwrap_or(0), lock)).or_default() += change;
        }
        held.retain(|_, count| *count > 0);
        assert!(held.is_empty(), "{file}, built by `{build}`, never released: {held:?}");
    }
}

/// Runs the binary; its events as JSON, and its exit code.
fn run(program: &Program, binary: &Path) -> (Vec<serde_json::Value>, i32) {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("events.jsonl");
    let mut command = Command::new(support::raddle());
    command.args(["events", "--quiet", "--timeout", "60s", "--format", "json", "--output"]);
    command.arg(&log).arg("--only").arg(program.watch.join(","));
    command.args(program.hooks.iter().flat_map(|h| ["--hooks".into(), programs().join(h)]));
    command.args(&program.options).arg("--").arg(binary);
    command.current_dir(directory.path());
    command.envs(program.environment.iter().filter_map(|setting| setting.split_once('=')));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let Some(exit) = output.status.code() else { panic!("raddle died: {said}") };
    assert!(!(124..=127).contains(&exit), "raddle failed ({exit}): {said}");
    (events, exit)
}

fn processor_has(feature: &str) -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or("");
    flags.split_whitespace().any(|flag| flag == feature)
}

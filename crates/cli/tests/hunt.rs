//! `raddle hunt` on bugs without a data race.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

/// A lost update: every access is locked, and yet.
const LOST_UPDATE: &str = r#"
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static void *deposit(void *unused) {
    pthread_mutex_lock(&lock);
    int seen = balance;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    balance = seen + 1;
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, deposit, NULL);
    pthread_create(&b, NULL, deposit, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(balance == 2);
    return 0;
}
"#;

fn command(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let mut command = Command::new(raddle());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    Ran::new(command.output().unwrap())
}

#[test]
fn a_lost_update_between_two_critical_sections_is_found_and_repeated() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("bank", LOST_UPDATE, &[]);
    let arguments = ["hunt", "--first", "--budget", "10m", "--executions", "400", "--", "./bank"];
    let ran = command(&scratch, &arguments);
    assert!(ran.exits(66).stdout.contains("H1: failed assertion in 1 of "), "{ran:?}");
    for _ in 0..5 {
        let replay = command(&scratch, &["replay", "H1"]);
        replay.exits(0);
        assert!(replay.stderr.contains("Assertion `balance == 2' failed"), "{replay:?}");
    }
    // Its policy and seed alone come to the same execution; another policy to another, which is said.
    let seed = ran.stdout.split("seed ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    let own = command(&scratch, &["replay", "H1", "--seed", seed]);
    assert!(own.exits(0).stderr.contains("it was the same execution"), "{own:?}");
    let other = command(&scratch, &["replay", "H1", "--policy", "round-robin"]);
    let tells = |what| other.stderr.contains(what);
    assert!(tells("H1 under round-robin, seed ") && tells("another execution"), "{other:?}");
    match other.code {
        Some(0) => assert!(tells("ended with signal 6, as it did"), "{other:?}"),
        _ => assert!(other.exits(1).stderr.contains("which is not how it ended"), "{other:?}"),
    }
    // However many times it looked for races, it is one run, and the latest.
    let runs: Vec<_> = std::fs::read_dir(scratch.path(".raddle")).unwrap().collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let report = std::fs::read_to_string(scratch.path(".raddle/1/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["failures"][0]["effect"], "failed assertion");
    assert_eq!(report["failures"][0]["end"]["signal"], 6);
    // The hunt says where everything is and what to type, and every form of the report has it.
    assert!(ran.stderr.contains("raddle: report in .raddle/"), "{ran:?}");
    assert!(ran.stderr.ends_with("next: raddle replay H1\n"), "{ran:?}");
    let shown = |arguments: &[&str]| command(&scratch, arguments).exits(0).stdout.clone();
    let text = shown(&["report"]);
    assert!(text.starts_with("H1  failed assertion in 1 of "), "{text}");
    assert!(text.contains("raddle: 1 failing execution and no data races in "), "{text}");
    assert!(text.ends_with("next: raddle replay H1\n"), "{text}");
    let junit = shown(&["report", "--format", "junit"]);
    assert!(junit.contains(" failures=\"1\" "), "{junit}");
    assert!(junit.contains("<testcase name=\"H1 failed assertion\""), "{junit}");
    let sarif: Value = serde_json::from_str(&shown(&["report", "--format", "sarif"])).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "failing-execution");
    assert_eq!(result["properties"]["id"], "H1");
    let location = &result["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(location["uri"], "bank.c", "{sarif}");
    let github = shown(&["report", "--format", "github"]);
    assert!(github.starts_with("::error file=bank.c,line="), "{github}");
    let page = shown(&["report", "--format", "html"]);
    assert!(page.contains("<article id=\"H1\"") && page.contains("raddle replay H1"), "{page}");
    let explained = shown(&["explain", "h1"]);
    assert!(explained.starts_with("H1  failed assertion in 1 of "), "{explained}");
    assert!(explained.contains("\nfailing-execution: Under some schedule"), "{explained}");
    assert!(shown(&["explain", "failing-execution"]).contains("`raddle hunt` executed"));
    let missing = command(&scratch, &["explain", "H2"]);
    assert!(missing.exits(125).stderr.contains("it has H1"), "{missing:?}");
    let confirm = command(&scratch, &["confirm", "H1"]);
    assert!(confirm.exits(125).stderr.contains("`raddle replay H1` repeats it"), "{confirm:?}");
}

/// Two locks in opposite orders, far apart: by itself it practically never deadlocks.
const OPPOSITE: &str = r#"
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *forth(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}
static void *back(void *unused) {
    for (volatile int i = 0; i < 100000; i++) {}
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return unused;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, NULL, forth, NULL);
    pthread_create(&u, NULL, back, NULL);
    pthread_join(t, NULL);
    pthread_join(u, NULL);
    return 0;
}
"#;

#[test]
fn a_deadlock_is_made_to_happen_and_repeated() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("locks", OPPOSITE, &[]);
    let arguments = ["hunt", "--first", "--budget", "10m", "--executions", "40", "--", "./locks"];
    let ran = command(&scratch, &arguments);
    // Predicted from one run, and confirmed: nothing is left to explore.
    let line = "R1 (cycle of locks, predicted): confirmed, ";
    assert!(ran.exits(66).stdout.starts_with(line), "{ran:?}");
    for _ in 0..5 {
        let replay = command(&scratch, &["replay", "R1"]);
        assert!(replay.exits(0).stderr.contains("wait for each other's locks"), "{replay:?}");
        for words in ["waits for a, and holds b", "waits for b, and holds a"] {
            assert!(replay.stderr.contains(words), "{words}: {replay:?}");
        }
    }
    // How they came to it, on a terminal and in the page.
    let replay = command(&scratch, &["replay", "R1", "--events"]);
    for part in ["takes a [holds a]", "▶ asks for b, which T", "▶ asks for a, which T"] {
        assert!(replay.exits(0).stderr.contains(part), "{part}: {replay:?}");
    }
    let page = command(&scratch, &["report", "--format", "html"]).exits(0).stdout.clone();
    assert_eq!(page.matches("<div class=\"step wait holding\"").count(), 2, "{page}");
}

#[test]
fn a_sound_program_comes_out_clean() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let sound = LOST_UPDATE
        .replace("    pthread_mutex_unlock(&lock);\n    pthread_mutex_lock(&lock);\n", "");
    scratch.compile("bank", &sound, &[]);
    let ran = command(&scratch, &["hunt", "--budget", "10m", "--executions", "30", "--", "./bank"]);
    assert_eq!(ran.exits(0).stdout, "", "{ran:?}");
}

/// Executions while races are looked for are executions too: what they come to is kept, and repeated without the
/// detector.
#[test]
fn a_failure_while_races_are_looked_for_is_a_failure() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    // By itself it never has this number, under a policy always.
    let source = "#include <unistd.h>\nint main(void) { return getpid() == 4194305 ? 3 : 0; }";
    scratch.compile("numbered", source, &[]);
    let ran = command(&scratch, &["hunt", "--first", "--budget", "10m", "--", "./numbered"]);
    let line = "H1: exit code 3 in 3 of 3 executions (random, seed 1); ";
    assert!(ran.exits(66).stdout.starts_with(line), "{ran:?}");
    let replay = command(&scratch, &["replay", "H1"]);
    assert!(replay.stderr.contains("H1 repeated, seed 1: exit code 3"), "{replay:?}");
}

/// What executions at a time do to each other is no bug of the program.
#[test]
fn executions_that_disturb_each_other_are_no_finding() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = r#"
#include <fcntl.h>
#include <unistd.h>
int main(void) {
    int only = open("only", O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (only < 0) return 5;
    for (volatile int i = 0; i < 3000000; i++) ;
    return unlink("only");
}
"#;
    scratch.compile("exclusive", source, &[]);
    let arguments = ["hunt", "--jobs", "4", "--budget", "10m", "--executions", "40"];
    let ran = command(&scratch, &[&arguments[..], &["--", "./exclusive"]].concat());
    assert_eq!(ran.exits(0).stdout, "", "{ran:?}");
    // That none of them met another is possible, but then there is nothing to tell.
    let disturbed = ran.stderr.contains("from here on one at a time");
    assert_eq!(
        disturbed,
        ran.stderr.contains("came to exit code 5, which a replay did not"),
        "{ran:?}"
    );
}

/// Where nothing else ends it, the time does, and what was done in it is told.
#[test]
fn the_time_given_is_an_end() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let sound = LOST_UPDATE
        .replace("    pthread_mutex_unlock(&lock);\n    pthread_mutex_lock(&lock);\n", "");
    scratch.compile("bank", &sound, &[]);
    let most: u64 = 1_000_000_000;
    let arguments = ["hunt", "--budget", "6s", "--executions", &most.to_string(), "--", "./bank"];
    let ran = command(&scratch, &arguments);
    assert_eq!(ran.exits(0).stdout, "", "{ran:?}");
    let report = std::fs::read_to_string(scratch.path(".raddle/1/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let explored = report["hunt"]["explored"].as_u64().unwrap();
    assert!(explored < most, "{report}");
    assert!(ran.stderr.contains(&format!("{explored} executions explored")), "{ran:?}");
}

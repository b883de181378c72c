//! `raddle confirm --import`: races that the peers report, in logs they write in the test itself, are
//! made to happen.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

/// A writer with a lock and one without; a locked place that must not come up.
const BANK: &str = r#"
#include <pthread.h>
volatile int counter, locked;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *guarded(void *unused) {
    pthread_mutex_lock(&m);
    counter = 1;
    locked++;
    pthread_mutex_unlock(&m);
    return unused;
}
static void *bare(void *unused) {
    counter = 7;
    pthread_mutex_lock(&m);
    locked++;
    pthread_mutex_unlock(&m);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, guarded, NULL);
    pthread_create(&b, NULL, bare, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
"#;

fn program() -> Option<Scratch> {
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        scratch.compile("bank", BANK, &[]);
        scratch
    })
}

/// Runs with standard error in a file; none where there is no such program.
fn log(scratch: &Scratch, program: &str, arguments: &[&str]) -> Option<PathBuf> {
    let log = scratch.path("log");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
    match command.status() {
        Ok(_) => Some(log),
        Err(_) => {
            eprintln!("skipped: there is no {program}; `./dev setup` installs it");
            None
        }
    }
}

fn confirm(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let mut command = Command::new(raddle());
    command.arg("confirm").args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    Ran::new(command.output().unwrap())
}

/// Confirms what is in a log: the race on `counter` is real, and there is no other.
fn is_confirmed(scratch: &Scratch, log: &str, tool: &str) {
    let ran = confirm(scratch, &["--import", log, "--", "./bank"]);
    let said = format!("R1 (counter, by {tool}): confirmed, ");
    assert!(ran.exits(66).stdout.starts_with(&said), "{ran:?}");
    let runs = std::fs::read_dir(scratch.path(".raddle")).unwrap();
    let latest = runs.map(|run| run.unwrap().path()).max().unwrap();
    let report = std::fs::read_to_string(latest.join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let findings = report["findings"].as_array().unwrap();
    assert_eq!((findings.len(), &findings[0]["origin"]), (1, &tool.into()), "{report:#}");
    let lines: Vec<&Value> = findings[0]["accesses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["stack"][0]["line"])
        .collect();
    assert!(lines.contains(&&7.into()) && lines.contains(&&13.into()), "{lines:?}");
    let replayed = Command::new(raddle())
        .args(["replay", "R1"])
        .current_dir(scratch.path("."))
        .output()
        .unwrap();
    Ran::new(replayed).exits(0);
}

#[test]
fn threadsanitizer() {
    let Some(scratch) = program() else { return };
    // The instrumented build is another program, with code and addresses of its own.
    let made = Command::new("gcc")
        .args(["-g", "-O1", "-pthread", "-fsanitize=thread", "bank.c", "-o", "bank-tsan"])
        .current_dir(scratch.path("."))
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: gcc -fsanitize=thread does not work here; `./dev setup` installs it");
        return;
    }
    // Its shadow cannot live with as much randomness as newer kernels have.
    let Some(_) = log(&scratch, "setarch", &["-R", "./bank-tsan"]) else { return };
    is_confirmed(&scratch, "log", "ThreadSanitizer");
}

#[test]
fn helgrind_as_text_and_as_xml() {
    let Some(scratch) = program() else { return };
    let Some(_) = log(&scratch, "valgrind", &["--tool=helgrind", "./bank"]) else { return };
    is_confirmed(&scratch, "log", "Helgrind");
    let xml = ["--tool=helgrind", "--xml=yes", "--xml-file=h.xml", "./bank"];
    log(&scratch, "valgrind", &xml).unwrap();
    is_confirmed(&scratch, "h.xml", "Helgrind");
}

#[test]
fn drd_which_knows_one_side_only() {
    let Some(scratch) = program() else { return };
    let xml = ["--tool=drd", "--xml=yes", "--xml-file=d.xml", "./bank"];
    let Some(_) = log(&scratch, "valgrind", &xml) else { return };
    is_confirmed(&scratch, "d.xml", "DRD");
}

#[test]
fn what_cannot_be_imported_gets_a_sentence() {
    let Some(scratch) = program() else { return };
    let said = |arguments: &[&str]| confirm(&scratch, arguments).exits(125).stderr.clone();
    scratch.put("text", "hello");
    let unknown = said(&["--import", "text", "--", "./bank"]);
    assert!(unknown.contains("importing text: neither a report of ThreadSanitizer"), "{unknown}");
    let missing = said(&["--import", "none", "--", "./bank"]);
    assert!(missing.contains("importing none: No such file"), "{missing}");
    let nothing = said(&["--import", "text"]);
    assert!(nothing.contains("PROGRAM"), "{nothing}");
    scratch.put("clean", "==1== Helgrind, a thread error detector\n");
    let clean = confirm(&scratch, &["--import", "clean", "--", "./bank"]);
    assert!(clean.exits(0).stderr.contains("there is no race in what was imported"), "{clean:?}");
    // Another program's race.
    let race = "WARNING: ThreadSanitizer: data race (pid=1)\n  Write of size 4 at 0x1 by thread T2:\n    \
                #0 other /w/other.c:3 (other+0x1)\n\n  Previous write of size 4 at 0x1 by main thread:\n    \
                #0 other /w/other.c:3 (other+0x1)\n==\n";
    scratch.put("other", race);
    let other = confirm(&scratch, &["--import", "other", "--", "./bank"]);
    assert!(other.exits(0).stdout.contains("has no code for its lines"), "{other:?}");
}

/// A static function, and a method that is inlined: Helgrind calls them `stat(int)` or `stat`, and `meth`.
const COUNTERS: &str = r#"
#include <thread>
static int count;
namespace shop { int total; }
static __attribute__((noinline)) void stat(int n) {
    for (int i = 0; i < n; i++)
        count++;
}
struct Till { void meth(int n) {
    for (int i = 0; i < n; i++)
        shop::total++;
} };
int main() {
    Till till;
    auto both = [&] { stat(50); till.meth(50); };
    std::thread a(both), b(both);
    a.join();
    b.join();
}
"#;

#[test]
fn names_of_cplusplus_as_valgrind_writes_them() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.put("till.cpp", COUNTERS);
    let mut compiler = Command::new("g++");
    compiler.args(["-g", "-O1", "-pthread", "till.cpp", "-o", "till"]);
    let made = compiler.current_dir(scratch.path(".")).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no g++; `./dev setup` installs it");
        return;
    }
    let are_confirmed = |file: &str| {
        let ran = confirm(&scratch, &["--import", file, "--", "./till"]);
        ran.exits(66);
        for name in ["count", "shop::total"] {
            let said = format!("({name}, by Helgrind): confirmed, ");
            assert!(ran.stdout.contains(&said), "{file}: {ran:?}");
        }
        assert!(!ran.stdout.contains("has no code"), "{file}: {ran:?}");
    };
    let Some(_) = log(&scratch, "valgrind", &["--tool=helgrind", "./till"]) else { return };
    are_confirmed("log");
    let xml = ["--tool=helgrind", "--xml=yes", "--xml-file=h.xml", "./till"];
    log(&scratch, "valgrind", &xml).unwrap();
    are_confirmed("h.xml");
}

/// Several accesses on one line, of which only one is meant; each is one instruction that updates memory.
const LINE: &str = r#"
#include <pthread.h>
long own[2], total; int other;
static void *add(void *one) {
    long *mine = one;
    *mine += 3; other += 1; total += *mine;
    return 0;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, add, &own[0]);
    pthread_create(&b, NULL, add, &own[1]);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
"#;

#[test]
fn every_access_of_a_line_can_be_the_one() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("line", LINE, &[]);
    let race = |function: &str, size: u32| {
        format!(
            "WARNING: ThreadSanitizer: data race (pid=1)\n  Read of size {size} at 0x1 by thread T2:\n    \
             #0 {function} line.c:6 (line-tsan+0x1)\n\n  Previous write of size {size} at 0x1 by thread T1:\n    \
             #0 {function} line.c:6 (line-tsan+0x2)\n\n"
        )
    };
    let total = "  Location is global 'total' of size 8 at 0x1 (line-tsan+0x3)\n\n==\n";
    scratch.put("tsan.log", race("add", 8) + total);
    let ran = confirm(&scratch, &["--import", "tsan.log", "--", "./line"]);
    ran.exits(66);
    assert!(ran.stdout.starts_with("R1 (total, by ThreadSanitizer): confirmed, "), "{ran:?}");
    // By its size alone.
    scratch.put("tsan.log", race("add", 4) + "==\n");
    let ran = confirm(&scratch, &["--import", "tsan.log", "--", "./line"]);
    assert!(ran.exits(66).stdout.contains("confirmed, "), "{ran:?}");
    // The line is there, the function is not.
    scratch.put("tsan.log", race("subtract(int)", 8) + total);
    let ran = confirm(&scratch, &["--import", "tsan.log", "--", "./line"]);
    let said = "the program has code for line.c:6, but none in subtract(int)";
    assert!(ran.exits(0).stdout.contains(said), "{ran:?}");
}

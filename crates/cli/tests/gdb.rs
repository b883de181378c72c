//! `raddle replay --gdb`, driven by a real gdb.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, Scratch, raddle};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A write under a lock and one without.
const COUNTER: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static int twice(int x) { int y = x * 2; return y; }
static void *locked(void *argument) {
    int amount = *(int *)argument;
    pthread_mutex_lock(&m);
    counter = counter + amount;
    pthread_mutex_unlock(&m);
    return 0;
}
static void *bare(void *argument) {
    double weight = 2.5;
    int amount = *(int *)argument;
    int doubled = twice(amount); // here
    counter = doubled;
    return weight > 2 ? 0 : argument;
}
int main(void) {
    pthread_t a, b;
    int one = 1, seven = 7;
    pthread_create(&a, 0, locked, &one);
    pthread_create(&b, 0, bare, &seven);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("counter %d\n", counter);
    fflush(stdout);
    return 3;
}
"#;

fn line_of(source: &str, text: &str) -> usize {
    1 + source.lines().position(|line| line.contains(text)).unwrap()
}

/// The first finding confirmed, in a directory of its own; `None` where it cannot be tried.
fn confirmed(source: &str, flags: &[&str]) -> Option<Scratch> {
    let gdb = Command::new("gdb").arg("--version").stdout(Stdio::null()).status();
    if !gdb.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no gdb");
        return None;
    }
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        scratch.compile("program", source, flags);
        let raddle = |arguments: &[&str]| {
            let mut command = Command::new(raddle());
            command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
            Ran::new(command.output().unwrap())
        };
        let found = (1..20).any(|seed| {
            let seed = seed.to_string();
            raddle(&["run", "--quiet", "--seed", &seed, "--", "./program"]).code == Some(66)
        });
        assert!(found);
        raddle(&["confirm", "R1"]).exits(66);
        scratch
    })
}

/// `raddle replay R1 --gdb`, waiting for gdb.
struct Served<'a> {
    scratch: &'a Scratch,
    command: Child,
    /// What gdb's `target remote` takes.
    address: String,
}

impl<'a> Served<'a> {
    fn start(scratch: &'a Scratch, more: &[&str]) -> Served<'a> {
        let _ = std::fs::remove_file(scratch.path("said"));
        let to = |name: &str| File::create(scratch.path(name)).unwrap();
        let mut command = Command::new(raddle())
            .args(["replay", "R1", "--gdb"])
            .args(more)
            .current_dir(scratch.path("."))
            .stdin(Stdio::null())
            .stdout(to("wrote"))
            .stderr(to("said"))
            .spawn()
            .unwrap();
        let started = Instant::now();
        loop {
            let said = text(&scratch.path("said"));
            if let Some((_, rest)) = said.split_once("target remote ")
                && let Some((address, _)) = rest.split_once('\'')
            {
                return Served { scratch, command, address: address.to_owned() };
            }
            assert!(command.try_wait().unwrap().is_none(), "{said}");
            assert!(started.elapsed() < PATIENCE, "{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn gdb(&self, commands: &[&str]) -> Command {
        let mut gdb = Command::new("gdb");
        let before = ["set debuginfod enabled off", "set sysroot /", "set width 0"];
        let remote = format!("target remote {}", self.address);
        gdb.args(["-nx", "-q", "-batch"]);
        for command in before.iter().chain(&[remote.as_str()]).chain(commands) {
            gdb.args(["-ex", command]);
        }
        gdb.arg("./program").current_dir(self.scratch.path(".")).stdin(Stdio::null());
        gdb
    }

    /// What gdb says to these commands.
    fn says(&self, commands: &[&str]) -> String {
        // One file for both of its streams, so that what it says stays in order.
        let said = File::create(self.scratch.path("gdb")).unwrap();
        let mut gdb = self.gdb(commands);
        gdb.stdout(said.try_clone().unwrap()).stderr(said).status().unwrap();
        text(&self.scratch.path("gdb"))
    }

    /// The number of the target's process.
    fn target(&self) -> u32 {
        let command = self.command.id();
        let tasks = std::fs::read_dir(format!("/proc/{command}/task")).unwrap().flatten();
        let children = tasks.map(|task| text(&task.path().join("children")));
        children.collect::<String>().split_whitespace().next().unwrap().parse().unwrap()
    }

    /// What the command exits with and has said.
    fn ends(mut self) -> Ran {
        let started = Instant::now();
        let code = loop {
            if let Some(status) = self.command.try_wait().unwrap() {
                break status.code();
            }
            assert!(started.elapsed() < PATIENCE, "{}", text(&self.scratch.path("said")));
            std::thread::sleep(Duration::from_millis(20));
        };
        let [stdout, stderr] = ["wrote", "said"].map(|name| text(&self.scratch.path(name)));
        Ran { code, stdout, stderr }
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

fn text(file: &Path) -> String {
    let mut text = String::new();
    let _ = File::open(file).and_then(|mut file| file.read_to_string(&mut text));
    text
}

#[track_caller]
fn assert_says(said: &str, wanted: &[&str]) {
    let mut rest = said;
    for wanted in wanted {
        let Some(at) = rest.find(wanted) else {
            panic!("no {wanted:?} (in this order) in\n{said}")
        };
        rest = &rest[at + wanted.len()..];
    }
}

fn is_alive(process: u32) -> bool {
    // One that is dead and not waited for yet counts as dead.
    text(Path::new(&format!("/proc/{process}/stat")))
        .rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_session_sees_threads_variables_and_the_race() {
    let Some(scratch) = confirmed(COUNTER, &["-O0"]) else { return };
    let served = Served::start(&scratch, &[]);
    let breakpoint = format!("break program.c:{}", line_of(COUNTER, "// here"));
    let said = served.says(&[
        "info sharedlibrary",
        &breakpoint,
        "continue",
        "print amount",
        "print weight",
        "info threads",
        "stepi",
        "step",
        "print x",
        "finish",
        "continue",
        "monitor why",
        "thread apply all bt",
        "next",
        "continue",
    ]);
    assert_says(
        &said,
        &[
            "main () at ",
            "libc.so.6",
            "hit Breakpoint 1, bare (argument=",
            "twice(amount); // here",
            "$1 = 7",
            "$2 = 2.5",
            "(T1: ",
            "twice (x=7)",
            "$3 = 7",
            "Value returned is $4 = 14",
            "SIGTRAP",
            "the two accesses meet: ",
            "exited with code 03",
        ],
    );
    let stacks = said.split("the two accesses meet").nth(1).unwrap();
    for function in [" locked (", " bare (", " main ()", "start_thread"] {
        assert!(stacks.contains(function), "{function} in\n{said}");
    }
    let ran = served.ends();
    ran.exits(0);
    assert!(ran.stderr.contains("raddle: R1 repeated"), "{ran:?}");
    assert!(ran.stdout.starts_with("counter "), "{ran:?}");
}

#[test]
fn memory_is_watched_whoever_changes_it() {
    let Some(scratch) = confirmed(COUNTER, &["-O1"]) else { return };
    let served = Served::start(&scratch, &["--gdb-port", "0"]);
    assert!(served.address.starts_with(':'), "{}", served.address);
    let again = ["continue"; 4];
    let said = served.says(&[&["watch counter"], &again[..]].concat());
    assert_says(&said, &["Old value = 0", "New value = ", "exited with code 03"]);
    // One change by each of the two threads.
    assert_eq!(said.matches("watchpoint 1: counter").count(), 1 + 2, "{said}");
    served.ends().exits(0);
}

#[test]
fn two_threads_stop_at_one_breakpoint() {
    let Some(scratch) = confirmed(RACING, &["-O1"]) else { return };
    for order in ["1", "2"] {
        let served = Served::start(&scratch, &["--order", order]);
        let breakpoint = format!("break program.c:{}", line_of(RACING, "// here"));
        let said = served.says(&[&[breakpoint.as_str()], &["continue"; 6][..]].concat());
        for thread in ["k=1", "k=2"] {
            let hit = format!("hit Breakpoint 1, add ({thread}");
            assert!(said.contains(&hit), "{hit} in\n{said}");
        }
        assert!(!said.contains("internal-error"), "{said}");
        served.ends().exits(0);
    }
}

/// A write without a lock, by the same code in two threads; and a crash when an update is lost.
const RACING: &str = r#"
#include <pthread.h>
static volatile int counter;
__attribute__((noinline)) static void add(int k) {
    counter = counter + k; // here
}
static void *adder(void *argument) { add((int)(long)argument); return 0; }
int main(void) {
    pthread_t t[2];
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, adder, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    if (counter != 3) *(volatile int *)0 = counter;
    return 0;
}
"#;

#[test]
fn a_deadly_signal_stops_before_it_kills() {
    let Some(scratch) = confirmed(RACING, &["-O1"]) else { return };
    let crashed = ["1", "2"].iter().any(|order| {
        let served = Served::start(&scratch, &["--order", order]);
        let said = served.says(&["continue", "continue", "print counter", "bt", "continue"]);
        let crashed = said.contains("SIGSEGV");
        if crashed {
            let wanted =
                ["SIGSEGV", "in main ()", "#0", "main ()", "terminated with signal SIGSEGV"];
            assert_says(&said, &wanted);
        }
        let ran = served.ends();
        ran.exits(0);
        assert!(!crashed || ran.stderr.contains("ended with signal 11"), "{ran:?}");
        crashed
    });
    assert!(crashed);
}

#[test]
fn a_deadlock_shows_who_waits_where() {
    const DEADLOCK: &str = r#"
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *unused) {
    pthread_mutex_lock(&a); pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b); pthread_mutex_unlock(&a);
    return unused;
}
static void *second(void *unused) {
    pthread_mutex_lock(&b); pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a); pthread_mutex_unlock(&b);
    return unused;
}
int main(void) {
    pthread_t s, t;
    pthread_create(&s, 0, first, 0);
    pthread_create(&t, 0, second, 0);
    pthread_join(s, 0);
    pthread_join(t, 0);
    return 0;
}
"#;
    let Some(scratch) = confirmed(DEADLOCK, &["-O1"]) else { return };
    let served = Served::start(&scratch, &[]);
    let said = served.says(&["continue", "monitor why", "thread apply all bt", "continue"]);
    assert_says(&said, &["SIGTRAP", "a deadlock", "exited with code 0102"]);
    for function in [" first (", " second (", "pthread_mutex_lock"] {
        assert!(said.contains(function), "{function} in\n{said}");
    }
    let ran = served.ends();
    ran.exits(0);
    assert!(ran.stderr.contains("ended with a deadlock"), "{ran:?}");
}

#[test]
fn a_running_target_can_be_interrupted() {
    const ENDLESS: &str = r#"
#include <pthread.h>
static volatile int counter, go = 1;
static void *adder(void *unused) { counter = counter + 1; return unused; }
int main(int argc, char **argv) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, adder, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    volatile long i = 0;
    while (go && i < 60000000) i++;
    return 0;
}
"#;
    let Some(scratch) = confirmed(ENDLESS, &["-O1"]) else { return };
    let served = Served::start(&scratch, &[]);
    let said = served.says(&[
        "continue",
        "python import threading, os; \
         threading.Timer(0.2, lambda: os.kill(os.getpid(), 2)).start()",
        "continue",
        "print i > 0",
        "set var go = 0",
        "continue",
    ]);
    assert_says(&said, &["SIGINT", "main (", "$1 = 1", "exited normally"]);
    // The target's memory was changed: how it ends was not.
    served.ends().exits(0);
}

#[test]
fn gdb_can_leave_in_every_way() {
    let Some(scratch) = confirmed(COUNTER, &["-O0"]) else { return };

    let served = Served::start(&scratch, &[]);
    served.says(&["detach"]);
    let ran = served.ends();
    ran.exits(0);
    assert!(ran.stderr.contains("R1 repeated"), "{ran:?}");

    let served = Served::start(&scratch, &[]);
    let target = served.target();
    served.says(&["continue", "kill"]);
    let ran = served.ends();
    ran.exits(0);
    assert!(ran.stderr.contains("killed, or left, by gdb"), "{ran:?}");
    assert!(!is_alive(target));

    // gdb itself is killed, while the target stands.
    let served = Served::start(&scratch, &[]);
    let target = served.target();
    let mut gdb = served.gdb(&["print 40 + 2", "python import time; time.sleep(60)"]);
    let mut gdb = gdb.stdout(File::create(scratch.path("gdb")).unwrap()).spawn().unwrap();
    let started = Instant::now();
    while !text(&scratch.path("gdb")).contains("42") && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    gdb.kill().unwrap();
    gdb.wait().unwrap();
    served.ends().exits(0);
    assert!(!is_alive(target));

    // Nobody came, and the command is told to end.
    let served = Served::start(&scratch, &[]);
    let target = served.target();
    let told = Command::new("kill").arg(served.command.id().to_string()).status().unwrap();
    assert!(told.success());
    served.ends().exits(0);
    assert!(!is_alive(target));
}

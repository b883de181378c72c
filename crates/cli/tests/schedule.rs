//! Controlled execution: the same seed is the same execution, other seeds are others, nothing stalls,
//! and a deadlock is noticed.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::{Ran, Scratch, raddle};

/// Executions of one seed.
const REPEATS: usize = 20;
/// Seeds tried.
const SEEDS: usize = 10;

const SIGTERM: i32 = 15;

/// One controlled execution: its events, its output, its schedule.
fn execution(scratch: &Scratch, seed: usize, program: &[&str]) -> (String, String, String) {
    let kept = scratch.path(&format!("kept-{seed}"));
    let _ = std::fs::remove_dir_all(&kept);
    let events = scratch.path("events");
    // Into a file: when a full pipe has room again is its reader's doing, and no seed's.
    let written = scratch.path("written");
    let ran = Command::new(raddle())
        .args(["events", "--quiet", "--timeout", "60s", "--only", "sync,thread", "--seed"])
        .arg(seed.to_string())
        .arg("--output")
        .arg(&events)
        .arg("--out")
        .arg(&kept)
        .arg("--")
        .args(program)
        .current_dir(scratch.path("."))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&written).unwrap())
        .output()
        .unwrap();
    Ran::new(ran).exits(0);
    let schedule = std::fs::read_to_string(kept.join("schedule")).unwrap();
    let events = std::fs::read_to_string(&events).unwrap();
    let written = String::from_utf8_lossy(&std::fs::read(&written).unwrap()).into_owned();
    (events, written, schedule)
}

/// One seed, one execution; many seeds, many.
fn is_fixed_by_its_seed(scratch: &Scratch, program: &[&str], least_different: usize) {
    is_repeated(scratch, program, REPEATS);
    let traces: BTreeSet<String> =
        (1..=SEEDS).map(|seed| execution(scratch, seed, program).2).collect();
    assert!(traces.len() >= least_different, "{} schedules of {SEEDS} seeds", traces.len());
}

/// One seed, one execution, however often.
fn is_repeated(scratch: &Scratch, program: &[&str], repeats: usize) {
    let first = execution(scratch, 7, program);
    assert!(first.0.lines().count() > 5, "{}", first.0);
    for repeat in 1..repeats {
        let again = execution(scratch, 7, program);
        assert_eq!(first.1, again.1, "output of repeat {repeat}");
        assert_eq!(difference(&first.2, &again.2), None, "schedule of repeat {repeat}");
        assert_eq!(difference(&first.0, &again.0), None, "events of repeat {repeat}");
    }
}

/// Rare faults need thousands of executions to show.
#[test]
#[ignore = "takes an hour"]
fn one_seed_two_thousand_times() {
    if !support::has_probe() {
        return;
    }
    for name in ["counter", "conditions", "primitives"] {
        let scratch = Scratch::new();
        scratch.compile(name, &source(&format!("{name}.c")), &[]);
        is_repeated(&scratch, &[&format!("./{name}")], 2000);
    }
}

/// The first lines that differ.
fn difference(a: &str, b: &str) -> Option<(String, String)> {
    let (mut a, mut b) = (a.lines(), b.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (x, y) if x == y => {}
            (x, y) => return Some((x.unwrap_or("").into(), y.unwrap_or("").into())),
        }
    }
}

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schedule").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn c_program(name: &str, flags: &[&str]) {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile(name, &source(&format!("{name}.c")), flags);
    is_fixed_by_its_seed(&scratch, &[&format!("./{name}")], SEEDS - 1);
}

#[test]
fn a_racy_counter() {
    c_program("counter", &[]);
}

#[test]
fn conditions_with_time_outs() {
    c_program("conditions", &[]);
}

#[test]
fn barriers_locks_semaphores_and_once() {
    c_program("primitives", &[]);
}

#[test]
fn addresses_of_what_is_mapped() {
    c_program("layout", &[]);
}

#[test]
fn pipes_and_poll() {
    c_program("pipes", &[]);
}

#[test]
fn sockets_that_connect() {
    c_program("sockets", &[]);
}

#[test]
fn sockets_that_send_small_pieces() {
    c_program("small_writes", &[]);
}

#[test]
fn sends_that_are_larger_than_what_is_kept_of_them() {
    c_program("large_sends", &[]);
}

#[test]
fn sends_that_do_not_wait() {
    c_program("nonblocking", &[]);
}

#[test]
fn locks_of_files_and_messages() {
    c_program("file_locks", &[]);
}

#[test]
fn signals_of_the_process_to_itself() {
    c_program("to_itself", &[]);
}

#[test]
fn an_openmp_team() {
    c_program("team", &["-fopenmp"]);
}

fn compiled(compiler: &str, flags: &[&str], name: &str) -> Option<Scratch> {
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        let file = scratch.put(name, source(name));
        let mut make = Command::new(compiler);
        make.args(flags).arg(&file).args(["-o", "program"]).current_dir(scratch.path("."));
        let made = make.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        scratch
    })
}

#[test]
fn cpp_threads_and_async() {
    if let Some(scratch) = compiled("g++", &["-g", "-O1", "-pthread"], "threads.cpp") {
        is_fixed_by_its_seed(&scratch, &["./program"], SEEDS - 1);
    }
}

#[test]
fn time_and_chance_of_the_processor() {
    let flags = ["-std=c++20", "-O2", "-pthread", "-mrdrnd"];
    let Some(scratch) = compiled("g++", &flags, "given.cpp") else { return };
    is_repeated(&scratch, &["./program"], 3);
    // Real time is as real as it is; chance is ours.
    let real = |_| {
        let mut run = Command::new(raddle());
        run.args(["run", "--quiet", "--seed", "1", "--time", "real", "--", "./program"]);
        let ran = run.current_dir(scratch.path(".")).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).split_whitespace().map(str::to_owned).collect()
    };
    let [first, second]: [Vec<String>; 2] = [0, 1].map(real);
    assert_ne!(first[0], second[0]);
    assert_eq!(first[3..6], second[3..6]);
}

/// Who asks for chance, by whichever way, is given the same for the same seed; and yet it is chance.
#[test]
fn chance_from_the_kernel() {
    let Some(scratch) = compiled("gcc", &["-O2", "-pthread"], "chance.c") else { return };
    is_repeated(&scratch, &["./program"], 5);
    let written = execution(&scratch, 7, &["./program"]).1;
    let all: BTreeSet<&str> = written.split_whitespace().collect();
    // Two threads, each by four ways.
    assert_eq!(all.len(), 8, "{written}");
}

/// The numbers of threads and processes are the same every time, and mean what they should.
#[test]
fn numbers_of_threads_and_processes() {
    let Some(scratch) = compiled("gcc", &["-O2", "-pthread"], "ids.c") else { return };
    let run = |mut command: Command| {
        let ran = command.current_dir(scratch.path(".")).output().unwrap();
        let killed_by = ran.status.signal().or(ran.status.code().map(|code| code - 128));
        assert_eq!(killed_by, Some(SIGTERM), "{ran:?}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    let controlled = || {
        let mut command = Command::new(raddle());
        command.args(["events", "--quiet", "--only", "thread", "--output", "/dev/null"]);
        command.args(["--seed", "7", "--timeout", "60s", "--", "./program"]);
        let written = run(command);
        written.split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()
    };
    let (numbers, rest) = controlled();
    assert_eq!(numbers, "4194305 4194305 4194304 4194306");
    let native = run(Command::new(scratch.path("program")));
    assert_eq!(rest, native.split_once('\n').unwrap().1);
    assert_eq!(controlled(), (numbers, rest));
}

/// Every operation of the futex call returns what the kernel's does.
#[test]
fn futexes_by_hand() {
    let Some(scratch) = compiled("gcc", &["-O2", "-pthread"], "futexes.c") else { return };
    let native = Command::new(scratch.path("program")).output().unwrap();
    let native = String::from_utf8_lossy(&native.stdout).into_owned();
    for seed in 1..=5 {
        assert_eq!(
            difference(&native, &execution(&scratch, seed, &["./program"]).1),
            None,
            "{seed}"
        );
    }
}

/// What the kernel says of the process and the machine is the same every time, and our mappings are none of the
/// target's.
#[test]
fn what_the_kernel_says_in_files() {
    let Some(scratch) = compiled("gcc", &["-O2", "-pthread"], "told.c") else { return };
    is_repeated(&scratch, &["./program"], 3);
    let written = execution(&scratch, 7, &["./program"]).1;
    for ours in ["dynamorio", "raddle_probe", "kept-7"] {
        assert!(!written.contains(ours), "{written}");
    }
    let its = "/program
libc.so.6
[stack]
Tgid:\t4194305
Pid:\t4194306
2 of 2
later: 1";
    for line in its.lines() {
        assert!(written.lines().any(|said| said.ends_with(line)), "{line}: {written}");
    }
    assert!(written.contains("4194306 (program) R 4194304 "), "{written}");
}

#[test]
fn rust_channels_and_parking() {
    if let Some(scratch) = compiled("rustc", &["-g", "-O"], "channels.rs") {
        is_fixed_by_its_seed(&scratch, &["./program"], SEEDS - 1);
    }
}

fn packaged(program: &[&str]) {
    let there = Command::new(program[0]).arg("--version").output().is_ok();
    if !support::has_probe() || !there {
        eprintln!("skipped: no {}", program[0]);
        return;
    }
    let scratch = Scratch::new();
    let lines: String = (0..60_000).map(|i| format!("{i}\n")).collect();
    scratch.put("input", lines);
    is_fixed_by_its_seed(&scratch, program, 2);
}

#[test]
fn pigz() {
    packaged(&["pigz", "-p", "2", "-c", "input"]);
}

#[test]
fn xz_with_two_threads() {
    packaged(&["xz", "-T2", "-c", "--block-size=100000", "input"]);
}

/// Two threads that take two locks in opposite orders, each after the other has its first; a third
/// that could run for ever.
const DEADLOCK: &str = r#"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *forth(void *unused) {
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&b);
    return unused;
}
static void *back(void *unused) {
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a);
    return unused;
}
static void *tick(void *unused) {
    while (TICKS) usleep(1000);
    return unused;
}
int main(void) {
    pthread_t threads[3];
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&threads[0], NULL, forth, NULL);
    pthread_create(&threads[1], NULL, back, NULL);
    pthread_create(&threads[2], NULL, tick, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;

fn events(scratch: &Scratch, arguments: &[&str], program: &str) -> Ran {
    scratch.events(arguments, &[&program])
}

#[test]
fn a_deadlock_is_told_also_while_others_run() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    for (ticks, words) in [("1", "wait for each other's locks"), ("0", "deadlock")] {
        scratch.compile("stuck", &DEADLOCK.replace("TICKS", ticks), &[]);
        let ran = events(&scratch, &["--only", "sync", "--seed", "3", "--output", "e"], "./stuck");
        ran.exits(66);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert!(ran.stderr.contains("and holds"), "{}", ran.stderr);
    }
}

/// With names and whole stacks, where there is a report to go with.
#[test]
fn a_deadlock_is_told_by_the_names_of_the_locks() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("stuck", &DEADLOCK.replace("TICKS", "0"), &["-O0"]);
    let ran = command(&scratch, &["run", "--seed", "3", "--", "./stuck"]);
    ran.exits(66);
    for words in ["waits for b, and holds a\n      at stuck.c:", " in forth\n      called from "] {
        assert!(ran.stderr.contains(words), "{words:?}: {}", ran.stderr);
    }
    assert_eq!(failure(&scratch)["end"], "deadlock");
    let again = command(&scratch, &["replay", "H1"]);
    assert!(again.exits(0).stderr.contains("H1 repeated, seed 3: deadlock"), "{}", again.stderr);
}

fn command(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let ran = Command::new(raddle()).args(arguments).current_dir(scratch.path(".")).output();
    Ran::new(ran.unwrap())
}

/// The failing execution in the first run's report.
fn failure(scratch: &Scratch) -> serde_json::Value {
    let report = std::fs::read_to_string(scratch.path(".raddle/1/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    report["failures"][0].clone()
}

/// What spins for ever: a loop, one that gives way, one that naps, and one that does so alone.
const SPIN: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile int come;
static volatile long counter;
static void *spin(void *unused) { while (!come) ; return unused; }
static void *yield(void *unused) { while (!come) sched_yield(); return unused; }
static void *nap(void *unused) { while (!come) usleep(100); return unused; }
static void *wake(void *unused) { sleep(100); come = 1; return unused; }
// No register says that it gets on.
static void *count(void *unused) {
    __asm__ volatile("1: incq %0; cmpq $100000000, %0; jl 1b" : "+m"(counter) :: "cc");
    return unused;
}
int main(int argc, char **words) {
    static struct { const char *name; void *(*one)(void *), *(*other)(void *); } ways[] = {
        {"spin", spin, spin}, {"yield", yield, spin}, {"nap", nap, yield}, {"late", spin, wake}, {"count", count, count},
    };
    if (argc < 2) spin(0);
    for (int i = 0; i < 5; i++)
        if (strcmp(words[1], ways[i].name) == 0) {
            pthread_t one, other;
            pthread_create(&one, 0, ways[i].one, 0);
            pthread_create(&other, 0, ways[i].other, 0);
            pthread_join(one, 0);
            pthread_join(other, 0);
        }
    return 0;
}
"#;

#[test]
fn who_only_spins_makes_no_progress() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("spin", SPIN, &["-O1"]);
    for way in ["spin", "yield", "nap"] {
        let arguments = ["events", "--only", "thread", "--output", "e", "--seed", "3", "--timeout"];
        let ran = command(&scratch, &[&arguments[..], &["5m", "--", "./spin", way]].concat());
        ran.exits(66);
        assert!(ran.stderr.contains("no progress: who can run spins"), "{way}: {}", ran.stderr);
        assert!(ran.stderr.contains("T1 waits") && ran.stderr.contains("T3 spins"), "{way}");
    }
    let ran = command(&scratch, &["run", "--seed", "3", "--timeout", "5m", "--", "./spin"]);
    assert!(ran.exits(66).stderr.contains("no progress in 1 of 1 executions"), "{}", ran.stderr);
    assert!(ran.stderr.contains("T1 spins\n      at spin.c:"), "{}", ran.stderr);
    assert_eq!(failure(&scratch)["end"], "no-progress");
}

/// Nobody is wronged: who waits for somebody asleep, and who changes memory alone.
#[test]
fn who_gets_on_is_not_said_to_spin() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("spin", SPIN, &["-O1"]);
    for way in ["late", "count"] {
        let arguments = ["events", "--only", "thread", "--output", "e", "--seed", "3", "--timeout"];
        command(&scratch, &[&arguments[..], &["5m", "--", "./spin", way]].concat()).exits(0);
    }
}

#[test]
fn an_hour_of_sleep_passes_at_once_and_shows_on_the_clock() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = "#include <stdio.h>\n#include <time.h>\n#include <unistd.h>\n
        int main(void) { time_t t = time(NULL); sleep(3600);
        printf(\"%ld\\n\", (long)(time(NULL) - t)); return 0; }";
    scratch.compile("sleeper", source, &[]);
    let started = Instant::now();
    let ran = events(&scratch, &["--only", "sync", "--seed", "1", "--output", "e"], "./sleeper");
    assert_eq!(ran.exits(0).stdout, "3600\n");
    assert!(started.elapsed().as_secs() < 50);
}

/// A signal that comes when its thread is about to wait ends that wait, too: nobody is to wait for what has come.
#[test]
fn a_signal_before_the_wait_is_not_lost() {
    if !support::has_probe() {
        return;
    }
    let source = r#"
        #include <pthread.h>
        #include <semaphore.h>
        #include <signal.h>
        static sem_t handled;
        static void handler(int signal) { (void)signal; sem_post(&handled); }
        static void *waiter(void *unused) { while (sem_wait(&handled) != 0) ; return unused; }
        int main(void) {
            pthread_t thread;
            sem_init(&handled, 0, 0);
            signal(SIGUSR1, handler);
            pthread_create(&thread, 0, waiter, 0);
            pthread_kill(thread, SIGUSR1);
            return pthread_join(thread, 0);
        }"#;
    let scratch = Scratch::new();
    scratch.compile("signalled", source, &["-pthread"]);
    for seed in 1..=25 {
        let seed = seed.to_string();
        let arguments = ["--only", "thread", "--output", "e", "--timeout", "60s", "--seed", &seed];
        events(&scratch, &arguments, "./signalled").exits(0);
    }
}

/// A handler with `SA_RESTART` lets a call go on that waits, as in the kernel.
#[test]
fn a_call_is_made_again_after_a_handler_that_lets_it_go_on() {
    let Some(scratch) = compiled("gcc", &["-O2", "-pthread"], "restart.c") else { return };
    let native = Command::new(scratch.path("program")).output().unwrap();
    let native = String::from_utf8_lossy(&native.stdout).into_owned();
    let told =
        ["read: 1 x", "read: -1 ? Interrupted", "after the jump: 1 x", "waited: 1", "handled: 4"];
    assert!(told.iter().all(|line| native.contains(line)), "{native}");
    for seed in ["1", "2", "3"] {
        let ran = scratch.events(
            &["--only", "thread", "--output", "e", "--timeout", "60s", "--seed", seed],
            &[&"./program"],
        );
        assert_eq!(ran.exits(0).stdout, native, "seed {seed}");
    }
}

#[test]
fn a_signal_ends_the_wait_of_its_thread() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = r#"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static sem_t never;
static volatile sig_atomic_t got;
static void handler(int signal) { got = signal; }
static void *wait(void *unused) {
    int result = sem_wait(&never);
    printf("%d %d %d\n", result, errno == EINTR, got == SIGUSR1);
    return unused;
}
int main(void) {
    struct sigaction action = {.sa_handler = handler};
    pthread_t thread;
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&never, 0, 0);
    pthread_create(&thread, NULL, wait, NULL);
    usleep(1000);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    return 0;
}
"#;
    scratch.compile("signalled", source, &[]);
    for seed in ["1", "2", "3"] {
        let arguments = ["--only", "sync", "--seed", seed, "--output", "e"];
        assert_eq!(events(&scratch, &arguments, "./signalled").exits(0).stdout, "-1 1 1\n");
    }
}

/// An execution of the program that fails, and five replays of it, which must be alike; what those write.
fn hunted_and_repeated(scratch: &Scratch, program: &[&str], run: usize) -> String {
    let hunt = ["hunt", "--first", "--budget", "10m", "--executions", "400", "--"];
    let ran = command(scratch, &[&hunt[..], program].concat());
    assert!(ran.exits(66).stdout.contains("H1: exit code 3 in 1 of "), "{ran:?}");
    let kept = std::fs::read_to_string(scratch.path(&format!(".raddle/{run}/H1.input"))).unwrap();
    assert!(kept.contains(" signal "), "{kept}");
    let again = |_| {
        let ran = command(scratch, &["replay", &format!("{run}/H1")]);
        ran.exits(0).stdout.clone()
    };
    let all: BTreeSet<String> = (0..5).map(again).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

/// Signals from other processes are input: that a child ended, or what it sent, is taken again where it was taken, by whom,
/// and says the same. Both with a handler that ends waits and with one that lets calls go on.
#[test]
fn signals_of_children_come_again_where_they_came() {
    let Some(scratch) = compiled("gcc", &["-g", "-O1", "-pthread"], "children.c") else { return };
    for (run, mode) in [(1, "ends-waits"), (2, "goes-on")] {
        let written = hunted_and_repeated(&scratch, &["./program", mode], run);
        for line in ["[reaped 10]\n", "[reaped 11]\n", "[reaped 12]\n", " code 0]\n"] {
            assert!(written.contains(line), "{line}: {written}");
        }
        assert!(written.contains("3 ended, 1 greetings, balance 1\n"), "{written}");
        // What the kernel said with it.
        let ends = written.matches("[end ").count();
        assert_eq!(written.matches(" code 1 status 1").count(), ends, "{written}");
    }
}

/// Likewise while there is one thread, of which no policy is asked.
#[test]
fn signals_of_children_come_again_to_a_thread_that_is_alone() {
    let compiled = compiled("gcc", &["-g", "-O1", "-pthread"], "children_of_one.c");
    let Some(scratch) = compiled else { return };
    let written = hunted_and_repeated(&scratch, &["./program"], 1);
    let ends: Vec<&str> = written.lines().filter(|line| line.starts_with("[end")).collect();
    let expected = [5, 6, 7, 8].map(|status| format!("[end code 1 status {status}]"));
    assert_eq!(ends, expected, "{written}");
}

/// Detection under a seed is repeated whole: the report, but for where it was.
#[test]
fn a_detection_run_is_the_same_every_time() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("counter", &source("counter.c"), &["-Wl,-z,now"]);
    let report = |_| {
        let out = scratch.path("out");
        let _ = std::fs::remove_dir_all(&out);
        let ran = Command::new(raddle())
            .args(["run", "--quiet", "--seed", "7", "--out", "out", "--", "./counter"])
            .current_dir(scratch.path("."))
            .output()
            .unwrap();
        let code = ran.status.code();
        let schedule = std::fs::read_to_string(out.join("schedule")).unwrap();
        (code, ran.stdout, schedule, std::fs::read_to_string(out.join("report.json")).unwrap())
    };
    let all: BTreeSet<_> = (0..5).map(report).collect();
    assert_eq!(all.len(), 1);
    let (code, _, schedule, _) = all.first().unwrap();
    assert_eq!(*code, Some(66));
    assert!(schedule.starts_with("raddle-schedule/2\nseed 7\npolicy random\n"), "{schedule}");
}

#[test]
fn timers_go_off_by_virtual_time() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("timers", &source("timers.c"), &[]);
    let expected = "left 1000\nalarm 1 at 30, 0\nalarms 4 at 30\nsigtimedwait -1 at 31\n\
        timerfd 1 1 at 80\nthread told 42 at 100\ntimerfd 1 1 at 180\ntimerfd 2 at 430\nused 0 0\n";
    for seed in ["1", "2", "3"] {
        let started = Instant::now();
        let arguments = ["--only", "sync", "--seed", seed, "--output", "e"];
        assert_eq!(events(&scratch, &arguments, "./timers").exits(0).stdout, expected);
        assert!(started.elapsed().as_secs() < 50);
    }
}

/// Waits that are no futex's: for a signal by asking for it, for one while all others wait, for a child, for a
/// semaphore of System V, for the other end of a pipe. Nobody may be held up by one who waits, and nobody waits for ever.
const WAITS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static sigset_t signals;
static int semaphore;
static void *take_signal(void *unused) {
    int signal;
    sigwait(&signals, &signal);
    printf("sigwait %d\n", signal == SIGUSR1);
    return unused;
}
static void *take_semaphore(void *unused) {
    struct sembuf take = {0, -1, 0};
    printf("semop %d\n", semop(semaphore, &take, 1));
    return unused;
}
static void *open_pipe(void *name) { return (void *)(long)open(name, O_WRONLY); }
static void on_signal(int signal) { (void)signal; }
static void *suspend(void *unused) {
    sigset_t all_but;
    sigfillset(&all_but);
    sigdelset(&all_but, SIGUSR2);
    printf("sigsuspend %d\n", sigsuspend(&all_but));
    return unused;
}
int main(void) {
    pthread_t threads[3];
    signal(SIGUSR2, on_signal);
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    pthread_create(&threads[0], NULL, take_signal, NULL);
    pthread_create(&threads[1], NULL, take_semaphore, NULL);
    pthread_create(&threads[2], NULL, suspend, NULL);
    usleep(20000);
    pthread_kill(threads[0], SIGUSR1);
    pthread_join(threads[0], NULL);
    struct sembuf give = {0, 1, 0};
    semop(semaphore, &give, 1);
    pthread_join(threads[1], NULL);
    semctl(semaphore, 0, IPC_RMID);
    pthread_kill(threads[2], SIGUSR2);
    pthread_join(threads[2], NULL);
    fflush(stdout);
    // Opened by one when the other opens it.
    char path[64];
    snprintf(path, sizeof path, "pipe-%d", (int)getpid());
    mkfifo(path, 0600);
    pthread_create(&threads[0], NULL, open_pipe, path);
    int reads = open(path, O_RDONLY);
    void *writes;
    pthread_join(threads[0], &writes);
    printf("pipe %d\n", reads >= 0 && (long)writes >= 0);
    unlink(path);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    siginfo_t info = {0};
    int result = waitid(P_PID, child, &info, WEXITED);
    printf("waitid %d %d\n", result, info.si_status);
    return 0;
}
"#;

#[test]
fn no_wait_of_any_kind_stalls_the_others() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("waits", WAITS, &[]);
    for seed in ["1", "2", "3", "4"] {
        let arguments = ["--only", "sync", "--timeout", "60s", "--seed", seed, "--output", "e"];
        let expected = "sigwait 1\nsemop 0\nsigsuspend -1\npipe 1\nwaitid 0 7\n";
        assert_eq!(events(&scratch, &arguments, "./waits").exits(0).stdout, expected);
    }
}

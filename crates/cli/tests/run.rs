//! `raddle run` and `raddle report` on small programs: what is found, what is left behind, and the
//! exit code.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

/// A write and a read of `counter` by two threads that nothing keeps apart; after them, LAST.
const RACY: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile int counter;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void *writer(void *unused) {
    counter = 1; // line 10
    return unused;
}
static void *reader(void *unused) {
    pthread_mutex_lock(&guard); // line 14
    int seen = counter; // line 15
    pthread_mutex_unlock(&guard);
    return seen > 1 ? &counter : unused, unused;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, writer, NULL); // line 21
    pthread_create(&threads[1], NULL, reader, NULL); // line 22
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    puts("done");
    fflush(stdout);
    LAST;
}
"#;

/// The same with the lock on both sides.
fn clean() -> String {
    let locked = "pthread_mutex_lock(&guard); counter = 1; pthread_mutex_unlock(&guard);";
    RACY.replace("counter = 1;", locked)
}

/// Compiles a program that does `last` in the end. Bound when it starts: the loader binding names
/// while threads run is a race of its own.
fn compiled(source: &str, last: &str) -> Option<Scratch> {
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        scratch.compile("bank", &source.replace("LAST", last), &["-Wl,-z,now"]);
        scratch
    })
}

/// `raddle ARGUMENTS`, run in the scratch directory.
fn command(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = Command::new(raddle());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    command
}

fn run(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let all = [&["run"], arguments, &["--", "./bank"]].concat();
    Ran::new(command(scratch, &all).output().unwrap())
}

fn report(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_race_is_found_with_both_stacks() {
    let Some(scratch) = compiled(RACY, "return 3") else { return };
    let ran = run(&scratch, &[]);
    ran.exits(66);
    assert_eq!(ran.stdout, "done\n");
    let json = report(&scratch.path(".raddle/1/report.json"));
    let finding = &json["findings"][0];
    assert_eq!(json["findings"].as_array().unwrap().len(), 1, "{}", ran.stderr);
    assert_eq!((&finding["id"], &finding["kind"]), (&"R1".into(), &"data-race".into()));
    assert_eq!(finding["certainty"], "observed");
    let location = &finding["location"];
    assert_eq!((&location["kind"], &location["name"]), (&"global".into(), &"counter".into()));
    assert_eq!(location["size"], 4);
    let sides: Vec<(&str, &str, u64)> = finding["accesses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|access| {
            let frame = &access["stack"][0];
            assert!(frame["file"].as_str().unwrap().ends_with("bank.c"), "{frame}");
            let line = frame["line"].as_u64().unwrap();
            (access["kind"].as_str().unwrap(), frame["function"].as_str().unwrap(), line)
        })
        .collect();
    for expected in [("write", "writer", 10), ("read", "reader", 15)] {
        assert!(sides.contains(&expected), "{expected:?} in {sides:?}");
    }
    let reader =
        finding["accesses"].as_array().unwrap().iter().find(|a| a["kind"] == "read").unwrap();
    assert_eq!(reader["locks"][0]["name"], "guard");
    assert_eq!(reader["locks"][0]["taken_at"][0]["line"], 14);
    let created: Vec<&Value> =
        json["threads"].as_array().unwrap().iter().map(|t| &t["created_at"]).collect();
    let line = |stack: &Value| {
        let frames = stack.as_array().unwrap().iter();
        frames.filter(|f| f["function"] == "main").map(|f| f["line"].as_u64().unwrap()).next()
    };
    let lines: Vec<Option<u64>> = created.into_iter().map(line).collect();
    assert_eq!(lines, [None, Some(21), Some(22)]);
    assert_eq!(json["outcome"]["exit"], 3);
    assert_eq!(json["target"]["argv"][0], "./bank");
    assert!(json["modules"][0]["path"].as_str().unwrap().ends_with("/bank"), "{}", json["modules"]);

    for expected in [
        "R1  data race on counter (observed, seen ",
        "bank.c:10 in writer\n         10 |     counter = 1; // line 10\n",
        "holding guard (taken at bank.c:14 in reader)",
        "where: global variable counter of ./bank, 4 bytes at 0x",
        "raddle: 1 data race (1 observed) in 3 threads; report in .raddle/1/report.json\n",
        "\nnext: raddle confirm R1\n",
    ] {
        assert!(ran.stderr.contains(expected), "{expected:?} in {}", ran.stderr);
    }
    assert!(!ran.stderr.contains('\x1b'), "{:?}", ran.stderr);
    assert_eq!(names(&scratch.path(".raddle/1")), ["report.json"]);
}

#[test]
fn a_clean_program_ends_as_it_would_and_is_told_what_was_looked_at() {
    let Some(scratch) = compiled(&clean(), "return 3") else { return };
    let ran = run(&scratch, &[]);
    ran.exits(3);
    assert_eq!(ran.stdout, "done\n");
    assert!(ran.stderr.starts_with("raddle: no data races in 3 threads; looked at "), "{ran:?}");
    let json = report(&scratch.path(".raddle/1/report.json"));
    let summary = &json["summary"];
    assert!(summary["accesses"].as_u64().unwrap() > 10, "{summary}");
    assert!(summary["synchronisations"].as_u64().unwrap() >= 4, "{summary}");
    assert!(summary["locks"].as_u64().unwrap() >= 1, "{summary}");
}

/// What a program with one thread does to memory is not looked at: before it makes another, and after it has joined all. What
/// it does beside another is, also when it has been alone before.
#[test]
fn who_is_alone_is_not_looked_at() {
    const ROUNDS: &str = r#"
#include <pthread.h>
#include <unistd.h>
enum { MANY = 10000 };
static volatile long numbers[MANY];
static int ends[2];
static void fill(void) { for (int i = 0; i < MANY; i++) numbers[i] = i; }
static void *wait_for_word(void *unused) { char word; return read(ends[0], &word, 1) == 1 ? unused : &ends; }
int main(void) {
    pthread_t thread;
    pipe(ends);
    fill();
    for (int round = 0; round < 2; round++) {
        pthread_create(&thread, NULL, wait_for_word, NULL);
        BESIDE;
        write(ends[1], "", 1);
        pthread_join(thread, NULL);
        for (int i = 0; i < MANY; i++) numbers[i]++;
    }
    return 0;
}
"#;
    let looked_at = |beside: &str| -> Option<u64> {
        let scratch = compiled(&ROUNDS.replace("BESIDE", beside), "")?;
        run(&scratch, &["--out", "out"]).exits(0);
        report(&scratch.path("out/report.json"))["summary"]["accesses"].as_u64()
    };
    let Some(alone) = looked_at("") else { return };
    assert!(alone < 1000, "{alone} accesses of a thread that is alone");
    let beside = looked_at("fill()").unwrap();
    assert!(beside >= 2 * 10_000, "{beside} accesses beside another thread");
}

#[test]
fn each_detector_can_be_chosen() {
    let Some(scratch) = compiled(RACY, "return 0") else { return };
    run(&scratch, &["--detector", "hb", "--quiet"]).exits(66);
    run(&scratch, &["--detector", "hybrid", "--quiet"]).exits(66);
    let long = ["--detector", "helgrind+", "--states", "long", "--quiet"];
    let ran = run(&scratch, &long);
    // Eight states want to see it twice, and it happens once.
    ran.exits(0);
    assert_eq!(names(&scratch.path(".raddle")), ["1", "2", "3"]);
    let json = report(&scratch.path(".raddle/3/report.json"));
    assert_eq!(json["tool"]["detector"], "helgrind+ long");
}

#[test]
fn the_report_goes_where_it_was_asked_for() {
    let Some(scratch) = compiled(RACY, "return 0") else { return };
    let ran = run(&scratch, &["--quiet", "--error-exitcode", "9", "--out", "kept", "--keep"]);
    ran.exits(9);
    assert_eq!(
        ran.stderr,
        "raddle: 1 data race (1 observed) in 3 threads; report in kept/report.json\n"
    );
    assert_eq!(names(&scratch.path("kept")), ["logs", "report.json"]);
    assert!(!scratch.path(".raddle").exists());
    let ran = run(&scratch, &["--out", "kept"]);
    ran.exits(125);
    assert!(ran.stderr.contains("is not empty"), "{ran:?}");

    let ran = run(&scratch, &["--format", "json", "--output", "races.json"]);
    ran.exits(66);
    assert_eq!(report(&scratch.path("races.json")), report(&scratch.path(".raddle/1/report.json")));
    assert!(ran.stderr.starts_with("raddle: 1 data race "), "{ran:?}");
    let ran = run(&scratch, &["--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.stderr).unwrap()["schema"], "raddle-report/1");
}

#[test]
fn a_report_is_shown_again() {
    let Some(scratch) = compiled(RACY, "return 0") else { return };
    let first = run(&scratch, &[]);
    let show = |arguments: &[&str]| {
        Ran::new(command(&scratch, &[&["report"], arguments].concat()).output().unwrap())
    };
    assert_eq!(show(&[]).exits(0).stdout, first.stderr);
    assert_eq!(show(&["1"]).stdout, first.stderr);
    assert_eq!(show(&[".raddle/1"]).stdout, first.stderr);
    let json: Value = serde_json::from_str(&show(&["--format", "json"]).stdout).unwrap();
    assert_eq!(json, report(&scratch.path(".raddle/1/report.json")));
    let second = run(&scratch, &["--quiet"]);
    assert_eq!(second.stderr.lines().count(), 1, "{second:?}");
    assert!(show(&["1"]).stdout.ends_with("\nnext: raddle confirm 1/R1\n"));
    assert_eq!(show(&["--quiet"]).stdout, second.stderr);
    let ran = show(&["7"]);
    assert_eq!(
        (ran.exits(125).stderr.as_str()),
        "raddle: there is no run 7; there are 2 from 1 to 2\n"
    );
    let file = scratch.put("broken.json", "{\n\"schema\": 3\n}");
    let ran = show(&[file.to_str().unwrap()]);
    ran.exits(125);
    assert!(ran.stderr.contains("broken.json: not a report of Raddle, or damaged"), "{ran:?}");
    assert!(ran.stderr.contains("line 2"), "{ran:?}");
}

#[test]
fn only_what_concerns_somebody_counts() {
    let Some(scratch) = compiled(RACY, "return 3") else { return };
    let ran = run(&scratch, &["--ignore", "./bank"]);
    ran.exits(3);
    assert!(ran.stderr.contains("; 1 left out by --only-in or --ignore;"), "{ran:?}");
    run(&scratch, &["--only-in", "/usr/lib", "--quiet"]).exits(3);
    run(&scratch, &["--only-in", ".", "--quiet"]).exits(66);
    run(&scratch, &["--only-in", "bank", "--quiet"]).exits(66);
}

#[test]
fn a_crash_loses_nothing() {
    let Some(scratch) = compiled(RACY, "abort()") else { return };
    run(&scratch, &[]).exits(66);
    let json = report(&scratch.path(".raddle/1/report.json"));
    assert_eq!((&json["outcome"]["signal"], &json["summary"]["findings"]), (&6.into(), &1.into()));
    let Some(scratch) = compiled(RACY, "kill(getpid(), SIGKILL); return 0") else { return };
    run(&scratch, &[]).exits(66);
    let json = report(&scratch.path(".raddle/1/report.json"));
    assert_eq!((&json["outcome"]["signal"], &json["summary"]["findings"]), (&9.into(), &1.into()));
}

#[test]
fn a_server_is_ended_and_reported() {
    let Some(scratch) = compiled(RACY, "for (;;) pause()") else { return };
    let ran = run(&scratch, &["--duration", "2s"]);
    ran.exits(66);
    let outcome = &report(&scratch.path(".raddle/1/report.json"))["outcome"];
    assert_eq!((&outcome["signal"], &outcome["stopped"]), (&15.into(), &true.into()));
    run(&scratch, &["--timeout", "2s", "--quiet"]).exits(66);
    let outcome = &report(&scratch.path(".raddle/2/report.json"))["outcome"];
    assert_eq!(outcome["timed_out"], true);

    let Some(scratch) = compiled(&clean(), "for (;;) pause()") else { return };
    let ran = run(&scratch, &["--duration", "2s"]);
    ran.exits(0);
    assert!(ran.stderr.contains("; the target was stopped by --duration; "), "{ran:?}");
    run(&scratch, &["--timeout", "2s", "--quiet"]).exits(124);
    // One that will not be asked.
    let deaf = "signal(SIGTERM, SIG_IGN); for (;;) pause()";
    let Some(scratch) = compiled(&clean(), deaf) else { return };
    run(&scratch, &["--duration", "1s"]).exits(0);
    let outcome = &report(&scratch.path(".raddle/1/report.json"))["outcome"];
    assert_eq!((&outcome["signal"], &outcome["stopped"]), (&9.into(), &true.into()));
}

#[test]
fn control_c_ends_with_the_report() {
    let Some(scratch) = compiled(RACY, "for (;;) pause()") else { return };
    let mut raddle = command(&scratch, &["run", "--timeout", "60s", "--", "./bank"])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(raddle.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
    // As a terminal does: to everybody in the group.
    let group = format!("-{}", raddle.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let ran = Ran::new(raddle.wait_with_output().unwrap());
    ran.exits(66);
    assert!(ran.stderr.contains("R1  data race on counter"), "{ran:?}");
    assert!(ran.stderr.contains("; signal 2 killed the target; report in "), "{ran:?}");
}

/// Nobody can catch SIGKILL: what was found is in the report already, and the program dies with us.
#[test]
fn a_killed_command_leaves_its_report_and_no_process() {
    let Some(scratch) = compiled(RACY, "for (;;) pause()") else { return };
    let mut raddle = command(&scratch, &["run", "--timeout", "120s", "--", "./bank"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    // Held by the target, too: at its end, nobody can write any more.
    let mut stdout = BufReader::new(raddle.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let report = scratch.path(".raddle/1/report.json");
    for _ in 0..600 {
        if report.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    raddle.kill().unwrap();
    raddle.wait().unwrap();
    assert_eq!(stdout.read_line(&mut line).unwrap(), 0, "the target is gone");
    let ran = Ran::new(command(&scratch, &["report"]).output().unwrap());
    assert!(ran.stdout.contains("R1  data race on counter"), "{ran:?}");
}

#[test]
fn sanitizers_are_known() {
    let Some(scratch) = compiled(RACY, "return 0") else { return };
    let source = RACY.replace("LAST", "return 0");
    let compile = |option: &str| scratch.compile("sanitized", &source, &[option]);
    compile("-fsanitize=address");
    let run = || Ran::new(command(&scratch, &["run", "--", "./sanitized"]).output().unwrap());
    let ran = run();
    ran.exits(66);
    assert!(ran.stderr.contains("built with AddressSanitizer"), "{ran:?}");
    assert!(ran.stderr.contains("R1  data race on counter"), "{ran:?}");
    compile("-fsanitize=thread");
    let ran = run();
    ran.exits(126);
    assert!(ran.stderr.contains("is built with ThreadSanitizer (-fsanitize=thread)"), "{ran:?}");
}

/// The loader maps a library as programs map memory; what lies there is variables all the same.
#[test]
fn variables_of_shared_libraries_are_named() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let library = "static int hits; int other[2000]; void hit(void) { hits++; }";
    scratch.compile("libhit.so", library, &["-shared", "-fPIC"]);
    let program = "#include <pthread.h>\nvoid hit(void);\n\
        static void *body(void *unused) { hit(); return unused; }\n\
        int main(void) { pthread_t t[2];\n\
        for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, body, 0);\n\
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0); return 0; }";
    let directory = scratch.path("");
    let directory = directory.to_str().unwrap();
    let (look, run_path) = (format!("-L{directory}"), format!("-Wl,-rpath,{directory},-z,now"));
    scratch.compile("bank", program, &[&look, &run_path, "-Wl,--no-as-needed,-lhit"]);
    run(&scratch, &["--out", "out"]);
    let findings = report(&scratch.path("out/report.json"))["findings"].clone();
    assert!(!findings.as_array().unwrap().is_empty());
    for finding in findings.as_array().unwrap() {
        assert_eq!(finding["location"]["kind"], "global", "{finding:#}");
        assert_eq!(finding["location"]["name"], "hits");
    }
}

#[test]
fn what_cannot_be_done_leaves_nothing() {
    let scratch = Scratch::new();
    let said = |arguments: &[&str], code| {
        let ran = Ran::new(command(&scratch, arguments).output().unwrap());
        ran.exits(code);
        assert!(names(&scratch.path(".")).is_empty(), "{arguments:?}");
        ran.stderr
    };
    said(&["run", "--", "./none"], 127);
    said(&["run", "--", "/etc/passwd"], 126);
    said(&["run", "--hooks", "none.toml", "--", "true"], 125);
    let states = said(&["run", "--states", "long", "--", "true"], 125);
    assert!(states.contains("--states is about --detector helgrind+"), "{states}");
    let detector = said(&["run", "--detector", "hybird", "--", "true"], 125);
    assert!(detector.contains("'hybrid'"), "{detector}");
    let none = said(&["report"], 125);
    assert_eq!(none, "raddle: there is no report in .raddle; `raddle run` makes one\n");
}

/// The owner's instance of a variable is known by the owner, also where alignment moves it.
#[test]
fn thread_local_variables_are_named_with_their_thread() {
    let source = r#"
        #include <pthread.h>
        static __thread long padding[3];
        static ALIGNED __thread int counter = 1;
        static __thread struct { int first, second; } pair;
        static int *shared, *member;
        static void *other(void *x) { *shared += 1; *member += 1; return x; }
        static void *owner(void *x) {
            pthread_t thread;
            shared = &counter; member = &pair.second;
            pthread_create(&thread, 0, other, 0);
            counter += 1; pair.second += 1;
            pthread_join(thread, 0);
            return x;
        }
        int main(int count, char **words) {
            pthread_t thread;
            padding[1] = count;
            if (count > 1) { owner(words); return 0; }
            pthread_create(&thread, 0, owner, 0);
            pthread_join(thread, 0);
        }
    "#;
    let second = [("-g", "pair.second"), ("-g0", "pair+0x4")];
    for (alignment, (debug, member), linking) in [
        ("-DALIGNED=", second[0], "-pie"),
        ("-DALIGNED=__attribute__((aligned(64)))", second[0], "-static"),
        ("-DALIGNED=__attribute__((aligned(128)))", second[1], "-pie"),
    ] {
        if !support::has_probe() {
            return;
        }
        let scratch = Scratch::new();
        scratch.compile("locals", source, &[alignment, debug, linking]);
        for (arguments, thread) in [(&["./locals"][..], 2), (&["./locals", "x"], 1)] {
            let arguments = [&["run", "--out", "out", "--"], arguments].concat();
            let ran = Ran::new(command(&scratch, &arguments).output().unwrap());
            ran.exits(66);
            let json = report(&scratch.path("out/report.json"));
            let of = |finding: &Value| {
                let location = &finding["location"];
                assert_eq!(location["kind"], "thread-local", "{ran:?}");
                assert_eq!(location["thread"], thread, "{ran:?}");
                location["name"].as_str().unwrap().to_owned()
            };
            let mut names: Vec<String> =
                json["findings"].as_array().unwrap().iter().map(of).collect();
            names.sort();
            assert_eq!(names, ["counter", member], "{alignment} {linking}: {ran:?}");
            let said = format!("data race on counter (thread-local of T{thread}) (");
            assert!(ran.stderr.contains(&said), "{ran:?}");
            std::fs::remove_dir_all(scratch.path("out")).unwrap();
        }
    }
}

/// Two threads write `shared`, each from the bottom of its own way.
const WAYS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#define KEPT __attribute__((noinline, noclone))
static volatile int shared, mine[2000];
static jmp_buf out;
static ucontext_t caller, other;
static char stack[65536], signal_stack[65536];

/* Touches what nobody else does, so that its stack is asked for. */
KEPT static void touch(int at) { mine[at] = at; }
KEPT static void write_shared(void) { shared = 1; touch(0); }

KEPT static void leap(int depth) {
    touch(100 + depth);
    if (depth == 0) longjmp(out, 1);
    leap(depth - 1);
    touch(0);
}
KEPT static void after_leap(void) { write_shared(); touch(0); }
KEPT static void leaping(void) {
    touch(1);
    if (setjmp(out) == 0) leap(3);
    after_leap();
    touch(0);
}

KEPT static void inside(void) { touch(200); swapcontext(&other, &caller); touch(201); }
static void coroutine(void) { inside(); touch(202); }
KEPT static void after_switch(void) { write_shared(); touch(0); }
KEPT static void switching(void) {
    getcontext(&other);
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = sizeof stack;
    other.uc_link = &caller;
    makecontext(&other, coroutine, 0);
    touch(2);
    swapcontext(&caller, &other);
    after_switch();
    swapcontext(&caller, &other);
    touch(0);
}

KEPT static void handle(int number) { touch(300 + number); }
KEPT static void after_signal(void) { write_shared(); touch(0); }
KEPT static void signalled(void) {
    stack_t alternate = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    touch(3);
    raise(SIGUSR1);
    after_signal();
    touch(0);
}

/* No directives, so no unwind table; and its frame pointer is none. */
void write_by_hand(void);
__asm__(".pushsection .text\n"
        ".type write_by_hand, @function\n"
        "write_by_hand:\n"
        "  push %rbx\n"
        "  push %rbp\n"
        "  mov $1000, %ebp\n"
        "  lea shared(%rip), %rbx\n"
        "  movl $1, (%rbx)\n"
        "  pop %rbp\n"
        "  pop %rbx\n"
        "  ret\n"
        ".size write_by_hand, . - write_by_hand\n"
        ".popsection\n");
KEPT static void by_hand(void) { touch(4); write_by_hand(); touch(0); }

/* Its caller's frame is found by nothing but the word in which it keeps what its stack pointer was. */
KEPT static void fill(volatile char *room, int size) { while (size > 0) room[--size] = 1; }
KEPT static void aligned(int size) {
    __attribute__((aligned(64))) char room[64];
    char more[size];
    fill(room, sizeof room);
    fill(more, size);
    write_shared();
    fill(room, sizeof room);
}
KEPT static void unaligned(void) {
    char room[24];
    fill(room, sizeof room);
    aligned(17);
    fill(room, sizeof room);
}

KEPT static void left(int depth);
KEPT static void right(int depth) {
    touch(400 + depth);
    if (depth == 0) write_shared(); else left(depth - 1);
    touch(0);
}
KEPT static void left(int depth) {
    touch(600 + depth);
    right(depth);
    touch(0);
}
KEPT static void recursing(void) { left(40); touch(0); }

static void *way(void *unused) { WAY(); touch(0); return unused; }
static void *plain(void *unused) { shared = 2; return unused; }
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, way, NULL);
    pthread_create(&threads[1], NULL, plain, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}
"#;

/// The functions on the stack of the write to `shared` on this way, outermost last, the runtime's left out.
fn way_to_shared(way: &str) -> Option<Vec<String>> {
    let scratch = compiled(&WAYS.replace("WAY", way), "")?;
    let ran = run(&scratch, &[]);
    ran.exits(66);
    let json = report(&scratch.path(".raddle/1/report.json"));
    let accesses = json["findings"][0]["accesses"].as_array().unwrap();
    let stack = |access: &Value| -> Vec<String> {
        let frames = access["stack"].as_array().unwrap();
        let functions =
            frames.iter().map(|f| f["function"].as_str().unwrap_or_default().to_owned());
        let functions: Vec<String> = functions.collect();
        let inside = functions.iter().position(|function| function == "way");
        functions[..inside.unwrap_or(0)].to_vec()
    };
    let mut stacks = accesses.iter().map(stack);
    let is_it = |stack: &Vec<String>| stack.first().is_some_and(|name| name.starts_with("write_"));
    Some(stacks.find(is_it).unwrap_or_default())
}

#[test]
fn frames_that_were_left_without_returning_are_not_shown() {
    for (way, expected) in [
        ("leaping", ["write_shared", "after_leap", "leaping"]),
        ("switching", ["write_shared", "after_switch", "switching"]),
        ("signalled", ["write_shared", "after_signal", "signalled"]),
    ] {
        let Some(stack) = way_to_shared(way) else { return };
        assert_eq!(stack, expected);
    }
}

#[test]
fn who_called_a_function_that_aligns_its_stack_is_found() {
    let Some(stack) = way_to_shared("unaligned") else { return };
    assert_eq!(stack, ["write_shared", "aligned", "unaligned"]);
}

#[test]
fn who_called_code_without_an_unwind_table_is_found() {
    let Some(stack) = way_to_shared("by_hand") else { return };
    assert_eq!(stack, ["write_by_hand", "by_hand"]);
}

#[test]
fn a_recursion_is_shown_by_its_begin_and_its_inside() {
    let Some(stack) = way_to_shared("recursing") else { return };
    let expected = [
        "write_shared",
        "right",
        "left",
        "right",
        "left",
        "right",
        "[recursion: calls left out]",
        "right",
        "left",
        "recursing",
    ];
    assert_eq!(stack, expected);
}

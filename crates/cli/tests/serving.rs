//! Executions by a server are what executions from the program's start are: the same schedule for the
//! same seed, the same end, the same output; and where there cannot be a server, that is said.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, Scratch, raddle};

/// Seeds that are compared.
const SEEDS: &str = "24";

/// By itself the program is to end well: only under a policy is it this day in 2025.
const CONTROLLED: &str =
    "static int controlled(void) { return time(0) / 86400 == 1750000000 / 86400; }\n";

/// Ends with a code that says in which order its threads came, where their memory lies, what chance
/// gave and what the clock showed.
const ORDER: &str = r#"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned hash = 5381;
static void note(uintptr_t what) { hash = hash * 33 + (unsigned)(what ^ what >> 32); }
static void *work(void *number) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        note((uintptr_t)number);
        note((uintptr_t)&number);
        pthread_mutex_unlock(&lock);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        void *block = malloc(64 + 100000 * i);
        pthread_mutex_lock(&lock);
        note(now.tv_nsec);
        note((uintptr_t)block);
        pthread_mutex_unlock(&lock);
        free(block);
    }
    return 0;
}
int main(void) {
    pthread_t threads[3];
    unsigned chance;
    if (!controlled()) return 0;
    getrandom(&chance, sizeof chance, 0);
    note(chance);
    for (intptr_t i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 1 + hash % 200;
}
"#;

const CXX: &str = r#"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
static std::atomic<unsigned> mixed{7};
int main() {
    if (!controlled()) return 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> order;
    int ready = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back([&, i] {
        for (int k = 0; k < 2; k++) {
            mixed.fetch_xor(mixed.load() * 31 + i);
            std::unique_lock held(mutex);
            order.push_back(std::to_string(i));
            ready++;
            changed.notify_all();
            changed.wait_for(held, std::chrono::milliseconds(5), [&] { return ready > 3; });
        }
        std::lock_guard held(mutex);
        try { if (i == 1) throw std::string("x"); } catch (std::string &s) { order.push_back(s); }
    });
    auto counted = std::async(std::launch::async, [&] { std::lock_guard held(mutex); return order.size(); });
    unsigned hash = counted.get();
    for (auto &thread : threads) thread.join();
    for (auto &who : order) hash = hash * 33 + who[0];
    return 1 + (hash * 33 + mixed) % 200;
}
"#;

const RUST: &str = r#"
use std::collections::HashMap;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};
fn main() {
    if SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86400 != 1750000000 / 86400 { return }
    let (sends, receives) = mpsc::channel::<u32>();
    let shared = Arc::new(Mutex::new(HashMap::new()));
    let threads: Vec<_> = (0..3u32).map(|i| {
        let (sends, shared) = (sends.clone(), shared.clone());
        std::thread::spawn(move || for k in 0..2 {
            shared.lock().unwrap().insert(i * 10 + k, k);
            sends.send(i).unwrap();
            std::thread::yield_now();
        })
    }).collect();
    drop(sends);
    let mut hash = 5381u32;
    for who in receives { hash = hash.wrapping_mul(33).wrapping_add(who); }
    for thread in threads { thread.join().unwrap(); }
    for key in shared.lock().unwrap().keys() { hash = hash.wrapping_mul(33).wrapping_add(*key); }
    // What is mapped, as a panic with a backtrace reads it.
    for byte in std::fs::read("/proc/self/maps").unwrap() { hash = hash.wrapping_mul(33).wrapping_add(byte.into()); }
    std::process::exit(1 + (hash % 200) as i32);
}
"#;

/// `raddle hunt` in a directory of its own, so that run 1 is its report's.
fn hunt(directory: &Path, arguments: &[&str], program: &[&str]) -> Ran {
    std::fs::create_dir_all(directory).unwrap();
    let mut command = Command::new(raddle());
    command.args(["hunt", "--budget", "10m"]).args(arguments).arg("--").args(program);
    Ran::new(command.current_dir(directory).stdin(Stdio::null()).output().unwrap())
}

/// The run of a hunt that has its failures.
fn run_of(directory: &Path) -> PathBuf {
    let runs = std::fs::read_dir(directory.join(".raddle")).unwrap();
    runs.map(|run| run.unwrap().path()).find(|run| run.join("H1.plan").exists()).unwrap()
}

/// The failures of a hunt: the whole row of the report, and the schedule that repeats it.
fn failures(directory: &Path) -> Vec<(Value, String)> {
    let run = run_of(directory);
    let report = std::fs::read_to_string(run.join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let rows = report["failures"].as_array().unwrap().iter();
    rows.map(|row| {
        let name = format!("{}.schedule", row["id"].as_str().unwrap());
        (row.clone(), std::fs::read_to_string(run.join(name)).unwrap())
    })
    .collect()
}

/// Explores with a server and without, and compares all that was found.
fn same_either_way(
    scratch: &Scratch,
    arguments: &[&str],
    program: &[&str],
) -> Vec<(Value, String)> {
    let (served, anew) = (scratch.path("served"), scratch.path("anew"));
    let common = [&["--jobs", "1"], arguments].concat();
    let ran = hunt(&served, &common, program);
    assert!(!ran.exits(66).stderr.contains("anew"), "{ran:?}");
    hunt(&anew, &[&["--anew"], common.as_slice()].concat(), program).exits(66);
    let (by_server, by_start) = (failures(&served), failures(&anew));
    assert_eq!(by_server, by_start);
    by_server
}

fn compile(scratch: &Scratch, language: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (compiler, standard): (&str, &[&str]) = match language {
        "rs" => ("rustc", &["--edition=2024", "-g", "-O"]),
        "cc" => ("g++", &["-std=c++20", "-g", "-O1", "-pthread"]),
        _ => ("gcc", &["-g", "-O1", "-pthread"]),
    };
    let text = if language == "rs" {
        source.to_owned()
    } else {
        // Behind the headers that it needs.
        let at = source.rfind("#include").unwrap();
        let at = at + source[at..].find('\n').unwrap() + 1;
        [&source[..at], CONTROLLED, &source[at..]].concat()
    };
    let (file, program) =
        (scratch.put(&format!("program.{language}"), text), scratch.path("program"));
    let mut command = Command::new(compiler);
    command.args(standard).args(flags).arg("-o").args([&program, &file]);
    let made = command.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    program
}

fn seeds_are_the_same(language: &str, source: &str, flags: &[&str]) {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let program = compile(&scratch, language, source, flags);
    let found = same_either_way(&scratch, &["--executions", SEEDS], &[program.to_str().unwrap()]);
    assert!(found.len() > 4, "too few different executions to compare: {found:?}");
    // What a server found is repeated from the program's start.
    let run = run_of(&scratch.path("served"));
    for (row, _) in found.iter().take(3) {
        let name = format!("{}/{}", run.display(), row["id"].as_str().unwrap());
        let replayed = Command::new(raddle()).args(["replay", &name]).output().unwrap();
        Ran::new(replayed).exits(0);
    }
}

#[test]
fn a_seed_is_the_same_execution_either_way() {
    seeds_are_the_same("c", ORDER, &[]);
}

#[test]
fn in_a_stripped_static_program_too() {
    seeds_are_the_same("c", ORDER, &["-static", "-s"]);
}

#[test]
fn in_cxx_too() {
    seeds_are_the_same("cc", CXX, &[]);
}

#[test]
fn in_rust_too() {
    seeds_are_the_same("rs", RUST, &[]);
}

/// A race whose trials are counted: how often it was met in which order, and what then happened.
#[test]
fn trials_of_a_race_are_the_same_either_way() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let racy = ORDER.replacen("pthread_mutex_lock(&lock);\n        note(now", "note(now", 1);
    let racy = racy.replacen(
        "note((uintptr_t)block);\n        pthread_mutex_unlock(&lock);",
        "note((uintptr_t)block);",
        1,
    );
    compile(&scratch, "c", &racy, &[]);
    let confirm = |more: &[&str]| {
        let mut command = Command::new(raddle());
        command.args(["confirm", "1", "--rates", "--trials", "12", "--jobs", "1"]).args(more);
        Ran::new(command.current_dir(scratch.path(".")).output().unwrap())
    };
    let mut run = Command::new(raddle());
    run.args(["run", "--seed", "1", "--quiet", "--", "./program"]).current_dir(scratch.path("."));
    Ran::new(run.output().unwrap()).exits(66);
    let (served, anew) = (confirm(&[]), confirm(&["--anew"]));
    assert_eq!(served.exits(66).stdout, anew.exits(66).stdout);
    assert!(served.stdout.contains("confirmed, ") && !served.stderr.contains("anew"), "{served:?}");
    // Twelve trials of each finding, and a replay of each order from the start.
    let replay =
        Command::new(raddle()).args(["replay", "R1"]).current_dir(scratch.path(".")).output();
    Ran::new(replay.unwrap()).exits(0);
}

/// Ends as its argument says.
const ENDS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void *end(void *how) {
    if (!strcmp(how, "crash")) *(volatile int *)16 = 1;
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "exit")) exit(7);
    if (!strcmp(how, "_exit")) _exit(8);
    if (!strcmp(how, "last")) return 0;
    if (!strcmp(how, "hang")) for (volatile long rounds = 0;; rounds++) {}
    if (!strcmp(how, "spin")) for (;;) {}
    if (!strcmp(how, "stop")) raise(SIGSTOP);
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "exec")) execl("/bin/sh", "sh", "-c", "exit 5", (char *)0);
    if (!strcmp(how, "fork")) {
        int status;
        if (fork() == 0) _exit(9);
        wait(&status);
        exit(WEXITSTATUS(status));
    }
    return 0;
}
static int assertion;
__attribute__((constructor)) static void before(void) {
    if (getenv("SPEAKS_BEFORE_MAIN")) fprintf(stderr, "Assertion of a constructor\n");
}
int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 2 || !controlled()) return 0;
    printf("never lost, never twice");
    pthread_create(&thread, 0, end, argv[1]);
    if (!strcmp(argv[1], "last")) pthread_exit(0);
    pthread_join(thread, 0);
    return 3 + assertion;
}
"#;

#[test]
fn every_end_is_told_as_it_was() {
    if !support::has_probe() {
        return;
    }
    for (how, effect, end) in [
        ("crash", "killed by signal 11", r#"{"signal":11}"#),
        ("abort", "abort", r#"{"signal":6}"#),
        ("exit", "exit code 7", r#"{"exit":7}"#),
        ("_exit", "exit code 8", r#"{"exit":8}"#),
        ("hang", "hang", r#""hang""#),
        ("spin", "no progress", r#""no-progress""#),
        ("stop", "hang", r#""hang""#),
        ("kill", "killed by signal 9", r#"{"signal":9}"#),
        ("term", "killed by signal 15", r#"{"signal":15}"#),
        ("exec", "exit code 5", r#"{"exit":5}"#),
    ] {
        let scratch = Scratch::new();
        let program = compile(&scratch, "c", ENDS, &[]);
        // Nothing but what never ends may take too long, on a busy machine either.
        let limit = if effect == "hang" { "1s" } else { "30s" };
        let arguments = ["--executions", "2", "--timeout", limit, "--policy", "random"];
        let found = same_either_way(&scratch, &arguments, &[program.to_str().unwrap(), how]);
        let row = &found[0].0;
        assert_eq!(row["effect"].as_str(), Some(effect), "{how}");
        // Two were explored, and races were looked for once; what takes too long there does not count.
        let count = if effect == "hang" { 2 } else { 3 };
        assert_eq!(row["count"], count, "{how}: {row}");
        assert_eq!(row["end"].to_string(), end, "{how}");
        assert_eq!(left_behind(&program), Vec::<String>::new(), "{how}");
    }
}

#[test]
fn what_is_written_before_main_is_every_executions() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let program = compile(&scratch, "c", ENDS, &[]);
    let mut command = Command::new(raddle());
    command.args(["hunt", "--executions", "4", "--policy", "random", "--"]);
    command.arg(program).arg("return").env("SPEAKS_BEFORE_MAIN", "1");
    let ran = command.current_dir(scratch.path(".")).stdin(Stdio::null()).output().unwrap();
    let ran = Ran::new(ran);
    // Four were explored, and races were looked for once.
    assert!(ran.exits(66).stdout.contains("failed assertion in 5 of 5"), "{ran:?}");
}

#[test]
fn where_copies_would_not_be_the_program_it_is_started_anew_and_said_so() {
    if !support::has_probe() {
        return;
    }
    let before_main = |statement: &str| {
        let headers = "#include <fcntl.h>\n#include <sys/time.h>\n#include <sys/mman.h>\n";
        let thread = "static void *nothing(void *unused) { return unused; }\n";
        let constructor =
            format!("__attribute__((constructor)) static void early(void) {{ {statement} }}\n");
        let at = ENDS.find("static void *end").unwrap();
        [headers, &ENDS[..at], thread, &constructor, &ENDS[at..]].concat()
    };
    for (source, how, why) in [
        (
            before_main("pthread_t t; pthread_create(&t, 0, nothing, 0);"),
            "return",
            "threads or processes",
        ),
        (before_main("open(\"/dev/zero\", O_RDONLY);"), "return", "it has files open before main"),
        (
            before_main("close(open(\"a\", O_WRONLY | O_CREAT, 0600));"),
            "return",
            "a file to write before main",
        ),
        (before_main("alarm(1000);"), "return", "a timer before main"),
        (before_main("if (controlled()) exit(3);"), "return", "it ends before main"),
        (ENDS.to_owned(), "fork", "it makes processes of its own"),
    ] {
        let scratch = Scratch::new();
        let program = compile(&scratch, "c", &source, &[]);
        let arguments = ["--executions", "3", "--policy", "random"];
        let ran = hunt(&scratch.path("."), &arguments, &[program.to_str().unwrap(), how]);
        assert_eq!(ran.exits(66).stderr.matches("starts the program anew").count(), 1, "{ran:?}");
        assert!(ran.stderr.contains(why), "{why}: {ran:?}");
        // Three were explored, and races were looked for once.
        let line = match how {
            "fork" => "exit code 9 in 4 of 4 executions",
            _ => "exit code 3 in 4 of 4 executions",
        };
        assert!(ran.stdout.contains(line), "{line}: {ran:?}");
    }
}

/// A hunt that is under way on a program that hangs.
fn hanging_hunt(scratch: &Scratch) -> (Child, PathBuf) {
    let program = compile(scratch, "c", ENDS, &[]);
    let mut command = Command::new(raddle());
    command.args([
        "hunt",
        "--budget",
        "10m",
        "--timeout",
        "5s",
        "--policy",
        "random",
        "--jobs",
        "1",
    ]);
    command.args(["--executions", "2", "--"]).arg(&program).arg("hang");
    command.current_dir(scratch.path(".")).stdin(Stdio::null());
    let hunt = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The detection comes first, in a process of its own: the server's copy is a grandchild, as that
    // is, but of a process that bears the program's name.
    let until = Instant::now() + Duration::from_secs(60);
    while server_of(hunt.id()).is_none() {
        assert!(Instant::now() < until, "there is no server");
        std::thread::sleep(Duration::from_millis(20));
    }
    (hunt, program)
}

/// The server among the children of a command: the one that has a child itself and is no command.
fn server_of(command: u32) -> Option<u32> {
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    children(command)
        .into_iter()
        .find(|pid| name(*pid).trim() == "program" && !children(*pid).is_empty())
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(|n| n.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// Processes that still run this program, by their command lines; those who end are given a moment.
fn left_behind(program: &Path) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines =
            all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
        let left: Vec<String> =
            lines.filter(|line| line.starts_with(program.to_str().unwrap())).collect();
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn nothing_outlives_the_command() {
    if !support::has_probe() {
        return;
    }
    for name in ["-KILL", "-TERM", "-INT"] {
        let scratch = Scratch::new();
        let (hunt, program) = hanging_hunt(&scratch);
        signal(hunt.id(), name);
        hunt.wait_with_output().unwrap();
        assert_eq!(left_behind(&program), Vec::<String>::new(), "{name}");
    }
}

/// Nor does what is started before there is a server: the program by itself, and the one in which races are looked for.
#[test]
fn nothing_outlives_a_command_that_is_killed_early() {
    if !support::has_probe() {
        return;
    }
    let sleeper = "#include <stdlib.h>\n#include <unistd.h>\n
        int main(void) { if (getpid() < 4194304 == !getenv(\"DETECTED\")) sleep(60); return 0; }";
    for detected in [false, true] {
        let scratch = Scratch::new();
        let program = compile(&scratch, "c", sleeper, &[]);
        let mut command = Command::new(raddle());
        command.args(["hunt", "--time", "real", "--timeout", "50s", "--"]).arg(&program);
        command.current_dir(scratch.path(".")).stdout(Stdio::null()).stderr(Stdio::null());
        if detected {
            command.env("DETECTED", "1");
        }
        let mut hunt = command.spawn().unwrap();
        // Under a policy it is Raddle that sleeps, by polling nothing.
        let sleeps = || {
            let pattern = program.to_str().unwrap();
            let found = Command::new("pgrep").args(["-xf", pattern]).output().unwrap();
            let pids = String::from_utf8_lossy(&found.stdout).into_owned();
            let call = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/wchan"));
            pids.lines().any(|pid| {
                call(pid).is_ok_and(|wait| wait.contains("sleep") || wait.contains("poll"))
            })
        };
        let until = Instant::now() + Duration::from_secs(40);
        while !sleeps() {
            assert!(Instant::now() < until, "detected: {detected}");
            std::thread::sleep(Duration::from_millis(20));
        }
        hunt.kill().unwrap();
        hunt.wait().unwrap();
        assert_eq!(left_behind(&program), Vec::<String>::new(), "detected: {detected}");
    }
}

#[test]
fn a_server_that_dies_is_done_without() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let (hunt, program) = hanging_hunt(&scratch);
    signal(server_of(hunt.id()).unwrap(), "-KILL");
    let ran = Ran::new(hunt.wait_with_output().unwrap());
    assert!(
        ran.exits(66).stderr.contains("starts the program anew: its server has ended"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("hang in 2 of 3 executions"), "{ran:?}");
    assert_eq!(left_behind(&program), Vec::<String>::new());
}

//! `raddle events` on small programs, through both formats and every option.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use support::Scratch;

/// Two threads, a lock, a global, an array of structs, a heap block.
const BANK: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int balance = 100;
struct account { long id; long amount; } accounts[4];
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void withdraw(int n) {
    pthread_mutex_lock(&lock);
    balance -= n; // line 12
    pthread_mutex_unlock(&lock);
}
static void *teller(void *heap) {
    long *amounts = heap;
    withdraw(10);
    amounts[1] = 7; // line 18
    accounts[2].amount = 5; // line 19
    return NULL;
}
int main(void) {
    long *heap = malloc(64); // line 23
    pthread_t thread;
    pthread_create(&thread, NULL, teller, heap);
    pthread_join(thread, NULL);
    free(heap);
    printf("balance %d\n", balance);
    return 3;
}
"#;

fn bank() -> Option<Scratch> {
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        scratch.compile("bank", BANK, &[]);
        scratch
    })
}

/// `event object line` of every event at a line of the program.
fn own(events: &[Value]) -> Vec<String> {
    let line = |event: &Value| {
        let file = event["place"]["file"].as_str()?;
        let line = event["place"]["line"].as_u64().filter(|_| file.ends_with("bank.c"))?;
        let what = event["event"].as_str()?;
        let object = event["object"]["name"].as_str().or(event["object"]["kind"].as_str());
        Some(format!("T{} {what} {} {line}", event["thread"], object.unwrap_or("-")))
    };
    events.iter().filter_map(line).collect()
}

#[test]
fn memory_and_locks_are_named() {
    let Some(scratch) = bank() else { return };
    let (events, ran) = scratch.json(&[], &[&"./bank"]);
    ran.exits(3);
    assert_eq!(ran.stdout, "balance 90\n");
    let seen = own(&events);
    for expected in [
        "T1 allocate - 23",
        "T2 lock-acquired lock 11",
        "T2 read balance 12",
        "T2 write balance 12",
        "T2 lock-released lock 13",
        "T2 write block 18",
        "T2 write accounts[2].amount 19",
        "T1 free block 27",
        "T1 read balance 28",
    ] {
        assert!(seen.iter().any(|s| s == expected), "{expected} in {seen:#?}");
    }
    let block = events.iter().find(|e| e["place"]["line"] == 18 && e["event"] == "write");
    let block = &block.unwrap()["object"];
    assert_eq!((&block["size"], &block["offset"]), (&64.into(), &"0x8".into()));
    assert_eq!(block["allocated_at"]["line"], 23);
    assert!(ran.stderr.starts_with("raddle: 2 threads, "), "{ran:?}");
}

#[test]
fn events_come_in_their_total_order() {
    let Some(scratch) = bank() else { return };
    let (events, _) = scratch.json(&[], &[&"./bank"]);
    let orders: Vec<u64> = events.iter().map(|e| e["order"].as_u64().unwrap()).collect();
    assert!(orders.is_sorted(), "{orders:?}");
    let at = |name: &str, thread: u64| {
        let found = events.iter().position(|e| e["event"] == name && e["thread"] == thread);
        found.unwrap_or_else(|| panic!("no {name} by T{thread}"))
    };
    assert!(at("thread-create", 1) < at("thread-start", 2));
    assert!(at("thread-exit", 2) < at("thread-joined", 1));
}

#[test]
fn families_threads_and_places_select() {
    let Some(scratch) = bank() else { return };
    let (events, _) = scratch.json(&["--only", "sync,thread"], &[&"./bank"]);
    let families: std::collections::BTreeSet<&str> =
        events.iter().map(|e| e["family"].as_str().unwrap()).collect();
    assert_eq!(families.into_iter().collect::<Vec<_>>(), ["sync", "thread"]);

    let (events, _) = scratch.json(&["--thread", "T2"], &[&"./bank"]);
    assert!(!events.is_empty() && events.iter().all(|e| e["thread"] == 2));

    let (events, _) = scratch.json(&["--place", "withdraw", "--only", "memory"], &[&"./bank"]);
    assert!(events.iter().all(|e| e["place"]["function"] == "withdraw"));
    let balance: Vec<String> =
        own(&events).into_iter().filter(|event| event.contains("balance")).collect();
    assert_eq!(balance, ["T2 read balance 12", "T2 write balance 12"]);

    let (events, _) = scratch.json(&["--place", "bank.c:19"], &[&"./bank"]);
    assert_eq!(own(&events), ["T2 write accounts[2].amount 19"]);

    let ran = scratch.events(&["--thread", "T7", "--only", "thread"], &[&"./bank"]);
    assert!(ran.stderr.contains("there was no thread T7; there were T1, T2"), "{ran:?}");
}

#[test]
fn a_place_that_is_not_there_is_answered_with_one_that_is() {
    let Some(scratch) = bank() else { return };
    let said = |place: &str| {
        let ran = scratch.events(&["--place", place, "--output", "events"], &[&"./bank"]);
        ran.exits(125);
        assert!(ran.stdout.is_empty() && !scratch.path("events").exists(), "{ran:?}");
        ran.stderr
    };
    assert!(said("witdraw").contains("did you mean withdraw?"));
    assert!(said("bank.c:8").contains("the nearest is bank.c:10"));
    assert!(said("libnone.so!f").contains("there is no module libnone.so"));
}

#[test]
fn text_is_for_reading() {
    let Some(scratch) = bank() else { return };
    let ran = scratch.events(&["--place", "withdraw"], &[&"./bank"]);
    ran.exits(3);
    assert!(!ran.stderr.contains('\x1b'), "{ran:?}");
    let write = ran.stderr.lines().find(|l| l.contains(" write 4 ")).unwrap();
    let words: Vec<&str> = write.split_whitespace().collect();
    assert_eq!(words, ["T2", "write", "4", "balance", "bank.c:12", "in", "withdraw"]);
    let events = ran.stderr.lines().count() - 1;
    let summary = format!("raddle: 2 threads, {events} events\n");
    assert!(ran.stderr.ends_with(&summary), "{ran:?}");
    let quiet = scratch.events(&["--place", "withdraw", "--quiet"], &[&"./bank"]);
    assert!(!quiet.stderr.contains("raddle:"), "{quiet:?}");
}

#[test]
fn stacks_lead_back_to_the_start() {
    let Some(scratch) = bank() else { return };
    let (events, _) = scratch.json(&["--stacks", "--place", "bank.c:12"], &[&"./bank"]);
    let stack = events[0]["stack"].as_array().unwrap();
    let functions: Vec<&str> = stack.iter().filter_map(|f| f["function"].as_str()).collect();
    assert_eq!(functions[..2], ["withdraw", "teller"], "{functions:?}");
    assert_eq!(stack[1]["line"], 17);
}

#[test]
fn counts_agree_with_the_stream() {
    let Some(scratch) = bank() else { return };
    let place = ["--place", "withdraw"];
    let (counted, ran) = scratch.json(&[&place[..], &["--count"]].concat(), &[&"./bank"]);
    ran.exits(3);
    let (streamed, _) = scratch.json(&place, &[&"./bank"]);
    assert_eq!(counted.len(), 1);
    let thread = &counted[0]["threads"][0];
    assert_eq!(thread["thread"], 2);
    let total: u64 = thread["events"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(total, streamed.len() as u64);
    assert_eq!(thread["events"]["lock-acquired"], 1);
    let places = counted[0]["places"].as_array().unwrap();
    let line = places.iter().find(|place| place["place"]["line"] == 12).unwrap();
    assert_eq!((&line["events"]["read"], &line["events"]["write"]), (&1.into(), &1.into()));

    let text = scratch.events(&["--count"], &[&"./bank"]);
    text.exits(3);
    assert!(text.stderr.contains("hottest places"), "{text:?}");
    assert!(text.stderr.contains("  T2\n") && text.stderr.contains("  all threads\n"), "{text:?}");
}

#[test]
fn thread_names_are_shown() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = r#"
        #include <sys/prctl.h>
        int shared;
        int main(void) { prctl(PR_SET_NAME, "cashier"); shared = 1; return 0; }
    "#;
    scratch.compile("named", source, &[]);
    let (events, _) = scratch.json(&["--thread", "cashier"], &[&"./named"]);
    let write = events.iter().find(|e| e["object"]["name"] == "shared").unwrap();
    assert_eq!(write["thread_name"], "cashier");
}

#[test]
fn a_hook_file_of_ones_own_counts_and_a_wrong_one_is_explained() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = r#"
        static int mine;
        __attribute__((noinline)) void my_lock(int *l) { *(volatile int *)l = 1; }
        __attribute__((noinline)) void my_unlock(int *l) { *(volatile int *)l = 0; }
        int main(void) { my_lock(&mine); my_unlock(&mine); return 0; }
    "#;
    scratch.compile("own", source, &[]);
    let hooks = r#"
[library]
name = "mine"
[[hook]]
functions = ["my_lock"]
role = "lock.acquire"
object = "arg1"
[[hook]]
functions = ["my_unlock"]
role = "lock.release"
object = "arg1"
"#;
    scratch.put("mine.toml", hooks);
    let (events, ran) = scratch.json(&["--hooks", "mine.toml", "--only", "sync"], &[&"./own"]);
    ran.exits(0);
    let mine: Vec<&str> = events
        .iter()
        .filter(|e| e["object"]["name"] == "mine")
        .filter_map(|e| e["event"].as_str())
        .collect();
    assert_eq!(mine, ["lock-requested", "lock-acquired", "lock-released"]);

    scratch.put("wrong.toml", hooks.replace("lock.acquire", "lock.aquire"));
    let ran = scratch.events(&["--hooks", "wrong.toml"], &[&"./own"]);
    ran.exits(125);
    assert!(ran.stderr.contains("wrong.toml:6:") && ran.stderr.contains("lock.acquire"), "{ran:?}");
}

#[test]
fn what_was_seen_before_a_kill_is_kept() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = r#"
        #include <signal.h>
        #include <unistd.h>
        int last;
        int main(void) { last = 1; kill(getpid(), SIGKILL); return 0; }
    "#;
    scratch.compile("killed", source, &[]);
    let (events, ran) = scratch.json(&[], &[&"./killed"]);
    ran.exits(128 + 9);
    assert!(events.iter().any(|e| e["event"] == "write" && e["object"]["name"] == "last"));

    let crash = "int last; int main(void) { last = 1; return *(volatile int *)0; }";
    scratch.compile("crash", crash, &[]);
    let (events, ran) = scratch.json(&[], &[&"./crash"]);
    ran.exits(128 + 11);
    assert!(events.iter().any(|e| e["event"] == "write" && e["object"]["name"] == "last"));

    let (events, ran) = scratch
        .json(&["--timeout", "2s", "--only", "output"], &[&"sh", &"-c", &"echo x; sleep 60"]);
    ran.exits(124);
    assert!(events.iter().any(|e| e["event"] == "output" && e["size"] == 2));
}

#[test]
fn a_reader_that_leaves_does_not_stop_the_target() {
    let Some(scratch) = bank() else { return };
    let raddle = support::raddle();
    let line =
        format!("{{ {} events -- ./bank 2>&1 1>&3 | head -n 1 >&2; }} 3>&1", raddle.display());
    let here = scratch.path("");
    let command = std::process::Command::new("sh").args(["-c", &line]).current_dir(here).output();
    let ran = support::Ran::new(command.unwrap());
    assert_eq!(ran.stdout, "balance 90\n", "{ran:?}");

    let ran = scratch.events(&["--output", "/dev/full"], &[&"./bank"]);
    ran.exits(125);
    assert_eq!(ran.stdout, "balance 90\n");
    assert!(ran.stderr.contains("writing /dev/full: No space left"), "{ran:?}");
}

/// The target dies with the command; what it has started goes on, and waits for no reader.
#[test]
fn a_killed_command_does_not_wedge_what_is_left() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = r#"
        #include <stdio.h>
        #include <unistd.h>
        volatile long shared;
        int main(void) {
            if (fork() > 0)
                for (;;) pause();
            puts("ready");
            fflush(stdout);
            for (long i = 0; i < 2000000; i++) shared += i; // far more than the log may hold
            puts("done");
            return 0;
        }
    "#;
    scratch.compile("long", source, &[]);
    let mut command = scratch.command(&["--follow", "--output", "/dev/null"], &[&"./long"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // They hold the other end until both have ended.
    stdout.read_to_string(&mut line).unwrap();
    assert_eq!(line, "ready\ndone\n");
}

#[test]
fn children_are_followed_when_asked() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let script = "/bin/echo one; (sleep 0.2; /bin/echo late) & exec /bin/echo two";
    let arguments = ["--follow", "--only", "output,process"];
    let (events, ran) = scratch.json(&arguments, &[&"bash", &"-c", &script]);
    ran.exits(0);
    let outputs = |size: u64| events.iter().filter(|e| e["size"] == size).count();
    assert_eq!((outputs(4), outputs(5)), (2, 1), "{events:#?}");
    assert!(ran.stdout.ends_with("late\n"), "the command waits for everybody: {ran:?}");

    let (events, ran) = scratch.json(&arguments[1..], &[&"bash", &"-c", &script]);
    ran.exits(0);
    let processes: std::collections::BTreeSet<String> =
        events.iter().map(|e| e["process"].to_string()).collect();
    assert_eq!(processes.len(), 1);
}

#[test]
fn a_kept_directory_holds_the_log_whole() {
    let Some(scratch) = bank() else { return };
    scratch.events(&["--out", "run 1", "--output", "events"], &[&"./bank"]).exits(3);
    let names: Vec<String> = std::fs::read_dir(scratch.path("run 1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.contains(&"options.json".to_owned()), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with(".0.log")), "{names:?}");
}

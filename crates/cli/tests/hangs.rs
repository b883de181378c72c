//! A hang of ours is ours, and a target that waits is left alone, however long and for whatever.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Ran, Scratch, has_probe, raddle};

/// Runs with a patience of as many seconds instead of a minute.
fn impatient(scratch: &Scratch, seconds: u64, arguments: &[&str]) -> Command {
    let mut command = Command::new(raddle());
    command.args(arguments).current_dir(scratch.path(""));
    command.env("RADDLE_HANG_PATIENCE", seconds.to_string());
    command
}

/// Two threads race; the third is the one at whose start the probe hangs in a rehearsal.
const RACE_FIRST: &str = r#"
#include <pthread.h>
#include <stdio.h>
int counter;
static void *work(void *argument) { counter++; return argument; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    counter++;
    pthread_join(thread, 0);
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    puts("end");
}
"#;

#[test]
fn a_hang_of_the_probe_is_our_failure_and_loses_nothing() {
    if !has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("race", RACE_FIRST, &[]);
    for policy in [&[][..], &["--policy", "random"]] {
        let out = format!("out{}", policy.len());
        let arguments = [&["run", "--out", &out], policy, &["--", "./race"]].concat();
        let started = Instant::now();
        let mut command = impatient(&scratch, 3, &arguments);
        let ran = Ran::new(command.env("RADDLE_REHEARSE_HANG", "1").output().unwrap());
        ran.exits(125);
        let took = started.elapsed();
        assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(30), "{took:?}");
        assert_eq!(ran.stdout, "", "{ran:?}");
        let said = ran.stderr.lines().last().unwrap();
        for part in [
            "Raddle failed inside the target, process ",
            "hung in code of ours for 3 seconds",
            "waits in syscall (libc.so.6+",
            "hang (libraddle_probe.so+",
        ] {
            assert!(said.contains(part), "{part}: {ran:?}");
        }
        let text = std::fs::read_to_string(scratch.path(&out).join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
    }
}

/// One thread for each thing that a target may wait for; the last one ends it after some seconds.
const WAITS: &str = r#"
#define _GNU_SOURCE
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static sem_t semaphore;
static int ends[2];
static void *deadlock_ab(void *x) {
    pthread_mutex_lock(&a); pthread_barrier_wait(&both); pthread_mutex_lock(&b); return x;
}
static void *deadlock_ba(void *x) {
    pthread_mutex_lock(&b); pthread_barrier_wait(&both); pthread_mutex_lock(&a); return x;
}
static void *waits(void *x) { pthread_mutex_lock(&c); pthread_cond_wait(&condition, &c); return x; }
static void *takes(void *x) { sem_wait(&semaphore); return x; }
static void *reads(void *x) { char byte; read(ends[0], &byte, 1); return x; }
static void *polls(void *x) { poll(0, 0, -1); return x; }
static void *awaits(void *x) { struct epoll_event e; epoll_wait(epoll_create(1), &e, 1, -1); return x; }
static void *accepts(void *x) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    listen(s, 1); accept(s, 0, 0); return x;
}
static void *signals(void *x) {
    sigset_t set; int signal;
    sigemptyset(&set); sigaddset(&set, SIGUSR1); sigwait(&set, &signal); return x;
}
static void *pauses(void *x) { pause(); return x; }
static void *children(void *x) { if (fork() == 0) { sleep(SECONDS + 1); _exit(0); } wait(0); return x; }
static void *ends_it(void *x) {
    struct timespec time = {SECONDS, 0}; nanosleep(&time, 0); _exit(7); return x;
}
int main(void) {
    pthread_barrier_init(&both, 0, 2); sem_init(&semaphore, 0, 0);
    if (pipe(ends)) return 1;
    void *(*all[])(void *) = {deadlock_ab, deadlock_ba, waits, takes, reads, polls, awaits, accepts,
                              signals, pauses, children, ends_it};
    pthread_t thread;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) pthread_create(&thread, 0, all[i], 0);
    pthread_exit(0);
}
"#;

#[test]
fn a_target_that_waits_is_left_alone() {
    if !has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("waits", WAITS, &["-DSECONDS=3"]);
    for how in [
        &["run", "--error-exitcode", "7"][..],
        &["run", "--error-exitcode", "7", "--detector", "helgrind+"],
        &["run", "--error-exitcode", "7", "--follow"],
        &["events", "--only", "sync", "--output", "events"],
    ] {
        let arguments = [how, &["--", "./waits"]].concat();
        let ran = Ran::new(impatient(&scratch, 1, &arguments).output().unwrap());
        ran.exits(7);
    }
}

#[test]
fn so_is_one_that_was_stopped() {
    if !has_probe() {
        return;
    }
    let scratch = Scratch::new();
    // It stops with a lock of ours held, for all we know, while others want it.
    let source = r#"
        #include <pthread.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        static void *work(void *x) {
            for (;;) { free(malloc(100)); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
            return x;
        }
        int main(void) {
            pthread_t thread;
            for (int i = 0; i < 4; i++) pthread_create(&thread, 0, work, 0);
            if (fork() == 0) {
                for (int i = 0; i < 3; i++) {
                    kill(getppid(), SIGSTOP); usleep(1500000); kill(getppid(), SIGCONT);
                    usleep(100000);
                }
                kill(getppid(), SIGTERM);
                _exit(0);
            }
            pause();
        }
    "#;
    scratch.compile("stopped", source, &[]);
    for detector in ["hybrid", "helgrind+"] {
        let arguments = ["run", "--detector", detector, "--", "./stopped"];
        let ran = Ran::new(impatient(&scratch, 1, &arguments).output().unwrap());
        ran.exits(128 + 15);
    }
}

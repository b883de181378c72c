//! Verdicts of `raddle run` on small programs, each with a twin: a way of synchronising that is seen,
//! and the same program where it comes too late.
//!
//! Where a test needs one thread to be done before another begins, it uses a notification that the
//! detector is asked not to see, by annotations.

#![allow(clippy::unwrap_used)] // A test that cannot go on panics.

mod support;

use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

/// What every program begins with: threads, annotations, and the invisible notification.
const BEGINNING: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#define QUIET __attribute__((noinline, noipa)) void
QUIET AnnotateHappensBefore(const char *f, int l, const volatile void *o) { __asm__(""); }
QUIET AnnotateHappensAfter(const char *f, int l, const volatile void *o) { __asm__(" "); }
QUIET AnnotateBenignRaceSized(const char *f, int l, const volatile void *o, long n, const char *w) { __asm__("  "); }
QUIET AnnotateRWLockAcquired(const char *f, int l, const volatile void *o, long w) { __asm__("   "); }
QUIET AnnotateRWLockReleased(const char *f, int l, const volatile void *o, long w) { __asm__("    "); }
QUIET AnnotateIgnoreReadsBegin(const char *f, int l) { __asm__("     "); }
QUIET AnnotateIgnoreReadsEnd(const char *f, int l) { __asm__("      "); }
QUIET AnnotateIgnoreWritesBegin(const char *f, int l) { __asm__("       "); }
QUIET AnnotateIgnoreWritesEnd(const char *f, int l) { __asm__("        "); }
volatile int data, flag, unseen;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t cv = PTHREAD_COND_INITIALIZER;
QUIET notify(void) {
    AnnotateIgnoreWritesBegin("", 0);
    unseen = 1;
    AnnotateIgnoreWritesEnd("", 0);
}
QUIET await(void) {
    AnnotateIgnoreReadsBegin("", 0);
    for (long rounds = 0; !unseen && rounds < 100000; rounds++) usleep(100);
    AnnotateIgnoreReadsEnd("", 0);
}
"#;

/// And ends with: two threads, `first` and `second`.
const END: &str = r#"
int main(void) {
    pthread_t a, b;
    setup();
    pthread_create(&b, 0, second, 0);
    pthread_create(&a, 0, first, (void *)b);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"#;

/// Compiles `BEGINNING`, the program and `END`.
fn compiled(program: &str, flags: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    let all = [&["-Wl,-z,now", "-w"], flags].concat();
    scratch.compile("program", &format!("{BEGINNING}{program}{END}"), &all);
    scratch
}

fn run(scratch: &Scratch, options: &[&str]) -> Ran {
    let mut command = Command::new(raddle());
    command.args(["run", "--timeout", "60s"]).args(options).args(["--", "./program"]);
    Ran::new(command.current_dir(scratch.path(".")).stdin(Stdio::null()).output().unwrap())
}

/// Asserts that nothing is found.
#[track_caller]
fn clean(program: &str) {
    if support::has_probe() {
        for flags in [["-O0"], ["-O2"]] {
            run(&compiled(program, &flags), &[]).exits(0);
        }
    }
}

/// Asserts that a race on `data` is found, observed or predicted.
#[track_caller]
fn races(certainty: &str, program: &str) {
    if support::has_probe() {
        for flags in [["-O0"], ["-O2"]] {
            let ran = run(&compiled(program, &flags), &[]);
            ran.exits(66);
            let is_it = |line: &str| line.contains("data race on data") && line.contains(certainty);
            assert!(ran.stderr.lines().any(is_it), "{}", ran.stderr);
        }
    }
}

/// A program in which `hand` hands over what `take` takes, and its twin, which writes too late.
#[track_caller]
fn hands_over(setup: &str, hand: &str, take: &str) {
    let program = |first: &str| {
        format!(
            "static void setup(void) {{ {} }}
             static void *first(void *other) {{ {first} return 0; }}
             static void *second(void *unused) {{ {take} data++; return 0; }}",
            setup.split("//globals//").last().unwrap()
        )
    };
    let globals = match setup.split_once("//globals//") {
        Some((globals, _)) => globals,
        None => "",
    };
    clean(&format!("{globals}\n{}", program(&format!("data = 1; {hand}"))));
    races("observed", &format!("{globals}\n{}", program(&format!("{hand} data = 1;"))));
}

/// The kernel then places mappings where there is no room for shadow memory.
#[test]
fn with_an_unlimited_stack() {
    if !support::has_probe() {
        return;
    }
    let program = "static void setup(void) {}
        static void *first(void *other) { data = 1; return 0; }
        static void *second(void *unused) { data++; return 0; }";
    let scratch = compiled(program, &["-O1"]);
    let line = "ulimit -s unlimited && exec \"$0\" run --timeout 60s -- ./program";
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).arg(raddle()).current_dir(scratch.path("."));
    let ran = Ran::new(shell.stdin(Stdio::null()).output().unwrap());
    assert!(ran.exits(66).stderr.contains("data race on data"), "{ran:?}");
}

// ---- through the kernel ----

#[test]
fn a_pipe() {
    hands_over(
        "int p[2];//globals//pipe(p);",
        "write(p[1], \"x\", 1);",
        "char c; read(p[0], &c, 1);",
    );
}

#[test]
fn the_end_of_a_pipe() {
    hands_over("int p[2];//globals//pipe(p);", "close(p[1]);", "char c; read(p[0], &c, 1);");
}

#[test]
fn a_copy_of_a_descriptor() {
    hands_over(
        "int p[2], q;//globals//pipe(p); q = dup(p[1]);",
        "write(q, \"x\", 1);",
        "char c; read(p[0], &c, 1);",
    );
}

#[test]
fn a_socket_pair() {
    hands_over(
        "int s[2];//globals//socketpair(AF_UNIX, SOCK_STREAM, 0, s);",
        "send(s[1], \"x\", 1, 0);",
        "char c; recv(s[0], &c, 1, 0);",
    );
}

#[test]
fn a_connection_within_the_process() {
    hands_over(
        "int listening; struct sockaddr_in at;//globals//
         socklen_t n = sizeof at;
         listening = socket(AF_INET, SOCK_STREAM, 0);
         at.sin_family = AF_INET;
         at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
         bind(listening, (struct sockaddr *)&at, n);
         listen(listening, 1);
         getsockname(listening, (struct sockaddr *)&at, &n);",
        "int s = socket(AF_INET, SOCK_STREAM, 0);
         connect(s, (struct sockaddr *)&at, sizeof at);
         send(s, \"x\", 1, 0);",
        "char c; recv(accept(listening, 0, 0), &c, 1, 0);",
    );
}

#[test]
fn an_event_counter() {
    hands_over(
        "int e;//globals//e = eventfd(0, 0);",
        "eventfd_write(e, 1);",
        "eventfd_t n; eventfd_read(e, &n);",
    );
}

/// Being told is enough.
#[test]
fn epoll() {
    hands_over(
        "int p[2], e;//globals//pipe(p); e = epoll_create(1);
         struct epoll_event what = {.events = EPOLLIN, .data.u64 = 77};
         epoll_ctl(e, EPOLL_CTL_ADD, p[0], &what);",
        "write(p[1], \"x\", 1);",
        "struct epoll_event what; epoll_wait(e, &what, 1, -1);",
    );
}

/// Two pipes are two: writing to one orders nothing for who reads the other.
#[test]
fn another_pipe_orders_nothing() {
    races(
        "observed",
        "int p[2], q[2];
         static void setup(void) { pipe(p); pipe(q); write(q[1], \"x\", 1); }
         static void *first(void *other) { data = 1; write(p[1], \"x\", 1); notify(); return 0; }
         static void *second(void *unused) { char c; await(); read(q[0], &c, 1); data++; return 0; }",
    );
}

#[test]
fn a_signal() {
    let program = |first: &str| {
        format!(
            "volatile sig_atomic_t struck;
             static void handler(int signal) {{ data++; }}
             static void setup(void) {{ signal(SIGUSR1, handler); }}
             static void *first(void *other) {{ {first} return 0; }}
             static void *second(void *unused) {{ sigset_t s; sigemptyset(&s); pause(); return 0; }}"
        )
    };
    // Before the thread waits, the signal would be delivered all the same, and pause never end.
    let send = "usleep(300000); SET pthread_kill((pthread_t)other, SIGUSR1);";
    clean(&program(&send.replace("SET", "data = 1;")));
    races("observed", &program(&format!("{} data = 1;", send.replace("SET", ""))));
}

#[test]
fn functions_that_run_at_the_end() {
    clean(
        "static void last(void) { data++; }
         static void setup(void) {}
         static void *first(void *o) { data = 1; atexit(last); return 0; }
         static void *second(void *o) { return 0; }",
    );
}

// ---- spin reads ----

fn spinning(first: &str, wait: &str) -> String {
    format!(
        "static void setup(void) {{}}
         static void *first(void *other) {{ usleep(20000); {first} return 0; }}
         static void *second(void *unused) {{ {wait} data++; return 0; }}"
    )
}

#[test]
fn a_loop_that_only_reads_waits() {
    for wait in ["while (!flag);", "while (!flag) usleep(10);", "while (flag != 1) sched_yield();"]
    {
        clean(&spinning("data = 1; flag = 1;", wait));
        races("observed", &spinning("flag = 1; data = 1;", wait));
    }
}

#[test]
fn the_rule_for_spin_reads_has_a_switch() {
    if support::has_probe() {
        let scratch =
            compiled(&spinning("data = 1; flag = 1;", "while (!flag) usleep(10);"), &["-O2"]);
        run(&scratch, &[]).exits(0);
        run(&scratch, &["--atomics", "lock-touched,debug-info"]).exits(66);
    }
}

/// Reading a flag once, or in a loop with other work, is no wait.
#[test]
fn other_loops_do_not_wait() {
    let program = spinning(
        "data = 1; flag = 1;",
        "for (long i = 0; i < 1000000 && !flag; i++) if (i % 1000 == 999) usleep(100);",
    );
    races("observed", &program);
}

// ---- condition variables ----

/// The waiter comes when all is over; what it does is up to `second`.
fn lost_signal(first: &str, second: &str) -> String {
    format!(
        "static void setup(void) {{}}
         static void *first(void *other) {{ {first} notify(); return 0; }}
         static void *second(void *unused) {{ await(); {second} data++; return 0; }}"
    )
}

const WAITS: &str = "pthread_mutex_lock(&m);
    while (!flag) pthread_cond_wait(&cv, &m);
    pthread_mutex_unlock(&m);";

const SIGNALS: &str = "pthread_mutex_lock(&m);
    flag = 1;
    pthread_cond_signal(&cv);
    pthread_mutex_unlock(&m);";

#[test]
fn a_lost_signal() {
    clean(&lost_signal(&format!("data = 1; {SIGNALS}"), WAITS));
    races("observed", &lost_signal(&format!("{SIGNALS} data = 1;"), WAITS));
    // The lock alone hands nothing over.
    let locks = "pthread_mutex_lock(&m); pthread_mutex_unlock(&m);";
    races("predicted", &lost_signal(&format!("data = 1; {SIGNALS}"), locks));
}

#[test]
fn precise_condition_variables_have_a_switch() {
    if support::has_probe() {
        let scratch = compiled(&lost_signal(&format!("data = 1; {SIGNALS}"), WAITS), &["-O2"]);
        run(&scratch, &[]).exits(0);
        run(&scratch, &["--condvars", "plain"]).exits(66);
        run(&scratch, &["--condvars", "plain", "--detector", "hb"]).exits(0);
    }
}

/// The wait is in a function of its own, the loop in its caller.
#[test]
fn a_wait_in_a_wrapper() {
    let wrapper = "static __attribute__((noinline, noipa)) void sleep_on(pthread_cond_t *c) {
        if (pthread_cond_wait(c, &m) != 0) abort();
    }";
    let waits = WAITS.replace("pthread_cond_wait(&cv, &m)", "sleep_on(&cv)");
    clean(&format!("{wrapper}{}", lost_signal(&format!("data = 1; {SIGNALS}"), &waits)));
}

#[test]
fn a_lost_signal_in_cxx() {
    if !support::has_probe() {
        return;
    }
    let program = r#"
        #include <condition_variable>
        #include <thread>
        #include <unistd.h>
        std::mutex m;
        std::condition_variable cv;
        bool flag;
        int data;
        int main() {
            std::thread a([] {
                data = 1;
                std::lock_guard<std::mutex> hold(m);
                flag = true;
                cv.notify_one();
            });
            std::thread b([] {
                usleep(300000);
                std::unique_lock<std::mutex> hold(m);
                cv.wait(hold, [] { return flag; });
                hold.unlock();
                data++;
            });
            a.join();
            b.join();
        }"#;
    for level in ["-O0", "-O2"] {
        let scratch = Scratch::new();
        let source = scratch.put("program.cc", program);
        let output = scratch.path("program");
        let made = Command::new("g++")
            .args(["-g", level, "-pthread", "-Wl,-z,now", "-o"])
            .args([&output, &source])
            .status();
        assert!(made.unwrap().success());
        run(&scratch, &[]).exits(0);
        run(&scratch, &["--condvars", "plain"]).exits(66);
    }
}

// ---- annotations ----

#[test]
fn annotations_order() {
    hands_over(
        "//globals//",
        "AnnotateHappensBefore(\"\", 0, &flag); notify();",
        "await(); AnnotateHappensAfter(\"\", 0, &flag);",
    );
}

/// The instruction sequence of Valgrind's headers, with the numbers of helgrind.h.
#[test]
fn requests_to_valgrind_order() {
    hands_over(
        "static __attribute__((noinline)) void request(unsigned long what, volatile void *object) {
            volatile unsigned long words[6] = {0x48470000 + 256 + what, (unsigned long)object};
            unsigned long answer = 0;
            __asm__ volatile(
                \"rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\\n\"
                \"xchgq %%rbx, %%rbx\"
                : \"+d\"(answer) : \"a\"(&words[0]) : \"cc\", \"memory\");
        }//globals//",
        "request(33, &flag); notify();",
        "await(); request(34, &flag);",
    );
}

#[test]
fn a_race_declared_benign_is_not_reported() {
    let program = |size: u32| {
        format!(
            "static void setup(void) {{ AnnotateBenignRaceSized(\"\", 0, &data, {size}, \"\"); }}
             static void *first(void *o) {{ data = 1; return 0; }}
             static void *second(void *o) {{ data++; return 0; }}"
        )
    };
    clean(&program(4));
    races("observed", &program(2));
}

#[test]
fn a_lock_of_the_programs_own_making() {
    let program = |side: u32| {
        let locked = format!(
            "AnnotateRWLockAcquired(\"\", 0, &flag, {side}); data++;
             AnnotateRWLockReleased(\"\", 0, &flag, {side});"
        );
        format!(
            "static void setup(void) {{}}
             static void *first(void *o) {{ {locked} notify(); return 0; }}
             static void *second(void *o) {{ await(); {locked} return 0; }}"
        )
    };
    clean(&program(1));
    races("observed", &program(0));
}

// ---- memory ----

/// A thread's stack and thread-local variables go to another when it is gone, whoever joined it.
#[test]
fn thread_local_variables_of_dead_threads_are_new() {
    clean(
        "static __thread int own[10];
         static void *touch(void *o) { own[1]++; own[9]++; return 0; }
         static void twice(void) {
             for (int i = 0; i < 2; i++) {
                 pthread_t t;
                 pthread_create(&t, 0, touch, 0);
                 pthread_join(t, 0);
             }
         }
         static void setup(void) {}
         static void *first(void *o) { twice(); notify(); return 0; }
         static void *second(void *o) { await(); twice(); return 0; }",
    );
}

#[test]
fn a_write_under_the_shared_side_of_a_lock() {
    let program = |side: &str| {
        format!(
            "pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
             static void setup(void) {{}}
             static void *first(void *o) {{
                 pthread_rwlock_{side}lock(&rw); data++; pthread_rwlock_unlock(&rw); notify(); return 0; }}
             static void *second(void *o) {{
                 await(); pthread_rwlock_wrlock(&rw); data++; pthread_rwlock_unlock(&rw); return 0; }}"
        )
    };
    clean(&program("wr"));
    races("predicted", &program("rd"));
}

/// `localtime` returns a static buffer; the C library's own tables behind it are its business.
#[test]
fn a_static_buffer_of_the_c_library() {
    let program = |call: &str| {
        format!(
            "static void *first(void *o) {{ time_t t = 1; struct tm own; {call}; return 0; }}
             static void setup(void) {{}}
             #define second first"
        )
    };
    clean(&program("localtime_r(&t, &own)"));
    if support::has_probe() {
        run(&compiled(&program("localtime(&t)"), &["-O2"]), &[]).exits(66);
    }
}

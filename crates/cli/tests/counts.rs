//! `--count` says what the stream of events says: the trampoline counts most hooked calls by itself,
//! and must agree with the handlers that report them one by one.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::Scratch;

/// One thread does everything, several times over, so that the outcome is always the same: calls that
/// succeed and that fail, functions that call or jump to hooked ones, a jump out of a callback, a
/// handler that locks in the middle of a wait, and more call sites than a thread keeps rows for.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t sem;
static mtx_t mtx;
static volatile int length;
__attribute__((noinline)) static int tail_unlock(pthread_mutex_t *at) { return pthread_mutex_unlock(at); }
static void on_alarm(int signal) {
    (void)signal;
    pthread_mutex_lock(&inner);
    pthread_mutex_unlock(&inner);
    sem_post(&sem);
}
#define PAIR pthread_mutex_lock(&m); pthread_mutex_unlock(&m);
#define PAIRS5 PAIR PAIR PAIR PAIR PAIR
#define PAIRS25 PAIRS5 PAIRS5 PAIRS5 PAIRS5 PAIRS5
int main(void) {
    char text[32], other[32];
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, NULL, 1);
    sem_init(&sem, 0, 0);
    mtx_init(&mtx, mtx_plain);
    signal(SIGALRM, on_alarm);
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&m);
        pthread_mutex_trylock(&m);
        tail_unlock(&m);
        pthread_rwlock_rdlock(&rw);
        pthread_rwlock_trywrlock(&rw);
        pthread_rwlock_unlock(&rw);
        pthread_spin_lock(&spin);
        pthread_spin_unlock(&spin);
        pthread_cond_signal(&cond);
        pthread_cond_broadcast(&cond);
        pthread_barrier_wait(&barrier);
        sem_trywait(&sem);
        sem_post(&sem);
        sem_wait(&sem);
        mtx_lock(&mtx);
        mtx_trylock(&mtx);
        mtx_unlock(&mtx);
        strcpy(text, i % 2 ? "odd" : "even");
        memcpy(other, text, (size_t)length);
        strcpy(other, text);
        length = (int)strlen(text) + strcmp(text, other);
    }
    for (int i = 0; i < 3; i++) {
        ualarm(2000, 0);
        while (sem_wait(&sem) != 0) {}
        PAIRS25 PAIRS25 PAIRS25 PAIRS25 PAIRS25 PAIRS25 PAIRS25 PAIRS25
    }
    return 0;
}
"#;

type Counts = BTreeMap<String, u64>;

/// Waiting on a futex is the kernel's business: whether a `sem_wait` sleeps depends on time.
fn is_compared(name: &str) -> bool {
    !name.starts_with("futex") && !name.starts_with("thread")
}

fn streamed(scratch: &Scratch, only: &str) -> Counts {
    let (events, ran) = scratch.json(&["--only", only], &[&"./program"]);
    ran.exits(0);
    let mut counts = Counts::new();
    for event in events {
        let name = event["event"].as_str().unwrap();
        if event["family"] != "process" && is_compared(name) {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn counted(scratch: &Scratch, only: &str) -> Counts {
    let (tables, ran) = scratch.json(&["--count", "--only", only], &[&"./program"]);
    ran.exits(0);
    let mut counts = Counts::new();
    let threads: Vec<&Value> =
        tables.iter().flat_map(|table| table["threads"].as_array().unwrap()).collect();
    for (name, n) in threads.iter().flat_map(|thread| thread["events"].as_object().unwrap()) {
        if is_compared(name) {
            *counts.entry(name.clone()).or_default() += n.as_u64().unwrap();
        }
    }
    counts
}

#[test]
fn counts_agree_with_the_stream() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("program", PROGRAM, &["-O2", "-fno-builtin"]);
    let stream = streamed(&scratch, "sync");
    for (name, at_least) in
        [("lock-acquired", 600), ("lock-failed", 40), ("barrier-leave", 20), ("semaphore-post", 20)]
    {
        assert!(stream.get(name).is_some_and(|n| *n >= at_least), "{name}: {stream:?}");
    }
    assert_eq!(counted(&scratch, "sync"), stream);

    // Ranges, allocation and synchronisation; accesses are counted by another mechanism.
    let ranges = |counts: Counts| -> Counts {
        let plain = ["read", "write", "atomic-read", "atomic-write", "atomic-update"];
        counts.into_iter().filter(|(name, _)| !plain.contains(&&**name)).collect()
    };
    let stream = ranges(streamed(&scratch, "memory,sync"));
    assert!(stream["read-range"] >= 120 && stream["write-range"] >= 40, "{stream:?}");
    assert_eq!(ranges(counted(&scratch, "memory,sync")), stream);
}

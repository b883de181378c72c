//! A detection run that goes on for long, or is large: memory does not grow with what is over, and
//! neither threads nor heap run out of numbers. Small in the gating tier, in full with
//! `./dev test --full`.

#![allow(clippy::unwrap_used)] // A test that cannot go on panics.

mod support;

use std::process::Command;
use support::{Ran, Scratch, has_probe, raddle};

/// Rounds of threads that lock, write and end; each waits for the lock until all are there. Prints by how many KiB it has grown,
/// the detector included, from a quarter of the rounds to all: the memory it has, the addresses, and the memory of
/// the command.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static pthread_t threads[1000];

static void *work(void *unused) {
    char *block = malloc(100);
    memset(block, 1, 100);
    pthread_mutex_lock(&lock);
    counter += block[50];
    pthread_mutex_unlock(&lock);
    free(block);
    return unused;
}

struct size { long resident, mapped; };

static struct size size(int pid) {
    char line[256];
    struct size kib = {0, 0};
    snprintf(line, sizeof line, "/proc/%d/status", pid);
    FILE *file = fopen(line, "r");
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "VmRSS: %ld", &kib.resident);
        sscanf(line, "VmSize: %ld", &kib.mapped);
    }
    fclose(file);
    return kib;
}

int main(int argc, char **argv) {
    int at_once = atoi(argv[1]), rounds = atoi(argv[2]);
    struct size early = {0, 0}, command = {0, 0};
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < at_once; i++)
            if (pthread_create(&threads[i], NULL, work, NULL) != 0)
                abort();
        pthread_mutex_unlock(&lock);
        for (int i = 0; i < at_once; i++)
            pthread_join(threads[i], NULL);
        if (round == rounds / 4) {
            early = size(getpid());
            command = size(getppid());
        }
    }
    struct size late = size(getpid());
    printf("%ld %ld %ld %ld\n", counter, late.resident - early.resident, late.mapped - early.mapped,
           size(getppid()).resident - command.resident);
    return 0;
}
"#;

/// Two threads, each with half of a heap that both may look at, page by page.
const HEAP: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static char **blocks;
static long count;
enum { BLOCK = 1 << 20, STEP = 4096 };

static void *fill(void *first) {
    for (long b = (long)first; b < count; b += 2)
        for (long i = 0; i < BLOCK; i += STEP)
            blocks[b][i] = (char)b;
    return NULL;
}

int main(int argc, char **argv) {
    count = atol(argv[1]);
    blocks = malloc(count * sizeof *blocks);
    for (long b = 0; b < count; b++)
        blocks[b] = malloc(BLOCK);
    pthread_t other;
    pthread_create(&other, NULL, fill, (void *)1);
    fill((void *)0);
    pthread_join(other, NULL);
    long sum = 0;
    for (long b = 0; b < count; b++)
        sum += blocks[b][BLOCK - STEP] == (char)b;
    printf("%ld\n", sum);
    return 0;
}
"#;

fn full() -> bool {
    std::env::var_os("RADDLE_TEST_FULL").is_some()
}

fn run(scratch: &Scratch, program: &str, arguments: &[String]) -> Ran {
    let mut command = Command::new(raddle());
    command.args(["run", "--quiet", "--"]).arg(scratch.path(program)).args(arguments);
    // The target's allocator would come to use more arenas some time, 64 MiB of addresses each.
    command.env("MALLOC_ARENA_MAX", "1");
    Ran::new(command.current_dir(scratch.path("")).output().unwrap())
}

/// Runs the rounds; by how many KiB the process grew after the first quarter of them: the memory it has, and what it has
/// mapped; and the memory of the command.
fn growth(at_once: u32, rounds: u32) -> [i64; 3] {
    let scratch = Scratch::new();
    scratch.compile("threads", THREADS, &["-O1", "-pthread"]);
    let ran = run(&scratch, "threads", &[at_once.to_string(), rounds.to_string()]);
    ran.exits(0);
    let numbers: Vec<i64> = ran.stdout.split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert_eq!(numbers[0], i64::from(at_once) * i64::from(rounds), "{ran:?}");
    [numbers[1], numbers[2], numbers[3]]
}

#[test]
fn threads_that_are_gone_cost_nothing() {
    if !has_probe() {
        return;
    }
    let (at_once, rounds) = if full() { (200, 1000) } else { (20, 40) };
    let [resident, mapped, command] = growth(at_once, rounds);
    let what = format!("{at_once} threads, {rounds} rounds");
    println!("{what}: {resident} KiB, {mapped} KiB mapped; the command {command} KiB");
    assert!(resident < 16 << 10, "{what}: grew by {resident} KiB");
    assert!(mapped < 16 << 10, "{what}: {mapped} KiB more are mapped");
    assert!(command < 4 << 10, "{what}: the command grew by {command} KiB");
}

#[test]
fn many_threads_at_once() {
    if !has_probe() {
        return;
    }
    growth(if full() { 1000 } else { 100 }, if full() { 12 } else { 1 });
}

#[test]
fn a_large_heap() {
    if !has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("heap", HEAP, &["-O1", "-pthread"]);
    let mebibytes = if full() { 2048 } else { 128 };
    let ran = run(&scratch, "heap", &[mebibytes.to_string()]);
    ran.exits(0);
    assert_eq!(ran.stdout, format!("{mebibytes}\n"));
}

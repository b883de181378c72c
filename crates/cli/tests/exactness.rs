//! Programs whose every event is known, under Raddle: see `exact/mod.rs` for how they are written.
//! One test a program, so that they run side by side and a failure names its program.

#![allow(clippy::unwrap_used)] // A test that cannot go on panics.

mod exact;
mod support;

macro_rules! exactly {
    ($($name:ident: $file:literal,)*) => {
        const FILES: &[&str] = &[$($file),*];
        $(
            #[test]
            fn $name() {
                exact::check($file);
            }
        )*
    };
}

exactly! {
    // Instructions (thesis 4.2.4, 4.2.5)
    atomic_and_conditional_instructions: "atomics.S",
    string_instructions: "rep_strings.S",
    vector_and_x87_instructions: "vectors.S",
    stack_instructions: "stack.S",
    segment_relative_instructions: "segment.S",
    wide_masked_and_gathering_instructions: "avx.S",

    // POSIX threads
    mutexes: "mutex.c",
    read_write_locks: "rwlock.c",
    conditions: "condition.c",
    barriers_semaphores_and_spin_locks: "barrier_semaphore.c",
    one_time_initialisation: "once.c",
    lives_of_threads: "threads.c",

    // What is built on them
    c11_threads: "c11.c",
    cxx_static_locals: "cxx_guard.cc",
    cxx_threads: "cxx_sync.cc",

    // Memory as functions touch it
    libc_string_functions: "libc_strings.c",
    allocation: "allocation.c",
    cxx_allocation: "allocation_cxx.cc",
    an_allocator_of_its_own: "pool.c",

    // How functions are entered and left (thesis 4.2.2, 4.4)
    tail_calls_and_jumps: "tail_call.S",
    leaving_by_longjmp_and_thread_exit: "jumps.c",
    leaving_by_exception: "exception.cc",
    generic_waits: "generic.c",

    // Atomics that look plain
    atomics_by_debug_information: "atomic.cc",

    // What programs tell, and how they wait
    annotations: "annotations.c",
    waiting_loops: "waits.c",

    // OpenMP, by two compilers
    openmp_teams: "openmp.c",
    openmp_tasks_of_gcc: "openmp_tasks.c",
    openmp_tasks_of_clang: "openmp_clang.c",

    // Transactional memory
    transactions: "transaction.c",

    // Rust
    rust_locks: "rust_sync.rs",
    rust_locks_unoptimised: "rust_unoptimised.rs",

    // The process and the world
    outputs: "output.c",
    signals: "signals.c",
    a_child_that_is_not_followed: "fork.c",
    a_child_that_is_followed: "fork_followed.c",
}

/// What Rust's own library locks for itself, at every thread's start and end.
#[test]
fn rust_threads_release_what_they_take() {
    exact::check_balance("rust_sync.rs");
    exact::check_balance("rust_unoptimised.rs");
}

/// What goes wrong once in a hundred runs goes wrong on a busy machine first: every program twenty
/// times, while others keep the processors from the target at every moment but the right one.
#[test]
#[ignore = "tens of minutes; the full tier runs it"]
fn exact_again_and_again_under_load() {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    const TIMES: usize = 20;
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let (done, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 * processors {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let check = || {
            while let Some(file) = FILES.get(next.fetch_add(1, Ordering::Relaxed) / TIMES) {
                exact::check(file);
            }
        };
        let checks: Vec<_> = (0..processors).map(|_| scope.spawn(check)).collect();
        let failures: Vec<_> = checks.into_iter().filter_map(|c| c.join().err()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(failures.is_empty(), "see above");
    });
}

/// A program that no test runs would look as if it passed.
#[test]
fn every_program_is_run() {
    let is_source = |name: &str| [".c", ".cc", ".rs", ".S"].iter().any(|end| name.ends_with(end));
    let mut there: Vec<String> = std::fs::read_dir(exact::programs())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| is_source(name))
        .collect();
    let mut run: Vec<String> = FILES.iter().map(|file| file.to_string()).collect();
    there.sort();
    run.sort();
    assert_eq!(there, run);
}

//! The target behaves as it does alone, feature by feature: each program in `behaviour/` does one
//! difficult thing (signals, forks, odd exits, odd binaries) and is run without and with Raddle,
//! counting, watching everything, and looking for races. Output and exit code must be the same, and as written in its first line:
//! `// exit: N`, with `// flags: …` for the compiler where needed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{Scratch, has_probe, raddle};

/// Builds and runs one program both ways.
fn same(name: &str) {
    if !has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviour").join(name);
    let text = std::fs::read_to_string(&source).unwrap();
    let header = |key: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(&format!("// {key}:")));
        line.map(str::trim)
    };
    for variant in header("variants").unwrap_or("").split('|') {
        let flags = format!("{} {variant}", header("flags").unwrap_or(""));
        let program = build(&scratch, &source, &flags);
        let alone = run(Command::new(&program), &scratch);
        let with = run(watch(&program, &["--count"], &scratch), &scratch);
        assert_eq!(said(&alone), said(&with), "{name} {flags}: alone, and watched");
        let expected: i32 = header("exit").expect("an exit code").parse().unwrap();
        assert_eq!(code(&with), expected, "{name} {flags}: {with:?}");
        if header("events") != Some("no") {
            // Every access as an event: the heaviest instrumentation there is.
            let with = run(watch(&program, &[], &scratch), &scratch);
            assert_eq!(said(&alone), said(&with), "{name} {flags}: alone, and with events");
        }
        let with = run(detect(&program, &scratch), &scratch);
        assert_eq!(alone.stdout, with.stdout, "{name} {flags}: alone, and looked at for races");
        // What is found decides the code.
        let found = [code(&alone), FOUND];
        assert!(found.contains(&code(&with)), "{name} {flags}: {found:?} for races, not {with:?}");
    }
}

fn build(scratch: &Scratch, source: &Path, flags: &str) -> PathBuf {
    let program = scratch.path("program");
    let extension = source.extension().and_then(|e| e.to_str()).unwrap_or("c");
    let mut command = Command::new(match extension {
        "rs" => "rustc",
        "cc" => "g++",
        _ => "gcc",
    });
    if extension != "rs" {
        command.args(["-g", "-O1", "-pthread"]);
    }
    let flags = flags.replace("$D", scratch.path("").to_str().unwrap());
    command.args(flags.split_whitespace()).arg("-o").arg(&program).arg(source);
    let made = command.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    if source.file_stem().is_some_and(|s| s == "dlopen") {
        let library = scratch.path("plugin.so");
        let made = Command::new("gcc")
            .args(["-shared", "-fPIC", "-DPLUGIN", "-g", "-O1", "-o"])
            .arg(&library)
            .arg(source)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    program
}

fn watch(program: &Path, arguments: &[&str], scratch: &Scratch) -> Command {
    let mut command = Command::new(raddle());
    command.args(["events", "--quiet", "--timeout", "60s", "--output"]);
    command.arg(scratch.path("events.txt")).args(arguments).arg("--").arg(program);
    command
}

/// The exit code of `raddle run` that found something.
const FOUND: i32 = 66;

fn detect(program: &Path, scratch: &Scratch) -> Command {
    let mut command = Command::new(raddle());
    command.args(["run", "--quiet", "--timeout", "60s", "--out"]);
    let out = scratch.path(&format!("run{}", std::fs::read_dir(scratch.path("")).unwrap().count()));
    command.arg(out).arg("--").arg(program);
    command
}

fn run(mut command: Command, scratch: &Scratch) -> Output {
    command.current_dir(scratch.path("")).stdin(Stdio::null()).output().unwrap()
}

fn code(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0))
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (code(output), text(&output.stdout), text(&output.stderr))
}

macro_rules! behaviours {
    ($($name:ident: $file:literal,)*) => {
        $(#[test] fn $name() { same($file); })*
    };
}

behaviours! {
    handlers_on_alternate_stacks_under_a_timer: "signals.c",
    blocked_signals: "blocked_signals.c",
    signals_in_loops_that_make_no_system_call: "signals_in_loops.c",
    ignored_signals: "ignored_signals.c",
    a_fault_the_program_catches: "segv.c",
    registers_after_a_fault: "fault_registers.c",
    memory_in_the_middle_of_the_address_space: "far_memory.c",
    memory_where_the_program_wants_it: "mapped_where_wanted.c",
    a_fault_it_does_not_catch: "crash.c",
    an_abort: "abort.c",
    fork_in_a_threaded_program: "fork.c",
    vfork_exec_and_posix_spawn: "spawn.c",
    exec_of_itself: "exec.c",
    dlopen_and_dlclose: "dlopen.c",
    main_leaves_by_pthread_exit: "main_exits.c",
    detached_threads_at_the_end: "detached.c",
    longjmp_out_of_a_handler: "longjmp.c",
    exceptions_through_threads_and_libraries: "exceptions.cc",
    panics_caught_and_not: "panic.rs",
    generated_code: "jit.c",
    static_and_stripped_binaries: "kinds.c",
    vector_registers_survive: "vectors.c",
    whole_vector_registers_survive: "wide_vectors.c",
    many_short_threads: "many_threads.c",
    cancellation_with_cleanup: "cancel.c",
    a_deep_recursion_and_a_small_stack: "stacks.c",
    exit_from_another_thread: "exit_elsewhere.c",
}

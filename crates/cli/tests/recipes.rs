//! The recipes of `docs/ci.md`: the test runners people have, with Raddle in front of each test.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

const RACY: &str = r#"
#include <pthread.h>
volatile int counter;
static void *writer(void *unused) {
    counter = 1;
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, writer, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;
const CLEAN: &str = "int main(void) { return 0; }\n";

/// Two tests, one of which races; none where one of these programs is missing.
fn tests(needed: &[&str]) -> Option<Scratch> {
    let has = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    if !support::has_probe() || !needed.iter().all(has) {
        eprintln!("skipped: not all of {needed:?} are here");
        return None;
    }
    let scratch = Scratch::new();
    scratch.put("racy.c", RACY);
    scratch.put("quiet.c", CLEAN);
    Some(scratch)
}

/// With `raddle` on the path, as its users have it.
fn command(scratch: &Scratch, words: &[&str]) -> Ran {
    let beside: PathBuf = raddle().parent().unwrap().into();
    let mut path = vec![beside];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(scratch.path("."))
        .env("PATH", std::env::join_paths(path).unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran::new(output)
}

#[test]
fn ctest() {
    let Some(scratch) = tests(&["cmake", "ctest", "make"]) else { return };
    let project = "cmake_minimum_required(VERSION 3.13)\nproject(p C)\nenable_testing()\n\
        add_compile_options(-g)\nadd_link_options(-pthread)\n\
        set(TEST_WRAPPER \"\" CACHE STRING \"put before every test\")\n\
        foreach(t racy quiet)\nadd_executable(${t} ${t}.c)\n\
        add_test(NAME ${t} COMMAND ${TEST_WRAPPER} $<TARGET_FILE:${t}>)\nendforeach()\n";
    scratch.put("CMakeLists.txt", project);
    let wrapper = "-DTEST_WRAPPER=raddle;run;--quiet;--";
    let make = "Unix Makefiles";
    command(&scratch, &["cmake", "-G", make, "-S", ".", "-B", "build", wrapper]).exits(0);
    command(&scratch, &["cmake", "--build", "build"]).exits(0);
    let ran = command(&scratch, &["ctest", "--test-dir", "build", "--output-on-failure"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("50% tests passed"), "{ran:?}");
    assert!(ran.stdout.contains("raddle: 1 data race (1 observed)"), "{ran:?}");
}

#[test]
fn meson() {
    let Some(scratch) = tests(&["meson", "ninja"]) else { return };
    let project = "project('p', 'c', default_options: ['debug=true'])\n\
        t = dependency('threads')\n\
        foreach n : ['racy', 'quiet']\n  test(n, executable(n, n + '.c', dependencies: t))\n\
        endforeach\n";
    scratch.put("meson.build", project);
    command(&scratch, &["meson", "setup", "build"]).exits(0);
    let wrapper = ["meson", "test", "-C", "build", "--wrapper", "raddle run --quiet --"];
    let ran = command(&scratch, &wrapper);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let line = |name: &str, how: &str| {
        ran.stdout.lines().any(|line| line.contains(name) && line.contains(how))
    };
    assert!(line("racy", "FAIL") && line("exit status 66", "") && line("quiet", "OK"), "{ran:?}");
}

#[test]
fn make_check() {
    let Some(scratch) = tests(&["make"]) else { return };
    let rules = "CFLAGS = -g -pthread\ntests: racy quiet\ncheck: tests\n\t./racy\n\t./quiet\n";
    scratch.put("Makefile", rules);
    command(&scratch, &["make", "tests"]).exits(0);
    let ran = command(&scratch, &["raddle", "run", "--follow", "--", "make", "check"]);
    assert!(ran.exits(66).stderr.contains("data race on counter"), "{ran:?}");
}

//! The probe as a file: what it must not need.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::Command;
use support::{has_probe, raddle};

/// A lean call saves only the lower halves of the vector registers. libc's vectorised functions
/// clear the upper ones, so the probe brings its own (`libc_free.rs` in it); one that the compiler
/// began to call unnoticed would corrupt floating-point values of targets now and then.
#[test]
fn no_vectorised_function_of_libc_is_imported() {
    if !has_probe() {
        return;
    }
    let home = raddle().parent().unwrap().to_owned();
    let probe = [home.join("libraddle_probe.so"), home.join("../lib/raddle/libraddle_probe.so")];
    let probe = probe.iter().find(|p| p.exists()).unwrap();
    let listed = Command::new("nm").args(["-D", "--undefined-only"]).arg(probe).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.contains("dr_get_mcontext"), "no list of imports: {text}");
    let imported = |name: &&str| text.lines().any(|l| l.split(['@', ' ']).any(|w| w == *name));
    let vectorised =
        ["memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen", "memchr", "memrchr"];
    let found: Vec<_> = vectorised.iter().filter(|name| imported(name)).collect();
    assert!(found.is_empty(), "{found:?}");
}

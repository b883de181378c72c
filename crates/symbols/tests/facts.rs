//! Module facts: what the probe is told.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Workshop, address, addresses, hook, instruction, libc, line_of, run, symboliser};
use raddle_model::Hook;
use raddle_symbols::{DebugSources, FactsRequest, SymbolError, module_facts_from};
use raddle_wire::facts::ModuleFacts;
use std::path::Path;
use std::process::Command;

fn facts(path: &Path, hooks: &[Hook]) -> ModuleFacts {
    let request = FactsRequest { hooks, runtime: &[], linked: &[] };
    module_facts_from(path, &request, &DebugSources::none()).unwrap()
}

fn entries(facts: &ModuleFacts, hook: u32) -> Vec<u64> {
    facts.hooks.iter().filter(|row| row.1 == hook).map(|row| row.0).collect()
}

#[test]
fn exported_functions_of_the_c_library_in_every_version() {
    let libc = libc();
    let hooks = [
        hook(&["pthread_mutex_lock", "__pthread_mutex_lock"], &[]),
        hook(&["pthread_cond_wait"], &[]),
        hook(&["no_such_function"], &[]),
        hook(&["pthread_rwlock_*lock"], &[]),
    ];
    let found = facts(&libc, &hooks);
    assert_eq!(entries(&found, 0), addresses(&libc, &["-D"], "pthread_mutex_lock"));
    let waits = addresses(&libc, &["-D"], "pthread_cond_wait");
    assert_eq!(entries(&found, 1), waits);
    assert_eq!(waits.len(), 2, "two versions of this symbol are what this test is about");
    assert!(entries(&found, 2).is_empty());
    assert!(entries(&found, 3).len() >= 3);
    assert!(!found.guarded && found.inlined.is_empty() && found.atomic.is_empty());
}

#[test]
fn implementations_behind_indirect_functions_of_the_c_library() {
    let libc = libc();
    let names = ["strlen", "strnlen", "memcpy", "mempcpy", "memset", "strcmp", "memchr", "strcpy"];
    let hooks: Vec<Hook> = names.iter().map(|name| hook(&[name], &[])).collect();
    let found = facts(&libc, &hooks);
    let functions = internal_names(&libc);
    for (index, name) in (0..).zip(names) {
        let resolvers = addresses(&libc, &["-D"], name);
        let entries = entries(&found, index);
        assert!(entries.len() >= 3, "{name}: {entries:x?}");
        for entry in entries {
            assert_eq!(entry % 16, 0, "{name}");
            // memcpy has an old version, which is an ordinary function.
            assert!(!resolvers.contains(&entry) || name == "memcpy", "{name}");
            if let Some(functions) = &functions {
                let fits =
                    |known: &(u64, String)| known.0 == entry && is_implementation(&known.1, name);
                assert!(functions.iter().any(fits), "{name} at {entry:#x}");
            }
        }
    }
}

/// The C library's own names, if its debug file is installed.
fn internal_names(libc: &Path) -> Option<Vec<(u64, String)>> {
    let id = symboliser().build_id(libc)?;
    let debug = format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    let listing = Path::new(&debug).exists().then(|| run(Command::new("nm").arg(&debug)))?;
    let parse = |line: &str| {
        let mut fields = line.split_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        Some((address, fields.nth(1)?.to_owned()))
    };
    Some(listing.lines().filter_map(parse).collect())
}

fn is_implementation(symbol: &str, function: &str) -> bool {
    let of = |function: &str| symbol.starts_with(&format!("__{function}_"));
    of(function) || function == "memcpy" && of("memmove")
}

const INDIRECT: &str = r#"
static int quick(int n) { return n + 1; }
static int slow(int n) { return n + 2; }
static int unrelated(int n) { return n + 3; }
int (*volatile table[])(int) = { unrelated };
int processor;
static int (*choose(void))(int) { if (processor) return quick; return slow; }
int work(int) __attribute__((ifunc("choose")));
int main(int argc, char **argv) { return work(argc) + table[0](argc); }
"#;

#[test]
fn an_indirect_function_of_a_program() {
    let shop = Workshop::new();
    for options in
        [&["-O0"][..], &["-O2"], &["-O2", "-no-pie"], &["-O2", "-static"], &["-O0", "-static"]]
    {
        let binary = shop.compile("i.c", INDIRECT, options);
        let base =
            if options.contains(&"-static") || options.contains(&"-no-pie") { 0x400000 } else { 0 };
        let found = facts(&binary, &[hook(&["work"], &[])]);
        let mut expected =
            vec![(address(&binary, "quick") - base, 0), (address(&binary, "slow") - base, 0)];
        expected.sort_unstable();
        assert_eq!(found.hooks, expected, "{options:?}");
    }
}

#[test]
fn names_of_cpp_and_overriding_hooks() {
    let text = "namespace ns { template <class T> struct Lock { __attribute__((noipa)) void take(T) { asm volatile(\"\"); } }; }
        extern \"C\" __attribute__((noinline)) void plain() { asm volatile(\"\"); }
        extern \"C\" void other() __attribute__((alias(\"plain\")));
        int main() { ns::Lock<int>().take(1); ns::Lock<long>().take(1); plain(); other(); }";
    let shop = Workshop::new();
    let binary = shop.compile("n.cc", text, &["-O2"]);
    let mut hooks = [
        hook(&["ns::Lock<T>::take"], &[]),
        hook(&["plain"], &[]),
        hook(&["other"], &[]),
        hook(&["ns::Lock"], &[]),
    ];
    let found = facts(&binary, &hooks);
    assert_eq!(entries(&found, 0).len(), 2, "both instances of the template");
    assert!(entries(&found, 1).is_empty(), "the later hook of one address holds");
    assert_eq!(entries(&found, 2), [address(&binary, "plain")]);
    assert!(found.has_symbols && !found.guarded);
    hooks[2].opaque = true;
    assert!(facts(&binary, &hooks).guarded);

    // Symbols of a separate debug file count as well.
    shop.split_debug(&binary, &shop.path("n.debug"));
    assert_eq!(facts(&binary, &hooks).hooks, found.hooks);
    std::fs::remove_file(shop.path("n.debug")).unwrap();
    let stripped = facts(&binary, &hooks);
    assert!(!stripped.has_symbols && stripped.hooks.is_empty());
}

#[test]
fn a_runtime_library_is_guarded_by_its_name() {
    let shop = Workshop::new();
    let options = ["-shared", "-fPIC", "-Wl,-soname,libwork.so.3"];
    let library = shop.compile("l.c", "int f(void) { return 1; }", &options);
    for (runtime, expected) in [("libwork.so.3", true), ("libwork.so.*", true), ("libwork", false)]
    {
        let runtime = [runtime.to_owned()];
        let request = FactsRequest { hooks: &[], runtime: &runtime, linked: &[] };
        let found = module_facts_from(&library, &request, &DebugSources::none()).unwrap();
        assert_eq!(found.guarded, expected, "{runtime:?}");
    }
    let runtime = [library.file_name().unwrap().to_str().unwrap().to_owned()];
    let request = FactsRequest { hooks: &[], runtime: &runtime, linked: &[] };
    assert!(module_facts_from(&library, &request, &DebugSources::none()).unwrap().guarded);
}

/// What is linked in is known by its functions' names, as long as they have any.
#[test]
fn the_code_of_a_library_that_was_linked_in_is_private() {
    let shop = Workshop::new();
    let text = "__attribute__((noinline)) int work_a(int n) { return n * 3; }\n\
                int own(int n) { return work_a(n) + 1; }\nint main(void) { return own(2); }";
    let program = shop.compile("p.c", text, &["-O1"]);
    let linked = ["work_*".to_owned()];
    let request = FactsRequest { hooks: &[], runtime: &[], linked: &linked };
    let found = module_facts_from(&program, &request, &DebugSources::none()).unwrap();
    assert_eq!(found.private.len(), 1);
    let (_, length) = found.private[0];
    assert!((1..64).contains(&length), "the one function: {length}");
}

#[test]
fn inlined_locks_of_rust() {
    let text = r#"
use std::sync::Mutex;
#[inline(never)]
fn bump(counter: &Mutex<u64>) { *counter.lock().unwrap() += 1; }
fn main() { let counter = Mutex::new(1); bump(&counter); println!("{}", counter.lock().unwrap()); }
"#;
    let shop = Workshop::new();
    let hooks = [
        hook(&[], &["std::sys::sync::mutex::futex::Mutex::lock"]),
        hook(&[], &["std::sys::*::Mutex::unlock"]),
    ];
    for options in [&["-g", "-O"][..], &["-g", "-O", "-Csymbol-mangling-version=v0"]] {
        let binary = shop.compile("m.rs", text, options);
        let found = facts(&binary, &hooks);
        let mut symbols = symboliser();
        let mut of_bump = Vec::new();
        for (offset, hook) in &found.inlined {
            let frames = symbols.frames(&binary, *offset);
            let text = instruction(&binary, *offset);
            assert!(text.contains("cmpxchg") || text.contains("xchg"), "{text}");
            let outermost = frames.last().unwrap().function.clone().unwrap();
            if outermost.ends_with("::bump") {
                of_bump.push(*hook);
            }
        }
        assert_eq!(of_bump, [0, 1], "{options:?}");
        assert!(facts(&binary, &[]).inlined.is_empty());
    }
    // A release build has debug information of the standard library only. Its slow path is a
    // function with a symbol, but hooking that alone would show locks that nobody releases.
    let half_seen = shop.compile("m.rs", text, &["-O"]);
    let slow_path = hook(&["std::sys::sync::mutex::futex::Mutex::lock_contended"], &[]);
    assert!(!facts(&half_seen, std::slice::from_ref(&slow_path)).hooks.is_empty());
    let found = facts(&half_seen, &[hooks[0].clone(), slow_path]);
    assert!(found.hooks.is_empty() && found.inlined.is_empty(), "{found:?}");
}

#[test]
fn inlined_functions_of_c() {
    let text = r#"
int state;
static inline __attribute__((always_inline)) void spin_lock(int *lock) { while (__sync_lock_test_and_set(lock, 1)) ; }
static inline __attribute__((always_inline)) void spin_unlock(int *lock) { __sync_fetch_and_and(lock, 0); }
int main(int argc, char **argv) { spin_lock(&state); argc++; spin_unlock(&state); __sync_fetch_and_add(&state, 1); return argc; }
"#;
    let shop = Workshop::new();
    let hooks = [hook(&[], &["spin_lock"]), hook(&[], &["spin_un*"])];
    for options in [&["-g", "-O2"][..], &["-g", "-O0"], &["-g", "-O2", "-static"]] {
        let binary = shop.compile("s.c", text, options);
        let found = facts(&binary, &hooks);
        let hooks: Vec<u32> = found.inlined.iter().map(|row| row.1).collect();
        assert_eq!(hooks, [0, 1], "{options:?}");
    }
}

/// The source lines of code that is atomic by the facts, in this file.
fn atomic_lines(binary: &Path, facts: &ModuleFacts, file: &str) -> Vec<u32> {
    let mut symbols = symboliser();
    let mut lines = Vec::new();
    for (offset, length) in &facts.atomic {
        for byte in *offset..offset + u64::from(*length) {
            let frames = symbols.frames(binary, byte);
            let here = frames.iter().find(|f| f.file.as_ref().is_some_and(|p| p.ends_with(file)));
            lines.extend(here.and_then(|frame| frame.line));
        }
    }
    lines.sort_unstable();
    lines.dedup();
    lines
}

#[test]
fn atomic_operations_of_cpp_and_rust() {
    let cpp = r#"
#include <atomic>
std::atomic<int> *flag;
int plain;
int main(int argc, char **argv) {
    plain = argc;
    flag->store(1, std::memory_order_release); // atomic
    plain += 2;
    while (flag->load(std::memory_order_acquire) == 0) // atomic too
        ;
    return plain;
}
"#;
    let rust = r#"
use std::sync::atomic::{AtomicUsize, Ordering};
static mut PLAIN: usize = 0;
#[inline(never)]
fn publish(flag: &AtomicUsize) -> usize {
    unsafe { PLAIN = 5 };
    flag.store(1, Ordering::Release); // atomic
    unsafe { PLAIN += 5 };
    flag.load(Ordering::Acquire) // atomic too
}
fn main() { let flag = AtomicUsize::new(0); std::process::exit(publish(&flag) as i32); }
"#;
    let shop = Workshop::new();
    let cases = [("a.cc", cpp, ["-g", "-O2"]), ("a.rs", rust, ["-g", "-Copt-level=2"])];
    for (file, text, options) in cases {
        let binary = shop.compile(file, text, &options);
        let lines = atomic_lines(&binary, &facts(&binary, &[]), file);
        assert_eq!(lines, [line_of(text, "// atomic"), line_of(text, "// atomic too")], "{file}");
    }
    // Not inlined: the operation is a function of its own.
    let text = "#include <atomic>\nint main() { std::atomic<bool> stop{false}; stop = true; }";
    let binary = shop.compile("b.cc", text, &["-g", "-O0"]);
    let assign = address(&binary, "_ZNSt6atomicIbEaSEb");
    let is_inside = |row: &(u64, u32)| row.0 <= assign && assign < row.0 + u64::from(row.1);
    assert!(facts(&binary, &[]).atomic.iter().any(is_inside));
}

#[test]
fn variables_of_atomic_type() {
    let text = r#"
#include <stdatomic.h>
_Atomic int ready;
struct { int plain; _Atomic long hits; } both;
_Atomic short many[4];
int plain;
int main(int argc, char **argv) {
    plain = argc;
    atomic_store_explicit(&ready, 1, memory_order_release); // ready
    both.plain = 2;
    both.hits = atomic_load_explicit(&both.hits, memory_order_relaxed) + 1; // hits
    atomic_store_explicit(&many[2], 7, memory_order_relaxed); // many
    return plain + both.plain;
}
"#;
    let shop = Workshop::new();
    for options in [&["-g", "-O2"][..], &["-g", "-O2", "-static"], &["-g", "-O2", "-no-pie"]] {
        let binary = shop.compile("t.c", text, options);
        let lines = atomic_lines(&binary, &facts(&binary, &[]), "t.c");
        let expected = ["// ready", "// hits", "// many"].map(|marker| line_of(text, marker));
        assert_eq!(lines, expected, "{options:?}");
    }
    let binary = shop.compile("t.c", text, &["-O2"]);
    assert!(facts(&binary, &[]).atomic.is_empty(), "nothing to know it from");

    // A type that only looks like one of the library's.
    let text = "namespace mine { template <class T> struct atomic { T value; }; }
        mine::atomic<int> plain; int main(int n, char **) { plain.value = n; return 0; }";
    let binary = shop.compile("t.cc", text, &["-g", "-O2"]);
    assert!(facts(&binary, &[]).atomic.is_empty());
}

#[test]
fn bad_files_get_a_sentence() {
    let shop = Workshop::new();
    let binary = shop.compile("p.c", "int main(void) { return 0; }", &["-g"]);
    let good = std::fs::read(&binary).unwrap();
    let check = |name: &str, bytes: &[u8], expected: &str| {
        let path = shop.path(name);
        std::fs::write(&path, bytes).unwrap();
        let request = FactsRequest { hooks: &[], runtime: &[], linked: &[] };
        let error = module_facts_from(&path, &request, &DebugSources::none()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected) && text.contains(name), "{text}");
        error
    };
    check("script", b"#!/bin/sh\n", "no ELF file");
    check("empty", b"", "no ELF file");
    check("short", &good[..40], "is damaged");
    let mut other = good.clone();
    other[4] = 1;
    check("narrow", &other, "32-bit");
    other = good.clone();
    other[18] = 183;
    let error = check("arm", &other, "another machine");
    assert!(matches!(error, SymbolError::Foreign { .. }));
    let request = FactsRequest { hooks: &[], runtime: &[], linked: &[] };
    let error = module_facts_from(&shop.path("none"), &request, &DebugSources::none()).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");
}

//! Names of code: functions, inlined functions, lines, wherever the debug information is.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Workshop, address, line_of, run, symboliser};
use raddle_symbols::{DebugSources, Frame, Symboliser, SymboliserOptions};
use std::path::Path;
use std::process::Command;

const C: &str = r#"
#include <stdio.h>
int total;
static inline __attribute__((always_inline)) void helper(int n) {
    total += n * 3; /* in helper */
}
__attribute__((noinline)) void worker(int n) {
    helper(n); /* the call */
}
int main(int argc, char **argv) {
    worker(argc);
    puts("done");
    return total;
}
"#;

fn load_base(binary: &Path) -> u64 {
    let headers = run(Command::new("readelf").args(["-lW"]).arg(binary));
    let load = headers.lines().find(|line| line.trim_start().starts_with("LOAD")).unwrap();
    let address = load.split_whitespace().nth(2).unwrap();
    u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap() & !0xfff
}

/// The place inside `worker` that came from `helper`, and what stands there.
fn inlined_frames(symbols: &mut Symboliser, binary: &Path) -> Vec<Frame> {
    let ranges = symbols.function_ranges(binary, "helper");
    assert!(!ranges.is_empty(), "no code of helper in {}", binary.display());
    let (start, end) = ranges[0];
    assert!(start < end);
    symbols.frames(binary, start)
}

fn check_inlined(frames: &[Frame]) {
    let names: Vec<_> = frames.iter().map(|f| f.function.as_deref().unwrap()).collect();
    assert_eq!(names, ["helper", "worker"]);
    assert!(frames[0].inlined && !frames[1].inlined);
    assert_eq!(frames[0].line, Some(line_of(C, "in helper")));
    assert_eq!(frames[1].line, Some(line_of(C, "the call")));
    assert!(frames.iter().all(|frame| frame.file.as_ref().unwrap().ends_with("p.c")));
    assert!(frames[1].column.is_some());
}

#[test]
fn inlined_functions_in_every_kind_of_executable() {
    let shop = Workshop::new();
    for options in [
        &["-g", "-O2"][..],
        &["-g", "-O0"],
        &["-g", "-O2", "-static"],
        &["-g", "-O2", "-no-pie"],
        &["-gdwarf-4", "-O2"],
        &["-gdwarf-5", "-O2", "-gz=zlib"],
    ] {
        let binary = shop.compile("p.c", C, options);
        let mut symbols = symboliser();
        check_inlined(&inlined_frames(&mut symbols, &binary));
        let main = symbols.frames(&binary, address(&binary, "main") - load_base(&binary));
        assert_eq!(main.len(), 1, "{options:?}");
        assert_eq!(main[0].function.as_deref(), Some("main"), "{options:?}");
        assert_eq!(main[0].line, Some(line_of(C, "int main")), "{options:?}");
        assert!(symbols.has_symbols(&binary) && symbols.build_id(&binary).is_some());
    }
    let fixed = shop.compile("p.c", C, &["-g", "-static"]);
    assert_ne!(load_base(&fixed), 0, "a fixed address is what this test is about");
}

#[test]
fn compressed_sections_of_other_kinds() {
    let shop = Workshop::new();
    let binary = shop.compile("p.c", C, &["-g", "-O2"]);
    for kind in ["zlib-gnu", "zstd"] {
        let compressed = shop.path(kind);
        let mut objcopy = Command::new("objcopy");
        objcopy.arg(format!("--compress-debug-sections={kind}")).arg(&binary).arg(&compressed);
        // Older binutils cannot do the one, newer ones may drop the other.
        if objcopy.status().unwrap().success() {
            check_inlined(&inlined_frames(&mut symboliser(), &compressed));
        }
    }
}

#[test]
fn debuginfod_is_asked_if_the_user_wants_it() {
    // The environment belongs to the whole process: a second one of this test does the asking.
    const BINARY: &str = "RADDLE_TEST_BINARY";
    if let Some(binary) = std::env::var_os(BINARY) {
        let sources = DebugSources { directories: vec![], ..DebugSources::default() };
        let mut symbols = Symboliser::new(SymboliserOptions { sources, cache: None });
        check_inlined(&inlined_frames(&mut symbols, Path::new(&binary)));
        return;
    }
    let shop = Workshop::new();
    let binary = shop.compile("p.c", C, &["-g", "-O2"]);
    let id = symboliser().build_id(&binary).unwrap();
    let debug = shop.path("downloaded");
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&binary).arg(&debug));
    run(Command::new("strip").arg(&binary));
    let finder = shop.path("debuginfod-find");
    let script =
        format!("#!/bin/sh\n[ \"$1 $2\" = \"debuginfo {id}\" ] && echo {}\n", debug.display());
    std::fs::write(&finder, script).unwrap();
    run(Command::new("chmod").arg("+x").arg(&finder));
    let ask = |urls: &str| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let path =
            format!("{}:{}", finder.parent().unwrap().display(), std::env::var("PATH").unwrap());
        child.args(["--exact", "debuginfod_is_asked_if_the_user_wants_it"]);
        child.env(BINARY, &binary).env("PATH", path).env("DEBUGINFOD_URLS", urls);
        child.output().unwrap().status.success()
    };
    assert!(ask("http://127.0.0.1:1"));
    assert!(!ask(""), "without addresses nobody is asked");
}

#[test]
fn a_separate_debug_file_beside_the_binary() {
    let shop = Workshop::new();
    let binary = shop.compile("p.c", C, &["-g", "-O2"]);
    shop.split_debug(&binary, &shop.path("p.debug"));
    check_inlined(&inlined_frames(&mut symboliser(), &binary));

    // Without a build-id only the checksum ties the two together.
    let binary = shop.compile("p.c", C, &["-g", "-O2", "-Wl,--build-id=none"]);
    let debug = shop.path("q.debug");
    shop.split_debug(&binary, &debug);
    check_inlined(&inlined_frames(&mut symboliser(), &binary));
    let mut bytes = std::fs::read(&debug).unwrap();
    bytes.push(0);
    std::fs::write(&debug, bytes).unwrap();
    let mut symbols = symboliser();
    assert!(symbols.function_ranges(&binary, "helper").is_empty(), "not its debug file");
    assert!(!symbols.has_symbols(&binary));
}

#[test]
fn a_debug_file_of_another_build_is_not_used() {
    let shop = Workshop::new();
    let binary = shop.compile("p.c", C, &["-g", "-O2"]);
    let other = shop.compile("p.c", &C.replace("* 3", "* 5"), &["-g", "-O1"]);
    let debug = shop.path("p.debug");
    shop.split_debug(&binary, &debug);
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&other).arg(&debug));
    assert!(!symboliser().has_symbols(&binary));
}

#[test]
fn a_debug_file_found_by_build_id() {
    let shop = Workshop::new();
    let binary = shop.compile("p.c", C, &["-g", "-O2"]);
    let id = symboliser().build_id(&binary).unwrap();
    let directory = shop.path(&format!("debug/.build-id/{}", &id[..2]));
    std::fs::create_dir_all(&directory).unwrap();
    let debug = directory.join(format!("{}.debug", &id[2..]));
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&binary).arg(&debug));
    run(Command::new("strip").arg(&binary));
    assert!(symboliser().function_ranges(&binary, "helper").is_empty());
    let sources = DebugSources { directories: vec![shop.path("debug")], debuginfod: None };
    let mut symbols = Symboliser::new(SymboliserOptions { sources, cache: None });
    check_inlined(&inlined_frames(&mut symbols, &binary));
}

#[test]
fn without_debug_information_the_symbol_table_is_left() {
    let shop = Workshop::new();
    for options in [&["-O2"][..], &["-O2", "-fcf-protection", "-Wl,-z,ibtplt"]] {
        let binary = shop.compile("p.c", C, options);
        check_without_debug_information(&binary);
    }
}

fn check_without_debug_information(binary: &Path) {
    let main = address(binary, "main");
    let mut symbols = symboliser();
    let frames = symbols.frames(binary, main + 1);
    let expected = Frame { function: Some("main".into()), ..Frame::default() };
    assert_eq!(frames, [expected]);
    assert!(symbols.has_symbols(binary));

    // The call of puts goes to a stub.
    let listing = run(Command::new("objdump").arg("-d").arg(binary));
    let label = listing.lines().find(|line| line.ends_with("<puts@plt>:")).unwrap();
    let stub = u64::from_str_radix(label.split_whitespace().next().unwrap(), 16).unwrap();
    assert_eq!(symbols.frames(binary, stub)[0].function.as_deref(), Some("puts@plt"));

    run(Command::new("strip").arg(binary));
    let mut symbols = symboliser();
    assert_eq!(symbols.frames(binary, main), [Frame::default()]);
    assert_eq!(symbols.frames(binary, stub)[0].function.as_deref(), Some("puts@plt"));
    assert!(!symbols.has_symbols(binary));
}

#[test]
fn what_cannot_be_read_has_one_empty_frame() {
    let mut symbols = symboliser();
    for path in ["/no/such/file", "linux-vdso.so.1", "/etc/passwd", "/"] {
        let path = Path::new(path);
        assert_eq!(symbols.frames(path, 0x10), [Frame::default()]);
        assert_eq!(symbols.variable(path, 0x10), None);
        assert_eq!(symbols.build_id(path), None);
        assert!(symbols.function_ranges(path, "main").is_empty());
    }
}

#[test]
fn cpp_and_rust_names_are_demangled() {
    let shop = Workshop::new();
    let text = "namespace ns { struct Counter { int n; __attribute__((noinline)) void bump(int by) { n += by; } }; }
        int main() { ns::Counter c{0}; c.bump(2); return c.n; }";
    for options in [&["-g", "-O2"][..], &["-O2"]] {
        let binary = shop.compile("n.cc", text, options);
        let mut symbols = symboliser();
        let bump = address(&binary, "_ZN2ns7Counter4bumpEi");
        let frames = symbols.frames(&binary, bump);
        assert_eq!(frames[0].function.as_deref(), Some("ns::Counter::bump(int)"), "{options:?}");
        for pattern in
            ["bump", "Counter::bump", "ns::Counter::bump", "ns::*", "_ZN2ns7Counter4bumpEi"]
        {
            let ranges = symbols.function_ranges(&binary, pattern);
            assert!(ranges.iter().any(|r| r.0 <= bump && bump < r.1), "{pattern} {options:?}");
        }
        assert!(symbols.function_ranges(&binary, "ump").is_empty());
    }

    let text = "mod inner { pub struct Counter<T>(pub T);
        impl Counter<u64> { #[inline(never)] pub fn bump(&mut self) { self.0 += 1; } } }
        fn main() { let mut c = inner::Counter(1u64); c.bump(); println!(\"{}\", c.0); }";
    for mangling in [&["-g", "-O"][..], &["-g", "-O", "-Csymbol-mangling-version=v0"]] {
        let binary = shop.compile("r.rs", text, mangling);
        let mut symbols = symboliser();
        let ranges = symbols.function_ranges(&binary, "inner::Counter::bump");
        assert_eq!(ranges.len(), 1, "{mangling:?}");
        let frames = symbols.frames(&binary, ranges[0].0);
        let name = frames.last().unwrap().function.clone().unwrap();
        assert!(name.starts_with("r::inner::Counter<") || name.starts_with("<r::inner::Counter<"));
        assert!(name.ends_with("::bump"), "{name}");
    }
}

#[test]
fn lines_mean_their_code() {
    let shop = Workshop::new();
    let binary = shop.compile("p.c", C, &["-g", "-O2"]);
    let mut symbols = symboliser();
    let line = line_of(C, "in helper");
    let ranges = symbols.function_ranges(&binary, &format!("p.c:{line}"));
    assert!(!ranges.is_empty());
    for (start, _) in ranges {
        assert_eq!(symbols.frames(&binary, start)[0].line, Some(line));
    }
    let absolute = format!("{}:{line}", shop.path("p.c").display());
    assert!(!symbols.function_ranges(&binary, &absolute).is_empty());
    assert!(symbols.function_ranges(&binary, "p.c:1").is_empty());
    assert!(symbols.function_ranges(&binary, "q.c:5").is_empty());
    assert!(symbols.function_ranges(&binary, "ap.c:5").is_empty());
}

#[test]
fn the_c_library_is_called_by_its_public_names() {
    let libc = common::libc();
    let lock = common::addresses(&libc, &["-D"], "pthread_mutex_lock")[0];
    let mut symbols = Symboliser::new(SymboliserOptions::default());
    let frames = symbols.frames(&libc, lock);
    assert_eq!(frames.last().unwrap().function.as_deref(), Some("pthread_mutex_lock"));
}

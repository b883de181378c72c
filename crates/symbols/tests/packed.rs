//! Debug information as distributions pack it: shared between files by dwz, or cut down to a symbol
//! table inside the stripped file.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Workshop, address, run, symboliser};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Two programs with much in common: what dwz moves to a third file.
fn program(name: &str) -> String {
    format!(
        "struct shared_by_both {{ long first, second; }};\n\
         struct shared_by_both table[8];\n\
         enum colours {{ RED, GREEN, BLUE, YELLOW, CYAN, MAGENTA, BLACK, WHITE }} colour;\n\
         static inline __attribute__((always_inline)) int inner(volatile int *x) {{ return *x + 1; }}\n\
         int {name}(volatile int *x) {{ table[*x].second = colour; return inner(x); }}\n\
         int main(void) {{ volatile int x = 0; return {name}(&x); }}\n"
    )
}

#[test]
fn what_dwz_moved_to_a_common_file_is_found() {
    let shop = Workshop::new();
    let mut debug_files: Vec<PathBuf> = Vec::new();
    let mut binaries = Vec::new();
    for name in ["left", "right"] {
        let binary = shop.compile(&format!("{name}.c"), &program(name), &["-g", "-O1"]);
        let function = address(&binary, name);
        let table = address(&binary, "table");
        let debug = shop.path(&format!("{name}.debug"));
        shop.split_debug(&binary, &debug);
        debug_files.push(debug);
        binaries.push((name, binary, function, table));
    }
    // `-M` is the name that the files will know the common one by; beside them.
    run(Command::new("dwz")
        .args(["-m", "common.debug", "-M", "common.debug"])
        .args(&debug_files)
        .current_dir(debug_files[0].parent().unwrap()));
    for (debug, (_, binary, ..)) in debug_files.iter().zip(&binaries) {
        let sections = run(Command::new("readelf").args(["-SW"]).arg(debug));
        assert!(sections.contains(".gnu_debugaltlink"), "dwz found nothing in common:\n{sections}");
        // The checksum of the link is that of the file before dwz.
        run(Command::new("objcopy").arg("--remove-section=.gnu_debuglink").arg(binary));
        run(Command::new("objcopy")
            .arg(format!("--add-gnu-debuglink={}", debug.display()))
            .arg(binary));
    }
    for (name, binary, function, table) in &binaries {
        let frames = symboliser().frames(binary, *function);
        assert_eq!(frames.last().unwrap().function.as_deref(), Some(*name), "{frames:?}");
        assert_eq!(frames.last().unwrap().line, Some(5), "{frames:?}");
        let variable = symboliser().variable(binary, table + 3 * 16 + 8).unwrap();
        assert_eq!(variable.name, "table[3].second");
        assert_eq!(variable.type_name.as_deref(), Some("struct shared_by_both[8]"));
    }
}

/// Packs a binary's symbol table into it as Fedora's `find-debuginfo` does.
fn pack_symbols(shop: &Workshop, binary: &Path) {
    let small = shop.path("small.debug");
    run(Command::new("objcopy").arg("--only-keep-debug").arg(binary).arg(&small));
    run(Command::new("strip").args(["--strip-debug"]).arg(&small));
    run(Command::new("strip").arg(binary));
    run(Command::new("xz").arg(&small));
    let packed = format!(".gnu_debugdata={}.xz", small.display());
    run(Command::new("objcopy").arg("--add-section").arg(packed).arg(binary));
}

#[test]
fn a_symbol_table_packed_into_a_stripped_file_is_read() {
    let shop = Workshop::new();
    let binary = shop.compile("left.c", &program("left"), &["-g", "-O1"]);
    let function = address(&binary, "left");
    pack_symbols(&shop, &binary);
    let frames = symboliser().frames(&binary, function);
    assert_eq!(frames[0].function.as_deref(), Some("left"));
    assert!(symboliser().has_symbols(&binary));
}

#[test]
fn functions_of_split_debug_information_are_found_beside_the_objects() {
    let shop = Workshop::new();
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let binary =
            shop.compile("left.c", &program("left"), &[version, "-O1", "-gsplit-dwarf", "-c"]);
        let linked = shop.path("linked");
        run(Command::new("cc").arg(&binary).arg("-o").arg(&linked));
        let sections = run(Command::new("readelf").arg("-SW").arg(&binary));
        assert!(sections.contains(".debug_addr"), "not split:\n{sections}");
        let function = address(&linked, "left");
        // Somewhere in the function is the code that was inlined.
        let depths: Vec<usize> =
            (0..40).map(|at| symboliser().frames(&linked, function + at).len()).collect();
        assert!(depths.contains(&2), "{version}: {depths:?}");
        let frames = symboliser().frames(&linked, function);
        assert_eq!(frames.last().unwrap().function.as_deref(), Some("left"));
        assert_eq!(frames.last().unwrap().line, Some(5));
    }
}

#[test]
fn functions_of_split_debug_information_are_found_in_a_package() {
    let shop = Workshop::new();
    // binutils packs the older form, LLVM both.
    let ways = [("-gdwarf-4", "dwp"), ("-gdwarf-4", "llvm-dwp"), ("-gdwarf-5", "llvm-dwp")];
    for (version, packer) in ways {
        let binary = shop.path("packed");
        let mut objects = Vec::new();
        for name in ["left", "right"] {
            let source = shop.path(&format!("{name}.c"));
            let text = program(name);
            let text = if name == "left" { text } else { text.replace("main", "other_main") };
            let text = if name == "left" { text } else { text.replace("table", "other_table") };
            let text =
                text.replace("colour;", &format!("{name}_colour;")).replace("= colour", "= 1");
            std::fs::write(&source, text).unwrap();
            let object = shop.path(&format!("{name}.o"));
            run(Command::new("cc")
                .args([version, "-O1", "-gsplit-dwarf", "-c"])
                .arg(&source)
                .arg("-o")
                .arg(&object));
            objects.push(object);
        }
        run(Command::new("cc").args(&objects).arg("-o").arg(&binary));
        let package = shop.path("packed.dwp");
        run(Command::new(packer).arg("-e").arg(&binary).arg("-o").arg(&package));
        for object in &objects {
            std::fs::remove_file(object.with_extension("dwo")).unwrap();
        }
        let depths = |binary: &Path, name: &str| -> Vec<usize> {
            let function = address(&binary.with_file_name("packed"), name);
            (0..40).map(|at| symboliser().frames(binary, function + at).len()).collect()
        };
        // By the name that was typed, and by the file's own.
        let link = shop.path("link");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&binary, &link).unwrap();
        for name in ["left", "right"] {
            for path in [&binary, &link] {
                let found = depths(path, name);
                assert!(found.contains(&2), "{version}, {packer}, {path:?}: {found:?}");
            }
            let frames = symboliser().frames(&binary, address(&binary, name));
            assert_eq!(frames.last().unwrap().function.as_deref(), Some(name));
            assert_eq!(frames.last().unwrap().line, Some(5));
        }
        std::fs::remove_file(&package).unwrap();
        assert!(!depths(&binary, "left").contains(&2), "without it there is nothing to find");
    }
}

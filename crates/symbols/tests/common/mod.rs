//! Small programs compiled on the spot, and binutils' opinion of them to compare with.

#![allow(dead_code)]

use raddle_model::{Hook, Role, Success};
use raddle_symbols::{DebugSources, Symboliser, SymboliserOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A directory to build in, gone at the end of the test.
pub struct Workshop {
    directory: TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        Workshop { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles a source text; its name's ending says the language.
    pub fn compile(&self, name: &str, text: &str, options: &[&str]) -> PathBuf {
        let source = self.path(name);
        std::fs::write(&source, text).unwrap();
        let output = self.path(&format!("{name}.{}.bin", options.join("")).replace('/', "_"));
        let compiler = match source.extension().and_then(|e| e.to_str()) {
            Some("c") => "cc",
            Some("cc") => "c++",
            Some("rs") => "rustc",
            other => panic!("no compiler for {other:?}"),
        };
        run(Command::new(compiler).arg(&source).args(options).arg("-o").arg(&output));
        output
    }

    /// Moves the debug information of a binary to a file of this name and leaves a link.
    pub fn split_debug(&self, binary: &Path, debug: &Path) {
        run(Command::new("objcopy").arg("--only-keep-debug").arg(binary).arg(debug));
        run(Command::new("strip").arg(binary));
        let link = format!("--add-gnu-debuglink={}", debug.display());
        run(Command::new("objcopy").arg(link).arg(binary));
    }
}

/// Runs a program that must succeed; its standard output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The address `nm` gives for a symbol.
pub fn address(binary: &Path, name: &str) -> u64 {
    addresses(binary, &[], name)[0]
}

/// All addresses `nm` gives for a symbol, whatever its version.
pub fn addresses(binary: &Path, options: &[&str], name: &str) -> Vec<u64> {
    let listing = run(Command::new("nm").args(options).arg(binary));
    let symbols = listing.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (address, _, symbol) = (fields.next()?, fields.next()?, fields.next()?);
        let plain = symbol.split('@').next()?;
        (plain == name).then(|| u64::from_str_radix(address, 16).unwrap())
    });
    let mut found: Vec<u64> = symbols.collect();
    found.sort_unstable();
    found.dedup();
    assert!(!found.is_empty(), "no {name} in {}", binary.display());
    found
}

/// What `objdump` says of the instruction at an address.
pub fn instruction(binary: &Path, address: u64) -> String {
    let start = format!("--start-address={address:#x}");
    let stop = format!("--stop-address={:#x}", address + 16);
    let mut objdump = Command::new("objdump");
    let listing = run(objdump.args(["-d", "--no-show-raw-insn", &start, &stop]).arg(binary));
    let prefix = format!("{address:x}:");
    let line = listing.lines().map(str::trim).find(|line| line.starts_with(&prefix));
    line.unwrap_or_else(|| panic!("no instruction at {address:#x}")).to_owned()
}

/// Looks nowhere but in and beside the file, so that what is installed does not matter.
pub fn symboliser() -> Symboliser {
    Symboliser::new(SymboliserOptions { sources: DebugSources::none(), cache: None })
}

pub fn hook(functions: &[&str], inlined: &[&str]) -> Hook {
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    Hook {
        library: "test".into(),
        functions: owned(functions),
        inlined: owned(inlined),
        role: Role::Function,
        success: Success::Always,
        opaque: false,
        callback: None,
        arguments: vec![],
    }
}

/// The C library this test runs with.
pub fn libc() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("/libc.so.6")).unwrap();
    PathBuf::from(line.split_whitespace().last().unwrap())
}

/// The line of the source on which a marker stands.
pub fn line_of(text: &str, marker: &str) -> u32 {
    text.lines().position(|line| line.contains(marker)).unwrap() as u32 + 1
}

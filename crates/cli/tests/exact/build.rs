//! Compiling a program once per change of it.

use super::program::Program;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary of a program, built as the build line says, or an earlier one of the same source.
pub fn build(program: &Program, how: &str) -> PathBuf {
    let name = program.source.file_name().unwrap().to_string_lossy().into_owned();
    let stem = name.replace('.', "_");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exact");
    std::fs::create_dir_all(&directory).unwrap();
    let binary = directory.join(format!("{stem}-{:016x}", fingerprint(program, how)));
    if binary.exists() {
        return binary;
    }
    // Two tests may want the same binary at once: each builds its own, and the last one stays.
    let scratch = tempfile::tempdir_in(&directory).unwrap();
    let made = scratch.path().join(&stem);
    let mut words = how.split_whitespace();
    let compiler = words.next().unwrap_or("gcc");
    // Libraries come after the objects that need them.
    let (late, early): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with("-l"));
    let output = Command::new(compiler)
        .args(early)
        .arg(&program.source)
        .arg("-o")
        .arg(&made)
        .args(late)
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: `{how}` failed:\n{said}");
    std::fs::rename(&made, &binary).unwrap();
    binary
}

/// Of everything the binary depends on, but the compiler's version.
fn fingerprint(program: &Program, how: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    how.hash(&mut hasher);
    program.text.hash(&mut hasher);
    program.source.hash(&mut hasher);
    let directory = program.source.parent().unwrap();
    let mut headers: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "h"))
        .collect();
    headers.sort();
    for header in headers {
        std::fs::read(header).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}

//! Compiling the programs, each way once: binaries are kept under `target/`, by the content of what
//! they are made of.

use super::program::{Program, corpus};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// One way to build a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub optimised: bool,
    pub is_static: bool,
    pub debug: bool,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = if self.optimised { "O2" } else { "O0" };
        let linkage = if self.is_static { "static" } else { "dynamic" };
        write!(f, "{level} {linkage}{}", if self.debug { "" } else { " stripped" })
    }
}

/// The ways of the gating tier, or all.
pub fn ways(full: bool) -> Vec<Way> {
    let mut ways = Vec::new();
    for (is_static, debug) in [(false, true), (true, true), (false, false), (true, false)] {
        for optimised in [false, true] {
            ways.push(Way { optimised, is_static, debug });
        }
    }
    ways.truncate(if full { ways.len() } else { 2 });
    ways
}

/// The binary, or what the compiler said.
pub fn build(program: &Program, way: Way) -> Result<PathBuf, String> {
    let words = command(program, way);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
    let stem = program.name.replace(['/', '.'], "-");
    let binary = directory.join(format!("{stem}-{:016x}", fingerprint(program, &words, way)));
    if binary.exists() {
        return Ok(binary);
    }
    let scratch = tempfile::tempdir_in(&directory).map_err(|e| e.to_string())?;
    let made = scratch.path().join("made");
    run(Command::new(&words[0]).args(&words[1..]).arg(&program.source).arg("-o").arg(&made))?;
    if !way.debug {
        run(Command::new("strip").arg("--strip-debug").arg(&made))?;
    }
    std::fs::rename(&made, &binary).map_err(|e| e.to_string())?;
    Ok(binary)
}

/// The compiler and its options. A stripped program is the same program, stripped afterwards, so that
/// its code is that of the one with debug information.
fn command(program: &Program, way: Way) -> Vec<String> {
    let language = program.source.extension().and_then(|e| e.to_str()).unwrap_or("");
    let support = corpus().join("support");
    let mut words: Vec<String> = match (&program.build, language) {
        (Some(build), _) => build.split_whitespace().map(str::to_owned).collect(),
        (None, "c") => vec!["gcc".to_owned()],
        (None, "cc") => vec!["g++".to_owned()],
        (None, _) => vec!["rustc".to_owned()],
    };
    if language == "rs" {
        let level = if way.optimised { "opt-level=2" } else { "opt-level=0" };
        let linkage =
            if way.is_static { "target-feature=+crt-static" } else { "target-feature=-crt-static" };
        let options = ["--edition=2024", "-C", "debuginfo=2", "-C", level, "-C", linkage];
        words.extend(options.map(str::to_owned));
        return words;
    }
    let standard = if language == "c" { "-std=gnu17" } else { "-std=c++20" };
    let level = if way.optimised { "-O2" } else { "-O0" };
    words.extend(["-g", "-pthread", standard, level].map(str::to_owned));
    words.push(format!("-I{}", support.display()));
    if way.is_static {
        words.push("-static".to_owned());
    }
    words
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// Of everything the binary depends on, but the compiler's version.
fn fingerprint(program: &Program, words: &[String], way: Way) -> u64 {
    static SUPPORT: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let support = SUPPORT.get_or_init(|| {
        let entries = std::fs::read_dir(corpus().join("support")).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| std::fs::read(file).unwrap()).collect()
    });
    let mut hasher = DefaultHasher::new();
    (words, &program.text, &program.source, support, way.debug).hash(&mut hasher);
    hasher.finish()
}

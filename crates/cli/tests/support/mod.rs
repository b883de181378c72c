//! Running the command as a user does: a scratch directory, programs compiled there, output
//! captured.
//!
//! `RADDLE_BIN` names the command under test (with its probe and engine beside it); otherwise it is
//! the one cargo has just built.

#![allow(dead_code)] // Each test file uses its part.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A scratch directory to compile and run in.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Scratch(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Compiles C source, by default with `-g -O1 -pthread`.
    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let file = self.put(&format!("{name}.c"), source);
        let program = self.path(name);
        let made = Command::new("gcc")
            .args(["-g", "-O1", "-pthread"])
            .args(flags)
            .arg("-o")
            .args([&program, &file])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        program
    }

    /// `raddle events …`, run here, with a time limit so that a hang is a failure.
    pub fn events(&self, arguments: &[&str], program: &[&dyn AsRef<OsStr>]) -> Ran {
        let output = self.command(arguments, program).output().unwrap();
        Ran::new(output)
    }

    /// The same, not yet started.
    pub fn command(&self, arguments: &[&str], program: &[&dyn AsRef<OsStr>]) -> Command {
        let mut command = Command::new(raddle());
        command.arg("events");
        if !arguments.contains(&"--timeout") {
            command.args(["--timeout", "60s"]);
        }
        command.args(arguments).arg("--").args(program).current_dir(self.0.path());
        command.stdin(Stdio::null());
        command
    }

    /// The events as JSON, and what else happened.
    pub fn json(&self, arguments: &[&str], program: &[&dyn AsRef<OsStr>]) -> (Vec<Value>, Ran) {
        let file = self.path("events.jsonl");
        let mut all = vec!["--format", "json", "--output", file.to_str().unwrap()];
        all.extend_from_slice(arguments);
        let ran = self.events(&all, program);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (events, ran)
    }
}

/// What a run of the command left.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn new(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code, showing what was said if it is another.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// The command under test.
pub fn raddle() -> PathBuf {
    std::env::var_os("RADDLE_BIN").map_or_else(|| env!("CARGO_BIN_EXE_raddle").into(), Into::into)
}

/// Is the probe beside the command? A command that is named must have one; of a plain `cargo
/// test` that is not asked.
pub fn has_probe() -> bool {
    let home = raddle();
    let home = home.parent().unwrap_or(Path::new("/"));
    let there = [home.join("libraddle_probe.so"), home.join("../lib/raddle/libraddle_probe.so")]
        .iter()
        .any(|path| path.exists());
    assert!(there || std::env::var_os("RADDLE_BIN").is_none(), "no probe beside {home:?}");
    if !there {
        eprintln!("skipped: there is no probe beside the command; `./dev build` makes it");
    }
    there
}

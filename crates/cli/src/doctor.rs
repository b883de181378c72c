//! `raddle doctor`: can this machine do it? What is missing is said with what to do about it.

use crate::failure::Failure;
use clap::Args;
use raddle_execute::EngineFiles;
use std::path::Path;
use std::process::{Command, Stdio};

/// Checks whether this machine has what Raddle needs
///
/// Exits with 0 if it has, with 1 if something is missing. Remarks do not count.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Can this machine do it?
      raddle doctor

  In a script
      raddle doctor > /dev/null || echo 'Raddle cannot run here'")]
pub struct Doctor {}

/// What was looked at, and what came of it.
enum Answer {
    Good(String),
    /// Worth knowing, and no obstacle.
    Remark(String),
    Missing(String),
}
use Answer::{Good, Missing, Remark};

impl Doctor {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let checks = [
            ("machine", machine()),
            ("engine", engine()),
            ("address space", address_space()),
            ("run directory", directory()),
            ("a program", program()),
            ("processors", processors()),
            ("source lines", debug_information()),
        ];
        let mut missing = 0;
        for (what, answer) in checks {
            let (sign, text) = match answer {
                Good(text) => ("ok      ", text),
                Remark(text) => ("remark  ", text),
                Missing(text) => {
                    missing += 1;
                    ("MISSING ", text)
                }
            };
            println!("{sign} {what}: {text}");
        }
        if missing > 0 {
            println!("\nRaddle will not work here until what is missing is there.");
        }
        Ok(u8::from(missing > 0))
    }
}

fn machine() -> Answer {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Good(format!("Linux {} on x86-64", kernel.trim())),
        (system, machine) => {
            Missing(format!("this is {system} on {machine}; Raddle watches Linux x86-64 programs"))
        }
    }
}

fn engine() -> Answer {
    match EngineFiles::find(true) {
        Ok(files) => Good(files.engine.display().to_string()),
        Err(error) => Missing(format!("{error}; unpack the whole archive, or ./dev build")),
    }
}

/// The shadow is reserved, not used: a limit on address space is hit long before memory is.
fn address_space() -> Answer {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max address space"));
    match line.and_then(|line| line.split_whitespace().nth(3)) {
        Some("unlimited") | None => Good("unlimited".into()),
        Some(limit) => Missing(format!("limited to {limit} bytes; `ulimit -v unlimited` first")),
    }
}

fn directory() -> Answer {
    let here = crate::settings::here();
    let probe = here.join(format!(".raddle-doctor-{}", std::process::id()));
    match std::fs::create_dir(&probe) {
        Ok(()) => {
            let _ = std::fs::remove_dir(&probe);
            Good(format!("{}/.raddle can be written", here.display()))
        }
        Err(error) => {
            Remark(format!("{} cannot be written ({error}); use --out DIR", here.display()))
        }
    }
}

/// The proof of the pudding: a program that every machine has, in a run of its own.
fn program() -> Answer {
    let Ok(exe) = std::env::current_exe() else {
        return Missing("this command does not know where it is".into());
    };
    let out = std::env::temp_dir().join(format!("raddle-doctor-{}", std::process::id()));
    let ran = Command::new(exe)
        .args(["run", "--quiet", "--timeout", "60s", "--out"])
        .arg(&out)
        .args(["--", "/bin/true"])
        .env_remove("RADDLE_CONFIG")
        .stdin(Stdio::null())
        .output();
    let _ = std::fs::remove_dir_all(&out);
    match ran {
        Ok(output) if output.status.success() => {
            Good("/bin/true was watched from start to end".into())
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Missing(format!("/bin/true could not be watched: {}", said.trim()))
        }
        Err(error) => Missing(format!("/bin/true could not be watched: {error}")),
    }
}

fn processors() -> Answer {
    match std::thread::available_parallelism().map(usize::from) {
        Ok(1) => {
            Remark("1: threads take turns, so fewer races happen; predicted ones are found".into())
        }
        Ok(n) => Good(n.to_string()),
        Err(error) => Remark(error.to_string()),
    }
}

/// Nothing needs it, but the C library's own functions get no names without.
fn debug_information() -> Answer {
    let installed = Path::new("/usr/lib/debug/.build-id").exists();
    match installed || std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty()) {
        true => Good("debug information of system libraries is there".into()),
        false => Remark(
            "compile your program with -g; for lines inside system libraries install their debug \
             packages (libc6-dbg)"
                .into(),
        ),
    }
}

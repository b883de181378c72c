//! `cargo raddle …`: hands over to `raddle cargo …` beside it, where the work is done.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo calls `cargo-raddle raddle test …`.
    let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "raddle") {
        arguments.remove(0);
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("raddle")));
    let raddle = beside.filter(|path| path.is_file()).unwrap_or_else(|| "raddle".into());
    let error = Command::new(&raddle).arg("cargo").args(arguments).exec();
    eprintln!("cargo-raddle: starting {}: {error}", raddle.display());
    ExitCode::from(125)
}

//! Processes that are started for a command and end with it, also when it is killed: the kernel is asked for that
//! by the child itself, before it becomes what was wanted.

use crate::failure::Failure;
use clap::Args;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A command that ends with this one. It must be waited for by the thread that starts it.
pub fn command(program: impl AsRef<OsStr>) -> Result<Command, Failure> {
    let ours = std::env::current_exe().map_err(Failure::during("finding our own command"))?;
    let mut command = Command::new(ours);
    command.args(["as-child", &std::process::id().to_string(), "--"]).arg(program);
    Ok(command)
}

/// The same for our own command.
pub fn ours() -> Result<Command, Failure> {
    command(std::env::current_exe().map_err(Failure::during("finding our own command"))?)
}

/// Becomes another program, one that ends with the process that started it.
#[derive(Debug, Args)]
pub struct AsChild {
    /// The process to end with
    parent: u32,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl AsChild {
    /// Returns only if that cannot be.
    pub fn run(&self) -> Result<u8, Failure> {
        let Some((name, rest)) = self.program.split_first() else { return Ok(0) };
        if !raddle_execute::end_with_parent(self.parent) {
            return Ok(raddle_execute::EXIT_FAILED);
        }
        let error = Command::new(name).args(rest).exec();
        Err(Failure::during(format_args!("running {}", name.display()))(error))
    }
}

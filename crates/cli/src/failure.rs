//! What goes wrong in the command: one sentence on standard error and an exit code.

use crate::near_file::{near_command, near_file};
use raddle_execute::{EXIT_FAILED, ExecuteError, TargetError};
use std::path::Path;
use std::process::ExitCode;

/// Why a subcommand did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The execution failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// There is nothing to run.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A hook file is wrong.
    #[error(transparent)]
    Hooks(#[from] raddle_hooks::HookError),
    /// Anything else, as a sentence.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Gives an error its context.
    pub fn during<E: std::fmt::Display>(what: impl std::fmt::Display) -> impl FnOnce(E) -> Self {
        move |error| Failure::Other(format!("{what}: {error}"))
    }

    /// The same for a file that may not be there: the one that was meant is named.
    pub fn reading<E: std::fmt::Display>(
        what: impl std::fmt::Display,
        file: &Path,
    ) -> impl FnOnce(E) -> Self {
        let near = near_file(file);
        move |error| Failure::Other(format!("{what}: {error}{near}"))
    }

    /// Says it, and gives the exit code.
    pub fn report(self) -> ExitCode {
        let near = match &self {
            Failure::Target(error) | Failure::Execute(ExecuteError::Target(error)) => near(error),
            _ => String::new(),
        };
        eprintln!("raddle: {self}{near}");
        ExitCode::from(match &self {
            Failure::Execute(error) => error.exit_code(),
            Failure::Target(error) => error.exit_code(),
            Failure::Hooks(_) | Failure::Other(_) => EXIT_FAILED,
        })
    }
}

/// The program that was meant instead of one that is not there.
fn near(error: &TargetError) -> String {
    match error {
        TargetError::NotFound { why, .. } if why.contains("did you mean") => String::new(),
        TargetError::NotFound { program, .. } if program.components().count() == 1 => {
            near_command(program)
        }
        TargetError::NotFound { program, .. } => near_file(program),
        TargetError::NotExecutable { .. } => String::new(),
    }
}

//! What goes wrong in the command: one sentence on standard error and an exit code.

use raddle_execute::{EXIT_FAILED, ExecuteError, TargetError};
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

    /// Says it, and gives the exit code.
    pub fn report(self) -> ExitCode {
        eprintln!("raddle: {self}");
        ExitCode::from(match &self {
            Failure::Execute(error) => error.exit_code(),
            Failure::Target(error) => error.exit_code(),
            Failure::Hooks(_) | Failure::Other(_) => EXIT_FAILED,
        })
    }
}

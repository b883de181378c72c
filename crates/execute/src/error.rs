//! What can go wrong that is not the target's doing, each with the exit code the design gives it.

use crate::target::TargetError;
use std::io;
use std::path::PathBuf;

/// Exit code: the time limit was exceeded.
pub const EXIT_TIMED_OUT: u8 = 124;
/// Exit code: Raddle itself failed.
pub const EXIT_FAILED: u8 = 125;

/// Why an execution gave no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// There is nothing to run, or nothing that can be run.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Our own libraries are not where they should be.
    #[error("cannot find {what}; looked for {}; `./dev build` makes it", list(.looked))]
    Missing {
        /// "the engine" or "the probe".
        what: &'static str,
        /// Every path tried.
        looked: Vec<PathBuf>,
    },
    /// A path that the engine's option syntax cannot carry.
    #[error("{path}: {why}", path = .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        why: &'static str,
    },
    /// The system refused something we need.
    #[error("{what}: {error}")]
    System {
        /// What we were doing.
        what: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The engine or the probe failed inside the target: the target's own end is unknown.
    #[error("Raddle failed inside the target, process {process}: {what}")]
    Inside {
        /// The process.
        process: u32,
        /// What is known, and where.
        what: String,
    },
}

impl ExecuteError {
    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        match self {
            ExecuteError::Target(error) => error.exit_code(),
            ExecuteError::Missing { .. }
            | ExecuteError::Path { .. }
            | ExecuteError::System { .. }
            | ExecuteError::Inside { .. } => EXIT_FAILED,
        }
    }

    /// Gives a system error its context: `.map_err(ExecuteError::during("reading x"))`.
    pub(crate) fn during<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |error| ExecuteError::System { what, error: error.into() }
    }
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    names.join(", ")
}

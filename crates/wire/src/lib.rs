//! What the command and the probe say to each other.
//!
//! - [`options`]: what the command asks of the probe, as a file the probe reads at start.
//! - [`facts`]: what the probe must know of a module, made by the command, cached, mapped.
//! - [`log`]: what the probe saw, an append-only file that survives the target's death.
//! - [`debug`]: why the target stands and how it goes on, while a debugger is attached.
//! - [`serve`]: what is said between the command and a target that serves many executions.
//!
//! Each format opens with a magic and a version; a reader meeting another version says so in a
//! sentence. There is no socket and no descriptor in the target: the log is a shared mapping, and
//! requests and answers pass through its header. (A server has descriptors, its copies have not.)

pub mod debug;
pub mod facts;
pub mod log;
pub mod options;
pub mod serve;

/// What can be wrong with a file of ours.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WireError {
    /// Not a file of this kind at all.
    #[error("not a Raddle {0} file")]
    NotOurs(&'static str),
    /// Written by another version.
    #[error("this {what} file has version {found}; this Raddle reads version {expected}")]
    Version {
        /// The kind of file.
        what: &'static str,
        /// Its version.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// Shorter than it says it is, or with an impossible number in it.
    #[error("damaged {0} file: {1}")]
    Damaged(&'static str, String),
}

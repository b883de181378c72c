//! Serves gdb's remote protocol from a target that the probe stops.
//!
//! The probe says why the target stands and has every thread's registers; it is told when to go on and
//! where to stop next ([`mailbox`]). Memory is the kernel's to give ([`memory`]). What gdb must know
//! to find symbols, the auxiliary vector and the list of libraries, is read from the target's memory,
//! because the kernel knows only the engine that has loaded the program ([`auxv`], [`libraries`]).
//! [`debuggee`] puts it together for the crate `gdbstub`, which speaks the protocol; [`session`] is
//! one gdb, from its connection to its end.

mod amd64;
mod auxv;
mod debuggee;
mod libraries;
mod line;
mod listener;
mod mailbox;
mod memory;
mod session;
mod signals;

pub use listener::{Connection, Listener};
pub use session::{Farewell, Session, kill};

use std::sync::{Arc, Mutex, PoisonError};

/// How the target ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this code.
    Exited(u8),
    /// By this signal, as Linux numbers it.
    Killed(i32),
}

/// Whether the target has ended: who supervises it says so, the session hears it.
#[derive(Debug, Clone, Default)]
pub struct Ending(Arc<Mutex<Option<End>>>);

impl Ending {
    /// It has.
    pub fn tell(&self, end: End) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    /// How, if it has.
    pub fn heard(&self) -> Option<End> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What can be wrong, beside the target.
#[derive(Debug, thiserror::Error)]
pub enum GdbError {
    /// The system refuses.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The probe does not speak our language.
    #[error(transparent)]
    Wire(#[from] raddle_wire::WireError),
    /// The target's start was not found.
    #[error("the target's auxiliary vector is not where the kernel says")]
    NoAuxv,
}

impl GdbError {
    /// For `map_err`.
    fn during(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> GdbError {
        let what = what.into();
        move |source| GdbError::System { what, source }
    }
}

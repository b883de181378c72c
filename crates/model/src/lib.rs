//! The vocabulary of Raddle, shared by every other crate: who (threads), where (modules and
//! places), what (events), and which functions mean what (hooks). No I/O, no unsafe, no engine.
//!
//! Everything an analyser or a policy ever learns of a program is an [`event::Event`]; everything
//! a hook file can say is a [`hook::Hook`].

pub mod clock;
pub mod demangled;
pub mod depends;
pub mod event;
pub mod finding;
pub mod format;
pub mod hook;
pub mod ids;
pub mod lockset;

pub use event::{AccessKind, Event, EventKind, Family, Ignored, LockMode, SyncObject};
pub use hook::{Dependences, Expr, Hook, Role, Success};
pub use ids::{Address, ModuleId, Place, StackId, ThreadId};

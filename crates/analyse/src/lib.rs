//! Analysers: pure state machines over events. Knows the model only.
//!
//! This crate holds the *plain* data race detectors: exact, and written to be read. What runs inside
//! a program at speed is a specialisation of them with the same meaning, tested against them.
//!
//! ```text
//! Event -> Execution: held   (which locks, HeldLocks)          -> Hybrid        -> Finding
//!                     order  (full and weak order, Orders)        HelgrindPlus
//!                     touch  (segments, one record per access)
//!                     handover (what critical sections pass on)
//!                     withdrawn (what they take from under each other)
//!                     lock_order (cycles of locks, LockOrder)   ----------------> Finding
//! ```
//!
//! An event goes in, findings accumulate; nothing else is read or written, so a test is a list of
//! events. Start with [`order`], then [`hybrid`]; for users there are `docs/analysers/data-race.md`,
//! `docs/analysers/helgrind-plus.md` and `docs/analysers/deadlock.md`.

pub mod detector;
pub mod execution;
pub mod fast;
pub mod findings;
pub mod handover;
pub mod held;
pub mod helgrind;
pub mod hybrid;
mod latch;
pub mod lock_order;
pub mod order;
mod padded;
pub mod shadow;
pub mod stacks;
pub mod touch;
pub mod unjudged;
pub mod withdrawn;

pub use detector::{Analyser, Detector, DetectorKind, Options};
pub use helgrind::MsmLength;
pub use hybrid::History;
pub use order::ConditionRule;

//! Findings: from what a detector says of places and addresses to what a person reads.
//!
//! [`Gathered`] listens while the target runs. In the end [`Gathered::report`] gives everything its
//! names, makes one finding of those that are the same seen from the program's own code
//! ([`group`]), leaves out what was not asked for ([`filter`]) and puts the rest in order. What
//! comes out is a [`Report`]: `report.json` as it stands in `docs/run.md`, and the one source of
//! every rendering, [`text`] among them.

mod access;
mod baseline;
mod build;
mod entry;
mod filter;
mod fingerprint;
pub mod forms;
mod gather;
mod group;
pub mod html;
pub mod interleaving;
mod location;
mod merge;
mod party;
mod rate;
mod runtime;
mod schema;
mod stack;
pub mod suppress;
pub mod text;
#[cfg(test)]
mod typed;

pub use baseline::Baseline;
pub use build::Circumstances;
pub use entry::Entry;
pub(crate) use fingerprint::fingerprint;
pub use stack::stack_of;
pub(crate) use stack::with_source;

pub use filter::{Filter, Judgement, Selector};
pub use gather::{Block, Gathered, Local, Looked};
pub use merge::merge;
pub use party::{Deed, Party, Wait, Wanted};
pub use rate::{Interval, Rate};
pub use schema::{
    Access, Classification, Confirmation, Effect, Failure, Finding, Frame, Harm, Location,
    LocationKind, Lock, Module, Order, Outcome, Rebuilt, Report, ReportError, SCHEMA, Side,
    Summary, Target, Thread, Tool, Under, Verdict,
};

use crate::names::Symbols;
pub use suppress::Suppressions;

/// What a report asks for beyond [`Symbols`].
pub trait Library: Symbols {
    /// The build-id of a module, in hexadecimal.
    fn build_id(&mut self, module: &str) -> Option<String>;

    /// The whole variable around an offset of a module.
    fn extent(&mut self, module: &str, offset: u64) -> Option<Extent>;

    /// The thread-local variable of a program that lies so many bytes below a thread's pointer, and
    /// the whole of it.
    fn thread_local(&mut self, _program: &str, _below: u64) -> Option<(String, Extent)> {
        None
    }

    /// A line of a source file, from 1, if the file can be read.
    fn source_line(&mut self, file: &str, line: u32) -> Option<String>;
}

/// A variable as a stretch of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from its start to what was asked for.
    pub within: u64,
    /// Bytes it takes.
    pub size: u64,
}

//! The hybrid detector at speed: the meaning of [`crate::hybrid`], for threads that run in parallel.
//!
//! ```text
//! inserted code   own cell == current segment?  nothing new             (probe, a few instructions)
//! protocol        stamp the own cell, then look at the others'          (no lock, [`protocol`])
//! judge           an unordered one: locks, kinds -> finding             (a lock, rare)
//! ```
//!
//! What is known of a location is spread over *planes*, for each slot: its last write and its last
//! read, and of each the one before, if that is not stood for by the last. A thread writes the planes of its own slot only (all
//! beyond the first few share one, cell by cell: [`crowd`]), so threads share no shadow they
//! do not share memory for, and nothing is lost when two of them touch a location at once: each
//! stamps first and looks then, so at least one sees the other ([`protocol`]; the order of the two
//! steps is what `tests/analyse/window.rs` tests).
//!
//! A [`cell::Cell`] says *when* (a tick of the slot's chain), which of the granule's bytes, and *what*, the
//! number of an interned [`access::Description`]: place, stack, kind. In this detector a tick
//! ends where the lock set changes, too, so a tick is a segment, and the number of a lock set is all
//! that is kept of one.
//!
//! A granule whose bytes are touched one by one, in other segments or by ever other instructions, is split: each byte has a cell of its
//! own ([`strips`]).
//!
//! Two things do not fit into planes and live behind the lock ([`special`]): an access that must be
//! remembered though newer ones of its slot took its places (its locks were fewer, or its bytes
//! others), and locations
//! that were accessed atomically, every access to which may synchronise.
//!
//! What a critical section touched, by which waits are told whose signals they waited for, is found
//! in the thread's [`journal`].
//!
//! Where this differs from the plain detector:
//! - a slot forgets its accesses after 2^26 segments;
//! - inserted code compares 24 bits of a tick: what a thread touches again exactly 2^24 segments later, or
//!   twice or three times as many, is left out;
//! - of a thread's own stack the newest read and write are remembered, whatever locks older ones held;
//! - the crowd ([`crowd`]) forgets after 2^24 segments, and with it what its members do until each begins its
//!   next one; beyond [`crowd::MEMBERS`] of them at once, some count as one thread;
//! - of a granule for which the crowd can have no more rooms (8 million are open), what its later members do is
//!   looked at and not remembered;
//! - the probe's assembly looks at others a few accesses late: what it has not looked for when the process is killed outright is
//!   lost;
//! - with as many chains as there are slots, a new thread goes on in the chain of one that ended, if there is one, and is
//!   taken to come after it;
//! - a thread that another has taken a lock from learns so at once, but the probe's assembly, for what
//!   it knows already, only at the thread's next event;
//! - who touches bytes one by one while another gives the memory back may be taken for somebody who touched other memory, if its
//!   strip ([`strips`]) belongs to that by then: thousands of others are used before it;
//! - of a block that lay where a freed one lies, and was longer by less than a granule, it may be forgotten that its end was freed, too;
//! - two threads that give one block back at the very same moment may both find that nobody has;
//! - of a freed block the first [`detector::FREED`] bytes are checked and remembered as freed, not all;
//! - a critical section with more than [`journal::LENGTH`] new accesses is not told apart by them.

pub mod access;
pub mod cell;
pub mod crowd;
pub mod detector;
mod inhabited;
pub mod journal;
pub mod protocol;
pub mod special;
pub mod standing;
pub mod strips;

pub use access::{AccessId, Description};
pub use cell::Cell;
pub use crowd::Crowd;
pub use detector::{FastHybrid, Keeping, Outcome, Simply};
pub use journal::Journal;
pub use protocol::{Planes, Side};
pub use standing::Standing;

/// How many slots have planes, at most. All but the last, which is the crowd's, are one chain's each.
pub const SLOTS: usize = 29;

//! A scheduling point and what a policy makes of it.

use raddle_model::{Address, Place, ThreadId};
use std::fmt;

/// Decides who runs.
pub trait Policy: fmt::Debug + Send {
    /// Who runs until the next scheduling point. [`Decision::Run`] must name a candidate.
    fn choose(&mut self, point: &Point<'_>) -> Decision;

    /// Where the execution left the schedule it was to repeat, if it did.
    fn divergence(&self) -> Option<&crate::Divergence> {
        None
    }
}

/// Where a policy is asked.
#[derive(Debug, Clone, Copy)]
pub struct Point<'a> {
    /// Who ran last; absent when it ended.
    pub current: Option<ThreadId>,
    /// Who could run, in the order of their numbers; never empty.
    pub runnable: &'a [Candidate],
    /// Somebody else becomes runnable if only time passes: [`Decision::Wait`] is allowed.
    pub can_wait: bool,
    /// Who that is, where it is plausible that all who could run are so slow that it comes first.
    pub sleeper: Option<ThreadId>,
}

/// A thread that could run, and what it is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Who.
    pub thread: ThreadId,
    /// What it does first when chosen.
    pub next: Step,
}

/// What a thread is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Its first instruction.
    Start,
    /// A system call, or what follows one that blocked.
    SystemCall {
        /// The call's number.
        number: u32,
        /// Where it is made.
        place: Place,
    },
    /// It gives way by itself (`sched_yield`): running it at once again would change nothing.
    Yield,
    /// An atomic instruction.
    Atomic(Place),
    /// It has run for a while without any of these.
    Branch(Place),
    /// It asks for a lock while it holds another.
    Nested(Nested),
    /// A watched place.
    Access(Access),
}

/// A request for a lock by a thread that holds another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nested {
    /// Where.
    pub place: Place,
    /// It may be part of a circle: of the one that is looked for, or of any where none is.
    pub suspected: bool,
    /// With it, threads stand that each ask for what the next one holds, all around.
    pub closes: bool,
}

/// An access at a watched place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Which of the watched places.
    pub side: Side,
    /// The instruction, or the call of a function that touches memory.
    pub place: Place,
    /// First byte.
    pub address: Address,
    /// Bytes.
    pub size: u64,
    /// Can it change the memory?
    pub writes: bool,
    /// No other access can come between its parts, as far as known.
    pub atomic: bool,
}

impl Access {
    /// Do both touch a byte that one of them can change, and not both atomically?
    pub fn conflicts(&self, other: &Access) -> bool {
        let ends = |a: &Access| a.address.0.saturating_add(a.size);
        (self.writes || other.writes)
            && !(self.atomic && other.atomic)
            && self.address.0 < ends(other)
            && other.address.0 < ends(self)
    }
}

/// Of two watched places, which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The first of the pair.
    First,
    /// The second of the pair.
    Second,
    /// Both are one and the same instruction.
    Both,
}

/// What a policy wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// This thread runs.
    Run(ThreadId),
    /// None of them: let time pass until somebody else can run.
    Wait,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_meets_is_a_race_unless_both_read_or_both_are_atomic() {
        let access = |address, writes, atomic| Access {
            side: Side::Both,
            place: Place { module: raddle_model::ModuleId(1), offset: 0 },
            address: Address(address),
            size: 4,
            writes,
            atomic,
        };
        let meet = |one: Access, other: Access| one.conflicts(&other) && other.conflicts(&one);
        assert!(meet(access(8, true, false), access(8, false, false)));
        assert!(meet(access(8, true, true), access(8, false, false)));
        assert!(meet(access(8, true, false), access(11, true, false)));
        assert!(!meet(access(8, true, true), access(8, true, true)));
        assert!(!meet(access(8, false, false), access(8, false, false)));
        assert!(!meet(access(8, true, false), access(12, true, false)));
    }
}

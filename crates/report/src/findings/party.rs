//! Who takes part in a finding: accesses that collide, or threads that wait for each other. What every
//! rendering says of either is the same: who, doing what, holding which locks, where.

use super::schema::{Access, Finding, Frame, Lock, Side};
use crate::hex::Hex;
use raddle_model::ThreadId;
use serde::{Deserialize, Serialize};

/// A thread that would wait for a lock while it holds others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Who.
    pub thread: ThreadId,
    /// In which process, where several were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// What it asks for; the next of the finding's waits holds it.
    pub wants: Wanted,
    /// What it holds meanwhile.
    pub locks: Vec<Lock>,
    /// Where it asks, then the callers.
    pub stack: Vec<Frame>,
    /// Index in `stack` of the first frame outside runtime libraries; absent when there is none.
    #[serde(default)]
    pub own_frame: Option<usize>,
}

/// A lock that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Where it is.
    pub address: Hex,
    /// The variable it is, or is part of.
    pub name: Option<String>,
    /// Which side.
    pub mode: Side,
}

/// One who takes part.
#[derive(Debug, Clone, Copy)]
pub struct Party<'a> {
    /// What it does.
    pub deed: Deed<'a>,
    /// Who.
    pub thread: ThreadId,
    /// In which process, where several were watched.
    pub process: Option<u32>,
    /// Holding which locks.
    pub locks: &'a [Lock],
    /// Another tool reported it, which said nothing of locks.
    pub of_another_tool: bool,
    /// Where, then the callers.
    pub stack: &'a [Frame],
    own_frame: Option<usize>,
}

/// What somebody does who takes part.
#[derive(Debug, Clone, Copy)]
pub enum Deed<'a> {
    /// Touches memory.
    Access(&'a Access),
    /// Asks for a lock.
    Wait(&'a Wanted),
}

impl<'a> Party<'a> {
    /// The frame that stands for the deed: the first of the program's own, or else the innermost.
    pub fn frame(&self) -> Option<&'a Frame> {
        self.stack.get(self.own_frame.unwrap_or(0))
    }

    /// The index of that frame.
    pub fn own_frame(&self) -> Option<usize> {
        self.own_frame
    }
}

impl Finding {
    /// Those who take part, the earlier first; of a cycle, each before the one it waits for.
    pub fn parties(&self) -> impl DoubleEndedIterator<Item = Party<'_>> + Clone {
        let accesses = self.accesses.iter().map(|access| Party {
            deed: Deed::Access(access),
            thread: access.thread,
            process: access.process,
            locks: &access.locks,
            of_another_tool: self.origin.is_some(),
            stack: &access.stack,
            own_frame: access.own_frame,
        });
        let waits = self.waits.iter().map(|wait| Party {
            deed: Deed::Wait(&wait.wants),
            thread: wait.thread,
            process: wait.process,
            locks: &wait.locks,
            of_another_tool: self.origin.is_some(),
            stack: &wait.stack,
            own_frame: wait.own_frame,
        });
        accesses.chain(waits)
    }
}

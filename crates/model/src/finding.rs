//! Findings: what an analyser has to say, before anybody has turned places into names.
//!
//! The fields are those of `report.json` ("Findings, files, exit codes" in the design) as far as
//! an analyser knows them; the report adds ids, fingerprints, symbols and what later stages learn.

use crate::event::AccessKind;
use crate::ids::{Address, Place, StackId, ThreadId};
use crate::lockset::HeldLock;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something wrong with the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What sort of bug.
    pub kind: FindingKind,
    /// How sure.
    pub certainty: Certainty,
    /// First byte of the memory concerned.
    pub address: Address,
    /// What collided, the earlier first: two for a data race. An instance of the finding's best
    /// certainty, the first of them.
    pub accesses: Vec<FindingAccess>,
    /// How often it was seen in the execution.
    pub count: u64,
    /// The rules that decided, in the order of [`Rule`].
    pub rules: Vec<Rule>,
    /// Of a cycle of locks: who waits, each for what the next one holds, and the last for what the
    /// first holds. Empty for other kinds.
    #[serde(default)]
    pub waits: Vec<FindingWait>,
}

/// A thread that would wait for a lock, with others in its hands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingWait {
    /// Who.
    pub thread: ThreadId,
    /// What it asks for, and where it does.
    pub wants: HeldLock,
    /// What it holds meanwhile, and where it took each.
    pub holds: Vec<HeldLock>,
}

/// What sort of bug a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Two accesses to the same memory, at least one a write, with nothing to order them.
    DataRace,
    /// Threads that take locks in such orders that each can come to wait for the next.
    LockOrder,
}

/// How sure a finding is. The later one is the stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Locks happened to order it in this execution; another could have it otherwise.
    Predicted,
    /// Nothing known ordered it in this very execution.
    Observed,
}

/// What an access of a finding did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TouchKind {
    /// Read.
    Read,
    /// Wrote.
    Write,
    /// Read and wrote in one indivisible step.
    Update,
    /// Gave the memory back.
    Free,
}

impl From<AccessKind> for TouchKind {
    fn from(kind: AccessKind) -> TouchKind {
        match kind {
            AccessKind::Read | AccessKind::AtomicRead | AccessKind::SpinRead => TouchKind::Read,
            AccessKind::Write | AccessKind::AtomicWrite => TouchKind::Write,
            AccessKind::AtomicUpdate => TouchKind::Update,
        }
    }
}

/// One side of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingAccess {
    /// What it did.
    pub kind: TouchKind,
    /// Bytes it touched, the shared ones among them.
    pub size: u64,
    /// Indivisible, as far as known.
    pub atomic: bool,
    /// Who.
    pub thread: ThreadId,
    /// Holding which locks.
    pub locks: Vec<HeldLock>,
    /// The instruction.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
}

/// A rule that decided something about a finding, by the name that reports and docs use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The accesses held no lock in common.
    NoCommonLock,
    /// They held the same read/write lock, but one wrote with only its shared side.
    SharedSidesOnly,
    /// They were ordered in this execution, but only by locks taken in the order that came about.
    LockOrderIgnored,
    /// One access is atomic, the other is not. Without debug information the binary cannot tell
    /// whether a plain write was meant to be.
    MixedAtomic,
    /// Neither access is an atomic instruction, but the memory has been touched by one, so it is a
    /// synchronisation variable, and a plain write to it is mixed (atomics rule 1 of the design).
    LockTouched,
    /// Giving memory back counts as writing it.
    FreeIsWrite,
    /// Helgrind+: an access without any lock, parallel to the one before.
    NoLockHeld,
    /// Helgrind+: no lock was held at every access since the memory became shared.
    NoCandidateLock,
    /// Helgrind+, long: the same suspicion for the second time.
    Repeated,
}

impl Rule {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::NoCommonLock => "no-common-lock",
            Rule::SharedSidesOnly => "shared-sides-only",
            Rule::LockOrderIgnored => "lock-order-ignored",
            Rule::MixedAtomic => "mixed-atomic",
            Rule::LockTouched => "lock-touched",
            Rule::FreeIsWrite => "free-is-write",
            Rule::NoLockHeld => "no-lock-held",
            Rule::NoCandidateLock => "no-candidate-lock",
            Rule::Repeated => "repeated",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

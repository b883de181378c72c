//! One access as it is remembered, the segment it belongs to, and when two of them conflict.
//!
//! A *segment* is a stretch of one thread's life within one tick and with one lock set (`seeds/000…`
//! 3.1, cut at lock operations too). It is made when its first access comes, shared by all that
//! remember an access of it, and gone with the last of them.

use crate::order::Tenure;
use raddle_model::clock::Stamp;
use raddle_model::finding::{FindingAccess, Rule, TouchKind};
use raddle_model::lockset::LockSet;
use raddle_model::{AccessKind, Place, StackId, ThreadId};
use std::ops::Range;
use std::sync::Arc;

/// A stretch of a thread's life in which neither its order to others nor its locks change.
#[derive(Debug)]
pub struct Segment {
    /// Whose.
    pub thread: ThreadId,
    /// Its tick, in both orders.
    pub stamp: Stamp,
    /// The locks held.
    pub locks: Arc<LockSet>,
    /// Keeps the stamp's chain from forgetting it.
    pub tenure: Tenure,
}

/// One access to memory.
#[derive(Debug)]
pub struct Touch {
    /// All bytes it touched.
    pub bytes: Range<u64>,
    /// How.
    pub kind: Kind,
    /// Who, when, with which locks.
    pub segment: Arc<Segment>,
    /// The instruction.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
}

impl Touch {
    /// Is it the read of a loop that waits for a change?
    pub fn is_spin_read(&self) -> bool {
        self.kind == Kind::Access(AccessKind::SpinRead)
    }

    /// As findings show it. `synchronisation`: the memory is a synchronisation variable, whose
    /// plain reads count as atomic.
    pub fn shown(&self, synchronisation: bool) -> FindingAccess {
        FindingAccess {
            kind: self.kind.into(),
            size: self.bytes.end - self.bytes.start,
            atomic: self.kind.is_atomic()
                || synchronisation && self.kind == Kind::Access(AccessKind::Read),
            thread: self.segment.thread,
            locks: self.segment.locks.iter().copied().collect(),
            place: self.place,
            stack: self.stack,
        }
    }
}

/// How memory is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// By an access.
    Access(AccessKind),
    /// By being given back: a write, never atomic.
    Free,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::Access(AccessKind::Read),
        Kind::Access(AccessKind::Write),
        Kind::Access(AccessKind::AtomicUpdate),
        Kind::Access(AccessKind::AtomicRead),
        Kind::Access(AccessKind::AtomicWrite),
        Kind::Free,
    ];

    /// Does it change or end the memory?
    pub fn writes(self) -> bool {
        match self {
            Kind::Access(kind) => kind.writes(),
            Kind::Free => true,
        }
    }

    /// Is it atomic by itself?
    pub fn is_atomic(self) -> bool {
        match self {
            Kind::Access(kind) => kind.is_atomic(),
            Kind::Free => false,
        }
    }
}

impl From<Kind> for TouchKind {
    fn from(kind: Kind) -> TouchKind {
        match kind {
            Kind::Access(kind) => kind.into(),
            Kind::Free => TouchKind::Free,
        }
    }
}

/// When a plain read counts as atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainReads {
    /// Never: atomics rule 1 of the design is off.
    Plain,
    /// If the memory is a synchronisation variable, which it is not yet. Beside an atomic update it
    /// is, whichever of the two came first.
    AtomicBesideUpdates,
    /// It is a synchronisation variable, so always.
    Atomic,
}

/// Are accesses of these kinds a race if nothing orders them? At least one writes, and not both are
/// atomic.
pub fn kinds_conflict(a: Kind, b: Kind, reads: PlainReads) -> bool {
    // A spin read waits for the write; only the memory's end can harm it (atomics rule 3).
    let spin = Kind::Access(AccessKind::SpinRead);
    if a == spin || b == spin {
        return a == Kind::Free || b == Kind::Free;
    }
    let update = Kind::Access(AccessKind::AtomicUpdate);
    let reads_are_atomic = match reads {
        PlainReads::Plain => false,
        PlainReads::AtomicBesideUpdates => a == update || b == update,
        PlainReads::Atomic => true,
    };
    let atomic =
        |kind: Kind| kind.is_atomic() || reads_are_atomic && kind == Kind::Access(AccessKind::Read);
    (a.writes() || b.writes()) && !(atomic(a) && atomic(b))
}

/// Does whatever conflicts with an access of kind `weaker` conflict with `stronger` too, whatever
/// the locks? It then stays so when the memory becomes a synchronisation variable.
pub fn kind_within(weaker: Kind, stronger: Kind, reads: PlainReads) -> bool {
    // A lock held for reading protects a read, and not a write.
    let no_better_protected = stronger.writes() || !weaker.writes();
    let conflicts = |other: &Kind| {
        !kinds_conflict(*other, weaker, reads) || kinds_conflict(*other, stronger, reads)
    };
    no_better_protected && Kind::ALL.iter().all(conflicts)
}

/// What the kinds of two racing accesses say about the race. `synchronisation`: the memory is a
/// synchronisation variable.
pub fn kinds_rule(kinds: [Kind; 2], synchronisation: bool) -> Option<Rule> {
    if kinds.contains(&Kind::Free) {
        Some(Rule::FreeIsWrite)
    } else if kinds.iter().any(|kind| kind.is_atomic()) {
        Some(Rule::MixedAtomic)
    } else if synchronisation && kinds.contains(&Kind::Access(AccessKind::Write)) {
        Some(Rule::LockTouched)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Kind = Kind::Access(AccessKind::Read);
    const WRITE: Kind = Kind::Access(AccessKind::Write);
    const UPDATE: Kind = Kind::Access(AccessKind::AtomicUpdate);
    const ATOMIC_READ: Kind = Kind::Access(AccessKind::AtomicRead);
    const ATOMIC_WRITE: Kind = Kind::Access(AccessKind::AtomicWrite);
    const RULES: [PlainReads; 3] =
        [PlainReads::Plain, PlainReads::AtomicBesideUpdates, PlainReads::Atomic];

    #[test]
    fn a_conflict_has_two_sides_and_a_write() {
        for (a, b) in Kind::ALL.iter().flat_map(|a| Kind::ALL.map(move |b| (*a, b))) {
            for rule in RULES {
                assert_eq!(kinds_conflict(a, b, rule), kinds_conflict(b, a, rule));
                assert!(!kinds_conflict(a, b, rule) || a.writes() || b.writes());
            }
        }
    }

    #[test]
    fn a_plain_write_conflicts_with_everything_and_so_does_free() {
        for rule in RULES {
            for kind in Kind::ALL {
                assert!(
                    kinds_conflict(WRITE, kind, rule) && kinds_conflict(Kind::Free, kind, rule)
                );
            }
        }
    }

    #[test]
    fn atomic_accesses_conflict_with_plain_reads_as_the_rule_says() {
        let conflicts = |kind| RULES.map(|rule| kinds_conflict(READ, kind, rule));
        assert_eq!(conflicts(UPDATE), [true, false, false]);
        assert_eq!(conflicts(ATOMIC_WRITE), [true, true, false]);
        assert_eq!(conflicts(ATOMIC_READ), [false, false, false]);
    }

    #[test]
    fn a_write_stands_for_a_read_but_not_the_other_way_round() {
        for rule in RULES {
            for kind in Kind::ALL {
                assert!(kind_within(kind, WRITE, rule) && kind_within(kind, kind, rule));
                assert_eq!(kind_within(WRITE, kind, rule), kind == WRITE || kind == Kind::Free);
            }
        }
        for (a, b) in Kind::ALL.iter().flat_map(|a| Kind::ALL.map(move |b| (*a, b))) {
            let [_, before, after] = RULES.map(|rule| kind_within(a, b, rule));
            assert!(!before || after, "{a:?} within {b:?} must stay so");
        }
        // A lock held for reading would protect the one and not the other.
        assert!(!kind_within(UPDATE, READ, PlainReads::Atomic));
        // What a plain read and an atomic one conflict with differs until the rule makes them one.
        assert!(!kind_within(READ, ATOMIC_READ, PlainReads::AtomicBesideUpdates));
        assert!(kind_within(READ, ATOMIC_READ, PlainReads::Atomic));
    }
}

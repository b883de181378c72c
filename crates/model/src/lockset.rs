//! Lock sets: the locks a thread holds at a moment, and what two of them say of each other.
//!
//! Two accesses exclude each other when both held the same lock and at least one of them held it
//! exclusively: two readers of a read/write lock run side by side, so a write under its shared side
//! is unprotected against them (Eraser's refinement of the set in `seeds/000…` 3.3, 4.1.1).

use crate::event::LockMode;
use crate::ids::{Address, Place, StackId};
use serde::{Deserialize, Serialize};

/// A lock in a thread's hands, and where it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldLock {
    /// Which.
    pub lock: Address,
    /// Which side; exclusive when both.
    pub mode: LockMode,
    /// Where it was taken, at first for a recursive lock.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
    /// How often a lock there was made anew or destroyed while somebody held it: from then on it is
    /// another one.
    #[serde(default)]
    pub life: u32,
}

/// The locks held by a thread, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LockSet {
    /// By address.
    locks: Vec<HeldLock>,
}

impl LockSet {
    /// Not a lock of the program but the one that every transaction holds: transactions exclude
    /// each other and nothing else. No lock lives at this address.
    pub const TRANSACTION: Address = Address(u64::MAX);

    /// No locks.
    pub fn new() -> LockSet {
        LockSet::default()
    }

    /// Adds a lock; one already there takes the stronger mode and keeps its place.
    pub fn insert(&mut self, held: HeldLock) {
        match self.locks.binary_search_by_key(&held.lock, |h| h.lock) {
            Ok(at) if held.mode == LockMode::Exclusive => self.locks[at].mode = held.mode,
            Ok(_) => {}
            Err(at) => self.locks.insert(at, held),
        }
    }

    /// The side of `lock` that is held, if any.
    pub fn mode(&self, lock: Address) -> Option<LockMode> {
        let at = self.locks.binary_search_by_key(&lock, |h| h.lock).ok()?;
        Some(self.locks[at].mode)
    }

    /// The side that is held of the same lock as `theirs`, if any.
    fn side(&self, theirs: &HeldLock) -> Option<LockMode> {
        let at = self.locks.binary_search_by_key(&theirs.lock, |h| h.lock).ok()?;
        (self.locks[at].life == theirs.life).then_some(self.locks[at].mode)
    }

    /// Can two threads with these lock sets never be there at once? A common lock is one that both
    /// hold and at least one of them holds exclusively.
    pub fn excludes(&self, other: &LockSet) -> bool {
        self.locks.iter().any(|mine| {
            other.side(mine).is_some_and(|theirs| {
                mine.mode == LockMode::Exclusive || theirs == LockMode::Exclusive
            })
        })
    }

    /// Does a lock protect an access with this set from one with the other? Each must hold its
    /// exclusive side if it writes: the shared side is for reading, and whoever writes there has
    /// only been lucky to meet nobody (`writes`: this one, the other).
    pub fn protects(&self, other: &LockSet, writes: (bool, bool)) -> bool {
        self.locks.iter().any(|mine| {
            other.side(mine).is_some_and(|theirs| {
                (mine.mode == LockMode::Exclusive || !writes.0)
                    && (theirs == LockMode::Exclusive || !writes.1)
            })
        })
    }

    /// Do both hold some lock, but none that excludes the other: only its shared sides?
    pub fn shares_only(&self, other: &LockSet) -> bool {
        !self.excludes(other) && self.locks.iter().any(|mine| other.side(mine).is_some())
    }

    /// Does `other` exclude whatever this set excludes?
    pub fn within(&self, other: &LockSet) -> bool {
        self.locks.iter().all(|mine| match mine.mode {
            LockMode::Exclusive => other.side(mine) == Some(LockMode::Exclusive),
            LockMode::Shared => other.side(mine).is_some(),
        })
    }

    /// The locks that protect a read (all) or a write (those held exclusively), by address.
    pub fn protecting(&self, write: bool) -> impl Iterator<Item = Address> + '_ {
        self.locks
            .iter()
            .filter(move |h| !write || h.mode == LockMode::Exclusive)
            .map(|held| held.lock)
    }

    /// All of them, by address.
    pub fn iter(&self) -> impl Iterator<Item = &HeldLock> {
        self.locks.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// None?
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }
}

impl FromIterator<HeldLock> for LockSet {
    fn from_iter<I: IntoIterator<Item = HeldLock>>(locks: I) -> LockSet {
        let mut set = LockSet::new();
        for held in locks {
            set.insert(held);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{Exclusive, Shared};
    use super::*;
    use crate::ids::ModuleId;

    fn set(locks: &[(u64, LockMode)]) -> LockSet {
        let place = Place { module: ModuleId::NONE, offset: 0 };
        let held = |&(lock, mode)| HeldLock {
            lock: Address(lock),
            mode,
            place,
            stack: StackId::NONE,
            life: 0,
        };
        locks.iter().map(held).collect()
    }

    #[test]
    fn a_common_lock_needs_one_exclusive_side() {
        let (writer, reader) = (set(&[(1, Exclusive)]), set(&[(1, Shared)]));
        assert!(writer.excludes(&writer) && writer.excludes(&reader) && reader.excludes(&writer));
        assert!(!reader.excludes(&reader) && reader.shares_only(&reader));
        assert!(!writer.excludes(&set(&[(2, Exclusive)])) && !writer.excludes(&LockSet::new()));
        assert!(!writer.shares_only(&reader) && !writer.shares_only(&LockSet::new()));
    }

    #[test]
    fn within_means_that_whoever_is_excluded_by_the_smaller_is_excluded_by_the_larger() {
        // All sets of two locks, so that whoever could tell a difference is among them.
        let sides = [None, Some(Shared), Some(Exclusive)];
        let sets: Vec<LockSet> = (0..9)
            .map(|n| [(1, sides[n % 3]), (2, sides[n / 3])])
            .map(|held| held.into_iter().filter_map(|(lock, mode)| Some((lock, mode?))))
            .map(|held| set(&held.collect::<Vec<_>>()))
            .collect();
        for a in &sets {
            for b in &sets {
                let implied = sets.iter().all(|m| !m.excludes(a) || m.excludes(b));
                assert_eq!(a.within(b), implied, "{a:?} within {b:?}");
            }
        }
    }

    #[test]
    fn a_write_is_protected_by_exclusive_sides_only() {
        let held = set(&[(3, Shared), (1, Exclusive)]);
        assert_eq!(held.protecting(false).collect::<Vec<_>>(), [Address(1), Address(3)]);
        assert_eq!(held.protecting(true).collect::<Vec<_>>(), [Address(1)]);
    }

    #[test]
    fn the_stronger_side_wins() {
        assert_eq!(set(&[(1, Shared), (1, Exclusive)]).mode(Address(1)), Some(Exclusive));
        assert_eq!(set(&[(1, Exclusive), (1, Shared)]).mode(Address(1)), Some(Exclusive));
    }
}

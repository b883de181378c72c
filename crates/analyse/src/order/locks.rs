//! What locks have published, and who holds them, for many threads at once.
//!
//! Taking and releasing a lock is what synchronised programs do most, and two threads that take different locks
//! have nothing to tell each other. So locks are kept in shards, each behind a lock of its own, and whoever
//! knows all else that it takes may follow a lock without stopping the world ([`Shards`]; `fast` does). Locks come
//! and go only through [`Locks`], which one thread at a time has.

use raddle_model::clock::VectorClock;
use raddle_model::lockset::HeldLock;
use raddle_model::{Address, LockMode, ThreadId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Enough that a few running threads seldom meet.
const SHARDS: usize = 64;

/// Ways of taking one lock whose lock sets are remembered with it; of more, the oldest goes.
const WAYS: usize = 8;

/// A lock that was ever released.
#[derive(Debug, Default)]
pub struct Lock {
    /// What those who held it exclusively have published; in the full order only.
    exclusive: VectorClock,
    /// The same for those who shared it, which of most locks nobody does.
    shared: Option<Box<VectorClock>>,
    /// Its edges are in both orders.
    pub hands_over: bool,
    /// Who holds it, and which side.
    pub holders: SmallVec<[(ThreadId, LockMode); 1]>,
    /// What the lock set of this lock alone is called, by how it was taken.
    names: SmallVec<[(HeldLock, LockSetName); 1]>,
}

/// Words by which whoever follows the orders calls a lock set: see [`Lock::name`].
pub type LockSetName = [u32; 2];

impl Lock {
    /// What the release of a side has published.
    pub fn of(&mut self, mode: LockMode) -> &mut VectorClock {
        match mode {
            LockMode::Exclusive => &mut self.exclusive,
            LockMode::Shared => self.shared.get_or_insert_default(),
        }
    }

    /// What comes before whoever takes this side now: all who held it exclusively, and, if it is to be
    /// exclusive, all who shared it.
    pub fn before(&self, mode: LockMode) -> impl Iterator<Item = &VectorClock> {
        let shared = self.shared.as_deref().filter(|_| mode == LockMode::Exclusive);
        std::iter::once(&self.exclusive).chain(shared)
    }

    /// Can a side be taken beside those who hold the lock?
    pub fn admits(&self, mode: LockMode) -> bool {
        let beside = |(_, theirs): &(ThreadId, LockMode)| {
            mode == LockMode::Shared && *theirs == LockMode::Shared
        };
        self.holders.iter().all(beside)
    }

    /// What the set of this lock alone is called, if it was taken like this before; in whatever life.
    pub fn name(&self, taken: &HeldLock) -> Option<(HeldLock, LockSetName)> {
        let like = |known: &HeldLock| HeldLock { life: taken.life, ..*known } == *taken;
        self.names.iter().find(|(known, _)| like(known)).copied()
    }

    /// Remembers what it is called.
    pub fn set_name(&mut self, taken: HeldLock, name: LockSetName) {
        self.names.retain(|(known, _)| HeldLock { life: taken.life, ..*known } != taken);
        if self.names.len() == WAYS {
            self.names.remove(0);
        }
        self.names.push((taken, name));
    }
}

/// The locks, for whoever follows one of them.
#[derive(Debug)]
pub struct Shards([Mutex<FxHashMap<Address, Lock>>; SHARDS]);

impl Shards {
    /// Does something with a lock, if it is known.
    pub fn with<R>(&self, lock: Address, act: impl FnOnce(&mut Lock) -> R) -> Option<R> {
        self.of(lock).get_mut(&lock).map(act)
    }

    fn of(&self, lock: Address) -> MutexGuard<'_, FxHashMap<Address, Lock>> {
        // Locks are aligned, and often lie side by side in larger things.
        let spread = lock.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        self.0[spread as usize % SHARDS].lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// All locks that were ever released.
#[derive(Debug)]
pub struct Locks {
    shards: Arc<Shards>,
    /// Which there are, to find those in a stretch of memory.
    index: BTreeSet<Address>,
}

impl Default for Locks {
    fn default() -> Locks {
        let shards = Shards(std::array::from_fn(|_| Mutex::default()));
        Locks { shards: Arc::new(shards), index: BTreeSet::new() }
    }
}

impl Locks {
    /// For those who follow locks by themselves.
    pub fn shards(&self) -> &Arc<Shards> {
        &self.shards
    }

    /// Is it known?
    pub fn contains(&self, lock: Address) -> bool {
        self.with(lock, |_| ()).is_some()
    }

    /// See [`Shards::with`].
    pub fn with<R>(&self, lock: Address, act: impl FnOnce(&mut Lock) -> R) -> Option<R> {
        self.shards.with(lock, act)
    }

    /// The same; from now on it is known.
    pub fn entry<R>(&mut self, lock: Address, act: impl FnOnce(&mut Lock) -> R) -> R {
        let mut shard = self.shards.of(lock);
        act(shard.entry(lock).or_insert_with(|| {
            self.index.insert(lock);
            Lock::default()
        }))
    }

    /// Forgets a lock.
    pub fn remove(&mut self, lock: Address) {
        if self.shards.of(lock).remove(&lock).is_some() {
            self.index.remove(&lock);
        }
    }

    /// The locks in a stretch of memory.
    pub fn within(&self, bytes: &Range<u64>) -> impl Iterator<Item = Address> + '_ {
        let bytes = Address(bytes.start)..Address(bytes.end.max(bytes.start));
        self.index.range(bytes).copied()
    }

    /// Forgets what lies in a stretch of memory.
    pub fn forget(&mut self, bytes: &Range<u64>) {
        let gone: Vec<Address> = self.within(bytes).collect();
        gone.into_iter().for_each(|lock| self.remove(lock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(locks: &[u64]) -> Locks {
        let mut all = Locks::default();
        for lock in locks {
            all.entry(Address(*lock), |_| ());
        }
        all
    }

    #[test]
    fn what_lies_in_a_stretch_is_forgotten() {
        let mut locks = made(&[10, 20, 30]);
        for elsewhere in [0..10, 31..60, 25..25] {
            locks.forget(&elsewhere);
        }
        assert!([10, 20, 30].into_iter().all(|at| locks.contains(Address(at))));
        locks.forget(&(10..30));
        assert!(!locks.contains(Address(10)) && !locks.contains(Address(20)));
        assert!(locks.contains(Address(30)));
        locks.remove(Address(30));
        assert!(!locks.contains(Address(30)) && locks.index.is_empty());
    }

    #[test]
    fn readers_stand_beside_each_other() {
        let mut lock = Lock::default();
        assert!(lock.admits(LockMode::Exclusive));
        lock.holders.push((ThreadId(1), LockMode::Shared));
        assert!(lock.admits(LockMode::Shared) && !lock.admits(LockMode::Exclusive));
        lock.holders[0].1 = LockMode::Exclusive;
        assert!(!lock.admits(LockMode::Shared));
    }

    #[test]
    fn the_newest_ways_of_taking_a_lock_are_remembered() {
        let mut lock = Lock::default();
        let taken = |n: u32| HeldLock {
            lock: Address(8),
            mode: LockMode::Exclusive,
            place: raddle_model::Place { module: raddle_model::ModuleId::NONE, offset: 0 },
            stack: raddle_model::StackId(n),
            life: 0,
        };
        for n in 0..=WAYS as u32 {
            lock.set_name(taken(n), [n, 0]);
        }
        assert_eq!(lock.name(&taken(0)), None);
        assert_eq!(lock.name(&taken(3)).map(|(_, name)| name), Some([3, 0]));
        lock.set_name(HeldLock { life: 1, ..taken(3) }, [99, 0]);
        let (known, name) = lock.name(&taken(3)).unwrap();
        assert_eq!((known.life, name), (1, [99, 0]));
    }
}

//! What a lock has published, and who holds it.

use raddle_model::clock::VectorClock;
use raddle_model::lockset::HeldLock;
use raddle_model::{LockMode, ThreadId};
use smallvec::SmallVec;

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

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::Address;

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

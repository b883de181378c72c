//! What a lock has published, and who holds it.

use raddle_model::clock::VectorClock;
use raddle_model::lockset::HeldLock;
use raddle_model::{LockMode, ModuleId, Place, StackId, ThreadId};

/// Ways of taking one lock whose lock sets are remembered with it; of more, the oldest goes.
const WAYS: usize = 8;

/// A lock that was ever released. Of most there is nothing to say that has no room here, in this order: with its latch before it and
/// its address behind it ([`super::objects`]), it fills two lines of the cache, and who takes one of many locks waits for each line.
#[derive(Debug)]
#[repr(C)]
pub struct Lock {
    /// What those who held it exclusively have published; in the full order only.
    exclusive: VectorClock,
    /// Who holds it, if anybody does. Others who do are among [`More`].
    holder: ThreadId,
    /// And which side.
    side: Option<LockMode>,
    /// Its edges are in both orders.
    pub hands_over: bool,
    /// What the lock set of this lock alone is called, by how it was taken, which was asked last.
    name: Option<Named>,
    more: Option<Box<More>>,
}

const _: () = assert!(size_of::<Lock>() == 13 * size_of::<u64>());

impl Default for Lock {
    fn default() -> Lock {
        Lock {
            exclusive: VectorClock::default(),
            holder: ThreadId(0),
            side: None,
            hands_over: false,
            name: None,
            more: None,
        }
    }
}

/// What most locks have none of.
#[derive(Debug, Default)]
struct More {
    /// What those who shared it have published.
    shared: VectorClock,
    holders: Vec<(ThreadId, LockMode)>,
    /// Other names, oldest first.
    names: Vec<Named>,
}

/// Words by which whoever follows the orders calls a lock set: see [`Lock::name`].
pub type LockSetName = [u32; 2];

/// A name, and how the lock was taken ([`HeldLock`]) that has it.
#[derive(Debug, Clone, Copy)]
struct Named {
    offset: u64,
    module: ModuleId,
    stack: StackId,
    life: u32,
    name: LockSetName,
    mode: LockMode,
}

impl Named {
    fn new(taken: HeldLock, name: LockSetName) -> Named {
        let HeldLock { place: Place { module, offset }, mode, stack, life, .. } = taken;
        Named { offset, module, stack, life, name, mode }
    }

    /// Is it that of a lock taken like this, in whatever life?
    fn is_of(&self, taken: &HeldLock) -> bool {
        (self.offset, self.module) == (taken.place.offset, taken.place.module)
            && (self.stack, self.mode) == (taken.stack, taken.mode)
    }
}

impl Lock {
    /// What the release of a side has published.
    pub fn of(&mut self, mode: LockMode) -> &mut VectorClock {
        match mode {
            LockMode::Exclusive => &mut self.exclusive,
            LockMode::Shared => &mut self.more.get_or_insert_default().shared,
        }
    }

    /// What comes before whoever takes this side now: all who held it exclusively, and, if it is to be
    /// exclusive, all who shared it.
    pub fn before(&self, mode: LockMode) -> impl Iterator<Item = &VectorClock> {
        let more = self.more.as_deref().filter(|_| mode == LockMode::Exclusive);
        std::iter::once(&self.exclusive).chain(more.map(|more| &more.shared))
    }

    /// Who holds it, and which side.
    pub fn holders(&self) -> impl Iterator<Item = (ThreadId, LockMode)> + '_ {
        let others = self.more.iter().flat_map(|more| more.holders.iter().copied());
        self.side.map(|side| (self.holder, side)).into_iter().chain(others)
    }

    /// Does this thread hold it?
    pub fn is_held_by(&self, thread: ThreadId) -> bool {
        self.holders().any(|(holder, _)| holder == thread)
    }

    /// A thread takes a side.
    pub fn take(&mut self, thread: ThreadId, mode: LockMode) {
        match self.side {
            None => (self.holder, self.side) = (thread, Some(mode)),
            Some(_) => self.more.get_or_insert_default().holders.push((thread, mode)),
        }
    }

    /// It leaves a thread's hands. False if it was not there.
    pub fn leave(&mut self, thread: ThreadId) -> bool {
        let others = self.more.as_mut().map(|more| &mut more.holders);
        if self.side.is_some() && self.holder == thread {
            let next = others.and_then(Vec::pop);
            self.side = next.map(|(holder, side)| {
                self.holder = holder;
                side
            });
            return true;
        }
        let at = |others: &Vec<(ThreadId, LockMode)>| others.iter().position(|of| of.0 == thread);
        let found = others.and_then(|others| at(others).map(|at| others.swap_remove(at)));
        found.is_some()
    }

    /// These hold it, and nobody else does.
    pub fn set_holders(&mut self, all: impl Iterator<Item = (ThreadId, LockMode)>) {
        self.side = None;
        if let Some(more) = &mut self.more {
            more.holders.clear();
        }
        all.for_each(|(thread, mode)| self.take(thread, mode));
    }

    /// Can a side be taken beside those who hold the lock?
    pub fn admits(&self, mode: LockMode) -> bool {
        self.holders().all(|(_, theirs)| mode == LockMode::Shared && theirs == LockMode::Shared)
    }

    /// What the set of this lock alone is called, if it was taken like this before; in whatever life.
    pub fn name(&self, taken: &HeldLock) -> Option<(HeldLock, LockSetName)> {
        let others = self.more.iter().flat_map(|more| &more.names);
        let found = self.name.iter().chain(others).find(|known| known.is_of(taken))?;
        Some((HeldLock { life: found.life, ..*taken }, found.name))
    }

    /// Remembers what it is called.
    pub fn set_name(&mut self, taken: HeldLock, name: LockSetName) {
        if let Some(more) = &mut self.more {
            more.names.retain(|known| !known.is_of(&taken));
        }
        let before = self.name.replace(Named::new(taken, name));
        if let Some(before) = before.filter(|before| !before.is_of(&taken)) {
            let names = &mut self.more.get_or_insert_default().names;
            if names.len() == WAYS - 1 {
                names.remove(0);
            }
            names.push(before);
        }
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
        lock.take(ThreadId(1), LockMode::Shared);
        assert!(lock.admits(LockMode::Shared) && !lock.admits(LockMode::Exclusive));
        lock.set_holders([(ThreadId(1), LockMode::Exclusive)].into_iter());
        assert!(!lock.admits(LockMode::Shared));
    }

    #[test]
    fn whoever_leaves_the_others_stay() {
        for order in [[1, 2, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
            let mut lock = Lock::default();
            (1..=3).for_each(|n| lock.take(ThreadId(n), LockMode::Shared));
            let mut left = vec![1, 2, 3];
            for n in order {
                assert!(lock.is_held_by(ThreadId(n)) && lock.leave(ThreadId(n)));
                assert!(!lock.leave(ThreadId(n)));
                left.retain(|other| *other != n);
                let mut held: Vec<u32> = lock.holders().map(|(holder, _)| holder.0).collect();
                held.sort();
                assert_eq!(held, left);
            }
            assert!(lock.admits(LockMode::Exclusive));
        }
    }

    #[test]
    fn the_newest_ways_of_taking_a_lock_are_remembered() {
        let mut lock = Lock::default();
        let taken = |n: u32| HeldLock {
            lock: Address(8),
            mode: LockMode::Exclusive,
            place: Place { module: ModuleId::NONE, offset: 0 },
            stack: StackId(n),
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
        assert!((1..=WAYS as u32).all(|n| lock.name(&taken(n)).is_some()));
    }
}

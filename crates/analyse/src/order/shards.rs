//! What synchronisation objects hold, for many threads at once.
//!
//! Taking and releasing a lock is what synchronised programs do most, and two threads that take different locks
//! have nothing to tell each other; nor have those who write to and read from different channels. So objects are kept in shards, each
//! behind a lock of its own, and whoever knows all else that it takes may follow an object without stopping the world
//! ([`Shards`]; `fast` does). Objects come and go only through a [`Register`], which one thread at a time has.

use crate::padded::Padded;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Enough that a few running threads seldom meet.
const SHARDS: usize = 64;
/// From here on the bits of a hash say which shard: others than those by which a map finds what is in it.
const SHARD_AT: u32 = 48;

/// The objects, for whoever follows one of them.
#[derive(Debug)]
pub struct Shards<K, V>([Padded<Mutex<FxHashMap<K, V>>>; SHARDS]);

impl<K: Hash + Eq, V> Shards<K, V> {
    /// Does something with an object, if it is known.
    pub fn with<R>(&self, object: K, act: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.of(&object).get_mut(&object).map(act)
    }

    fn of(&self, object: &K) -> MutexGuard<'_, FxHashMap<K, V>> {
        let spread = FxBuildHasher.hash_one(object) >> SHARD_AT;
        self.0[spread as usize % SHARDS].lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// All objects of a kind.
#[derive(Debug)]
pub struct Register<K, V> {
    shards: Arc<Shards<K, V>>,
    /// Which there are, to find those in a stretch of memory.
    index: BTreeSet<K>,
}

impl<K, V> Default for Register<K, V> {
    fn default() -> Register<K, V> {
        let shards = Shards(std::array::from_fn(|_| Padded::default()));
        Register { shards: Arc::new(shards), index: BTreeSet::new() }
    }
}

impl<K: Copy + Hash + Ord, V: Default> Register<K, V> {
    /// For those who follow objects by themselves.
    pub fn shards(&self) -> &Arc<Shards<K, V>> {
        &self.shards
    }

    /// Is it known?
    pub fn contains(&self, object: K) -> bool {
        self.with(object, |_| ()).is_some()
    }

    /// See [`Shards::with`].
    pub fn with<R>(&self, object: K, act: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.shards.with(object, act)
    }

    /// The same; from now on it is known.
    pub fn entry<R>(&mut self, object: K, act: impl FnOnce(&mut V) -> R) -> R {
        let mut shard = self.shards.of(&object);
        act(shard.entry(object).or_insert_with(|| {
            self.index.insert(object);
            V::default()
        }))
    }

    /// Forgets an object.
    pub fn remove(&mut self, object: K) {
        if self.shards.of(&object).remove(&object).is_some() {
            self.index.remove(&object);
        }
    }

    /// Those from one to before another.
    pub fn within(&self, Range { start, end }: Range<K>) -> impl Iterator<Item = K> + '_ {
        self.index.range(start..end.max(start)).copied()
    }

    /// Forgets them.
    pub fn forget(&mut self, objects: Range<K>) {
        let gone: Vec<K> = self.within(objects).collect();
        gone.into_iter().for_each(|object| self.remove(object));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_stretch_is_forgotten() {
        let mut all: Register<u64, u64> = Register::default();
        for at in [10, 20, 30] {
            all.entry(at, |_| ());
        }
        for elsewhere in [0..10, 31..60, 25..25] {
            all.forget(elsewhere);
        }
        assert!([10, 20, 30].into_iter().all(|at| all.contains(at)));
        all.forget(10..30);
        assert!(!all.contains(10) && !all.contains(20) && all.contains(30));
        all.remove(30);
        assert!(!all.contains(30) && all.index.is_empty());
    }

    #[test]
    fn objects_are_spread_over_the_shards() {
        let mut all: Register<u64, u64> = Register::default();
        // Side by side in larger things, as locks are.
        (0..4096).for_each(|n| all.entry(0x5000_0000 + n * 48, |_| ()));
        let sizes = all.shards.0.each_ref().map(|shard| shard.lock().unwrap().len());
        assert!(sizes.iter().all(|size| (32..128).contains(size)), "{sizes:?}");
    }
}

//! Things by where they lie: found by their address, forgotten by a stretch of memory.
//!
//! A lock's clock is looked up at every taking and release, and memory comes and goes at every allocation; so
//! the one is a hash away, and the other asks an index that changes only when something is added or goes.

use raddle_model::Address;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;

/// See the module.
#[derive(Debug)]
pub struct ByAddress<T> {
    things: FxHashMap<Address, T>,
    index: BTreeSet<Address>,
}

impl<T> Default for ByAddress<T> {
    fn default() -> ByAddress<T> {
        ByAddress { things: FxHashMap::default(), index: BTreeSet::new() }
    }
}

impl<T: Default> ByAddress<T> {
    /// What lies there.
    pub fn get(&self, address: Address) -> Option<&T> {
        self.things.get(&address)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, address: Address) -> Option<&mut T> {
        self.things.get_mut(&address)
    }

    /// Does anything?
    pub fn contains(&self, address: Address) -> bool {
        self.things.contains_key(&address)
    }

    /// What lies there; from now on something does.
    pub fn entry(&mut self, address: Address) -> &mut T {
        self.things.entry(address).or_insert_with(|| {
            self.index.insert(address);
            T::default()
        })
    }

    /// Forgets what lies there.
    pub fn remove(&mut self, address: Address) {
        if self.things.remove(&address).is_some() {
            self.index.remove(&address);
        }
    }

    /// Forgets what lies in `bytes`.
    pub fn forget(&mut self, bytes: &Range<u64>) {
        if self.index.is_empty() || bytes.is_empty() {
            return;
        }
        let within = Address(bytes.start)..Address(bytes.end);
        while let Some(&gone) = self.index.range(within.clone()).next() {
            self.index.remove(&gone);
            self.things.remove(&gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_stretch_is_forgotten() {
        let mut things = ByAddress::<u32>::default();
        for at in [10, 20, 30] {
            *things.entry(Address(at)) = at as u32;
        }
        *things.entry(Address(20)) += 1;
        assert_eq!(things.get(Address(20)), Some(&21));
        things.forget(&(0..10));
        things.forget(&(31..60));
        things.forget(&(25..25));
        assert!([10, 20, 30].into_iter().all(|at| things.contains(Address(at))));
        things.forget(&(10..30));
        assert!(!things.contains(Address(10)) && !things.contains(Address(20)));
        assert!(things.contains(Address(30)));
        things.remove(Address(30));
        assert!(!things.contains(Address(30)) && things.index.is_empty());
    }
}

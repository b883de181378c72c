//! Vector clocks: which moments of which threads are known to have passed.
//!
//! A thread's life is cut into *ticks*; a [`Stamp`] names one tick, and a [`VectorClock`] holds, for
//! every chain of threads, the last tick that happened before (Lamport; `seeds/000…` 3.2 calls the
//! stretch within one tick a thread segment). Component i of a clock belongs to a [`Chain`], not
//! to a thread: threads that live one after another, each ordered before the next, share a chain,
//! so that clocks grow with the threads alive at once and not with all that ever lived.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Components that a clock holds in place. Every lock has a clock: with one more step to memory for each,
/// a program of many locks waits for them.
const IN_PLACE: usize = 6;

/// A component of vector clocks: one thread, or several that lived one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Chain(pub u32);

/// One tick of one chain. Ticks count from 1, never go back and never wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// Whose.
    pub chain: Chain,
    /// Which.
    pub tick: u64,
}

impl Stamp {
    /// The tick after this one.
    pub fn next(self) -> Stamp {
        Stamp { tick: self.tick + 1, ..self }
    }
}

/// For every chain the last tick known to have passed; zero for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorClock {
    /// By chain; the last element is never zero, so equal clocks are equal vectors.
    ticks: SmallVec<[u64; IN_PLACE]>,
}

impl VectorClock {
    /// The last tick of `chain` known to have passed.
    pub fn tick(&self, chain: Chain) -> u64 {
        self.ticks.get(chain.0 as usize).copied().unwrap_or(0)
    }

    /// The last tick of every chain known to have passed, as far as there is one.
    pub fn ticks(&self) -> &[u64] {
        &self.ticks
    }

    /// Has this tick passed, as far as the clock knows?
    pub fn covers(&self, stamp: Stamp) -> bool {
        stamp.tick <= self.tick(stamp.chain)
    }

    /// From now on this tick, and all before it, have passed.
    pub fn raise(&mut self, stamp: Stamp) {
        if self.covers(stamp) {
            return;
        }
        let index = stamp.chain.0 as usize;
        if self.ticks.len() <= index {
            self.ticks.resize(index + 1, 0);
        }
        self.ticks[index] = stamp.tick;
    }

    /// Of this chain no more than this tick is to have passed.
    pub fn limit(&mut self, stamp: Stamp) {
        if let Some(tick) = self.ticks.get_mut(stamp.chain.0 as usize) {
            *tick = stamp.tick.min(*tick);
        }
        while self.ticks.last() == Some(&0) {
            self.ticks.pop();
        }
    }

    /// From now on all that `other` knows to have passed has passed.
    pub fn join(&mut self, other: &VectorClock) {
        if self.ticks.len() < other.ticks.len() {
            self.ticks.resize(other.ticks.len(), 0);
        }
        for (mine, theirs) in self.ticks.iter_mut().zip(other.ticks.as_slice()) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// No more is to have passed than `other` knows.
    pub fn meet(&mut self, other: &VectorClock) {
        self.ticks.truncate(other.ticks.len());
        for (mine, theirs) in self.ticks.iter_mut().zip(&other.ticks) {
            *mine = (*mine).min(*theirs);
        }
        while self.ticks.last() == Some(&0) {
            self.ticks.pop();
        }
    }

    /// Does this clock know all that `other` knows?
    pub fn includes(&self, other: &VectorClock) -> bool {
        self.ticks.len() >= other.ticks.len()
            && self.ticks.iter().zip(&other.ticks).all(|(mine, theirs)| mine >= theirs)
    }

    /// How many components it holds: what it costs.
    pub fn width(&self) -> usize {
        self.ticks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(chain: u32, tick: u64) -> Stamp {
        Stamp { chain: Chain(chain), tick }
    }

    fn clock(stamps: &[(u32, u64)]) -> VectorClock {
        let mut clock = VectorClock::default();
        for &(chain, tick) in stamps {
            clock.raise(stamp(chain, tick));
        }
        clock
    }

    #[test]
    fn where_two_clocks_meet_both_know_it() {
        let mut both = clock(&[(0, 5), (1, 2), (3, 7)]);
        both.meet(&clock(&[(0, 3), (1, 4)]));
        assert_eq!(both, clock(&[(0, 3), (1, 2)]));
        both.meet(&clock(&[(2, 9)]));
        assert_eq!(both, VectorClock::default());
    }

    #[test]
    fn a_clock_covers_what_it_was_raised_to_and_all_before() {
        let c = clock(&[(2, 5)]);
        assert!(c.covers(stamp(2, 5)) && c.covers(stamp(2, 1)));
        assert!(!c.covers(stamp(2, 6)) && !c.covers(stamp(0, 1)) && !c.covers(stamp(9, 1)));
    }

    #[test]
    fn raising_never_lowers() {
        assert_eq!(clock(&[(1, 5), (1, 3)]), clock(&[(1, 5)]));
    }

    #[test]
    fn a_limit_lowers_one_chain_and_never_raises() {
        let mut c = clock(&[(0, 3), (2, 5)]);
        c.limit(stamp(2, 4));
        assert_eq!(c, clock(&[(0, 3), (2, 4)]));
        c.limit(stamp(0, 9));
        c.limit(stamp(7, 1));
        assert_eq!(c, clock(&[(0, 3), (2, 4)]));
        c.limit(stamp(2, 0));
        assert_eq!(c, clock(&[(0, 3)]));
    }

    #[test]
    fn join_is_the_least_clock_that_includes_both() {
        let (a, b) = (clock(&[(0, 3), (1, 1)]), clock(&[(1, 4), (3, 2)]));
        let mut both = a.clone();
        both.join(&b);
        assert_eq!(both, clock(&[(0, 3), (1, 4), (3, 2)]));
        assert!(both.includes(&a) && both.includes(&b) && !a.includes(&b) && !b.includes(&a));
    }

    #[test]
    fn a_short_clock_includes_a_long_one_only_if_it_knows_as_much() {
        assert!(clock(&[(4, 1)]).includes(&VectorClock::default()));
        assert!(!VectorClock::default().includes(&clock(&[(4, 1)])));
    }
}

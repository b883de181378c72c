//! Vector clocks: which moments of which threads are known to have passed.
//!
//! A thread's life is cut into *ticks*; a [`Stamp`] names one tick, and a [`VectorClock`] holds, for
//! every chain of threads, the last tick that happened before (Lamport; `seeds/000…` 3.2 calls the
//! stretch within one tick a thread segment). Component i of a clock belongs to a [`Chain`], not
//! to a thread: threads that live one after another, each ordered before the next, share a chain,
//! so that clocks grow with the threads alive at once and not with all that ever lived.
//!
//! A clock of many components is cut into *chunks*, which clocks share as long as they agree on them: where one
//! knows all of a chunk that the other knows, both have the same one after they were joined. Of two threads that take one lock by
//! turns, each then finds the chunks of all who have not done anything meanwhile in common with the lock's clock, and looks at
//! none of them.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// Components that a clock holds in place. Every lock has a clock: with one more step to memory for each,
/// a program of many locks waits for them.
const IN_PLACE: usize = 6;

/// Components of a chunk.
const TOGETHER: usize = 16;

/// Chunks that a clock names in place: no more than have room where its components would be.
const CHUNKS_IN_PLACE: usize = 5;

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
#[derive(Debug)]
pub struct VectorClock {
    parts: Parts,
}

const _: () = assert!(size_of::<VectorClock>() == (IN_PLACE + 1) * size_of::<u64>());

/// Components of chains that follow each other.
type Chunk = [u64; TOGETHER];

#[derive(Debug)]
enum Parts {
    /// So many components, and zeros behind them.
    Few(u8, [u64; IN_PLACE]),
    /// More than that, or once more.
    Many(SmallVec<[Arc<Chunk>; CHUNKS_IN_PLACE]>),
}

impl Default for VectorClock {
    fn default() -> VectorClock {
        VectorClock { parts: Parts::Few(0, [0; IN_PLACE]) }
    }
}

impl Clone for VectorClock {
    fn clone(&self) -> VectorClock {
        let parts = match &self.parts {
            Parts::Few(width, ticks) => Parts::Few(*width, *ticks),
            Parts::Many(chunks) => Parts::Many(chunks.clone()),
        };
        VectorClock { parts }
    }

    fn clone_from(&mut self, other: &VectorClock) {
        match (&mut self.parts, &other.parts) {
            (Parts::Many(mine), Parts::Many(theirs)) => {
                mine.truncate(theirs.len());
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    share(mine, theirs);
                }
                let known = mine.len();
                mine.extend(theirs[known..].iter().map(Arc::clone));
            }
            _ => *self = other.clone(),
        }
    }
}

impl PartialEq for VectorClock {
    fn eq(&self, other: &VectorClock) -> bool {
        self.includes(other) && other.includes(self)
    }
}

impl Eq for VectorClock {}

impl VectorClock {
    /// The last tick of `chain` known to have passed.
    #[inline]
    pub fn tick(&self, chain: Chain) -> u64 {
        let index = chain.0 as usize;
        let tick = match &self.parts {
            Parts::Few(_, ticks) => ticks.get(index),
            Parts::Many(chunks) => {
                chunks.get(index / TOGETHER).map(|chunk| &chunk[index % TOGETHER])
            }
        };
        tick.copied().unwrap_or(0)
    }

    /// The last tick of every chain known to have passed, as far as there is one.
    pub fn ticks(&self) -> impl Iterator<Item = u64> {
        let (few, many): (&[u64], &[Arc<Chunk>]) = match &self.parts {
            Parts::Few(width, ticks) => (&ticks[..usize::from(*width)], &[]),
            Parts::Many(chunks) => (&[], chunks),
        };
        few.iter().chain(many.iter().flat_map(|chunk| chunk.iter())).copied()
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
        match &mut self.parts {
            Parts::Few(width, ticks) if index < IN_PLACE => {
                ticks[index] = stamp.tick;
                *width = (*width).max(index as u8 + 1);
            }
            _ => {
                let chunks = self.chunks();
                while chunks.len() <= index / TOGETHER {
                    chunks.push(Arc::new([0; TOGETHER]));
                }
                Arc::make_mut(&mut chunks[index / TOGETHER])[index % TOGETHER] = stamp.tick;
            }
        }
    }

    /// Of this chain no more than this tick is to have passed.
    pub fn limit(&mut self, stamp: Stamp) {
        if self.tick(stamp.chain) <= stamp.tick {
            return;
        }
        let index = stamp.chain.0 as usize;
        match &mut self.parts {
            Parts::Few(_, ticks) => ticks[index] = stamp.tick,
            Parts::Many(chunks) => {
                Arc::make_mut(&mut chunks[index / TOGETHER])[index % TOGETHER] = stamp.tick;
            }
        }
        self.trim();
    }

    /// From now on all that `other` knows to have passed has passed.
    pub fn join(&mut self, other: &VectorClock) {
        match (&mut self.parts, &other.parts) {
            (Parts::Few(width, mine), Parts::Few(other_width, theirs)) => {
                *width = (*width).max(*other_width);
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine = (*mine).max(*theirs);
                }
            }
            (Parts::Many(mine), Parts::Few(_, theirs)) => {
                let news = mine[0].iter().zip(theirs).any(|(mine, theirs)| mine < theirs);
                if news {
                    for (mine, theirs) in Arc::make_mut(&mut mine[0]).iter_mut().zip(theirs) {
                        *mine = (*mine).max(*theirs);
                    }
                }
            }
            (_, Parts::Many(theirs)) => {
                let mine = self.chunks();
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    join(mine, theirs);
                }
                let known = mine.len().min(theirs.len());
                mine.extend(theirs[known..].iter().map(Arc::clone));
            }
        }
    }

    /// No more is to have passed than `other` knows.
    pub fn meet(&mut self, other: &VectorClock) {
        match &mut self.parts {
            Parts::Few(_, ticks) => {
                for (chain, mine) in ticks.iter_mut().enumerate() {
                    *mine = (*mine).min(other.tick(Chain(chain as u32)));
                }
            }
            Parts::Many(chunks) => {
                for (number, chunk) in chunks.iter_mut().enumerate() {
                    for (place, mine) in Arc::make_mut(chunk).iter_mut().enumerate() {
                        let chain = Chain((number * TOGETHER + place) as u32);
                        *mine = (*mine).min(other.tick(chain));
                    }
                }
            }
        }
        self.trim();
    }

    /// Does this clock know all that `other` knows?
    pub fn includes(&self, other: &VectorClock) -> bool {
        let all = |mine: &[u64], theirs: &[u64]| mine.iter().zip(theirs).all(|(m, t)| m >= t);
        match (&self.parts, &other.parts) {
            (Parts::Few(_, mine), Parts::Few(_, theirs)) => all(mine, theirs),
            (Parts::Many(mine), Parts::Few(_, theirs)) => all(&*mine[0], theirs),
            (Parts::Many(mine), Parts::Many(theirs)) if mine.len() >= theirs.len() => mine
                .iter()
                .zip(theirs)
                .all(|(mine, theirs)| Arc::ptr_eq(mine, theirs) || all(&**mine, &**theirs)),
            _ => (0..).zip(other.ticks()).all(|(chain, tick)| self.tick(Chain(chain)) >= tick),
        }
    }

    /// How many components it holds: what it costs.
    pub fn width(&self) -> usize {
        self.ticks().zip(1..).filter(|(tick, _)| *tick != 0).last().map_or(0, |(_, width)| width)
    }

    /// In chunks from now on, of which there is at least one.
    fn chunks(&mut self) -> &mut SmallVec<[Arc<Chunk>; CHUNKS_IN_PLACE]> {
        if let Parts::Few(_, ticks) = &self.parts {
            let mut chunk = [0; TOGETHER];
            chunk[..IN_PLACE].copy_from_slice(ticks);
            self.parts = Parts::Many(SmallVec::from_iter([Arc::new(chunk)]));
        }
        match &mut self.parts {
            Parts::Many(chunks) => chunks,
            Parts::Few(..) => unreachable!("it is in chunks since above"),
        }
    }

    /// Nothing is kept of chains behind the last that is known.
    fn trim(&mut self) {
        match &mut self.parts {
            Parts::Few(width, ticks) => {
                let last = ticks.iter().rposition(|tick| *tick != 0);
                *width = last.map_or(0, |last| last as u8 + 1);
            }
            Parts::Many(chunks) => {
                let nothing = |chunk: &Arc<Chunk>| chunk.iter().all(|tick| *tick == 0);
                while chunks.len() > 1 && chunks.last().is_some_and(nothing) {
                    chunks.pop();
                }
            }
        }
    }
}

/// `mine` is `theirs` from now on.
fn share(mine: &mut Arc<Chunk>, theirs: &Arc<Chunk>) {
    if !Arc::ptr_eq(mine, theirs) {
        *mine = Arc::clone(theirs);
    }
}

/// All that is known of `theirs` is known of `mine`. The same chunk, if it is no more than theirs.
fn join(mine: &mut Arc<Chunk>, theirs: &Arc<Chunk>) {
    if Arc::ptr_eq(mine, theirs) {
        return;
    }
    let (mut less, mut more) = (false, false);
    for (mine, theirs) in mine.iter().zip(theirs.iter()) {
        less |= mine < theirs;
        more |= mine > theirs;
    }
    match (less, more) {
        (_, false) => *mine = Arc::clone(theirs),
        (false, true) => {}
        (true, true) => {
            for (mine, theirs) in Arc::make_mut(mine).iter_mut().zip(theirs.iter()) {
                *mine = (*mine).max(*theirs);
            }
        }
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

    /// Every operation on clocks of any width, in place and in chunks, against plain vectors.
    #[test]
    fn clocks_of_any_width_are_vectors_of_ticks() {
        const CHAINS: usize = 3 * TOGETHER;
        let mut random = 1u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize % below
        };
        let mut clocks = vec![VectorClock::default(); 6];
        let mut plain = vec![[0u64; CHAINS]; 6];
        for step in 0..20_000 {
            let (a, b) = (next(6), next(6));
            // Some stay narrow for a while.
            let chain = next([3, IN_PLACE, IN_PLACE + 2, CHAINS][a % 4]);
            let stamp = stamp(chain as u32, next(50) as u64 + 1);
            let other = clocks[b].clone();
            let other_plain = plain[b];
            match next(12) {
                0..6 => {
                    clocks[a].raise(stamp);
                    plain[a][chain] = plain[a][chain].max(stamp.tick);
                }
                6..9 => {
                    clocks[a].join(&other);
                    plain[a].iter_mut().zip(other_plain).for_each(|(m, t)| *m = t.max(*m));
                }
                9 => {
                    clocks[a].meet(&other);
                    plain[a].iter_mut().zip(other_plain).for_each(|(m, t)| *m = t.min(*m));
                }
                10 => {
                    clocks[a].limit(stamp);
                    plain[a][chain] = plain[a][chain].min(stamp.tick);
                }
                _ => {
                    clocks[a].clone_from(&other);
                    plain[a] = other_plain;
                }
            }
            if step % 500 == 0 {
                clocks[a] = VectorClock::default();
                plain[a] = [0; CHAINS];
            }
            for (clock, plain) in clocks.iter().zip(&plain) {
                assert!((0..CHAINS).all(|chain| clock.tick(Chain(chain as u32)) == plain[chain]));
                let ticks: Vec<u64> =
                    clock.ticks().chain(std::iter::repeat(0)).take(CHAINS).collect();
                assert_eq!(ticks, plain);
                let width = plain.iter().rposition(|tick| *tick != 0).map_or(0, |last| last + 1);
                assert_eq!(clock.width(), width);
            }
            let includes = plain[a].iter().zip(&plain[b]).all(|(mine, theirs)| mine >= theirs);
            assert_eq!(clocks[a].includes(&clocks[b]), includes);
            assert_eq!(clocks[a] == clocks[b], plain[a] == plain[b]);
        }
    }

    #[test]
    fn clocks_that_were_joined_have_in_common_what_both_know() {
        let all: Vec<(u32, u64)> = (0..4 * TOGETHER as u32).map(|chain| (chain, 7)).collect();
        let (mut thread, mut lock) = (clock(&all), clock(&all));
        thread.raise(stamp(TOGETHER as u32, 8));
        lock.join(&thread);
        thread.raise(stamp(TOGETHER as u32, 9));
        let (Parts::Many(mine), Parts::Many(locks)) = (&thread.parts, &lock.parts) else {
            panic!("wide clocks in place")
        };
        let common: Vec<bool> = mine.iter().zip(locks).map(|(a, b)| Arc::ptr_eq(a, b)).collect();
        assert_eq!(common, [true, false, true, true]);
        assert_eq!((lock.tick(Chain(TOGETHER as u32)), lock.width()), (8, 4 * TOGETHER));
    }
}

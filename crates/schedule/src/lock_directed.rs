//! Lock-directed: makes deadlocks happen.
//!
//! A thread that holds a lock and is about to ask for another is held back until a circle is closed: until each
//! of some threads asks for what the next one holds. Then they all go on, and wait for each other for ever. This is
//! the second phase of DeadlockFuzzer (Joshi, Park, Sen, Naik, PLDI 2009, section 2.3). Its first phase, a cycle known
//! from an earlier run, may be there (`confirm`): then only requests at its places are suspected. Without
//! it (`hunt`) every nested request is, which finds cycles of any number of threads, but cannot aim at one among
//! many.
//!
//! As in the paper, a thread that waits in vain is let go: when nobody else can run, or others spin or tick.

use crate::{Candidate, Decision, Point, Policy, Rng, Step};
use raddle_model::ThreadId;
use std::collections::BTreeMap;

/// Points after which a thread goes on though others still run: they spin, or tick.
const PATIENCE: u64 = 2_000;
/// Of suspected requests, every so many goes through at once, so that not every execution is the same.
const LET_THROUGH: u64 = 8;

/// Holds threads back between two locks.
#[derive(Debug)]
pub struct LockDirected {
    rng: Rng,
    /// Who, since which point.
    postponed: BTreeMap<ThreadId, u64>,
    /// A circle is closed: nobody is held back any more.
    closed: bool,
    points: u64,
}

impl LockDirected {
    /// Draws from this seed.
    pub fn new(seed: u64) -> LockDirected {
        let (postponed, rng) = (BTreeMap::new(), Rng::new(seed, 6));
        LockDirected { rng, postponed, closed: false, points: 0 }
    }

    fn release(&mut self, thread: ThreadId) -> Decision {
        self.postponed.remove(&thread);
        Decision::Run(thread)
    }

    /// Is this one to be held back?
    fn holds_back(&mut self, candidate: &Candidate) -> bool {
        let Step::Nested(nested) = candidate.next else { return false };
        nested.suspected && !self.closed && self.rng.below(LET_THROUGH) != 0
    }
}

impl Policy for LockDirected {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        self.points += 1;
        let can_run = |thread| point.runnable.iter().any(|c| c.thread == thread);
        self.postponed.retain(|thread, _| can_run(*thread) && Some(*thread) != point.current);
        let closes = |c: &Candidate| matches!(c.next, Step::Nested(n) if n.closes && n.suspected);
        if point.runnable.iter().any(closes) {
            self.closed = true;
            self.postponed.clear();
        }
        let late = self.postponed.iter().find(|(_, since)| self.points - **since >= PATIENCE);
        if let Some((&thread, _)) = late {
            return self.release(thread);
        }
        loop {
            let free: Vec<&Candidate> =
                point.runnable.iter().filter(|c| !self.postponed.contains_key(&c.thread)).collect();
            let Some(chosen) = self.rng.pick(&free).map(|c| **c) else {
                if point.can_wait {
                    return Decision::Wait;
                }
                let held: Vec<ThreadId> = self.postponed.keys().copied().collect();
                return match self.rng.pick(&held) {
                    Some(&thread) => self.release(thread),
                    None => Decision::Wait,
                };
            };
            if !self.holds_back(&chosen) {
                return Decision::Run(chosen.thread);
            }
            self.postponed.insert(chosen.thread, self.points);
        }
    }
}

//! Lock-directed: makes deadlocks happen.
//!
//! A thread that holds a lock and is about to ask for another is held back until nobody else can
//! run. Then all who could close a circle of waits stand with their first locks in hand, and whoever
//! goes on asks for what another holds. This is the second phase of DeadlockFuzzer (Joshi, Park, Sen,
//! Naik, PLDI 2009) without its first: every nested request is suspected, not only those of a known cycle, which
//! needs no earlier run and finds cycles of any number of threads, but cannot aim at one among many.

use crate::{Candidate, Decision, Point, Policy, Rng, Step};
use raddle_model::ThreadId;
use std::collections::BTreeMap;

/// Points after which a thread goes on though others still run: they spin, or tick.
const PATIENCE: u64 = 2_000;
/// Of nested requests, every so many goes through at once, so that not every execution is the same.
const LET_THROUGH: u64 = 8;

/// Holds threads back between two locks.
#[derive(Debug)]
pub struct LockDirected {
    rng: Rng,
    /// Who, since which point.
    postponed: BTreeMap<ThreadId, u64>,
    points: u64,
}

impl LockDirected {
    /// Draws from this seed.
    pub fn new(seed: u64) -> LockDirected {
        LockDirected { rng: Rng::new(seed, 6), postponed: BTreeMap::new(), points: 0 }
    }

    fn release(&mut self, thread: ThreadId) -> Decision {
        self.postponed.remove(&thread);
        Decision::Run(thread)
    }
}

impl Policy for LockDirected {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        self.points += 1;
        let can_run = |thread| point.runnable.iter().any(|c| c.thread == thread);
        self.postponed.retain(|thread, _| can_run(*thread) && Some(*thread) != point.current);
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
            if !matches!(chosen.next, Step::Nested(_)) || self.rng.below(LET_THROUGH) == 0 {
                return Decision::Run(chosen.thread);
            }
            self.postponed.insert(chosen.thread, self.points);
        }
    }
}

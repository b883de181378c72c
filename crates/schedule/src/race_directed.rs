//! Race-directed: Algorithm 1 of RaceFuzzer (Sen, "Race directed random testing of concurrent
//! programs", PLDI 2008, section 2.2).
//!
//! Threads run at random, but one that is about to execute a watched access is *postponed* until
//! another is about to touch the same memory in conflict. Then the race is real, and is resolved by
//! a coin: either the newcomer goes on, or all those it met do, while it is postponed itself.
//!
//! The paper releases a postponed thread when all that can run are postponed, and has a monitor
//! thread release those that wait long. Here as there; but waiting is counted in scheduling points, never
//! in time, so that the same seed does the same. And where somebody merely sleeps, time passes first:
//! the sleeper may be the one that is waited for.

use crate::{Access, Candidate, Decision, Point, Policy, Rng, Step};
use raddle_model::ThreadId;
use std::collections::{BTreeMap, VecDeque};

/// Points after which a postponed thread goes on: others spin, or tick, or never come. The paper's
/// monitor waits for seconds; this many points pass in a tenth of one.
const PATIENCE: u64 = 20_000;

/// Makes watched accesses meet.
#[derive(Debug)]
pub struct RaceDirected {
    rng: Rng,
    /// Who, since which point.
    postponed: BTreeMap<ThreadId, u64>,
    /// Those that won against a newcomer and go next.
    winners: VecDeque<ThreadId>,
    points: u64,
}

impl RaceDirected {
    /// Draws from this seed.
    pub fn new(seed: u64) -> RaceDirected {
        RaceDirected {
            rng: Rng::new(seed, 3),
            postponed: BTreeMap::new(),
            winners: VecDeque::new(),
            points: 0,
        }
    }

    /// Those postponed that stand in conflict with an access. (Algorithm 2, `Racing`.)
    fn racing(&self, access: &Access, runnable: &[Candidate]) -> Vec<ThreadId> {
        let in_conflict = |c: &&Candidate| {
            self.postponed.contains_key(&c.thread)
                && matches!(c.next, Step::Access(other) if other.conflicts(access))
        };
        runnable.iter().filter(in_conflict).map(|c| c.thread).collect()
    }

    fn release(&mut self, thread: ThreadId) -> Decision {
        self.postponed.remove(&thread);
        Decision::Run(thread)
    }
}

impl Policy for RaceDirected {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        self.points += 1;
        let can_run = |thread| point.runnable.iter().any(|c| c.thread == thread);
        // Whoever ran was not held back, and does not stand where it stood.
        self.postponed.retain(|thread, _| can_run(*thread) && Some(*thread) != point.current);
        while let Some(winner) = self.winners.pop_front() {
            if can_run(winner) {
                return self.release(winner);
            }
        }
        let oldest = self.postponed.iter().min_by_key(|(_, since)| **since);
        if let Some((&thread, &since)) = oldest
            && self.points - since >= PATIENCE
        {
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
            let Step::Access(access) = chosen.next else { return Decision::Run(chosen.thread) };
            let racing = self.racing(&access, point.runnable);
            if racing.is_empty() {
                self.postponed.insert(chosen.thread, self.points);
            } else if self.rng.coin() {
                return Decision::Run(chosen.thread);
            } else {
                self.postponed.insert(chosen.thread, self.points);
                self.winners.extend(racing);
                if let Some(winner) = self.winners.pop_front() {
                    return self.release(winner);
                }
            }
        }
    }
}

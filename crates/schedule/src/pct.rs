//! Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized
//! scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010).
//!
//! Every thread gets a random priority, and the highest that can run runs. At d - 1 points, chosen at
//! random among the expected length of the execution, whoever runs falls below all others. A bug that
//! needs d ordering constraints among n threads and k points shows with probability at least
//! 1 / (n k^(d-1)).
//!
//! Three things the paper's programs do not do:
//! - They do not spin. Ours do: a thread that gives way falls below all others, and so does one that has run
//!   for long without a scheduling point of its own, or it would starve the one it waits for. How
//!   long is long differs from execution to execution: a thread that only computes must be able to stay
//!   ahead of the others for a millisecond and more.
//! - They do not sleep. A sleeper keeps its priority: if it is above all who could run, time passes. One
//!   that sleeps again and again may be waiting for them, and falls in the end.
//! - Their length is known. Ours is that of an earlier execution, most of it perhaps in a part that does not
//!   matter; so changes are drawn among the first k, k/2, k/4 or k/8 points that matter.

use crate::{Decision, Point, Policy, Rng, Step};
use raddle_model::ThreadId;
use std::collections::BTreeMap;

/// Powers of two among which the patience with a computing thread is drawn: 1 to 1,024 points are five
/// thousand to five million branches, up to some ten milliseconds.
const PATIENCES: u64 = 11;
/// So many other points between two at which a thread was found computing are a loop around a lock or an
/// atomic variable: it waits for somebody.
const SPIN: u64 = 64;
/// Parts of the expected length among which changes are drawn, as powers of two.
const LENGTHS: u64 = 4;
/// A sleeper that came first falls in one of so many times.
const SLEEPER_FALLS: u64 = 4;

/// Priorities with a few changes.
#[derive(Debug)]
pub struct Pct {
    rng: Rng,
    priorities: BTreeMap<ThreadId, i64>,
    /// Points at which the running thread falls, in order, the next one last.
    changes: Vec<u64>,
    /// So far, but for those of threads that merely compute.
    points: u64,
    /// Points that a thread may compute for at a stretch.
    patience: u64,
    /// Points at which whoever runs was found computing, at a stretch.
    computing: u64,
    /// Its other points since the last of them.
    meanwhile: u64,
    /// The next priority below all others.
    lowest: i64,
}

impl Pct {
    /// Looks for bugs of this depth (1 or more) in executions of about `length` points.
    pub fn new(seed: u64, depth: u32, length: u64) -> Pct {
        let mut rng = Rng::new(seed, 2);
        let patience = 1 << rng.below(PATIENCES);
        let length = length >> rng.below(LENGTHS);
        let changes = (1..depth).map(|_| 1 + rng.below(length.max(1)));
        let mut changes: Vec<u64> = changes.collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        let priorities = BTreeMap::new();
        Pct { rng, priorities, changes, points: 0, patience, computing: 0, meanwhile: 0, lowest: 0 }
    }

    fn sink(&mut self, thread: ThreadId) {
        self.lowest -= 1;
        self.priorities.insert(thread, self.lowest);
    }

    fn priority(&mut self, thread: ThreadId) -> i64 {
        let rng = &mut self.rng;
        // Positive and practically never equal: changes go below zero.
        *self.priorities.entry(thread).or_insert_with(|| (rng.draw() >> 2) as i64 + 1)
    }

    /// Does what the running thread is about to do cost it its priority?
    fn look_at(&mut self, current: ThreadId, next: Option<Step>) {
        if let Some(Step::Branch(_)) = next {
            let spins = self.meanwhile >= SPIN;
            self.computing += 1;
            self.meanwhile = 0;
            if spins || self.computing >= self.patience {
                self.computing = 0;
                self.sink(current);
            }
            return;
        }
        self.meanwhile += 1;
        self.points += 1;
        if let Some(Step::Yield) = next {
            self.sink(current);
        }
        while self.changes.last().is_some_and(|at| *at <= self.points) {
            self.changes.pop();
            self.sink(current);
        }
    }
}

impl Policy for Pct {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        for candidate in point.runnable {
            self.priority(candidate.thread);
        }
        if let Some(current) = point.current {
            let next = point.runnable.iter().find(|c| c.thread == current).map(|c| c.next);
            self.look_at(current, next);
        }
        let highest = point.runnable.iter().max_by_key(|c| self.priorities.get(&c.thread));
        let Some(highest) = highest.map(|c| c.thread) else { return Decision::Wait };
        if point.current != Some(highest) {
            (self.computing, self.meanwhile) = (0, 0);
        }
        if let Some(sleeper) = point.sleeper
            && self.priority(sleeper) > self.priority(highest)
        {
            if self.rng.below(SLEEPER_FALLS) == 0 {
                self.sink(sleeper);
            }
            return Decision::Wait;
        }
        Decision::Run(highest)
    }
}

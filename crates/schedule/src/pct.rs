//! Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized
//! scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010).
//!
//! Every thread gets a random priority, and the highest that can run runs. At d - 1 points, chosen at
//! random among the expected length of the execution, whoever runs falls below all others. A bug that
//! needs d ordering constraints among n threads and k points shows with probability at least
//! 1 / (n k^(d-1)).
//!
//! The paper's programs do not spin. Ours do: a thread that gives way or has run for long without
//! a scheduling point of its own falls below all others too, or it would starve the one it waits
//! for.

use crate::{Decision, Point, Policy, Rng, Step};
use raddle_model::ThreadId;
use std::collections::BTreeMap;

/// Priorities with a few changes.
#[derive(Debug)]
pub struct Pct {
    rng: Rng,
    priorities: BTreeMap<ThreadId, i64>,
    /// Points at which the running thread falls, in order, the next one last.
    changes: Vec<u64>,
    points: u64,
    /// The next priority below all others.
    lowest: i64,
}

impl Pct {
    /// Looks for bugs of this depth (1 or more) in executions of about `length` points.
    pub fn new(seed: u64, depth: u32, length: u64) -> Pct {
        let mut rng = Rng::new(seed, 2);
        let changes = (1..depth).map(|_| 1 + rng.below(length.max(1)));
        let mut changes: Vec<u64> = changes.collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        Pct { rng, priorities: BTreeMap::new(), changes, points: 0, lowest: 0 }
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
}

impl Policy for Pct {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        self.points += 1;
        for candidate in point.runnable {
            self.priority(candidate.thread);
        }
        if let Some(current) = point.current {
            let next = point.runnable.iter().find(|c| c.thread == current).map(|c| c.next);
            if matches!(next, Some(Step::Yield | Step::Branch(_))) {
                self.sink(current);
            }
            while self.changes.last().is_some_and(|at| *at <= self.points) {
                self.changes.pop();
                self.sink(current);
            }
        }
        let highest = point.runnable.iter().max_by_key(|c| self.priorities.get(&c.thread));
        highest.map_or(Decision::Wait, |c| Decision::Run(c.thread))
    }
}

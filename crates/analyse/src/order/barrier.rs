//! Barriers: whoever leaves comes after all who entered the same round (`seeds/000…` 4.1.2).
//!
//! The paper keeps one segment per barrier, so a slow leaver also comes after the fast ones of the
//! next round, and races between rounds are lost. Here every round has its own clocks. A round is
//! over for newcomers when as many entered as the barrier was created for, or, where that number is
//! not known, when one of it has left. A round outlives its barrier: the memory may be given back
//! before the last thread has told that it left.

use super::thread::Threads;
use super::{Clocks, forget_in};
use raddle_model::{Address, ThreadId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

#[derive(Debug, Default)]
struct Barrier {
    /// How many a round takes; zero when unknown.
    count: u64,
    /// The round that newcomers join, and how many did; absent when the next opens one.
    open: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Round {
    clocks: Clocks,
    /// Entered and not left.
    inside: u64,
}

/// All barriers.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    barriers: BTreeMap<Address, Barrier>,
    rounds: HashMap<u64, Round>,
    /// Where each thread stands: at most at one barrier, but for tasks that run inside.
    standing: HashMap<ThreadId, Vec<(Address, u64)>>,
    next: u64,
}

impl Barriers {
    pub(super) fn create(&mut self, barrier: Address, count: u64) {
        self.barriers.insert(barrier, Barrier { count, open: None });
    }

    pub(super) fn forget(&mut self, bytes: &Range<u64>) {
        forget_in(&mut self.barriers, bytes);
    }

    pub(super) fn enter(&mut self, threads: &mut Threads, thread: ThreadId, barrier: Address) {
        let at = self.barriers.entry(barrier).or_default();
        let (round, entered) = at.open.unwrap_or_else(|| {
            self.next += 1;
            (self.next, 0)
        });
        let full = at.count != 0 && entered + 1 >= at.count;
        at.open = (!full).then_some((round, entered + 1));
        let state = self.rounds.entry(round).or_default();
        state.inside += 1;
        threads.release(thread, &mut state.clocks);
        self.standing.entry(thread).or_default().push((barrier, round));
    }

    pub(super) fn leave(&mut self, threads: &mut Threads, thread: ThreadId, barrier: Address) {
        let Some(standing) = self.standing.get_mut(&thread) else { return };
        let Some(at) = standing.iter().rposition(|(b, _)| *b == barrier) else { return };
        let (_, round) = standing.remove(at);
        if standing.is_empty() {
            self.standing.remove(&thread);
        }
        if let Some(b) = self.barriers.get_mut(&barrier)
            && b.open.is_some_and(|(open, _)| open == round)
        {
            b.open = None;
        }
        let Some(state) = self.rounds.get_mut(&round) else { return };
        threads.acquire(thread, Some(&state.clocks));
        state.inside -= 1;
        if state.inside == 0 {
            self.rounds.remove(&round);
        }
    }

    /// What `thread` did while inside (a task it ran there) comes before all who leave.
    pub(super) fn release_inside(&mut self, threads: &mut Threads, thread: ThreadId) {
        for (_, round) in self.standing.get(&thread).into_iter().flatten() {
            if let Some(state) = self.rounds.get_mut(round) {
                threads.release(thread, &mut state.clocks);
            }
        }
    }
}

//! What critical sections touched: by this, waits are told whose signals they waited for.

use super::{FastHybrid, State};
use crate::fast::cell::{Bytes, GRANULE, LINE};
use crate::fast::journal::Journal;
use crate::fast::protocol::{Planes, Side, slots_of};
use raddle_model::clock::Stamp;
use raddle_model::{AccessKind, Event, EventKind, ThreadId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Where a thread's critical section, or its last one, lies in its journal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Section {
    from: u64,
    /// Nothing while it lasts.
    to: Option<u64>,
}

impl Section {
    /// After an event that found the thread holding a lock or not, and left it so or otherwise.
    pub(super) fn event(&mut self, kind: &EventKind, (held, holds): (bool, bool), now: u64) {
        match (kind, held, holds) {
            // A wait in the midst of a section does not end it.
            (EventKind::ConditionWaitBegin { .. } | EventKind::ConditionWaitEnd { .. }, ..) => {}
            (_, false, true) => *self = Section { from: now, to: None },
            (_, true, false) => self.to = Some(now),
            _ => {}
        }
    }
}

impl<P: Planes> FastHybrid<P> {
    /// Before an event that asks what its thread's critical section has touched.
    pub(super) fn recall(&self, state: &mut State, event: &Event, journal: &Journal) {
        use EventKind::*;
        if !matches!(
            event.kind,
            ConditionSignal { .. } | ConditionWaitBegin { .. } | ConditionLoopLeft { .. }
        ) {
            return;
        }
        let Some(Section { from, to }) = state.threads.get(&event.thread).map(|m| m.section) else {
            return;
        };
        let mut touched = Vec::new();
        let whole = journal.between(from, to.unwrap_or(journal.count), |side, bytes| {
            let kind = match side {
                Side::Write => AccessKind::Write,
                Side::Read => AccessKind::Read,
            };
            touched.push((kind, bytes));
        });
        state.execution.recall(event.thread, touched, whole);
    }

    /// A thread whose standing is undecided is about to touch these bytes, which are not of its stack.
    pub fn touches(&self, thread: ThreadId, (start, end): (u64, u64)) {
        let mut state = self.lock();
        state.execution.touches(thread, start..end);
        self.refresh(&mut state, thread);
    }

    /// Whoever leaves a loop around a wait comes after those who last wrote, under a lock that it
    /// holds too, what it has read in its critical section.
    pub(super) fn left_loop(&self, state: &mut State, event: &Event) {
        let mut read: FxHashMap<u64, Bytes> = FxHashMap::default();
        for byte in state.execution.condition_reads(event) {
            *read.entry(byte / GRANULE).or_default() |= 1 << (byte % GRANULE);
        }
        let held = Arc::clone(state.execution.locks(event.thread));
        let under_lock = |slot, tick| {
            self.locks.get(self.planes.locks(slot, tick)).is_some_and(|set| set.excludes(&held))
        };
        let mut writes: Vec<(ThreadId, Stamp)> = Vec::new();
        for (granule, bytes) in read {
            if !self.planes.covers(granule * GRANULE, (granule + 1) * GRANULE) {
                continue;
            }
            for slot in slots_of(self.planes.sharers(Side::Write, granule * GRANULE / LINE)) {
                let newest = self.planes.cell(slot, Side::Write, granule);
                let older = self.older(slot, Side::Write, granule);
                for cell in std::iter::once(newest).chain(older) {
                    if cell.bytes() & bytes != 0 && under_lock(slot, cell.tick()) {
                        writes.push(state.when(slot, cell.tick()));
                    }
                }
            }
            let kept = state.specials.get(granule).into_iter().flat_map(|special| &special.kept);
            let kept = kept.filter(|kept| {
                kept.bytes & bytes != 0
                    && self.accesses.one(kept.access).is_some_and(|one| one.kind.writes())
                    && under_lock(kept.slot, kept.tick)
            });
            writes.extend(kept.map(|kept| state.when(kept.slot, kept.tick)));
        }
        state.execution.spun_by(event.thread, &writes);
    }
}

//! What critical sections touched: by this, waits are told whose signals they waited for, and sections
//! what earlier ones handed to them.

use super::{FastHybrid, State};
use crate::fast::cell::{Bytes, GRANULE, LINE, WHOLE};
use crate::fast::journal::{Journal, Noted};
use crate::fast::protocol::{Planes, SPECIAL, Side, in_room, place, slots_of};
use crate::fast::standing::Standing;
use crate::fast::strips::cells;
use crate::handover::{Values, closes};
use crate::touch::Kind;
use raddle_model::clock::{Stamp, VectorClock};
use raddle_model::lockset::LockSet;
use raddle_model::{AccessKind, Event, EventKind, ThreadId};
use smallvec::SmallVec;
use std::sync::Arc;

/// Where a thread's critical section, or its last one, lies in its journal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Section {
    from: u64,
    /// Nothing while it lasts.
    to: Option<u64>,
    /// Up to here it has been asked what was handed to it.
    pub(super) asked: u64,
    /// What [`Journal::handed`] was then.
    handed: u64,
}

impl Section {
    /// A section begins now.
    pub(super) fn begin(&mut self, journal: &Journal) {
        let now = journal.count;
        *self = Section { from: now, to: None, asked: now, handed: journal.handed };
    }

    /// It ends now, and nothing was handed to it.
    pub(super) fn end(&mut self, journal: &Journal) {
        *self = Section { to: Some(journal.count), asked: journal.count, ..*self };
        self.handed = journal.handed;
    }

    /// Since it was last asked, has a read met a write of another thread that a lock of both kept from racing?
    pub(super) fn has_met(&self, standing: &Standing, journal: &Journal) -> bool {
        self.handed != journal.handed || standing.was_handed()
    }

    /// Is all it has touched since then in the journal?
    pub(super) fn is_whole(&self, journal: &Journal) -> bool {
        journal.is_whole(self.asked)
    }

    /// After an event that found the thread holding a lock or not, and left it so or otherwise.
    pub(super) fn event(&mut self, kind: &EventKind, (held, holds): (bool, bool), now: u64) {
        match (kind, held, holds) {
            // A wait in the midst of a section does not end it.
            (EventKind::ConditionWaitBegin { .. } | EventKind::ConditionWaitEnd { .. }, ..) => {}
            (_, false, true) => {
                *self = Section { from: now, to: None, asked: now, ..*self };
            }
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
        let Some(Section { from, to, .. }) = state.threads.get(&event.thread).map(|m| m.section)
        else {
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
        let read = state.execution.condition_reads(event);
        let own = state.threads.get(&event.thread).map_or(0, |of| of.standing.own_slots());
        let held = Arc::clone(state.execution.locks(event.thread));
        let mut writes = Vec::new();
        for (granule, bytes) in read {
            let read = (granule, Bytes::from(bytes));
            self.writes_under(state, (own, &held), read, |_, _| true, &mut writes);
        }
        self.catch_up_with(state, &writes);
        state.execution.left_loop_after(event.thread, &writes);
    }

    /// Before an event that ends a stretch of what its thread does under its locks: what others have
    /// handed to it there ([`crate::handover`]).
    pub(super) fn hand_over(&self, state: &mut State, event: &Event, journal: &Journal) {
        if !state.execution.follows_handovers() {
            return;
        }
        if !closes(event, || Arc::clone(state.execution.locks(event.thread))) {
            return;
        }
        let Some(handed) = self.handed(state, event.thread, journal) else { return };
        let Some(member) = state.threads.get_mut(&event.thread) else { return };
        let left = member.held_back.decide(&handed, &self.withdrawn());
        member.standing.set_holds_back(false);
        self.add(&mut state.findings, left);
    }

    /// A thread has done so much since its last event that its journal will forget how its critical section began: what others
    /// have handed to it so far is asked for now.
    pub fn ask(&self, thread: ThreadId, journal: &Journal) {
        let mut state = self.lock();
        let state = &mut *state;
        if !state.execution.follows_handovers() || !state.threads.contains_key(&thread) {
            return;
        }
        self.catch_up(state, thread);
        if let Some(handed) = self.handed(state, thread, journal)
            && let Some(member) = state.threads.get_mut(&thread)
        {
            member.held_back.take_back(&handed, &self.withdrawn());
            member.standing.set_holds_back(!member.held_back.is_empty());
        }
        self.refresh(state, thread);
        self.let_go(state, thread);
    }

    /// What has been handed to a thread under its locks since it was last asked, and comes before what it does in the weak
    /// order from now on. Nothing if there is nothing to decide.
    fn handed(
        &self,
        state: &mut State,
        thread: ThreadId,
        journal: &Journal,
    ) -> Option<VectorClock> {
        let member = state.threads.get_mut(&thread)?;
        let asked = std::mem::replace(&mut member.section.asked, journal.count);
        let met = std::mem::replace(&mut member.section.handed, journal.handed);
        let waits = !member.held_back.is_empty();
        let standing = Arc::clone(&member.standing);
        self.withdraw(&standing, state.execution.stamp(thread), asked, journal);
        // To look for what was handed over costs as much as the section itself.
        if !standing.take_handed() && met == journal.handed && !waits {
            return None;
        }
        let mut writes = Vec::new();
        if state.execution.holds_locks(thread) && asked < journal.count {
            let held = Arc::clone(state.execution.locks(thread));
            // What waits may have been met before its thread came to know, in this very section, what it was handed.
            let wanted = |slot, tick| waits || !standing.knows(slot, tick);
            let taken = |granule, bytes| self.links_left(&standing, granule, bytes);
            for read in depended_on(journal, asked, taken) {
                let own = standing.own_slots();
                self.writes_under(state, (own, &held), read, wanted, &mut writes);
            }
        }
        if writes.is_empty() {
            return Some(VectorClock::default());
        }
        self.catch_up_with(state, &writes);
        Some(state.execution.handed(thread, &writes))
    }

    /// In which of these bytes of a granule, which its section has written, it has left links ([`crate::handover`]). Each write is
    /// asked for by itself: notes do not tell fields apart that lie side by side.
    pub(super) fn links_left(&self, standing: &Standing, granule: u64, bytes: Bytes) -> Bytes {
        let own = place(&self.planes, standing, Side::Write, granule);
        let cell = own.get(&self.planes, standing, (Side::Write, granule));
        let mut links = 0;
        self.each_access((standing.slot(), Side::Write, granule), cell, WHOLE, |one| {
            let written = one.bytes();
            if written & bytes != 0 && are_link(self.values, granule, written) {
                links |= written & bytes;
            }
        });
        links
    }

    /// There are no more events: what still waits for the end of a critical section is told.
    pub fn end(&self) {
        let mut state = self.lock();
        let nothing = VectorClock::default();
        let all = state.threads.values_mut();
        let withdrawn = self.withdrawn();
        let left = all.flat_map(|member| member.held_back.decide(&nothing, &withdrawn)).collect();
        self.add(&mut state.findings, left);
    }

    /// The writes to some bytes of a granule that were made under a lock of `held`, of slots and ticks
    /// that are `wanted`, and not of slots that are the asking thread's `own`.
    fn writes_under(
        &self,
        state: &State,
        (own, held): (u32, &LockSet),
        (granule, bytes): (u64, Bytes),
        wanted: impl Fn(usize, u32) -> bool,
        writes: &mut Vec<(ThreadId, Stamp)>,
    ) {
        if !self.planes.covers(granule * GRANULE, (granule + 1) * GRANULE) {
            return;
        }
        // Giving memory back tells nobody anything.
        let is_write = |access| {
            let one = self.accesses.one(access);
            one.is_none_or(|one| one.kind.writes() && one.kind != Kind::Free)
        };
        let mut take = |slot, tick, access| {
            let locks = self.locks.get(self.planes.locks(slot, tick));
            if locks.is_some_and(|locks| locks.excludes(held)) && is_write(access) {
                writes.push(self.when(state, slot, tick));
            }
        };
        let writers = self.planes.sharers(Side::Write, granule * GRANULE / LINE);
        for slot in slots_of(writers & !own) {
            let newest = self.planes.cell(slot, Side::Write, granule);
            let older = self.older(slot, Side::Write, granule);
            for cell in std::iter::once(newest).chain(older) {
                if cell.bytes() & bytes == 0 || !wanted(slot, cell.tick()) {
                    continue;
                }
                if !cell.access().is_strip() {
                    take(slot, cell.tick(), cell.access());
                    continue;
                }
                for one in cells(&self.planes, (slot, Side::Write, granule), cell, bytes) {
                    if wanted(slot, one.tick()) {
                        take(slot, one.tick(), one.access());
                    }
                }
            }
            if slot == self.crowd.slot() {
                in_room(&self.planes, &self.crowd, (Side::Write, granule), |_, _, cell| {
                    if cell.bytes() & bytes != 0 && wanted(slot, cell.tick()) {
                        take(slot, cell.tick(), cell.access());
                    }
                });
            }
        }
        let is_special = writers & SPECIAL != 0;
        let special = is_special.then(|| state.specials.get(granule)).flatten();
        for kept in special.into_iter().flat_map(|special| &special.kept) {
            if kept.bytes & bytes != 0 && wanted(kept.slot, kept.tick) {
                take(kept.slot, kept.tick, kept.access);
            }
        }
    }
}

/// Calls `read` for the granules that a section has read since it was last asked, with those of their bytes that it has
/// not written, and those that it has written only later; for those of notes that are `wanted`. What it reads several times
/// comes several times.
pub(super) fn read_first(
    journal: &Journal,
    section: &Section,
    wanted: impl Fn(Noted) -> bool,
    mut read: impl FnMut(u64, Bytes, Bytes),
) {
    // Most sections write little, and read much.
    let is_write = |(_, noted): &(u64, Noted)| noted.side() == Side::Write;
    let written: SmallVec<[(u64, Noted); 8]> =
        journal.noted(section.asked).filter(is_write).collect();
    let wanted = |noted: &(u64, Noted)| !is_write(noted) && wanted(noted.1);
    for (number, one) in journal.noted(section.asked).filter(wanted) {
        let (mut before, mut after) = (0, 0);
        for (at, other) in &written {
            let written = other.bytes_beside(one);
            match *at < number {
                true => before |= written,
                false => after |= written,
            }
        }
        for (granule, bytes) in (Noted { bytes: one.bytes & !before, ..one }).granules() {
            let after = (after >> ((granule - one.at / GRANULE) * GRANULE)) as Bytes;
            read(granule, bytes & !after, bytes & after);
        }
    }
}

/// Do these bytes of a granule hold a link?
fn are_link(values: Values, granule: u64, bytes: Bytes) -> bool {
    let (first, last) = (bytes.trailing_zeros(), bytes.checked_ilog2());
    last.is_some_and(|last| {
        let at = |byte: u32| granule * GRANULE + u64::from(byte);
        values.are_link(at(first)..at(last + 1))
    })
}

/// The granules that a thread has read since number `from` of its journal, and which of their bytes it
/// has not written, or has taken.
fn depended_on(
    journal: &Journal,
    from: u64,
    taken: impl Fn(u64, Bytes) -> Bytes,
) -> Vec<(u64, Bytes)> {
    let mut touched: Vec<(u64, Side, Bytes)> = Vec::new();
    journal.between(from, journal.count, |side, bytes| {
        let (granule, first) = (bytes.start / GRANULE, bytes.start % GRANULE);
        let mask = ((1u32 << (bytes.end - bytes.start)) - 1) << first;
        touched.push((granule, side, mask as Bytes));
    });
    // Those of a granule stay in their order.
    touched.sort_by_key(|(granule, ..)| *granule);
    let of_granule = |one: &[(u64, Side, Bytes)]| {
        let granule = one[0].0;
        let writes = one.iter().filter(|(_, side, _)| *side == Side::Write);
        let written = writes.fold(0, |all, (.., mask)| all | mask);
        let (mut before, mut depended_on) = (0, 0);
        for (_, side, mask) in one {
            match side {
                Side::Write => before |= mask,
                Side::Read => {
                    let first = mask & !before;
                    depended_on |= first & !written;
                    let overwritten = first & written & !depended_on;
                    if overwritten != 0 {
                        depended_on |= taken(granule, overwritten);
                    }
                }
            }
        }
        (granule, depended_on)
    };
    let granules = touched.chunk_by(|a, b| a.0 == b.0).map(of_granule);
    granules.filter(|(_, bytes)| *bytes != 0).collect()
}

//! Taking and releasing a lock, and what goes through channels, without the detector's lock.
//!
//! Most critical sections concern nobody but their thread and their lock: a thread without locks takes one that was
//! released before, and gives it back. What that changes is the thread's tick, its clock in the full order, its lock set,
//! and the lock's clock. Likewise a thread without locks that writes to a channel, or reads from one, changes its tick and
//! its clocks and those of the channel. So each thread keeps what the detector knows of it in this respect ([`Own`]), goes on
//! by itself, and the detector *catches up* when it next has to do with the thread.
//!
//! Who may look at what, in the order in which locks are taken: the detector's lock; a thread's [`Own`]; a
//! lock's latch. A thread goes on by itself only while it is *ready*: since it was made so, nobody has changed what the
//! detector knows of it. Whoever is about to do that ([`FastHybrid::take_over`]) ends it, and the thread's next event
//! that goes the long way begins it anew.
//!
//! The long way is taken, too, by whatever is out of the ordinary: locks in the hands of others, locks within locks,
//! locks taken in a new way, that hand over, or whose sections were handed something; channels that are new, or from which a
//! thread may learn of the crowd; and now and then by anything, so that it is found out what is settled.

use super::section::{Section, read_first};
use super::{FastHybrid, State};
use crate::fast::access::{LockSetId, UNLIKE};
use crate::fast::cell::{GRANULE, LAST_TICK, LINE};
use crate::fast::crowd::RUN_BITS;
use crate::fast::journal::{Journal, Noted};
use crate::fast::protocol::{OLDER, Planes, SPECIAL, Side, has_room, slots_of};
use crate::fast::standing::Standing;
use crate::order::{Ahead, AheadSections, Clocks, Lock, after};
use raddle_model::clock::{Chain, Stamp};
use raddle_model::lockset::HeldLock;
use raddle_model::{Address, Event, EventKind, SyncObject, ThreadId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So often a thread gives to and takes from channels by itself. What that settles is found out the long way.
const EXCHANGES: u64 = 256;

/// What a thread knows of itself.
#[derive(Debug)]
pub struct Own {
    /// It may go on by itself.
    ready: bool,
    /// It has.
    ahead: bool,
    stamp: Stamp,
    /// What it comes after.
    clocks: Clocks,
    holds: Option<HeldLock>,
    section: Section,
    /// Since the detector caught up, it has taken or released a lock; and begun a section.
    locked: bool,
    began: bool,
    /// How often it has given to or taken from channels since then.
    exchanges: u64,
}

impl Default for Own {
    fn default() -> Own {
        Own {
            ready: false,
            ahead: false,
            stamp: Stamp { chain: Chain(0), tick: 0 },
            clocks: Clocks::default(),
            holds: None,
            section: Section::default(),
            locked: false,
            began: false,
            exchanges: 0,
        }
    }
}

impl Own {
    /// May a thread give to and take from channels by itself? What it has read under a lock might have to be decided first.
    fn may_exchange(&self, standing: &Standing) -> bool {
        self.ready && self.holds.is_none() && !standing.holds_back() && self.exchanges < EXCHANGES
    }
}

impl<P: Planes> FastHybrid<P> {
    /// An event of a thread, if it can be followed like this. If not, [`FastHybrid::event`] must be told.
    pub fn quickly(&self, standing: &Standing, event: &Event, journal: &Journal) -> bool {
        match event.kind {
            EventKind::LockAcquired { lock, mode } => {
                let Event { place, stack, .. } = *event;
                let taken = HeldLock { lock, mode, place, stack, life: 0 };
                self.take(standing, event.thread, taken, journal)
            }
            EventKind::LockReleased { lock, .. } => {
                self.give(standing, event.thread, lock, journal)
            }
            // What a queue gives it takes away.
            EventKind::Release { object: SyncObject::Queue(_) }
            | EventKind::Acquire { object: SyncObject::Queue(_) } => false,
            EventKind::Release { object } => self.release(standing, object),
            EventKind::Acquire { object } => self.acquire(standing, object),
            _ => false,
        }
    }

    /// The same for a lock that was taken.
    pub fn take(
        &self,
        standing: &Standing,
        thread: ThreadId,
        taken: HeldLock,
        journal: &Journal,
    ) -> bool {
        let mut own = standing.own();
        if !own.ready || own.holds.is_some() || standing.holds_back() {
            return false;
        }
        let Some(tick) = self.tick_after(own.stamp) else { return false };
        let follow = |lock: &mut Lock| {
            if lock.hands_over || !lock.admits(taken.mode) {
                return None;
            }
            let named = lock.name(&taken)?;
            lock.before(taken.mode).for_each(|clock| own.clocks.full.join(clock));
            lock.take(thread, taken.mode);
            Some(named)
        };
        let Some((held, [id, alike])) = self.lock_objects.with(taken.lock, follow).flatten() else {
            return false;
        };
        own.holds = Some(held);
        // Nothing was read under locks since the last release.
        standing.take_handed();
        own.section.begin(journal);
        (own.locked, own.began) = (true, true);
        for (slot, tick) in own.clocks.full.ticks().enumerate().take(self.crowd.slot()) {
            standing.set_full(slot, self.in_cells(slot, tick));
        }
        self.begin_tick(standing, &mut own, tick, (LockSetId(id), alike));
        true
    }

    /// The same for one that is about to be released.
    pub fn give(
        &self,
        standing: &Standing,
        thread: ThreadId,
        lock: Address,
        journal: &Journal,
    ) -> bool {
        let mut own = standing.own();
        let Some(held) = own.holds.filter(|held| held.lock == lock) else { return false };
        if !own.ready || standing.holds_back() || self.was_handed(standing, &own.section, journal) {
            return false;
        }
        let Some(tick) = self.tick_after(own.stamp) else { return false };
        let follow = |lock: &mut Lock| {
            if lock.hands_over || !lock.leave(thread) {
                return None;
            }
            lock.of(held.mode).join(&own.clocks.full);
            Some(())
        };
        if self.lock_objects.with(held.lock, follow).flatten().is_none() {
            return false;
        }
        self.withdraw(standing, own.stamp, own.section.asked, journal);
        own.holds = None;
        own.locked = true;
        own.section.end(journal);
        self.begin_tick(standing, &mut own, tick, (LockSetId::default(), UNLIKE));
        true
    }

    /// Gives to a channel what the thread did so far.
    fn release(&self, standing: &Standing, object: SyncObject) -> bool {
        let mut own = standing.own();
        let Some(tick) = self.tick_after(own.stamp).filter(|_| own.may_exchange(standing)) else {
            return false;
        };
        if self.released.with(object, |clocks| clocks.join(&own.clocks)).is_none() {
            return false;
        }
        own.exchanges += 1;
        self.begin_tick(standing, &mut own, tick, (standing.locks(), standing.alike()));
        true
    }

    /// The thread comes after what was given to a channel.
    fn acquire(&self, standing: &Standing, object: SyncObject) -> bool {
        let mut own = standing.own();
        if !own.may_exchange(standing) || self.crowd.members() != 0 {
            return false;
        }
        let news = self.released.with(object, |clocks| {
            let news = !own.clocks.weak.includes(&clocks.weak);
            own.clocks.join(clocks);
            news
        });
        // Where nobody has given anything nothing is taken.
        let Some(news) = news else { return true };
        own.exchanges += u64::from(news);
        own.ahead = true;
        let Clocks { full, weak } = &own.clocks;
        let nothing_more = std::iter::repeat(0);
        let known = full.ticks().zip(weak.ticks().chain(nothing_more));
        for (slot, (full, weak)) in known.enumerate().take(self.crowd.slot()) {
            standing.set_known(slot, self.in_cells(slot, weak), self.in_cells(slot, full));
        }
        true
    }

    /// The tick after this one, unless the slot's ticks are to be counted anew, or, in the crowd, it needs a new run of
    /// them.
    fn tick_after(&self, stamp: Stamp) -> Option<u64> {
        let tick = after(stamp.tick);
        if stamp.chain.0 as usize >= self.crowd.slot() {
            return (tick >> RUN_BITS == stamp.tick >> RUN_BITS).then_some(tick);
        }
        let base = self.bases[stamp.chain.0 as usize].load(Ordering::Relaxed);
        (tick - base <= u64::from(LAST_TICK)).then_some(tick)
    }

    fn begin_tick(
        &self,
        standing: &Standing,
        own: &mut Own,
        tick: u64,
        (locks, alike): (LockSetId, u32),
    ) {
        own.stamp.tick = tick;
        own.clocks.raise(own.stamp);
        own.ahead = true;
        let slot = standing.slot();
        let tick = match standing.is_in_crowd() {
            // Another of the same run.
            true => standing.tick() >> RUN_BITS << RUN_BITS | tick as u32 & ((1 << RUN_BITS) - 1),
            false => self.in_cells(slot, tick),
        };
        self.planes.set_locks(slot, tick, locks);
        standing.set(slot, tick, locks);
        standing.set_alike(alike);
        standing.set_full(slot, tick);
    }

    /// May something have been handed to the section that ends? If so the order changes.
    fn was_handed(&self, standing: &Standing, section: &Section, journal: &Journal) -> bool {
        if !self.handovers || !section.has_met(standing, journal) {
            return false;
        }
        let mut handed = !section.is_whole(journal);
        // Most sections meet little of what they read. What the notes do not say may be any of it.
        let any = standing.was_handed();
        let wanted = |noted: Noted| any || noted.has_met();
        read_first(journal, section, wanted, |granule, kept, overwritten| {
            let line = granule * GRANULE / LINE;
            if handed || !self.planes.covers(granule * GRANULE, (granule + 1) * GRANULE) {
                return;
            }
            // What is counted is not looked for among the writes of others: it is there.
            let bytes = match overwritten {
                0 => kept,
                _ => kept | self.links_left(standing, granule, overwritten),
            };
            if bytes == 0 {
                return;
            }
            let writers = self.planes.sharers(Side::Write, line);
            let own = standing.own_slots();
            handed = writers & SPECIAL != 0
                || slots_of(writers & !own).any(|slot| {
                    let unknown = |cell: crate::fast::Cell| {
                        cell.bytes() & bytes != 0 && !standing.knows(slot, cell.tick())
                    };
                    // What is in the crowd's rooms is looked at the long way.
                    let is_crowd = slot == self.crowd.slot();
                    if is_crowd && has_room(self.planes.sharers(Side::Read, line), Side::Write) {
                        return true;
                    }
                    unknown(self.planes.cell(slot, Side::Write, granule))
                        || !is_crowd
                            && writers & OLDER != 0
                            && self.planes.older(slot, Side::Write, granule).is_some_and(unknown)
                });
        });
        if !handed {
            standing.take_handed();
        }
        handed
    }

    /// A tick of a slot's chain, as its cells have it.
    pub(super) fn in_cells(&self, slot: usize, tick: u64) -> u32 {
        let base = self.bases[slot].load(Ordering::Relaxed);
        tick.saturating_sub(base).min(u64::from(u32::MAX)) as u32
    }

    /// Brings what the detector knows of a thread up to date. It goes on by itself.
    pub(super) fn catch_up(&self, state: &mut State, thread: ThreadId) {
        let Some(member) = state.threads.get_mut(&thread) else { return };
        let standing = Arc::clone(&member.standing);
        let mut own = standing.own();
        if !std::mem::take(&mut own.ahead) {
            return;
        }
        let began = std::mem::take(&mut own.began);
        let sections = AheadSections { began, open: own.holds };
        let ahead = Ahead {
            tick: own.stamp.tick,
            clocks: own.clocks.clone(),
            exchanges: std::mem::take(&mut own.exchanges),
            sections: std::mem::take(&mut own.locked).then_some(sections),
        };
        state.execution.catch_up(thread, ahead);
        member.section = own.section;
        member.stamp = Some(own.stamp);
        member.locks = standing.locks();
        member.version = state.execution.locks_version(thread);
    }

    /// The same for those who wrote something.
    pub(super) fn catch_up_with(&self, state: &mut State, writes: &[(ThreadId, Stamp)]) {
        writes.iter().for_each(|(writer, _)| self.catch_up(state, *writer));
    }

    /// The same before the detector changes it: the thread does not.
    pub(super) fn take_over(&self, state: &mut State, thread: ThreadId) {
        self.catch_up(state, thread);
        if let Some(member) = state.threads.get(&thread) {
            member.standing.own().ready = false;
        }
    }

    /// The same for those whose locks an event may concern. Who held one when it was last caught up with may hold it no more: it
    /// goes on by itself, as most who signal under a lock do.
    pub(super) fn take_over_concerned(&self, state: &mut State, event: &Event, apart: bool) {
        let is_meant = |thread: &ThreadId| apart || *thread != event.thread;
        let mut concerned = state.execution.concerned(event);
        concerned.retain(is_meant);
        if concerned.is_empty() {
            return;
        }
        concerned.into_iter().for_each(|thread| self.catch_up(state, thread));
        let concerned = state.execution.concerned(event).into_iter().filter(is_meant);
        concerned.collect::<Vec<_>>().into_iter().for_each(|thread| self.take_over(state, thread));
    }

    /// The same for all.
    pub(super) fn take_over_all(&self, state: &mut State) {
        let threads: Vec<ThreadId> = state.threads.keys().copied().collect();
        threads.into_iter().for_each(|thread| self.take_over(state, thread));
    }

    /// After an event of a thread: it may go on by itself if it stands alone. What it holds is kept with
    /// the lock.
    pub(super) fn let_go(&self, state: &State, thread: ThreadId) {
        let Some(member) = state.threads.get(&thread) else { return };
        let mut own = member.standing.own();
        own.ready = false;
        let Some((stamp, clocks, holds)) = state.execution.alone(thread) else { return };
        let is_holder = |lock: &mut Lock| lock.is_held_by(thread);
        if holds.is_some_and(|held| self.lock_objects.with(held.lock, is_holder) != Some(true)) {
            return;
        }
        own.ready = true;
        (own.stamp, own.holds, own.section) = (stamp, holds, member.section);
        own.clocks.full.clone_from(&clocks.full);
        own.clocks.weak.clone_from(&clocks.weak);
    }
}

//! What a section overwrites of what others had read under its lock ([`crate::withdrawn`]).
//!
//! What others have read last is in their cells; of members of the crowd that share a slot it is not asked for.

use super::{FastHybrid, State};
use crate::fast::access::LockSetId;
use crate::fast::cell::{Bytes, GRANULE, LINE};
use crate::fast::journal::Journal;
use crate::fast::protocol::{Planes, Side, slots_of};
use crate::fast::standing::Standing;
use crate::withdrawn::{Withdrawn, section};
use raddle_model::ThreadId;
use raddle_model::clock::{Chain, Stamp};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

impl<P: Planes> FastHybrid<P> {
    /// A stretch of a critical section ends, at this moment of its thread. It began with the number `from` of the journal.
    pub(super) fn withdraw(&self, standing: &Standing, now: Stamp, from: u64, journal: &Journal) {
        if !self.handovers || standing.locks() == LockSetId::default() {
            return;
        }
        let is_elsewhere = |at: u64| !(journal.stack.0..journal.stack.1).contains(&at);
        for (_, noted) in journal.noted(from) {
            if noted.side() == Side::Write && is_elsewhere(noted.at) {
                noted.granules().for_each(|written| self.withdraw_at(standing, now, written));
            }
        }
    }

    fn withdraw_at(&self, standing: &Standing, now: Stamp, (granule, bytes): (u64, Bytes)) {
        if !self.planes.covers(granule * GRANULE, (granule + 1) * GRANULE) {
            return;
        }
        let readers = self.planes.sharers(Side::Read, granule * GRANULE / LINE);
        let apart = standing.own_slots() | 1 << self.crowd.slot();
        for slot in slots_of(readers & !apart) {
            let read = self.planes.cell(slot, Side::Read, granule);
            let common = read.bytes() & bytes;
            if common == 0 || standing.knows(slot, read.tick()) {
                continue;
            }
            let written = self.planes.cell(slot, Side::Write, granule);
            let counts = written.tick() == read.tick() && written.bytes() & common != 0;
            if counts || self.links_left(standing, granule, common) == 0 {
                continue;
            }
            let base = self.bases[slot].load(Ordering::Relaxed);
            // Whoever had the lock before comes before now in the full order.
            let under = |stamp: Stamp| {
                let tick = stamp.tick.saturating_sub(base) as u32;
                let locks = self.planes.locks(slot, tick.min(standing.full(slot)));
                tick <= standing.full(slot)
                    && self.locks.protects(locks, standing.locks(), (false, true))
            };
            let read = Stamp { chain: Chain(slot as u32), tick: base + u64::from(read.tick()) };
            if under(read) {
                let mut withdrawn = self.withdrawn();
                section(read, under).for_each(|tick| withdrawn.add(tick, now, granule * GRANULE));
            }
        }
    }

    /// Has what a section had read, which accessed this address, been overwritten by one that this thread comes after?
    pub(super) fn was_withdrawn(
        &self,
        state: &State,
        (read, address): (Stamp, u64),
        thread: ThreadId,
    ) -> bool {
        self.withdrawn().by(read, address).any(|by| state.execution.comes_after(thread, by))
    }

    pub(super) fn withdrawn(&self) -> MutexGuard<'_, Withdrawn> {
        self.withdrawn.lock().unwrap_or_else(|e| e.into_inner())
    }
}

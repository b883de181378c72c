//! What becomes of an access that loses its cell to a newer one of its thread which does not stand for it: it goes to
//! where the slot's older accesses are, and from there, if that place is taken, behind the lock.

use super::{FastHybrid, Keeping, State};
use crate::fast::access::AccessId;
use crate::fast::cell::{Bytes, Cell, GRANULE, LINE};
use crate::fast::protocol::{OLDER, Planes, SPECIAL, Side, has_agreed_at, place, set_aside};
use crate::fast::special::{KEPT, Kept};
use crate::fast::standing::Standing;
use crate::touch::{PlainReads, kind_within};

impl<P: Planes> FastHybrid<P> {
    /// Puts an access into a cell of its own; what was there and is not stood for is handed to `keep`
    /// before it is overwritten.
    pub(super) fn restamp(
        &self,
        standing: &Standing,
        side: Side,
        granule: u64,
        (bytes, access): (Bytes, AccessId),
        mut keep: impl FnMut(Cell),
    ) {
        let (slot, at) = (standing.slot(), (side, granule));
        let place = place(&self.planes, standing, side, granule);
        let put = |bytes, access| {
            let new = Cell::new(standing.tick(), bytes, access);
            place.set(&self.planes, standing, at, new);
        };
        let old = place.get(&self.planes, standing, at);
        if old == Cell::EMPTY {
            return put(bytes, access);
        }
        if old.access().is_strip() {
            return self.restamp_split(standing, at, (bytes, access), keep);
        }
        if old.tick() == standing.tick() {
            let is_another = old.bytes() & !bytes != 0 && old.access() != access;
            if is_another
                && self.accesses.is_ever_new(old.access())
                && self.split(standing, at, old)
            {
                return self.restamp_split(standing, at, (bytes, access), keep);
            }
            let merged = self.accesses.merge(old.access(), old.bytes(), access, bytes);
            return put(old.bytes() | bytes, merged);
        }
        if old.tick() <= standing.settled() {
            return put(bytes, access);
        }
        let alike = has_agreed_at(&self.planes, standing, granule);
        let locks_then = || self.planes.locks(slot, old.tick());
        let lost = if alike || self.locks.within(standing.locks(), locks_then()) {
            old.bytes() & !bytes
        } else {
            old.bytes()
        };
        if lost != 0 {
            let lost = old.only(lost);
            if self.is_crowded_out(standing, at, lost) && self.split(standing, at, old) {
                return self.restamp_split(standing, at, (bytes, access), keep);
            }
            keep(lost);
        }
        put(bytes, access);
    }

    /// Puts an access that loses its cell where it is still found: among the older ones, or, if that
    /// place is taken by one that it does not stand for, among the kept ones.
    pub(super) fn make_room(
        &self,
        standing: &Standing,
        (side, granule): (Side, u64),
        cell: Cell,
        mut keeps: impl FnMut(Keeping) -> bool,
    ) {
        if !keeps(Keeping::Older) {
            return;
        }
        let slot = standing.slot();
        let set_aside = || set_aside(&self.planes, (slot, side, granule), cell);
        // The crowd has its rooms where others have older accesses; who splits a granule names its strip there.
        let is_split = || self.planes.cell(slot, side, granule).access().is_strip();
        let older = match slot == self.crowd.slot() || is_split() {
            true => None,
            false => self.planes.older(slot, side, granule),
        };
        let is_free =
            |older: Cell| older.tick() <= standing.settled() || self.succeeds(slot, cell, older);
        if older.is_some_and(is_free) {
            return set_aside();
        }
        if !keeps(Keeping::Special) {
            return;
        }
        let mut state = self.lock();
        if older.is_some_and(|older| older.tick() <= self.settled(&state, slot, cell.tick())) {
            set_aside();
        } else {
            self.keep(&mut state, slot, granule, cell);
        }
    }

    /// What a slot has of a granule beside its newest access. Planes that were never written are not
    /// read: that would cost the kernel a page.
    pub(super) fn older(&self, slot: usize, side: Side, granule: u64) -> Option<Cell> {
        let marked = slot != self.crowd.slot()
            && self.planes.sharers(Side::Write, granule * GRANULE / LINE) & OLDER != 0;
        let older = if marked { self.planes.older(slot, side, granule) } else { None };
        older.filter(|cell| *cell != Cell::EMPTY)
    }

    /// Does one cell of a slot and side stand for another from before it?
    pub(super) fn succeeds(&self, slot: usize, cell: Cell, older: Cell) -> bool {
        let held = |cell: Cell| self.planes.locks(slot, cell.tick());
        older.bytes() & !cell.bytes() == 0
            && !older.access().is_strip()
            && (older == Cell::EMPTY || self.locks.within(held(cell), held(older)))
    }

    /// Keeps an access that loses its cell, unless nothing can race with it any more.
    pub(super) fn keep(&self, state: &mut State, slot: usize, granule: u64, cell: Cell) {
        let settled = self.settled(state, slot, cell.tick());
        if cell.tick() <= settled {
            return;
        }
        self.accesses.each(cell.access(), cell.bytes(), |bytes, one| {
            let new = Kept { slot, tick: cell.tick(), bytes, access: one };
            let special = state.specials.entry(granule);
            special.keep(new, self.most_kept(), |old| self.stands_for(&new, old, settled));
        });
        self.planes.add_sharers(Side::Write, granule * GRANULE / LINE, SPECIAL);
    }

    /// Does an access that is about to be kept make one that is kept superfluous? They are not kept in the order of time: a
    /// read may have lost its cell before a write that came before it has.
    pub(super) fn stands_for(&self, new: &Kept, old: &Kept, settled: u32) -> bool {
        if old.slot != new.slot || !self.is_of_same(new.slot, new.tick, old.tick) {
            return false;
        }
        let (Some(n), Some(o)) = (self.accesses.one(new.access), self.accesses.one(old.access))
        else {
            return false;
        };
        let kinds = kind_within(o.kind, n.kind, PlainReads::AtomicBesideUpdates);
        let held = |kept: &Kept| self.planes.locks(kept.slot, kept.tick);
        let may_stand = old.tick <= new.tick && kinds;
        old.tick <= settled || may_stand && self.locks.within(held(new), held(old))
    }

    /// So many accesses are kept of a granule.
    pub(super) fn most_kept(&self) -> usize {
        KEPT.max(2 * self.crowd.members())
    }

    /// Are two ticks of a slot of the same chain?
    pub(super) fn is_of_same(&self, slot: usize, a: u32, b: u32) -> bool {
        slot != self.crowd.slot() || self.crowd.owner(a) == self.crowd.owner(b)
    }
}

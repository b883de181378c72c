//! Splitting granules, and stamping those that are split: see [`crate::fast::strips`].

use super::FastHybrid;
use crate::fast::access::AccessId;
use crate::fast::cell::{Bytes, Cell, WHOLE};
use crate::fast::protocol::{Planes, Side, has_agreed_at};
use crate::fast::standing::Standing;
use crate::fast::strips::{self, cells};

impl<P: Planes> FastHybrid<P> {
    /// Calls `visit` for each access to some bytes of a granule that one of its cells stands for, as a cell of its own.
    pub(super) fn each_access(
        &self,
        at: (usize, Side, u64),
        cell: Cell,
        bytes: Bytes,
        mut visit: impl FnMut(Cell),
    ) {
        let bytes = cell.bytes() & bytes;
        match cell.access().is_strip() {
            true => cells(&self.planes, at, cell, bytes).into_iter().for_each(visit),
            false => self.accesses.each(cell.access(), bytes, |bytes, access| {
                visit(Cell::new(cell.tick(), bytes, access));
            }),
        }
    }

    /// Would an access that loses its cell find the place of older ones taken by one that it does not stand for?
    pub(super) fn is_crowded_out(
        &self,
        standing: &Standing,
        (side, granule): (Side, u64),
        lost: Cell,
    ) -> bool {
        let slot = standing.slot();
        self.older(slot, side, granule)
            .is_some_and(|old| old.tick() > standing.settled() && !self.succeeds(slot, lost, old))
    }

    /// Splits a granule whose newest access is `newest`. False if that cannot be done: in the crowd, without memory, or where
    /// there are two accesses of a byte, neither of which stands for the other.
    pub(super) fn split(
        &self,
        standing: &Standing,
        (side, granule): (Side, u64),
        newest: Cell,
    ) -> bool {
        if standing.is_in_crowd() {
            return false;
        }
        let slot = standing.slot();
        let is_open = |older: &Cell| older.tick() > standing.settled();
        let older = self.older(slot, side, granule).filter(is_open).unwrap_or(Cell::EMPTY);
        let stands_for_it = |older: Cell| {
            !is_open(&older) || self.succeeds(slot, newest.only(older.bytes()), older)
        };
        let mut stands_for_all = true;
        self.each_access((slot, side, granule), older, newest.bytes(), |older| {
            stands_for_all &= stands_for_it(older);
        });
        if !stands_for_all {
            return false;
        }
        let Some(strip) = self.planes.open_strip(slot, side, granule) else { return false };
        let one = |cell: Cell| {
            let mut one = cell;
            self.accesses.each(cell.access(), cell.bytes(), |bytes, access| {
                one = Cell::new(cell.tick(), bytes, access);
            });
            one
        };
        let of_byte = |byte: usize| match [newest, older].map(|cell| cell.only(1 << byte)) {
            [Cell::EMPTY, Cell::EMPTY] => Some(Cell::EMPTY),
            // It was split before, and the strip is there still.
            [Cell::EMPTY, older] if older.access() == strip => None,
            [Cell::EMPTY, cell] | [cell, _] => Some(one(cell)),
        };
        let bytes = std::array::from_fn(of_byte);
        strips::split(&self.planes, (slot, side, granule), newest, (strip, bytes));
        true
    }

    /// [`FastHybrid::restamp`] of a granule that is split.
    pub(super) fn restamp_split(
        &self,
        standing: &Standing,
        (side, granule): (Side, u64),
        (bytes, access): (Bytes, AccessId),
        keep: impl FnMut(Cell),
    ) {
        let (slot, tick) = (standing.slot(), standing.tick());
        let newest = self.planes.cell(slot, side, granule);
        let put = || {
            self.planes.set_cell(slot, side, granule, Cell::new(tick, bytes, access));
        };
        if newest.tick() <= standing.settled() && newest.tick() != tick {
            return put();
        }
        let alike = has_agreed_at(&self.planes, standing, granule);
        let is_lost = |was: &Cell| {
            was.tick() > standing.settled()
                && was.tick() != tick
                && !alike
                && !self.locks.within(standing.locks(), self.planes.locks(slot, was.tick()))
        };
        let named = Cell::new(newest.tick(), WHOLE, newest.access());
        let mut lost = cells(&self.planes, (slot, side, granule), named, bytes);
        lost.retain(|was| is_lost(was));
        if lost.is_empty() && bytes == WHOLE {
            put();
            return self.planes.set_older(slot, side, granule, Cell::EMPTY);
        }
        lost.into_iter().for_each(keep);
        strips::stamp(&self.planes, (slot, side, granule), tick, (bytes, access));
    }
}

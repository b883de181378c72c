//! Stamping what is simple.
//!
//! Most of what `memcpy`, `strcmp` and their kin touch is short, and takes the place of nothing that has to be kept: what it
//! overwrites was touched in the same segment, is settled, or is stood for. The probe's middle path does this for single
//! instructions; functions have no path of their own, and here is what they need of one. What is not as simple is left to
//! [`FastHybrid::stamp_in_line`], as if nobody had been here.

use super::FastHybrid;
use crate::fast::access::AccessId;
use crate::fast::cell::{Bytes, Cell, LINE, granules};
use crate::fast::protocol::{Planes, SYNCHRONISES, Side, has_agreed_at, share};
use crate::fast::standing::Standing;

/// What became of an access that may be simple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simply {
    /// This segment has touched all of it before.
    Known,
    /// It is stamped, and still to be looked at.
    Stamped,
    /// Nothing was done: it is not simple.
    Not,
}

impl<P: Planes> FastHybrid<P> {
    /// The same as [`FastHybrid::stamp_in_line`], if that is simple. `on_own_stack`: nothing that loses its cell is kept. `describe` is asked
    /// only if there is something new.
    pub fn stamp_simply(
        &self,
        standing: &Standing,
        side: Side,
        part: (u64, u64),
        on_own_stack: bool,
        describe: impl FnOnce() -> AccessId,
    ) -> Simply {
        let line = part.0 / LINE;
        let may_synchronise = self.planes.sharers(Side::Write, line) & SYNCHRONISES != 0;
        if standing.is_in_crowd() || standing.is_muted(side) || may_synchronise {
            return Simply::Not;
        }
        let cell_of = |granule| self.planes.cell(standing.slot(), side, granule);
        let is_known =
            |old: Cell, bytes| old.tick() == standing.tick() && old.bytes() & bytes == bytes;
        let mut news = false;
        for (granule, bytes) in granules(part.0, part.1) {
            let old = cell_of(granule);
            if is_known(old, bytes) {
                continue;
            }
            if !self.gives_way(standing, granule, (old, bytes), on_own_stack) {
                return Simply::Not;
            }
            news = true;
        }
        if !news {
            return Simply::Known;
        }
        let access = describe();
        for (granule, bytes) in granules(part.0, part.1) {
            let old = cell_of(granule);
            if is_known(old, bytes) {
                continue;
            }
            let (bytes, access) = match old.tick() == standing.tick() {
                true => {
                    let both = self.accesses.merge(old.access(), old.bytes(), access, bytes);
                    (old.bytes() | bytes, both)
                }
                false => (bytes, access),
            };
            let new = Cell::new(standing.tick(), bytes, access);
            self.planes.set_cell(standing.slot(), side, granule, new);
        }
        share(&self.planes, standing, side, part);
        Simply::Stamped
    }

    /// May a new access to these bytes take the place of what its thread has done to the granule, without more ado?
    /// ([`FastHybrid::restamp`] does the rest.)
    fn gives_way(
        &self,
        standing: &Standing,
        granule: u64,
        (old, bytes): (Cell, Bytes),
        on_own_stack: bool,
    ) -> bool {
        if old == Cell::EMPTY {
            return true;
        }
        let is_covered = old.bytes() & !bytes == 0;
        if old.access().is_strip() {
            return false;
        }
        if old.tick() == standing.tick() {
            return is_covered || !self.accesses.is_ever_new(old.access());
        }
        let stands_for_it = || {
            has_agreed_at(&self.planes, standing, granule)
                || self
                    .locks
                    .within(standing.locks(), self.planes.locks(standing.slot(), old.tick()))
        };
        old.tick() <= standing.settled() || on_own_stack || is_covered && stands_for_it()
    }
}

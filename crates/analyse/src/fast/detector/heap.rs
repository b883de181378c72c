//! Blocks of the heap that come and go without the detector's lock.
//!
//! Threads that allocate by turns would wait for each other at every block. But most blocks are small, hold nothing but memory
//! ([`Inhabited`](crate::fast::inhabited)), and are given back by threads that race with nobody: all there is to do is in the planes, of which
//! each cell is a word. Whether it is so is said, and if not, nothing was done that harms: the event does it all, once more.

use super::{FREED, FastHybrid, Now};
use crate::fast::access::AccessId;
use crate::fast::cell::{Cell, GRANULE, LINE, granules, lines};
use crate::fast::protocol::{Planes, SPECIAL, SYNCHRONISES, Side, has_room, look, share};
use crate::fast::standing::Standing;
use crate::touch::Kind;
use raddle_model::ThreadId;
use std::sync::atomic::Ordering;

impl<P: Planes> FastHybrid<P> {
    /// A block comes into being.
    pub fn allocate_simply(&self, standing: &Standing, block: (u64, u64)) -> bool {
        let is_simple = self.is_simple(standing, block);
        if is_simple {
            self.clear_cells(block);
        }
        is_simple
    }

    /// A block is given back: see [`FastHybrid::event`]. What its thread has stamped must have been looked at.
    pub fn free_simply(
        &self,
        (thread, standing): (ThreadId, &Standing),
        block: (u64, u64),
        describe: impl FnOnce() -> AccessId,
    ) -> bool {
        if !self.is_simple(standing, block) {
            return false;
        }
        let now = Now { standing, thread, access: describe() };
        self.planes.fence();
        for part in lines(block.0, block.1) {
            let mut suspects = Vec::new();
            let writers = look(&self.planes, standing, Side::Write, part, |suspect| {
                self.suspect(now, suspect, &mut suspects);
            });
            if writers & SPECIAL != 0 || !suspects.is_empty() {
                return false;
            }
        }
        self.clear_cells(block);
        for part in lines(block.0, block.1) {
            for (granule, bytes) in granules(part.0, part.1) {
                let slot = standing.slot();
                if !self.may_be_lost(self.planes.cell(slot, Side::Write, granule)) {
                    return false;
                }
                let new = Cell::new(standing.tick(), bytes, now.access);
                self.planes.set_cell(slot, Side::Write, granule, new);
            }
            share(&self.planes, standing, Side::Write, part);
        }
        true
    }

    /// Is what a cell has, beside the block of whose granules it is one, nothing, or was it given back like it? (A block that lay there before
    /// was longer by a few bytes.) What a neighbour has there may have to be kept.
    fn may_be_lost(&self, cell: Cell) -> bool {
        cell == Cell::EMPTY
            || !cell.access().is_strip()
                && self.accesses.one(cell.access()).is_some_and(|one| one.kind == Kind::Free)
    }

    /// Is all that is known of a block in its cells, and whose are they? Those of the crowd are found by what is behind the lock.
    fn is_simple(&self, standing: &Standing, (start, end): (u64, u64)) -> bool {
        // Where blocks begin within granules, others end there, and who clears one must not meet who clears the other.
        if !start.is_multiple_of(GRANULE) {
            self.packed.store(true, Ordering::Relaxed);
            return false;
        }
        if self.packed.load(Ordering::Relaxed) && !end.is_multiple_of(GRANULE) {
            return false;
        }
        let crowd = 1 << self.crowd.slot();
        let is_plain = |line: u64| {
            let writers = self.planes.sharers(Side::Write, line);
            let readers = self.planes.sharers(Side::Read, line);
            writers & (SPECIAL | SYNCHRONISES | crowd) == 0
                && readers & crowd == 0
                && ![Side::Write, Side::Read].into_iter().any(|side| has_room(readers, side))
        };
        start < end
            && end - start < FREED
            && self.planes.covers(start, end)
            && !standing.is_in_crowd()
            && !standing.is_undecided()
            && !self.inhabited.is_anywhere_in(start..end)
            && (start / LINE..end.div_ceil(LINE)).all(is_plain)
    }
}

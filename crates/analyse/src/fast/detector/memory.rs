//! Memory that comes and goes.

use super::{FastHybrid, Now, State};
use crate::fast::access::Description;
use crate::fast::cell::{Cell, LINE, granules, lines};
use crate::fast::protocol::{Planes, SPECIAL, Side, in_room, look, share, slots_of};
use crate::fast::special::Kept;
use crate::fast::strips::each_byte;
use crate::touch::Kind;
use raddle_model::Event;
use std::sync::Arc;

/// Of a block given back, so many bytes are checked and remembered as given back; the rest is
/// forgotten. A use after free reaches for a block's beginning more often than not, and touching
/// the shadow of all of a large block costs more than the program's own use of it.
pub const FREED: u64 = 4096;

impl<P: Planes> FastHybrid<P> {
    /// A block is given back: a write to all of it, and the end of what was known of it.
    pub(super) fn free(&self, state: &mut State, event: &Event, address: u64, size: u64) {
        let Some(member) = state.threads.get(&event.thread) else { return };
        let standing = Arc::clone(&member.standing);
        let access = self.describe(Description {
            kind: Kind::Free,
            size,
            place: event.place,
            stack: event.stack,
        });
        let now = Now { standing: &standing, thread: event.thread, access };
        let mut races = Vec::new();
        let remembered = address.saturating_add(size.min(FREED));
        self.planes.fence();
        for part in lines(address, remembered) {
            let mut suspects = Vec::new();
            let writers = look(&self.planes, &standing, Side::Write, part, |s| {
                self.suspect(now, s, &mut suspects);
            });
            for (granule, bytes) in granules(part.0, part.1).filter(|_| writers & SPECIAL != 0) {
                if let Some(special) = state.specials.get(granule) {
                    self.kept_suspects(now, granule, (bytes, &special.kept), &mut suspects);
                }
            }
            if !suspects.is_empty() {
                // What it comes after in the full order is asked for.
                self.catch_up(state, event.thread);
            }
            races.extend(suspects.iter().flat_map(|s| self.races_by_byte(state, now, s)));
        }
        self.add_races(state, event.thread, races);
        self.clear(state, address, size);
        for part in lines(address, remembered) {
            let marked = self.planes.sharers(Side::Write, part.0 / LINE) & SPECIAL != 0;
            for (granule, bytes) in granules(part.0, part.1) {
                // At its ends a block may share a granule with a neighbour.
                if marked && state.specials.get(granule).is_some_and(|s| s.synchronisation) {
                    let (slot, tick) = (standing.slot(), standing.tick());
                    let new = Kept { slot, tick, bytes, access };
                    state.specials.entry(granule).keep(new, self.most_kept(), |_| false);
                    continue;
                }
                self.restamp(&standing, Side::Write, granule, (bytes, access), |cell| {
                    self.keep(state, standing.slot(), granule, cell);
                });
            }
            share(&self.planes, &standing, Side::Write, part);
        }
    }

    /// Memory comes into being, or has ceased to be.
    pub(super) fn clear(&self, state: &mut State, address: u64, size: u64) {
        let end = address.saturating_add(size);
        if size == 0 {
            return;
        }
        self.clear_cells((address, end));
        state.specials.forget_bytes(address, end);
    }

    /// The same for what is known of it in planes.
    pub(super) fn clear_cells(&self, (address, end): (u64, u64)) {
        let first_whole = address.next_multiple_of(LINE);
        let last_whole = end / LINE * LINE;
        if first_whole < last_whole {
            self.planes.clear(first_whole, last_whole);
            self.clear_bytes(address, first_whole);
            self.clear_bytes(last_whole, end);
        } else {
            self.clear_bytes(address, end);
        }
    }

    fn clear_bytes(&self, start: u64, end: u64) {
        for part in lines(start, end) {
            for side in [Side::Write, Side::Read] {
                for slot in slots_of(self.planes.sharers(side, part.0 / LINE)) {
                    for (granule, bytes) in granules(part.0, part.1) {
                        let cell = self.planes.cell(slot, side, granule);
                        if cell.bytes() & bytes != 0 {
                            self.planes.set_cell(slot, side, granule, cell.only(!bytes));
                        }
                        if let Some(older) = self.older(slot, side, granule)
                            && older.bytes() & bytes != 0
                        {
                            if older.access().is_strip() {
                                for byte in each_byte(bytes) {
                                    let strip = older.access();
                                    self.planes.set_strip_cell(strip, byte, Cell::EMPTY);
                                }
                            } else {
                                self.planes.set_older(slot, side, granule, older.only(!bytes));
                            }
                        }
                        if slot == self.crowd.slot() {
                            let at = (side, granule);
                            in_room(&self.planes, &self.crowd, at, |member, room, cell| {
                                self.planes.set_entry(room, member, cell.only(!bytes));
                            });
                        }
                    }
                }
            }
        }
    }
}

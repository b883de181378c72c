//! Looking late: the second half of an access whose first was done a while ago.
//!
//! The fence between stamping and looking is dear, because it waits for everything the thread has written. So the
//! probe's assembly stamps several accesses before it looks at the others for all of them, behind one fence
//! ([`crate::fast::protocol`] asks for no more), and leaves to this what it is not sure of. Nothing may happen in
//! between that changes where the thread stands: before its next event it has looked.
//!
//! What was stamped is still in the thread's own cells. Where it is not, another thread has taken it from
//! there, and so has seen it.

use super::{FastHybrid, Now, Outcome};
use crate::fast::access::Description;
use crate::fast::cell::{Bytes, GRANULE, LINE};
use crate::fast::protocol::{OLDER, Planes, SPECIAL, Side, has_agreed, has_room, place, slots_of};
use crate::fast::standing::Standing;
use crate::touch::Kind;
use raddle_model::{Address, Event, EventKind, ThreadId};
use std::ops::Range;

impl<P: Planes> FastHybrid<P> {
    /// Looks at the others for bytes of a granule that were stamped in the tick `tick`, and a fence ago. Accesses
    /// that turn out to synchronise are handed to `synchronises`, as events.
    pub fn look_back(
        &self,
        (thread, standing): (ThreadId, &Standing),
        tick: u32,
        (side, granule, bytes): (Side, u64, Bytes),
        mut synchronises: impl FnMut(Event),
    ) {
        if self.is_quiet(standing, side, granule, bytes) {
            return;
        }
        let own = place(&self.planes, standing, side, granule);
        let cell = own.get(&self.planes, standing, (side, granule));
        if cell.tick() != tick {
            return;
        }
        self.accesses.each(cell.access(), cell.bytes() & bytes, |bytes, access| {
            let now = Now { standing, thread, access };
            for Range { start, end } in runs(bytes) {
                let part = (granule * GRANULE + start, granule * GRANULE + end);
                if self.look(now, side, part) == Outcome::Synchronises {
                    let described = self.accesses.one(access);
                    if let Some(event) = described.and_then(|one| event(thread, one, part)) {
                        synchronises(event);
                    }
                }
            }
        });
    }

    /// Is it certain that nobody else has anything to do with these bytes?
    fn is_quiet(&self, standing: &Standing, side: Side, granule: u64, bytes: Bytes) -> bool {
        let line = granule * GRANULE / LINE;
        if self.is_alone(standing, side, line) {
            return true;
        }
        let agreed = has_agreed(&self.planes, standing, line);
        if agreed && side == Side::Write {
            return self.planes.sharers(Side::Write, line) & SPECIAL == 0;
        }
        let own = standing.own_slots();
        let writers = self.planes.sharers(Side::Write, line) & !own;
        let readers = match side {
            Side::Write => self.planes.sharers(Side::Read, line) & !own,
            Side::Read => 0,
        };
        // Where there is more than cells they are looked at once, with the rest.
        let has_cells_only = || {
            let room = has_room(self.planes.sharers(Side::Read, line), Side::Write)
                || side == Side::Write
                    && has_room(self.planes.sharers(Side::Read, line), Side::Read);
            !room && self.planes.sharers(Side::Write, line) & (OLDER | SPECIAL) == 0
        };
        if !has_cells_only() {
            return false;
        }
        let no_conflict = |other_side, others| {
            slots_of(others).all(|slot| {
                let cell = self.planes.cell(slot, other_side, granule);
                if cell.bytes() & bytes == 0 || standing.knows(slot, cell.tick()) {
                    return true;
                }
                let locks = || self.planes.locks(slot, cell.tick());
                let excluded = agreed || self.planes.alike(locks()) == standing.alike();
                if excluded && side == Side::Read {
                    standing.note_handed();
                }
                excluded
            })
        };
        no_conflict(Side::Write, writers) && no_conflict(Side::Read, readers) && has_cells_only()
    }
}

/// Bytes that lie side by side.
fn runs(mut bytes: Bytes) -> impl Iterator<Item = Range<u64>> {
    std::iter::from_fn(move || {
        let start = (bytes != 0).then(|| bytes.trailing_zeros())?;
        let end = start + (bytes >> start).trailing_ones();
        bytes &= !0 << end;
        Some(u64::from(start)..u64::from(end))
    })
}

/// A plain access, as an event.
fn event(thread: ThreadId, access: &Description, (start, end): (u64, u64)) -> Option<Event> {
    let Kind::Access(kind) = access.kind else { return None };
    let size = u32::try_from(end - start).ok()?;
    let kind = EventKind::Access { kind, address: Address(start), size };
    Some(Event { order: 0, thread, place: access.place, stack: access.stack, kind })
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn runs_are_the_bytes_that_lie_side_by_side() {
        assert_eq!(runs(0).count(), 0);
        assert!(runs(0xff).eq(std::iter::once(0..8)));
        assert_eq!(runs(0b1011_0001).collect::<Vec<_>>(), [0..1, 4..6, 7..8]);
    }
}

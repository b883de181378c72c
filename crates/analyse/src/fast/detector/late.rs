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
use crate::fast::cell::{Bytes, GRANULE};
use crate::fast::journal::Noted;
use crate::fast::protocol::{
    OLDER, Planes, SPECIAL, Side, has_agreed_at, has_room, is_alike, place, slots_of,
};
use crate::fast::standing::Standing;
use crate::touch::Kind;
use raddle_model::{Address, Event, EventKind, ThreadId};
use std::ops::Range;

impl<P: Planes> FastHybrid<P> {
    /// Looks at the others for what was noted, was stamped in the tick `tick`, and a fence ago. Accesses that turn out to
    /// synchronise are handed to `synchronises`, as events. Was it a read that met a write of another thread
    /// ([`Journal::handed`])?
    pub fn look_back(
        &self,
        who: (ThreadId, &Standing),
        tick: u32,
        noted: Noted,
        mut synchronises: impl FnMut(Event),
    ) -> bool {
        let quiet = noted.line().and_then(|line| self.is_quiet(who.1, line, noted));
        if quiet.is_none() {
            for (granule, bytes) in noted.granules() {
                let part = (noted.side(), granule, bytes);
                self.look_back_at(who, tick, part, &mut synchronises);
            }
        }
        quiet == Some(Quiet::HasMet)
    }

    fn look_back_at(
        &self,
        (thread, standing): (ThreadId, &Standing),
        tick: u32,
        (side, granule, bytes): (Side, u64, Bytes),
        synchronises: &mut impl FnMut(Event),
    ) {
        let own = place(&self.planes, standing, side, granule);
        let cell = own.get(&self.planes, standing, (side, granule));
        if cell.tick() != tick {
            return;
        }
        self.each_access((standing.slot(), side, granule), cell, bytes, |one| {
            let access = one.access();
            let now = Now { standing, thread, access };
            for Range { start, end } in runs(one.bytes()) {
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

    /// Is it certain that nothing that others did to these bytes of a line races with what was noted?
    fn is_quiet(&self, standing: &Standing, line: u64, noted: Noted) -> Option<Quiet> {
        let side = noted.side();
        if self.is_alone(standing, side, line) {
            return Some(Quiet::HasMetNothing);
        }
        let agreed =
            noted.granules().all(|(granule, _)| has_agreed_at(&self.planes, standing, granule));
        let own = standing.own_slots();
        let writers = self.planes.sharers(Side::Write, line);
        if agreed && side == Side::Write {
            return (writers & SPECIAL == 0).then_some(Quiet::HasMetNothing);
        }
        // What is older, or kept, is looked at with the rest.
        let nothing_more = || self.planes.sharers(Side::Write, line) & (OLDER | SPECIAL) == 0;
        if !nothing_more() {
            return None;
        }
        let mut met = false;
        let mut no_conflict = |of: Side| {
            slots_of(self.planes.sharers(of, line) & !own).all(|slot| {
                noted.granules().all(|(granule, bytes)| {
                    let cell = self.planes.cell(slot, of, granule);
                    if cell.bytes() & bytes == 0 || standing.knows(slot, cell.tick()) {
                        return true;
                    }
                    met |= side == Side::Read;
                    let locks = || self.planes.locks(slot, cell.tick());
                    agreed || self.planes.alike(locks()) == standing.alike()
                })
            })
        };
        let mut is_quiet =
            no_conflict(Side::Write) && (side == Side::Read || no_conflict(Side::Read));
        // What lost its cell meanwhile was put elsewhere first, and the line marked.
        let readers = self.planes.sharers(Side::Read, line);
        for of in [Side::Write, Side::Read] {
            if is_quiet && has_room(readers, of) && (of == Side::Write || side == Side::Write) {
                is_quiet = noted.granules().all(|(granule, _)| {
                    self.planes.room(of, granule).is_none()
                        || is_alike(&self.planes, standing, (of, granule))
                });
                met |= side == Side::Read;
            }
        }
        is_quiet &= nothing_more();
        is_quiet.then_some(if met { Quiet::HasMet } else { Quiet::HasMetNothing })
    }
}

/// What is told of a note when nothing races with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quiet {
    HasMetNothing,
    /// A lock of both kept a write of another thread from racing with it.
    HasMet,
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

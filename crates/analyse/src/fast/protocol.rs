//! Stamping and looking, in this order: how threads that touch a location at the same time, without a
//! lock between them, cannot both miss the other.
//!
//! A thread that touches a line of memory
//! 1. stamps the cells of its own planes,
//! 2. is among the line's sharers, or becomes one,
//! 3. lets all of this become visible (a fence), and only then
//! 4. reads who else shares the line, and looks at their cells.
//!
//! Of two threads that touch the same bytes, the one whose fence comes second sees the stamp and the
//! name of the other. Checking first and stamping then would leave a window in which both see nothing.

use crate::fast::SLOTS;
use crate::fast::access::{AccessId, LockSetId};
use crate::fast::cell::{Bytes, Cell, GRANULE, LINE, granules};
use crate::fast::standing::Standing;
use std::ops::Range;

/// Which of a slot's two planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The last write.
    Write = 0,
    /// The last read.
    Read = 1,
}

/// Among the writers of a line: some of its granules have more to say ([`crate::fast::special`]).
pub const SPECIAL: u32 = 1 << 31;
/// Among the writers of a line: some slot has an older access there ([`Planes::older`]).
pub const OLDER: u32 = 1 << 30;
/// Among the writers of a line, beside [`SPECIAL`]: some of its granules are accessed atomically.
pub const SYNCHRONISES: u32 = 1 << 29;
/// The slots among sharers.
const EVERY_SLOT: u32 = (1 << SLOTS) - 1;
const _: () = assert!(EVERY_SLOT & (SPECIAL | OLDER | SYNCHRONISES) == 0);

/// The slots among sharers, one after the other.
pub fn slots_of(sharers: u32) -> impl Iterator<Item = usize> {
    let mut left = sharers & EVERY_SLOT;
    std::iter::from_fn(move || {
        let slot = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(slot)
    })
}

/// Shadow memory. Granules and lines are numbered by address.
pub trait Planes {
    /// Is there shadow for all of `start..end`? What has none is not looked at.
    fn covers(&self, start: u64, end: u64) -> bool;
    /// A slot comes into use. False when there is no room for its planes.
    fn use_slot(&self, slot: usize) -> bool;
    /// A lock set is known by this number: which lock sets it excludes for being alike, if any.
    fn note(&self, locks: LockSetId, alike: Option<u32>);
    /// The locks held in a tick of a slot.
    fn locks(&self, slot: usize, tick: u32) -> LockSetId;
    /// Sets them.
    fn set_locks(&self, slot: usize, tick: u32, locks: LockSetId);
    /// The cell of a granule.
    fn cell(&self, slot: usize, side: Side, granule: u64) -> Cell;
    /// How many of these granules, from the first on, are touched as wholly, and in the same tick, as `like`.
    fn known(&self, slot: usize, side: Side, granules: Range<u64>, like: Cell) -> u64 {
        let known = |granule: &u64| self.cell(slot, side, *granule).is_like(like);
        granules.take_while(known).count() as u64
    }
    /// Sets it.
    fn set_cell(&self, slot: usize, side: Side, granule: u64, cell: Cell);
    /// An access whose cell a newer one of the slot took without standing for it, one a granule.
    /// Nothing where there is no room for more planes.
    fn older(&self, slot: usize, side: Side, granule: u64) -> Option<Cell>;
    /// Sets it; the line must be marked with [`OLDER`].
    fn set_older(&self, slot: usize, side: Side, granule: u64, cell: Cell);
    /// The slots, a bit each, that have touched the line on this side since it was fresh.
    fn sharers(&self, side: Side, line: u64) -> u32;
    /// Adds some.
    fn add_sharers(&self, side: Side, line: u64, slots: u32);
    /// Forgets the line's sharers, and what it is marked with.
    fn clear_sharers(&self, line: u64);
    /// What was written before is visible to all before what is read next is read.
    fn fence(&self);
    /// Makes all of `start..end`, both multiples of [`crate::fast::cell::LINE`], as if never touched.
    fn clear(&self, start: u64, end: u64);
    /// Makes all cells of a slot empty.
    fn clear_slot(&self, slot: usize);
}

/// An access of another slot that the weak order does not put before the one being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    /// Whose.
    pub slot: usize,
    /// When, and which bytes of the granule.
    pub cell: Cell,
    /// What: the cell's, or one of those it stands for.
    pub access: AccessId,
    /// Where.
    pub granule: u64,
    /// The bytes that both touch.
    pub bytes: Bytes,
}

/// Stamps one cell.
#[inline]
pub fn stamp<P: Planes>(
    planes: &P,
    standing: &Standing,
    side: Side,
    granule: u64,
    bytes: Bytes,
    access: AccessId,
) {
    planes.set_cell(standing.slot(), side, granule, Cell::new(standing.tick(), bytes, access));
}

/// Puts an access that is about to lose its cell among the older ones, where [`look`] finds it.
pub fn set_aside<P: Planes>(planes: &P, (slot, side, granule): (usize, Side, u64), cell: Cell) {
    let line = granule * GRANULE / LINE;
    planes.set_older(slot, side, granule, cell);
    if planes.sharers(Side::Write, line) & OLDER == 0 {
        planes.add_sharers(Side::Write, line, OLDER);
    }
}

/// Steps 2 to 4 for `start..end`, which lie in one line: calls `suspect` for every cell of another
/// slot in conflict. Returns the line's writers, for [`SPECIAL`].
///
/// An access that loses its cell is put elsewhere before the cell changes, and the line marked. So
/// the cells are read first, then the mark, then what is older: who finds the newer one in the
/// cell, finds the mark.
pub fn look<P: Planes>(
    planes: &P,
    standing: &Standing,
    side: Side,
    (start, end): (u64, u64),
    mut suspect: impl FnMut(Suspect),
) -> u32 {
    let line = start / LINE;
    let own = 1 << standing.slot();
    if planes.sharers(side, line) & own == 0 {
        planes.add_sharers(side, line, own);
    }
    planes.fence();
    let others = |side| planes.sharers(side, line) & !own;
    let mut visit = |side, others, age| {
        visit(planes, standing, (side, age), others, (start, end), &mut suspect);
    };
    visit(Side::Write, others(Side::Write), Age::Newest);
    if side == Side::Write {
        visit(Side::Read, others(Side::Read), Age::Newest);
    }
    let writers = planes.sharers(Side::Write, line);
    if writers & OLDER == 0 {
        return writers;
    }
    visit(Side::Write, others(Side::Write), Age::Older);
    if side == Side::Write {
        visit(Side::Read, others(Side::Read), Age::Older);
    }
    // Again: an older access, too, may have had to make room.
    planes.sharers(Side::Write, line)
}

/// Which of what a slot's planes hold of a granule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Newest,
    Older,
}

fn visit<P: Planes>(
    planes: &P,
    standing: &Standing,
    (side, age): (Side, Age),
    others: u32,
    (start, end): (u64, u64),
    suspect: &mut impl FnMut(Suspect),
) {
    for slot in slots_of(others) {
        let known = standing.weak(slot);
        for (granule, bytes) in granules(start, end) {
            let cell = match age {
                Age::Newest => planes.cell(slot, side, granule),
                Age::Older => match planes.older(slot, side, granule) {
                    Some(cell) => cell,
                    None => continue,
                },
            };
            let common = cell.bytes() & bytes;
            if common != 0 && cell.tick() > known {
                suspect(Suspect { slot, cell, access: cell.access(), granule, bytes: common });
            }
        }
    }
}

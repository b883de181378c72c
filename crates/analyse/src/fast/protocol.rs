//! Stamping and looking, in this order: how threads that touch a location at the same time, without a
//! lock between them, cannot both miss the other.
//!
//! A thread that touches a line of memory
//! 1. stamps the cells of its own planes,
//! 2. is among the line's sharers, or becomes one, and says under what locks it touches it ([`share`]),
//! 3. lets all of this become visible (a fence), and only then
//! 4. reads who else shares the line, and looks at their cells, unless all of them held the lock that it holds ([`has_agreed`]).
//!
//! Of two threads that touch the same bytes, the one whose fence comes second sees the stamp and the
//! name of the other. Checking first and stamping then would leave a window in which both see nothing.
//!
//! Members of the crowd ([`crate::fast::crowd`]) stamp what is theirs of the shared planes, or of the granule's room; their slot is
//! one of the others to each of them, too. Which place is theirs is decided once, by an atomic exchange
//! ([`place`]), before they stamp.

use crate::fast::SLOTS;
use crate::fast::access::{AccessId, LockSetId, UNLIKE};
use crate::fast::cell::{Bytes, Cell, GRANULE, LINE, blocks, granules};
use crate::fast::crowd::{Crowd, MIXED};
use crate::fast::standing::Standing;
use crate::fast::strips;
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
/// Among the readers of a line: the crowd has rooms there, for its reads, for its writes. Apart from [`OLDER`], so that who
/// finds a room does not look for older accesses of all the slots, each in a page of its own.
pub const READ_ROOM: u32 = 1 << 30;
pub const WRITE_ROOM: u32 = 1 << 29;
/// Among the readers of a line: one of its blocks was touched under locks that are not alike ([`Planes::block_alike`]), or under none.
pub const MIXED_LOCKS: u32 = 1 << 31;
/// The slots among sharers.
pub const EVERY_SLOT: u32 = (1 << SLOTS) - 1;
const _: () = assert!(EVERY_SLOT & (SPECIAL | OLDER | SYNCHRONISES) == 0);
const _: () = assert!(EVERY_SLOT & (READ_ROOM | WRITE_ROOM | MIXED_LOCKS) == 0);

/// The slots among sharers, one after the other.
pub fn slots_of(sharers: u32) -> impl Iterator<Item = usize> {
    let mut left = sharers & EVERY_SLOT;
    std::iter::from_fn(move || {
        let slot = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(slot)
    })
}

/// Has the crowd a room for what it does to a line on this side, as far as its readers say?
#[inline]
pub fn has_room(readers: u32, side: Side) -> bool {
    readers & room_mark(side) != 0
}

fn room_mark(side: Side) -> u32 {
    match side {
        Side::Write => WRITE_ROOM,
        Side::Read => READ_ROOM,
    }
}

/// Shadow memory. Granules and lines are numbered by address.
pub trait Planes {
    /// How many slots there are. The last is the crowd's.
    fn slots(&self) -> usize;
    /// Is there shadow for all of `start..end`? What has none is not looked at.
    fn covers(&self, start: u64, end: u64) -> bool;
    /// A slot comes into use. False when there is no room for its planes.
    fn use_slot(&self, slot: usize) -> bool;
    /// A lock set is known by this number: which lock sets it excludes for being alike, if any.
    fn note(&self, locks: LockSetId, alike: Option<u32>);
    /// Which lock sets that number is known to exclude for being alike, if it is: a number, or one that is nobody's.
    fn alike(&self, _: LockSetId) -> u32 {
        UNLIKE - 1
    }
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
    /// Sets it if it is still `old`.
    fn take_cell(&self, slot: usize, side: Side, granule: u64, old: Cell, new: Cell) -> bool;
    /// The number of the room that the crowd has for a granule, if any.
    fn room(&self, side: Side, granule: u64) -> Option<u32>;
    /// The same; makes one. Nothing if there is no memory for more.
    fn open_room(&self, side: Side, granule: u64) -> Option<u32>;
    /// What the locks are like under which all was done in the room of a granule; zero if nothing was,
    /// [`crate::fast::crowd::MIXED`] if they are not.
    fn room_alike(&self, side: Side, granule: u64) -> u32;
    /// Sets it if it is still zero. Gives what it was.
    fn begin_room(&self, side: Side, granule: u64, alike: u32) -> u32;
    /// They are not.
    fn mix_room(&self, side: Side, granule: u64);
    /// What the locks are like under which all was done to a block, by whomever, since it was fresh, unless its line is marked with
    /// [`MIXED_LOCKS`]; zero if nothing was.
    fn block_alike(&self, block: u64) -> u32;
    /// Sets it if it is still zero. Gives what it was.
    fn begin_block(&self, block: u64, alike: u32) -> u32;
    /// What a member of the crowd, counted from zero, has in a room.
    fn entry(&self, room: u32, member: usize) -> Cell;
    /// Sets it.
    fn set_entry(&self, room: u32, member: usize, cell: Cell);
    /// An access whose cell a newer one of the slot took without standing for it, one a granule.
    /// Nothing where there is no room for more planes. Not asked for the crowd's slot.
    fn older(&self, slot: usize, side: Side, granule: u64) -> Option<Cell>;
    /// Sets it; the line must be marked with [`OLDER`].
    fn set_older(&self, slot: usize, side: Side, granule: u64, cell: Cell);
    /// The strip of a granule of a slot, opened if there is none ([`crate::fast::strips`]). Nothing where there is no memory for more.
    fn open_strip(&self, _slot: usize, _: Side, _granule: u64) -> Option<AccessId> {
        None
    }
    /// The cell of a byte in a strip.
    fn strip_cell(&self, _strip: AccessId, _byte: u32) -> Cell {
        Cell::EMPTY
    }
    /// Sets it.
    fn set_strip_cell(&self, _strip: AccessId, _byte: u32, _: Cell) {}
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
    /// Makes all cells of a slot empty; of the crowd's also its rooms, of which there are none then.
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

/// Where what a thread did to a granule is remembered. Nobody else writes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The cell of its slot.
    Cell,
    /// Its entry in the room of this number.
    Room(u32),
    /// There is no memory for it.
    Nowhere,
}

impl Place {
    /// What is there.
    #[inline]
    pub fn get<P: Planes>(
        self,
        planes: &P,
        standing: &Standing,
        (side, granule): (Side, u64),
    ) -> Cell {
        match self {
            Place::Cell => planes.cell(standing.slot(), side, granule),
            Place::Room(room) => planes.entry(room, (standing.member() as usize).saturating_sub(1)),
            Place::Nowhere => Cell::EMPTY,
        }
    }

    /// Puts something there.
    #[inline]
    pub fn set<P: Planes>(
        self,
        planes: &P,
        standing: &Standing,
        (side, granule): (Side, u64),
        cell: Cell,
    ) {
        match self {
            Place::Cell => planes.set_cell(standing.slot(), side, granule, cell),
            Place::Room(room) => {
                planes.set_entry(room, (standing.member() as usize).saturating_sub(1), cell);
            }
            Place::Nowhere => {}
        }
    }
}

/// Where a thread stamps a granule: in the cell of its slot. A member of the crowd takes the cell, if nobody has it,
/// by an exchange that only one of several can make; else the room is the place.
#[inline]
pub fn place<P: Planes>(planes: &P, standing: &Standing, side: Side, granule: u64) -> Place {
    let (true, Some(crowd)) = (standing.is_in_crowd(), standing.crowd()) else {
        return Place::Cell;
    };
    loop {
        let cell = planes.cell(standing.slot(), side, granule);
        let owner = crowd.owner(cell.tick());
        if owner == standing.member() {
            return Place::Cell;
        }
        if owner != 0 {
            break;
        }
        let taken = Cell::new(standing.tick(), 0, AccessId::default());
        if planes.take_cell(standing.slot(), side, granule, cell, taken) {
            return Place::Cell;
        }
    }
    // The mark first: whoever finds the room may use it.
    let line = granule * GRANULE / LINE;
    if !has_room(planes.sharers(Side::Read, line), side) {
        planes.add_sharers(Side::Read, line, room_mark(side));
    }
    let Some(room) = planes.open_room(side, granule) else { return Place::Nowhere };
    // Before anything is stamped there: who does not see this is seen.
    let claim = if standing.alike() == UNLIKE { MIXED } else { standing.alike() };
    let was = match planes.room_alike(side, granule) {
        0 => planes.begin_room(side, granule, claim),
        was => was,
    };
    if was != 0 && was != claim && was != MIXED {
        planes.mix_room(side, granule);
    }
    Place::Room(room)
}

/// Was all that was ever done to the blocks of `start..end`, which lie in one line, done under locks like those that a thread holds,
/// which exclude each other?
#[inline]
pub fn has_agreed<P: Planes>(planes: &P, standing: &Standing, (start, end): (u64, u64)) -> bool {
    standing.alike() != UNLIKE
        && planes.sharers(Side::Read, start / LINE) & MIXED_LOCKS == 0
        && blocks(start, end).all(|block| planes.block_alike(block) == standing.alike())
}

/// The same for one granule.
#[inline]
pub fn has_agreed_at<P: Planes>(planes: &P, standing: &Standing, granule: u64) -> bool {
    has_agreed(planes, standing, (granule * GRANULE, (granule + 1) * GRANULE))
}

/// Says under what locks a thread touches the blocks of `start..end`, which lie in one line.
#[inline]
fn claim<P: Planes>(planes: &P, standing: &Standing, (start, end): (u64, u64)) {
    let line = start / LINE;
    if planes.sharers(Side::Read, line) & MIXED_LOCKS != 0 {
        return;
    }
    let agrees = |block: u64| {
        let was = match planes.block_alike(block) {
            0 => planes.begin_block(block, standing.alike()),
            was => was,
        };
        was == 0 || was == standing.alike()
    };
    if standing.alike() == UNLIKE || !blocks(start, end).all(agrees) {
        planes.add_sharers(Side::Read, line, MIXED_LOCKS);
    }
}

/// Is all that is in the room of a granule excluded by what a thread holds?
pub fn is_alike<P: Planes>(planes: &P, standing: &Standing, (side, granule): (Side, u64)) -> bool {
    // Nobody's locks are like zero, which is where there is no room.
    planes.room_alike(side, granule) == standing.alike()
}

/// Calls `visit` for what each member of the crowd has in the room of a granule, if it has one.
pub fn in_room<P: Planes>(
    planes: &P,
    crowd: &Crowd,
    (side, granule): (Side, u64),
    mut visit: impl FnMut(usize, u32, Cell),
) {
    let Some(room) = planes.room(side, granule) else { return };
    for member in 0..crowd.members() {
        let cell = planes.entry(room, member);
        if cell.bytes() != 0 {
            visit(member, room, cell);
        }
    }
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
    let cell = Cell::new(standing.tick(), bytes, access);
    place(planes, standing, side, granule).set(planes, standing, (side, granule), cell);
}

/// Puts an access that is about to lose its cell among the older ones, where [`look`] finds it.
pub fn set_aside<P: Planes>(planes: &P, (slot, side, granule): (usize, Side, u64), cell: Cell) {
    let line = granule * GRANULE / LINE;
    planes.set_older(slot, side, granule, cell);
    if planes.sharers(Side::Write, line) & OLDER == 0 {
        planes.add_sharers(Side::Write, line, OLDER);
    }
}

/// Step 2: a thread is among those who share the line in which a part lies, and says under what locks. A fence must follow before it
/// looks. Who then finds the part [agreed](has_agreed) upon need not look at the others: whoever holds other locks, and was not seen to say so,
/// says so before its own fence, and looks.
#[inline]
pub fn share<P: Planes>(planes: &P, standing: &Standing, side: Side, part: (u64, u64)) {
    claim(planes, standing, part);
    let (line, own) = (part.0 / LINE, 1 << standing.slot());
    if planes.sharers(side, line) & own == 0 {
        planes.add_sharers(side, line, own);
    }
}

/// Step 4 for `start..end`, which lie in one line: calls `suspect` for every cell of another
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
    let agreed = has_agreed(planes, standing, (start, end));
    if agreed && side == Side::Write {
        return planes.sharers(Side::Write, line);
    }
    let own = standing.own_slots();
    let others = |side| planes.sharers(side, line) & !own;
    let later = side;
    let mut visit = |side, others, age| {
        let how = (later, side, age, agreed);
        visit(planes, standing, how, others, (start, end), &mut suspect);
    };
    visit(Side::Write, others(Side::Write), Age::Newest);
    if side == Side::Write {
        visit(Side::Read, others(Side::Read), Age::Newest);
    }
    let writers = planes.sharers(Side::Write, line);
    let readers = planes.sharers(Side::Read, line);
    let crowd = standing.crowd().map_or(0, |crowd| 1 << crowd.slot());
    let slots = if writers & OLDER == 0 { 0 } else { EVERY_SLOT & !crowd };
    // Whose older accesses, and whether the crowd's rooms, are to be looked at.
    let older = |side| if has_room(readers, side) { slots | crowd } else { slots };
    let (written, read) = (older(Side::Write), older(Side::Read));
    if written == 0 && (read == 0 || side == Side::Read) {
        return writers;
    }
    visit(Side::Write, others(Side::Write) & written, Age::Older);
    if side == Side::Write {
        visit(Side::Read, others(Side::Read) & read, Age::Older);
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
    (later, side, age, agreed): (Side, Side, Age, bool),
    others: u32,
    (start, end): (u64, u64),
    suspect: &mut impl FnMut(Suspect),
) {
    // Most of what is not known is excluded by the lock that both hold.
    let is_excluded = |slot: usize, tick: u32| {
        agreed || planes.alike(planes.locks(slot, tick)) == standing.alike()
    };
    let mut look_at = |slot: usize, granule: u64, bytes: Bytes, cell: Cell| {
        let common = cell.bytes() & bytes;
        if common == 0 || standing.knows(slot, cell.tick()) {
            return;
        }
        // What is older in a strip has other ticks, too.
        let has_one_tick = age == Age::Newest || !cell.access().is_strip();
        if agreed || has_one_tick && is_excluded(slot, cell.tick()) {
            if later == Side::Read {
                standing.note_handed();
            }
        } else if cell.access().is_strip() {
            for cell in strips::cells(planes, (slot, side, granule), cell, common) {
                if standing.knows(slot, cell.tick()) {
                    continue;
                }
                if !is_excluded(slot, cell.tick()) {
                    let (access, bytes) = (cell.access(), cell.bytes());
                    suspect(Suspect { slot, cell, access, granule, bytes });
                } else if later == Side::Read {
                    standing.note_handed();
                }
            }
        } else {
            suspect(Suspect { slot, cell, access: cell.access(), granule, bytes: common });
        }
    };
    for slot in slots_of(others) {
        let crowd = standing.crowd().filter(|crowd| crowd.slot() == slot);
        for (granule, bytes) in granules(start, end) {
            match (age, crowd) {
                (Age::Newest, _) => {
                    look_at(slot, granule, bytes, planes.cell(slot, side, granule));
                }
                (Age::Older, Some(_)) if is_alike(planes, standing, (side, granule)) => {
                    if later == Side::Read {
                        standing.note_handed();
                    }
                }
                (Age::Older, Some(crowd)) => {
                    in_room(planes, crowd, (side, granule), |_, _, cell| {
                        look_at(slot, granule, bytes, cell);
                    });
                }
                (Age::Older, None) => {
                    if let Some(cell) = planes.older(slot, side, granule) {
                        // The bytes of a strip that were touched last were looked at with the newest.
                        let newest = planes.cell(slot, side, granule);
                        let seen =
                            match newest.access() == cell.access() && newest.access().is_strip() {
                                true => newest.bytes(),
                                false => 0,
                            };
                        look_at(slot, granule, bytes & !seen, cell);
                    }
                }
            }
        }
    }
}

//! Two threads that touch the same bytes at the same time cannot both miss the other: every
//! interleaving of stamping and looking that the memory model allows, by loom, with the orderings
//! of the probe's shadow memory.

use crate::dsl::{events, t};
use crate::fast::detector_in;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use raddle_analyse::Options;
use raddle_analyse::fast::access::{AccessId, LockSetId};
use raddle_analyse::fast::cell::{Cell, granules};
use raddle_analyse::fast::crowd::MIXED;
use raddle_analyse::fast::protocol::{MIXED_LOCKS, Suspect, look, set_aside, share, stamp};
use raddle_analyse::fast::strips::{self, split};
use raddle_analyse::fast::{Journal, Planes, SLOTS, Side, Standing};
use raddle_model::{LockMode, ThreadId};
use std::sync::Arc;

/// One line, two slots: a cell for each slot and side, of one granule.
#[derive(Default)]
struct OneLine {
    cells: [[AtomicU64; 2]; 2],
    older: [[AtomicU64; 2]; 2],
    sharers: [AtomicU32; 2],
    block_alike: AtomicU32,
    /// Rooms for three members of the crowd: open or not, and what is in them.
    rooms: [AtomicU32; 2],
    alike: [AtomicU32; 2],
    entries: [[AtomicU64; 3]; 2],
    /// The strip of a granule that is split: of its third and fourth byte, of which the tests speak.
    strip: [AtomicU64; 2],
    /// Left out where a test shows that it is needed.
    without_fence: bool,
}

const GRANULE_NUMBER: u64 = 0x1000 / raddle_analyse::fast::cell::GRANULE;

impl Planes for OneLine {
    fn slots(&self) -> usize {
        self.cells.len()
    }
    fn take_cell(&self, slot: usize, side: Side, _: u64, old: Cell, new: Cell) -> bool {
        let cell = &self.cells[slot][side as usize];
        cell.compare_exchange(old.0, new.0, Ordering::SeqCst, Ordering::Acquire).is_ok()
    }
    fn room(&self, side: Side, _: u64) -> Option<u32> {
        let open = self.rooms[side as usize].load(Ordering::Acquire) != 0;
        open.then_some(side as u32)
    }
    fn open_room(&self, side: Side, _: u64) -> Option<u32> {
        self.rooms[side as usize].store(1, Ordering::Release);
        Some(side as u32)
    }
    fn room_alike(&self, side: Side, _: u64) -> u32 {
        self.alike[side as usize].load(Ordering::Acquire)
    }
    fn begin_room(&self, side: Side, _: u64, alike: u32) -> u32 {
        let word = &self.alike[side as usize];
        let was = word.compare_exchange(0, alike, Ordering::SeqCst, Ordering::Acquire);
        was.unwrap_or_else(|was| was)
    }
    fn mix_room(&self, side: Side, _: u64) {
        self.alike[side as usize].store(MIXED, Ordering::SeqCst);
    }
    fn block_alike(&self, _: u64) -> u32 {
        self.block_alike.load(Ordering::Acquire)
    }
    fn begin_block(&self, _: u64, alike: u32) -> u32 {
        let was = self.block_alike.compare_exchange(0, alike, Ordering::SeqCst, Ordering::Acquire);
        was.unwrap_or_else(|was| was)
    }
    fn entry(&self, room: u32, member: usize) -> Cell {
        Cell(self.entries[room as usize][member].load(Ordering::Acquire))
    }
    fn set_entry(&self, room: u32, member: usize, cell: Cell) {
        self.entries[room as usize][member].store(cell.0, Ordering::Release);
    }
    fn covers(&self, _: u64, _: u64) -> bool {
        true
    }
    fn use_slot(&self, _: usize) -> bool {
        true
    }
    fn note(&self, _: LockSetId, _: Option<u32>) {}
    fn locks(&self, _: usize, _: u32) -> LockSetId {
        LockSetId::default()
    }
    fn set_locks(&self, _: usize, _: u32, _: LockSetId) {}
    fn cell(&self, slot: usize, side: Side, granule: u64) -> Cell {
        assert_eq!(granule, GRANULE_NUMBER);
        Cell(self.cells[slot][side as usize].load(Ordering::Acquire))
    }
    fn set_cell(&self, slot: usize, side: Side, _: u64, cell: Cell) {
        self.cells[slot][side as usize].store(cell.0, Ordering::Release);
    }
    fn older(&self, slot: usize, side: Side, _: u64) -> Option<Cell> {
        Some(Cell(self.older[slot][side as usize].load(Ordering::Acquire)))
    }
    fn set_older(&self, slot: usize, side: Side, _: u64, cell: Cell) {
        self.older[slot][side as usize].store(cell.0, Ordering::Release);
    }
    fn strip_cell(&self, _: AccessId, byte: u32) -> Cell {
        let cell = byte.checked_sub(2).and_then(|byte| self.strip.get(byte as usize));
        cell.map_or(Cell::EMPTY, |cell| Cell(cell.load(Ordering::Acquire)))
    }
    fn set_strip_cell(&self, _: AccessId, byte: u32, cell: Cell) {
        if let Some(at) = byte.checked_sub(2).and_then(|byte| self.strip.get(byte as usize)) {
            at.store(cell.0, Ordering::Release);
        }
    }
    fn sharers(&self, side: Side, _: u64) -> u32 {
        self.sharers[side as usize].load(Ordering::Acquire)
    }
    fn add_sharers(&self, side: Side, _: u64, slots: u32) {
        self.sharers[side as usize].fetch_or(slots, Ordering::SeqCst);
    }
    fn clear_sharers(&self, _: u64) {}
    fn fence(&self) {
        if !self.without_fence {
            fence(Ordering::SeqCst);
        }
    }
    fn clear(&self, _: u64, _: u64) {}
    fn clear_slot(&self, _: usize) {}
}

/// The standings of two threads that nothing orders.
fn standings() -> [Arc<Standing>; 2] {
    let [one, other, _] = standings_in(SLOTS);
    [one, other]
}

/// The same of three, where there are so many slots: beyond the last, they share it.
fn standings_in(slots: usize) -> [Arc<Standing>; 3] {
    let detector = detector_in(slots, Options::default(), false, (64, 1024));
    for event in events(&[t(1).forks(2), t(1).forks(3)]) {
        detector.event(&event, &Journal::default());
    }
    [1, 2, 3].map(|thread| detector.standing(ThreadId(thread)))
}

/// The same of two of whom each holds a lock or none.
fn standings_holding(locks: [Option<u64>; 2]) -> [Arc<Standing>; 2] {
    let detector = detector_in(SLOTS, Options::default(), false, (64, 1024));
    let mut steps = vec![t(1).forks(2)];
    for (thread, lock) in [1, 2].into_iter().zip(locks) {
        steps.extend(lock.map(|lock| t(thread).takes(lock, LockMode::Exclusive)));
    }
    for event in events(&steps) {
        detector.event(&event, &Journal::default());
    }
    [1, 2].map(|thread| detector.standing(ThreadId(thread)))
}

/// What this thread does.
fn access_of(standing: &Standing) -> AccessId {
    AccessId(10 + standing.slot() as u32 + 4 * standing.member())
}

/// Stamps and looks; what was seen of the other.
fn touch(planes: &OneLine, standing: &Standing, (side, start, end): Touch) -> Vec<Suspect> {
    let own = access_of(standing);
    for (granule, bytes) in granules(start, end) {
        stamp(planes, standing, side, granule, bytes, own);
    }
    share(planes, standing, side, (start, end));
    planes.fence();
    let mut seen = Vec::new();
    look(planes, standing, side, (start, end), |suspect| seen.push(suspect));
    for suspect in &seen {
        assert_ne!(suspect.access, own);
        assert_eq!(suspect.access.0 % 4, (10 + suspect.slot as u32) % 4);
    }
    seen
}

type Touch = (Side, u64, u64);

/// Which threads have touched the line before.
#[derive(Clone, Copy)]
enum Line {
    /// None.
    Fresh,
    /// None of them, but others, under whatever locks.
    Foreign,
    /// The first, under the locks that it holds now.
    Agreed,
    /// Both.
    Shared,
    /// Both, and nobody uses the fence.
    SharedWithoutFence,
}

/// In every interleaving of two accesses, does at least one see the other?
fn never_both_blind(touches: [Touch; 2], line: Line) {
    let standings = standings();
    assert_ne!(standings[0].slot(), standings[1].slot());
    never_both_blind_of(standings, None, touches, line);
}

/// The same for these two, where this cell is there already, on both sides.
fn never_both_blind_of(
    standings: [Arc<Standing>; 2],
    there: Option<(usize, Cell)>,
    touches: [Touch; 2],
    line: Line,
) {
    let sharers = match line {
        Line::Fresh | Line::Foreign => 0,
        Line::Agreed => 1 << standings[0].slot(),
        _ => 1 << standings[0].slot() | 1 << standings[1].slot(),
    };
    let (alike, mixed) = match line {
        Line::Fresh => (0, 0),
        Line::Agreed => (standings[0].alike(), 0),
        _ => (0, MIXED_LOCKS),
    };
    let without_fence = matches!(line, Line::SharedWithoutFence);
    loom::model(move || {
        let sharers = [sharers, sharers | mixed].map(AtomicU32::new);
        let block_alike = AtomicU32::new(alike);
        let planes = OneLine { sharers, block_alike, without_fence, ..OneLine::default() };
        let planes = loom::sync::Arc::new(planes);
        for (side, (slot, cell)) in
            [Side::Write, Side::Read].into_iter().zip(there.into_iter().cycle())
        {
            planes.set_cell(slot, side, GRANULE_NUMBER, cell);
        }
        let (theirs, standing) = (loom::sync::Arc::clone(&planes), Arc::clone(&standings[1]));
        let other = loom::thread::spawn(move || touch(&theirs, &standing, touches[1]).len());
        let own = touch(&planes, &standings[0], touches[0]).len();
        assert!(own + other.join().expect("no panic") > 0, "both are blind");
    });
}

const WRITE: Touch = (Side::Write, 0x1000, 0x1004);
const READ_WITHIN: Touch = (Side::Read, 0x1002, 0x1003);

#[test]
fn two_writes() {
    never_both_blind([WRITE, WRITE], Line::Fresh);
    never_both_blind([WRITE, WRITE], Line::Shared);
}

#[test]
fn a_write_and_a_read_of_some_of_its_bytes() {
    never_both_blind([WRITE, READ_WITHIN], Line::Fresh);
    never_both_blind([WRITE, READ_WITHIN], Line::Shared);
}

/// One who holds a lock, and one who holds none or another: whatever the first has agreed upon with those before it.
#[test]
fn who_holds_a_lock_and_who_does_not() {
    for lock in [None, Some(0x9100)] {
        let holding = standings_holding([Some(0x9000), lock]);
        assert_ne!(holding[0].alike(), holding[1].alike());
        for touches in [[WRITE, WRITE], [WRITE, READ_WITHIN], [READ_WITHIN, WRITE]] {
            for line in [Line::Fresh, Line::Agreed] {
                never_both_blind_of(holding.clone(), None, touches, line);
            }
        }
    }
}

/// While an access makes room for a newer one of its thread, it is in sight.
#[test]
fn who_makes_room_is_seen() {
    let standings = standings();
    let (slot, tick) = (standings[1].slot(), standings[1].tick());
    loom::model(move || {
        let planes = loom::sync::Arc::new(OneLine::default());
        let was = AccessId(10 + slot as u32);
        let older = Cell::new(tick, 0b1100, was);
        planes.set_cell(slot, Side::Write, GRANULE_NUMBER, older);
        planes.add_sharers(Side::Write, 0x1000 / 64, 1 << slot);
        let theirs = loom::sync::Arc::clone(&planes);
        let other = loom::thread::spawn(move || {
            set_aside(&*theirs, (slot, Side::Write, GRANULE_NUMBER), older);
            let newer = Cell::new(tick + 1, 0b0001, was);
            theirs.set_cell(slot, Side::Write, GRANULE_NUMBER, newer);
        });
        let seen = touch(&planes, &standings[0], READ_WITHIN);
        assert!(seen.iter().any(|suspect| suspect.cell == older), "out of sight");
        other.join().expect("no panic");
    });
}

/// While a granule is split, and when its bytes are touched in the next segment, what was there is in sight.
#[test]
fn who_splits_a_granule_is_seen() {
    let standings = standings();
    let (slot, tick) = (standings[1].slot(), standings[1].tick());
    for begins_split in [false, true] {
        let standing = Arc::clone(&standings[0]);
        loom::model(move || {
            let planes = loom::sync::Arc::new(OneLine::default());
            let was = AccessId(10 + slot as u32);
            let strip = AccessId::of_strip(0).expect("there is a first one");
            let at = (slot, Side::Write, GRANULE_NUMBER);
            let newest = Cell::new(tick, 0b1100, was);
            let of_byte = |byte: usize| Some(newest.only(1 << byte));
            let bytes = std::array::from_fn(of_byte);
            planes.set_cell(slot, Side::Write, GRANULE_NUMBER, newest);
            planes.add_sharers(Side::Write, 0x1000 / 64, 1 << slot);
            if begins_split {
                split(&*planes, at, newest, (strip, bytes));
            }
            let theirs = loom::sync::Arc::clone(&planes);
            let other = loom::thread::spawn(move || match begins_split {
                true => strips::stamp(&*theirs, at, tick + 1, (0b0100, was)),
                false => split(&*theirs, at, newest, (strip, bytes)),
            });
            // The fourth byte, which is touched once.
            let seen = touch(&planes, &standing, (Side::Read, 0x1003, 0x1004));
            let is_it = |suspect: &Suspect| {
                suspect.access == was && suspect.cell.tick() == tick && suspect.bytes == 0b1000
            };
            assert!(seen.iter().any(is_it), "out of sight");
            other.join().expect("no panic");
        });
    }
}

/// The test can fail: looking before the stamp is visible is the window that must not be.
#[test]
#[should_panic(expected = "both are blind")]
fn without_the_fence_a_race_is_lost() {
    never_both_blind([WRITE, WRITE], Line::SharedWithoutFence);
}

const READ: Touch = (Side::Read, 0x1000, 0x1004);

/// Two of the crowd: whoever gets the cell, and wherever the other goes.
#[test]
fn two_of_the_crowd() {
    let [one, other, _] = standings_in(1);
    assert!(one.slot() == other.slot() && one.member() != other.member());
    for touches in [[WRITE, WRITE], [WRITE, READ_WITHIN]] {
        for line in [Line::Foreign, Line::Shared] {
            never_both_blind_of([Arc::clone(&one), Arc::clone(&other)], None, touches, line);
        }
    }
}

/// One of the crowd, whose place is in the room because the cell is a third thread's, and one who is not.
#[test]
fn one_in_a_room_and_one_outside() {
    let [outside, inside, third] = standings_in(2);
    assert!(outside.slot() != inside.slot() && inside.slot() == third.slot());
    // Bytes that nobody else touches.
    let there = Cell::new(third.tick(), 0b1000_0000, access_of(&third));
    let there = Some((third.slot(), there));
    for touches in [[WRITE, WRITE], [WRITE, READ_WITHIN], [READ_WITHIN, WRITE]] {
        let both = [Arc::clone(&outside), Arc::clone(&inside)];
        never_both_blind_of(both, there, touches, Line::Fresh);
    }
}

/// Of two of the crowd that stamp at once, neither takes what the other has written: who looks later sees both.
#[test]
fn nobody_of_the_crowd_is_overwritten() {
    let [later, one, other] = standings_in(2);
    loom::model(move || {
        let planes = loom::sync::Arc::new(OneLine::default());
        let (theirs, standing) = (loom::sync::Arc::clone(&planes), Arc::clone(&other));
        let thread = loom::thread::spawn(move || touch(&theirs, &standing, READ).len());
        touch(&planes, &one, READ);
        thread.join().expect("no panic");
        let seen = touch(&planes, &later, WRITE);
        for reader in [&one, &other] {
            assert!(seen.iter().any(|suspect| suspect.access == access_of(reader)), "overwritten");
        }
    });
}

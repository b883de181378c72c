//! The fast detector against the oracle, and its shadow in the hands of threads that really run.

use crate::dsl::{Step, events, places, t};
use crate::oracle::Oracle;
use crate::scripts::{Accesses, Places, choices, show, world};
use proptest::prelude::*;
use raddle_analyse::Options;
use raddle_analyse::execution::Execution;
use raddle_analyse::fast::access::{AccessId, LockSetId};
use raddle_analyse::fast::cell::{BLOCK, Cell, GRANULE, LINE};
use raddle_analyse::fast::crowd::MIXED;
use raddle_analyse::fast::journal::{LENGTH, Noted};
use raddle_analyse::fast::protocol::has_agreed;
use raddle_analyse::fast::{
    Description, FastHybrid, Journal, Outcome, Planes, SLOTS, Side, Simply, Standing,
};
use raddle_analyse::order::Orders;
use raddle_analyse::touch::Kind;
use raddle_model::finding::{Certainty, Finding};
use raddle_model::{
    AccessKind, Address, Event, EventKind, LockMode, ModuleId, Place, StackId, ThreadId,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst, fence};
use std::sync::{Arc, Barrier, Mutex};

/// Shadow of a small memory that begins at [`START`].
pub struct SmallPlanes {
    cells: Vec<AtomicU64>,
    older: Vec<AtomicU64>,
    /// By line, its writers and readers, and what its locks are like.
    /// By line, its writers and readers, and what its blocks are like.
    sharers: Vec<[AtomicU32; 2 + BLOCKS]>,
    granules: u64,
    locks: Vec<Vec<AtomicU32>>,
    slots: usize,
    /// By granule and side, a room for every member of the crowd, if it is open.
    rooms: Vec<AtomicU32>,
    alike: Vec<AtomicU32>,
    entries: Vec<AtomicU64>,
    /// Of the first so many granules that are split, cells by byte.
    strips: Vec<[AtomicU64; GRANULE as usize]>,
    split: Mutex<BTreeMap<(usize, usize, u64), u32>>,
}

/// Members of the crowd in tests.
const CROWD: usize = 16;
/// Blocks of a line.
const BLOCKS: usize = (LINE / BLOCK) as usize;

pub const START: u64 = 0x1000;

impl SmallPlanes {
    fn new(bytes: u64, ticks: usize, slots: usize) -> SmallPlanes {
        let granules = bytes.div_ceil(LINE) * LINE / GRANULE;
        let cells = SLOTS as u64 * 2 * granules;
        SmallPlanes {
            cells: (0..cells).map(|_| Default::default()).collect(),
            older: (0..cells).map(|_| Default::default()).collect(),
            sharers: (0..bytes.div_ceil(LINE)).map(|_| Default::default()).collect(),
            granules,
            locks: (0..SLOTS)
                .map(|slot| {
                    let ticks = if slot + 1 == slots { ticks.max(8192) } else { ticks };
                    (0..ticks).map(|_| AtomicU32::new(0)).collect()
                })
                .collect(),
            slots,
            rooms: (0..granules * 2).map(|_| Default::default()).collect(),
            alike: (0..granules * 2).map(|_| Default::default()).collect(),
            entries: (0..granules * 2 * CROWD as u64).map(|_| Default::default()).collect(),
            strips: (0..granules).map(|_| Default::default()).collect(),
            split: Mutex::default(),
        }
    }

    fn number(&self, slot: usize, side: Side, granule: u64) -> usize {
        let plane = (slot * 2 + side as usize) as u64;
        (plane * self.granules + granule - START / GRANULE) as usize
    }

    fn at(&self, slot: usize, side: Side, granule: u64) -> &AtomicU64 {
        &self.cells[self.number(slot, side, granule)]
    }

    fn forget(&self, slot: usize, granule: u64) {
        for side in [Side::Write, Side::Read] {
            self.set_cell(slot, side, granule, Cell::EMPTY);
            self.set_older(slot, side, granule, Cell::EMPTY);
            if slot + 1 == self.slots {
                let room = self.room_number(side, granule);
                self.rooms[room as usize].store(0, SeqCst);
                self.alike[room as usize].store(0, SeqCst);
                (0..CROWD).for_each(|member| self.set_entry(room, member, Cell::EMPTY));
            }
        }
    }

    fn room_number(&self, side: Side, granule: u64) -> u32 {
        ((granule - START / GRANULE) * 2) as u32 + side as u32
    }

    fn of_line(&self, line: u64) -> &[AtomicU32; 2 + BLOCKS] {
        &self.sharers[(line - START / LINE) as usize]
    }

    fn of_block(&self, block: u64) -> &AtomicU32 {
        &self.of_line(block * BLOCK / LINE)[2 + block as usize % BLOCKS]
    }
}

impl Planes for SmallPlanes {
    fn slots(&self) -> usize {
        self.slots
    }
    fn take_cell(&self, slot: usize, side: Side, granule: u64, old: Cell, new: Cell) -> bool {
        self.at(slot, side, granule).compare_exchange(old.0, new.0, SeqCst, SeqCst).is_ok()
    }
    fn room(&self, side: Side, granule: u64) -> Option<u32> {
        let room = self.room_number(side, granule);
        (self.rooms[room as usize].load(SeqCst) != 0).then_some(room)
    }
    fn open_room(&self, side: Side, granule: u64) -> Option<u32> {
        let room = self.room_number(side, granule);
        self.rooms[room as usize].store(1, SeqCst);
        Some(room)
    }
    fn room_alike(&self, side: Side, granule: u64) -> u32 {
        self.alike[self.room_number(side, granule) as usize].load(SeqCst)
    }
    fn begin_room(&self, side: Side, granule: u64, alike: u32) -> u32 {
        let word = &self.alike[self.room_number(side, granule) as usize];
        word.compare_exchange(0, alike, SeqCst, SeqCst).unwrap_or_else(|was| was)
    }
    fn mix_room(&self, side: Side, granule: u64) {
        self.alike[self.room_number(side, granule) as usize].store(MIXED, SeqCst);
    }
    fn block_alike(&self, block: u64) -> u32 {
        self.of_block(block).load(SeqCst)
    }
    fn begin_block(&self, block: u64, alike: u32) -> u32 {
        let word = self.of_block(block);
        word.compare_exchange(0, alike, SeqCst, SeqCst).unwrap_or_else(|was| was)
    }
    fn entry(&self, room: u32, member: usize) -> Cell {
        Cell(self.entries[room as usize * CROWD + member].load(SeqCst))
    }
    fn set_entry(&self, room: u32, member: usize, cell: Cell) {
        self.entries[room as usize * CROWD + member].store(cell.0, SeqCst);
    }
    fn covers(&self, start: u64, end: u64) -> bool {
        START <= start && end <= START + self.granules * GRANULE
    }
    fn use_slot(&self, _: usize) -> bool {
        true
    }
    fn note(&self, _: LockSetId, _: Option<u32>) {}
    fn locks(&self, slot: usize, tick: u32) -> LockSetId {
        LockSetId(self.locks[slot][tick as usize].load(SeqCst))
    }
    fn set_locks(&self, slot: usize, tick: u32, locks: LockSetId) {
        self.locks[slot][tick as usize].store(locks.0, SeqCst);
    }
    fn cell(&self, slot: usize, side: Side, granule: u64) -> Cell {
        Cell(self.at(slot, side, granule).load(SeqCst))
    }
    fn set_cell(&self, slot: usize, side: Side, granule: u64, cell: Cell) {
        self.at(slot, side, granule).store(cell.0, SeqCst);
    }
    fn older(&self, slot: usize, side: Side, granule: u64) -> Option<Cell> {
        Some(Cell(self.older[self.number(slot, side, granule)].load(SeqCst)))
    }
    fn set_older(&self, slot: usize, side: Side, granule: u64, cell: Cell) {
        self.older[self.number(slot, side, granule)].store(cell.0, SeqCst);
    }
    fn open_strip(&self, slot: usize, side: Side, granule: u64) -> Option<AccessId> {
        let mut split = self.split.lock().expect("nobody panics with it");
        let next = split.len();
        let number = *split.entry((slot, side as usize, granule)).or_insert(next as u32);
        AccessId::of_strip(number).filter(|_| (number as usize) < self.strips.len())
    }
    fn strip_cell(&self, strip: AccessId, byte: u32) -> Cell {
        Cell(self.strips[strip.strips_before() as usize][byte as usize].load(SeqCst))
    }
    fn set_strip_cell(&self, strip: AccessId, byte: u32, cell: Cell) {
        self.strips[strip.strips_before() as usize][byte as usize].store(cell.0, SeqCst);
    }
    fn sharers(&self, side: Side, line: u64) -> u32 {
        self.of_line(line)[side as usize].load(SeqCst)
    }
    fn add_sharers(&self, side: Side, line: u64, slots: u32) {
        self.of_line(line)[side as usize].fetch_or(slots, SeqCst);
    }
    fn clear_sharers(&self, line: u64) {
        self.of_line(line).iter().for_each(|word| word.store(0, SeqCst));
    }
    fn fence(&self) {
        fence(SeqCst);
    }
    fn clear(&self, start: u64, end: u64) {
        for line in start / LINE..end / LINE {
            for slot in 0..SLOTS {
                for granule in line * LINE / GRANULE..(line + 1) * LINE / GRANULE {
                    self.forget(slot, granule);
                }
            }
            self.clear_sharers(line);
        }
    }
    fn clear_slot(&self, slot: usize) {
        for granule in 0..self.granules {
            self.forget(slot, START / GRANULE + granule);
        }
        self.locks[slot].iter().for_each(|locks| locks.store(0, SeqCst));
    }
}

/// For so many bytes and so many ticks of each thread.
pub fn detector_with(
    options: Options,
    observed_only: bool,
    memory: (u64, usize),
) -> FastHybrid<SmallPlanes> {
    detector_in(SLOTS, options, observed_only, memory)
}

/// The same with so many slots: of the threads, all but one fewer share the last.
pub fn detector_in(
    slots: usize,
    options: Options,
    observed_only: bool,
    (bytes, ticks): (u64, usize),
) -> FastHybrid<SmallPlanes> {
    // What threads that ended did is not to be forgotten.
    let chains = (slots + CROWD) as u32 - 1;
    let orders = Orders::with_chains((chains, chains), options.conditions, true);
    let execution = Execution::new(orders, true);
    let execution = match options.handovers && !observed_only {
        true => execution.with_handovers(options.values),
        false => execution,
    };
    FastHybrid::new(SmallPlanes::new(bytes, ticks, slots), execution, observed_only)
}

/// Where each thread stands, asked for once: what changes it must change this. And what it touched.
type Standings = BTreeMap<ThreadId, (Option<Arc<Standing>>, Journal)>;

/// As the probe does it: plain accesses by the fast path, what it refuses and all else as events.
fn feed(detector: &FastHybrid<SmallPlanes>, standings: &mut Standings, event: &Event) {
    let (standing, journal) = standings.entry(event.thread).or_default();
    if let EventKind::Access { kind, address, size } = &event.kind
        && !kind.is_atomic()
    {
        let side = if *kind == AccessKind::Read { Side::Read } else { Side::Write };
        let standing = standing.get_or_insert_with(|| detector.standing(event.thread));
        let bytes = (address.0, address.0 + u64::from(*size));
        journal.note(side, bytes);
        if !detector.planes().covers(bytes.0, bytes.1) {
            return;
        }
        if standing.is_undecided() {
            detector.touches(event.thread, bytes);
        }
        if access(detector, (standing, journal), event, *kind, *address, *size) == Outcome::Done {
            return;
        }
    }
    if matches!(event.kind, EventKind::Allocate { .. } | EventKind::Free { .. }) {
        let standing = standing.get_or_insert_with(|| detector.standing(event.thread));
        if comes_or_goes_simply(detector, standing, event) {
            return;
        }
    }
    let may_be_quick = matches!(
        event.kind,
        EventKind::LockAcquired { .. }
            | EventKind::LockReleased { .. }
            | EventKind::Release { .. }
            | EventKind::Acquire { .. }
    );
    if may_be_quick {
        let standing = standing.get_or_insert_with(|| detector.standing(event.thread));
        if detector.quickly(standing, event, journal) {
            return;
        }
    }
    detector.event(event, journal);
}

/// A block of the heap, if it can be told without an event.
pub fn comes_or_goes_simply(
    detector: &FastHybrid<SmallPlanes>,
    standing: &Standing,
    event: &Event,
) -> bool {
    let (EventKind::Allocate { address, size } | EventKind::Free { address, size }) = event.kind
    else {
        return false;
    };
    let block = (address.0, address.0 + size);
    if matches!(event.kind, EventKind::Allocate { .. }) {
        return detector.allocate_simply(standing, block);
    }
    detector.free_simply((event.thread, standing), block, || {
        let Event { place, stack, .. } = *event;
        detector.describe(Description { kind: Kind::Free, size, place, stack })
    })
}

/// Some accesses at once, and some in two halves, the first half of some of these simply if that may be, as the probe does it. Those
/// of odd addresses are the newest of the journal.
pub fn access(
    detector: &FastHybrid<SmallPlanes>,
    (standing, journal): (&Standing, &mut Journal),
    event: &Event,
    kind: AccessKind,
    address: Address,
    size: u32,
) -> Outcome {
    let side = if kind == AccessKind::Read { Side::Read } else { Side::Write };
    let bytes = (address.0, address.0 + u64::from(size));
    let keeps = |_, _| true;
    let mut described = false;
    let mut describe = || {
        described = true;
        detector.describe(Description {
            kind: Kind::Access(kind),
            size: u64::from(size),
            place: event.place,
            stack: event.stack,
        })
    };
    let in_one_line = bytes.0 / LINE == (bytes.1 - 1) / LINE;
    if !in_one_line || address.0.is_multiple_of(2) {
        return detector.access(event.thread, standing, side, bytes, keeps, describe);
    }
    let simply = match address.0 % 4 {
        3 => detector.stamp_simply(standing, side, bytes, false, &mut describe),
        _ => Simply::Not,
    };
    let mut outcome = match simply {
        Simply::Not => detector.stamp_in_line(standing, side, bytes, keeps, &mut describe),
        Simply::Known | Simply::Stamped => Outcome::Done,
    };
    // Of what was known nothing is looked at again.
    if described && outcome == Outcome::Done {
        detector.planes().fence();
        let (who, number) = ((event.thread, standing), journal.count - 1);
        let noted = journal.ring[number as usize % LENGTH];
        if detector.look_back(who, standing.tick(), noted, |_| outcome = Outcome::Synchronises) {
            journal.meet(number);
        }
    }
    outcome
}

fn found(observed_only: bool, events: &[Event]) -> Vec<Finding> {
    found_in(SLOTS, observed_only, events)
}

/// With so many slots.
fn found_in(slots: usize, observed_only: bool, events: &[Event]) -> Vec<Finding> {
    let options = Options { handovers: false, ..Options::default() };
    found_by(detector_in(slots, options, observed_only, (0x1000, 1024)), events)
}

pub fn found_with(options: Options, observed_only: bool, events: &[Event]) -> Vec<Finding> {
    found_by(detector_with(options, observed_only, (0x1000, 1024)), events)
}

fn found_by(detector: FastHybrid<SmallPlanes>, events: &[Event]) -> Vec<Finding> {
    let mut standings = Standings::new();
    events.iter().for_each(|event| feed(&detector, &mut standings, event));
    detector.end();
    detector.findings(0)
}

/// Who comes to its next access without an event of its own must know.
#[test]
fn detection_that_another_switches_off_is_off_at_once() {
    let (one, other) = (ThreadId(1), ThreadId(2));
    let event = |at: u64, thread, kind| {
        let place = Place { module: ModuleId::NONE, offset: at };
        Event { order: at, thread, place, stack: StackId::NONE, kind }
    };
    let write = || EventKind::Access { kind: AccessKind::Write, address: Address(START), size: 4 };
    let elsewhere =
        EventKind::Access { kind: AccessKind::Write, address: Address(START + 8 * LINE), size: 4 };
    let race = |switched: bool| {
        let mut events = vec![
            event(0, one, EventKind::ThreadStart { creator: None, os_id: 1 }),
            event(1, one, EventKind::ThreadCreate { child: other }),
            event(2, other, EventKind::ThreadStart { creator: Some(one), os_id: 2 }),
            event(3, one, elsewhere.clone()),
            event(4, other, write()),
        ];
        if switched {
            events.push(event(5, other, EventKind::DetectionSwitched { on: false }));
        }
        events.push(event(6, one, write()));
        found(false, &events).len()
    };
    assert_eq!((race(false), race(true)), (1, 0));
}

/// As the probe's assembly does it: stamped now, looked at later, and by then another part of the granule is stamped, too.
#[test]
fn what_was_stamped_is_looked_at_later() {
    let (one, other) = (ThreadId(1), ThreadId(2));
    let event = |at: u64, thread, kind| {
        let place = Place { module: ModuleId::NONE, offset: at };
        Event { order: at, thread, place, stack: StackId::NONE, kind }
    };
    let write = |at| EventKind::Access { kind: AccessKind::Write, address: Address(at), size: 4 };
    let detector =
        detector_with(Options { handovers: false, ..Options::default() }, false, (0x1000, 64));
    let mut standings = Standings::new();
    for event in [
        event(0, one, EventKind::ThreadStart { creator: None, os_id: 1 }),
        event(1, one, EventKind::ThreadCreate { child: other }),
        event(2, other, EventKind::ThreadStart { creator: Some(one), os_id: 2 }),
        event(3, one, write(START)),
    ] {
        feed(&detector, &mut standings, &event);
    }
    let standing = detector.standing(other);
    let granule = START / GRANULE;
    let stamp = |bytes, at| {
        let place = Place { module: ModuleId::NONE, offset: at };
        let kind = Kind::Access(AccessKind::Write);
        let access = detector.describe(Description { kind, size: 4, place, stack: StackId::NONE });
        let cell = Cell::new(standing.tick(), bytes, access);
        detector.planes().set_cell(standing.slot(), Side::Write, granule, cell);
        detector.planes().add_sharers(Side::Write, START / LINE, 1 << standing.slot());
    };
    stamp(0x0f, 4);
    assert_eq!(detector.found(), 0);
    let look = |tick, bytes| {
        let noted = Noted { at: granule * GRANULE, bytes };
        detector.look_back((other, &standing), tick, noted, |_| panic!("nothing synchronises"));
        detector.found()
    };
    assert_eq!(look(standing.tick(), 0xf0), 0, "other bytes");
    assert_eq!(look(standing.tick() + 1, 0x0f), 0, "no longer there");
    assert_eq!(look(standing.tick(), 0x0f), 1);
    let found = detector.findings(0);
    assert_eq!(found[0].accesses.iter().map(|a| a.place.offset).collect::<Vec<_>>(), [3, 4]);
}

/// What makes the others not worth a look: all have held one lock, whoever they are, as long as the memory lasts.
#[test]
fn a_block_is_agreed_upon_until_somebody_holds_another_lock() {
    let agreed = |steps: &[Step]| {
        let detector = detector_with(Options::default(), false, (0x1000, 64));
        let mut standings = Standings::new();
        let begin = [t(1).begins(), t(1).forks(2), t(1).forks(3)];
        for event in events(&[&begin, steps].concat()) {
            feed(&detector, &mut standings, &event);
        }
        let standing = detector.standing(ThreadId(3));
        has_agreed(detector.planes(), &standing, (START, START + BLOCK))
    };
    let section_at = |n, lock, at| vec![t(n).locks(lock), t(n).writes(at), t(n).unlocks(lock)];
    let section = |n, lock| section_at(n, lock, START);
    let (lock, other, asks) = (0x9000, 0x9100, t(3).locks(0x9000));
    let with = |more: Vec<Step>| [section(1, lock), section(2, lock), more].concat();
    assert!(agreed(&with(vec![asks.clone()])));
    assert!(!agreed(&with(vec![])), "who holds nothing");
    assert!(!agreed(&with(vec![t(3).locks(other)])), "who holds another one");
    let beside = section_at(2, other, START + BLOCK);
    let beside = [beside, vec![asks.clone()]].concat();
    assert!(agreed(&with(beside)), "what lies beside it is guarded by another lock");
    for mixing in [section(1, other), vec![t(2).reads(START)]] {
        let mixed = with([mixing, vec![asks.clone()]].concat());
        assert!(!agreed(&mixed));
        let anew = [t(1).allocates(START, LINE)].into_iter().chain(section(2, lock));
        let renewed: Vec<Step> =
            mixed[..mixed.len() - 1].iter().cloned().chain(anew).chain([asks.clone()]).collect();
        assert!(agreed(&renewed), "it is other memory");
    }
}

#[test]
fn a_thread_that_was_robbed_of_its_lock_is_unprotected_at_once() {
    let (robbed, robber, lock) = (ThreadId(1), ThreadId(2), Address(0x9000));
    let event = |at: u64, thread, kind| {
        let place = Place { module: ModuleId::NONE, offset: at };
        Event { order: at, thread, place, stack: StackId::NONE, kind }
    };
    let write = || EventKind::Access { kind: AccessKind::Write, address: Address(START), size: 4 };
    let takes = || EventKind::LockAcquired { lock, mode: LockMode::Exclusive };
    let gives = || EventKind::LockReleased { lock, mode: Some(LockMode::Exclusive) };
    let events = [
        event(0, robbed, EventKind::ThreadStart { creator: None, os_id: 1 }),
        event(1, robbed, EventKind::ThreadCreate { child: robber }),
        event(2, robber, EventKind::ThreadStart { creator: Some(robbed), os_id: 2 }),
        event(3, robbed, takes()),
        event(4, robber, gives()),
        event(5, robber, takes()),
        event(6, robber, write()),
        event(7, robbed, write()),
    ];
    assert_eq!(found(false, &events).len(), 1);
}

/// Threads that really run touch a granule at once, and share a slot or not: of every two, one sees the other.
#[test]
fn of_every_two_one_sees_the_other() {
    const WRITERS: std::ops::Range<u32> = 2..8;
    for round in 0..300 {
        let detector = detector_in(1 + round % 4, Options::default(), false, (LINE, 1024));
        let forks: Vec<_> = WRITERS.map(|n| t(1).forks(n)).collect();
        for event in events(&forks) {
            detector.event(&event, &Journal::default());
        }
        let together = Barrier::new(WRITERS.len());
        std::thread::scope(|scope| {
            for n in WRITERS {
                let (detector, together) = (&detector, &together);
                scope.spawn(move || {
                    let standing = detector.standing(ThreadId(n));
                    let kind = if n % 3 == 0 { AccessKind::Read } else { AccessKind::Write };
                    let (address, size) = (Address(START), 4);
                    let place = Place { module: ModuleId::NONE, offset: n.into() };
                    let access = EventKind::Access { kind, address, size };
                    let (order, stack) = (0, StackId::NONE);
                    let event = Event { order, thread: ThreadId(n), place, stack, kind: access };
                    together.wait();
                    let who = (&*standing, &mut Journal::default());
                    crate::fast::access(detector, who, &event, kind, address, size);
                });
            }
        });
        let found = detector.findings(0);
        for (a, b) in WRITERS.flat_map(|a| (a + 1..WRITERS.end).map(move |b| (a, b))) {
            let both_read = a % 3 == 0 && b % 3 == 0;
            let seen = found.iter().any(|f| {
                let threads = [f.accesses[0].thread.0, f.accesses[1].thread.0];
                threads == [a, b] || threads == [b, a]
            });
            assert!(seen != both_read, "{a} and {b} in round {round}: {seen}");
        }
    }
}

fn feed_all(detector: &FastHybrid<SmallPlanes>, standings: &mut Standings, steps: &[Step]) {
    events(steps).iter().for_each(|event| feed(detector, standings, event));
}

/// A section reads first what was handed to it, uses it, and does very much else.
#[test]
fn what_is_handed_to_a_long_section_is_asked_for_before_it_is_forgotten() {
    const FLAG: u64 = START + LINE;
    let found = |asks: bool| {
        let detector = detector_with(Options::default(), false, (START, 1024));
        let mut standings = Standings::new();
        let gives = [t(2).locks(0x9000), t(2).writes(FLAG), t(2).unlocks(0x9000)];
        let takes = [t(3).locks(0x9000), t(3).reads(FLAG), t(3).reads(START).at(2)];
        feed_all(
            &detector,
            &mut standings,
            &[t(1).forks(2), t(1).forks(3), t(2).writes(START).at(1)],
        );
        feed_all(&detector, &mut standings, &[gives, takes].concat());
        for n in 0..2 * LENGTH as u64 {
            feed_all(&detector, &mut standings, &[t(3).writes(START + 2 * LINE + n % 32 * 8)]);
            if asks && n % 100 == 99 {
                detector.ask(ThreadId(3), &standings[&ThreadId(3)].1);
            }
        }
        feed_all(&detector, &mut standings, &[t(3).unlocks(0x9000)]);
        detector.end();
        detector.findings(0).len()
    };
    assert_eq!((found(true), found(false)), (0, 1));
}

/// Threads that come and go touch other memory each time.
#[test]
fn what_can_race_no_more_is_forgotten() {
    let cells = |detector: &FastHybrid<SmallPlanes>| {
        let is_there = |cell: &&AtomicU64| cell.load(SeqCst) != 0;
        detector.planes().cells.iter().filter(is_there).count()
    };
    for (slots, soon, most) in [(SLOTS, false, 70), (SLOTS, true, 2), (2, true, 2)] {
        let mut detector = detector_in(slots, Options::default(), false, (0x4000, 4096));
        if soon {
            detector = detector.forgetting_soon();
        }
        let mut standings = Standings::new();
        for n in 0..400 {
            let (child, at) = (n + 2, START + 16 * u64::from(n));
            let steps =
                [t(1).forks(child), t(child).writes(at), t(child).exits(), t(1).joins(child)];
            feed_all(&detector, &mut standings, &steps);
        }
        let left = cells(&detector);
        assert!((1..=most).contains(&left), "{left} of {slots}");
    }
}

#[test]
fn what_may_still_race_is_not_forgotten() {
    for slots in [SLOTS, 2, 1] {
        let detector = detector_in(slots, Options::default(), false, (0x4000, 4096));
        let detector = detector.forgetting_soon();
        let mut standings = Standings::new();
        let steps = [t(1).forks(2), t(1).forks(3), t(2).writes(START), t(2).exits(), t(1).joins(2)];
        feed_all(&detector, &mut standings, &steps);
        for child in 4..30 {
            let at = START + 16 * u64::from(child);
            let steps =
                [t(1).forks(child), t(child).writes(at), t(child).exits(), t(1).joins(child)];
            feed_all(&detector, &mut standings, &steps);
        }
        feed_all(&detector, &mut standings, &[t(3).writes(START)]);
        assert_eq!(detector.found(), 1, "{slots} slots");
    }
}

/// Of what is kept beside the cells the write comes last, because its cell was lost last.
#[test]
fn a_write_does_not_stand_for_a_read_after_it() {
    // The first of each side goes where a slot's older accesses are.
    let others = [t(2).writes(START), t(2).reads(START), t(2).locks(0x9000)];
    let between = [t(2).writes(START + 1).at(1), t(2).forks(3), t(2).reads(START + 1).at(2)];
    let lost = [t(2).locks(0x9100), t(2).reads(START + 2), t(2).writes(START + 2)];
    let script = [&[t(1).forks(2)][..], &others, &between, &lost, &[t(3).writes(START + 1).at(3)]];
    let script: Vec<Step> = script.concat().into_iter().map(|step| step.sized(1)).collect();
    for slots in [SLOTS, 2, 1] {
        let found = found_in(slots, false, &events(&script));
        assert_eq!(places(&found), [(2, 3, Certainty::Observed)], "{slots} slots");
    }
}

fn raise(best: &mut BTreeMap<u64, Certainty>, byte: u64, certainty: Certainty) {
    let known = best.entry(byte).or_insert(certainty);
    *known = certainty.max(*known);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1500),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Every pair it reports is a race of that certainty, and every byte that has a race is found to
    /// have one, as surely.
    #[test]
    fn the_fast_detector_agrees_with_brute_force(choices in choices()) {
        agrees(&choices, SLOTS)?;
    }

    /// The same where some, most or all threads share a slot.
    #[test]
    fn in_a_crowd_it_agrees_as_well(choices in choices(), slots in 1usize..5) {
        agrees(&choices, slots)?;
    }

    /// The same of one granule whose bytes are touched one by one, or two by two, in ever other segments: it is split, but where
    /// threads share a slot.
    #[test]
    fn of_a_granule_touched_byte_by_byte_it_says_the_same(
        choices in choices(),
        slots in prop_oneof![Just(SLOTS), 2usize..5],
    ) {
        let few = |detail: u8| ((detail / 4 % 7) << 2) | (detail & 1);
        let accesses = |deed: u8| deed % 44 < 14;
        let within = |(who, deed, detail, place): (u8, u8, u8, u8)| match accesses(deed) {
            true => (who, 3 + deed % 11, few(detail), place),
            false => (who, deed, detail, place),
        };
        // Not so many that every byte has a race that is found whatever is forgotten.
        let choices: Vec<_> = choices.into_iter().map(within).take(50).collect();
        agrees(&choices, slots)?;
    }

    /// `hb` is the observed part. Only it does not count how often a race that it has observed was predicted, too.
    #[test]
    fn observed_only_leaves_out_the_predicted(choices in choices(), crowd in any::<bool>()) {
        let events = world(&choices, Accesses::All, Places::Distinct);
        let slots = if crowd { 2 } else { SLOTS };
        let observed: Vec<Finding> = found_in(slots, false, &events)
            .into_iter()
            .filter(|f| f.certainty == Certainty::Observed)
            .collect();
        let alone = found_in(slots, true, &events);
        let counts = |found: &[Finding]| -> Vec<u64> { found.iter().map(|f| f.count).collect() };
        let seen_as_often = counts(&alone).into_iter().zip(counts(&observed)).all(|(a, b)| a <= b);
        prop_assert!(seen_as_often, "{:?} {:?}", alone, observed);
        let but_counts = |found: Vec<Finding>| -> Vec<Finding> {
            found.into_iter().map(|f| Finding { count: 1, ..f }).collect()
        };
        prop_assert_eq!(but_counts(alone), but_counts(observed));
    }
}

fn agrees(choices: &[(u8, u8, u8, u8)], slots: usize) -> Result<(), TestCaseError> {
    let events = world(choices, Accesses::All, Places::Distinct);
    let oracle = Oracle::new(&events);
    let races = oracle.races();
    for soon in [false, true] {
        agrees_with(&oracle, &races, &events, (slots, soon))?;
    }
    Ok(())
}

/// The same, of a detector that forgets what is over sooner or later.
fn agrees_with(
    oracle: &Oracle,
    races: &[(usize, usize, Certainty)],
    events: &[Event],
    (slots, soon): (usize, bool),
) -> Result<(), TestCaseError> {
    let options = Options { handovers: false, ..Options::default() };
    let mut detector = detector_in(slots, options, false, (0x1000, 1024));
    if soon {
        detector = detector.forgetting_soon();
    }
    let mut got = BTreeMap::new();
    for f in found_by(detector, events) {
        let pair = (f.accesses[0].place.offset as usize, f.accesses[1].place.offset as usize);
        prop_assert!(
            races.contains(&(pair.0, pair.1, f.certainty)),
            "{:?} {:?}\n{}",
            pair,
            f.certainty,
            show(events)
        );
        prop_assert_eq!(f.accesses[0].thread, events[pair.0].thread);
        prop_assert_eq!(f.accesses[1].thread, events[pair.1].thread);
        let bytes = oracle.racing_bytes(pair.0, pair.1);
        prop_assert!(bytes.contains(&f.address.0));
        bytes.into_iter().for_each(|byte| raise(&mut got, byte, f.certainty));
    }
    let mut expected = BTreeMap::new();
    for (a, b, certainty) in races {
        for byte in oracle.racing_bytes(*a, *b) {
            raise(&mut expected, byte, *certainty);
        }
    }
    prop_assert_eq!(got, expected, "\n{}", show(events));
    Ok(())
}

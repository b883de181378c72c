//! From an instruction that touches memory to the fast detector.
//!
//! The dear part of remembering an access is its call stack. It is known by the number of the frames around
//! it ([`crate::stacks`]), so an access that was described before is found by its instruction and one
//! number.

use super::{Analysis, Engine};
use crate::memory::shadow::Shadow;
use crate::middle::{Merge, Middle, is_in_one_line};
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_analyse::fast::access::AccessId;
use raddle_analyse::fast::cell::{GRANULE, LINE, granules};
use raddle_analyse::fast::journal::LENGTH;
use raddle_analyse::fast::{Description, FastHybrid, Keeping, Outcome, Planes, Side, Standing};
use raddle_analyse::touch::Kind;
use raddle_model::{AccessKind, EventKind};

/// Rows of the cache: more than the instructions of a busy loop nest. Most threads of a program with many do not come so
/// far: it begins with fewer.
const ROWS: usize = 1 << 12;
const FIRST_ROWS: usize = 1 << 7;

/// A thread's descriptions of recent accesses.
#[derive(Debug, Default)]
pub struct AccessCache {
    rows: Vec<Row>,
    /// How many were written since it grew.
    written: usize,
    kept: KeptFilter,
}

impl AccessCache {
    /// Where a row belongs.
    fn place(&mut self, hash: u64) -> usize {
        if self.rows.is_empty() {
            self.rows.resize(FIRST_ROWS, Row::default());
        }
        (hash >> 40) as usize % self.rows.len()
    }

    /// What was written before it grows is not found again.
    fn write(&mut self, place: usize, row: Row) {
        self.rows[place] = row;
        self.written += 1;
        if self.written > self.rows.len() / 2 && self.rows.len() < ROWS {
            self.rows.resize(ROWS.min(self.rows.len() * 8), Row::default());
            self.written = 0;
        }
    }
}

/// How often accesses of a granule were kept beside its cell. What is read under ever other locks would
/// be kept each time, for ever; the first few lock sets are enough.
#[derive(Debug, Default)]
struct KeptFilter {
    rows: Vec<(u64, u8)>,
}

/// So many of each thread.
const KEPT: u8 = 16;

impl KeptFilter {
    fn may_keep(&mut self, granule: u64) -> bool {
        if self.rows.is_empty() {
            self.rows.resize(ROWS, (0, 0));
        }
        let row = &mut self.rows[granule as usize % ROWS];
        if row.0 != granule {
            *row = (granule, 0);
        }
        row.1 = row.1.saturating_add(1);
        row.1 <= KEPT
    }
}

/// An access described before.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    pc: u64,
    kind: Option<Kind>,
    length: u64,
    /// The frames around it.
    node: u32,
    access: AccessId,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy)]
pub struct Touching {
    pub kind: AccessKind,
    pub address: u64,
    pub length: u64,
}

impl Touching {
    /// What an event does to memory, if it is a plain access.
    pub fn of(kind: &EventKind) -> Option<Touching> {
        let (kind, address, length) = match *kind {
            EventKind::Access { kind, address, size } => (kind, address.0, u64::from(size)),
            EventKind::Range { kind, address, length } => (kind, address.0, length),
            _ => return None,
        };
        (!kind.is_atomic()).then_some(Touching { kind, address, length })
    }
}

impl Analysis {
    /// A plain access, checked in shadow memory. Anything else is left to [`ThreadState::emit`].
    /// Returns false if it is.
    pub fn access(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        touching: Touching,
    ) -> bool {
        let Engine::Fast(fast) = &self.work().engine else { return false };
        // Code that was built before checks by itself what it has stamped: that goes on until it is gone.
        if thread.site.is_none() && probe.instrumentation.is_solo() {
            return true;
        }
        let side = match touching.kind {
            AccessKind::Read => Side::Read,
            AccessKind::Write => Side::Write,
            _ => return false,
        };
        let (start, end) = (touching.address, touching.address.saturating_add(touching.length));
        if !fast.planes().covers(start, end) {
            return true;
        }
        // Of an instruction's access it is better stamped: inserted code then knows it.
        let by_function = thread.site.is_none();
        if by_function && side == Side::Read && fast.planes().is_constant((start, end)) {
            return true;
        }
        let stamped = thread.middle.as_mut().is_some_and(|middle| middle.take_look());
        if stamped && thread.site.is_some() {
            self.look_back(thread);
            return true;
        }
        let undecided = thread.standing.as_ref().is_some_and(|standing| standing.is_undecided());
        let is_full = thread.middle.as_ref().is_some_and(|middle| middle.is_full());
        let in_one_line = is_in_one_line(start, end);
        if undecided || is_full || !in_one_line {
            self.look_back(thread);
        }
        let Some(standing) = thread.standing.take() else { return true };
        thread.find_stack(spot.sp);
        let stack = thread.stack_region;
        let own_stack = (stack.0..stack.1).contains(&start);
        let was_undecided = standing.is_undecided();
        let later = in_one_line
            && !was_undecided
            && thread.middle.as_ref().is_some_and(|middle| middle.looks_late());
        if let Some(middle) = thread.middle.as_mut().filter(|_| !later) {
            middle.note(side, (start, end));
        }
        if was_undecided && !own_stack {
            fast.touches(thread.id, (start, end));
        }
        let mut kept = std::mem::take(&mut thread.accesses.kept);
        let keeps =
            |granule, keeping| !own_stack && (keeping == Keeping::Older || kept.may_keep(granule));
        if !standing.is_in_crowd() {
            fast.planes().populate(standing.slot(), side, (start, end));
        }
        let were = Merging::before(fast, &standing, side, (start, end));
        let (mut described, thread_id) = (None, thread.id);
        let describe = || *described.insert(describe(fast, probe, thread, spot, touching));
        let outcome = match later {
            true => fast.stamp_in_line(&standing, side, (start, end), keeps, describe),
            false => fast.access(thread_id, &standing, side, (start, end), keeps, describe),
        };
        if let Some(middle) = thread.middle.as_mut().filter(|_| later) {
            match (described, outcome) {
                (Some(_), Outcome::Done) => middle.note_for_later(side, (start, end)),
                _ => middle.note(side, (start, end)),
            }
        }
        if let (Some(new), Some(middle)) = (described, &mut thread.middle) {
            were.into_iter().for_each(|was| was.after(fast, new, middle));
        }
        thread.accesses.kept = kept;
        let decided = was_undecided && !standing.is_undecided();
        thread.standing = Some(standing);
        if decided {
            self.load_standing(thread);
        }
        self.report(thread);
        outcome == Outcome::Done
    }

    /// Looks at the others for what the middle path has stamped without doing so yet.
    pub fn look_back(&self, thread: &mut ThreadState) {
        let Engine::Fast(fast) = &self.work().engine else { return };
        let (Some(standing), Some(middle)) = (&thread.standing, &mut thread.middle) else { return };
        let Some(behind) = middle.behind() else { return };
        fast.planes().fence();
        let mut events = Vec::new();
        let who = (thread.id, &**standing);
        let tick = middle.tick();
        for number in behind..middle.journal.count {
            let noted = middle.journal.ring[number as usize % LENGTH];
            if fast.look_back(who, tick, noted, |event| events.push(event)) {
                middle.journal.meet(number);
            }
        }
        middle.set_looked();
        for event in &events {
            fast.event(event, &middle.journal);
        }
        let asks = middle.take_ask();
        if asks {
            fast.ask(thread.id, &middle.journal);
        }
        if asks || !events.is_empty() {
            self.load_standing(thread);
        }
        self.report(thread);
    }
}

/// An access to some bytes of a granule of which its segment has touched others: what stands for both is
/// remembered, so that the next one like it need not come here.
struct Merging {
    place: (usize, Side, u64),
    old: AccessId,
    bytes: u32,
}

impl Merging {
    /// Those of the granules of an access.
    fn before(
        fast: &FastHybrid<Shadow>,
        standing: &Standing,
        side: Side,
        (start, end): (u64, u64),
    ) -> Vec<Merging> {
        let of = |(granule, bytes): (u64, u32)| {
            let cell = fast.planes().cell(standing.slot(), side, granule);
            let left = cell.bytes() & !bytes;
            let one_cell = !cell.access().is_strip();
            (cell.tick() == standing.tick() && left != 0 && one_cell).then(|| Merging {
                place: (standing.slot(), side, granule),
                old: cell.access(),
                bytes: left << GRANULE | bytes,
            })
        };
        // The path itself serves no longer ones.
        granules(start, end.min(start + LINE)).filter_map(of).collect()
    }

    fn after(self, fast: &FastHybrid<Shadow>, new: AccessId, middle: &mut Middle) {
        let Merging { place: (slot, side, granule), old, bytes } = self;
        let merged = fast.planes().cell(slot, side, granule).access();
        if merged.is_strip() {
            return;
        }
        middle.remember_merge(Merge { old, new, bytes, merged });
    }
}

pub(super) fn describe(
    fast: &FastHybrid<Shadow>,
    probe: &Probe,
    thread: &mut ThreadState,
    spot: Spot,
    touching: Touching,
) -> AccessId {
    let node = probe.stacks.frames(probe, thread, spot);
    let what = (Kind::Access(touching.kind), touching.length);
    let access = describe_as(fast, probe, thread, (spot, node), what);
    if let Some(middle) = &mut thread.middle {
        middle.set_stack(thread.stack_region);
        if let Some(site) = thread.site {
            middle.remember(site, node, access);
        }
    }
    access
}

/// What stands for something that is done to so many bytes, with these frames around it.
pub(super) fn describe_as(
    fast: &FastHybrid<Shadow>,
    probe: &Probe,
    thread: &mut ThreadState,
    (spot, node): (Spot, u32),
    (kind, size): (Kind, u64),
) -> AccessId {
    let number = match kind {
        Kind::Access(kind) => kind as u64,
        Kind::Free => u64::from(u8::MAX),
    };
    // The lengths, too: a function that is called for strings of this length and that is met with both by turns.
    let mixed = spot.pc ^ u64::from(node) << 32 ^ number << 30;
    let hash = (mixed ^ size << 20).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let place = thread.accesses.place(hash);
    let row = thread.accesses.rows[place];
    if (row.pc, row.node, row.kind, row.length) == (spot.pc, node, Some(kind), size) {
        return row.access;
    }
    let access = fast.describe(Description {
        kind,
        size,
        place: spot.place,
        stack: probe.stacks.leaf(thread, spot, node),
    });
    let row = Row { pc: spot.pc, kind: Some(kind), length: size, node, access };
    thread.accesses.write(place, row);
    access
}

//! The middle path: what happens, as a rule, when inserted code has found news.
//!
//! Most accesses that are new to their segment need no judgement: the stack is one seen before, what the
//! own cell held is stood for by the new access, and whoever else touched the line did so before, or
//! holds the same lock. This path, in assembly because it must not touch a vector register or a stack,
//! does for them what `FastHybrid::access` does: stamp, fence, look. Fence and look come later, for several
//! accesses at once: [`MOST`] says how many. Anything it is not sure of goes to Rust: before the stamp as an
//! ordinary access, after it to have the others looked at again.
//!
//! It serves accesses of up to 64 bytes. Called with the flags ours, the address and
//! the site in their slots; keeps every register. [`path`] is the assembly.

mod path;

use crate::memory::Reservation;
use crate::memory::rooms;
use crate::memory::shadow::{ADDRESS_BITS, CHUNK, Shadow};
use raddle_analyse::fast::access::{AccessId, UNLIKE};
use raddle_analyse::fast::cell::{ACCESS_AT, LAST_TICK, LINE, TICK_AT};
use raddle_analyse::fast::crowd::MEMBERS;
use raddle_analyse::fast::journal::LENGTH;
use raddle_analyse::fast::protocol::{EVERY_SLOT, MIXED_LOCKS};
use raddle_analyse::fast::{Cell, Journal, Planes, SLOTS, Side, Standing};

pub use path::MiddlePath;
use std::sync::atomic::{AtomicU32, Ordering};

/// Lines whose accesses are noted before the others are looked at for all of them. Noting and looking late, with what else
/// was made anew with it, took a tenth off programs that stream through memory (radix 9 %, compress 12 %); what
/// fences alone cost was not measured. With 64 or 256 notes to a fence nothing more is won.
const MOST: u64 = 16;
/// So often the path looks at the others by itself.
const LOOKS: u32 = 1024;
/// So many accesses of a critical section are noted before it is asked what was handed to it. Some more come until then.
const ASK: u64 = LENGTH as u64 - 4 * MOST;
/// Lines of which the newest note is remembered, on each side, so that accesses to one line make one note.
const OPEN: usize = 32;
/// Chunks that are remembered on each side: those of 256 MiB.
const CHUNKS: usize = 1 << 12;
/// A word of theirs has the chunk's number, which has so many bits, and five more, below its age.
const CHUNKS_AGE_AT: u32 = ADDRESS_BITS - CHUNK.trailing_zeros() + 5;
/// Slots that [`Middle`] has room for.
const ROOM: usize = 32;
/// Accesses that are remembered for a thread.
const ROWS: usize = 1 << 13;
/// Rules for finding frames, and steps from stack to stack, that are remembered for a thread.
const RULES: usize = 1 << 12;
const STEPS: usize = 1 << 12;
/// Frames that the path finds at once; more are left to Rust.
const FOUND: usize = 16;
const SPREAD_SITE: u32 = 0x9E37_79B1;
const SPREAD: u32 = 0x85EB_CA6B;
/// Merged accesses that are remembered for a thread.
const MERGES: usize = 1 << 12;
/// Above so many bits of its hash a row is found in its table: as many are left as the largest has bytes.
const HASH_SHIFT: u32 = u32::BITS - (ROWS * ROW_SIZE).trailing_zeros();
/// A cell without its access, as high as it goes: cells are compared by their ticks so, and the tick itself
/// is then behind this shift.
const ACCESS_SHIFT: u32 = u64::BITS - ACCESS_AT;
const TICK_SHIFT: u32 = ACCESS_SHIFT + TICK_AT;

/// What the path knows of its thread.
#[derive(Debug)]
#[repr(C)]
pub struct Middle {
    segment: u64,
    cells: [u64; 2],
    /// From the own cells to those of older ones.
    older_cells: [u64; 2],
    /// Own cells up to this one need not be kept, as the assembly compares it.
    settled: u64,
    sharers: u64,
    /// By block, what the locks are like under which all was done there.
    blocks_alike: u64,
    /// A word for each chunk of memory: who has become a sharer in it.
    touched: u64,
    rows: Table,
    rules: Table,
    steps: Table,
    merges: Table,
    own: u32,
    /// By side, what is added to a line's sharers, writers and above them readers, when the thread becomes one.
    joins: [u64; 2],
    /// Whose planes are looked at: all but the own. A member of the crowd looks at those of its slot, too.
    others: u32,
    /// Who has older accesses in planes, and who has rooms instead: all but the crowd, and the crowd.
    older_of: u32,
    rooms_of: u32,
    /// Which member of the crowd it is, counted from one; zero if none.
    member: u32,
    crowd_slot: u32,
    /// Whose the crowd's ticks are, by run.
    owners: u64,
    /// By member, the last tick that is ordered before, as the assembly compares it.
    member_limits: u64,
    /// Where the crowd's rooms are, and where the member's own cell is in the first.
    rooms: u64,
    entries: u64,
    /// Where the strips are.
    strips: u64,
    locks: u32,
    alike_table: u64,
    /// Which lock sets the thread's own excludes for being alike; [`UNLIKE`] if none.
    alike: u32,
    no_locks: u32,
    /// The application's registers while the path runs.
    saved: [u64; 11],
    /// Of an access that lies in two lines, the bytes in the second; where that begins; and what stamps them.
    rest: u64,
    rest_at: u64,
    rest_to: u64,
    /// Registers while frames are looked for, and where that was begun.
    looking: [u64; 7],
    back: u64,
    /// Frames found: where the return address is, and what it is.
    found: [(u64, u64); FOUND],
    /// How often modules came and went, and how often they had when the rules were learned.
    age_at: u64,
    age: u32,
    unused: u32,
    /// What is at `age_at`; nothing before any rule was learned.
    age_of: Option<&'static AtomicU32>,
    /// The access that Rust is called for has been stamped and noted.
    look: u32,
    /// After so many more looks Rust is called.
    looks: u32,
    /// And when so many accesses were noted: the journal would forget how the critical section began.
    ask_at: u64,
    /// Notes of the journal before this number have been looked at; when so many have not, they are.
    looked: u64,
    most: u64,
    /// By line and side, the number of the newest note.
    open: [u64; 2 * OPEN],
    /// Accesses that were added to notes.
    joined: u64,
    /// By side, where it is remembered of chunks of shadow memory which page was touched first, and whether
    /// all have been asked for; by chunk, one of so many. See `look.s`.
    chunks: [u64; 2],
    /// What such a word begins with: another one whenever shadow memory has been given back.
    chunks_age: u64,
    /// Those that were, and how many.
    pub journal: Journal,
    /// By slot, the last tick that is ordered before, as the assembly compares it.
    limits: [u64; ROOM],
    /// Which version of the weak order they are of.
    loaded: Option<u32>,
    cell_keys: [[u64; 2]; ROOM],
    /// What [`Middle::older_cells`] is, by slot.
    older_keys: [[u64; 2]; ROOM],
    /// By slot, the table of lock sets held.
    lock_tables: [u64; ROOM],
    /// The own one.
    own_locks: u64,
    limit_memory: Reservation,
    chunk_memory: Reservation,
}

const _: () = assert!(SLOTS <= ROOM);

/// Rows of what was learned, each at a place that a hash of its key says. Most threads learn little: a table begins with one page,
/// and uses more of its memory when that is half full. What was learned before is found no more then, and learned again.
#[derive(Debug)]
#[repr(C)]
struct Table {
    /// Where the assembly looks.
    start: u64,
    /// Which bits of a hash say where a row is.
    mask: u64,
    /// The same of all of its memory.
    most: u64,
    /// Rows written since it grew.
    written: usize,
    memory: Reservation,
}

/// Rows of all tables have one size.
const ROW_SIZE: usize = 16;
/// So much of a table is used at first; it grows by this factor.
const FIRST_SIZE: usize = 4096;
const GROWTH: usize = 8;

impl Table {
    /// With nothing in it, and room for as many rows as fit.
    fn new(mut memory: Reservation) -> Table {
        // A page that is read before it is written is given twice, and the second time all processors are told.
        memory.write_at(0, 0u64);
        let mask = |bytes: usize| (bytes - ROW_SIZE) as u64;
        let (mask, most) = (mask(FIRST_SIZE), mask((memory.end() - memory.start()) as usize));
        Table { start: memory.start(), mask, most, written: 0, memory }
    }

    /// Where a row is; the assembly computes the same.
    fn place(&self, hash: u32) -> usize {
        (hash >> HASH_SHIFT) as usize & self.mask as usize
    }

    /// The two words of a row.
    fn row(&self, place: usize) -> [u64; 2] {
        [0, 8].map(|word| self.memory.word_at(place + word))
    }

    /// The row at a place, or the one beside it, that is the one looked for.
    fn find(&self, place: usize, is_it: impl Fn([u64; 2]) -> bool) -> Option<[u64; 2]> {
        [place, place ^ ROW_SIZE].map(|place| self.row(place)).into_iter().find(|row| is_it(*row))
    }

    /// Writes a row where it will be found. Who was there, and is not `replaced`, moves to the place beside it: two that are met by
    /// turns and belong to one place would drive each other out for ever.
    fn put<T: Copy>(&mut self, place: usize, row: T, replaced: impl Fn([u64; 2]) -> bool) {
        let old = self.row(place);
        if old != [0; 2] && !replaced(old) {
            self.write(place ^ ROW_SIZE, old);
        }
        self.write(place, row);
    }

    /// Writes a row.
    fn write<T: Copy>(&mut self, place: usize, row: T) {
        const { assert!(size_of::<T>() == ROW_SIZE) };
        self.memory.write_at(place, row);
        self.written += 1;
        if self.written > (self.mask as usize + ROW_SIZE) / ROW_SIZE / 2 && self.mask < self.most {
            let grown = (self.mask as usize + ROW_SIZE) * GROWTH - ROW_SIZE;
            self.mask = self.most.min(grown as u64);
            self.written = 0;
        }
    }

    /// Forgets all.
    fn clear(&mut self) {
        self.memory.clear();
        self.written = 0;
    }
}

/// Where nothing is found.
static EMPTY: [u64; ROWS * ROW_SIZE / 8] = [0; ROWS * ROW_SIZE / 8];

/// An access described before.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Row {
    site: u32,
    /// The frames around it.
    node: u32,
    access: AccessId,
    /// [`Rule::at`] of the site.
    at: i32,
}

/// How the frame of a function is found from a place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Rule {
    /// Where the return address is, from the stack pointer on, or one more than that from the frame
    /// pointer on.
    pub at: i32,
    /// Where the caller's frame pointer is, from the return address on; zero if in the register.
    pub bp: i32,
}

impl Rule {
    /// Where the return address is, with these registers.
    pub fn return_address_at(self, sp: u64, bp: u64) -> u64 {
        let (base, offset) = if self.at & 1 == 0 { (sp, self.at) } else { (bp, self.at - 1) };
        base.wrapping_add_signed(i64::from(offset))
    }
}

/// A place in a function: a site, or where a call returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleKey(u64);

/// The bit that tells sites from addresses.
const SITE_BIT: u32 = 63;

impl RuleKey {
    pub fn site(site: u32) -> RuleKey {
        RuleKey(1 << SITE_BIT | u64::from(site))
    }

    pub fn call(return_address: u64) -> RuleKey {
        RuleKey(return_address)
    }

    /// By this its row is found; the assembly computes the same.
    fn hash(self) -> u32 {
        (self.0 as u32).wrapping_mul(SPREAD)
    }
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RuleRow {
    key: u64,
    rule: Rule,
}

/// From a stack to the one with a frame more.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Step {
    return_address: u64,
    outer: u32,
    node: u32,
}

/// Two accesses of one segment to different bytes of a granule, and what stands for both.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Merge {
    pub old: AccessId,
    pub new: AccessId,
    /// The bytes that are left of the old one, above those of the new one.
    pub bytes: u32,
    pub merged: AccessId,
}

impl Middle {
    /// For a new thread. `at_once`: the others are looked at for each access before it happens.
    pub fn new(shadow: &Shadow, at_once: bool) -> Option<Box<Middle>> {
        let [rows, rules, steps, merges, limit_memory, chunk_memory] = Reservation::several([
            ROWS * ROW_SIZE,
            RULES * ROW_SIZE,
            STEPS * ROW_SIZE,
            MERGES * ROW_SIZE,
            (MEMBERS + 1) * 8,
            2 * CHUNKS * 8,
        ])?;
        const SIDES: [Side; 2] = [Side::Write, Side::Read];
        let by_slot = |keys: &dyn Fn(usize) -> [u64; 2]| {
            std::array::from_fn(
                |slot| if slot < Planes::slots(shadow) { keys(slot) } else { [0; 2] },
            )
        };
        Some(Box::new(Middle {
            segment: 0,
            cells: [0; 2],
            older_cells: [0; 2],
            settled: 0,
            sharers: shadow.sharers_base(),
            blocks_alike: shadow.blocks_alike_base(),
            touched: shadow.touched_base(),
            rows: Table::new(rows),
            rules: Table::new(rules),
            steps: Table::new(steps),
            merges: Table::new(merges),
            own: 0,
            joins: [0; 2],
            others: EVERY_SLOT,
            older_of: EVERY_SLOT,
            rooms_of: 0,
            member: 0,
            crowd_slot: u32::MAX,
            owners: 0,
            member_limits: limit_memory.start(),
            rooms: shadow.rooms().start(),
            entries: 0,
            strips: shadow.strips_base(),
            locks: 0,
            alike_table: shadow.alike_table(),
            alike: UNLIKE,
            no_locks: 1,
            saved: [0; 11],
            rest: 0,
            rest_at: 0,
            rest_to: 0,
            looking: [0; 7],
            back: 0,
            found: [(0, 0); FOUND],
            age_at: &raw const NEVER as u64,
            age: 0,
            unused: 0,
            age_of: None,
            look: 0,
            looks: LOOKS,
            ask_at: u64::MAX,
            looked: 0,
            most: if at_once { 1 } else { MOST },
            open: [0; 2 * OPEN],
            joined: 0,
            chunks: [chunk_memory.start(), chunk_memory.start() + CHUNKS as u64 * 8],
            chunks_age: 0,
            journal: Journal::default(),
            limits: [0; ROOM],
            loaded: None,
            cell_keys: by_slot(&|slot| SIDES.map(|side| shadow.key(slot, side))),
            older_keys: by_slot(&|slot| {
                SIDES.map(|side| shadow.key(slot, side) ^ shadow.older_key(slot, side))
            }),
            lock_tables: std::array::from_fn(|slot| {
                if slot < Planes::slots(shadow) { shadow.lock_table(slot) } else { 0 }
            }),
            own_locks: 0,
            limit_memory,
            chunk_memory,
        }))
    }

    /// Takes over where the thread stands, and what is there of its shadow.
    pub fn load(&mut self, standing: &Standing, shadow: &Shadow) {
        self.chunks_age = shadow.age() << CHUNKS_AGE_AT;
        let slot = standing.slot();
        if self.segment != standing.current() {
            let locked = standing.locks().0 != 0;
            self.ask_at = if locked { self.journal.count + ASK } else { u64::MAX };
        }
        self.segment = standing.current();
        self.cells = self.cell_keys[slot];
        self.older_cells = self.older_keys[slot];
        self.own_locks = self.lock_tables[slot];
        self.own = 1 << slot;
        let marks = if standing.alike() == UNLIKE { MIXED_LOCKS } else { 0 };
        self.joins =
            [u64::from(self.own) | u64::from(marks) << 32, u64::from(self.own | marks) << 32];
        self.member = standing.member();
        self.others = EVERY_SLOT & !standing.own_slots();
        if let Some(member) = self.member.checked_sub(1) {
            self.entries = self.rooms + rooms::entry_offset(member as usize);
        }
        if let Some(crowd) = standing.crowd() {
            self.crowd_slot = crowd.slot() as u32;
            self.rooms_of = 1 << crowd.slot();
            self.older_of = EVERY_SLOT & !self.rooms_of;
            self.owners = crowd.owners().as_ptr() as u64;
        }
        self.locks = standing.locks().0;
        self.settled = up_to(standing.settled());
        self.no_locks = u32::from(self.locks == 0);
        self.alike = standing.alike();
        // Nothing is found in an empty table, so everything goes to Rust, which knows what to do.
        let muted = standing.is_muted(Side::Read) || standing.is_muted(Side::Write);
        let by_hand = !muted && !standing.is_undecided();
        self.rows.start = if by_hand { self.rows.memory.start() } else { &raw const EMPTY as u64 };
        // The version first: if another thread changes a limit meanwhile, it will differ next time.
        let version = Some(standing.weak_version());
        if self.loaded != version {
            self.loaded = version;
            for (slot, limit) in self.limits.iter_mut().enumerate().take(SLOTS) {
                *limit = up_to(standing.weak(slot));
            }
            let members = standing.crowd().map_or(0, |crowd| crowd.members());
            for member in 0..if members == 0 { 0 } else { members + 1 } {
                let limit = up_to(standing.of_member(member as u32));
                self.limit_memory.write_at(member * 8, limit);
            }
        }
    }

    /// The thread's stack is here.
    pub fn set_stack(&mut self, region: (u64, u64)) {
        self.journal.stack = region;
    }

    /// Where the cells of the own slot are.
    pub fn key(&self, side: Side) -> u64 {
        self.cells[side as usize]
    }

    /// Has the access that Rust is called for been stamped and noted? Asked once.
    pub fn take_look(&mut self) -> bool {
        let look = std::mem::take(&mut self.look) == 1;
        if look {
            self.looks = LOOKS;
        }
        look
    }

    /// The number of the first note that is still to be looked at, if there is one.
    pub fn behind(&self) -> Option<u64> {
        (self.looked != self.journal.count).then_some(self.looked)
    }

    /// Are there so many that they must be looked at before more is noted?
    pub fn is_full(&self) -> bool {
        self.journal.count - self.looked >= self.most
    }

    /// Is it time to ask what was handed to the critical section? Asked once.
    pub fn take_ask(&mut self) -> bool {
        let is_time = self.journal.count >= self.ask_at;
        if is_time {
            self.ask_at = self.journal.count + ASK;
        }
        is_time
    }

    /// All that was noted has been looked at.
    pub fn set_looked(&mut self) {
        self.looked = self.journal.count;
    }

    /// Are the others looked at for several accesses at once?
    pub fn looks_late(&self) -> bool {
        self.most > 1
    }

    /// Notes an access that was stamped, lies in one line, and is still to be looked at.
    pub fn note_for_later(&mut self, side: Side, (start, end): (u64, u64)) {
        self.journal.note_in_line(side, (start, end));
    }

    /// Notes an access that is looked at now. Nothing else may be left to be looked at, unless it lies in one line.
    pub fn note(&mut self, side: Side, (start, end): (u64, u64)) {
        let all_looked = self.behind().is_none();
        if is_in_one_line(start, end) {
            // As the path does it, which may look once more.
            self.journal.note_in_line(side, (start, end));
        } else {
            self.journal.note(side, (start, end));
        }
        if all_looked {
            self.set_looked();
        }
    }

    /// The tick of what the path stamps.
    pub fn tick(&self) -> u32 {
        Cell(self.segment).tick()
    }

    /// How many accesses were noted.
    pub fn accesses(&self) -> u64 {
        self.journal.count + self.joined
    }

    /// Remembers a described access, if it is known how its frame is found.
    pub fn remember(&mut self, site: u32, node: u32, access: AccessId) {
        // To be checked, all accesses must come to Rust.
        if cfg!(feature = "check-stacks") {
            return;
        }
        if let Some(Rule { at, .. }) = self.rule(RuleKey::site(site)) {
            let key = u64::from(node) << 32 | u64::from(site);
            let row = Row { site, node, access, at };
            self.rows.put(self.rows.place(row_hash(site, node)), row, |old| old[0] == key);
        }
    }

    /// How the frame is found from there, if that is known.
    pub fn rule(&self, key: RuleKey) -> Option<Rule> {
        let [_, rule] = self.rules.find(self.rules.place(key.hash()), |row| row[0] == key.0)?;
        Some(Rule { at: rule as i32, bp: (rule >> 32) as i32 })
    }

    /// Is it known how the frame is found from there?
    pub fn has_rule(&self, key: RuleKey) -> bool {
        self.rule(key).is_some()
    }

    /// Remembers how the frame is found from a place.
    pub fn remember_rule(&mut self, key: RuleKey, rule: Rule) {
        let row = RuleRow { key: key.0, rule };
        self.rules.put(self.rules.place(key.hash()), row, |old| old[0] == key.0);
    }

    /// Are the rules those of the modules that are there now?
    pub fn is_current(&self) -> bool {
        self.age_of.is_some_and(|age| age.load(Ordering::Acquire) == self.age)
    }

    /// Modules have come and gone as often as this says; what was learned before is forgotten.
    pub fn set_age(&mut self, age: &'static AtomicU32) {
        let now = age.load(Ordering::Acquire);
        if self.age != now || self.age_at != age.as_ptr() as u64 {
            self.rules.clear();
            (self.age, self.age_at) = (now, age.as_ptr() as u64);
            self.age_of = Some(age);
        }
    }

    /// Remembers the stack `node`: that of `outer` with one frame more.
    pub fn remember_step(&mut self, outer: u32, return_address: u64, node: u32) {
        let step = Step { return_address, outer, node };
        let place = self.steps.place(step_hash(outer, return_address));
        self.steps.put(place, step, |old| old[0] == return_address && old[1] as u32 == outer);
    }
}

impl Middle {
    /// Remembers what stands for two accesses.
    pub fn remember_merge(&mut self, merge: Merge) {
        let key = [u64::from(merge.new.0) << 32 | u64::from(merge.old.0), u64::from(merge.bytes)];
        let same = |old: [u64; 2]| old[0] == key[0] && u64::from(old[1] as u32) == key[1];
        self.merges.put(self.merges.place(merge_hash(&merge)), merge, same);
    }
}

/// Do these bytes lie in one line?
pub fn is_in_one_line(start: u64, end: u64) -> bool {
    start < end && start / LINE == (end - 1) / LINE
}

/// What cells of this tick and of earlier ones do not exceed, without their accesses and as high as they go.
fn up_to(tick: u32) -> u64 {
    u64::from(tick.min(LAST_TICK)) << TICK_SHIFT | ((1 << TICK_SHIFT) - 1)
}

/// By this a merge is found; the assembly computes the same.
fn merge_hash(merge: &Merge) -> u32 {
    let mixed = merge.old.0.wrapping_mul(SPREAD).wrapping_add(merge.new.0);
    mixed.wrapping_mul(SPREAD_SITE).wrapping_add(merge.bytes).wrapping_mul(SPREAD)
}

/// By this the row of an access is; the assembly computes the same.
fn row_hash(site: u32, node: u32) -> u32 {
    site.wrapping_mul(SPREAD_SITE).wrapping_add(node).wrapping_mul(SPREAD)
}

/// By this a step is.
fn step_hash(outer: u32, return_address: u64) -> u32 {
    let mixed = outer.wrapping_mul(SPREAD_SITE).wrapping_add(return_address as u32);
    mixed.wrapping_mul(SPREAD)
}

/// What is compared with before any rule was learned. Never written.
static NEVER: AtomicU32 = AtomicU32::new(u32::MAX);

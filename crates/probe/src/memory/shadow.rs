//! Shadow memory: the planes of the fast detector, at addresses that inserted code can compute.
//!
//! A plane is the target's address space once more, at `address ^ key`, so that finding a cell is one
//! instruction. This works because programs use two windows of the address space only: the lowest
//! addresses (executables that are not relocatable, and their heap) and the highest (everything
//! else). The key's upper bits carry both windows to where nothing else is; its lower bits move stretches of 1 KiB
//! within 64 KiB, so that a location and its cells do not compete for the same lines of the cache.
//!
//! ```text
//! window bits   0...0   the target's low window         1...1   the target's high window
//!               r       its cells in region r           ~r      its cells in region r
//! ```
//!
//! With a fixed layout the windows are 256 GiB wide; where the kernel places things at random they
//! must be 2 TiB, and there is room for fewer slots. Memory outside the windows is not watched.
//! Everything is reserved before the program has run, so that what it asks the kernel for is elsewhere, and backed by the kernel
//! when touched.
//!
//! A cell is looked at before it is written, and of private memory the kernel would give a page twice: first the one that is zero for
//! all, and when it is written another one, after telling all processors (a tenth of what programs took that stream through
//! memory, on a virtual machine). So it is memory that could be shared, of which the first page is the right one, and which a forked child
//! does not have: it begins with memory of its own. Only where children go on with what was known (a server's), it is private.

mod forget;

use crate::memory::Reservation;
use crate::memory::rooms::Rooms;
use crate::memory::strips::Strips;
use raddle_analyse::fast::access::{AccessId, LockSetId};
use raddle_analyse::fast::cell::{BLOCK, Cell, GRANULE, LAST_TICK, LINE, blocks};
use raddle_analyse::fast::{Planes, SLOTS, Side};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Bits of the target's addresses.
pub const ADDRESS_BITS: u32 = 47;
/// Regions of a slot: the cells of its writes and of its reads, and those of older ones.
const REGIONS: usize = 4;
/// The first of those for older ones.
const OLDER_REGIONS: usize = 2;
/// Keys move lines within this, and nothing else.
pub const CHUNK: u64 = 64 * 1024;

/// The size of a page, as a power of two.
pub const PAGE_BITS: u32 = 12;
pub const PAGE: u64 = 1 << PAGE_BITS;

/// What is known of a page of the target's memory, as inserted code finds it: a bit for a page that nobody writes, and
/// above it the number of the runtime library whose static data it is. Zero for any other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageKind(pub u8);

impl PageKind {
    /// Mapped from a file, to be read only.
    pub const CONSTANT: PageKind = PageKind(1);

    /// The data of a runtime library, by its number; there is room for 127.
    pub fn owned(number: u8) -> PageKind {
        PageKind(number << 1)
    }

    /// The same, and nobody writes it.
    pub fn constant(self) -> PageKind {
        PageKind(self.0 | PageKind::CONSTANT.0)
    }
}

/// Where planes are.
#[derive(Debug)]
pub struct Shadow {
    /// A forked child has a copy of it; else it has its own, of which it knows nothing.
    is_copied: bool,
    /// Addresses above this bit tell the windows.
    window_bits: u32,
    slots: usize,
    /// Where the lines' sharers are, two words a line.
    sharers: u64,
    /// Where it is what the locks are like under which all was done to a block, a word each.
    blocks_alike: u64,
    /// Slots whose planes are in use.
    used: AtomicUsize,
    /// Where what is known of pages is, a byte each.
    pages: u64,
    /// Where a word for each chunk of memory is: who has become a sharer of one of its lines since it was last cleared.
    touched: u64,
    /// By lock set, what it is like; and, behind it, by slot and tick, the lock set held.
    alike: u64,
    /// The crowd's.
    rooms: Rooms,
    /// Cells of bytes.
    strips: Strips,
    /// How often memory was given back.
    age: AtomicU64,
}

/// So many lock sets have room in the table of what they are like.
const ALIKE: u64 = 1 << 28;
/// So many ticks of each slot have room in the table of lock sets held.
const TICKS: u64 = LAST_TICK as u64 + 1;
/// Bytes from one slot's table to the next: a page and a line more than it needs. Threads that do the same have ticks alike,
/// and who looks at what all have done under a lock would find all their lock sets in lines and pages with one number, of which
/// the processor keeps a few only.
const LOCK_TABLE: u64 = TICKS * 4 + PAGE + LINE;

impl Shadow {
    /// Finds room. `None` where the kernel does not give it (a limit on address space).
    pub fn new(is_copied: bool) -> Option<Shadow> {
        let narrow = Shadow {
            is_copied,
            window_bits: 38,
            slots: SLOTS,
            sharers: 0x3000_0000_0000,
            blocks_alike: 0x4100_0000_0000,
            used: AtomicUsize::new(0),
            alike: 0x2f00_0000_0000,
            rooms: Rooms::new(0x2e00_0000_0000),
            strips: Strips::new(0x2e80_0000_0000),
            age: AtomicU64::new(0),
            pages: 0x2f10_0000_0000,
            touched: 0x2f20_0000_0000,
        };
        let wide = Shadow {
            is_copied,
            window_bits: 41,
            slots: 5,
            sharers: 0x3200_0000_0000,
            blocks_alike: 0x2e00_0000_0000,
            used: AtomicUsize::new(0),
            alike: 0x3300_0000_0000,
            rooms: Rooms::new(0x3400_0000_0000),
            strips: Strips::new(0x3480_0000_0000),
            age: AtomicU64::new(0),
            pages: 0x3310_0000_0000,
            touched: 0x3320_0000_0000,
        };
        /// The kernel places mappings one beside the other: so much room is left for more.
        const ROOM: u64 = 128 << 30;
        let here = Reservation::new(LINE as usize)?.start();
        let around = [here.saturating_sub(ROOM), here.saturating_add(ROOM)];
        // Upwards there may be nothing but the stack and the end of the windows.
        let end = (1 << ADDRESS_BITS) - 1;
        let fits = |shadow: &Shadow| around.iter().all(|at| shadow.has((*at).min(end)));
        // In the old layout (which an unlimited stack asks for) mappings are in no window: nothing would
        // be watched, and planes would stand where the program wants to be.
        let shadow = [narrow, wide].into_iter().find(fits)?;
        for start in shadow.windows() {
            // Of what a child has, too.
            let length = (1 << shadow.window_bits) >> PAGE_BITS;
            reserve_as(shadow.pages + (start >> PAGE_BITS), length, libc::MAP_PRIVATE)?;
        }
        shadow.reserve()?;
        Some(shadow)
    }

    /// Reserves all that is forgotten in a forked child.
    fn reserve(&self) -> Option<()> {
        let reserve = |start, length| match self.is_copied {
            true => reserve_as(start, length, libc::MAP_PRIVATE),
            false => reserve_shared(start, length),
        };
        for start in self.windows() {
            let length = (1 << self.window_bits) / LINE * 8;
            reserve(self.sharers + start / LINE * 8, length)?;
            reserve(self.blocks_alike + start / BLOCK * 4, (1 << self.window_bits) / BLOCK * 4)?;
            reserve(self.touched + start / CHUNK * 4, (1 << self.window_bits) / CHUNK * 4)?;
        }
        let (start, length) = self.strips.memory();
        reserve(start, length.next_multiple_of(PAGE))?;
        // All regions: those of the low window lie side by side above it, those of the high one below it.
        let regions = (self.slots * REGIONS) as u64;
        let [low, high] = self.windows();
        reserve(low + (1 << self.window_bits), regions << self.window_bits)?;
        reserve(high - (regions << self.window_bits), regions << self.window_bits)?;
        reserve(self.alike, (ALIKE * 4 + LOCK_TABLE * SLOTS as u64).next_multiple_of(PAGE))
    }

    /// In a forked child, before it does anything.
    pub fn forked(&self) {
        if !self.is_copied {
            let again = self.reserve();
            assert!(again.is_some(), "no address space for shadow memory");
        }
        self.rooms.forked();
    }

    /// See [`crate::middle`].
    pub fn sharers_base(&self) -> u64 {
        self.sharers
    }

    /// See [`crate::middle`].
    pub fn blocks_alike_base(&self) -> u64 {
        self.blocks_alike
    }

    /// See [`crate::middle`].
    pub fn touched_base(&self) -> u64 {
        self.touched
    }

    /// See [`crate::middle`].
    pub fn alike_table(&self) -> u64 {
        self.alike
    }

    /// See [`crate::middle`].
    pub fn lock_table(&self, slot: usize) -> u64 {
        self.alike + ALIKE * 4 + LOCK_TABLE * slot as u64
    }

    /// The key of a slot's cells.
    pub fn key(&self, slot: usize, side: Side) -> u64 {
        self.region_key(slot * REGIONS + side as usize)
    }

    /// The same for its older ones.
    pub fn older_key(&self, slot: usize, side: Side) -> u64 {
        self.region_key(slot * REGIONS + OLDER_REGIONS + side as usize)
    }

    /// The same reservations, all forgotten, for a forked child.
    pub fn inherit(&self) -> Shadow {
        if self.is_copied {
            self.forget_all();
        }
        Shadow {
            is_copied: self.is_copied,
            window_bits: self.window_bits,
            slots: self.slots,
            sharers: self.sharers,
            blocks_alike: self.blocks_alike,
            used: AtomicUsize::new(self.used.load(Ordering::Acquire)),
            alike: self.alike,
            rooms: self.rooms.inherit(),
            strips: self.strips.inherit(),
            age: AtomicU64::new(0),
            pages: self.pages,
            touched: self.touched,
        }
    }

    /// The crowd's rooms.
    pub fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    /// See [`crate::middle`].
    pub fn strips_base(&self) -> u64 {
        self.strips.memory().0
    }

    /// The word that says which room a granule has: where other slots have their older accesses.
    fn room_word(&self, side: Side, granule: u64) -> &AtomicU64 {
        self.word(self.older_key(self.slots - 1, side), granule)
    }

    /// Where the byte of an address's page is, less the page's number.
    pub fn pages_base(&self) -> u64 {
        self.pages
    }

    /// Says of all pages in a stretch what they are. Those without shadow are nothing.
    pub fn mark_pages(&self, stretch: Range<u64>, kind: PageKind) {
        for page in (stretch.start >> PAGE_BITS)..stretch.end.div_ceil(1 << PAGE_BITS) {
            if let Some(byte) = self.page(page << PAGE_BITS) {
                byte.store(kind.0, Ordering::Relaxed);
            }
        }
    }

    /// Is nothing of this stretch ever written?
    pub fn is_constant(&self, (start, end): (u64, u64)) -> bool {
        let is_constant = |page: u64| {
            let byte = self.page(page << PAGE_BITS).map_or(0, |byte| byte.load(Ordering::Relaxed));
            byte & PageKind::CONSTANT.0 != 0
        };
        (start >> PAGE_BITS..end.div_ceil(1 << PAGE_BITS)).all(is_constant)
    }

    fn page(&self, address: u64) -> Option<&AtomicU8> {
        // SAFETY: of every address with shadow there is a byte, reserved, zero at first and never unmapped.
        let byte =
            || unsafe { AtomicU8::from_ptr((self.pages + (address >> PAGE_BITS)) as *mut u8) };
        self.has(address).then(byte)
    }

    /// A slot will touch this stretch of memory, as far as anybody can tell for the first time: the kernel gives its cells at
    /// once, and not page by page, each twice. Advice only.
    pub fn populate(&self, slot: usize, side: Side, (start, end): (u64, u64)) {
        let is_there = |at: u64| Planes::cell(self, slot, side, at / GRANULE) != Cell::EMPTY;
        if end.saturating_sub(start) < CHUNK || is_there(start) && is_there(end - 1) {
            return;
        }
        let (first, last) = (start / CHUNK * CHUNK, end.next_multiple_of(CHUNK));
        let cells = (first ^ self.key(slot, side)) & !(CHUNK - 1);
        for (at, length) in
            [(cells, last - first), (self.sharers + first / LINE * 8, (last - first) / LINE * 8)]
        {
            // SAFETY: our own reservation: a stretch with shadow, and to its chunks' ends, where windows end, too. What
            // is there stays as it is.
            unsafe {
                libc::madvise(at as *mut libc::c_void, length as usize, libc::MADV_POPULATE_WRITE)
            };
        }
    }

    /// A slot will read this soon, as a rule: what that needs is asked for, and nobody waits for it.
    pub fn will_read(&self, slot: usize, address: u64) {
        if !self.has(address) {
            return;
        }
        let (line, block) = (address / LINE, address / BLOCK);
        let cell = (address / GRANULE * GRANULE) ^ self.key(slot, Side::Read);
        for at in [cell, self.sharers + line * 8, self.blocks_alike + block * 4] {
            // SAFETY: a hint, of whatever address.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                    at as *const i8,
                )
            };
        }
    }

    /// How often memory was given back, for those who remember which was there.
    pub fn age(&self) -> u64 {
        self.age.load(Ordering::Relaxed)
    }

    /// The windows' size, as a power of two.
    pub fn window_bits(&self) -> u32 {
        self.window_bits
    }

    /// Is this address watched?
    fn has(&self, address: u64) -> bool {
        let window = address >> self.window_bits;
        window == 0 || window == (1 << (ADDRESS_BITS - self.window_bits)) - 1
    }

    /// First addresses of the two windows.
    fn windows(&self) -> [u64; 2] {
        [0, (1 << ADDRESS_BITS) - (1 << self.window_bits)]
    }

    fn region_key(&self, region: usize) -> u64 {
        let region = region as u64 + 1;
        // A location and its cells do not compete for the same lines of the cache, and lines that follow each other do so there,
        // too, for 1 KiB: the processor fetches ahead of who goes through memory. (With lines in another order, 1 to 9 % slower;
        // with the order of whole pages kept, FFT, which goes by powers of two, 10 %.)
        region << self.window_bits ^ (region * 0x1400) & (CHUNK - 1)
    }

    fn word(&self, key: u64, granule: u64) -> &AtomicU64 {
        let address = granule * GRANULE;
        debug_assert!(self.has(address));
        // SAFETY: `covers` has been asked for every address that comes here, so this lies in the
        // region's reserved and zeroed pages, which are never unmapped, and is aligned.
        unsafe { AtomicU64::from_ptr((address ^ key) as *mut u64) }
    }

    fn table(&self, base: u64, index: u64) -> &AtomicU32 {
        // SAFETY: callers keep the index inside their table, which is reserved and aligned.
        unsafe { AtomicU32::from_ptr((base + index * 4) as *mut u32) }
    }

    fn sharers_of(&self, side: Side, line: u64) -> &AtomicU32 {
        let at = self.sharers + line * 8 + side as u64 * 4;
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(at as *mut u32) }
    }
}

impl Planes for Shadow {
    fn slots(&self) -> usize {
        self.slots
    }

    fn take_cell(&self, slot: usize, side: Side, granule: u64, old: Cell, new: Cell) -> bool {
        let word = self.word(self.key(slot, side), granule);
        word.compare_exchange(old.0, new.0, Ordering::SeqCst, Ordering::Acquire).is_ok()
    }

    fn room(&self, side: Side, granule: u64) -> Option<u32> {
        self.rooms.named(self.room_word(side, granule))
    }

    fn open_room(&self, side: Side, granule: u64) -> Option<u32> {
        self.rooms.open(self.room_word(side, granule), granule)
    }

    fn room_alike(&self, side: Side, granule: u64) -> u32 {
        self.rooms.alike(self.room_word(side, granule))
    }

    fn begin_room(&self, side: Side, granule: u64, alike: u32) -> u32 {
        self.rooms.begin(self.room_word(side, granule), alike)
    }

    fn mix_room(&self, side: Side, granule: u64) {
        self.rooms.mix(self.room_word(side, granule));
    }

    fn block_alike(&self, block: u64) -> u32 {
        self.table(self.blocks_alike, block).load(Ordering::Acquire)
    }

    fn begin_block(&self, block: u64, alike: u32) -> u32 {
        let word = self.table(self.blocks_alike, block);
        let was = word.compare_exchange(0, alike, Ordering::SeqCst, Ordering::Acquire);
        was.unwrap_or_else(|was| was)
    }

    fn entry(&self, room: u32, member: usize) -> Cell {
        Cell(self.rooms.entry(room, member).load(Ordering::Acquire))
    }

    fn set_entry(&self, room: u32, member: usize, cell: Cell) {
        self.rooms.note_member(member);
        self.rooms.entry(room, member).store(cell.0, Ordering::Release);
    }

    fn covers(&self, start: u64, end: u64) -> bool {
        self.has(start) && self.has(end.saturating_sub(1).max(start))
    }

    fn use_slot(&self, slot: usize) -> bool {
        self.used.fetch_max(slot + 1, Ordering::Release);
        slot + 1 < self.slots || slot < self.slots && self.rooms.reserve().is_some()
    }

    fn note(&self, locks: LockSetId, alike: Option<u32>) {
        if u64::from(locks.0) < ALIKE {
            // One less than what a thread without such a lock compares with: never alike.
            let alike = alike.unwrap_or(u32::MAX - 1);
            self.table(self.alike, u64::from(locks.0)).store(alike, Ordering::Release);
        }
    }

    fn alike(&self, locks: LockSetId) -> u32 {
        match u64::from(locks.0) < ALIKE {
            true => self.table(self.alike, u64::from(locks.0)).load(Ordering::Acquire),
            false => u32::MAX - 1,
        }
    }

    fn locks(&self, slot: usize, tick: u32) -> LockSetId {
        LockSetId(self.table(self.lock_table(slot), u64::from(tick)).load(Ordering::Acquire))
    }

    fn set_locks(&self, slot: usize, tick: u32, locks: LockSetId) {
        self.table(self.lock_table(slot), u64::from(tick)).store(locks.0, Ordering::Release);
    }

    fn cell(&self, slot: usize, side: Side, granule: u64) -> Cell {
        Cell(self.word(self.key(slot, side), granule).load(Ordering::Acquire))
    }

    fn known(&self, slot: usize, side: Side, granules: Range<u64>, like: Cell) -> u64 {
        let key = self.key(slot, side);
        let cell = |granule| Cell(self.word(key, granule).load(Ordering::Relaxed));
        // A line's are looked at together: what is copied is long, and most of it known.
        const TOGETHER: u64 = LINE / GRANULE;
        let mut at = granules.start;
        let all_known = |at: u64| {
            let unlike = (at..at + TOGETHER).fold(0, |all, granule| all | cell(granule).0 ^ like.0);
            Cell(unlike).is_like(Cell(0))
        };
        while at + TOGETHER <= granules.end && all_known(at) {
            at += TOGETHER;
        }
        let rest = (at..granules.end).take_while(|granule| cell(*granule).is_like(like));
        at - granules.start + rest.count() as u64
    }

    fn set_cell(&self, slot: usize, side: Side, granule: u64, cell: Cell) {
        self.word(self.key(slot, side), granule).store(cell.0, Ordering::Release);
    }

    fn older(&self, slot: usize, side: Side, granule: u64) -> Option<Cell> {
        Some(Cell(self.word(self.older_key(slot, side), granule).load(Ordering::Acquire)))
    }

    fn set_older(&self, slot: usize, side: Side, granule: u64, cell: Cell) {
        self.word(self.older_key(slot, side), granule).store(cell.0, Ordering::Release);
    }

    fn open_strip(&self, slot: usize, side: Side, granule: u64) -> Option<AccessId> {
        self.strips.open(slot, side, granule)
    }

    fn strip_cell(&self, strip: AccessId, byte: u32) -> Cell {
        Cell(self.strips.cell(strip, byte).load(Ordering::Acquire))
    }

    fn set_strip_cell(&self, strip: AccessId, byte: u32, cell: Cell) {
        self.strips.cell(strip, byte).store(cell.0, Ordering::Release);
    }

    fn sharers(&self, side: Side, line: u64) -> u32 {
        self.sharers_of(side, line).load(Ordering::Acquire)
    }

    fn add_sharers(&self, side: Side, line: u64, slots: u32) {
        self.sharers_of(side, line).fetch_or(slots, Ordering::SeqCst);
        let touched = self.table(self.touched, line * LINE / CHUNK);
        if touched.load(Ordering::Relaxed) & slots != slots {
            touched.fetch_or(slots, Ordering::AcqRel);
        }
    }

    fn clear_sharers(&self, line: u64) {
        self.sharers_of(Side::Write, line).store(0, Ordering::Release);
        self.sharers_of(Side::Read, line).store(0, Ordering::Release);
        for block in blocks(line * LINE, (line + 1) * LINE) {
            self.table(self.blocks_alike, block).store(0, Ordering::Release);
        }
    }

    fn fence(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    fn clear(&self, start: u64, end: u64) {
        self.forget(start, end);
        self.strips.close(start / GRANULE..end / GRANULE);
    }

    fn clear_slot(&self, slot: usize) {
        self.forget_slot(slot);
        self.strips.close_slot(slot);
    }
}

/// Reserves zeroed memory at exactly this place.
fn reserve_as(start: u64, length: u64, sharing: i32) -> Option<()> {
    // SAFETY: a fresh anonymous mapping that replaces nothing.
    let at = unsafe {
        libc::mmap(
            start as *mut libc::c_void,
            length as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            sharing | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if at as u64 != start {
        return None;
    }
    super::own::add(start, length as usize);
    // SAFETY: our own mapping. Advice only: large pages waste memory where cells are sparse, and
    // nobody wants terabytes in a core file.
    unsafe {
        libc::madvise(at, length as usize, libc::MADV_NOHUGEPAGE);
        libc::madvise(at, length as usize, libc::MADV_DONTDUMP);
    }
    Some(())
}

/// Reserves zeroed memory at exactly this place that a forked child does not have. A page that is read before it is written
/// is the one that is written then; of private memory it would be another one, and all processors would have to be told.
pub fn reserve_shared(start: u64, length: u64) -> Option<()> {
    reserve_as(start, length, libc::MAP_SHARED)?;
    // SAFETY: our own mapping, which nobody needs in a child that has not made it anew.
    unsafe { libc::madvise(start as *mut libc::c_void, length as usize, libc::MADV_DONTFORK) };
    Some(())
}

/// Makes such memory zero again and gives its pages back.
pub fn discard_shared(start: u64, length: u64) {
    // SAFETY: our own reservation, in which every value means something, zero that nothing is known.
    unsafe { libc::madvise(start as *mut libc::c_void, length as usize, libc::MADV_REMOVE) };
}

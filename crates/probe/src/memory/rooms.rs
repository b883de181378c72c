//! Rooms: where members of the crowd that share a granule have their cells ([`raddle_analyse::fast::crowd`]).
//!
//! Members are taken together in groups, so that memory is touched for those that there are. In the part of a group, each member has
//! its cells of many rooms side by side. Who goes through memory finds them as in planes then: with few pages, and the processor
//! knows which line it will want next; nobody takes a line from another. More of them side by side would not be better: who looks at
//! all cells of a room looks at a line of every member, and at fewer pages if a page has those of several.

use crate::memory::shadow::{CHUNK, PAGE, discard_shared, reserve_shared};
use raddle_analyse::fast::cell::{GRANULE, LINE};
use raddle_analyse::fast::crowd::{MEMBERS, MIXED};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Members of a group.
const GROUP: u64 = 64;
/// Rooms in which a member's cells are side by side.
const TOGETHER: u64 = 128;
/// Bytes of these cells, and of those of a group.
const STRETCH: u64 = TOGETHER * 8;
const TOGETHER_SIZE: u64 = GROUP * STRETCH;
/// One more than the last room.
const ROOMS: u64 = 1 << 23;
/// Bytes of the part of a group. Where a room is in it fits the lower half of a word, and changes no other bits.
const GROUP_SIZE: u64 = ROOMS / TOGETHER * TOGETHER_SIZE;
const _: () = assert!(GROUP_SIZE == 1 << 32);
/// Bytes of all rooms.
const SIZE: u64 = GROUP_SIZE * (MEMBERS as u64).div_ceil(GROUP);

/// All rooms. There is no room zero.
#[derive(Debug)]
pub struct Rooms {
    start: u64,
    reserved: AtomicBool,
    /// Groups of members that there have been.
    groups: AtomicUsize,
    pool: Mutex<Pool>,
}

/// Which of them are in use.
#[derive(Debug, Default)]
struct Pool {
    /// The last that was ever opened.
    last: u32,
    free: Vec<u32>,
    /// How many granules have one, by the number of the chunk of memory they are in.
    chunks: BTreeMap<u64, u32>,
}

impl Pool {
    /// A granule has a room from here on.
    fn opened(&mut self, granule: u64) {
        *self.chunks.entry(granule * GRANULE / CHUNK).or_default() += 1;
    }

    /// It has none any more.
    fn closed(&mut self, room: u32, granule: u64) {
        self.free.push(room);
        if let Entry::Occupied(mut chunk) = self.chunks.entry(granule * GRANULE / CHUNK) {
            *chunk.get_mut() -= 1;
            if *chunk.get() == 0 {
                chunk.remove();
            }
        }
    }
}

/// What the planes hold of a granule that has a room: where that is in the part of a group, and above it what the
/// locks are like under which all was done in it. Zero where there is none.
///
/// Where a member's cell is differs from that in the number of the line, too ([`entry_offset`]): of lines with one number the
/// processor keeps a few only.
#[derive(Debug, Clone, Copy)]
struct RoomWord(u64);

impl RoomWord {
    const fn new(room: u32, alike: u32) -> RoomWord {
        let (stretch, cell) = (room as u64 / TOGETHER, room as u64 % TOGETHER);
        let offset = stretch * TOGETHER_SIZE + cell * 8;
        RoomWord((alike as u64) << u32::BITS | offset)
    }

    const fn offset(self) -> u64 {
        self.0 & u32::MAX as u64
    }

    const fn room(self) -> Option<u32> {
        let room = self.offset() / TOGETHER_SIZE * TOGETHER + self.offset() % STRETCH / 8;
        if self.0 == 0 { None } else { Some(room as u32) }
    }

    fn alike(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }
}

/// Where in room zero a member of the crowd, counted from zero, has its cell; in another one, that differs by an
/// exclusive or with the lower half of the word that names it.
pub const fn entry_offset(member: usize) -> u64 {
    let member = member as u64;
    let line = member / (PAGE / STRETCH) % (STRETCH / LINE);
    member / GROUP * GROUP_SIZE + member % GROUP * STRETCH + line * LINE
}

impl Rooms {
    /// Here, when they are first needed.
    pub fn new(start: u64) -> Rooms {
        let (reserved, groups) = (AtomicBool::new(false), AtomicUsize::new(0));
        Rooms { start, reserved, groups, pool: Mutex::default() }
    }

    /// Where room zero is.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// From now on they may be used.
    pub fn reserve(&self) -> Option<()> {
        if !self.reserved.load(Ordering::Acquire) {
            reserve_shared(self.start, SIZE)?;
            self.reserved.store(true, Ordering::Release);
        }
        Some(())
    }

    /// In a forked child, before it does anything: they are there again, with nobody in them.
    pub fn forked(&self) {
        if self.reserved.load(Ordering::Acquire) {
            let again = reserve_shared(self.start, SIZE);
            assert!(again.is_some(), "no address space for shadow memory");
        }
    }

    /// The same reservation, all forgotten, for a forked child.
    pub fn inherit(&self) -> Rooms {
        let reserved = AtomicBool::new(self.reserved.load(Ordering::Acquire));
        Rooms { reserved, ..Rooms::new(self.start) }
    }

    /// There is such a member of the crowd, counted from zero.
    pub fn note_member(&self, member: usize) {
        let groups = member / GROUP as usize + 1;
        if self.groups.load(Ordering::Acquire) < groups {
            self.groups.fetch_max(groups, Ordering::AcqRel);
        }
    }

    /// A member's cell in a room.
    pub fn entry(&self, room: u32, member: usize) -> &AtomicU64 {
        debug_assert!(u64::from(room) < ROOMS && member < MEMBERS);
        let at = (self.start + entry_offset(member)) ^ RoomWord::new(room, 0).offset();
        // SAFETY: rooms and members are numbered within the reservation, which is made before there is any
        // member; aligned.
        unsafe { AtomicU64::from_ptr(at as *mut u64) }
    }

    /// The number of the room that `word` names, if any.
    pub fn named(&self, word: &AtomicU64) -> Option<u32> {
        RoomWord(word.load(Ordering::Acquire)).room()
    }

    /// The same for the word of a granule; opens one and names it if there is none. Nothing if there are no more.
    pub fn open(&self, word: &AtomicU64, granule: u64) -> Option<u32> {
        if let Some(room) = self.named(word) {
            return Some(room);
        }
        let mut pool = self.pool();
        if let Some(room) = self.named(word) {
            return Some(room);
        }
        let room = match pool.free.pop() {
            Some(room) => room,
            None if u64::from(pool.last) + 1 < ROOMS => {
                pool.last += 1;
                pool.last
            }
            None => return None,
        };
        word.store(RoomWord::new(room, 0).0, Ordering::Release);
        pool.opened(granule);
        Some(room)
    }

    /// What the locks are like under which all was done in the room that `word` names.
    pub fn alike(&self, word: &AtomicU64) -> u32 {
        RoomWord(word.load(Ordering::Acquire)).alike()
    }

    /// Sets it if it is still zero. Gives what it was.
    pub fn begin(&self, word: &AtomicU64, alike: u32) -> u32 {
        let begun = |was: u64| match (RoomWord(was).room(), RoomWord(was).alike()) {
            (Some(room), 0) => Some(RoomWord::new(room, alike).0),
            _ => None,
        };
        let was = word.fetch_update(Ordering::SeqCst, Ordering::Acquire, begun);
        RoomWord(was.unwrap_or_else(|was| was)).alike()
    }

    /// They are not alike.
    pub fn mix(&self, word: &AtomicU64) {
        let mixed = |was: u64| RoomWord(was).room().map(|room| RoomWord::new(room, MIXED).0);
        // If it is closed meanwhile, there is nothing left that could be mixed.
        let _ = word.fetch_update(Ordering::SeqCst, Ordering::Acquire, mixed);
    }

    /// The room that the word of a granule names, if any, is closed: nobody has anything in it any more.
    pub fn close(&self, word: &AtomicU64, granule: u64) {
        if let Some(room) = RoomWord(word.swap(0, Ordering::AcqRel)).room() {
            for member in 0..self.groups.load(Ordering::Acquire) * GROUP as usize {
                self.entry(room, member).store(0, Ordering::Relaxed);
            }
            self.pool().closed(room, granule);
        }
    }

    /// Of these chunks of memory, those that have granules with rooms.
    pub fn chunks(&self, of: Range<u64>) -> Vec<u64> {
        self.pool().chunks.range(of).map(|(chunk, _)| *chunk).collect()
    }

    /// Forgets all.
    pub fn clear(&self) {
        if self.reserved.load(Ordering::Acquire) {
            let mut pool = self.pool();
            *pool = Pool::default();
            discard_shared(self.start, SIZE);
        }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(|e| e.into_inner())
    }
}

// What the assembly relies on; the compiler is asked.
const _: () = {
    let mut room = 1;
    while room < ROOMS as u32 {
        assert!(matches!(RoomWord::new(room, MIXED).room(), Some(same) if same == room));
        room += 1021;
    }
    // The members' cells of one room are in lines of all numbers, each in the member's own stretch.
    let (mut numbers, mut member) = (0u64, 0);
    while member < GROUP {
        let at = entry_offset(member as usize) ^ RoomWord::new(77, 0).offset();
        assert!(at.is_multiple_of(8) && at / STRETCH == member);
        numbers |= 1 << (at / LINE % 64);
        member += 1;
    }
    assert!(numbers == u64::MAX);
};

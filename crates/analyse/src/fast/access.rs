//! What is remembered of an access beside its time, interned: a number in four bytes stands for it.
//!
//! Descriptions and lock sets are never forgotten; there are as many as the program has distinct
//! combinations of instruction and call stack, and of locks held at once, not as it has accesses.

use crate::fast::cell::{Bytes, GRANULE};
use crate::touch::Kind;
use raddle_model::lockset::{HeldLock, LockSet};
use raddle_model::{Address, LockMode, Place, StackId};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// From this highest digit on, ids stand for strips. It is the highest byte of a cell, too.
pub const STRIP_DIGIT: u32 = 200;

/// Stands for a [`Record`], or for a strip; zero for none. Above its lowest four bits, no byte is 0xff: see
/// [`crate::fast::cell`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AccessId(pub u32);

impl AccessId {
    /// The largest.
    pub const LAST: AccessId = AccessId(0xfef_efef);

    /// Number `n`, counted from one; none if there are not so many.
    pub fn numbered(n: u32) -> AccessId {
        AccessId::spread(n, STRIP_DIGIT).unwrap_or_default()
    }

    /// Strip `n`, counted from zero; nothing if there are not so many.
    pub fn of_strip(n: u32) -> Option<AccessId> {
        AccessId::spread(n.checked_add((STRIP_DIGIT * 255 * 255) << 4)?, 255)
    }

    /// Number `n` without bytes of 0xff, its highest digit below `end`.
    fn spread(n: u32, end: u32) -> Option<AccessId> {
        let (low, high) = (n & 0xf, n >> 4);
        let digits = [high % 255, high / 255 % 255, high / (255 * 255)];
        let spread = AccessId(low | digits[0] << 4 | digits[1] << 12 | digits[2] << 20);
        (digits[2] < end).then_some(spread)
    }

    /// Does it stand for no record, but for the strip of its granule ([`crate::fast::strips`])?
    #[inline]
    pub fn is_strip(self) -> bool {
        self.0 >> 20 >= STRIP_DIGIT
    }

    /// How far from the first strip its strip is: as many as there are numbers in between, of which some are left out.
    #[inline]
    pub fn strips_before(self) -> u32 {
        self.0 - (STRIP_DIGIT << 20)
    }

    /// Which number it is.
    #[inline]
    fn number(self) -> u32 {
        let digit = |at: u32| self.0 >> at & 0xff;
        (digit(4) + 255 * digit(12) + 255 * 255 * digit(20)) << 4 | self.0 & 0xf
    }
}

/// Stands for a lock set, with where its locks were taken. Zero is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LockSetId(pub u32);

/// An access, without its time and address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Description {
    /// How memory is touched.
    pub kind: Kind,
    /// Bytes the whole access touched.
    pub size: u64,
    /// The instruction.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
}

/// What an [`AccessId`] stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Record {
    /// One access.
    One(Description),
    /// Several of one tick, each of which touched other bytes of a granule.
    Several(Vec<(Bytes, AccessId)>),
}

/// All descriptions. Looking one up takes no lock.
#[derive(Debug)]
pub struct Accesses {
    records: boxcar::Vec<Record>,
    ids: Mutex<FxHashMap<Record, AccessId>>,
    /// Numbers of [`Record::Several`] that were asked for lately, by a hash of their parts.
    merged: Box<[AtomicU32]>,
    /// How many combinations there are, and how many are many.
    several: AtomicUsize,
    many: usize,
}

/// How many numbers.
const MERGED: usize = 1 << 12;

/// So many combinations of accesses are remembered before it is said that they are ever new. Structures of small fields have some
/// hundred, and so has a compressor that writes bytes at five places (737): with 256 here it split all that it wrote, in Rust, 736,000
/// granules for 4 MB, instead of coming there 13,000 times. xz, which goes on making new ones, has 11,000.
const MANY: usize = 1 << 12;

impl Default for Accesses {
    fn default() -> Accesses {
        let merged = (0..MERGED).map(|_| AtomicU32::new(0)).collect();
        let (records, ids) = (boxcar::Vec::new(), Mutex::default());
        Accesses { records, ids, merged, several: AtomicUsize::new(0), many: MANY }
    }
}

impl Accesses {
    /// The number that stands for this.
    pub fn intern(&self, record: Record) -> AccessId {
        let mut ids = self.ids.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(id) = ids.get(&record) {
            return *id;
        }
        if let Record::Several(_) = record {
            self.several.fetch_add(1, Ordering::Relaxed);
        }
        let number = u32::try_from(self.records.push(record.clone()) + 1).unwrap_or(u32::MAX);
        let id = AccessId::numbered(number);
        ids.insert(record, id);
        id
    }

    /// From how many combinations on they are many.
    pub(super) fn are_many_from(&mut self, many: usize) {
        self.many = many;
    }

    /// Is this a combination of accesses, of which there are so many that with one more access it would be a new one?
    pub fn is_ever_new(&self, id: AccessId) -> bool {
        self.several.load(Ordering::Relaxed) >= self.many
            && matches!(self.get(id), Some(Record::Several(_)))
    }

    /// What a number stands for.
    #[inline]
    pub fn get(&self, id: AccessId) -> Option<&Record> {
        self.records.get((id.number() as usize).checked_sub(1)?)
    }

    /// `new` at `bytes`, and what `old` says of the `old_bytes` that are left.
    pub fn merge(&self, old: AccessId, old_bytes: Bytes, new: AccessId, bytes: Bytes) -> AccessId {
        if old_bytes & !bytes == 0 || old == new {
            return new;
        }
        // No more than a granule has bytes.
        let mut room = [(0, AccessId(0)); GRANULE as usize];
        room[0] = (bytes, new);
        let mut length = 1;
        self.each(old, old_bytes & !bytes, |part, one| {
            room[length] = (part, one);
            length += 1;
        });
        let parts = &mut room[..length];
        parts.sort_unstable_by_key(|(bytes, _)| *bytes);
        let mut hasher = FxHasher::default();
        parts.hash(&mut hasher);
        let lately = &self.merged[(hasher.finish() >> 32) as usize % MERGED];
        let id = AccessId(lately.load(Ordering::Acquire));
        match self.get(id) {
            Some(Record::Several(known)) if known == parts => id,
            _ => {
                let id = self.intern(Record::Several(parts.to_vec()));
                lately.store(id.0, Ordering::Release);
                id
            }
        }
    }

    /// Calls `visit` for each access among the `bytes` that `id` speaks of.
    #[inline]
    pub fn each(&self, id: AccessId, bytes: Bytes, mut visit: impl FnMut(Bytes, AccessId)) {
        match self.get(id) {
            None | Some(Record::One(_)) => visit(bytes, id),
            Some(Record::Several(parts)) => {
                for (part, one) in parts.iter().filter(|(part, _)| part & bytes != 0) {
                    visit(part & bytes, *one);
                }
            }
        }
    }

    /// The description, if `id` stands for one.
    #[inline]
    pub fn one(&self, id: AccessId) -> Option<&Description> {
        match self.get(id) {
            Some(Record::One(description)) => Some(description),
            _ => None,
        }
    }
}

/// A lock set known by number.
#[derive(Debug)]
struct Known {
    set: Arc<LockSet>,
    /// Equal for sets of the same locks and sides, wherever they were taken.
    alike: u32,
    /// Holds some lock exclusively, and so excludes its like.
    exclusive: bool,
}

/// All lock sets. Looking one up takes no lock.
#[derive(Debug)]
pub struct LockSets {
    sets: boxcar::Vec<Known>,
    /// By the same numbers.
    briefs: boxcar::Vec<Brief>,
    ids: Mutex<Ids>,
}

#[derive(Debug, Default)]
struct Ids {
    exact: FxHashMap<Arc<LockSet>, LockSetId>,
    alike: FxHashMap<Vec<(u64, u32, LockMode)>, u32>,
    locks: FxHashMap<(Address, u32), u32>,
}

/// A set of one lock, in a word: its number, twice, and one more if it is held exclusively. Any other set is
/// zero. Most sets that are compared are of one lock, and there may be as many as the program has
/// locks: to look at each where it lies is to wait for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Brief(u32);

impl Brief {
    fn is_one(self) -> bool {
        self.0 != 0
    }

    fn same_lock(self, other: Brief) -> bool {
        self.0 >> 1 == other.0 >> 1
    }

    fn exclusive(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Default for LockSets {
    fn default() -> LockSets {
        let (sets, briefs) = (boxcar::Vec::new(), boxcar::Vec::new());
        let sets = LockSets { sets, briefs, ids: Mutex::default() };
        sets.intern(&Arc::new(LockSet::new()));
        sets
    }
}

impl LockSets {
    /// The number that stands for this.
    pub fn intern(&self, set: &Arc<LockSet>) -> LockSetId {
        let mut ids = self.ids.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(id) = ids.exact.get(set) {
            return *id;
        }
        let sides: Vec<_> = set.iter().map(|held| (held.lock.0, held.life, held.mode)).collect();
        let exclusive = sides.iter().any(|(.., mode)| *mode == LockMode::Exclusive);
        let next = ids.alike.len() as u32;
        let alike = *ids.alike.entry(sides).or_insert(next);
        let mut numbers = set.iter().map(|held| {
            let next = ids.locks.len() as u32 + 1;
            (*ids.locks.entry((held.lock, held.life)).or_insert(next), held.mode)
        });
        let brief = match (numbers.next(), numbers.next()) {
            (Some((lock, mode)), None) => lock << 1 | u32::from(mode == LockMode::Exclusive),
            _ => 0,
        };
        numbers.for_each(drop);
        self.briefs.push(Brief(brief));
        let id = LockSetId(self.sets.push(Known { set: Arc::clone(set), alike, exclusive }) as u32);
        ids.exact.insert(Arc::clone(set), id);
        id
    }

    /// The number of the locks that any set holds.
    pub fn count_locks(&self) -> usize {
        let ids = self.ids.lock().unwrap_or_else(|e| e.into_inner());
        let locks: FxHashSet<Address> = ids.locks.keys().map(|(lock, _)| *lock).collect();
        locks.iter().filter(|lock| **lock != LockSet::TRANSACTION).count()
    }

    /// Both, if each is a set of one lock.
    #[inline]
    fn two_of_one(&self, a: LockSetId, b: LockSetId) -> Option<(Brief, Brief)> {
        let (a, b) = (*self.briefs.get(a.0 as usize)?, *self.briefs.get(b.0 as usize)?);
        (a.is_one() && b.is_one()).then_some((a, b))
    }

    /// What a number stands for.
    #[inline]
    pub fn get(&self, id: LockSetId) -> Option<&LockSet> {
        self.sets.get(id.0 as usize).map(|known| &*known.set)
    }

    /// Which lock sets this one excludes for being alike: a number they share.
    #[inline]
    pub fn alike(&self, id: LockSetId) -> Option<u32> {
        let known = self.sets.get(id.0 as usize)?;
        known.exclusive.then_some(known.alike)
    }

    /// Is there a lock that both hold, and who writes exclusively?
    #[inline]
    pub fn protects(&self, a: LockSetId, b: LockSetId, writes: (bool, bool)) -> bool {
        if a == LockSetId::default() || b == LockSetId::default() {
            return false;
        }
        if let Some((a, b)) = self.two_of_one(a, b) {
            let fits = |held: Brief, writes: bool| held.exclusive() || !writes;
            return a.same_lock(b) && fits(a, writes.0) && fits(b, writes.1);
        }
        let (Some(a), Some(b)) = (self.sets.get(a.0 as usize), self.sets.get(b.0 as usize)) else {
            return false;
        };
        a.alike == b.alike && a.exclusive || a.set.protects(&b.set, writes)
    }

    /// Does `b` exclude whatever `a` excludes?
    #[inline]
    pub fn within(&self, a: LockSetId, b: LockSetId) -> bool {
        if a == LockSetId::default() || a == b {
            return true;
        }
        if b == LockSetId::default() {
            return false;
        }
        if let Some((a, b)) = self.two_of_one(a, b) {
            return a.same_lock(b) && (b.exclusive() || !a.exclusive());
        }
        let (Some(a), Some(b)) = (self.sets.get(a.0 as usize), self.sets.get(b.0 as usize)) else {
            return false;
        };
        a.alike == b.alike || a.set.within(&b.set)
    }
}

/// The numbers of lock sets by how they came about: each is another one with one more lock. So a set that was
/// held before is found without being made and compared as a whole.
#[derive(Debug, Default)]
pub struct Successors {
    /// How and where locks were taken, and in which of their lives, by number: many locks are taken at few
    /// places.
    takings: FxHashMap<(LockMode, Place, StackId, u32), u32>,
    /// By the set before, the lock and how it was taken.
    next: FxHashMap<(LockSetId, u32, Address), LockSetId>,
    /// By set, which others it excludes for being alike; [`UNLIKE`] for none.
    alike: Vec<u32>,
}

/// No lock set is like this.
pub const UNLIKE: u32 = u32::MAX;

/// A lock set's number, and which lock sets it excludes for being alike; [`UNLIKE`] for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// The number.
    pub id: LockSetId,
    /// See [`LockSets::alike`].
    pub alike: u32,
}

impl Successors {
    /// The number of the set of these locks, in the order in which they were taken. Of sets that are new,
    /// `fresh` is told.
    pub fn number(
        &mut self,
        sets: &LockSets,
        held: &[HeldLock],
        fresh: impl FnMut(LockSetId, Option<u32>),
    ) -> Numbered {
        let id = held.iter().fold(LockSetId::default(), |before, one| {
            let taking = self.taking(one);
            self.next(sets, before, (taking, one))
        });
        Numbered { id, alike: self.alike(sets, id, fresh) }
    }

    fn alike(
        &mut self,
        sets: &LockSets,
        id: LockSetId,
        mut fresh: impl FnMut(LockSetId, Option<u32>),
    ) -> u32 {
        let (known, number) = (self.alike.len(), id.0 as usize);
        for id in known..=number {
            let id = LockSetId(id as u32);
            let alike = sets.alike(id);
            fresh(id, alike);
            self.alike.push(alike.unwrap_or(UNLIKE));
        }
        self.alike[number]
    }

    /// Counted from one.
    fn taking(&mut self, held: &HeldLock) -> u32 {
        let next = self.takings.len() as u32 + 1;
        *self.takings.entry((held.mode, held.place, held.stack, held.life)).or_insert(next)
    }

    fn next(
        &mut self,
        sets: &LockSets,
        before: LockSetId,
        (taking, one): (u32, &HeldLock),
    ) -> LockSetId {
        *self.next.entry((before, taking, one.lock)).or_insert_with(|| {
            let mut set = sets.get(before).cloned().unwrap_or_default();
            set.insert(*one);
            sets.intern(&Arc::new(set))
        })
    }
}

//! What is remembered of an access beside its time, interned: a number in four bytes stands for it.
//!
//! Descriptions and lock sets are never forgotten; there are as many as the program has distinct
//! combinations of instruction and call stack, and of locks held at once, not as it has accesses.

use crate::fast::cell::{Bytes, GRANULE};
use crate::touch::Kind;
use raddle_model::lockset::LockSet;
use raddle_model::{LockMode, Place, StackId};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Stands for a [`Record`]; zero for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AccessId(pub u32);

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
}

/// How many of them.
const MERGED: usize = 1 << 12;

impl Default for Accesses {
    fn default() -> Accesses {
        let merged = (0..MERGED).map(|_| AtomicU32::new(0)).collect();
        Accesses { records: boxcar::Vec::new(), ids: Mutex::default(), merged }
    }
}

impl Accesses {
    /// The number that stands for this.
    pub fn intern(&self, record: Record) -> AccessId {
        let mut ids = self.ids.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(id) = ids.get(&record) {
            return *id;
        }
        let id = AccessId(self.records.push(record.clone()) as u32 + 1);
        ids.insert(record, id);
        id
    }

    /// What a number stands for.
    #[inline]
    pub fn get(&self, id: AccessId) -> Option<&Record> {
        self.records.get((id.0 as usize).checked_sub(1)?)
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
    ids: Mutex<Ids>,
}

#[derive(Debug, Default)]
struct Ids {
    exact: FxHashMap<Arc<LockSet>, LockSetId>,
    alike: FxHashMap<Vec<(u64, u32, LockMode)>, u32>,
}

impl Default for LockSets {
    fn default() -> LockSets {
        let sets = LockSets { sets: boxcar::Vec::new(), ids: Mutex::default() };
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
        let id = LockSetId(self.sets.push(Known { set: Arc::clone(set), alike, exclusive }) as u32);
        ids.exact.insert(Arc::clone(set), id);
        id
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
        let (Some(a), Some(b)) = (self.sets.get(a.0 as usize), self.sets.get(b.0 as usize)) else {
            return false;
        };
        a.alike == b.alike || a.set.within(&b.set)
    }
}

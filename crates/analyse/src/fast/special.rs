//! Locations that planes cannot hold alone.
//!
//! - *Kept* accesses: one that a newer access of its slot took the place of, but does not stand for,
//!   because the newer held a lock that the older did not. (If the older is ordered before all that
//!   every thread does from now on, it is not kept: it cannot race any more.)
//! - *Synchronisation*: locations accessed atomically. Each access to them may order threads, so none
//!   may be left out, and all they remember is here, nothing in planes.

use crate::fast::access::AccessId;
use crate::fast::cell::{Bytes, GRANULE, WHOLE, granules};
use std::collections::BTreeMap;
use std::ops::Range;

/// At least so many accesses are kept of a granule.
pub const KEPT: usize = 64;

/// One access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Whose.
    pub slot: usize,
    /// When.
    pub tick: u32,
    /// Which bytes of the granule.
    pub bytes: Bytes,
    /// What.
    pub access: AccessId,
}

/// What is known of one granule.
#[derive(Debug, Default)]
pub struct Special {
    /// Accessed atomically.
    pub synchronisation: bool,
    /// In the order in which they came here.
    pub kept: Vec<Kept>,
}

impl Special {
    /// Keeps one more, and so many at most: of more, the first goes. `stood_for` says which of the others it makes
    /// superfluous.
    pub fn keep(&mut self, new: Kept, most: usize, mut stood_for: impl FnMut(&Kept) -> bool) {
        for old in self.kept.iter_mut().filter(|old| stood_for(old)) {
            old.bytes &= !new.bytes;
        }
        self.kept.retain(|old| old.bytes != 0);
        self.kept.push(new);
        if self.kept.len() > most {
            self.kept.remove(0);
        }
    }
}

/// All of them, by granule.
#[derive(Debug, Default)]
pub struct Specials {
    granules: BTreeMap<u64, Special>,
}

impl Specials {
    /// What is known of a granule beside its cells.
    pub fn get(&self, granule: u64) -> Option<&Special> {
        self.granules.get(&granule)
    }

    /// The same, to be changed; the line must be marked.
    pub fn entry(&mut self, granule: u64) -> &mut Special {
        self.granules.entry(granule).or_default()
    }

    /// Is any of these granules for synchronisation?
    pub fn synchronise(&self, granules: Range<u64>) -> bool {
        self.granules.range(granules).any(|(_, special)| special.synchronisation)
    }

    /// Forgets these bytes.
    pub fn forget_bytes(&mut self, start: u64, end: u64) {
        let touched = start / GRANULE..end.div_ceil(GRANULE);
        let gone: Vec<u64> = self.granules.range(touched).map(|(at, _)| *at).collect();
        for granule in gone {
            let at = granule * GRANULE;
            let (_, bytes) =
                granules(at.max(start), (at + GRANULE).min(end)).next().unwrap_or((0, 0));
            let Some(special) = self.granules.get_mut(&granule) else { continue };
            for kept in &mut special.kept {
                kept.bytes &= !bytes;
            }
            special.kept.retain(|kept| kept.bytes != 0);
            if bytes == WHOLE || special.kept.is_empty() {
                self.granules.remove(&granule);
            }
        }
    }

    /// Forgets what a slot did.
    pub fn forget_slot(&mut self, slot: usize) {
        for special in self.granules.values_mut() {
            special.kept.retain(|kept| kept.slot != slot);
        }
        self.granules.retain(|_, special| special.synchronisation || !special.kept.is_empty());
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.granules.len()
    }

    /// None?
    pub fn is_empty(&self) -> bool {
        self.granules.is_empty()
    }
}

//! What reports say was looked at.

use raddle_model::{Address, Event, EventKind, Family};
use raddle_wire::log::Record;
use rustc_hash::FxHashSet;

/// See the module.
#[derive(Debug, Default)]
pub struct Tally {
    counted: Counted,
    locks: FxHashSet<Address>,
}

/// How much a detector was told.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counted {
    pub accesses: u64,
    pub synchronisations: u64,
}

impl Counted {
    /// One more event.
    pub fn note(&mut self, kind: &EventKind) {
        match kind {
            EventKind::Access { .. } | EventKind::Range { .. } => self.accesses += 1,
            _ if kind.family() == Family::Sync => self.synchronisations += 1,
            _ => {}
        }
    }
}

impl Tally {
    /// One more event.
    pub fn note(&mut self, event: &Event) {
        if let EventKind::LockAcquired { lock, .. } = event.kind {
            self.locks.insert(lock);
        }
    }

    /// What a thread was counted to do.
    pub fn add(&mut self, counted: Counted) {
        self.counted.accesses += counted.accesses;
        self.counted.synchronisations += counted.synchronisations;
    }

    /// How much was looked at. `locks`: how many, if the detector knows.
    pub fn looked(&self, locks: Option<usize>) -> Record {
        let Counted { accesses, synchronisations } = self.counted;
        let locks = locks.unwrap_or(self.locks.len()) as u64;
        Record::Looked { accesses, synchronisations, locks }
    }
}

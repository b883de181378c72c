//! Counting accesses: one inline increment per block execution and thread.
//!
//! A block runs from its first instruction to its last, so how often each of its accesses was made
//! follows from how often it was entered: one increment serves them all. (An instruction that
//! faults ends its block early; its block's later accesses are then counted once too often.)

use super::Instrumentation;
use crate::memory::Reservation;
use crate::monitor::threads;
use crate::probe::fail;
use raddle_model::{AccessKind, Place};
use raddle_wire::options::PlaceCount;
use rustc_hash::FxHashMap;

/// Blocks a process may have: 128 MiB of reserved, mostly untouched addresses per thread.
const MAX_BLOCKS: usize = 16 << 20;

/// The accesses of one block that are made whenever it runs.
#[derive(Debug, Default, Clone)]
pub struct CountedBlock {
    accesses: Vec<(Place, AccessKind)>,
}

impl CountedBlock {
    /// The block makes this access.
    pub fn add(&mut self, place: Place, kind: AccessKind) {
        self.accesses.push((place, kind));
    }

    /// Does it make none?
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty()
    }
}

impl Instrumentation {
    /// A number for a block's counter.
    pub fn add_block(&self, block: CountedBlock) -> u32 {
        let number = self.blocks.push(block);
        if number >= MAX_BLOCKS {
            fail("the target has more code than this Raddle can count");
        }
        number as u32
    }

    /// Counters for a new thread.
    pub fn new_counters(&self) -> Option<Reservation> {
        (self.counts && self.watches_memory).then(|| threads::counters(MAX_BLOCKS))
    }

    /// What a stopped thread's counters say, per place.
    pub fn counted(&self, counters: &Reservation) -> Vec<PlaceCount> {
        let mut places: FxHashMap<Place, PlaceCount> = FxHashMap::default();
        let executions = counters.words(self.blocks.count().min(MAX_BLOCKS));
        for (number, block) in self.blocks.iter() {
            let executed = executions.get(number).copied().unwrap_or(0);
            if executed == 0 {
                continue;
            }
            for (place, kind) in &block.accesses {
                let row = places.entry(*place).or_insert(PlaceCount {
                    place: *place,
                    reads: 0,
                    writes: 0,
                    atomics: 0,
                });
                match kind {
                    AccessKind::Read | AccessKind::AtomicRead | AccessKind::SpinRead => {
                        row.reads += executed;
                    }
                    AccessKind::Write | AccessKind::AtomicWrite => row.writes += executed,
                    AccessKind::AtomicUpdate => row.atomics += executed,
                }
            }
        }
        let mut rows: Vec<_> = places.into_values().collect();
        rows.sort_by_key(|r| r.place);
        rows
    }
}

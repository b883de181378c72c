//! What reports need beside the findings: heap blocks, and how much was looked at.

use crate::monitor::Monitor;
use raddle_model::finding::Finding;
use raddle_model::{Address, Event, EventKind, Family};
use raddle_wire::log::{HeapBlock, Record};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Range;

/// So many blocks are remembered after they were given back, so that a use after that can be told of
/// which block it was.
const FREED: usize = 1 << 14;

/// See the module.
#[derive(Debug, Default)]
pub struct Tally {
    /// By where they begin. Which one an address lies in is asked for a finding only.
    heap: FxHashMap<u64, HeapBlock>,
    /// Blocks given back, and their beginnings in the order in which they were.
    freed: FxHashMap<u64, HeapBlock>,
    order: VecDeque<u64>,
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
    /// Is it told of events of this kind, to know the heap?
    pub fn is_about_heap(kind: &EventKind) -> bool {
        matches!(kind, EventKind::Allocate { .. } | EventKind::Free { .. })
    }

    /// One more event.
    pub fn note(&mut self, event: &Event) {
        match event.kind {
            EventKind::Allocate { address, size } => {
                let block = HeapBlock {
                    start: address,
                    size,
                    thread: event.thread,
                    place: event.place,
                    stack: event.stack,
                };
                self.heap.insert(address.0, block);
            }
            EventKind::Free { address, .. } => self.free(address),
            EventKind::LockAcquired { lock, .. } => drop(self.locks.insert(lock)),
            _ => {}
        }
    }

    /// What a thread was counted to do.
    pub fn add(&mut self, counted: Counted) {
        self.counted.accesses += counted.accesses;
        self.counted.synchronisations += counted.synchronisations;
    }

    /// A finding, with the memory that it is about.
    pub fn record(&self, monitor: &Monitor, number: usize, finding: Finding) -> Record {
        let block = self.block_of(finding.address);
        let thread_local = monitor.thread_local(finding.address);
        Record::Finding { number: number as u32, finding, block, thread_local }
    }

    /// How much was looked at. `locks`: how many, if the detector knows.
    pub fn looked(&self, locks: Option<usize>) -> Record {
        let Counted { accesses, synchronisations } = self.counted;
        let locks = locks.unwrap_or(self.locks.len()) as u64;
        Record::Looked { accesses, synchronisations, locks }
    }

    /// A module lies here: what the loader mapped for it is no block of the program's.
    pub fn mapped(&mut self, module: Range<u64>) {
        self.heap.retain(|start, _| !module.contains(start));
        self.freed.retain(|start, _| !module.contains(start));
    }

    /// A block is no more; a stack, too, is one.
    pub fn free(&mut self, address: Address) {
        let Some(block) = self.heap.remove(&address.0) else { return };
        self.freed.insert(address.0, block);
        self.order.push_back(address.0);
        if self.order.len() > FREED
            && let Some(oldest) = self.order.pop_front()
        {
            self.freed.remove(&oldest);
        }
    }

    fn block_of(&self, address: Address) -> Option<HeapBlock> {
        let within = |blocks: &FxHashMap<u64, HeapBlock>| {
            let before = blocks.values().filter(|block| block.start <= address);
            let block = before.max_by_key(|block| block.start)?;
            (address.0 - block.start.0 < block.size).then_some(*block)
        };
        within(&self.heap).or_else(|| within(&self.freed))
    }
}

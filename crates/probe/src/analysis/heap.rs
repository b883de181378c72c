//! Blocks of the heap: where each begins, how large it is, and who asked for it.
//!
//! All threads allocate, and most of them at once: what is known of blocks lies in parts, by where they begin, each behind a lock of its own.

use crate::monitor::Monitor;
use raddle_model::finding::Finding;
use raddle_model::{Address, Event, EventKind};
use raddle_wire::log::{HeapBlock, Record};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

/// Enough that threads seldom meet.
const PARTS: usize = 64;
/// Blocks that begin in the same so many bytes, as a power of two, are in one part.
const REGION: u32 = 12;

/// So many blocks of each part are remembered after they were given back, so that a use after that can be told of
/// which block it was.
const FREED: usize = 1 << 8;

/// See the module.
#[derive(Debug)]
pub struct Heap([Part; PARTS]);

/// In lines of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Part(Mutex<Blocks>);

#[derive(Debug, Default)]
struct Blocks {
    /// By where they begin. Which one an address lies in is asked for a finding only.
    live: FxHashMap<u64, HeapBlock>,
    /// Blocks given back, and their beginnings in the order in which they were.
    freed: FxHashMap<u64, HeapBlock>,
    order: VecDeque<u64>,
    /// Sizes of stacks whose threads have ended: whose memory they are may give it back.
    stacks: FxHashMap<u64, u64>,
}

impl Default for Heap {
    fn default() -> Heap {
        Heap(std::array::from_fn(|_| Part::default()))
    }
}

impl Heap {
    /// One more event.
    pub fn note(&self, event: &Event) {
        match event.kind {
            EventKind::Allocate { address, size } => self.allocate(HeapBlock {
                start: address,
                size,
                thread: event.thread,
                place: event.place,
                stack: event.stack,
            }),
            EventKind::Free { address, .. } => self.free(address),
            _ => {}
        }
    }

    /// There is a block more.
    pub fn allocate(&self, block: HeapBlock) {
        let mut part = self.part(block.start);
        part.stacks.remove(&block.start.0);
        part.live.insert(block.start.0, block);
    }

    /// How large the block is that begins here; zero if none does.
    pub fn size_of(&self, address: Address) -> u64 {
        let part = self.part(address);
        let live = part.live.get(&address.0).map(|block| block.size);
        live.or_else(|| part.stacks.get(&address.0).copied()).unwrap_or(0)
    }

    /// The thread has ended whose stack is this block: it is not its stack any more.
    pub fn end_stack(&self, address: Address) {
        let size = self.size_of(address);
        self.free(address);
        if size != 0 {
            self.part(address).stacks.insert(address.0, size);
        }
    }

    /// A block is no more.
    pub fn free(&self, address: Address) {
        let mut part = self.part(address);
        part.stacks.remove(&address.0);
        let Some(block) = part.live.remove(&address.0) else { return };
        part.freed.insert(address.0, block);
        part.order.push_back(address.0);
        if part.order.len() > FREED
            && let Some(oldest) = part.order.pop_front()
        {
            part.freed.remove(&oldest);
        }
    }

    /// A module lies here: what the loader mapped for it is no block of the program's.
    pub fn mapped(&self, module: Range<u64>) {
        for mut part in self.parts() {
            part.live.retain(|start, _| !module.contains(start));
            part.freed.retain(|start, _| !module.contains(start));
        }
    }

    /// A finding, with the memory that it is about.
    pub fn record(&self, monitor: &Monitor, number: usize, finding: Finding) -> Record {
        let block = self.block_of(finding.address);
        let thread_local = monitor.thread_local(finding.address);
        Record::Finding { number: number as u32, finding, block, thread_local }
    }

    /// The last block that begins at an address or before it, if it reaches so far: a live one sooner than one given back.
    fn block_of(&self, address: Address) -> Option<HeapBlock> {
        let last = |blocks: &FxHashMap<u64, HeapBlock>| {
            let before = blocks.values().filter(|block| block.start <= address);
            before.max_by_key(|block| block.start).copied()
        };
        let within = |in_part: &dyn Fn(&Blocks) -> Option<HeapBlock>| {
            let lasts = self.parts().filter_map(|part| in_part(&part));
            let block = lasts.max_by_key(|block| block.start)?;
            (address.0 - block.start.0 < block.size).then_some(block)
        };
        within(&|blocks| last(&blocks.live)).or_else(|| within(&|blocks| last(&blocks.freed)))
    }

    fn part(&self, address: Address) -> MutexGuard<'_, Blocks> {
        lock(&self.0[(address.0 >> REGION) as usize % PARTS])
    }

    fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, Blocks>> {
        self.0.iter().map(lock)
    }
}

fn lock(part: &Part) -> MutexGuard<'_, Blocks> {
    part.0.lock().unwrap_or_else(|e| e.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::{Place, StackId, ThreadId};

    fn block(start: u64, size: u64) -> HeapBlock {
        let (thread, stack) = (ThreadId(1), StackId(0));
        let place = Place { module: raddle_model::ModuleId::NONE, offset: 0 };
        HeapBlock { start: Address(start), size, thread, place, stack }
    }

    #[test]
    fn blocks_are_found_in_whatever_part_they_begin() {
        let heap = Heap::default();
        heap.allocate(block(0x1000, 64));
        heap.allocate(block(0xf000, 5 << REGION));
        let found = |at| heap.block_of(Address(at)).map(|block| block.start.0);
        assert_eq!(
            [0xfff, 0x1000, 0x103f, 0x1040].map(found),
            [None, Some(0x1000), Some(0x1000), None]
        );
        assert_eq!(found(0xf000 + (3 << REGION)), Some(0xf000), "it begins in another part");
        assert_eq!(heap.size_of(Address(0x1000)), 64);
        heap.free(Address(0x1000));
        assert_eq!((heap.size_of(Address(0x1000)), found(0x1010)), (0, Some(0x1000)));
        heap.mapped(0x1000..0x2000);
        assert_eq!(found(0x1010), None);
    }

    #[test]
    fn who_gives_back_what_was_a_stack_knows_how_much_it_is() {
        let heap = Heap::default();
        heap.allocate(block(0x1000, 64));
        heap.end_stack(Address(0x1000));
        assert_eq!(heap.size_of(Address(0x1000)), 64);
        heap.free(Address(0x1000));
        assert_eq!(heap.size_of(Address(0x1000)), 0);
        assert_eq!(heap.block_of(Address(0x1000)).map(|block| block.size), Some(64));
    }

    #[test]
    fn of_what_was_given_back_the_last_are_remembered() {
        let heap = Heap::default();
        for n in 0..FREED as u64 + 1 {
            heap.allocate(block(n * 8, 8));
            heap.free(Address(n * 8));
        }
        assert_eq!(heap.block_of(Address(0)).map(|block| block.start), None);
        assert_eq!(heap.block_of(Address(8)).map(|block| block.start), Some(Address(8)));
    }
}

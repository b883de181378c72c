//! Memory for our own data.
//!
//! The engine's allocator, which `malloc` is in this library, looks through all free blocks of more than some hundred
//! bytes for one that is large enough: with the thousands that looking for loops in machine code leaves behind, that was most
//! of the time it took to start a large program. Here freed blocks are kept by size, and what is asked for gets the
//! one freed last. They are never given back: what was needed once will be needed again.
//!
//! A target may fork while another of its threads is in here. A list is whole at every moment, since a single store of
//! its head adds or takes a block; so its copy only has to be unlocked, and at worst a block is lost.

use super::kernel;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// What every block is aligned to; what needs more is the engine's business.
const ALIGNMENT: usize = 16;
/// Up to here there is a size for every 16 bytes, beyond four for every power of two.
const SMALL: usize = 128;
/// The engine has a mapping of its own for each of those that are larger, and gives it back. Those from a few KiB on it puts
/// whole where a larger one was freed, so that the next one as large needs new memory: with
/// this at 32 KiB, and larger tables for each thread, a program that starts and joins 200 threads again and again took 200 MB instead of 100.
const LARGEST: usize = 1024 * 1024;
const SIZES: usize = SMALL / ALIGNMENT + 4 * (LARGEST.ilog2() - SMALL.ilog2()) as usize;
/// How much is taken from the engine at once, at least.
const CHUNK: usize = 64 * 1024;
/// How many blocks of a size are made at once, at least.
const FEWEST: usize = 4;
/// Looks at a locked list before its holder is given the processor.
const PATIENCE: u32 = 100;

/// The allocator of this library.
#[derive(Debug)]
pub struct Blocks;

static LISTS: [List; SIZES] = [const { List::new() }; SIZES];

/// The index of the size that serves so many bytes.
const fn index_of(bytes: usize) -> usize {
    if bytes <= SMALL {
        return bytes.saturating_sub(1) / ALIGNMENT;
    }
    let power = (bytes - 1).ilog2();
    let quarter = (bytes - 1 - (1 << power)) / (1 << (power - 2));
    SMALL / ALIGNMENT + 4 * (power - SMALL.ilog2()) as usize + quarter
}

/// The size of that index.
const fn size_at(index: usize) -> usize {
    let small = SMALL / ALIGNMENT;
    if index < small {
        return (index + 1) * ALIGNMENT;
    }
    let (power, quarter) = ((index - small) / 4, (index - small) % 4);
    (SMALL << power) + (quarter + 1) * ((SMALL << power) / 4)
}

fn is_ours(layout: Layout) -> bool {
    layout.align() <= ALIGNMENT && layout.size() <= LARGEST
}

/// A free block begins with where the next one is.
#[derive(Debug)]
struct Free {
    next: Option<NonNull<Free>>,
}

/// Free blocks of one size.
struct List {
    locked: AtomicBool,
    head: UnsafeCell<Option<NonNull<Free>>>,
}

// SAFETY: the head is touched by who holds the lock only, and blocks in the list belong to nobody else.
unsafe impl Sync for List {}

impl List {
    const fn new() -> List {
        List { locked: AtomicBool::new(false), head: UnsafeCell::new(None) }
    }

    /// Does something to the head while nobody else does.
    fn with<R>(&self, change: impl FnOnce(&mut Option<NonNull<Free>>) -> R) -> R {
        let mut looks = 0u32;
        while self.locked.swap(true, Ordering::Acquire) {
            looks += 1;
            if looks.is_multiple_of(PATIENCE) {
                kernel::call(libc::SYS_sched_yield, [0; 6]);
            }
            std::hint::spin_loop();
        }
        // SAFETY: the lock is held, so this is the only reference to the head.
        let result = change(unsafe { &mut *self.head.get() });
        self.locked.store(false, Ordering::Release);
        result
    }

    fn take(&self) -> Option<NonNull<Free>> {
        self.with(|head| {
            let first = (*head)?;
            // SAFETY: a block in the list is free memory that begins with its link.
            *head = unsafe { first.as_ref() }.next;
            Some(first)
        })
    }

    /// Adds a chain of blocks.
    fn put(&self, first: NonNull<Free>, mut last: NonNull<Free>) {
        self.with(|head| {
            // SAFETY: the blocks are free memory of ours, large enough for a link and aligned.
            unsafe { last.as_mut() }.next = *head;
            *head = Some(first);
        });
    }
}

/// One block of this size, and a list of more for later.
fn make(index: usize) -> *mut u8 {
    let size = size_at(index);
    let count = (CHUNK / size).max(FEWEST);
    let Ok(layout) = Layout::from_size_align(count * size + ALIGNMENT, ALIGNMENT) else {
        return std::ptr::null_mut();
    };
    // SAFETY: the layout has a size.
    let chunk = unsafe { System.alloc(layout) };
    if chunk.is_null() {
        return chunk;
    }
    let chunk = chunk.map_addr(|address| address.next_multiple_of(ALIGNMENT));
    // SAFETY: there is room for one more step to the alignment, and for `count` blocks behind it.
    let block = |at: usize| unsafe { chunk.add(at * size) };
    let link = |at: usize| NonNull::new(block(at).cast::<Free>());
    for at in 1..count {
        let next = if at + 1 < count { link(at + 1) } else { None };
        // SAFETY: the block is ours alone, aligned, and no smaller than a link.
        unsafe { block(at).cast::<Free>().write(Free { next }) };
    }
    if let (Some(first), Some(last)) = (link(1), link(count - 1)) {
        LISTS[index].put(first, last);
    }
    block(0)
}

/// This process is a copy: whoever held a lock is not in it.
pub fn forked() {
    for list in &LISTS {
        list.locked.store(false, Ordering::Release);
    }
}

// SAFETY: blocks are handed out once until they come back, are as large as their size says, which is no less than what
// was asked for, and aligned to 16 bytes; everything else is passed on.
unsafe impl GlobalAlloc for Blocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_ours(layout) {
            // SAFETY: as promised to us.
            return unsafe { System.alloc(layout) };
        }
        let index = index_of(layout.size());
        match LISTS[index].take() {
            Some(block) => block.as_ptr().cast(),
            None => make(index),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match NonNull::new(pointer.cast::<Free>()) {
            Some(block) if is_ours(layout) => LISTS[index_of(layout.size())].put(block, block),
            // SAFETY: as promised to us.
            _ => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size with this alignment is a layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_ours(layout), is_ours(new)) {
            (true, true) if index_of(layout.size()) == index_of(size) => pointer,
            // SAFETY: as promised to us.
            (false, false) => unsafe { System.realloc(pointer, layout, size) },
            // SAFETY: the new block is another one, and both are as large as what is copied.
            _ => unsafe {
                let block = self.alloc(new);
                if !block.is_null() {
                    let kept = layout.size().min(size);
                    std::ptr::copy_nonoverlapping(pointer, block, kept);
                    self.dealloc(pointer, layout);
                }
                block
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_fits_its_size_and_wastes_less_than_a_quarter() {
        for bytes in 1..=LARGEST {
            let size = size_at(index_of(bytes));
            assert!(size >= bytes && size.is_multiple_of(ALIGNMENT), "{bytes} in {size}");
            assert!(bytes <= SMALL || size - bytes < bytes / 4 + 1, "{bytes} in {size}");
            assert!(size < bytes + ALIGNMENT || bytes > SMALL, "{bytes} in {size}");
        }
        assert_eq!(index_of(LARGEST), SIZES - 1);
        assert_eq!(size_at(SIZES - 1), LARGEST);
    }

    #[test]
    fn blocks_keep_what_is_written_while_they_grow_and_shrink() {
        let mut text: Vec<u8> = Vec::new();
        for i in 0..200_000u32 {
            text.push(i as u8);
        }
        text.truncate(100);
        text.shrink_to_fit();
        assert!(text.iter().enumerate().all(|(i, byte)| *byte == i as u8));
    }

    #[test]
    fn no_block_has_two_owners() {
        // Every thread marks what it has, hands some of it to others, and looks again.
        let threads = 4;
        let (send, receive) = std::sync::mpsc::channel::<Vec<u64>>();
        let receive = std::sync::Mutex::new(receive);
        std::thread::scope(|scope| {
            for mark in 0..threads {
                let (send, receive) = (send.clone(), &receive);
                scope.spawn(move || {
                    let mut mine: Vec<Vec<u64>> = Vec::new();
                    for i in 0..20_000usize {
                        let length = 1 + (i * 37 + mark) % 300;
                        mine.push(vec![(mark * length) as u64; length]);
                        if i % 3 == 0 {
                            let gone = mine.swap_remove(i % mine.len());
                            assert!(gone.iter().all(|word| *word == (mark * gone.len()) as u64));
                            send.send(gone).unwrap();
                        }
                        if i % 5 == 0 {
                            drop(receive.lock().unwrap().try_recv());
                        }
                        if mine.len() > 100 {
                            mine.clear();
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn large_and_well_aligned_blocks_are_passed_on() {
        let large = vec![7u8; LARGEST * 3];
        assert!(large.iter().all(|byte| *byte == 7));
        #[repr(align(256))]
        struct Aligned(u8);
        let aligned = Box::new(Aligned(1));
        assert_eq!(std::ptr::from_ref(&*aligned).addr() % 256, 0);
        assert_eq!(aligned.0, 1);
    }
}

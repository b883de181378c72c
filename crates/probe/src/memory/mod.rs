//! Raw memory: the shared log, the target's environment and memory, per-thread mappings. The unsafe
//! code of the probe that is about memory lives here.

pub mod apart;
pub mod blocks;
pub mod environment;
pub mod inherited;
pub mod kept;
pub mod kernel;
pub mod log;
pub mod mailbox;
pub mod maps;
pub mod outside;
pub mod own;
pub mod quick;
pub mod rooms;
pub mod shadow;
pub mod sockets;
pub mod strips;
pub mod target;
pub mod written;

pub use own::note as note_own;

use std::sync::Arc;

/// Zeroed memory of our own, reserved now and backed when touched. Never given back by itself.
#[derive(Debug)]
pub struct Reservation {
    start: *mut u8,
    length: usize,
    /// What it is a part of.
    _mapping: Arc<Mapping>,
}

/// What the kernel gave at once, and is given back at once: each time all processors are told.
#[derive(Debug)]
struct Mapping {
    start: u64,
    length: usize,
}

// SAFETY: plain memory without thread affinity; who accesses it when is its owner's business.
unsafe impl Send for Reservation {}

impl Reservation {
    /// Reserves `length` bytes.
    pub fn new(length: usize) -> Option<Reservation> {
        Reservation::several([length]).map(|[one]| one)
    }

    /// Reserves so many bytes each, all in one mapping.
    pub fn several<const N: usize>(lengths: [usize; N]) -> Option<[Reservation; N]> {
        let pages = |length: &usize| length.next_multiple_of(shadow::PAGE as usize);
        let mapping = Arc::new(Mapping::new(lengths.iter().map(pages).sum())?);
        let mut at = mapping.start;
        Some(lengths.map(|length| {
            let start = at as *mut u8;
            at += pages(&length) as u64;
            Reservation { start, length, _mapping: Arc::clone(&mapping) }
        }))
    }

    /// First byte.
    pub fn start(&self) -> u64 {
        self.start as u64
    }

    /// One past the last byte.
    pub fn end(&self) -> u64 {
        self.start as u64 + self.length as u64
    }

    /// Makes it all zero again. The caller's thread is the only user.
    pub fn clear(&mut self) {
        // SAFETY: our own private anonymous mapping: the kernel drops the pages, and the next touch
        // finds zeroes.
        unsafe { libc::madvise(self.start.cast(), self.length, libc::MADV_DONTNEED) };
    }

    /// Writes a value at this offset.
    pub fn write_at<T: Copy>(&mut self, offset: usize, value: T) {
        assert!(offset + size_of::<T>() <= self.length);
        // SAFETY: inside the mapping, and only we write it.
        unsafe { self.start.add(offset).cast::<T>().write_unaligned(value) }
    }

    /// The word at this offset, as the owner or inserted code of its thread has left it.
    pub fn word_at(&self, offset: usize) -> u64 {
        assert!(offset + size_of::<u64>() <= self.length);
        // SAFETY: inside the mapping, and zero at first.
        unsafe { self.start.add(offset).cast::<u64>().read_unaligned() }
    }

    /// The first `count` words. Inserted code of one thread changes them; a reader in another
    /// thread must know that thread to have stopped.
    pub fn words(&self, count: usize) -> &[u64] {
        assert!(count * 8 <= self.length);
        // SAFETY: mapped, aligned, zero at first; see above for who writes.
        unsafe { std::slice::from_raw_parts(self.start.cast(), count) }
    }
}

impl Mapping {
    fn new(length: usize) -> Option<Mapping> {
        // SAFETY: a fresh anonymous mapping wherever the kernel likes.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        own::add(start as u64, length);
        Some(Mapping { start: start as u64, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        own::remove(self.start);
        // SAFETY: our own mapping, to which nobody holds a reference any more.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.length) };
    }
}

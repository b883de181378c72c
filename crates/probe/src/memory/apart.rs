//! Mappings of a server's, apart from where the kernel puts the target's: what the target maps must
//! lie where it would without them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Below where the kernel places libraries and above where it places programs and their heaps. (A
/// detector's shadow may lie there; a server has none.)
const STUB_AT: u64 = 0x2bad_1e00_0000;
const LIST_AT: u64 = 0x2bad_1e10_0000;
/// Blocks that a list has room for: a program's way through a hundred thousand of them is long
/// enough for building the rest not to matter.
const ROOM: usize = 1 << 17;
/// `syscall`, and an undefined instruction behind it that is never run.
const STUB: [u8; 4] = [0x0f, 0x05, 0x0f, 0x0b];

/// An instruction of the target's that makes a system call when we say so.
#[derive(Debug, Clone, Copy)]
pub struct Stub(u64);

impl Stub {
    /// Puts it there.
    pub fn install() -> Option<Stub> {
        let at = map(STUB_AT, 4096, libc::MAP_PRIVATE)?;
        // SAFETY: a fresh page of our own, writable until it is made executable.
        unsafe {
            std::ptr::copy_nonoverlapping(STUB.as_ptr(), at, STUB.len());
            let executable = libc::PROT_READ | libc::PROT_EXEC;
            (libc::mprotect(at.cast(), 4096, executable) == 0).then_some(Stub(at as u64))
        }
    }

    /// Where it is.
    pub fn start(self) -> u64 {
        self.0
    }

    /// Where it comes out.
    pub fn end(self) -> u64 {
        self.0 + 2
    }
}

/// Words that a process and its copies share: who has something to add appends it, and nothing is
/// taken away.
#[derive(Debug)]
pub struct SharedList {
    /// The length, and then so many words.
    start: *mut u64,
}

// SAFETY: all access is atomic.
unsafe impl Send for SharedList {}
// SAFETY: as above.
unsafe impl Sync for SharedList {}

impl SharedList {
    /// An empty one.
    pub fn new() -> Option<SharedList> {
        let start = map(LIST_AT, (ROOM + 1) * 8, libc::MAP_SHARED)?;
        Some(SharedList { start: start.cast() })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at <= ROOM);
        // SAFETY: inside the mapping, aligned, and only accessed as an atomic.
        unsafe { AtomicU64::from_ptr(self.start.add(at)) }
    }

    /// Appends a word; when there is no room, it is lost.
    pub fn push(&self, word: u64) {
        let at = self.word(0).fetch_add(1, Ordering::AcqRel) as usize;
        if at < ROOM {
            self.word(at + 1).store(word, Ordering::Release);
        }
    }

    /// The words from the `first` on. Zero where one has been begun and not finished.
    pub fn since(&self, first: usize) -> Vec<u64> {
        let length = (self.word(0).load(Ordering::Acquire) as usize).min(ROOM);
        (first..length).map(|at| self.word(at + 1).load(Ordering::Acquire)).collect()
    }
}

/// Fresh memory at this very address.
fn map(at: u64, length: usize, sharing: i32) -> Option<*mut u8> {
    let flags = sharing | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: nothing that is mapped is replaced.
    let got = unsafe {
        libc::mmap(at as *mut _, length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if got as u64 != at {
        return None;
    }
    super::own::add(at, length);
    Some(got.cast())
}

//! Atomic accesses as synchronisation, byte by byte, in both orders: who comes first at an atomic
//! variable orders what follows, and no lock set knows of it.
//!
//! An atomic write releases to its bytes, an atomic read acquires from them, an atomic update (a
//! `lock` instruction, `xchg`) does both. Reads and writes are known to be atomic from debug
//! information (atomics rule 2 of the design); on x86-64 they are plain `mov` instructions.
//!
//! Bytes that an atomic update has touched are a *synchronisation variable* until freed (rule 1),
//! also without debug information: a plain read of them acquires, and a plain write releases,
//! because an acquire load and a release store look like that (the unlocking of most hand-written
//! spin locks). The write is still reported as mixed with the atomic accesses, but the data that
//! such a variable guards is not.
//!
//! A write begins anew: who reads it comes after its writer, not after those whose value it
//! replaced. An update keeps what was there (C++'s release sequence).

use super::Clocks;
use super::thread::Threads;
use raddle_model::ThreadId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A byte that was accessed atomically.
#[derive(Debug)]
struct Variable {
    /// What its last writer did before; the bytes of one write share it.
    clocks: Arc<Clocks>,
    /// By an update: a synchronisation variable.
    updated: bool,
}

/// All such bytes.
#[derive(Debug)]
pub(super) struct Atomics {
    /// Rule 1 applies.
    lock_touched: bool,
    bytes: BTreeMap<u64, Variable>,
}

impl Atomics {
    pub(super) fn new(lock_touched: bool) -> Atomics {
        Atomics { lock_touched, bytes: BTreeMap::new() }
    }

    /// Has an atomic update touched any of these bytes?
    pub(super) fn updated(&self, bytes: Range<u64>) -> bool {
        self.bytes.range(bytes).any(|(_, variable)| variable.updated)
    }

    /// `bytes` in parts, each all or not at all touched by atomic updates.
    pub(super) fn parts(&self, bytes: Range<u64>) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        let mut done = bytes.start;
        for (&at, _) in self.bytes.range(bytes.clone()).filter(|(_, v)| v.updated) {
            match parts.last_mut() {
                Some(touched) if touched.end == at => touched.end += 1,
                _ => {
                    if done < at {
                        parts.push(done..at);
                    }
                    parts.push(at..at + 1);
                }
            }
            done = at + 1;
        }
        if done < bytes.end {
            parts.push(done..bytes.end);
        }
        parts
    }

    pub(super) fn forget(&mut self, bytes: &Range<u64>) {
        let gone: Vec<u64> = self.bytes.range(bytes.clone()).map(|(at, _)| *at).collect();
        for at in gone {
            self.bytes.remove(&at);
        }
    }

    pub(super) fn update(&mut self, threads: &mut Threads, thread: ThreadId, bytes: Range<u64>) {
        self.acquire(threads, thread, bytes.clone(), false);
        let clocks = Arc::new(threads.publish(thread));
        for at in bytes {
            self.bytes.insert(at, Variable { clocks: Arc::clone(&clocks), updated: true });
        }
    }

    pub(super) fn read(&mut self, threads: &mut Threads, thread: ThreadId, bytes: Range<u64>) {
        self.acquire(threads, thread, bytes, false);
    }

    pub(super) fn write(&mut self, threads: &mut Threads, thread: ThreadId, bytes: Range<u64>) {
        let clocks = Arc::new(threads.publish(thread));
        for at in bytes {
            let updated = self.bytes.get(&at).is_some_and(|variable| variable.updated);
            self.bytes.insert(at, Variable { clocks: Arc::clone(&clocks), updated });
        }
    }

    pub(super) fn plain_read(
        &mut self,
        threads: &mut Threads,
        thread: ThreadId,
        bytes: Range<u64>,
    ) {
        if self.lock_touched {
            self.acquire(threads, thread, bytes, true);
        }
    }

    pub(super) fn plain_write(
        &mut self,
        threads: &mut Threads,
        thread: ThreadId,
        bytes: Range<u64>,
    ) {
        if self.lock_touched && self.updated(bytes.clone()) {
            let clocks = Arc::new(threads.publish(thread));
            for (_, variable) in self.bytes.range_mut(bytes).filter(|(_, v)| v.updated) {
                variable.clocks = Arc::clone(&clocks);
            }
        }
    }

    fn acquire(
        &self,
        threads: &mut Threads,
        thread: ThreadId,
        bytes: Range<u64>,
        updated_only: bool,
    ) {
        let mut last: Option<&Arc<Clocks>> = None;
        for (_, variable) in self.bytes.range(bytes).filter(|(_, v)| v.updated || !updated_only) {
            if !last.is_some_and(|last| Arc::ptr_eq(last, &variable.clocks)) {
                threads.acquire(thread, Some(&variable.clocks));
            }
            last = Some(&variable.clocks);
        }
    }
}

//! A thread's standing: its segment, its locks, and what it knows to have passed.
//!
//! Its thread reads it at every stamp; it is changed behind the detector's lock, by its thread or, when
//! a slot's ticks begin anew, by another. The fields are atomic for that; nothing depends on the
//! order in which they are seen to change.

use crate::fast::SLOTS;
use crate::fast::access::{AccessId, LockSetId, UNLIKE};
use crate::fast::cell::{Cell, WHOLE};
use crate::fast::detector::Own;
use crate::fast::protocol::Side;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// See the module. The layout is fixed, for hand-written code.
#[derive(Debug)]
#[repr(C)]
pub struct Standing {
    /// The cell of the current segment, all bytes touched, by nothing yet: what inserted code compares
    /// with.
    current: AtomicU64,
    slot: AtomicU32,
    locks: AtomicU32,
    /// Its reads (1), its writes (2) are not to be judged.
    muted: AtomicU32,
    /// The last tick of its slot that is ordered, in the weak order, before whatever any other thread does
    /// from now on.
    settled: AtomicU32,
    /// See [`crate::fast::Journal::handed`].
    handed: AtomicBool,
    /// What it touches next decides what it has come after.
    undecided: AtomicBool,
    /// By slot, the last tick that is ordered before now: in the weak order, and in the full one.
    weak: [AtomicU32; SLOTS],
    full: [AtomicU32; SLOTS],
    /// How often anything of the weak one changed.
    weak_version: AtomicU32,
    /// See [`Standing::alike`].
    alike: AtomicU32,
    /// Races of the thread wait for the end of its critical section.
    holds_back: AtomicBool,
    own: Mutex<Own>,
}

impl Default for Standing {
    fn default() -> Standing {
        Standing {
            current: AtomicU64::default(),
            slot: AtomicU32::default(),
            locks: AtomicU32::default(),
            muted: AtomicU32::default(),
            settled: AtomicU32::default(),
            handed: AtomicBool::default(),
            undecided: AtomicBool::default(),
            weak: Default::default(),
            full: Default::default(),
            weak_version: AtomicU32::default(),
            alike: AtomicU32::new(UNLIKE),
            holds_back: AtomicBool::default(),
            own: Mutex::default(),
        }
    }
}

impl Standing {
    /// See the field.
    #[inline]
    pub fn current(&self) -> u64 {
        self.current.load(Relaxed)
    }

    /// The tick of the current segment.
    #[inline]
    pub fn tick(&self) -> u32 {
        Cell(self.current.load(Relaxed)).tick()
    }

    /// Whose planes it writes.
    #[inline]
    pub fn slot(&self) -> usize {
        self.slot.load(Relaxed) as usize
    }

    /// The locks held.
    #[inline]
    pub fn locks(&self) -> LockSetId {
        LockSetId(self.locks.load(Relaxed))
    }

    /// Which lock sets those held exclude for being alike; [`UNLIKE`] if none.
    #[inline]
    pub fn alike(&self) -> u32 {
        self.alike.load(Relaxed)
    }

    /// Changes with what [`Standing::weak`] answers.
    #[inline]
    pub fn weak_version(&self) -> u32 {
        self.weak_version.load(Relaxed)
    }

    /// The last tick of a slot that is ordered before now in the weak order.
    #[inline]
    pub fn weak(&self, slot: usize) -> u32 {
        self.weak[slot].load(Relaxed)
    }

    /// The same in the full order.
    #[inline]
    pub fn full(&self, slot: usize) -> u32 {
        self.full[slot].load(Relaxed)
    }

    /// See the field. Later than this is never claimed; it may be known late.
    #[inline]
    pub fn settled(&self) -> u32 {
        self.settled.load(Relaxed)
    }

    /// Are accesses on this side not to be judged?
    #[inline]
    pub fn is_muted(&self, side: Side) -> bool {
        self.muted.load(Relaxed) & if side == Side::Read { 1 } else { 2 } != 0
    }

    /// Is the detector to be told of plain accesses ([`super::FastHybrid::touches`]) before they are
    /// judged?
    #[inline]
    pub fn is_undecided(&self) -> bool {
        self.undecided.load(Relaxed)
    }

    pub(super) fn set_undecided(&self, undecided: bool) {
        self.undecided.store(undecided, Relaxed);
    }

    pub(super) fn note_handed(&self) {
        self.handed.store(true, Relaxed);
    }

    /// Has it been noted since the last call?
    pub(super) fn take_handed(&self) -> bool {
        self.handed.load(Relaxed) && self.handed.swap(false, Relaxed)
    }

    /// The same, and it stays noted.
    pub(super) fn was_handed(&self) -> bool {
        self.handed.load(Relaxed)
    }

    /// See the field.
    pub(super) fn holds_back(&self) -> bool {
        self.holds_back.load(Relaxed)
    }

    pub(super) fn set_holds_back(&self, holds_back: bool) {
        self.holds_back.store(holds_back, Relaxed);
    }

    /// What the thread knows of itself: see [`super::detector`]'s `quick`.
    pub(super) fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn set_full(&self, slot: usize, full: u32) {
        self.full[slot].store(full, Relaxed);
    }

    pub(super) fn set_settled(&self, tick: u32) {
        self.settled.store(tick, Relaxed);
    }

    pub(super) fn mute(&self, (reads, writes): (bool, bool)) {
        self.muted.store(u32::from(reads) | u32::from(writes) << 1, Relaxed);
    }

    pub(super) fn set_alike(&self, alike: u32) {
        self.alike.store(alike, Relaxed);
    }

    pub(super) fn set(&self, slot: usize, tick: u32, locks: LockSetId) {
        self.slot.store(slot as u32, Relaxed);
        self.locks.store(locks.0, Relaxed);
        self.current.store(Cell::new(tick, WHOLE, AccessId::default()).0, Relaxed);
    }

    pub(super) fn set_known(&self, slot: usize, weak: u32, full: u32) {
        if self.weak[slot].load(Relaxed) != weak {
            self.weak[slot].store(weak, Relaxed);
            // Only ever changed behind the lock.
            self.weak_version.store(self.weak_version().wrapping_add(1), Relaxed);
        }
        self.full[slot].store(full, Relaxed);
    }
}

//! A thread's standing: its segment, its locks, and what it knows to have passed.
//!
//! Its thread reads it at every stamp; it is changed behind the detector's lock, by its thread or, when
//! a slot's ticks begin anew, by another. The fields are atomic for that; nothing depends on the
//! order in which they are seen to change.

use crate::fast::SLOTS;
use crate::fast::access::{AccessId, LockSetId, UNLIKE};
use crate::fast::cell::{Cell, WHOLE};
use crate::fast::crowd::{Crowd, MEMBERS};
use crate::fast::detector::Own;
use crate::fast::protocol::Side;
use crate::latch::Latch;
use spin::mutex::SpinMutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

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
    /// See [`Standing::member`].
    member: AtomicU32,
    crowd: OnceLock<Arc<Crowd>>,
    /// By member of the crowd, counted from one, the last tick of its slot that is ordered before now in the weak order.
    /// Of nobody's ticks (zero) all are. Absent as long as there is no crowd.
    members: OnceLock<Box<[AtomicU32]>>,
    /// Races of the thread wait for the end of its critical section.
    holds_back: AtomicBool,
    own: Latch<Own>,
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
            member: AtomicU32::default(),
            crowd: OnceLock::new(),
            members: OnceLock::new(),
            holds_back: AtomicBool::default(),
            own: Latch::default(),
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

    /// The slots that are its own, as a mask: none for a member of the crowd, to whom the others of its slot are others.
    #[inline]
    pub fn own_slots(&self) -> u32 {
        if self.is_in_crowd() { 0 } else { 1 << self.slot() }
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

    /// Is this tick of a slot ordered before now in the weak order?
    #[inline]
    pub fn knows(&self, slot: usize, tick: u32) -> bool {
        tick <= self.weak(slot) || slot == self.slot() && !self.is_in_crowd() || {
            let crowd = self.crowd.get().filter(|crowd| crowd.slot() == slot);
            crowd.is_some_and(|crowd| tick <= self.of_member(crowd.owner(tick)))
        }
    }

    /// The last tick of a member of the crowd, counted from one, that is ordered before now in the weak order; zero
    /// for what nobody owns.
    #[inline]
    pub fn of_member(&self, member: u32) -> u32 {
        match self.members.get() {
            Some(members) => members.get(member as usize).map_or(0, |limit| limit.load(Relaxed)),
            None => 0,
        }
    }

    /// Which member of the crowd it is, counted from one; zero if it has planes of its own.
    #[inline]
    pub fn member(&self) -> u32 {
        self.member.load(Relaxed)
    }

    /// Does it share its slot with others?
    #[inline]
    pub fn is_in_crowd(&self) -> bool {
        self.member() != 0
    }

    /// The crowd, once the thread has stood anywhere.
    #[inline]
    pub fn crowd(&self) -> Option<&Arc<Crowd>> {
        self.crowd.get()
    }

    /// The same in the full order as [`Standing::weak`]. Of the crowd's slot nothing is known here.
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
    pub(super) fn own(&self) -> SpinMutexGuard<'_, Own> {
        self.own.hold()
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

    /// It is this member of the crowd, counted from one; zero for none.
    pub(super) fn set_member(&self, crowd: &Arc<Crowd>, member: u32) {
        self.crowd.get_or_init(|| Arc::clone(crowd));
        self.member.store(member, Relaxed);
    }

    /// What is known of the members, by number counted from one; of itself and of nobody it is all.
    pub(super) fn set_members(&self, known: impl Iterator<Item = u32>) {
        let nothing = || (0..=MEMBERS).map(|_| AtomicU32::new(0)).collect();
        let members: &[AtomicU32] = self.members.get_or_init(nothing);
        for (limit, known) in members[1..].iter().zip(known) {
            limit.store(known, Relaxed);
        }
        members[0].store(u32::MAX, Relaxed);
        if self.is_in_crowd()
            && let Some(own) = members.get(self.member() as usize)
        {
            own.store(u32::MAX, Relaxed);
        }
        self.weak_version.store(self.weak_version().wrapping_add(1), Relaxed);
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

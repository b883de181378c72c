//! Thread-local words that inserted code reaches as `gs:[offset]`, one instruction each.
//!
//! The engine hands out at most 64 of them to a client. They live in the engine's own thread
//! block, so neither the target's thread-local storage nor ours is involved.

use dynamorio_sys as dr;
use std::arch::asm;

/// A block of slots, the same offsets in every thread.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    pub(crate) segment: dr::reg_id_t,
    pub(crate) offset: u32,
    count: u32,
}

/// One slot, by its index in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slots {
    /// Takes `count` slots, zero in every thread. `None` when the engine has no more.
    pub fn take(count: u32) -> Option<Slots> {
        let (mut segment, mut offset) = (0, 0);
        // SAFETY: both out-pointers are valid; the call is allowed during client initialisation.
        let taken = unsafe { dr::dr_raw_tls_calloc(&mut segment, &mut offset, count, 0) };
        (taken != 0).then_some(Slots { segment, offset, count })
    }

    /// Is the segment register `gs`, as hand-written code assumes?
    pub fn uses_gs(&self) -> bool {
        u32::from(self.segment) == dr::DR_SEG_GS
    }

    /// Offset of a slot from the segment's base, for hand-written code.
    pub fn offset_of(&self, slot: Slot) -> u32 {
        debug_assert!(slot.0 < self.count);
        self.offset + 8 * slot.0
    }

    fn address(&self, slot: Slot) -> *mut u64 {
        assert!(slot.0 < self.count, "no such slot");
        // SAFETY: the engine's segment base is set for every thread that can run our code; the
        // offset was given by the engine for this many slots.
        unsafe {
            let base = dr::dr_get_dr_segment_base(self.segment).cast::<u8>();
            base.add(self.offset_of(slot) as usize).cast()
        }
    }

    /// The current thread's value.
    pub fn get(&self, slot: Slot) -> u64 {
        if !self.uses_gs() {
            // SAFETY: see `address`; only the current thread touches its slots.
            return unsafe { self.address(slot).read() };
        }
        assert!(slot.0 < self.count, "no such slot");
        let offset = u64::from(self.offset_of(slot));
        let value;
        // SAFETY: the same word by one instruction: asking for the segment's base is a system call.
        unsafe {
            asm!("mov {}, gs:[{}]", out(reg) value, in(reg) offset,
                 options(nostack, preserves_flags, readonly));
        }
        value
    }

    /// Sets the current thread's value.
    pub fn set(&self, slot: Slot, value: u64) {
        if !self.uses_gs() {
            // SAFETY: as in `get`.
            unsafe { self.address(slot).write(value) };
            return;
        }
        assert!(slot.0 < self.count, "no such slot");
        let offset = u64::from(self.offset_of(slot));
        // SAFETY: as in `get`.
        unsafe {
            asm!("mov gs:[{}], {}", in(reg) offset, in(reg) value,
                 options(nostack, preserves_flags));
        }
    }
}

/// One thread's slots, for code that uses them often and only in that thread.
#[derive(Debug)]
pub struct ThreadSlots {
    base: *mut u64,
    count: u32,
}

// SAFETY: an address of the thread's block. The owner moves with the thread's state, which other
// threads touch only when the thread has stopped for good, and then not the slots.
unsafe impl Send for ThreadSlots {}

impl ThreadSlots {
    /// The current thread's.
    pub fn current(slots: &Slots) -> ThreadSlots {
        ThreadSlots { base: slots.address(Slot(0)), count: slots.count }
    }

    /// A slot's value.
    #[inline]
    pub fn get(&self, slot: Slot) -> u64 {
        assert!(slot.0 < self.count);
        // SAFETY: inside the block; only the owning thread gets here.
        unsafe { self.base.add(slot.0 as usize).read() }
    }

    /// Sets a slot.
    #[inline]
    pub fn set(&mut self, slot: Slot, value: u64) {
        assert!(slot.0 < self.count);
        // SAFETY: as in `get`.
        unsafe { self.base.add(slot.0 as usize).write(value) }
    }
}

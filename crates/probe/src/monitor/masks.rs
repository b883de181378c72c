//! The target's signal masks, as the kernel should know them.
//!
//! The engine takes every signal itself and remembers what the program has blocked: to the kernel,
//! nothing is. But only the kernel can keep a blocked signal for `sigwait`, and give a signal for the
//! process to a thread that has not blocked it. So what the program blocks is blocked for the kernel
//! too. The engine stays right about it: a signal that never comes needs no remembering, and one that
//! comes on unblocking is found blocked, remembered, and delivered when the engine unblocks it a
//! moment later.

use super::signals::Dispositions;
use crate::memory::target;
use crate::trampoline::slot;
use raddle_dynamorio::slots::Slots;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes of the kernel's signal set.
const SET_SIZE: u64 = 8;

/// `uc_sigmask` in the frame on the stack when a handler returns: after flags and link (16), the
/// stack (24) and the registers (256).
pub const MASK_IN_FRAME: u64 = 16 + 24 + 256;

/// What stays unblocked: faults are the engine's to explain, and it stops threads by two of them.
pub const NEVER_BLOCKED: u64 = of(libc::SIGSEGV)
    | of(libc::SIGBUS)
    | of(libc::SIGILL)
    | of(libc::SIGFPE)
    | of(libc::SIGTRAP)
    | of(libc::SIGSYS)
    | of(libc::SIGSTKFLT);

const fn of(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// What the process as a whole has said about its masks.
#[derive(Debug, Default)]
pub struct Masks {
    /// Signals that a `signalfd` reads: the engine feeds those descriptors, so it must get them.
    read_by_descriptor: AtomicU64,
    /// Threads that have begun and not yet set their mask.
    newborns: AtomicU32,
}

impl Masks {
    /// The program calls `rt_sigprocmask(how, set, …, size)`.
    pub fn before_change(&self, slots: &Slots, how: u64, set: u64, size: u64) {
        // What the kernel would refuse, the engine will.
        if set == 0 || size != SET_SIZE {
            return;
        }
        let Some(signals) = target::word(set) else { return };
        if let Ok(how @ (libc::SIG_BLOCK | libc::SIG_UNBLOCK | libc::SIG_SETMASK)) = how.try_into()
        {
            self.set(how, signals);
            self.grown_up(slots);
        }
    }

    /// A handler returns: the mask is what it was, or what the handler wrote there.
    pub fn before_return(&self, stack_pointer: u64) {
        if let Some(signals) = target::word(stack_pointer.wrapping_add(MASK_IN_FRAME)) {
            self.set(libc::SIG_SETMASK, signals);
        }
    }

    /// The program calls `signalfd(…, set, size)`.
    pub fn before_descriptor(&self, dispositions: &Dispositions, set: u64, size: u64) {
        let Some(signals) = (size == SET_SIZE).then(|| target::word(set)).flatten() else { return };
        self.read_by_descriptor.fetch_or(signals, Ordering::Relaxed);
        dispositions.feed(signals);
        change(libc::SIG_UNBLOCK, signals);
    }

    /// Signals that the engine feeds to descriptors.
    pub fn fed(&self) -> u64 {
        self.read_by_descriptor.load(Ordering::Relaxed)
    }

    /// The current thread was made by a C library, which makes threads with everything blocked and
    /// lets them set their mask as the first thing they do. The engine has unblocked everything: a
    /// signal that comes before that is the engine's, and `sigwait` waits for it in vain.
    pub fn newborn(&self, slots: &Slots) {
        slots.set(slot::NEWBORN, 1);
        self.newborns.fetch_add(1, Ordering::Relaxed);
    }

    /// The current thread has a mask, or ends.
    pub fn grown_up(&self, slots: &Slots) {
        if slots.get(slot::NEWBORN) != 0 {
            slots.set(slot::NEWBORN, 0);
            self.newborns.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// May a signal come that finds a thread without its mask?
    pub fn has_newborns(&self) -> bool {
        self.newborns.load(Ordering::Relaxed) != 0
    }

    /// This process is a copy with one thread.
    pub fn forked(&self, slots: &Slots) {
        slots.set(slot::NEWBORN, 0);
        self.newborns.store(0, Ordering::Relaxed);
    }

    fn set(&self, how: i32, signals: u64) {
        let not_for_the_kernel = NEVER_BLOCKED | self.fed();
        change(how, signals & !not_for_the_kernel);
    }
}

/// The kernel's mask of the current thread, changed.
fn change(how: i32, signals: u64) {
    let none = std::ptr::null_mut::<u64>();
    // SAFETY: the set is one readable word of this frame, as long as is said, and nothing is written.
    // Blocking a signal changes when it arrives and nothing else; the engine's own are left alone.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, how, std::ptr::from_ref(&signals), none, SET_SIZE);
    }
}

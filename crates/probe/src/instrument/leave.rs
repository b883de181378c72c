//! Leaving the code cache for a signal.
//!
//! A signal that strikes in the code cache is delivered when the block it strikes in has run. One that strikes while code of ours
//! runs is only noted by the engine, and delivered when its thread leaves the cache next: which a loop that makes no system
//! call need never do. So a thread that comes to us again and again after some signal has come, and has not left meanwhile, is made
//! to: what it is in is unlinked, and built anew. That is dear, because the engine unlinks all of the module.

use crate::memory::outside;
use raddle_dynamorio::process;

/// So often a thread comes to Rust before it is asked what time it is.
const ENTRIES: u32 = 16;
/// So long a signal may wait, in ticks of the processor's clock: some hundredths of a second.
const LONGEST: u64 = 1 << 27;

/// Whether a thread should leave.
#[derive(Debug, Default)]
pub struct Leave {
    /// How many signals had come when it was last here.
    come: u32,
    /// Since when one may wait for it.
    waits: Option<u64>,
    entries: u32,
}

impl Leave {
    /// The thread is outside: whatever has come is delivered now.
    pub fn has_left(&mut self) {
        (self.come, self.waits) = (outside::come(), None);
    }

    /// It has come to us from the block that has this instruction. Nothing may be locked: the engine waits for other threads
    /// that build code.
    pub fn came_from(&mut self, pc: u64) {
        if self.waits.is_some() || outside::come() != self.come {
            self.leave_if_due(pc);
        }
    }

    #[cold]
    fn leave_if_due(&mut self, pc: u64) {
        self.entries = self.entries.wrapping_add(1);
        if self.waits.is_some() && !self.entries.is_multiple_of(ENTRIES) {
            return;
        }
        let now = process::ticks();
        let since = *self.waits.get_or_insert(now);
        self.come = outside::come();
        if now.wrapping_sub(since) > LONGEST {
            self.waits = None;
            process::leave_soon(pc);
        }
    }
}

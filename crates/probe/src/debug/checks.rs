//! The bytes that inserted checks look at: one for each instruction, shared with those that happen to
//! fall on the same byte. Not zero means "look closer".

use raddle_dynamorio::process;
use std::sync::atomic::{AtomicU8, Ordering};

/// So many that a breakpoint rarely disturbs code elsewhere, and few enough to be filled for every step.
const COUNT: usize = 1 << 14;

/// The bytes.
#[derive(Debug)]
pub struct Checks {
    bytes: &'static [AtomicU8],
}

impl Checks {
    /// All zero; `None` when memory is short.
    pub fn new() -> Option<Checks> {
        process::reachable_bytes(COUNT).map(|bytes| Checks { bytes })
    }

    /// The byte of an instruction.
    pub fn of(&self, pc: u64) -> &'static AtomicU8 {
        &self.bytes[(pc ^ (pc >> 14)) as usize % COUNT]
    }

    /// Looks closer at these instructions only, or everywhere.
    pub fn set(&self, stops: impl Iterator<Item = u64>, everywhere: bool) {
        for byte in self.bytes {
            byte.store(u8::from(everywhere), Ordering::Relaxed);
        }
        for pc in stops {
            self.of(pc).store(1, Ordering::Relaxed);
        }
    }
}

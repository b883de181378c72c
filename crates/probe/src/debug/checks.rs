//! The bytes that inserted checks look at. Not zero means "look closer".
//!
//! There are two checks before every instruction. The *early* one comes before any scheduling point that
//! the instruction has, and is for steps and watched memory: what was stepped has just been done. The
//! *late* one comes right before the instruction, and is for breakpoints: gdb goes on from a breakpoint
//! by taking it away and letting its thread alone make one step, and from there the step is
//! the instruction and nothing else, with nobody's turn in between.

use raddle_dynamorio::process;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes for late checks. Instructions share them as they happen to fall: so many that a breakpoint
/// rarely slows code elsewhere.
const COUNT: usize = 1 << 14;

/// The bytes: one for all early checks, the others for late ones.
#[derive(Debug)]
pub struct Checks {
    bytes: &'static [AtomicU8],
}

impl Checks {
    /// All zero; `None` when memory is short.
    pub fn new() -> Option<Checks> {
        process::reachable_bytes(1 + COUNT).map(|bytes| Checks { bytes })
    }

    /// The byte of every early check.
    pub fn early(&self) -> &'static AtomicU8 {
        &self.bytes[0]
    }

    /// The byte of an instruction's late check.
    pub fn late(&self, pc: u64) -> &'static AtomicU8 {
        &self.bytes[1 + (pc ^ (pc >> 14)) as usize % COUNT]
    }

    /// Looks closer before all instructions, if so, and late at these.
    pub fn set(&self, everywhere: bool, stops: impl Iterator<Item = u64>) {
        self.bytes.iter().for_each(|byte| byte.store(0, Ordering::Relaxed));
        self.early().store(u8::from(everywhere), Ordering::Relaxed);
        stops.for_each(|pc| self.late(pc).store(1, Ordering::Relaxed));
    }
}

//! The stacks of hooked calls. As with accesses (see `accesses.rs`), a stack is unwound once, and from then
//! on compared: a call made again with the same stack pointer has, as a rule, the same stack, and if every
//! return address is still what it was where it was, it has. The return of a call finds the row of its entry.

use crate::memory::target;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_model::StackId;

/// More than the hooked calls of a busy loop nest.
const ROWS: usize = 1 << 8;

/// A thread's recent stacks.
#[derive(Debug, Default)]
pub struct CallStacks {
    /// Allocated when first used.
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Default)]
struct Row {
    /// The instruction, or a byte inside the call instruction.
    address: u64,
    sp: u64,
    stack: StackId,
    /// Where the return addresses were, and what they were.
    frames: Box<[(u64, u64)]>,
}

impl CallStacks {
    /// The stack at a spot, interned.
    pub fn capture(probe: &Probe, thread: &mut ThreadState, spot: Spot) -> StackId {
        if spot.sp == 0 {
            return probe.stacks.capture(probe, thread, spot);
        }
        let address = spot.pc - u64::from(spot.returns);
        let hash = (address ^ spot.sp << 20).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let number = (hash >> 40) as usize % ROWS;
        thread.find_stack(spot.sp);
        let range = spot.sp..thread.stack_region.1;
        if let Some(row) = thread.calls.rows.get(number)
            && (row.address, row.sp) == (address, spot.sp)
            && row.frames.iter().all(|(at, was)| target::stack_word(*at, &range) == Some(*was))
        {
            return row.stack;
        }
        let (stack, frames) = probe.stacks.capture_frames(probe, thread, spot);
        let rows = &mut thread.calls.rows;
        rows.resize(ROWS, Row::default());
        rows[number] = Row { address, sp: spot.sp, stack, frames };
        stack
    }
}

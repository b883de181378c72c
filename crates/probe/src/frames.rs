//! The frames of a thread's stack that are known, and how they stay right.
//!
//! To know the call stack of an access is to know its frames, and most of them are those of the access
//! before. So they are kept: outermost first, each with where its return address is, what it is, and
//! the node of [`crate::stacks`] that stands for it and all around it. What is kept is exact at every
//! moment, though seldom complete: functions that were called since are missing until somebody asks.
//!
//! - A frame is *added* when a stack is asked for: by the middle path's assembly, which follows the unwind
//!   rules of places seen before up to a frame that is known, or by unwinding.
//! - A frame is *forgotten* the moment it is left. Every return site compares the stack pointer with a slot
//!   anyway, for the sake of hooked calls; the slot holds the lower of where the innermost hooked call and
//!   where the innermost known frame will have been left. So calls cost nothing, and a return costs
//!   something only if its frame was asked for.
//! - *All* are forgotten where frames may be left without returning to a return site: before an instruction
//!   that puts the stack pointer anywhere (`longjmp`, the landing of an exception, a switch of stacks;
//!   `Decoded::moves_stack`), and when the kernel moves the thread (a signal's handler begins or returns).
//!   One store each.
//!
//! A frame that is forgotten too early is found again by unwinding. One that is forgotten too late (code that
//! returns to where no call is before, pushed by hand, as `swapcontext` does when a coroutine begins) is
//! not believed: a stack is followed from the inside out, each frame lies where the layout of the one inside
//! of it says, and only a known frame that lies exactly there, with the return address that is there now, is
//! met; those between are dropped.
//!
//! Nothing is inserted that changes this in more than one instruction. The assembly and Rust, which do, are
//! called code: the engine delivers a signal when they have come back to the code cache, so a handler finds
//! what is kept whole (and empty: see above). A forked child has a copy, of a stack that is a copy.

use crate::memory::Reservation;
use std::mem::offset_of;

/// Frames there is room for. When they are used up, the outer half is forgotten: the nodes of the inner ones
/// stand for all.
const ROOM: usize = 1 << 16;

/// Where the first frame is: not a frame, but what is below, or above, all of them.
pub const FIRST: usize = 64;

/// What assembly reads.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Header {
    /// The stack pointer at which the innermost hooked call will have returned; all ones if none.
    pub hooked: u64,
    /// Where the last frame there is room for is.
    pub limit: u64,
}

/// A frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Frame {
    /// Where its return address is.
    pub at: u64,
    pub return_address: u64,
    /// What stands for it and the frames around it.
    pub node: u32,
    unused: u32,
}

const SIZE: usize = size_of::<Frame>();
const _: () = assert!(size_of::<Header>() <= FIRST && SIZE == 24);

/// Above every stack pointer, so that nothing ever leaves it.
const NO_FRAME: Frame = Frame { at: u64::MAX - 8, return_address: 0, node: 0, unused: 0 };

impl Frame {
    /// One whose node is not known yet.
    pub fn new(at: u64, return_address: u64) -> Frame {
        Frame { at, return_address, ..Frame::default() }
    }

    /// The stack pointer when it will have been left.
    fn left(&self) -> u64 {
        self.at + 8
    }
}

/// A thread's. Which is the innermost one is in the slot `TOP`, which the owner hands in.
#[derive(Debug)]
pub struct Frames {
    memory: Reservation,
}

impl Frames {
    /// None known.
    pub fn new() -> Option<Frames> {
        let mut memory = Reservation::new(FIRST + (ROOM + 1) * SIZE)?;
        let limit = (FIRST + (ROOM - 1) * SIZE) as u64;
        memory.write_at(0, Header { hooked: u64::MAX, limit });
        memory.write_at(FIRST, NO_FRAME);
        Some(Frames { memory })
    }

    /// Where they are, for the slot `FRAMES`.
    pub fn start(&self) -> u64 {
        self.memory.start()
    }

    /// Frames up to `top`.
    pub fn count(top: u64) -> usize {
        (top as usize - FIRST) / SIZE
    }

    /// By its number, outermost first, from one on; zero is none.
    pub fn get(&self, number: usize) -> Frame {
        let word = |at: usize| self.memory.word_at(FIRST + number * SIZE + at);
        Frame {
            at: word(offset_of!(Frame, at)),
            return_address: word(offset_of!(Frame, return_address)),
            node: word(offset_of!(Frame, node)) as u32,
            unused: 0,
        }
    }

    /// The number of the frame whose return address is there.
    pub fn find(&self, top: u64, at: u64) -> Option<usize> {
        let (mut low, mut high) = (1, Frames::count(top) + 1);
        while low < high {
            let middle = low.midpoint(high);
            match self.memory.word_at(FIRST + middle * SIZE + offset_of!(Frame, at)) {
                found if found == at => return Some(middle),
                found if found > at => low = middle + 1,
                _ => high = middle,
            }
        }
        None
    }

    /// What the slot `TOP` holds when this is the innermost one.
    pub fn top(number: usize) -> u64 {
        (FIRST + number * SIZE) as u64
    }

    /// Adds one inside of `top`. The new top.
    pub fn push(&mut self, top: u64, frame: Frame) -> u64 {
        let mut count = Frames::count(top);
        if count >= ROOM - 1 {
            let kept = count / 2;
            for number in 0..kept {
                let frame = self.get(count - kept + 1 + number);
                self.memory.write_at(FIRST + (1 + number) * SIZE, frame);
            }
            count = kept;
        }
        self.memory.write_at(FIRST + (count + 1) * SIZE, frame);
        Frames::top(count + 1)
    }

    /// The innermost hooked call will have returned at this stack pointer.
    pub fn set_hooked(&mut self, hooked: u64) {
        self.memory.write_at(offset_of!(Header, hooked), hooked);
    }

    /// What the slot `PENDING` is to hold.
    pub fn pending(&self, top: u64) -> u64 {
        let hooked = self.memory.word_at(offset_of!(Header, hooked));
        self.get(Frames::count(top)).left().min(hooked)
    }
}

//! The call stack of an event, unwound with the modules' own unwind tables.
//!
//! Chosen over a maintained shadow stack by measurement (docs/architecture.md, "Stacks"): unwinding
//! costs nothing until asked, works in optimised code without frame pointers, and its rule cache
//! makes a frame a few tens of nanoseconds. Stacks are interned, so that an id in four bytes can stand for
//! one: this is how a detector keeps the stack of an earlier access.

use crate::memory::target;
use crate::probe::Probe;
use crate::thread::ThreadState;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use raddle_model::{Place, StackId};
use raddle_wire::log::Record;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Mutex, RwLock};

/// Frames kept of a stack; deeper ones are cut off at the outer end.
const MAX_FRAMES: usize = 128;

/// Where in the target's code something happened, and what unwinding starts from.
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    /// The instruction, or a byte inside the call instruction for a hooked function.
    pub place: Place,
    /// The instruction's address, or the address to return to.
    pub pc: u64,
    /// `pc` is a return address.
    pub returns: bool,
    /// Stack pointer there.
    pub sp: u64,
    /// Frame pointer there.
    pub bp: u64,
}

/// Unwind tables of all modules, and the stacks seen.
#[derive(Default)]
pub struct Stacks {
    unwinder: RwLock<UnwinderX86_64<Vec<u8>>>,
    interned: Mutex<FxHashMap<Box<[u64]>, StackId>>,
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stacks")
    }
}

/// A thread's unwinding cache.
pub struct ThreadStacks(CacheX86_64);

impl Default for ThreadStacks {
    fn default() -> Self {
        ThreadStacks(CacheX86_64::new())
    }
}

impl std::fmt::Debug for ThreadStacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ThreadStacks")
    }
}

/// A module's unwind table, copied, so that unmapping the module cannot pull it from under us.
#[derive(Debug)]
pub struct UnwindTable {
    /// `.eh_frame_hdr` and the address it is mapped at.
    pub header: (u64, Vec<u8>),
    /// `.eh_frame` and the address it is mapped at.
    pub frames: (u64, Vec<u8>),
}

impl Stacks {
    /// Adds a module mapped at `range`.
    pub fn add_module(&self, range: Range<u64>, table: UnwindTable) {
        // Addresses of sections are given as mapped, so the base is the same on both sides.
        let sections = ExplicitModuleSectionInfo {
            base_svma: range.start,
            text_svma: Some(range.clone()),
            eh_frame_hdr_svma: Some(span(&table.header)),
            eh_frame_hdr: Some(table.header.1),
            eh_frame_svma: Some(span(&table.frames)),
            eh_frame: Some(table.frames.1),
            ..Default::default()
        };
        let module = Module::new(String::new(), range.clone(), range.start, sections);
        self.unwinder.write().unwrap_or_else(|e| e.into_inner()).add_module(module);
    }

    /// Forgets a module.
    pub fn remove_module(&self, start: u64) {
        self.unwinder.write().unwrap_or_else(|e| e.into_inner()).remove_module(start);
    }

    /// The stack at `spot`, interned; a new one is written to the log first.
    pub fn capture(&self, probe: &Probe, thread: &mut ThreadState, spot: Spot) -> StackId {
        let mut addresses = Vec::with_capacity(32);
        thread.find_stack(spot.sp);
        let stack = spot.sp..thread.stack_region.1;
        self.unwind(&mut thread.stacks.0, spot, stack, &mut addresses);
        let mut interned = self.interned.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(id) = interned.get(addresses.as_slice()) {
            return *id;
        }
        let id = StackId(interned.len() as u32 + 1);
        interned.insert(addresses.clone().into_boxed_slice(), id);
        drop(interned);
        let places = std::iter::once(spot.place)
            .chain(addresses[1..].iter().map(|a| probe.modules.place_of(*a)));
        thread.write(&Record::Stack { id, frames: places.collect() });
        id
    }

    /// The calls that led to `spot`, innermost first: the addresses they return to.
    pub fn callers(&self, thread: &mut ThreadState, spot: Spot) -> Vec<u64> {
        let mut addresses = Vec::with_capacity(32);
        thread.find_stack(spot.sp);
        let stack = spot.sp..thread.stack_region.1;
        self.unwind(&mut thread.stacks.0, spot, stack, &mut addresses);
        addresses.remove(0);
        addresses
    }

    /// Forgets which stacks were written: the log is another one.
    pub fn forget(&self) {
        self.interned.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }

    fn unwind(&self, cache: &mut CacheX86_64, spot: Spot, stack: Range<u64>, into: &mut Vec<u64>) {
        let unwinder = self.unwinder.read().unwrap_or_else(|e| e.into_inner());
        let mut registers = UnwindRegsX86_64::new(spot.pc, spot.sp, spot.bp);
        // A call that returns to an instruction is not that instruction.
        let first = spot.pc - u64::from(spot.returns);
        let mut at = if spot.returns {
            match FrameAddress::from_return_address(spot.pc) {
                Some(at) => at,
                None => return into.push(first),
            }
        } else {
            FrameAddress::from_instruction_pointer(spot.pc)
        };
        into.push(first);
        let mut read = |address| target::stack_word(address, &stack).ok_or(());
        while into.len() < MAX_FRAMES {
            match unwinder.unwind_frame(at, &mut registers, cache, &mut read) {
                Ok(Some(return_address)) => {
                    into.push(return_address);
                    match FrameAddress::from_return_address(return_address) {
                        Some(next) => at = next,
                        None => return,
                    }
                }
                Ok(None) | Err(_) => return,
            }
        }
    }
}

fn span(section: &(u64, Vec<u8>)) -> Range<u64> {
    section.0..section.0 + section.1.len() as u64
}

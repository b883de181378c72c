//! The call stack of an event, unwound with the modules' own unwind tables.
//!
//! Chosen over a maintained shadow stack by measurement (docs/architecture.md, "Stacks"): unwinding
//! costs nothing until asked, works in optimised code without frame pointers, and its rule cache
//! makes a frame a few tens of nanoseconds. Where the outer frames are still those of the stack taken
//! before, they are compared instead of unwound.
//!
//! Stacks are interned as paths of one tree, so that an id in four bytes can stand for one and a
//! recursive program's many stacks cost a node each: this is how a detector keeps the stack of
//! an earlier access. The command is told of a stack when something it is told refers to it.

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
    tree: Mutex<Tree>,
}

/// All stacks: a node is a frame, and stands for itself and the frames around it.
#[derive(Debug, Default)]
struct Tree {
    /// By the node around it and the address.
    index: FxHashMap<(u32, u64), u32>,
    /// Node n is at n - 1.
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    /// The node around it; zero for none.
    outer: u32,
    place: Place,
    /// The command knows it as a stack.
    told: bool,
}

impl Tree {
    fn node(&mut self, outer: u32, address: u64, place: impl FnOnce() -> Place) -> u32 {
        *self.index.entry((outer, address)).or_insert_with(|| {
            self.nodes.push(Node { outer, place: place(), told: false });
            self.nodes.len() as u32
        })
    }

    fn places(&self, mut node: u32) -> Vec<Place> {
        let mut places = Vec::new();
        while let Some(at) = (node as usize).checked_sub(1).and_then(|at| self.nodes.get(at)) {
            places.push(at.place);
            node = at.outer;
        }
        places
    }
}

/// A frame of the stack taken last.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Where its return address is.
    at: u64,
    return_address: u64,
    node: u32,
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stacks")
    }
}

/// A thread's unwinding cache.
pub struct ThreadStacks {
    rules: CacheX86_64,
    /// The stack taken last, innermost frame first.
    last: Vec<Frame>,
    fresh: Vec<Frame>,
}

impl Default for ThreadStacks {
    fn default() -> Self {
        ThreadStacks { rules: CacheX86_64::new(), last: Vec::new(), fresh: Vec::new() }
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

    /// The stack at `spot`, interned.
    pub fn capture(&self, probe: &Probe, thread: &mut ThreadState, spot: Spot) -> StackId {
        let stack = stack_of(thread, spot);
        let ThreadStacks { rules, last, fresh } = &mut thread.stacks;
        fresh.clear();
        let known = self.unwind(rules, spot, &stack, last, fresh);
        let mut tree = self.tree.lock().unwrap_or_else(|e| e.into_inner());
        let mut outer = last.get(known).map_or(0, |frame| frame.node);
        for frame in fresh.iter_mut().rev() {
            let address = frame.return_address;
            outer = tree.node(outer, address, || probe.modules.place_of(address));
            frame.node = outer;
        }
        last.splice(..known, fresh.drain(..));
        // In a deep recursion the outermost frames are taken to stay: to look at all of them each time
        // would make it a quadratic one.
        last.truncate(MAX_FRAMES);
        let first = spot.pc - u64::from(spot.returns);
        StackId(tree.node(outer, first, || spot.place))
    }

    /// The same, and the command knows it.
    pub fn capture_and_tell(&self, probe: &Probe, thread: &mut ThreadState, spot: Spot) -> StackId {
        let stack = self.capture(probe, thread, spot);
        self.tell(thread, stack);
        stack
    }

    /// The same, with where the return addresses are and what they are: as long as they stay, the
    /// stack at this spot is this one.
    pub fn capture_frames(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
    ) -> (StackId, Box<[(u64, u64)]>) {
        let stack = self.capture(probe, thread, spot);
        let frames = thread.stacks.last.iter().map(|frame| (frame.at, frame.return_address));
        (stack, frames.collect())
    }

    /// Makes sure that the command knows a stack.
    pub fn tell(&self, thread: &mut ThreadState, id: StackId) {
        let mut tree = self.tree.lock().unwrap_or_else(|e| e.into_inner());
        let node = (id.0 as usize).checked_sub(1).and_then(|at| tree.nodes.get_mut(at));
        if node.is_none_or(|node| std::mem::replace(&mut node.told, true)) {
            return;
        }
        let frames = tree.places(id.0);
        drop(tree);
        thread.write(&Record::Stack { id, frames });
    }

    /// The calls that led to `spot`, innermost first: the addresses they return to.
    pub fn callers(&self, thread: &mut ThreadState, spot: Spot) -> Vec<u64> {
        let stack = stack_of(thread, spot);
        let mut frames = Vec::with_capacity(32);
        self.unwind(&mut thread.stacks.rules, spot, &stack, &[], &mut frames);
        frames.iter().map(|frame| frame.return_address).collect()
    }

    /// Forgets which stacks were told: the log is another one.
    pub fn forget(&self) {
        let mut tree = self.tree.lock().unwrap_or_else(|e| e.into_inner());
        tree.nodes.iter_mut().for_each(|node| node.told = false);
    }

    /// Unwinds until a frame of `last` is met from which on the stack is the same. Gives its index
    /// (one past the last if there is none); `fresh` are the frames before it.
    fn unwind(
        &self,
        rules: &mut CacheX86_64,
        spot: Spot,
        stack: &Range<u64>,
        last: &[Frame],
        fresh: &mut Vec<Frame>,
    ) -> usize {
        let unwinder = self.unwinder.read().unwrap_or_else(|e| e.into_inner());
        let mut registers = UnwindRegsX86_64::new(spot.pc, spot.sp, spot.bp);
        let mut at = if spot.returns {
            match FrameAddress::from_return_address(spot.pc) {
                Some(at) => at,
                None => return last.len(),
            }
        } else {
            FrameAddress::from_instruction_pointer(spot.pc)
        };
        let mut read = |address| target::stack_word(address, stack).ok_or(());
        while fresh.len() < MAX_FRAMES {
            let Ok(Some(return_address)) =
                unwinder.unwind_frame(at, &mut registers, rules, &mut read)
            else {
                break;
            };
            // The stack pointer is now what it was before the call.
            let found_at = registers.sp().wrapping_sub(8);
            if let Ok(known) = last.binary_search_by_key(&found_at, |frame| frame.at)
                && last[known].return_address == return_address
                && last[known + 1..]
                    .iter()
                    .all(|frame| target::stack_word(frame.at, stack) == Some(frame.return_address))
            {
                return known;
            }
            fresh.push(Frame { at: found_at, return_address, node: 0 });
            match FrameAddress::from_return_address(return_address) {
                Some(next) => at = next,
                None => break,
            }
        }
        last.len()
    }
}

/// The part of the stack that belongs to who called `spot`; what happens outside the target's code has
/// none.
fn stack_of(thread: &mut ThreadState, spot: Spot) -> Range<u64> {
    thread.find_stack(spot.sp);
    if spot.sp == 0 { 0..0 } else { spot.sp..thread.stack_region.1 }
}

fn span(section: &(u64, Vec<u8>)) -> Range<u64> {
    section.0..section.0 + section.1.len() as u64
}

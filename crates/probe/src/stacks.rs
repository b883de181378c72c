//! The call stack of an event, unwound with the modules' own unwind tables.
//!
//! A stack is unwound when it is asked for, as far as its frames are not known ([`crate::frames`] says how
//! they stay right); most accesses do not even come here, because the middle path's assembly finds the
//! frames by the same rules. Unwinding works in optimised code without frame pointers, and its rule cache
//! makes a frame a few tens of nanoseconds.
//!
//! Stacks are interned as paths of one tree ([`Tree`]), so that an id in four bytes can stand for one:
//! this is how a detector keeps the stack of an earlier access. The command is told of a stack when
//! something it is told refers to it.

use crate::frames::{FIRST, Frame, Frames};
use crate::instrument::follows_call;
use crate::memory::target;
use crate::middle::{Rule, RuleKey};
use crate::probe::Probe;
use crate::realigned::{self, Realigned};
use crate::thread::ThreadState;
use crate::trampoline::slot;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use raddle_analyse::stacks::Tree;
use raddle_dynamorio::client::Client;
use raddle_dynamorio::process;
use raddle_model::{Place, StackId};
use raddle_wire::log::Record;
use std::ops::Range;
use std::sync::{Mutex, RwLock};

/// Frames unwound at once; of a stack that goes on, the outer end is cut off.
const MAX_FRAMES: usize = 512;
/// Frames shown of a stack that is not kept.
const MAX_CALLERS: usize = 128;
/// Words of the stack in which the return address of code without an unwind table is looked for: hand-written functions save a
/// few registers, if they have a frame at all.
const GUESSED_WITHIN: u64 = 64;

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
    tables: RwLock<Tables>,
    tree: Mutex<Tree>,
}

/// What the modules say of their frames.
#[derive(Default)]
struct Tables {
    unwinder: UnwinderX86_64<Vec<u8>>,
    /// In the order of their addresses.
    realigned: Vec<Realigned>,
}

impl Tables {
    /// Where the caller's stack pointer is kept, from the frame pointer on, by a function whose stack is aligned anew.
    fn kept_at(&self, address: FrameAddress) -> Option<i64> {
        let address = address.address_for_lookup();
        let behind = self.realigned.partition_point(|stretch| stretch.start <= address);
        let stretch = self.realigned[..behind].last()?;
        (address < stretch.end).then_some(stretch.kept_at)
    }

    /// Unwinds a frame; gives where it returns to.
    fn unwind(
        &self,
        address: FrameAddress,
        registers: &mut UnwindRegsX86_64,
        rules: &mut CacheX86_64,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        let Some(kept_at) = self.kept_at(address) else {
            return self.unwinder.unwind_frame(address, registers, rules, read).ok().flatten();
        };
        let sp = read(registers.bp().wrapping_add_signed(kept_at)).ok()?;
        let return_address = read(sp.wrapping_sub(8)).ok()?;
        let bp = read(registers.bp()).ok()?;
        (sp > registers.sp()).then(|| {
            *registers = UnwindRegsX86_64::new(return_address, sp, bp);
            return_address
        })
    }
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stacks")
    }
}

/// A thread's unwinding cache.
pub struct ThreadStacks {
    rules: CacheX86_64,
    fresh: Vec<Frame>,
    /// The end of the stack whose frames are known.
    stack_end: u64,
    /// How the innermost frame was found that was unwound last, if no table said so.
    guessed: Option<Rule>,
    /// Instructions and the stacks they were met with, by a hash.
    leaves: Vec<Leaf>,
}

/// An instruction, the node of the frames around it, and that of both.
#[derive(Debug, Clone, Copy, Default)]
struct Leaf {
    address: u64,
    outer: u32,
    node: u32,
}

const LEAVES: usize = 1 << 8;

impl Default for ThreadStacks {
    fn default() -> Self {
        ThreadStacks {
            rules: CacheX86_64::new(),
            fresh: Vec::new(),
            stack_end: 0,
            guessed: None,
            leaves: Vec::new(),
        }
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
        let realigned = realigned::find(&table);
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
        let mut tables = self.tables.write().unwrap_or_else(|e| e.into_inner());
        tables.unwinder.add_module(module);
        tables.realigned.extend(realigned);
        tables.realigned.sort_by_key(|stretch| stretch.start);
    }

    /// Forgets a module.
    pub fn remove_module(&self, range: Range<u64>) {
        let mut tables = self.tables.write().unwrap_or_else(|e| e.into_inner());
        tables.unwinder.remove_module(range.start);
        tables.realigned.retain(|stretch| !range.contains(&stretch.start));
    }

    /// The stack at `spot`, interned.
    pub fn capture(&self, probe: &Probe, thread: &mut ThreadState, spot: Spot) -> StackId {
        let outer = self.frames(probe, thread, spot);
        self.leaf(thread, spot, outer)
    }

    /// The stack at `spot`, whose frames are known.
    pub fn leaf(&self, thread: &mut ThreadState, spot: Spot, outer: u32) -> StackId {
        let address = spot.pc.wrapping_sub(u64::from(spot.returns));
        let leaves = &mut thread.stacks.leaves;
        if leaves.is_empty() {
            leaves.resize(LEAVES, Leaf::default());
        }
        let hash = (address ^ u64::from(outer) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let leaf = &mut leaves[(hash >> 40) as usize % LEAVES];
        if (leaf.address, leaf.outer) != (address, outer) || leaf.node == 0 {
            let node = self.tree().leaf(outer, address, spot.place);
            *leaf = Leaf { address, outer, node };
        }
        StackId(leaf.node)
    }

    /// The frames around `spot`: their node, zero if there are none. From now on they are known.
    pub fn frames(&self, probe: &Probe, thread: &mut ThreadState, spot: Spot) -> u32 {
        if spot.sp == 0 {
            return 0;
        }
        let node = self.find_frames(probe, thread, spot);
        #[cfg(feature = "check-stacks")]
        self.check(probe, thread, spot);
        node
    }

    fn find_frames(&self, probe: &Probe, thread: &mut ThreadState, spot: Spot) -> u32 {
        let stack = stack_of(thread, spot);
        let end = std::mem::replace(&mut thread.stacks.stack_end, stack.end);
        let returns_are_watched = probe.instrumentation.watches_returns();
        let mut top = match end == stack.end && returns_are_watched {
            true => thread.slots.get(slot::TOP),
            false => FIRST as u64,
        };
        if let Some(node) = met_at_once(thread, spot, &stack, top) {
            return node;
        }
        let mut fresh = std::mem::take(&mut thread.stacks.fresh);
        let met = self.unwind(thread, spot, &stack, top, MAX_FRAMES, &mut fresh);
        self.learn(thread, spot, &fresh);
        if fresh.is_empty() {
            // They may be fewer than are known: what is asked for may be a caller's stack.
            thread.stacks.fresh = fresh;
            return met.map_or(0, |number| thread.frames.get(number).node);
        }
        top = Frames::top(met.unwrap_or(0));
        let mut node = thread.frames.get(met.unwrap_or(0)).node;
        let mut tree = self.tree();
        for frame in fresh.iter_mut().rev() {
            let (outer, address) = (node, frame.return_address);
            node = tree.enter(outer, address, || probe.modules.place_of(address));
            frame.node = node;
            if let Some(middle) = &mut thread.middle {
                middle.remember_step(outer, address, node);
            }
        }
        drop(tree);
        // Frames elsewhere (around a handler on a stack of its own) cannot be noticed to be left.
        let is_one_stack = fresh.iter().all(|frame| stack.contains(&frame.at));
        if returns_are_watched && is_one_stack {
            for frame in fresh.iter().rev() {
                top = thread.frames.push(top, *frame);
            }
        } else {
            top = FIRST as u64;
        }
        thread.set_top(top);
        thread.stacks.fresh = fresh;
        node
    }

    /// The same, and the command knows it.
    pub fn capture_and_tell(&self, probe: &Probe, thread: &mut ThreadState, spot: Spot) -> StackId {
        let stack = self.capture(probe, thread, spot);
        self.tell(thread, stack);
        stack
    }

    /// Makes sure that the command knows a stack.
    pub fn tell(&self, thread: &mut ThreadState, id: StackId) {
        let mut tree = self.tree();
        if tree.is_told(id.0) {
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
        self.unwind(thread, spot, &stack, FIRST as u64, MAX_CALLERS, &mut frames);
        frames.iter().map(|frame| frame.return_address).collect()
    }

    /// Forgets which stacks were told: the log is another one.
    pub fn forget(&self) {
        self.tree().forget_told();
    }

    fn tree(&self) -> std::sync::MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Unwinds until a frame is met that is known with this `top`. Gives its number; `fresh` are the
    /// frames before it.
    fn unwind(
        &self,
        thread: &mut ThreadState,
        spot: Spot,
        stack: &Range<u64>,
        top: u64,
        most: usize,
        fresh: &mut Vec<Frame>,
    ) -> Option<usize> {
        fresh.clear();
        let ThreadState { frames, stacks, middle, site, .. } = thread;
        // What is learned is not what it is checked by.
        let middle = middle.as_deref().filter(|middle| middle.is_current());
        let middle = middle.filter(|_| !cfg!(feature = "check-stacks"));
        stacks.guessed = None;
        let tables = self.tables.read().unwrap_or_else(|e| e.into_inner());
        let mut registers = UnwindRegsX86_64::new(spot.pc, spot.sp, spot.bp);
        let mut at = first_address(spot)?;
        let mut key = rule_key(spot, *site);
        let mut read = |address| target::stack_word(address, stack).ok_or(());
        while fresh.len() < most {
            // As the middle path was taught, which is much quicker than to read the tables again.
            let by_rule = key.and_then(|key| middle?.rule(key));
            let by_rule = by_rule.and_then(|rule| follow(rule, &mut registers, &mut read));
            let unwound =
                by_rule.or_else(|| tables.unwind(at, &mut registers, &mut stacks.rules, &mut read));
            // Without a table, the unwinder takes the frame pointer for one, or goes by the table of what comes before.
            let is_lost = fresh.is_empty() && by_rule.is_none() && !unwound.is_some_and(is_caller);
            let unwound = match is_lost.then(|| guess(spot, stack)).flatten() {
                Some(rule) => {
                    stacks.guessed = Some(rule);
                    registers = UnwindRegsX86_64::new(spot.pc, spot.sp, spot.bp);
                    follow(rule, &mut registers, &mut read)
                }
                None => unwound,
            };
            // What is no address is no caller: here the stack begins, or the unwinder was lost.
            let unwound = unwound.filter(|address| process::is_user(*address));
            let Some(return_address) = unwound else { break };
            // The stack pointer is now what it was before the call.
            let found_at = registers.sp().wrapping_sub(8);
            if let Some(known) = frames.find(top, found_at)
                && frames.get(known).return_address == return_address
            {
                return Some(known);
            }
            fresh.push(Frame::new(found_at, return_address));
            key = Some(RuleKey::call(return_address));
            match FrameAddress::from_return_address(return_address) {
                Some(next) => at = next,
                None => break,
            }
        }
        None
    }

    /// Are the frames that are known those that unwinding finds?
    #[cfg(feature = "check-stacks")]
    fn check(&self, probe: &Probe, thread: &mut ThreadState, spot: Spot) {
        let (stack, top) = (stack_of(thread, spot), thread.slots.get(slot::TOP));
        let mut all = Vec::new();
        self.unwind(thread, spot, &stack, FIRST as u64, MAX_FRAMES, &mut all);
        // Unwinding gets lost in the loader's entry for functions that are bound late, and where the C++
        // runtime puts the address of a landing pad in place of one to return to.
        let is_odd = |address: u64| {
            let module = probe.modules.find(address);
            let is_of = |name| module.as_ref().is_some_and(|module| module.path.contains(name));
            is_of("/ld-linux") || is_of("/libgcc_s")
        };
        if is_odd(spot.pc) || all.iter().any(|frame| is_odd(frame.return_address)) {
            return;
        }
        let count = Frames::count(top);
        let innermost = all.first().map_or(u64::MAX, |frame| frame.at);
        let known = (1..=count).map(|number| thread.frames.get(number));
        let known: Vec<_> = known.filter(|frame| frame.at >= innermost).collect();
        let from = known.last().map_or(u64::MAX, |frame| frame.at);
        let unwound: Vec<_> = all.iter().rev().filter(|frame| frame.at >= from).collect();
        let pairs = known.iter().rev().zip(unwound.iter().rev());
        let alike =
            pairs.clone().all(|(a, b)| (a.at, a.return_address) == (b.at, b.return_address));
        // Where a stack begins, unwinding may end sooner or later, depending on what registers hold.
        let whole = known.len() == unwound.len() && all.len() < MAX_FRAMES && count < 30_000;
        let mut node = 0;
        for frame in &unwound {
            let address = frame.return_address;
            node = self.tree().enter(node, address, || probe.modules.place_of(address));
        }
        let same_node = known.last().is_none_or(|frame| frame.node == node);
        if !alike || whole && !same_node {
            let show = |frame: &Frame| format!("{:x}:{:x}", frame.at, frame.return_address);
            let known: Vec<_> = known.iter().map(show).collect();
            let unwound: Vec<_> = all.iter().rev().map(show).collect();
            crate::probe::fail(&format!(
                "at {:x} known {known:?} but unwound {unwound:?}",
                spot.pc
            ));
        }
    }

    /// Teaches the middle path how the frames of these places are found.
    fn learn(&self, thread: &mut ThreadState, spot: Spot, fresh: &[Frame]) {
        let ThreadState { middle: Some(middle), stacks, site, .. } = thread else { return };
        middle.set_age(Probe::instance().modules.age());
        let first = rule_key(spot, *site);
        if let (Some(key), Some(rule)) = (first, stacks.guessed.take()) {
            middle.remember_rule(key, rule);
        }
        let first = first.map(|key| (key, first_address(spot)));
        let callers = fresh.iter().map(|frame| {
            let address = frame.return_address;
            (RuleKey::call(address), FrameAddress::from_return_address(address))
        });
        for (key, address) in first.into_iter().chain(callers) {
            let Some(address) = address.filter(|_| !middle.has_rule(key)) else { continue };
            let tables = self.tables.read().unwrap_or_else(|e| e.into_inner());
            // Where a stack was aligned anew there is no simple rule.
            if tables.kept_at(address).is_none()
                && let Some(rule) = rule_of(&tables.unwinder, &mut stacks.rules, address)
            {
                middle.remember_rule(key, rule);
            }
        }
    }
}

/// The node of the innermost known frame, if that is the one around `spot`, by a rule that the middle path was taught: as it would
/// see it.
fn met_at_once(thread: &ThreadState, spot: Spot, stack: &Range<u64>, top: u64) -> Option<u32> {
    let middle = thread.middle.as_ref().filter(|middle| middle.is_current())?;
    let at = middle.rule(rule_key(spot, thread.site)?)?.return_address_at(spot.sp, spot.bp);
    let frame = thread.frames.get(Frames::count(top));
    let is_it = frame.at == at
        && stack.contains(&at)
        && target::stack_word(at, stack) == Some(frame.return_address);
    is_it.then_some(frame.node)
}

/// By what the rule for the frame around `spot` is known, which is at this site if it is no call.
fn rule_key(spot: Spot, site: Option<u32>) -> Option<RuleKey> {
    match spot.returns {
        true => Some(RuleKey::call(spot.pc)),
        false => site.map(RuleKey::site),
    }
}

/// Unwinds a frame by its rule; gives where it returns to. Nothing is changed if its stack cannot be read.
fn follow(
    rule: Rule,
    registers: &mut UnwindRegsX86_64,
    mut read: impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    let at = rule.return_address_at(registers.sp(), registers.bp());
    let return_address = read(at).ok()?;
    let bp = match rule.bp {
        0 => registers.bp(),
        offset => read(at.wrapping_add_signed(i64::from(offset))).ok()?,
    };
    let is_further = at >= registers.sp() && return_address != 0;
    is_further.then(|| {
        *registers = UnwindRegsX86_64::new(return_address, at + 8, bp);
        return_address
    })
}

/// Can a function return there? To code that was made while the program runs, too.
fn is_caller(address: u64) -> bool {
    is_in_module(address) || follows_call(address)
}

fn is_in_module(address: u64) -> bool {
    Probe::instance().modules.find(address).is_some()
}

/// How the frame around `spot` may be found though no table says so, as in hand-written code: by the first word of the stack that is the
/// address behind a call of some module. If the frame pointer is none that the caller can have, the caller's has been saved, if it has
/// one.
fn guess(spot: Spot, stack: &Range<u64>) -> Option<Rule> {
    if spot.returns || !is_in_module(spot.pc) {
        return None;
    }
    let word = |at: u64| target::stack_word(at, stack).filter(|_| stack.contains(&at));
    let behind_call = |at: &u64| word(*at).is_some_and(|a| is_in_module(a) && follows_call(a));
    let at = (0..GUESSED_WITHIN).map(|n| spot.sp + 8 * n).find(behind_call)?;
    let can_be_callers = |bp: u64| bp > at && stack.contains(&bp);
    let mut saved = (spot.sp..at).step_by(8);
    let saved = saved.find(|at| !can_be_callers(spot.bp) && word(*at).is_some_and(can_be_callers));
    let bp = saved.map_or(0, |saved| -((at - saved) as i32));
    Some(Rule { at: (at - spot.sp) as i32, bp })
}

fn first_address(spot: Spot) -> Option<FrameAddress> {
    match spot.returns {
        true => FrameAddress::from_return_address(spot.pc),
        false => Some(FrameAddress::from_instruction_pointer(spot.pc)),
    }
}

/// How the frame of the function at an address is unwound, if that is simple: seen from what the unwinder does with
/// registers and a stack that are made up. Each word of the stack says where it was read.
fn rule_of(
    unwinder: &UnwinderX86_64<Vec<u8>>,
    rules: &mut CacheX86_64,
    address: FrameAddress,
) -> Option<Rule> {
    const SP: u64 = 1 << 40;
    const BP: u64 = 1 << 41;
    const READ: u64 = 1;
    let mut registers = UnwindRegsX86_64::new(address.address(), SP, BP);
    let mut read = |address: u64| Ok(address | READ);
    let found = unwinder.unwind_frame(address, &mut registers, rules, &mut read).ok()??;
    let at = registers.sp().checked_sub(8)?;
    if found != at | READ {
        return None;
    }
    let by_bp = at >= BP / 2 + SP / 2;
    let base = if by_bp { BP } else { SP };
    let at_offset = i32::try_from(at.wrapping_sub(base) as i64).ok()?;
    let bp_offset = match registers.bp() {
        BP => 0,
        saved => {
            let offset = i32::try_from((saved ^ READ).wrapping_sub(at) as i64).ok()?;
            // Elsewhere than in the frame.
            if saved & READ == 0 || offset >= 0 {
                return None;
            }
            offset
        }
    };
    let is_aligned = at_offset % 8 == 0 && at_offset >= 0;
    is_aligned.then_some(Rule { at: at_offset | i32::from(by_bp), bp: bp_offset })
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

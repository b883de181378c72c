//! Carrying a plan out, instruction by instruction.

use super::Instrumentation;
use super::handlers::{self, Number};
use super::handlers::{clean_lanes, clean_rare, clean_rebuild};
use super::plan::{Plan, PlannedAccess, Step};
use crate::frames;
use crate::memory::shadow::{PAGE_BITS, PageKind};
use crate::probe::Probe;
use crate::trampoline::slot;
use raddle_analyse::fast::Side;
use raddle_dynamorio::block::{
    AddressForm, CodeAddress, Label, Point, Register, Scratch, SegmentRegister,
};
use std::sync::atomic::Ordering;

impl Instrumentation {
    /// Inserts what the plan says before (or after) the instruction at this point.
    pub fn insert(&self, probe: &Probe, point: &mut Point<'_>, plan: &mut Plan) {
        let Some(instruction) = point.instruction else { return };
        // A check borrows the flags, and rax for them: not where rax must be spared.
        let debugger = probe.debugger.as_ref().filter(|_| plan.spared().is_empty());
        if let Some(debugger) = debugger {
            debugger.insert_early(probe, point, instruction.pc);
        }
        plan.points.insert(probe, point, instruction.pc);
        let is_first = instruction.pc == plan.first;
        if is_first {
            if let Some(site) = plan.returns.take() {
                insert_return(probe, point, site);
            }
            if let Some(site) = plan.callback.take() {
                call(probe, point, site, Number::Callback);
            }
        }
        let step = match plan.steps.front() {
            Some(step) if step.pc == instruction.pc => plan.steps.pop_front(),
            _ => None,
        };
        if let Some(step) = &step {
            insert_entries(probe, point, step);
        }
        if is_first && let Some(counter) = plan.counter.take() {
            insert_counter(point, counter, plan.guarded);
        }
        if let Some(step) = &step {
            let windows = self.windows.load(Ordering::Relaxed);
            insert_accesses(probe, point, step, Manners { spared: plan.spared(), windows });
        }
        if step.is_some_and(|step| step.moves_stack) {
            // The last thing before it runs: what looks at the stack here still sees the old one.
            point.store_slot_number(slot::TOP, frames::FIRST as u32);
        }
        if let Some(debugger) = debugger {
            debugger.insert_late(probe, point, instruction.pc);
        }
    }
}

/// Calls a handler with a site's number; it sees the application's registers.
fn call(probe: &Probe, point: &mut Point<'_>, site: u32, handler: Number) {
    call_code(point, site, probe.trampoline.entry(handler as usize));
}

fn call_code(point: &mut Point<'_>, site: u32, code: CodeAddress) {
    point.restore_all();
    point.store_slot_number(slot::NUMBER, site);
    point.call(code);
}

/// One comparison unless a hooked call is over.
fn insert_return(probe: &Probe, point: &mut Point<'_>, site: u32) {
    point.store_slot_register(slot::RESULT, Register::RAX);
    point.reserve_flags();
    let done = point.new_label();
    point.skip_if_stack_below(slot::PENDING, &done);
    point.store_slot_number(slot::NUMBER, site);
    point.call(match probe.monitor.quick {
        true => probe.trampoline.quick_returned(),
        false => probe.trampoline.frames_returned(),
    });
    point.place(done);
    point.release_flags();
}

fn insert_entries(probe: &Probe, point: &mut Point<'_>, step: &Step) {
    for entry in &step.entries {
        if entry.tallied {
            call_code(point, entry.site, probe.trampoline.quick_entered());
        } else {
            call(probe, point, entry.site, Number::Entered);
        }
        if entry.calls_back {
            point.reserve_flags();
            let done = point.new_label();
            point.skip_if_zero(slot::REBUILD, &done);
            point.clean_call(clean_rebuild, 0);
            point.place(done);
            point.release_flags();
        }
    }
}

/// Counters of a block: `counters[number] += 1`, unless inside an opaque function.
fn insert_counter(point: &mut Point<'_>, number: u32, guarded: bool) {
    point.reserve_flags();
    let base = point.reserve(&[]);
    let done = point.new_label();
    if guarded {
        point.skip_if_nonzero(slot::OPAQUE, &done);
    }
    point.load_slot(&base, slot::COUNTERS);
    point.increment(&base, (number * 8) as i32);
    point.place(done);
    point.release(base);
    point.release_flags();
    point.restore_all();
}

/// How code is inserted.
#[derive(Debug, Clone, Copy)]
struct Manners {
    /// Registers that may not be borrowed.
    spared: &'static [Register],
    /// The windows that have shadow, as a power of two, if there is memory outside them; else zero.
    windows: u32,
}

fn insert_accesses(probe: &Probe, point: &mut Point<'_>, step: &Step, manners: Manners) {
    let Manners { spared, .. } = manners;
    if let Some(site) = step.rare {
        point.restore_all();
        point.clean_call(clean_rare, u64::from(site));
    }
    for access in &step.accesses {
        match access.check {
            Some(side) => insert_check(probe, point, access, side, manners),
            None => {
                load_address(point, &access.form, spared);
                call_code(point, access.site, access_entry(probe, access.hidden));
            }
        }
    }
    if let Some((site, form)) = &step.late {
        load_address(point, form, spared);
        point.call_after(slot::NUMBER, *site, access_entry(probe, step.late_hidden));
    }
    if let Some(strings) = step.strings {
        call(probe, point, strings.site, Number::StringsBefore);
        if strings.scans {
            let code = probe.trampoline.entry(Number::StringsAfter as usize);
            point.call_after(slot::NUMBER, strings.site, code);
        }
    }
    if let Some((site, guarded)) = step.lanes {
        load_address(point, &FS_BASE, spared);
        point.restore_all();
        // A clean call saves all vector registers, and libc's string functions are full of masked loads.
        match guarded {
            true => point.clean_call_unless(slot::OPAQUE, clean_lanes, u64::from(site)),
            false => point.clean_call(clean_lanes, u64::from(site)),
        }
    }
    if let Some((site, form)) = &step.inlined {
        load_address(point, form, spared);
        call(probe, point, *site, Number::InlinedBefore);
        let code = probe.trampoline.entry(Number::InlinedAfter as usize);
        point.call_after(slot::NUMBER, *site, code);
    }
}

fn access_entry(probe: &Probe, hidden: bool) -> CodeAddress {
    match hidden {
        true => probe.trampoline.guarded_access(),
        false => probe.trampoline.entry(Number::Access as usize),
    }
}

/// The fast detector's first look: if the cells of the thread's own plane say that it has been here in
/// this segment, there is nothing to do. `docs/architecture.md`, "Shadow memory", shows the code.
fn insert_check(
    probe: &Probe,
    point: &mut Point<'_>,
    access: &PlannedAccess,
    side: Side,
    Manners { spared, windows }: Manners,
) {
    let key = match side {
        Side::Write => slot::WRITE_KEY,
        Side::Read => slot::READ_KEY,
    };
    let form = &access.form;
    let avoid = avoided(form, spared);
    point.reserve_flags();
    let at = point.reserve(&avoid);
    let other = (access.size > 8 || windows != 0).then(|| point.reserve(&avoid));
    let done = point.new_label();
    let news = point.new_label();
    point.load_address(&at, form);
    // A segment's base takes a register to add, which code that is jumped over must not take.
    let has_segment = form.segment.is_some();
    if has_segment {
        point.store_slot(slot::ADDRESS, &at);
    }
    if access.guarded {
        point.skip_if_nonzero(slot::OPAQUE, &done);
    }
    if let Some(other) = other.as_ref().filter(|_| windows != 0) {
        point.skip_outside_windows(&at, other, windows, &done);
    }
    if access.size < 8 {
        // To the granule's beginning, unless it is not aligned: then nothing may be found to be equal.
        point.and_number(&at, !(8 - access.size as i8));
    }
    point.xor_slot(&at, key);
    match other.as_ref().filter(|_| access.size > 8) {
        None => point.skip_if_memory_is_slot(&at, slot::SEGMENT, &done),
        Some(segment) => {
            point.load_slot(segment, slot::SEGMENT);
            let last = access.size as i32 - 8;
            for offset in (0..last).step_by(8) {
                point.skip_unless_memory_is(&at, offset, segment, &news);
            }
            point.skip_if_memory_is(&at, last, segment, &done);
        }
    }
    if !has_segment {
        insert_closer_look(point, access, &at, [&done, &news]);
    }
    point.place(news);
    if !has_segment {
        point.load_address_again(&at, form);
        point.store_slot(slot::ADDRESS, &at);
    }
    // Of thread-local memory only the thread's own code knows the address.
    if let Some(owner) = access.owner.filter(|_| !has_segment) {
        insert_page_check(point, owner, side, &at, &done);
    }
    point.store_slot_number(slot::NUMBER, access.site);
    let middle = probe.middle.entry(side, access.size);
    point.call(middle.unwrap_or(probe.trampoline.entry(Number::Access as usize)));
    point.place(done);
    if let Some(other) = other {
        point.release(other);
    }
    point.release(at);
    point.release_flags();
    // What was borrowed goes back when the application needs it, or at the block's end: two checks in a row borrow once, and the
    // loop of a matrix product takes two thirds of the time. Who controls threads, or debugs them, looks at registers at
    // any point.
    if probe.scheduler.is_some() {
        point.restore_all();
    }
}

/// Behind the first look, in a runtime library: its own static data it guards by itself, or knows why it need not; what
/// nobody writes (formats, tables) may be read by all. `at` holds the address, which has shadow.
fn insert_page_check(point: &mut Point<'_>, owner: u8, side: Side, at: &Scratch, done: &Label) {
    point.shift_right(at, PAGE_BITS as u8);
    point.add_slot(at, slot::PAGES);
    point.load_byte(at);
    if side == Side::Read {
        point.skip_if_has(at, i32::from(PageKind::CONSTANT.0), done);
    }
    point.skip_if_is(at, PageKind::owned(owner).0, done);
}

/// Behind the first look: where a granule has been touched in this segment only in part, as that with an `int`
/// beside something else, has this part been? `at` holds the cell's lower half. Where a closer look would
/// be a long one, it is left to the middle path.
fn insert_closer_look(
    point: &mut Point<'_>,
    access: &PlannedAccess,
    at: &Scratch,
    [done, news]: [&Label; 2],
) {
    // The difference has a bit for each byte that was not touched, and others above if the segment is
    // another one.
    const OTHER_SEGMENT: i32 = !0xff;
    match access.size {
        4 => {
            point.differ_from_slot(at, slot::SEGMENT, slot::DIFFERENCE);
            point.load_address_again(at, &access.form);
            point.skip_if_has(at, 3, news);
            let upper = point.new_label();
            point.skip_if_has(at, 4, &upper);
            point.skip_unless_slot_has(slot::DIFFERENCE, OTHER_SEGMENT | 0x0f, done);
            point.skip(news);
            point.place(upper);
            point.skip_unless_slot_has(slot::DIFFERENCE, OTHER_SEGMENT | 0xf0, done);
        }
        1 => {
            point.differ_from_slot(at, slot::SEGMENT, slot::DIFFERENCE);
            point.load_address_again(at, &access.form);
            point.and_number(at, 7);
            point.skip_if_slot_has_bit(slot::DIFFERENCE, at, news);
            point.skip_unless_slot_has(slot::DIFFERENCE, OTHER_SEGMENT, done);
        }
        _ => {}
    }
}

/// The application's `fs` base, as an address.
const FS_BASE: AddressForm = AddressForm {
    segment: Some(SegmentRegister::Fs),
    base: None,
    index: None,
    scale: 1,
    displacement: 0,
    narrow: false,
};

/// Registers that may not be borrowed: the handler unwinds from the frame pointer it finds.
fn avoided(form: &AddressForm, spared: &[Register]) -> Vec<Register> {
    let mut avoid = vec![Register::RBP];
    avoid.extend(form.base);
    avoid.extend(form.index);
    avoid.extend(spared);
    avoid
}

fn load_address(point: &mut Point<'_>, form: &AddressForm, spared: &[Register]) {
    let address = point.reserve(&avoided(form, spared));
    point.load_address(&address, form);
    point.store_slot(slot::ADDRESS, &address);
    point.release(address);
}

/// The handler table fits the trampoline's entries.
const _: () = assert!(handlers::COUNT <= crate::trampoline::ENTRIES);

//! What inserted code calls: from a site and registers to the monitor.

use super::{Site, StringOperand};
use crate::debug::At;
use crate::monitor::hooks::{self, Registers};
use crate::monitor::requests;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::{self, Scan, ThreadState};
use crate::trampoline::{Frame, Handler, slot};
use raddle_decode::Gpr;
use raddle_dynamorio::client::Client;
use raddle_dynamorio::process::{self, MachineState};
use raddle_model::{Address, EventKind, LockMode, Place, Role};
use raddle_wire::facts::LoopCondition;

/// Handlers by their number in the trampoline.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    Access,
    StringsBefore,
    StringsAfter,
    Entered,
    Returned,
    Callback,
    InlinedBefore,
    InlinedAfter,
    Check,
}

/// How many.
pub const COUNT: usize = 9;

pub static TABLE: [Handler; COUNT] = [
    on_access,
    on_strings_before,
    on_strings_after,
    on_entered,
    on_returned,
    on_callback,
    on_inlined_before,
    on_inlined_after,
    on_check,
];

/// Address of the handler table, for the trampoline.
pub fn table() -> u64 {
    TABLE.as_ptr() as u64
}

fn site(probe: &'static Probe, thread: &mut ThreadState) -> Option<&'static Site> {
    hooks::settle(thread);
    let site = probe.instrumentation.site(thread.slots.get(slot::NUMBER) as u32)?;
    came_from(probe, thread, site.pc());
    Some(site)
}

/// Where a scheduler decides when a signal comes, none waits for its thread to leave.
fn came_from(probe: &Probe, thread: &mut ThreadState, pc: Option<u64>) {
    if let Some(pc) = pc.filter(|_| probe.scheduler.is_none()) {
        thread.leave.came_from(pc);
        if let Some(quick) = &mut thread.quick {
            quick.renew_calls();
        }
    }
}

fn spot(place: Place, pc: u64, frame: &Frame) -> Spot {
    Spot { place, pc, returns: false, sp: frame.rsp, bp: frame.rbp }
}

fn registers(frame: &Frame) -> Registers {
    Registers { sp: frame.rsp, bp: frame.rbp }
}

extern "C" fn on_access(frame: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    let (pc, place, kind, size, guarded) = match site(probe, thread) {
        Some(&Site::Access { pc, place, kind, size, guarded, updates }) => {
            thread.updates = updates;
            (pc, place, kind, size, guarded)
        }
        Some(&Site::Updated { pc, place, size, guarded }) => {
            return updated(probe, thread, spot(place, pc, frame), size, guarded);
        }
        Some(Site::Touched) => return thread.tell_after(),
        _ => return,
    };
    let spot = spot(place, pc, frame);
    if hooks::is_hidden(probe, thread, spot) || (guarded && thread.is_in_margin()) {
        return;
    }
    let address = Address(thread.slots.get(slot::ADDRESS));
    if guarded
        && probe.analysis.is_some()
        && !kind.is_atomic()
        && thread.places.is_own_data(&probe.modules, place.module, address)
    {
        return;
    }
    let number = thread.slots.get(slot::NUMBER) as u32;
    // An atomic or a spinning read may find, the second time, what another thread has released.
    if let Some(analysis) = &probe.analysis
        && !analysis.is_fast()
        && !kind.is_atomic()
        && thread.recent.is_repeated(number, address)
    {
        return;
    }
    thread.site = Some(number);
    thread.emit(probe, spot, EventKind::Access { kind, address, size });
    (thread.site, thread.updates) = (None, false);
}

/// An atomic update has run.
fn updated(probe: &Probe, thread: &mut ThreadState, spot: Spot, size: u32, guarded: bool) {
    if thread.is_opaque() || (guarded && thread.is_in_margin()) {
        return;
    }
    let address = Address(thread.slots.get(slot::ADDRESS));
    thread.emit(probe, spot, EventKind::AtomicUpdated { address, size: u64::from(size) });
}

extern "C" fn on_strings_before(frame: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    let Some(Site::Strings { pc, place, operands, scans }) = site(probe, thread) else { return };
    thread.scan = Scan { rdi: frame.rdi, rsi: frame.rsi, rcx: frame.rcx };
    let spot = spot(*place, *pc, frame);
    if *scans || hooks::is_hidden(probe, thread, spot) {
        return;
    }
    string_ranges(probe, thread, operands, frame.rcx, frame.backwards(), spot);
}

extern "C" fn on_strings_after(frame: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    let Some(Site::Strings { pc, place, operands, .. }) = site(probe, thread) else { return };
    let spot = spot(*place, *pc, frame);
    if hooks::is_hidden(probe, thread, spot) {
        return;
    }
    let count = thread.scan.rcx.wrapping_sub(frame.rcx);
    string_ranges(probe, thread, operands, count, frame.backwards(), spot);
}

/// Reports the stretches a string instruction with `count` repetitions touches; none when zero.
fn string_ranges(
    probe: &Probe,
    thread: &mut ThreadState,
    operands: &[StringOperand],
    count: u64,
    backwards: bool,
    spot: Spot,
) {
    if count == 0 {
        return;
    }
    const RSI: Gpr = Gpr(6);
    for operand in operands {
        let start = if operand.register == RSI { thread.scan.rsi } else { thread.scan.rdi };
        let length = count.wrapping_mul(u64::from(operand.size));
        let lowest = match backwards {
            true => start.wrapping_add(u64::from(operand.size)).wrapping_sub(length),
            false => start,
        };
        let event = EventKind::Range { kind: operand.kind, address: Address(lowest), length };
        thread.emit(probe, spot, event);
    }
}

extern "C" fn on_entered(frame: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    if let Some(&Site::Entry { hook, .. }) = site(probe, thread) {
        hooks::enter(probe, thread, hook, frame.arguments(), registers(frame));
    }
}

extern "C" fn on_returned(frame: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    let number = thread.slots.get(slot::NUMBER) as u32;
    let Some(&Site::Return { pc }) = probe.instrumentation.site(number) else { return };
    came_from(probe, thread, Some(pc));
    let result = thread.slots.get(slot::RESULT);
    if !hooks::returned_as_noted(probe, thread, pc, result, registers(frame)) {
        hooks::settle(thread);
        hooks::returned(probe, thread, pc, result, registers(frame));
    }
    hooks::learn_return(probe, thread, pc, number);
}

extern "C" fn on_callback(frame: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    if let Some(&Site::Callback { pc }) = site(probe, thread) {
        hooks::enter_callback(probe, thread, pc, frame.rdi, registers(frame));
    }
}

extern "C" fn on_inlined_before(frame: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    let Some(&Site::Inlined { pc, place, hook, .. }) = site(probe, thread) else { return };
    let spot = spot(place, pc, frame);
    if hooks::is_hidden(probe, thread, spot) {
        return;
    }
    let lock = Address(thread.slots.get(slot::ADDRESS));
    thread.inlined = lock;
    match probe.monitor.hooks[hook as usize].hook.role {
        Role::LockRelease { mode, .. } => {
            thread.emit(probe, spot, EventKind::LockReleased { lock, mode });
        }
        Role::LockAcquire { mode, waits: false, .. } => {
            thread.emit(probe, spot, EventKind::LockRequested { lock, mode, waits: false });
        }
        // No event: that it was asked for is seen when it was got. Who schedules must know before.
        Role::LockAcquire { mode, waits: true, .. } => {
            if let Some(scheduler) = &probe.scheduler {
                let asked = EventKind::LockRequested { lock, mode, waits: true };
                scheduler.event(probe, thread, spot, &asked);
            }
        }
        _ => {}
    }
}

extern "C" fn on_inlined_after(frame: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    let Some(&Site::Inlined { pc, place, hook, compares }) = site(probe, thread) else { return };
    if thread.is_opaque() {
        return;
    }
    let lock = thread.inlined;
    let Role::LockAcquire { mode, waits, .. } = probe.monitor.hooks[hook as usize].hook.role else {
        return;
    };
    let mode: LockMode = mode;
    let spot = spot(place, pc, frame);
    if !compares || frame.zero() {
        thread.emit(probe, spot, EventKind::LockAcquired { lock, mode });
    } else if !waits {
        thread.emit(probe, spot, EventKind::LockFailed { lock, mode });
    }
}

/// The debugger may have something here.
extern "C" fn on_check(_: &mut Frame, thread: &mut ThreadState) {
    let probe = Probe::instance();
    let Some(&Site::Check { pc, late }) = site(probe, thread) else { return };
    match &probe.debugger {
        Some(debugger) if late => debugger.check_late(probe, thread, pc),
        Some(debugger) => debugger.check_early(probe, thread, pc),
        None => {}
    }
}

/// A clean call: the vector registers decide what is touched. The address slot holds the
/// application's `fs` base.
pub extern "C" fn clean_lanes(number: u64) {
    let probe = Probe::instance();
    let Some(thread) = thread::current(probe) else { return };
    let Some(Site::Lanes { pc, place, bytes }) = probe.instrumentation.site(number as u32) else {
        return;
    };
    thread.stands(At::Call(*pc));
    if thread.is_opaque() {
        return;
    }
    let state =
        LaneRegisters { state: MachineState::current(true), fs: thread.slots.get(slot::ADDRESS) };
    let spot = Spot {
        place: *place,
        pc: *pc,
        returns: false,
        sp: state.state.general[4],
        bp: state.state.general[5],
    };
    for (kind, address, size) in raddle_decode::lanes(bytes, *pc, &state) {
        thread.emit(probe, spot, EventKind::Access { kind, address, size });
    }
}

/// A clean call: the end of a loop around a condition wait, or a request to Valgrind's tools.
pub extern "C" fn clean_rare(number: u64) {
    let probe = Probe::instance();
    let Some(thread) = thread::current(probe) else { return };
    let state = MachineState::current(false);
    let general = &state.general;
    if let Some(pc) = probe.instrumentation.site(number as u32).and_then(Site::pc) {
        thread.stands(At::Call(pc));
    }
    let at = |place, pc| Spot { place, pc, returns: false, sp: general[4], bp: general[5] };
    match probe.instrumentation.site(number as u32) {
        Some(&Site::LoopLeft { pc, place, condition }) if !thread.is_opaque() => {
            let condition = Address(match condition {
                LoopCondition::Unknown => 0,
                LoopCondition::Offset(address) => address,
                LoopCondition::Register(register, displacement) => general
                    [usize::from(register) % general.len()]
                .wrapping_add_signed(i64::from(displacement)),
            });
            thread.emit(probe, at(place, pc), EventKind::ConditionLoopLeft { condition });
        }
        Some(&Site::ClientRequest { pc, place }) => {
            requests::asked(probe, thread, general[0], at(place, pc));
        }
        _ => {}
    }
}

struct LaneRegisters {
    state: MachineState,
    fs: u64,
}

impl raddle_decode::Registers for LaneRegisters {
    fn gpr(&self, register: Gpr) -> u64 {
        self.state.general[usize::from(register.0)]
    }

    fn segment_base(&self, segment: raddle_decode::Segment) -> u64 {
        match segment {
            raddle_decode::Segment::Fs => self.fs,
            // Programs do not set it on Linux.
            raddle_decode::Segment::Gs => 0,
        }
    }

    fn vector(&self, number: u8) -> [u8; 64] {
        self.state.vectors.get(usize::from(number)).copied().unwrap_or([0; 64])
    }

    fn mask(&self, number: u8) -> u64 {
        self.state.masks[usize::from(number)]
    }
}

/// A clean call: a callback was learned after its block had been built.
pub extern "C" fn clean_rebuild(_: u64) {
    let probe = Probe::instance();
    if let Some(thread) = thread::current(probe) {
        let pc = thread.slots.get(slot::REBUILD);
        thread.slots.set(slot::REBUILD, 0);
        process::rebuild_later(pc);
    }
}

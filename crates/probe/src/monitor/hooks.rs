//! Entering and leaving hooked functions.
//!
//! A function's own `ret` is not trusted (thesis 4.2.2: tail calls, jumps into other functions).
//! Instead every return site of the program compares the stack pointer with that of the innermost
//! hooked call; when it has come back up to there, the call is over: by returning, if it is at the
//! address the call was to return to; otherwise by `longjmp`, an exception or a switch of stacks.
//! An entry with the stack pointer and return address of the innermost call is a jump, not a call;
//! between functions of the same role it counts once (thesis 4.4).
//!
//! The handler of a signal is the program's own code again, whatever was interrupted: it is a
//! callback that ends with the system call that returns from it.

use super::MonitoredHook;
use super::bodies::{self, Body};
use super::expression::Call;
use super::modules::call_spot;
use super::roles::{self, Quiet};
use crate::memory::quick::{QuickTable, Row, UNKNOWN};
use crate::memory::target;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::{Inside, ThreadState};
use crate::trampoline::slot;
use raddle_model::{Address, EventKind, Role};
use std::mem::discriminant;

/// A call that has not returned.
#[derive(Debug, Clone)]
pub struct Pending {
    pub what: PendingKind,
    /// The stack pointer when it will have returned.
    pub sp: u64,
    /// Where it will return to.
    pub returns_to: u64,
    /// End of the stack it was made on.
    stack_end: u64,
    /// Whose code the thread ran when it was made.
    made_inside: Inside,
}

/// What kind of call.
#[derive(Debug, Clone)]
pub enum PendingKind {
    /// A hooked function with its arguments and what its role computed at the entry.
    Hook { index: u32, arguments: [u64; 6], object: Address, other: u64 },
    /// A function that a hooked one called back: the program's own code again.
    Callback(Body),
    /// The handler of a signal, which was delivered with this stack pointer.
    Handler,
}

impl Pending {
    fn is_callback(&self) -> bool {
        matches!(self.what, PendingKind::Callback(_))
    }
}

/// Registers at a call's entry or return.
#[derive(Debug, Clone, Copy)]
pub struct Registers {
    pub sp: u64,
    pub bp: u64,
}

/// A hooked function was entered.
pub fn enter(
    probe: &Probe,
    thread: &mut ThreadState,
    index: u32,
    arguments: [u64; 6],
    at: Registers,
) {
    let monitored = &probe.monitor.hooks[index as usize];
    let hook = &monitored.hook;
    let after = at.sp + 8;
    if thread.pending.last().is_some_and(|top| is_left_behind(top, after)) {
        let returns_to = target::return_address(at.sp);
        if !is_jump(thread, after, returns_to) {
            // Called by somebody who is past the call we believe ourselves in: an exception came
            // there without a return.
            let spot = call_spot(probe, thread, returns_to, after, at.bp);
            abandon_above(probe, thread, after, spot);
        } else if is_inside_like(probe, thread, &hook.role) {
            return;
        }
    }
    let counts = match thread.inside() {
        Inside::Program | Inside::Margin => true,
        Inside::Library => is_allocation(&hook.role),
        Inside::Allocator => false,
    };
    if !counts {
        return;
    }
    let returns_to = target::return_address(at.sp);
    let spot = call_spot(probe, thread, returns_to, after, at.bp);
    let call = Call { arguments, result: 0, team: bodies::current_team(thread) };
    if probe.options.functions {
        let shown = hook.arguments.iter().filter(|e| !e.needs_return());
        let arguments = shown.map(|e| super::expression::evaluate(e, &call)).collect();
        thread.emit(probe, spot, EventKind::FunctionEnter { hook: index, arguments });
    }
    let (object, other) = roles::entered(probe, thread, monitored, &call, spot);
    if matches!(hook.role, Role::ThreadExit) {
        // Does not return, and runs the program's own clean-up code.
        return;
    }
    learn_call(probe, thread, index, spot);
    if !push_quietly(probe, thread, (index, arguments), after, returns_to) {
        let what = PendingKind::Hook { index, arguments, object, other };
        push(thread, what, after, returns_to);
    }
    if hook.opaque && roles::is_understood(&hook.role, other) {
        let allocates = is_allocation(&hook.role);
        thread.set_inside(if allocates { Inside::Allocator } else { Inside::Library });
    }
    let thread_start = match &hook.role {
        Role::ThreadCreate { start, .. } => Some(start),
        _ => None,
    };
    if let Some(callback) = hook.callback.as_ref().or(thread_start) {
        let function = super::expression::evaluate(callback, &call);
        if thread_start.is_some() {
            probe.monitor.teams.add_thread_start(function);
        }
        if function != 0 && probe.instrumentation.learn_callback(function) {
            if let Some(server) = &probe.server {
                server.callback(function);
            }
            thread.slots.set(slot::REBUILD, function);
        }
    }
}

/// From now on the trampoline counts this call by itself.
fn learn_call(probe: &Probe, thread: &mut ThreadState, index: u32, spot: Spot) {
    let MonitoredHook { tally, quiet, .. } = &probe.monitor.hooks[index as usize];
    if tally.is_none() && quiet.is_none() {
        return;
    }
    let Some(mut quick) = thread.quick.take() else { return };
    let site = match quiet {
        Some(Quiet::Return { .. }) => UNKNOWN,
        _ => thread.slots.get(slot::NUMBER) as u32,
    };
    let age = thread.places.age();
    let row = quick.row(spot.pc);
    let known = quiet.is_some()
        && (row.returns_to, row.site, row.age, row.hook) == (spot.pc, site, age, index);
    if thread.log().is_some() && !known {
        thread.add_quick(probe, row);
        *row = Row {
            returns_to: spot.pc,
            site,
            age,
            return_site: UNKNOWN,
            failure_bits: match (tally, quiet) {
                (Some(tally), _) => tally.failure_bits,
                (None, Some(Quiet::Return { failure_bits })) => *failure_bits,
                (None, _) => 0,
            },
            entered: 0,
            succeeded: 0,
            place: spot.place,
            hook: index,
            always: u32::from(*quiet == Some(Quiet::Entry { always: true })),
        };
    }
    thread.quick = Some(quick);
}

/// At the return site with this number; see [`learn_call`].
pub fn learn_return(probe: &Probe, thread: &mut ThreadState, pc: u64, site: u32) {
    if let Some(quick) = &mut thread.quick {
        let row = quick.row(pc);
        let wanted = |hook: &MonitoredHook| !matches!(hook.quiet, Some(Quiet::Entry { .. }));
        if row.returns_to == pc && probe.monitor.hooks.get(row.hook as usize).is_some_and(wanted) {
            row.return_site = site;
        }
    }
}

/// Leaves it to the trampoline to see that a call has returned, if nothing else is to be done then.
fn push_quietly(
    probe: &Probe,
    thread: &mut ThreadState,
    (index, arguments): (u32, [u64; 6]),
    sp: u64,
    returns_to: u64,
) -> bool {
    let quiet = probe.monitor.hooks[index as usize].quiet;
    // Who jumped here is to be seen returning, too.
    let jumped = thread.pending.last().is_some_and(|top| top.sp <= sp);
    let outer = (thread.slots.get(slot::PENDING), thread.slots.get(slot::OPAQUE));
    let Some(quick) = &mut thread.quick else { return false };
    let row = quick.row(returns_to);
    let known = row.returns_to == returns_to && row.hook == index && row.return_site != UNKNOWN;
    if !matches!(quiet, Some(Quiet::Return { .. })) || jumped || !known {
        return false;
    }
    let [first, second, third, ..] = arguments;
    quick.note_frame(returns_to, (sp, [first, second, third]), outer);
    thread.slots.set(slot::PENDING, sp);
    true
}

/// Makes the pending call that the trampoline has noted an ordinary one. Before this is done,
/// nobody may look at the pending calls.
pub fn settle(thread: &mut ThreadState) {
    let Some(frame) = thread.quick.as_mut().and_then(QuickTable::take_frame) else { return };
    thread.find_stack(frame.sp);
    // The slot says so already, and may be gone.
    thread.frames.set_hooked(frame.sp);
    let [first, second, third] = frame.arguments;
    thread.pending.push(Pending {
        // Who counts asks for no arguments; where the return is wanted, the object is the first, and others are not
        // asked for.
        what: PendingKind::Hook {
            index: frame.hook,
            arguments: [first, second, third, 0, 0, 0],
            object: Address(first),
            other: 0,
        },
        sp: frame.sp,
        returns_to: frame.returns_to,
        stack_end: thread.stack_region.1,
        made_inside: Inside::from_slot(frame.outer_inside),
    });
}

/// A function that some hooked one calls back was entered.
pub fn enter_callback(
    probe: &Probe,
    thread: &mut ThreadState,
    function: u64,
    data: u64,
    at: Registers,
) {
    let returns_to = target::return_address(at.sp);
    let after = at.sp + 8;
    let spot = call_spot(probe, thread, returns_to, after, at.bp);
    if !is_jump(thread, after, returns_to) {
        abandon_above(probe, thread, after, spot);
    } else if matches!(thread.pending.last(), Some(top) if top.is_callback()) {
        return;
    }
    let Some(body) = bodies::body_of(probe, thread, function, data) else { return };
    push(thread, PendingKind::Callback(body), after, returns_to);
    thread.set_inside(Inside::Program);
    bodies::begin(probe, thread, body, spot);
}

/// The same as [`settle`] and [`returned`], where it is the call that the trampoline has noted that has returned: most are.
/// False if not, and nothing is done.
pub fn returned_as_noted(
    probe: &Probe,
    thread: &mut ThreadState,
    pc: u64,
    result: u64,
    at: Registers,
) -> bool {
    let Some(quick) = &mut thread.quick else { return false };
    // There is no other that was left by a jump into this one: the trampoline notes none such.
    let Some(frame) = quick.take_frame_at(pc, at.sp) else { return false };
    thread.set_inside(Inside::from_slot(frame.outer_inside));
    // The innermost hooked call is again the one that it was before.
    thread.set_top(thread.slots.get(slot::TOP));
    let spot = call_spot(probe, thread, pc, at.sp, at.bp);
    let [first, second, third] = frame.arguments;
    let arguments = [first, second, third, 0, 0, 0];
    finish_hook(probe, thread, (frame.hook, arguments), (Address(first), 0), Some(result), spot);
    true
}

/// The stack pointer has come up to where the innermost hooked call began, at a return site.
pub fn returned(probe: &Probe, thread: &mut ThreadState, pc: u64, result: u64, at: Registers) {
    let spot = call_spot(probe, thread, pc, at.sp, at.bp);
    while let Some(top) = thread.pending.last() {
        if top.sp == at.sp && top.returns_to == pc {
            // And perhaps another, which was left by a jump into this one.
            let done = pop(thread);
            finish(probe, thread, done, Some(result), spot);
            continue;
        }
        if !is_left_behind(top, at.sp) {
            return;
        }
        let left = pop(thread);
        finish(probe, thread, left, None, spot);
    }
}

/// The handler of a signal is about to run; `sp` is the stack pointer where the signal struck.
pub fn enter_handler(thread: &mut ThreadState, sp: u64) {
    push(thread, PendingKind::Handler, sp, 0);
    thread.set_inside(Inside::Program);
}

/// The handler of a signal returns to where the signal struck.
pub fn leave_handler(probe: &Probe, thread: &mut ThreadState, spot: Spot) {
    let is_handler = |p: &Pending| matches!(p.what, PendingKind::Handler);
    let Some(handler) = thread.pending.iter().rposition(is_handler) else { return };
    while thread.pending.len() > handler {
        let left = pop(thread);
        finish(probe, thread, left, None, spot);
    }
}

/// The thread ends with calls that never returned.
pub fn abandon_all(probe: &Probe, thread: &mut ThreadState, spot: Spot) {
    settle(thread);
    while !thread.pending.is_empty() {
        let left = pop_state_only(thread);
        finish(probe, thread, left, None, spot);
    }
}

fn is_allocation(role: &Role) -> bool {
    matches!(role, Role::Allocate { .. } | Role::Reallocate { .. } | Role::Free { .. })
}

/// Was a function that returns to `returns_to` with this stack pointer entered from the innermost
/// call by a jump?
fn is_jump(thread: &ThreadState, sp: u64, returns_to: u64) -> bool {
    thread.pending.last().is_some_and(|top| top.sp == sp && top.returns_to == returns_to)
}

/// Is the innermost call a function of the same role? Then a jump from it means the same once more:
/// an alias, or a loop to its own entry. From any other function it is a tail call.
fn is_inside_like(probe: &Probe, thread: &ThreadState, role: &Role) -> bool {
    let Some(Pending { what: PendingKind::Hook { index, .. }, .. }) = thread.pending.last() else {
        return false;
    };
    discriminant(&probe.monitor.hooks[*index as usize].hook.role) == discriminant(role)
}

/// Is the innermost hooked call one that makes a thread?
pub fn is_making_thread(probe: &Probe, thread: &ThreadState) -> bool {
    thread.pending.last().is_some_and(|top| match &top.what {
        PendingKind::Hook { index, .. } => {
            matches!(probe.monitor.hooks[*index as usize].hook.role, Role::ThreadCreate { .. })
        }
        _ => false,
    })
}

/// Is what happens at this spot the business of an opaque function? Not when the function has been
/// left by an exception, whose landing pad runs before any return is seen.
pub fn is_hidden(probe: &Probe, thread: &mut ThreadState, spot: Spot) -> bool {
    if thread.is_opaque() {
        abandon_above(probe, thread, spot.sp, spot);
    }
    thread.is_opaque()
}

/// Ends the calls whose frames the stack pointer has left behind.
fn abandon_above(probe: &Probe, thread: &mut ThreadState, sp: u64, spot: Spot) {
    while thread.pending.last().is_some_and(|top| is_left_behind(top, sp)) {
        let left = pop(thread);
        finish(probe, thread, left, None, spot);
    }
}

/// Has the stack pointer passed the frame of this call, on the same stack? A signal handler on an
/// alternate stack, or a coroutine, has a stack pointer above it without having left it.
fn is_left_behind(call: &Pending, sp: u64) -> bool {
    call.sp <= sp && sp < call.stack_end
}

fn push(thread: &mut ThreadState, what: PendingKind, sp: u64, returns_to: u64) {
    thread.find_stack(sp);
    let pending = Pending {
        what,
        sp,
        returns_to,
        stack_end: thread.stack_region.1,
        made_inside: thread.inside(),
    };
    thread.pending.push(pending);
    thread.set_hooked(sp);
}

fn pop(thread: &mut ThreadState) -> Option<Pending> {
    let done = pop_state_only(thread);
    if let Some(done) = &done {
        thread.set_inside(done.made_inside);
    }
    let innermost = thread.pending.last().map_or(u64::MAX, |p| p.sp);
    thread.set_hooked(innermost);
    done
}

/// Like [`pop`], for a thread whose slots are gone.
fn pop_state_only(thread: &mut ThreadState) -> Option<Pending> {
    thread.pending.pop()
}

fn finish(
    probe: &Probe,
    thread: &mut ThreadState,
    done: Option<Pending>,
    result: Option<u64>,
    spot: Spot,
) {
    let Some(done) = done else { return };
    match done.what {
        PendingKind::Handler => {}
        PendingKind::Callback(body) => bodies::end(probe, thread, body, result.is_some(), spot),
        PendingKind::Hook { index, arguments, object, other } => {
            finish_hook(probe, thread, (index, arguments), (object, other), result, spot);
        }
    }
}

fn finish_hook(
    probe: &Probe,
    thread: &mut ThreadState,
    (index, arguments): (u32, [u64; 6]),
    known: (Address, u64),
    result: Option<u64>,
    spot: Spot,
) {
    let hook = &probe.monitor.hooks[index as usize];
    let team = bodies::current_team(thread);
    let call = Call { arguments, result: result.unwrap_or(0), team };
    roles::left(probe, thread, hook, &call, known, result, spot);
    if probe.options.functions {
        thread.emit(probe, spot, EventKind::FunctionExit { hook: index, result });
    }
}

//! What a hooked function's entry and return mean, role by role.
//!
//! Releases are reported at the entry, before they take effect; acquisitions at the return, after
//! they did: so an order seen in the events is an order of the program.

use super::expression::{Call, evaluate};
use super::{Created, MonitoredHook, formats, threads};
use crate::analysis::Touching;
use crate::memory::quick::NOTED;
use crate::memory::target;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_model::depends;
use raddle_model::hook::{Hook, Role, Span, Success};
use raddle_model::{AccessKind, Address, EventKind, Expr, Family, LockMode, SyncObject};

/// Longest thread name the kernel keeps, without its terminator.
const NAME_LENGTH: usize = 15;

/// The events of a hook whose calls only need counting, by name: those of every entry, and those of
/// every return that succeeds. What another return means, only [`left`] knows.
#[derive(Debug, Default)]
pub struct Tally {
    pub entry: Vec<&'static str>,
    pub success: Vec<&'static str>,
    /// The bits of the result that are zero when the call succeeded.
    pub failure_bits: u32,
}

/// The tally of a hook that [`entered`] and [`left`] do nothing for but report events whose names
/// depend on success alone.
pub fn tally(hook: &Hook, wants: impl Fn(Family) -> bool) -> Option<Tally> {
    let (lock, condition, barrier, semaphore) = (Address(0), Address(0), Address(0), Address(0));
    // Does it matter for the event whether the call succeeded?
    let mut judged = false;
    let (entry, success) = match &hook.role {
        Role::LockAcquire { mode, waits, .. } => {
            judged = true;
            let requested = EventKind::LockRequested { lock, mode: *mode, waits: *waits };
            (vec![requested], vec![EventKind::LockAcquired { lock, mode: *mode }])
        }
        Role::LockRelease { mode, .. } => {
            judged = true;
            (vec![EventKind::LockReleased { lock, mode: *mode }], vec![])
        }
        Role::ConditionSignal { .. } => {
            (vec![EventKind::ConditionSignal { condition, all: false }], vec![])
        }
        Role::ConditionBroadcast { .. } => {
            (vec![EventKind::ConditionSignal { condition, all: true }], vec![])
        }
        Role::BarrierWait { .. } => {
            let leave = EventKind::BarrierLeave { barrier };
            (vec![EventKind::BarrierEnter { barrier }], vec![leave])
        }
        Role::SemaphorePost { .. } => (vec![EventKind::SemaphorePost { semaphore }], vec![]),
        Role::SemaphoreWait { .. } => {
            judged = true;
            (vec![], vec![EventKind::SemaphoreAcquired { semaphore }])
        }
        Role::Range { reads, writes } => {
            let reads = reads.iter().map(|span| (AccessKind::Read, span));
            let writes = writes.iter().map(|span| (AccessKind::Write, span));
            let (mut entry, mut success) = (vec![], vec![]);
            for (kind, span) in reads.chain(writes) {
                if !is_never_zero(&span.len) {
                    return None;
                }
                let range = EventKind::Range { kind, address: Address(0), length: 1 };
                if is_late(span) { success.push(range) } else { entry.push(range) }
            }
            (entry, success)
        }
        _ => return None,
    };
    let failure_bits = if judged { failure_bits(hook.success)? } else { 0 };
    let simple = hook.opaque && hook.callback.is_none();
    let names = |kinds: Vec<EventKind>| {
        kinds.iter().filter(|kind| wants(kind.family())).map(EventKind::name).collect()
    };
    simple.then(|| Tally { entry: names(entry), success: names(success), failure_bits })
}

/// The bits of the result that are zero when a call succeeded, if that is how it is told.
fn failure_bits(success: Success) -> Option<u32> {
    match success {
        Success::Always => Some(0),
        // Another success than zero is rare, and judged as if it could be a failure.
        Success::Zero | Success::Equals(0) | Success::ZeroOr(_) => Some(u32::MAX),
        _ => None,
    }
}

/// The end of a call that is nothing to a detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// The entry, of a thread that holds no lock (see `Analysis::is_idle`; the object is the first argument) or
    /// `always`. No arguments are asked for at the return but the first few.
    Entry { always: bool },
    /// The return, unless one of these bits of the result is set: [`left`] does nothing.
    Return { failure_bits: u32 },
}

/// The quiet end of a hook's calls, if they have one.
pub fn quiet(hook: &Hook) -> Option<Quiet> {
    if !hook.opaque || hook.callback.is_some() {
        return None;
    }
    match &hook.role {
        Role::LockAcquire { object: Expr::Arg(1), .. } => Some(Quiet::Entry { always: false }),
        // Who may not release a lock has not.
        Role::LockRelease { object: Expr::Arg(1), .. } => {
            failure_bits(hook.success).map(|failure_bits| Quiet::Return { failure_bits })
        }
        Role::ConditionSignal { .. }
        | Role::ConditionBroadcast { .. }
        | Role::SemaphorePost { .. }
        | Role::Free { .. } => Some(Quiet::Return { failure_bits: 0 }),
        Role::Range { reads, writes } if !reads.iter().chain(writes).any(is_late) => {
            Some(Quiet::Return { failure_bits: 0 })
        }
        Role::Range { reads, writes } => {
            let mut spans = reads.iter().chain(writes);
            let is_noted = |span: &Span| is_noted(&span.at) && is_noted(&span.len);
            spans
                .all(|span| is_late(span) && is_noted(span))
                .then_some(Quiet::Entry { always: true })
        }
        _ => None,
    }
}

/// Does this ask for no arguments but those that the trampoline notes?
fn is_noted(expression: &Expr) -> bool {
    match expression {
        Expr::Arg(number) => usize::from(*number) <= NOTED,
        Expr::Result | Expr::Number(_) => true,
        Expr::Team => false,
        Expr::Deref(a) | Expr::After(a) | Expr::Strlen(a) => is_noted(a),
        Expr::Add(a, b)
        | Expr::Sub(a, b)
        | Expr::Mul(a, b)
        | Expr::Min(a, b)
        | Expr::Bits(a, b)
        | Expr::Strnlen(a, b) => is_noted(a) && is_noted(b),
        Expr::If(a, b, c) | Expr::Common(a, b, c) => is_noted(a) && is_noted(b) && is_noted(c),
    }
}

/// A stretch of memory that a function touches, with what can be said of it before any call.
#[derive(Debug)]
pub struct Stretch {
    kind: AccessKind,
    span: Span,
    /// It is known only when the call has returned.
    late: bool,
    /// It is as long as the one before: what it takes to know a string's length is to read it.
    repeats: bool,
}

/// The stretches of a hook, those known at the entry before the others.
pub fn stretches(hook: &Hook) -> Vec<Stretch> {
    let (Role::Range { reads, writes }
    | Role::Print { reads, writes, .. }
    | Role::Scan { reads, writes, .. }) = &hook.role
    else {
        return Vec::new();
    };
    let reads = reads.iter().map(|span| (AccessKind::Read, span));
    let writes = writes.iter().map(|span| (AccessKind::Write, span));
    let (late, early): (Vec<_>, Vec<_>) = reads.chain(writes).partition(|(_, span)| is_late(span));
    let mut all: Vec<Stretch> = Vec::new();
    for (kind, span) in early.into_iter().chain(late) {
        let late = is_late(span);
        let repeats = all.last().is_some_and(|last| last.late == late && last.span.len == span.len);
        all.push(Stretch { kind, span: span.clone(), late, repeats });
    }
    all
}

/// Is this a length and one more, like that of a string with its end?
fn is_never_zero(length: &Expr) -> bool {
    match length {
        Expr::Number(n) => *n != 0,
        Expr::After(e) => is_never_zero(e),
        Expr::Add(a, b) => {
            let is_length =
                |e: &Expr| matches!(e, Expr::Strlen(_) | Expr::Result | Expr::Common(..));
            (is_length(a) && is_never_zero(b)) || (is_length(b) && is_never_zero(a))
        }
        _ => false,
    }
}

/// Is a stretch known only when the call has returned?
fn is_late(span: &Span) -> bool {
    span.at.needs_return() || span.len.needs_return()
}

/// The function was entered. Returns what the return will need: the object, and one more value.
pub fn entered(
    probe: &Probe,
    thread: &mut ThreadState,
    monitored: &MonitoredHook,
    call: &Call,
    spot: Spot,
) -> (Address, u64) {
    let hook = &monitored.hook;
    let at_entry = |e: &Expr| if e.needs_return() { 0 } else { evaluate(e, call) };
    let object = |e: &Expr| Address(at_entry(e));
    match &hook.role {
        Role::LockAcquire { object: o, mode, waits } => {
            let lock = object(o);
            let (mode, waits) = (*mode, *waits);
            thread.emit(probe, spot, EventKind::LockRequested { lock, mode, waits });
            (lock, 0)
        }
        Role::LockRelease { object: o, mode } => {
            let lock = object(o);
            let analysis = probe.analysis.as_ref();
            if !analysis.is_some_and(|analysis| analysis.give(probe, thread, lock)) {
                thread.emit(probe, spot, EventKind::LockReleased { lock, mode: *mode });
            }
            (lock, 0)
        }
        Role::LockTaken { object: o, exclusive } => {
            let (lock, mode) = (object(o), side(at_entry(exclusive)));
            if lock.0 != 0 {
                thread.emit(probe, spot, EventKind::LockAcquired { lock, mode });
            }
            (lock, 0)
        }
        Role::LockGiven { object: o, exclusive } => {
            let (lock, mode) = (object(o), Some(side(at_entry(exclusive))));
            thread.emit(probe, spot, EventKind::LockReleased { lock, mode });
            (lock, 0)
        }
        Role::LockHandsOver { object: o } => {
            let lock = object(o);
            thread.emit(probe, spot, EventKind::LockHandsOver { lock });
            (lock, 0)
        }
        Role::BarrierEnter { object: o } => {
            let barrier = object(o);
            thread.emit(probe, spot, EventKind::BarrierEnter { barrier });
            (barrier, 0)
        }
        Role::BarrierLeave { object: o } => {
            let barrier = object(o);
            thread.emit(probe, spot, EventKind::BarrierLeave { barrier });
            (barrier, 0)
        }
        Role::OrderRelease { object: o } => {
            let object = SyncObject::Address(object(o));
            thread.emit(probe, spot, EventKind::Release { object });
            (Address(0), 0)
        }
        Role::OrderPut { object: o } => {
            let object = SyncObject::Queue(object(o));
            thread.emit(probe, spot, EventKind::Release { object });
            (Address(0), 0)
        }
        Role::Renew { address, size } => {
            let (address, size) = (object(address), at_entry(size));
            thread.emit(probe, spot, EventKind::MemoryRenewed { address, size });
            (address, size)
        }
        Role::Benign { address, size } => {
            let (address, size) = (object(address), at_entry(size));
            thread.emit(probe, spot, EventKind::BenignRace { address, size });
            (address, size)
        }
        Role::Ignore { what, on } => {
            let what = *what;
            thread.emit(
                probe,
                spot,
                match at_entry(on) {
                    0 => EventKind::IgnoreEnd { what },
                    _ => EventKind::IgnoreBegin { what },
                },
            );
            (Address(0), 0)
        }
        Role::Detection { on } => {
            // An `int`: the upper half of the register is anything.
            let on = at_entry(on) as u32 != 0;
            thread.emit(probe, spot, EventKind::DetectionSwitched { on });
            (Address(0), 0)
        }
        Role::ExitRegister => {
            thread.emit(probe, spot, EventKind::Release { object: SyncObject::ProcessEnd });
            (Address(0), 0)
        }
        Role::ExitRun => {
            thread.emit(probe, spot, EventKind::Acquire { object: SyncObject::ProcessEnd });
            (Address(0), 0)
        }
        Role::ConditionWait { object: o, lock } => {
            let (condition, lock) = (object(o), object(lock));
            thread.emit(probe, spot, EventKind::ConditionWaitBegin { condition, lock });
            (condition, lock.0)
        }
        Role::ConditionSignal { object: o } => {
            let condition = object(o);
            thread.emit(probe, spot, EventKind::ConditionSignal { condition, all: false });
            (condition, 0)
        }
        Role::ConditionBroadcast { object: o } => {
            let condition = object(o);
            thread.emit(probe, spot, EventKind::ConditionSignal { condition, all: true });
            (condition, 0)
        }
        Role::BarrierWait { object: o } => {
            let barrier = object(o);
            thread.emit(probe, spot, EventKind::BarrierEnter { barrier });
            (barrier, 0)
        }
        Role::TeamBarrier => {
            let barrier = call.team;
            thread.emit(probe, spot, EventKind::BarrierEnter { barrier });
            (barrier, 0)
        }
        Role::SemaphorePost { object: o } => {
            let semaphore = object(o);
            thread.emit(probe, spot, EventKind::SemaphorePost { semaphore });
            (semaphore, 0)
        }
        Role::Post { object: o } => {
            let object = object(o);
            match created_as(probe, object) {
                Some(Created::Lock) => {
                    thread.emit(probe, spot, EventKind::LockReleased { lock: object, mode: None })
                }
                Some(Created::Semaphore) => {
                    thread.emit(probe, spot, EventKind::SemaphorePost { semaphore: object });
                }
                Some(Created::Thread) | None => {}
            }
            (object, 0)
        }
        Role::Wait { object: o } => {
            let object = object(o);
            if created_as(probe, object) == Some(Created::Lock) {
                let mode = LockMode::Exclusive;
                thread.emit(
                    probe,
                    spot,
                    EventKind::LockRequested { lock: object, mode, waits: true },
                );
            }
            (object, 0)
        }
        Role::OnceEnd { object: o } => {
            let once = object(o);
            thread.emit(probe, spot, EventKind::OnceEnd { once, done: true });
            (once, 0)
        }
        Role::OnceAbort { object: o } => {
            let once = object(o);
            thread.emit(probe, spot, EventKind::OnceEnd { once, done: false });
            (once, 0)
        }
        Role::ThreadCreate { .. } => {
            thread.last_child = None;
            (Address(0), 0)
        }
        Role::ThreadJoin { handle } => {
            // The handle may be reused as soon as the thread is gone: look it up now.
            let handle = at_entry(handle);
            let known = thread_of(probe, handle);
            (Address(handle), known.map_or(0, |t| u64::from(t.0)))
        }
        Role::ThreadCancel { handle } => {
            let handle = at_entry(handle);
            thread.emit(probe, spot, EventKind::ThreadCancelled { handle });
            (Address(0), 0)
        }
        Role::ThreadName { handle, name } => {
            let (handle, name) = (at_entry(handle), target::string(at_entry(name), NAME_LENGTH));
            let named = thread_of(probe, handle).unwrap_or(thread.id);
            thread.emit_for(named, probe, spot, EventKind::ThreadName { name });
            (Address(0), 0)
        }
        Role::Reallocate { old, .. } => {
            let address = object(old);
            free(probe, thread, spot, address);
            (address, 0)
        }
        Role::Free { address } => {
            let address = object(address);
            free(probe, thread, spot, address);
            (address, 0)
        }
        Role::Range { .. } => {
            ranges(probe, thread, call, spot, &monitored.stretches, false);
            (Address(0), 0)
        }
        Role::Print { .. } | Role::Scan { .. } => {
            let understood = formats::entered(probe, thread, &hook.role, call, spot);
            if understood {
                ranges(probe, thread, call, spot, &monitored.stretches, false);
            }
            (Address(0), u64::from(understood))
        }
        Role::TeamFork { data } | Role::TeamBegin { data } => {
            let team = Address(spot.sp);
            let function = hook.callback.as_ref().map_or(0, at_entry);
            thread.emit(probe, spot, EventKind::TeamFork { team });
            probe.monitor.teams.fork(team, function, at_entry(data));
            if matches!(hook.role, Role::TeamBegin { .. }) {
                thread.teams.push(team);
            }
            (team, 0)
        }
        Role::TaskCreate { data, depends } => {
            let function = hook.callback.as_ref().map_or(0, at_entry);
            let data = at_entry(data);
            let depends = depends.map(|form| {
                let word = |at| target::word(at).unwrap_or(0);
                depends::read(form, &call.arguments, spot.sp, word)
            });
            probe.monitor.teams.add_task(function, &depends.unwrap_or_default());
            let function = Address(function);
            thread.emit(probe, spot, EventKind::TaskCreate { function, data });
            (function, data)
        }
        Role::TransactionCommit => {
            thread.emit(probe, spot, EventKind::TransactionCommit);
            (Address(0), 0)
        }
        Role::TransactionAbort => {
            thread.emit(probe, spot, EventKind::TransactionAbort);
            (Address(0), 0)
        }
        Role::TransactionRead { address, size } | Role::TransactionWrite { address, size } => {
            let kind = match hook.role {
                Role::TransactionRead { .. } => AccessKind::Read,
                _ => AccessKind::Write,
            };
            let (address, size) = (object(address), at_entry(size));
            thread.emit(probe, spot, EventKind::TransactionAccess { kind, address, size });
            (address, size)
        }
        Role::LockCreate { object: o }
        | Role::LockDestroy { object: o }
        | Role::BarrierCreate { object: o, .. }
        | Role::SemaphoreCreate { object: o, .. }
        | Role::SemaphoreWait { object: o }
        | Role::OrderAcquire { object: o }
        | Role::OrderGet { object: o }
        | Role::OnceCall { object: o }
        | Role::OnceBegin { object: o } => (object(o), 0),
        Role::ThreadDetach { handle } => (object(handle), 0),
        Role::Function
        | Role::ConditionWrapper
        | Role::ThreadPause
        | Role::ThreadExit
        | Role::Allocate { .. }
        | Role::TeamJoin
        | Role::TaskWait
        | Role::TransactionStart => (Address(0), 0),
    }
}

/// A block of the heap, if there is one, is about to be given back.
fn free(probe: &Probe, thread: &mut ThreadState, spot: Spot, address: Address) {
    let analysis = probe.analysis.as_ref();
    if address.0 != 0 && !analysis.is_some_and(|a| a.free(probe, thread, spot, address)) {
        thread.emit(probe, spot, EventKind::Free { address, size: 0 });
    }
}

/// One has come into being, if the allocator had one.
fn allocate(probe: &Probe, thread: &mut ThreadState, spot: Spot, address: Address, size: u64) {
    let analysis = probe.analysis.as_ref();
    if address.0 != 0 && !analysis.is_some_and(|a| a.allocate(probe, thread, spot, (address, size)))
    {
        thread.emit(probe, spot, EventKind::Allocate { address, size });
    }
}

/// The function was left; `result` is absent when it did not return.
pub fn left(
    probe: &Probe,
    thread: &mut ThreadState,
    monitored: &MonitoredHook,
    call: &Call,
    (object, other): (Address, u64),
    result: Option<u64>,
    spot: Spot,
) {
    let hook = &monitored.hook;
    let success = result.is_some_and(|r| hook.success.holds(r));
    // An object that only the return knows (a handle made by the call).
    let late = |e: &Expr| if e.needs_return() { Address(evaluate(e, call)) } else { object };
    if let Role::LockAcquire { mode, .. } = &hook.role
        && success
        && let Some(analysis) = &probe.analysis
        && analysis.take(probe, thread, spot, (object, *mode))
    {
        return;
    }
    let mut emit = |kind| thread.emit(probe, spot, kind);
    match &hook.role {
        Role::LockCreate { object: o } if success => {
            let lock = late(o);
            remember(probe, lock, Created::Lock);
            emit(EventKind::LockCreated { lock });
        }
        // One that somebody holds may refuse.
        Role::LockDestroy { .. } if success => {
            forget(probe, object);
            emit(EventKind::LockDestroyed { lock: object });
        }
        Role::LockAcquire { mode, .. } => {
            let (lock, mode) = (object, *mode);
            emit(if success {
                EventKind::LockAcquired { lock, mode }
            } else {
                EventKind::LockFailed { lock, mode }
            });
        }
        Role::LockRelease { mode, .. } if result.is_some() && !success => {
            let mode = mode.unwrap_or(LockMode::Exclusive);
            emit(EventKind::LockFailed { lock: object, mode });
        }
        Role::ConditionWait { .. } => emit(EventKind::ConditionWaitEnd {
            condition: object,
            lock: Address(other),
            woken: success,
        }),
        Role::BarrierCreate { count, .. } if success => {
            emit(EventKind::BarrierCreated { barrier: object, count: evaluate(count, call) });
        }
        Role::BarrierWait { .. } | Role::TeamBarrier if result.is_some() => {
            emit(EventKind::BarrierLeave { barrier: object });
        }
        Role::SemaphoreCreate { object: o, value } if success => {
            let semaphore = late(o);
            remember(probe, semaphore, Created::Semaphore);
            emit(EventKind::SemaphoreCreated { semaphore, value: evaluate(value, call) });
        }
        Role::SemaphoreWait { .. } if success => {
            emit(EventKind::SemaphoreAcquired { semaphore: object });
        }
        Role::OrderAcquire { object: o } if success => {
            let object = SyncObject::Address(late(o));
            emit(EventKind::Acquire { object });
        }
        Role::OrderGet { object: o } if success => {
            let object = SyncObject::Queue(late(o));
            emit(EventKind::Acquire { object });
        }
        Role::OnceCall { .. } if result.is_some() => emit(EventKind::OncePassed { once: object }),
        Role::OnceBegin { .. } if result.is_some() => emit(if success {
            EventKind::OnceBegin { once: object }
        } else {
            EventKind::OncePassed { once: object }
        }),
        Role::ThreadCreate { handle, .. } if success => {
            let handle = evaluate(handle, call);
            let created = thread.last_child;
            if let Some(child) = created {
                lock(&probe.monitor.handles).insert(handle, child);
                remember(probe, Address(handle), Created::Thread);
            }
            thread.emit(probe, spot, EventKind::ThreadCreated { created, handle });
        }
        Role::ThreadJoin { .. } if success => {
            let joined = u32::try_from(other).ok().filter(|t| *t != 0).map(raddle_model::ThreadId);
            emit(EventKind::ThreadJoined { joined, handle: object.0 });
            forget_thread(probe, object.0, joined);
            threads::joined(probe, thread);
        }
        Role::ThreadDetach { .. } if success => {
            emit(EventKind::ThreadDetached { handle: object.0 });
        }
        Role::Wait { .. } => match created_as(probe, object) {
            Some(Created::Lock) => {
                let (lock, mode) = (object, LockMode::Exclusive);
                emit(if success {
                    EventKind::LockAcquired { lock, mode }
                } else {
                    EventKind::LockFailed { lock, mode }
                });
            }
            Some(Created::Semaphore) if success => {
                emit(EventKind::SemaphoreAcquired { semaphore: object });
            }
            Some(Created::Thread) if success => {
                let joined = thread_of(probe, object.0);
                emit(EventKind::ThreadJoined { joined, handle: object.0 });
                forget_thread(probe, object.0, joined);
                threads::joined(probe, thread);
            }
            _ => {}
        },
        Role::Allocate { address, size } if success => {
            let (address, size) = (Address(evaluate(address, call)), evaluate(size, call));
            allocate(probe, thread, spot, address, size);
        }
        Role::Reallocate { address, size, .. } if result.is_some() => {
            let (new, size) = (Address(evaluate(address, call)), evaluate(size, call));
            // When it is refused the old block lives on, as large as it was.
            let refused = new.0 == 0 && size != 0;
            let (address, size) = if refused { (object, 0) } else { (new, size) };
            allocate(probe, thread, spot, address, size);
        }
        Role::Range { .. } if result.is_some() => {
            ranges(probe, thread, call, spot, &monitored.stretches, true);
        }
        Role::Print { .. } | Role::Scan { .. } if is_understood(&hook.role, other) => {
            if let Some(result) = result {
                ranges(probe, thread, call, spot, &monitored.stretches, true);
                formats::left(probe, thread, &hook.role, call, result, spot);
            }
        }
        Role::TeamFork { .. } => {
            probe.monitor.teams.join(object);
            emit(EventKind::TeamJoin { team: object });
        }
        Role::TeamJoin => {
            if let Some(team) = thread.teams.pop() {
                probe.monitor.teams.join(team);
                thread.emit(probe, spot, EventKind::TeamJoin { team });
            }
        }
        Role::TaskWait if result.is_some() => emit(EventKind::TaskWaited),
        Role::TransactionStart if result.is_some() => emit(EventKind::TransactionStart),
        // The rest said all at the entry, or did not succeed.
        Role::Function
        | Role::ConditionWrapper
        | Role::ThreadPause
        | Role::LockTaken { .. }
        | Role::LockGiven { .. }
        | Role::LockHandsOver { .. }
        | Role::BarrierEnter { .. }
        | Role::BarrierLeave { .. }
        | Role::OrderRelease { .. }
        | Role::OrderAcquire { .. }
        | Role::OrderPut { .. }
        | Role::OrderGet { .. }
        | Role::Renew { .. }
        | Role::Benign { .. }
        | Role::Ignore { .. }
        | Role::Detection { .. }
        | Role::ExitRegister
        | Role::ExitRun
        | Role::LockCreate { .. }
        | Role::LockDestroy { .. }
        | Role::LockRelease { .. }
        | Role::ConditionSignal { .. }
        | Role::ConditionBroadcast { .. }
        | Role::BarrierCreate { .. }
        | Role::BarrierWait { .. }
        | Role::SemaphoreCreate { .. }
        | Role::SemaphorePost { .. }
        | Role::SemaphoreWait { .. }
        | Role::OnceCall { .. }
        | Role::OnceBegin { .. }
        | Role::OnceEnd { .. }
        | Role::OnceAbort { .. }
        | Role::ThreadCreate { .. }
        | Role::ThreadJoin { .. }
        | Role::ThreadDetach { .. }
        | Role::ThreadExit
        | Role::ThreadCancel { .. }
        | Role::ThreadName { .. }
        | Role::Post { .. }
        | Role::Allocate { .. }
        | Role::Reallocate { .. }
        | Role::Free { .. }
        | Role::Range { .. }
        | Role::Print { .. }
        | Role::Scan { .. }
        | Role::TeamBegin { .. }
        | Role::TeamBarrier
        | Role::TaskCreate { .. }
        | Role::TaskWait
        | Role::TransactionStart
        | Role::TransactionCommit
        | Role::TransactionAbort
        | Role::TransactionRead { .. }
        | Role::TransactionWrite { .. } => {}
    }
}

/// Reports the stretches that are known at the entry (`after` false) or at the return.
fn ranges(
    probe: &Probe,
    thread: &mut ThreadState,
    call: &Call,
    spot: Spot,
    stretches: &[Stretch],
    after: bool,
) {
    let mut length = 0;
    for stretch in stretches.iter().filter(|stretch| stretch.late == after) {
        if !stretch.repeats {
            length = evaluate(&stretch.span.len, call);
        }
        if length != 0 {
            let (kind, address) = (stretch.kind, evaluate(&stretch.span.at, call));
            touch(probe, thread, spot, Touching { kind, address, length });
        }
    }
}

/// A function touches a stretch of memory.
pub(super) fn touch(probe: &Probe, thread: &mut ThreadState, spot: Spot, touching: Touching) {
    let analysis = probe.analysis.as_ref();
    if !analysis.is_some_and(|analysis| analysis.touch(probe, thread, spot, touching)) {
        let Touching { kind, address, length } = touching;
        thread.emit(probe, spot, EventKind::Range { kind, address: Address(address), length });
    }
}

/// Does a call mean what its role says? `other` is what [`entered`] has returned of it. A format may not be understood.
pub fn is_understood(role: &Role, other: u64) -> bool {
    !matches!(role, Role::Print { .. } | Role::Scan { .. }) || other != 0
}

/// The side of a lock, as annotations tell it: an `int`, so only the lower half counts.
fn side(exclusive: u64) -> LockMode {
    if exclusive as u32 != 0 { LockMode::Exclusive } else { LockMode::Shared }
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn thread_of(probe: &Probe, handle: u64) -> Option<raddle_model::ThreadId> {
    lock(&probe.monitor.handles).get(&handle).copied()
}

/// A thread was joined: its handle is nobody's, unless another has got it already.
fn forget_thread(probe: &Probe, handle: u64, joined: Option<raddle_model::ThreadId>) {
    let mut handles = lock(&probe.monitor.handles);
    if joined.is_some() && handles.get(&handle).copied() == joined {
        handles.remove(&handle);
        drop(handles);
        forget(probe, Address(handle));
    }
}

fn remember(probe: &Probe, object: Address, created: Created) {
    if probe.monitor.has_generic {
        lock(&probe.monitor.created).insert(object, created);
    }
}

fn forget(probe: &Probe, object: Address) {
    if probe.monitor.has_generic {
        lock(&probe.monitor.created).remove(&object);
    }
}

fn created_as(probe: &Probe, object: Address) -> Option<Created> {
    lock(&probe.monitor.created).get(&object).copied()
}

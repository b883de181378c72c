//! Threads: numbers, who made whom, start and end.
//!
//! A thread's number is given before the kernel makes it, in its creator, so that the creator's
//! event comes before the child's. The child finds its birth by the thread id that the kernel has
//! stored where the creator asked (`CLONE_PARENT_SETTID`, which every C library uses), or takes the
//! oldest birth without such a place.

use super::hooks;
use crate::memory::log::Log;
use crate::memory::quick::QuickTable;
use crate::memory::{Reservation, target};
use crate::probe::{Probe, fail};
use crate::stacks::Spot;
use crate::thread::{self, Inside, ThreadState};
use crate::trampoline;
use raddle_dynamorio::client::Client;
use raddle_dynamorio::process;
use raddle_dynamorio::slots::ThreadSlots;
use raddle_model::{Address, EventKind, ModuleId, Place, ThreadId};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

/// A system call under way that makes a thread.
#[derive(Debug, Clone, Copy)]
pub struct Birth {
    pub child: ThreadId,
    pub creator: ThreadId,
    /// Where the kernel puts the child's id before it runs; zero if nowhere.
    pub id_at: u64,
    /// A hooked function makes it: the thread's own function will be recognised.
    pub hooked: bool,
    /// The stack it was given: first byte and size; zero if unknown.
    pub stack: (u64, u64),
}

/// A spot for what happens outside the target's code.
const NOWHERE: Spot = Spot {
    place: Place { module: ModuleId::NONE, offset: 0 },
    pc: 0,
    returns: false,
    sp: 0,
    bp: 0,
};

/// The current thread is new; the target sees `shown` where the kernel says `os_id`.
pub fn start(probe: &Probe, os_id: u32, shown: u32) {
    let birth = take_birth(probe, shown);
    let id = birth.map_or_else(|| next_id(probe), |b| b.child);
    let creator = birth.map(|b| b.creator);
    if probe.options.rehearse_hang && id == ThreadId(3) {
        hang();
    }
    let counters = probe.instrumentation.new_counters();
    let slots = ThreadSlots::current(&probe.slots);
    // The child of a vfork runs in its parent's memory, but is not its parent.
    let log = probe.log().filter(|_| probe.is_own_process());
    let Some(mut state) = ThreadState::new(id, slots, counters, log) else {
        fail("no memory for a thread's state");
    };
    if probe.monitor.quick {
        let quick = QuickTable::new(Probe::instance().modules.age());
        // Where calls are counted, every one is idle.
        state.quick = quick.map(|quick| quick.idle(probe.analysis.is_none()));
    }
    let handlers = match probe.debugger {
        Some(_) => crate::memory::kept::table(),
        None => crate::instrument::handlers::table(),
    };
    probe.threads.add(os_id, state, handlers, trampoline::current_fs());
    let Some(thread) = thread::current(probe) else { return };
    for event in probe.threads.take_early() {
        thread.emit(probe, NOWHERE, event);
    }
    thread.emit(probe, NOWHERE, EventKind::ThreadStart { creator, os_id: shown });
    if let Some(analysis) = &probe.analysis {
        analysis.begin_thread(probe, thread);
    }
    if birth.is_some_and(|b| b.hooked) {
        thread.set_inside(Inside::Margin);
    }
    // The C library hands the stacks of dead threads to new ones, with their thread-local variables:
    // what was there is gone.
    if let Some((start, size)) = birth.map(|b| b.stack).filter(|stack| stack.1 != 0) {
        thread.emit(probe, NOWHERE, EventKind::Allocate { address: Address(start), size });
        thread.given_stack = Some(Address(start));
    }
}

/// Waits for a lock that is never given back, as a bug of ours would.
#[inline(never)]
fn hang() {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    std::mem::forget(LOCK.lock());
    drop(LOCK.lock());
}

/// A number nobody has.
pub fn next_id(probe: &Probe) -> ThreadId {
    ThreadId(probe.monitor.next_thread.fetch_add(1, Ordering::Relaxed))
}

fn births(probe: &Probe) -> MutexGuard<'_, Vec<Birth>> {
    probe.monitor.births.lock().unwrap_or_else(|e| e.into_inner())
}

/// A thread is about to be made.
pub fn announce_birth(probe: &Probe, birth: Birth) {
    births(probe).push(birth);
}

/// The call that should have made `child` has failed.
pub fn withdraw_birth(probe: &Probe, child: ThreadId) {
    births(probe).retain(|b| b.child != child);
}

/// Waits until the threads under way have begun: a thread that ends takes the process with it if the
/// engine knows of no other, and the engine knows a thread only when it runs.
pub fn await_births(probe: &Probe) {
    // Under a policy whoever makes a thread has waited for it already, and it takes its birth when it
    // is its turn: not while the one who ends has it.
    if probe.scheduler.is_some() {
        return;
    }
    wait_while(|| !births(probe).is_empty());
}

/// Waits until the threads under way have their signal masks, before the program sends itself a
/// signal. Where threads run in turn they cannot be waited for.
pub fn await_masks(probe: &Probe) {
    if probe.scheduler.is_none() {
        // What it sends at this point of its life it does not wait for.
        probe.monitor.masks.grown_up(&probe.slots);
        wait_while(|| !births(probe).is_empty() || probe.monitor.masks.has_newborns());
    }
}

fn wait_while(something_is_under_way: impl Fn() -> bool) {
    /// Longer than any thread takes to begin; a birth that nobody takes must not hang the target.
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(5);
    let started = std::time::Instant::now();
    while something_is_under_way() && started.elapsed() < LONGEST {
        process::yield_thread();
    }
}

fn take_birth(probe: &Probe, id: u32) -> Option<Birth> {
    let mut births = births(probe);
    let mine = births
        .iter()
        .position(|b| b.id_at != 0 && target::half(b.id_at) == Some(id))
        .or_else(|| births.iter().position(|b| b.id_at == 0))?;
    let birth = births.remove(mine);
    if birth.hooked {
        // Before the lock is given back: who waits for births and masks sees one or the other.
        probe.monitor.masks.newborn(&probe.slots);
    }
    Some(birth)
}

/// Another thread was joined. If nobody else is left and nothing that others did can race any more, code goes on without what
/// only matters beside other threads.
pub fn joined(probe: &Probe, thread: &ThreadState) {
    let is_solo = || probe.analysis.as_ref().is_some_and(|analysis| analysis.is_solo(thread.id));
    if probe.instrumentation.may_be_solo()
        && births(probe).is_empty()
        && is_solo()
        && probe.instrumentation.begin_solo()
    {
        process::rebuild_everything_later();
    }
}

/// A thread ends, or has been stopped because the process ends.
pub fn exit(probe: &Probe, os_id: u32) {
    let Some(mut thread) = probe.threads.remove(probe.slots, os_id) else { return };
    probe.monitor.masks.grown_up(&probe.slots);
    if !probe.is_own_process() && thread.log().is_some() {
        // A copy of one of the parent's threads: its log is the parent's, and its memory may have
        // been half-changed when the process was copied.
        std::mem::forget(thread);
        return;
    }
    if probe.threads.exit_status().is_none() {
        // A call that the end of the process cuts off has not ended: it never did.
        hooks::abandon_all(probe, &mut thread, NOWHERE);
    }
    // Those that the process takes with it when it ends do so in no order that anybody fixes.
    if probe.scheduler.is_none() || probe.threads.exit_status().is_none() {
        thread.emit(probe, NOWHERE, EventKind::ThreadExit);
    }
    if let Some(analysis) = &probe.analysis {
        analysis.end_thread(probe, &mut thread);
    }
    thread.flush_counts(probe);
    thread.close();
}

/// In a forked child: this thread is the only one, and the first of its process.
pub fn forked(probe: &Probe, os_id: u32) {
    let Some(thread) = thread::current(probe) else { return };
    probe.threads.keep_only(thread, os_id);
    births(probe).clear();
    probe.monitor.masks.forked(&probe.slots);
    probe.monitor.channels.forget();
    probe.stacks.forget();
    thread.restart(thread.id, probe.log());
    if let Some(counters) = &mut thread.counters {
        counters.clear();
    }
    thread.emit(probe, NOWHERE, EventKind::ThreadStart { creator: None, os_id });
    if let Some(analysis) = probe.analysis.as_ref().filter(|_| probe.options.follow) {
        analysis.begin_thread(probe, thread);
    }
}

/// The last words of the process.
pub fn process_end(probe: &Probe, log: &std::sync::Arc<Log>) {
    let slots = ThreadSlots::current(&probe.slots);
    let Some(mut last) = ThreadState::new(ThreadId(0), slots, None, Some(log.clone())) else {
        return;
    };
    if let Some(analysis) = &probe.analysis {
        analysis.finish(&mut last);
    }
    let status = probe.threads.exit_status();
    last.emit(probe, NOWHERE, EventKind::ProcessEnd { status });
    last.close();
}

/// Reserves a thread's block counters.
pub fn counters(blocks: usize) -> Reservation {
    match Reservation::new(blocks * 8) {
        Some(counters) => counters,
        None => fail("no memory for a thread's counters"),
    }
}

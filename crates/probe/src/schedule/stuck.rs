//! Deadlocks: threads that wait for each other's locks, or nobody who can run.

use super::table::{Entry, Wait};
use super::{Scheduler, State};
use crate::memory::log::Log;
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process;
use raddle_dynamorio::slots::ThreadSlots;
use raddle_model::{Address, EventKind, ModuleId, Place, StackId, ThreadId};
use raddle_wire::log::{self as wire, Record};
use std::sync::{Arc, MutexGuard};

/// What a stuck target exits with: it will not end by itself. The same as for any finding.
const EXIT_STUCK: i32 = 66;

/// Somebody to write records for threads that are not there any more.
pub fn reporter(probe: &Probe) -> Option<ThreadState> {
    let slots = ThreadSlots::current(&probe.slots);
    let log: Option<Arc<Log>> = probe.log();
    ThreadState::new(ThreadId(0), slots, None, log)
}

impl Scheduler {
    /// Keeps who holds which lock and who asks for one. True when it asks while it holds another.
    pub(super) fn note_lock(&self, thread: &ThreadState, kind: &EventKind) -> bool {
        let mut state = self.lock();
        let Some(entry) = state.entry(thread.id) else { return false };
        match *kind {
            EventKind::LockRequested { lock, .. } => {
                entry.wanted = Some(lock);
                return !entry.held.is_empty();
            }
            EventKind::LockFailed { .. } => entry.wanted = None,
            EventKind::LockAcquired { lock, .. } => {
                entry.wanted = None;
                entry.held.push(lock);
            }
            EventKind::LockReleased { lock, .. } | EventKind::ConditionWaitBegin { lock, .. } => {
                release(entry, lock)
            }
            EventKind::ConditionWaitEnd { lock, .. } => entry.held.push(lock),
            _ => {}
        }
        false
    }

    /// The thread is about to wait for its lock for good: does that close a circle?
    pub(super) fn check_cycle(&self, probe: &Probe, thread: &mut ThreadState) {
        let state = self.lock();
        let mut circle = vec![thread.id];
        let mut at = thread.id;
        loop {
            let Some(wanted) = state.table.get(at).and_then(|e| e.wanted) else { return };
            let Some(owner) = state.table.iter().find(|e| e.held.contains(&wanted)) else { return };
            if owner.id == thread.id {
                break;
            }
            let waits = matches!(owner.wait, Wait::Futex { .. }) && owner.deadline.is_none();
            if !waits || circle.contains(&owner.id) {
                return;
            }
            circle.push(owner.id);
            at = owner.id;
        }
        // One that waits for a lock of its own is a deadlock too, unless the lock allows it; then it
        // would not wait.
        drop(self.stuck(probe, thread, state, Some(circle)));
    }

    /// Nobody of these can go on. Says so and ends the target, which would not end by itself.
    pub(super) fn stuck<'a>(
        &'a self,
        probe: &Probe,
        thread: &mut ThreadState,
        mut state: MutexGuard<'a, State>,
        circle: Option<Vec<ThreadId>>,
    ) -> MutexGuard<'a, State> {
        let cycle = circle.is_some();
        let involved = |e: &&Entry| circle.as_ref().is_none_or(|c| c.contains(&e.id));
        let waits: Vec<wire::Wait> = state
            .table
            .iter()
            .filter(involved)
            .map(|entry| {
                let stack = match entry.spot {
                    Some(spot) if probe.options.stacks => {
                        probe.stacks.capture_and_tell(probe, thread, spot)
                    }
                    _ => StackId::NONE,
                };
                wait_of(entry, stack)
            })
            .collect();
        thread.write(&Record::Stuck { waits, cycle });
        state.write_all(thread);
        self.stop();
        if let Some(log) = thread.log() {
            log.set_state(wire::State::Ended);
        }
        process::abort(EXIT_STUCK)
    }
}

fn wait_of(entry: &Entry, stack: StackId) -> wire::Wait {
    let nowhere = Place { module: ModuleId::NONE, offset: 0 };
    let futex = match &entry.wait {
        Wait::Futex { addresses, .. } => addresses.first().map(|f| Address(f.address)),
        _ => None,
    };
    wire::Wait {
        thread: entry.id,
        place: entry.spot.map_or(nowhere, |spot| spot.place),
        stack,
        wants: entry.wanted,
        futex,
        holds: entry.held.clone(),
    }
}

fn release(entry: &mut Entry, lock: Address) {
    if let Some(at) = entry.held.iter().rposition(|held| *held == lock) {
        entry.held.remove(at);
    }
}

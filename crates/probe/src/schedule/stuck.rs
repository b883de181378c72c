//! The end of targets that would not end by themselves: threads that wait for each other's locks, nobody who
//! can run, or nobody who gets on.

use super::table::{Entry, Wait};
use super::{Scheduler, State};
use crate::memory::log::Log;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_dynamorio::process;
use raddle_dynamorio::slots::ThreadSlots;
use raddle_model::{Address, ModuleId, Place, StackId, ThreadId};
use raddle_wire::debug;
use raddle_wire::log::{self as wire, Record};
use std::sync::{Arc, MutexGuard};

/// What a stuck target exits with: it will not end by itself. The same as for any finding.
const EXIT_STUCK: i32 = 66;

/// Why the target does not end by itself.
#[derive(Debug)]
pub enum Why {
    /// These wait for each other's locks.
    Circle(Vec<ThreadId>),
    NobodyCanRun,
    /// Who can run goes round in circles.
    NoProgress,
}

/// Somebody to write records for threads that are not there any more.
pub fn reporter(probe: &Probe) -> Option<ThreadState> {
    let slots = ThreadSlots::current(&probe.slots);
    let log: Option<Arc<Log>> = probe.log();
    ThreadState::new(ThreadId(0), slots, None, log)
}

impl Scheduler {
    /// The thread is about to wait for its lock for good: does that close a circle?
    pub(super) fn check_cycle(&self, probe: &Probe, thread: &mut ThreadState) {
        let state = self.lock();
        let mut circle = vec![thread.id];
        let mut at = thread.id;
        loop {
            let Some(wanted) = state.table.get(at).and_then(|e| e.wanted) else { return };
            let Some(owner) = state.table.owner(wanted) else { return };
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
        drop(self.stuck(probe, thread, state, Why::Circle(circle)));
    }

    /// Nobody of these can go on. Says so and ends the target, which would not end by itself.
    pub(super) fn stuck<'a>(
        &'a self,
        probe: &Probe,
        thread: &mut ThreadState,
        mut state: MutexGuard<'a, State>,
        why: Why,
    ) -> MutexGuard<'a, State> {
        if let Some(debugger) = &probe.debugger {
            drop(state);
            debugger.stop(probe, thread, debug::Why::Deadlock);
            state = self.lock();
        }
        let involved = |e: &&Entry| match &why {
            Why::Circle(circle) => circle.contains(&e.id),
            Why::NobodyCanRun | Why::NoProgress => true,
        };
        let waits: Vec<wire::Wait> = state
            .table
            .iter()
            .filter(involved)
            .map(|entry| {
                let stack = match spot_of(entry) {
                    Some(spot) if probe.options.stacks => {
                        probe.stacks.capture_and_tell(probe, thread, spot)
                    }
                    _ => StackId::NONE,
                };
                wait_of(entry, stack, matches!(why, Why::NoProgress))
            })
            .collect();
        let cycle = matches!(why, Why::Circle(_));
        thread.write(&Record::Stuck { waits, cycle });
        state.write_all(thread);
        self.stop();
        if let Some(log) = thread.log() {
            log.set_state(wire::State::Ended);
        }
        process::abort(EXIT_STUCK)
    }
}

/// Where a thread waits: where it asks for its lock, or else where it was last seen.
fn spot_of(entry: &Entry) -> Option<Spot> {
    entry.wanted.and(entry.asks_at).or(entry.spot)
}

fn wait_of(entry: &Entry, stack: StackId, may_spin: bool) -> wire::Wait {
    let nowhere = Place { module: ModuleId::NONE, offset: 0 };
    let futex = match &entry.wait {
        Wait::Futex { addresses, .. } => addresses.first().map(|f| Address(f.address)),
        _ => None,
    };
    wire::Wait {
        thread: entry.id,
        place: spot_of(entry).map_or(nowhere, |spot| spot.place),
        stack,
        wants: entry.wanted,
        futex,
        spins: may_spin && matches!(entry.wait, Wait::Nothing),
        holds: entry.held.iter().map(|held| held.lock).collect(),
    }
}

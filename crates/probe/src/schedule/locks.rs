//! Who holds which lock and who asks for one, as hooks tell; and, of requests made with a lock in hand, which
//! belong to the circle that is looked for, and which close one.

use super::Scheduler;
use super::table::{Entry, Held, Table};
use super::watch::Watched;
use crate::monitor::modules::LoadedModule;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_model::{Address, EventKind, LockMode, ThreadId};
use raddle_schedule::{Nested, Step};
use raddle_wire::options::CyclePart;
use std::sync::atomic::Ordering;

/// The circle that is looked for: where its locks are taken and where the next ones are asked for.
#[derive(Debug)]
pub struct Cycle {
    takes: Watched,
    asks: Watched,
}

impl Cycle {
    pub fn new(parts: &[CyclePart]) -> Cycle {
        let places = |of: fn(&CyclePart) -> &_| parts.iter().map(of).cloned().collect::<Vec<_>>();
        Cycle {
            takes: Watched::new(&places(|p| &p.took)),
            asks: Watched::new(&places(|p| &p.asks)),
        }
    }

    pub fn module_loaded(&self, module: &LoadedModule) {
        self.takes.module_loaded(module);
        self.asks.module_loaded(module);
    }
}

impl Scheduler {
    /// An event of the current thread about a lock; it may have to give way before it asks for one.
    pub(super) fn lock_event(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        kind: &EventKind,
    ) {
        match *kind {
            EventKind::LockRequested { lock, waits, .. } => {
                let nested = self.requested(thread.id, lock, spot);
                if nested && waits && self.has_lock_points() && self.controls_many(thread) {
                    let parts = bits(self.cycle.asks.all(probe, thread, spot, false));
                    let step = Step::Nested(self.nested(thread.id, lock, parts, spot));
                    self.give_way(probe, thread, step);
                }
            }
            EventKind::LockAcquired { lock, mode } => {
                self.acquired(probe, thread, spot, lock, mode);
            }
            EventKind::ConditionWaitEnd { lock, .. } => {
                self.acquired(probe, thread, spot, lock, LockMode::Exclusive);
            }
            EventKind::LockFailed { .. } => {
                if let Some(entry) = self.lock().entry(thread.id) {
                    entry.wanted = None;
                }
            }
            EventKind::LockReleased { lock, .. } | EventKind::ConditionWaitBegin { lock, .. } => {
                if let Some(entry) = self.lock().entry(thread.id) {
                    release(entry, lock);
                }
            }
            _ => {}
        }
    }

    fn has_lock_points(&self) -> bool {
        self.lock_points.load(Ordering::Relaxed)
    }

    fn acquired(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        lock: Address,
        mode: LockMode,
    ) {
        let parts = bits(self.cycle.takes.all(probe, thread, spot, false));
        let mut state = self.lock();
        // Whoever had it to itself has lost it unseen.
        if mode == LockMode::Exclusive {
            state.table.iter_mut().filter(|e| e.id != thread.id).for_each(|e| release(e, lock));
        }
        if let Some(entry) = state.entry(thread.id) {
            entry.wanted = None;
            entry.held.push(Held { lock, parts });
        }
    }

    /// The thread asks for a lock. True when it holds another.
    fn requested(&self, thread: ThreadId, lock: Address, spot: Spot) -> bool {
        let mut state = self.lock();
        let Some(entry) = state.entry(thread) else { return false };
        // Of a lock whose fast path is inlined it is told twice; where it begins is where it is.
        if entry.wanted.replace(lock) != Some(lock) {
            entry.asks_at = Some(spot);
        }
        !entry.held.is_empty() && !entry.held.iter().any(|held| held.lock == lock)
    }

    fn nested(&self, thread: ThreadId, lock: Address, parts: u64, spot: Spot) -> Nested {
        let state = self.lock();
        let took = |e: &Entry| e.held.iter().fold(0, |all, held| all | held.parts);
        let own = state.table.get(thread).map_or(0, took);
        let any = self.cycle.asks.is_empty();
        Nested {
            place: spot.place,
            suspected: any || parts & own != 0,
            closes: closes(&state.table, thread, lock),
        }
    }
}

/// Does asking for `lock` close a circle of threads that each ask for what the next one holds?
fn closes(table: &Table, thread: ThreadId, lock: Address) -> bool {
    let mut wanted = Some(lock);
    // A circle has no more threads than there are.
    for _ in 0..table.len() {
        let Some(owner) = wanted.and_then(|lock| table.owner(lock)) else { return false };
        if owner.id == thread {
            return true;
        }
        wanted = owner.wanted;
    }
    false
}

/// Indices as bits; of more than 64 parts the rest is left out.
fn bits(indices: Vec<usize>) -> u64 {
    indices.into_iter().filter(|at| *at < 64).fold(0, |bits, at| bits | 1 << at)
}

fn release(entry: &mut Entry, lock: Address) {
    if let Some(at) = entry.held.iter().rposition(|held| held.lock == lock) {
        entry.held.remove(at);
    }
}

//! Cycles of locks: deadlocks that another schedule could bring, found in an execution without any.
//!
//! After GoodLock (Havelund, "Using runtime analysis to guide model checking of Java programs", SPIN
//! 2000) in the form of iGoodlock (Joshi, Park, Sen, Naik, "A randomized dynamic program analysis
//! technique for detecting real deadlocks", PLDI 2009, section 2.2). Each request for a lock that may wait,
//! made with other locks in hand, is a [`Dependency`]. A *cycle* is a list of them in which
//! - each asks for a lock that the next one holds, and the last for one that the first holds, so that at
//!   least one of asking and holding is exclusive (two readers do not keep each other waiting);
//! - all are of different threads: one thread does not wait for itself;
//! - no two hold a common lock that keeps the two from being there at once (a *gate* lock);
//! - no two are ordered in the weak order. What fork, join, conditions and the like put in order never
//!   comes together; that one lock's release came before another's acquisition is chance;
//! - none can be left out (the paper's cycles are minimal, too).
//!
//! A new dependency is tried as the last of a cycle, so each is found once, whatever the number of threads.
//! A request that cannot wait for ever (`trylock`, a time limit) is none; nor is one for a lock that the
//! thread holds.
//!
//! Programs repeat themselves: of dependencies that differ in the moment or the thread only, a few are kept,
//! and the rest are recognised by a look at one table ([`Shape`]).

use crate::held::HeldLocks;
use crate::order::{Orders, Tenure};
use raddle_model::clock::{Stamp, VectorClock};
use raddle_model::finding::{Certainty, Finding, FindingKind, FindingWait};
use raddle_model::lockset::{HeldLock, LockSet};
use raddle_model::{Address, Event, EventKind, LockMode, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// How much is remembered and looked at.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Moments kept of one thread's requests of one shape: before and after it forked, joined or was
    /// signalled they may stand in other relations.
    pub moments: usize,
    /// Moments kept of one shape in all: a server with a thread per request has ever the same ones.
    pub instances: usize,
    /// Threads in a cycle. Longer ones exist on paper; each more multiplies the search.
    pub longest: usize,
    /// Dependencies looked at for a new one: a program that holds thousands of locks crosswise must not
    /// stop.
    pub search: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { moments: 4, instances: 32, longest: 6, search: 20_000 }
    }
}

/// A request for a lock by a thread that holds others.
#[derive(Debug)]
struct Dependency {
    thread: ThreadId,
    wants: HeldLock,
    held: Arc<LockSet>,
    /// When, and what was before in the weak order.
    stamp: Stamp,
    clock: VectorClock,
    /// The weak order's dealings of the thread so far.
    version: u64,
    _tenure: Tenure,
}

impl Dependency {
    /// Does it wait for a lock that `other` holds?
    fn waits_for(&self, other: &Dependency) -> bool {
        let theirs = other.held.mode(self.wants.lock);
        theirs.is_some_and(|mode| {
            mode == LockMode::Exclusive || self.wants.mode == LockMode::Exclusive
        })
    }

    /// Can both threads be at their requests at once? A lock whose releases we miss is no gate.
    fn meets(&self, other: &Dependency, locks: &HeldLocks) -> bool {
        let sure = |of: &Dependency| -> LockSet {
            of.held.iter().filter(|held| !locks.is_unsure(held.lock)).copied().collect()
        };
        self.thread != other.thread
            && !self.clock.covers(other.stamp)
            && !other.clock.covers(self.stamp)
            && (!self.held.excludes(&other.held) || !sure(self).excludes(&sure(other)))
    }
}

/// What is asked for and what is held: requests that differ in nothing else are alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shape {
    wants: (Address, LockMode),
    holds: Box<[(Address, LockMode)]>,
}

/// The cycles of an execution, as far as it has come.
#[derive(Debug, Default)]
pub struct LockOrder {
    /// By number; those of locks that are no more are gone.
    dependencies: BTreeMap<usize, Dependency>,
    next: usize,
    shapes: FxHashMap<Shape, Vec<usize>>,
    /// Those that hold a lock, and those that hold or want it.
    holding: FxHashMap<Address, Vec<usize>>,
    naming: BTreeMap<Address, Vec<usize>>,
    /// What each thread has asked for and not got yet.
    asked: FxHashMap<ThreadId, Address>,
    found: Vec<Finding>,
    bounds: Bounds,
}

impl LockOrder {
    /// With other bounds.
    pub fn bounded(bounds: Bounds) -> LockOrder {
        LockOrder { bounds, ..LockOrder::default() }
    }

    /// Follows one event; `locks` is who holds what before it.
    pub fn event(&mut self, event: &Event, locks: &HeldLocks, orders: &mut Orders) {
        match event.kind {
            EventKind::LockRequested { lock, mode, waits } => {
                self.asked.insert(event.thread, lock);
                if waits {
                    self.request(event, (lock, mode), locks, orders);
                }
            }
            // Where the call was inlined, only its success is seen.
            EventKind::LockAcquired { lock, mode } => {
                let asked = self.asked.remove(&event.thread) == Some(lock);
                if !asked {
                    self.request(event, (lock, mode), locks, orders);
                }
            }
            EventKind::LockFailed { .. } | EventKind::ThreadExit => {
                self.asked.remove(&event.thread);
            }
            // It gives the lock up, and will ask for it again with the others still in hand.
            EventKind::ConditionWaitBegin { lock, .. } => {
                let others = locks.each(event.thread).filter(|h| h.lock != lock);
                let others: Arc<LockSet> = Arc::new(others.collect());
                let wants = (lock, LockMode::Exclusive);
                self.request_holding(event, wants, (&others, locks), orders);
            }
            EventKind::LockCreated { lock } | EventKind::LockDestroyed { lock } => {
                self.forget(lock.0..lock.0.saturating_add(1));
            }
            _ => {}
        }
    }

    /// Has a thread asked for a lock, and not been answered?
    pub fn has_asked(&self, thread: ThreadId) -> bool {
        self.asked.contains_key(&thread)
    }

    /// The cycles found since the last call, one for each set of dependencies.
    pub fn take_found(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.found)
    }

    /// Memory comes or goes: locks that lay there are no more.
    pub fn forget(&mut self, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        let gone = Address(bytes.start)..Address(bytes.end);
        let locks: Vec<Address> = self.naming.range(gone).map(|(lock, _)| *lock).collect();
        for number in locks.iter().filter_map(|lock| self.naming.remove(lock)).flatten() {
            let Some(dependency) = self.dependencies.remove(&number) else { continue };
            self.shapes.remove(&shape(&dependency.wants, &dependency.held));
            for held in dependency.held.iter() {
                if let Some(holders) = self.holding.get_mut(&held.lock) {
                    holders.retain(|n| *n != number);
                }
            }
        }
    }

    fn request(
        &mut self,
        event: &Event,
        wants: (Address, LockMode),
        locks: &HeldLocks,
        orders: &mut Orders,
    ) {
        if !locks.is_empty_handed(event.thread) {
            self.request_holding(event, wants, (locks.of(event.thread), locks), orders);
        }
    }

    fn request_holding(
        &mut self,
        event: &Event,
        (lock, mode): (Address, LockMode),
        (held, locks): (&Arc<LockSet>, &HeldLocks),
        orders: &mut Orders,
    ) {
        if held.is_empty() || held.mode(lock).is_some() || held.mode(LockSet::TRANSACTION).is_some()
        {
            return;
        }
        let thread = event.thread;
        let wants = HeldLock { lock, mode, place: event.place, stack: event.stack, life: 0 };
        let shape = shape(&wants, held);
        let version = orders.weak_version(thread);
        let known = self.shapes.entry(shape).or_default();
        let mut moments = 0;
        for other in known.iter().filter_map(|n| self.dependencies.get(n)) {
            if other.thread == thread {
                moments += 1;
                if other.version == version {
                    return;
                }
            }
        }
        if moments >= self.bounds.moments || known.len() >= self.bounds.instances {
            return;
        }
        let (stamp, tenure) = orders.stamp(thread);
        let clock = orders.weak_clock(thread);
        let held = Arc::clone(held);
        let new = Dependency { thread, wants, held, stamp, clock, version, _tenure: tenure };
        self.search(&new, locks);
        let number = self.next;
        self.next += 1;
        known_of(&mut self.shapes, &new).push(number);
        self.naming.entry(lock).or_default().push(number);
        for held in new.held.iter() {
            self.holding.entry(held.lock).or_default().push(number);
            self.naming.entry(held.lock).or_default().push(number);
        }
        self.dependencies.insert(number, new);
    }

    /// Looks for cycles that end with `new`.
    fn search(&mut self, new: &Dependency, locks: &HeldLocks) {
        let mut search = Search { all: self, locks, steps: self.bounds.search, found: Vec::new() };
        search.extend(&mut vec![new]);
        let found = search.found;
        self.found.extend(found);
    }
}

/// A search for cycles through one dependency.
struct Search<'a> {
    all: &'a LockOrder,
    locks: &'a HeldLocks,
    steps: usize,
    found: Vec<Finding>,
}

impl<'a> Search<'a> {
    /// Tries all that the last of `path` can wait for; each of the path waits for the next.
    fn extend(&mut self, path: &mut Vec<&'a Dependency>) {
        let (Some(first), Some(last)) = (path.first().copied(), path.last().copied()) else {
            return;
        };
        for number in self.all.holding.get(&last.wants.lock).into_iter().flatten() {
            let Some(next) = self.all.dependencies.get(number) else { continue };
            if self.steps == 0 {
                return;
            }
            self.steps -= 1;
            if !last.waits_for(next) || !path.iter().all(|other| other.meets(next, self.locks)) {
                continue;
            }
            // Whoever can be left out is: the shorter cycle is found by itself.
            let (before, after) = (&path[..path.len() - 1], &path[1..]);
            let shorter = before.iter().any(|other| other.waits_for(next))
                || after.iter().any(|other| next.waits_for(other));
            if shorter {
                continue;
            }
            path.push(next);
            if next.waits_for(first) {
                self.found.push(cycle(path));
            } else if path.len() < self.all.bounds.longest {
                self.extend(path);
            }
            path.pop();
        }
    }
}

/// The finding of a cycle, from the thread with the least number on.
fn cycle(path: &[&Dependency]) -> Finding {
    let least = (0..path.len()).min_by_key(|at| path[*at].thread).unwrap_or(0);
    let waits = path.iter().cycle().skip(least).take(path.len()).map(|dependency| FindingWait {
        thread: dependency.thread,
        wants: dependency.wants,
        holds: dependency.held.iter().copied().collect(),
    });
    let waits: Vec<FindingWait> = waits.collect();
    Finding {
        kind: FindingKind::LockOrder,
        certainty: Certainty::Predicted,
        address: waits.first().map_or(Address(0), |wait| wait.wants.lock),
        accesses: Vec::new(),
        count: 1,
        rules: Vec::new(),
        waits,
    }
}

fn shape(wants: &HeldLock, held: &LockSet) -> Shape {
    Shape {
        wants: (wants.lock, wants.mode),
        holds: held.iter().map(|h| (h.lock, h.mode)).collect(),
    }
}

fn known_of<'a>(
    shapes: &'a mut FxHashMap<Shape, Vec<usize>>,
    of: &Dependency,
) -> &'a mut Vec<usize> {
    shapes.entry(shape(&of.wants, &of.held)).or_default()
}

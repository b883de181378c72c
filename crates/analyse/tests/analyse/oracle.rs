//! What detectors must answer, worked out the slow and obvious way: the orders as reachability in a
//! graph of events, the lock sets by counting, the races by comparing every pair of accesses.

use raddle_analyse::order::Order;
use raddle_model::finding::Certainty;
use raddle_model::{AccessKind, Address, Event, EventKind, LockMode, ThreadId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// A set of events.
type Events = BTreeSet<usize>;
/// Locks held, with their side.
type Held = BTreeMap<Address, LockMode>;

/// An execution with all there is to know of it.
pub struct Oracle<'a> {
    events: &'a [Event],
    /// For each event, those ordered before it, without what the event itself acquires.
    before_full: Vec<Events>,
    before_weak: Vec<Events>,
    /// Locks held before each event.
    held: Vec<Held>,
    /// Bytes that are synchronisation variables at each event.
    synchronisation: Vec<BTreeSet<u64>>,
}

impl<'a> Oracle<'a> {
    pub fn new(events: &'a [Event]) -> Oracle<'a> {
        let held = held(events);
        let (edges, synchronisation) = edges(events, &held);
        Oracle {
            events,
            before_full: closure(events, &edges, true),
            before_weak: closure(events, &edges, false),
            held,
            synchronisation,
        }
    }

    pub fn ordered(&self, earlier: usize, later: usize, order: Order) -> bool {
        match order {
            Order::Full => self.before_full[later].contains(&earlier),
            Order::Weak => self.before_weak[later].contains(&earlier),
        }
    }

    pub fn held(&self, event: usize) -> &Held {
        &self.held[event]
    }

    /// Every racing pair of accesses, the earlier first.
    pub fn races(&self) -> Vec<(usize, usize, Certainty)> {
        let mut races = Vec::new();
        for later in 0..self.events.len() {
            for earlier in 0..later {
                if self.collide(earlier, later) {
                    let certainty = match self.ordered(earlier, later, Order::Full) {
                        true => Certainty::Predicted,
                        false => Certainty::Observed,
                    };
                    races.push((earlier, later, certainty));
                }
            }
        }
        races
    }

    fn collide(&self, earlier: usize, later: usize) -> bool {
        !self.racing_bytes(earlier, later).is_empty()
    }

    /// The bytes at which two accesses race.
    pub fn racing_bytes(&self, earlier: usize, later: usize) -> Vec<u64> {
        let (Some((a, a_bytes)), Some((b, b_bytes))) =
            (touch(&self.events[earlier]), touch(&self.events[later]))
        else {
            return Vec::new();
        };
        let common_lock = self.held[earlier].iter().any(|(lock, mine)| {
            self.held[later].get(lock).is_some_and(|theirs| {
                (*mine == LockMode::Exclusive || !writes(a))
                    && (*theirs == LockMode::Exclusive || !writes(b))
            })
        });
        let reset = |byte: u64| {
            self.events[earlier + 1..later].iter().any(|event| match &event.kind {
                EventKind::Allocate { address, size } | EventKind::Free { address, size } => {
                    (address.0..address.0 + size).contains(&byte)
                }
                _ => false,
            })
        };
        if self.ordered(earlier, later, Order::Weak) || common_lock {
            return Vec::new();
        }
        let races = |byte: &u64| {
            a_bytes.contains(byte)
                && !reset(*byte)
                && conflict(a, b, self.synchronisation[later].contains(byte))
        };
        b_bytes.filter(races).collect()
    }
}

/// The kind of an access, `None` for a free, and its bytes.
fn touch(event: &Event) -> Option<(Option<AccessKind>, Range<u64>)> {
    match &event.kind {
        EventKind::Access { kind, address, size } => {
            Some((Some(*kind), address.0..address.0 + u64::from(*size)))
        }
        EventKind::Free { address, size } => Some((None, address.0..address.0 + size)),
        _ => None,
    }
}

/// Giving memory back is a write.
fn writes(kind: Option<AccessKind>) -> bool {
    kind.is_none_or(AccessKind::writes)
}

/// Pairs of kinds that do not conflict; all others do.
fn conflict(a: Option<AccessKind>, b: Option<AccessKind>, synchronisation: bool) -> bool {
    use AccessKind::*;
    let (Some(a), Some(b)) = (a, b) else { return true };
    !matches!(
        (a.min(b), a.max(b), synchronisation),
        (Read | AtomicRead, Read | AtomicRead, _)
            | (AtomicUpdate, AtomicUpdate | AtomicRead | AtomicWrite, _)
            | (AtomicRead | AtomicWrite, AtomicRead | AtomicWrite, _)
            | (Read, AtomicUpdate, _)
            | (Read, AtomicWrite, true)
    )
}

/// An edge from one event to what follows another; in the full order only?
struct Edge {
    from: usize,
    full_only: bool,
}

/// For each event, the events it acquires from; and which bytes are synchronisation variables.
fn edges(events: &[Event], held: &[Held]) -> (Vec<Vec<Edge>>, Vec<BTreeSet<u64>>) {
    use EventKind::*;
    let mut all = Vec::new();
    let mut variables = Vec::new();
    // The last event that released to each byte, and whether the byte is a synchronisation variable.
    let mut bytes: BTreeMap<u64, (usize, bool)> = BTreeMap::new();
    for (k, event) in events.iter().enumerate() {
        let past = &events[..k];
        let from = |full_only: bool, released: &dyn Fn(&Event) -> bool| -> Vec<Edge> {
            let released = past.iter().enumerate().filter(|(_, event)| released(event));
            released.map(|(from, _)| Edge { from, full_only }).collect()
        };
        variables.push(bytes.iter().filter(|(_, (_, sync))| *sync).map(|(at, _)| *at).collect());
        let mut edges = match &event.kind {
            ThreadStart { .. } => from(
                false,
                &|e| matches!(&e.kind, ThreadCreate { child } if *child == event.thread),
            ),
            ThreadJoined { joined, .. } => from(false, &|e| Some(e.thread) == *joined),
            LockAcquired { lock, mode } => from(true, &|e| releases(held, e, *lock, *mode)),
            ConditionWaitEnd { condition, lock, woken } => {
                let begin = past.iter().rposition(|e| {
                    e.thread == event.thread && matches!(e.kind, ConditionWaitBegin { .. })
                });
                let since = &past[begin.unwrap_or(0)..];
                let signals = |e: &Event| matches!(&e.kind, ConditionSignal { condition: c, .. } if c == condition);
                let mut edges = from(true, &|e| releases(held, e, *lock, LockMode::Exclusive));
                if *woken || since.iter().any(signals) {
                    edges.extend(from(false, &signals));
                }
                edges
            }
            BarrierLeave { .. } => {
                let enters: Vec<usize> =
                    (0..k).filter(|i| matches!(events[*i].kind, BarrierEnter { .. })).collect();
                let mine = enters.iter().rposition(|i| events[*i].thread == event.thread);
                let round = mine.map_or(0, |at| at / 2 * 2);
                let both = enters[round..].iter().take(2);
                both.map(|from| Edge { from: *from, full_only: false }).collect()
            }
            SemaphoreAcquired { .. } => from(false, &|e| matches!(e.kind, SemaphorePost { .. })),
            Acquire { object: from_it } => {
                from(false, &|e| matches!(&e.kind, Release { object } if object == from_it))
            }
            OnceBegin { .. } | OncePassed { .. } => {
                from(false, &|e| matches!(e.kind, OnceEnd { .. }))
            }
            _ => Vec::new(),
        };
        if let Access { kind, address, size } = &event.kind {
            for byte in address.0..address.0 + u64::from(*size) {
                let (released, sync) = match bytes.get(&byte) {
                    Some((released, sync)) => (Some(*released), *sync),
                    None => (None, false),
                };
                let (acquires, releases, update) = match kind {
                    AccessKind::Read => (sync, false, false),
                    AccessKind::Write => (false, sync, false),
                    AccessKind::AtomicRead | AccessKind::SpinRead => (true, false, false),
                    AccessKind::AtomicWrite => (false, true, false),
                    AccessKind::AtomicUpdate => (true, true, true),
                };
                if acquires {
                    edges.extend(released.map(|from| Edge { from, full_only: false }));
                }
                if releases {
                    bytes.insert(byte, (k, sync || update));
                }
            }
        }
        if let Allocate { address, size } | Free { address, size } = &event.kind {
            bytes.retain(|byte, _| !(address.0..address.0 + size).contains(byte));
        }
        all.push(edges);
    }
    (all, variables)
}

/// Does `event` release `lock` in a way that an acquisition in `mode` waits for?
fn releases(held: &[Held], event: &Event, lock: Address, mode: LockMode) -> bool {
    match &event.kind {
        EventKind::ConditionWaitBegin { lock: l, .. } => *l == lock,
        EventKind::LockReleased { lock: l, .. } if *l == lock => {
            // Which side it was: the one held just before.
            let side = held[event.order as usize].get(&lock);
            mode == LockMode::Exclusive || side == Some(&LockMode::Exclusive)
        }
        _ => false,
    }
}

/// For each event, those with a path to it, in the full or the weak order.
fn closure(events: &[Event], edges: &[Vec<Edge>], full: bool) -> Vec<Events> {
    let mut last: HashMap<ThreadId, usize> = HashMap::new();
    let mut before: Vec<Events> = Vec::new();
    // The same with what the event acquires, and itself.
    let mut upto: Vec<Events> = Vec::new();
    for (k, event) in events.iter().enumerate() {
        let mine: Events = last.get(&event.thread).map(|i| upto[*i].clone()).unwrap_or_default();
        let mut all = mine.clone();
        for edge in edges[k].iter().filter(|edge| full || !edge.full_only) {
            all.extend(upto[edge.from].iter().copied());
        }
        all.insert(k);
        before.push(mine);
        upto.push(all);
        last.insert(event.thread, k);
    }
    before
}

/// The locks each event's thread holds before the event.
fn held(events: &[Event]) -> Vec<Held> {
    let mut counts: BTreeMap<(ThreadId, Address, LockMode), i32> = BTreeMap::new();
    let mut held = Vec::new();
    for event in events {
        let mut now = BTreeMap::new();
        for ((thread, lock, mode), count) in counts.iter().rev() {
            if *thread == event.thread && *count > 0 {
                // Exclusive comes last in this order, and wins.
                now.insert(*lock, *mode);
            }
        }
        held.push(now);
        let mut add = |lock: Address, mode: LockMode, by: i32| {
            *counts.entry((event.thread, lock, mode)).or_default() += by;
        };
        match &event.kind {
            EventKind::LockAcquired { lock, mode } => add(*lock, *mode, 1),
            EventKind::LockReleased { lock, .. } => {
                let mode = held.last().and_then(|now| now.get(lock)).copied();
                add(*lock, mode.unwrap_or(LockMode::Exclusive), -1);
            }
            EventKind::ConditionWaitBegin { lock, .. } => add(*lock, LockMode::Exclusive, -1),
            EventKind::ConditionWaitEnd { lock, .. } => add(*lock, LockMode::Exclusive, 1),
            _ => {}
        }
    }
    held
}

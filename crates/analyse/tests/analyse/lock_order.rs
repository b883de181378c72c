//! Cycles of locks: the rules one by one, and all of them against brute force.

use crate::dsl::*;
use crate::oracle::Oracle;
use crate::scripts::{Accesses, Places, choices, world};
use proptest::prelude::*;
use raddle_analyse::held::HeldLocks;
use raddle_analyse::lock_order::{Bounds, LockOrder};
use raddle_analyse::order::{Order, Orders};
use raddle_analyse::{ConditionRule, DetectorKind, Options};
use raddle_model::finding::{Certainty, Finding, FindingKind};
use raddle_model::lockset::LockSet;
use raddle_model::{Address, Event, EventKind, LockMode, ThreadId};
use std::collections::BTreeSet;

const K: u64 = 0x2300;

/// Takes locks one after another, and gives them back.
fn nested(thread: u32, locks: &[u64]) -> Vec<Step> {
    let take = locks.iter().map(|lock| t(thread).waits_and_locks(*lock));
    let release = locks.iter().rev().map(|lock| t(thread).unlocks(*lock));
    take.chain(release).collect()
}

fn cycles(kind: DetectorKind, parts: &[Vec<Step>]) -> Vec<Finding> {
    let found = run_with(kind, Options::default(), &parts.concat());
    assert!(found.iter().all(|f| f.kind == FindingKind::LockOrder), "{found:?}");
    found
}

/// Who waits for what, in each cycle.
fn waits(found: &[Finding]) -> Vec<Vec<(u32, u64)>> {
    let wait = |f: &Finding| f.waits.iter().map(|w| (w.thread.0, w.wants.lock.0)).collect();
    found.iter().map(wait).collect()
}

fn two() -> Vec<Step> {
    vec![t(1).begins(), t(1).forks(2), t(1).forks(3)]
}

#[test]
fn opposite_orders_are_a_cycle_though_the_threads_never_met() {
    let found = cycles(HYBRID, &[two(), nested(2, &[M, N]), nested(3, &[N, M])]);
    assert_eq!(waits(&found), [[(2, N), (3, M)]]);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.certainty, finding.count), (Certainty::Predicted, 1));
    // Where each lock was taken, and where the next one is asked for: steps 4 and 5, 8 and 9.
    let places = |w: &raddle_model::finding::FindingWait| {
        (w.holds[0].lock.0, w.holds[0].place.offset, w.wants.place.offset)
    };
    assert_eq!(finding.waits.iter().map(places).collect::<Vec<_>>(), [(M, 4, 5), (N, 8, 9)]);
    for kind in [SHORT, LONG] {
        assert_eq!(cycles(kind, &[two(), nested(2, &[M, N]), nested(3, &[N, M])]).len(), 1);
    }
    assert!(cycles(HB, &[two(), nested(2, &[M, N]), nested(3, &[N, M])]).is_empty());
}

#[test]
fn one_order_is_none() {
    assert!(cycles(HYBRID, &[two(), nested(2, &[M, N]), nested(3, &[M, N])]).is_empty());
}

#[test]
fn one_thread_does_not_wait_for_itself() {
    assert!(cycles(HYBRID, &[two(), nested(2, &[M, N]), nested(2, &[N, M])]).is_empty());
    // Nor for a lock it holds.
    assert!(cycles(HYBRID, &[two(), nested(2, &[M, M]), nested(3, &[M, M])]).is_empty());
}

#[test]
fn a_gate_lock_keeps_them_apart() {
    let gated = [two(), nested(2, &[K, M, N]), nested(3, &[K, N, M])];
    assert!(cycles(HYBRID, &gated).is_empty());
    let only_one = [two(), nested(2, &[K, M, N]), nested(3, &[N, M])];
    assert_eq!(waits(&cycles(HYBRID, &only_one)), [[(2, N), (3, M)]]);
}

#[test]
fn a_lock_whose_releases_we_miss_is_no_gate() {
    // Both are said to hold K, which cannot be.
    let gated =
        [two(), vec![t(2).locks(K)], nested(2, &[M, N]), vec![t(3).locks(K)], nested(3, &[N, M])];
    assert_eq!(waits(&cycles(HYBRID, &gated)), [[(2, N), (3, M)]]);
}

#[test]
fn the_shared_side_of_a_gate_does_not() {
    let shared = |thread: u32, locks: &[u64]| {
        let mut steps = vec![t(thread).asks_and_takes(RW, LockMode::Shared)];
        steps.extend(nested(thread, locks));
        steps.push(t(thread).unlocks(RW));
        steps
    };
    let found = cycles(HYBRID, &[two(), shared(2, &[M, N]), shared(3, &[N, M])]);
    assert_eq!(waits(&found), [[(2, N), (3, M)]]);
}

#[test]
fn fork_and_join_keep_them_apart() {
    let joined = [
        vec![t(1).begins(), t(1).forks(2)],
        nested(2, &[M, N]),
        vec![t(1).joins(2), t(1).forks(3)],
        nested(3, &[N, M]),
    ];
    assert!(cycles(HYBRID, &joined).is_empty());
    let before_fork =
        [vec![t(1).begins()], nested(1, &[M, N]), vec![t(1).forks(2)], nested(2, &[N, M])];
    assert!(cycles(HYBRID, &before_fork).is_empty());
    // Once before the fork, where it is harmless, and once after.
    let both = [
        vec![t(1).begins()],
        nested(1, &[M, N]),
        vec![t(1).forks(2)],
        nested(1, &[M, N]),
        nested(2, &[N, M]),
    ];
    assert_eq!(waits(&cycles(HYBRID, &both)), [[(1, N), (2, M)]]);
}

#[test]
fn the_order_of_other_locks_is_chance() {
    let handed = [two(), nested(2, &[M, N]), nested(2, &[K]), nested(3, &[K]), nested(3, &[N, M])];
    assert_eq!(cycles(HYBRID, &handed).len(), 1);
}

#[test]
fn three_threads_and_three_locks() {
    let start = [two(), vec![t(1).forks(4)]].concat();
    let round = [start, nested(2, &[M, N]), nested(3, &[N, K]), nested(4, &[K, M])];
    assert_eq!(waits(&cycles(HYBRID, &round)), [[(2, N), (3, K), (4, M)]]);
    // Two of the three are the same thread's: it cannot wait twice.
    let folded = [two(), nested(2, &[M, N]), nested(3, &[N, K]), nested(3, &[K, M])];
    assert!(cycles(HYBRID, &folded).is_empty());
}

#[test]
fn readers_do_not_keep_readers_waiting() {
    let side = |thread: u32, first: u64, mode: LockMode| {
        vec![
            t(thread).waits_and_locks(first),
            t(thread).asks_and_takes(RW, mode),
            t(thread).unlocks(RW),
            t(thread).unlocks(first),
        ]
    };
    let inside = |thread: u32, mode: LockMode, second: u64| {
        vec![
            t(thread).asks_and_takes(RW, mode),
            t(thread).waits_and_locks(second),
            t(thread).unlocks(second),
            t(thread).unlocks(RW),
        ]
    };
    for (asks, holds, deadlocks) in [
        (LockMode::Shared, LockMode::Shared, false),
        (LockMode::Exclusive, LockMode::Shared, true),
        (LockMode::Shared, LockMode::Exclusive, true),
    ] {
        let found = cycles(HYBRID, &[two(), side(2, M, asks), inside(3, holds, M)]);
        assert_eq!(found.len(), usize::from(deadlocks), "{asks:?} {holds:?}");
    }
}

#[test]
fn who_only_tries_does_not_wait() {
    let tries = [
        two(),
        nested(2, &[M, N]),
        vec![t(3).waits_and_locks(N), t(3).tries(M), t(3).unlocks(M), t(3).unlocks(N)],
    ];
    assert!(cycles(HYBRID, &tries).is_empty());
    // But what it got by trying others wait for.
    let holds = [
        two(),
        nested(2, &[M, N]),
        vec![t(3).tries(N), t(3).waits_and_locks(M), t(3).unlocks(M), t(3).unlocks(N)],
    ];
    assert_eq!(cycles(HYBRID, &holds).len(), 1);
}

#[test]
fn an_inlined_lock_is_not_asked_for_and_counts() {
    let inlined = |thread: u32, (a, b): (u64, u64)| {
        vec![t(thread).locks(a), t(thread).locks(b), t(thread).unlocks(b), t(thread).unlocks(a)]
    };
    let found = cycles(HYBRID, &[two(), inlined(2, (M, N)), inlined(3, (N, M))]);
    assert_eq!(waits(&found), [[(2, N), (3, M)]]);
    // A try that failed says nothing of the next taking.
    let (lock, mode) = (Address(M), LockMode::Exclusive);
    let failed = [
        two(),
        nested(2, &[M, N]),
        vec![
            t(3).waits_and_locks(N),
            t(3).does(EventKind::LockRequested { lock, mode, waits: false }),
            t(3).does(EventKind::LockFailed { lock, mode }),
            t(3).locks(M),
        ],
    ];
    assert_eq!(cycles(HYBRID, &failed).len(), 1);
}

#[test]
fn a_condition_s_lock_is_asked_for_again() {
    let waiter = vec![
        t(2).waits_and_locks(M),
        t(2).waits_and_locks(N),
        t(2).unlocks(M),
        t(2).waits_and_locks(K),
        t(2).waits(CV, N),
        t(2).wakes(CV, N),
    ];
    // It holds K while it waits for the condition with N, and then wants N.
    let found = cycles(HYBRID, &[two(), waiter, nested(3, &[N, K])]);
    let waits = waits(&found);
    assert!(waits.contains(&vec![(2, N), (3, K)]), "{waits:?}");
}

#[test]
fn a_request_that_is_never_granted_counts() {
    let stuck = vec![t(3).waits_and_locks(N), t(3).asks(M, LockMode::Exclusive)];
    assert_eq!(cycles(HYBRID, &[two(), nested(2, &[M, N]), stuck]).len(), 1);
}

#[test]
fn a_lock_made_anew_is_another() {
    let destroyed = t(1).does(EventKind::LockDestroyed { lock: Address(M) });
    let anew = [two(), nested(2, &[M, N]), vec![destroyed], nested(3, &[N, M])];
    assert!(cycles(HYBRID, &anew).is_empty());
    let freed = [
        two(),
        vec![t(1).allocates(M, 64)],
        nested(2, &[M, N]),
        vec![t(1).frees(M)],
        nested(3, &[N, M]),
    ];
    assert!(cycles(HYBRID, &freed).is_empty());
}

#[test]
fn the_same_places_are_one_finding() {
    let start = [two(), vec![t(1).forks(4), t(1).forks(5)]].concat();
    let at = |thread: u32, (a, b): (u64, u64), place: u64| {
        vec![
            t(thread).waits_and_locks(a).at(place),
            t(thread).waits_and_locks(b).at(place + 1),
            t(thread).unlocks(b),
            t(thread).unlocks(a),
        ]
    };
    let pairs =
        [start, at(2, (M, N), 50), at(3, (N, M), 60), at(4, (K, RW), 50), at(5, (RW, K), 60)];
    let found = cycles(HYBRID, &pairs);
    assert_eq!(found.iter().map(|f| f.count).collect::<Vec<_>>(), [2]);
}

#[test]
fn what_is_kept_has_bounds() {
    let mut parts = vec![vec![t(1).begins()]];
    for thread in 2..400 {
        parts.push(vec![t(1).forks(thread)]);
        parts.push(nested(thread, if thread % 2 == 0 { &[M, N] } else { &[N, M] }));
    }
    // 32 threads of either order are kept; each cycle of them is at places of its own here.
    let found = cycles(HYBRID, &parts);
    assert_eq!(found.len(), 32 * 32);
}

/// A dependency as brute force sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    thread: ThreadId,
    wants: (Address, LockMode),
    holds: Vec<(Address, LockMode)>,
}

/// A world of little but locks: five threads, four locks with two sides, forks, joins and posts.
fn lock_world(choices: &[(u8, u8, u8, u8)]) -> Vec<Event> {
    const LOCKS: [u64; 4] = [M, N, K, RW];
    let mut steps = vec![t(1).begins()];
    // Who holds what; absent: not forked yet, or joined.
    let mut threads: Vec<Option<Vec<(u64, LockMode)>>> = vec![Some(Vec::new()); 1];
    for &(who, deed, which, mode) in choices {
        let index = who as usize % threads.len();
        let Some(holds) = threads[index].clone() else { continue };
        let thread = index as u32 + 1;
        let lock = LOCKS[which as usize % LOCKS.len()];
        let mode = if mode % 3 == 0 { LockMode::Shared } else { LockMode::Exclusive };
        let free = threads
            .iter()
            .flatten()
            .flatten()
            .all(|(l, m)| *l != lock || (*m == LockMode::Shared && mode == LockMode::Shared));
        match deed % 16 {
            0..8 if free && !holds.iter().any(|(l, _)| *l == lock) => {
                steps.push(t(thread).takes(lock, mode));
                threads[index].iter_mut().for_each(|holds| holds.push((lock, mode)));
            }
            8..13 if !holds.is_empty() => {
                let (lock, _) = holds[which as usize % holds.len()];
                steps.push(t(thread).unlocks(lock));
                threads[index].iter_mut().for_each(|holds| holds.retain(|(l, _)| *l != lock));
            }
            13 if threads.len() < 5 => {
                threads.push(Some(Vec::new()));
                steps.push(t(thread).forks(threads.len() as u32));
            }
            14 if which % 4 == 0 => steps.push(t(thread).posts(SEM)),
            14 if which % 4 == 1 => steps.push(t(thread).gets(SEM)),
            15 => {
                let other = which as usize % threads.len();
                if other > index && threads[other].as_ref().is_some_and(Vec::is_empty) {
                    steps.push(t(thread).joins(other as u32 + 1));
                    threads[other] = None;
                }
            }
            _ => {}
        }
    }
    events(&steps)
}

/// Every lock is asked for before it is taken, as by calls that wait.
fn with_requests(events: Vec<Event>) -> Vec<Event> {
    let mut all: Vec<Event> = Vec::new();
    for event in events {
        if let EventKind::LockAcquired { lock, mode } = event.kind {
            all.push(Event {
                kind: EventKind::LockRequested { lock, mode, waits: true },
                ..event.clone()
            });
        }
        all.push(event);
    }
    for (order, event) in all.iter_mut().enumerate() {
        event.order = order as u64;
    }
    all
}

/// All cycles of up to three threads, by comparing everything with everything.
fn brute_force(events: &[Event]) -> BTreeSet<BTreeSet<Edge>> {
    let oracle = Oracle::new(events);
    let mut edges: Vec<(usize, Edge)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let mut holds = oracle.held(at).clone();
        let wants = match event.kind {
            EventKind::LockRequested { lock, mode, .. } if !holds.contains_key(&lock) => {
                (lock, mode)
            }
            EventKind::ConditionWaitBegin { lock, .. } => {
                holds.remove(&lock);
                (lock, LockMode::Exclusive)
            }
            _ => continue,
        };
        if !holds.is_empty() && !holds.contains_key(&LockSet::TRANSACTION) {
            let holds = holds.into_iter().collect();
            edges.push((at, Edge { thread: event.thread, wants, holds }));
        }
    }
    let blocks = |a: LockMode, b: LockMode| a == LockMode::Exclusive || b == LockMode::Exclusive;
    let waits = |a: &Edge, b: &Edge| {
        b.holds.iter().any(|(lock, mode)| *lock == a.wants.0 && blocks(*mode, a.wants.1))
    };
    let gated = |a: &Edge, b: &Edge| {
        a.holds.iter().any(|(l, m)| b.holds.iter().any(|(k, n)| l == k && blocks(*m, *n)))
    };
    let apart = |(i, a): &(usize, Edge), (j, b): &(usize, Edge)| {
        a.thread == b.thread || gated(a, b) || oracle.ordered(*i.min(j), *i.max(j), Order::Weak)
    };
    let mut found = BTreeSet::new();
    for a in &edges {
        for b in edges.iter().filter(|b| waits(&a.1, &b.1) && !apart(a, b)) {
            if waits(&b.1, &a.1) {
                found.insert(BTreeSet::from([a.1.clone(), b.1.clone()]));
                continue;
            }
            let thirds = edges.iter().filter(|c| waits(&b.1, &c.1) && waits(&c.1, &a.1));
            let minimal = |c: &&(usize, Edge)| !waits(&a.1, &c.1) && !waits(&c.1, &b.1);
            for c in thirds.filter(|c| minimal(c) && !apart(a, c) && !apart(b, c)) {
                found.insert(BTreeSet::from([a.1.clone(), b.1.clone(), c.1.clone()]));
            }
        }
    }
    found
}

fn by_analyser(events: &[Event], bounds: Bounds) -> BTreeSet<BTreeSet<Edge>> {
    let mut orders = Orders::new(ConditionRule::AllSignallers, true);
    let mut held = HeldLocks::default();
    let mut lock_order = LockOrder::bounded(bounds);
    for event in events {
        orders.before(event);
        lock_order.event(event, &held, &mut orders);
        let change = held.event(event);
        orders.event(event, change);
    }
    let edge = |w: &raddle_model::finding::FindingWait| Edge {
        thread: w.thread,
        wants: (w.wants.lock, w.wants.mode),
        holds: w.holds.iter().map(|h| (h.lock, h.mode)).collect(),
    };
    let all = lock_order.take_found();
    all.iter().map(|f| f.waits.iter().map(edge).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// All cycles, and nothing but cycles; with bounds, nothing but cycles.
    #[test]
    fn cycles_are_those_of_brute_force(choices in choices()) {
        check(&world(&choices, Accesses::Plain, Places::Distinct))?;
        check(&lock_world(&choices))?;
    }
}

fn check(events: &[Event]) -> Result<(), TestCaseError> {
    let events = with_requests(events.to_vec());
    let expected = brute_force(&events);
    let none =
        Bounds { moments: usize::MAX, instances: usize::MAX, longest: 3, search: usize::MAX };
    let found = by_analyser(&events, none);
    prop_assert_eq!(&found, &expected);
    let few = Bounds { moments: 1, instances: 2, longest: 3, search: 50 };
    prop_assert!(by_analyser(&events, few).is_subset(&expected));
    Ok(())
}

/// The property above would hold of worlds without cycles, too.
#[test]
fn worlds_have_cycles() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut lengths = BTreeSet::new();
    for _ in 0..600 {
        let choices = choices().new_tree(&mut runner).unwrap().current();
        let events = with_requests(lock_world(&choices));
        lengths.extend(brute_force(&events).iter().map(BTreeSet::len));
    }
    assert_eq!(lengths, BTreeSet::from([2, 3]));
}

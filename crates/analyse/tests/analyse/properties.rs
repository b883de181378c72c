//! Detectors against the oracle, on random executions.

use crate::dsl::*;
use crate::oracle::Oracle;
use crate::scripts::{Accesses, Places, choices, world};
use proptest::prelude::*;
use raddle_analyse::held::HeldLocks;
use raddle_analyse::order::{Order, Orders, Tenure};
use raddle_analyse::{Analyser, ConditionRule, DetectorKind, History, Options};
use raddle_model::clock::Stamp;
use raddle_model::finding::{Certainty, Finding, FindingKind};
use raddle_model::{AccessKind, Address, Event, EventKind, Place, StackId, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

fn found(kind: DetectorKind, options: Options, events: &[Event]) -> Vec<Finding> {
    let mut detector = kind.detector(options);
    for event in events {
        detector.event(event);
    }
    detector.end();
    let races = detector.findings().iter().filter(|f| f.kind == FindingKind::DataRace);
    races.cloned().collect()
}

fn remembering(history: History) -> Options {
    Options { history, handovers: false, ..Options::default() }
}

/// The best certainty for each key.
fn best<K: Ord>(all: impl IntoIterator<Item = (K, Certainty)>) -> BTreeMap<K, Certainty> {
    let mut best = BTreeMap::new();
    for (key, certainty) in all {
        let known = best.entry(key).or_insert(certainty);
        *known = certainty.max(*known);
    }
    best
}

fn pair(a: Place, b: Place) -> (Place, Place) {
    (a.min(b), a.max(b))
}

/// The same execution with an end: thread 1 joins the others, as far as the bits of `joined` say so.
fn ended(mut events: Vec<Event>, joined: u64) -> Vec<Event> {
    use raddle_model::EventKind::{ThreadCreate, ThreadExit, ThreadStart};
    let main = events[0].thread;
    let who = |did: fn(&EventKind) -> bool| -> BTreeSet<ThreadId> {
        events.iter().filter(|e| did(&e.kind)).map(|e| e.thread).collect()
    };
    let started = who(|kind| matches!(kind, ThreadStart { .. }));
    let exited = who(|kind| matches!(kind, ThreadExit));
    let created = events.iter().filter_map(|e| match e.kind {
        ThreadCreate { child } => Some((child, e.thread)),
        _ => None,
    });
    let mut steps = Vec::new();
    for (child, creator) in created {
        if !started.contains(&child) {
            steps.push((child, ThreadStart { creator: Some(creator), os_id: 0 }));
        }
        if !exited.contains(&child) {
            steps.push((child, ThreadExit));
            if joined >> (child.0 % 64) & 1 != 0 || !joined.is_multiple_of(3) {
                let joined = Some(child);
                steps.push((main, EventKind::ThreadJoined { joined, handle: 0 }));
            }
        }
    }
    let place = events[0].place;
    for (thread, kind) in steps {
        let order = events.len() as u64;
        events.push(Event { order, thread, place, stack: StackId::NONE, kind });
    }
    let kind = EventKind::Access { kind: AccessKind::Read, address: Address(X), size: 4 };
    let order = events.len() as u64;
    events.push(Event { order, thread: main, place, stack: StackId::NONE, kind });
    events
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Both orders are reachability in the graph of events; whichever stamps are remembered, and so
    /// whichever chains are reused.
    #[test]
    fn orders_are_reachability(choices in choices(), remembered in any::<u64>()) {
        let events = ended(world(&choices, Accesses::All, Places::Distinct), remembered);
        let oracle = Oracle::new(&events);
        let mut orders = Orders::new(ConditionRule::AllSignallers, true);
        let mut held = HeldLocks::default();
        let mut stamps: Vec<(usize, Stamp, Tenure)> = Vec::new();
        for (k, event) in events.iter().enumerate() {
            orders.before(event);
            let (stamp, tenure) = orders.stamp(event.thread);
            if orders.is_solo(event.thread) {
                let all = stamps.iter().all(|(i, ..)| oracle.ordered(*i, k, Order::Weak));
                prop_assert!(all, "event {k} is not after all that is remembered");
            }
            for (i, stamp, _) in &stamps {
                for order in [Order::Full, Order::Weak] {
                    prop_assert_eq!(
                        orders.ordered(*stamp, event.thread, order),
                        oracle.ordered(*i, k, order),
                        "event {} before event {} in {:?}", i, k, order
                    );
                }
            }
            if remembered >> (k % 64) & 1 != 0 {
                stamps.push((k, stamp, tenure));
            }
            let locks: BTreeMap<_, _> =
                held.of(event.thread).iter().map(|h| (h.lock, h.mode)).collect();
            prop_assert_eq!(&locks, oracle.held(k));
            let change = held.event(event);
            orders.event(event, change);
            if let raddle_model::EventKind::Allocate { address, size }
            | raddle_model::EventKind::Free { address, size } = &event.kind
            {
                orders.forget(address.0..address.0 + size);
            }
        }
    }

    /// Where stamps are remembered without a token, as in shadow memory, whoever is solo comes after all there was.
    #[test]
    fn who_is_solo_comes_after_everything(choices in choices(), joined in any::<u64>()) {
        let events = ended(world(&choices, Accesses::All, Places::Distinct), joined);
        let oracle = Oracle::new(&events);
        let mut orders = Orders::with_chains((64, 64), ConditionRule::AllSignallers, true);
        let mut held = HeldLocks::default();
        for (k, event) in events.iter().enumerate() {
            orders.before(event);
            orders.tick(event.thread);
            if orders.is_solo(event.thread) {
                prop_assert!((0..k).all(|i| oracle.ordered(i, k, Order::Weak)), "event {}", k);
            }
            let change = held.event(event);
            orders.event(event, change);
        }
    }

    /// With the whole history the hybrid detector finds exactly the racing pairs of places.
    #[test]
    fn hybrid_finds_every_racing_pair_of_places(choices in choices()) {
        let events = world(&choices, Accesses::All, Places::Few);
        let place = |i: usize| events[i].place;
        let races = Oracle::new(&events).races();
        let expected = best(races.iter().map(|(a, b, c)| (pair(place(*a), place(*b)), *c)));
        let findings = found(HYBRID, remembering(History::Everything), &events);
        let got = findings.iter().map(|f| {
            (pair(f.accesses[0].place, f.accesses[1].place), f.certainty)
        });
        prop_assert_eq!(findings.len(), expected.len());
        prop_assert_eq!(best(got), expected);
    }

    /// With representatives only, but as many as it takes, every access that races with an earlier
    /// one is found racing with some, and as surely.
    #[test]
    fn representatives_lose_no_racing_access(choices in choices()) {
        let events = world(&choices, Accesses::All, Places::Distinct);
        let races = Oracle::new(&events).races();
        let expected = best(races.iter().map(|(_, later, c)| (*later as u64, *c)));
        let few = remembering(History::Representatives { limit: usize::MAX });
        let findings = found(HYBRID, few, &events);
        for f in &findings {
            let pair = (f.accesses[0].place.offset as usize, f.accesses[1].place.offset as usize);
            prop_assert!(races.contains(&(pair.0, pair.1, f.certainty)));
        }
        let got = findings.iter().map(|f| (f.accesses[1].place.offset, f.certainty));
        prop_assert_eq!(best(got), expected);
    }

    /// A short memory finds less, never anything else; and `hb` is the observed part.
    #[test]
    fn a_bounded_history_invents_nothing(choices in choices(), limit in 1usize..5) {
        let events = world(&choices, Accesses::All, Places::Distinct);
        let races = Oracle::new(&events).races();
        let options = remembering(History::Representatives { limit });
        let findings = found(HYBRID, options, &events);
        for f in &findings {
            let pair = (f.accesses[0].place.offset as usize, f.accesses[1].place.offset as usize);
            prop_assert!(races.contains(&(pair.0, pair.1, f.certainty)));
        }
        let observed: Vec<Finding> =
            findings.into_iter().filter(|f| f.certainty == Certainty::Observed).collect();
        prop_assert_eq!(found(HB, options, &events), observed);
    }
}

/// The executions are worth comparing on: they hold races of both kinds, many threads, and chains
/// that were given on.
#[test]
fn random_executions_are_not_empty() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut observed, mut predicted, mut threads, mut chains) = (0, 0, 0, 0);
    for _ in 0..300 {
        let choices = choices().new_tree(&mut runner).unwrap().current();
        let events = world(&choices, Accesses::All, Places::Distinct);
        for (.., certainty) in Oracle::new(&events).races() {
            match certainty {
                Certainty::Observed => observed += 1,
                Certainty::Predicted => predicted += 1,
            }
        }
        let mut orders = Orders::new(ConditionRule::AllSignallers, true);
        let mut held = HeldLocks::default();
        for event in &events {
            let change = held.event(event);
            orders.event(event, change);
        }
        let ids: std::collections::BTreeSet<_> = events.iter().map(|e| e.thread).collect();
        threads += ids.len();
        chains += orders.width();
    }
    println!("{observed} observed, {predicted} predicted, {threads} threads, {chains} chains");
    assert!(observed > 1000 && predicted > 300 && threads > 600 && chains < threads - 50);
}

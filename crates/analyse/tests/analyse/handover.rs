//! Work handed over under a lock: what of it orders, in both detectors.

use crate::dsl::*;
use crate::fast;
use crate::oracle::Oracle;
use crate::scripts::{Accesses, Places, choices, show, world};
use proptest::prelude::*;
use raddle_analyse::handover::Values;
use raddle_analyse::order::Order;
use raddle_analyse::{History, Options};
use raddle_model::finding::Certainty::{self, *};
use raddle_model::finding::Finding;
use raddle_model::{AccessKind, Event, EventKind, LockMode};

/// The verdict of the plain detector, which the fast one shares.
fn verdict(script: &[Step]) -> Vec<(u64, u64, Certainty)> {
    let found = run(HYBRID, script);
    let fast = places(&fast::found_with(Options::default(), false, &events(script)));
    assert_eq!(fast, found, "the fast detector");
    found
}

/// The same where memory holds links from `FLAG` on, for some bytes.
fn verdict_with_links(script: &[Step]) -> Vec<(u64, u64, Certainty)> {
    let values = Values(|bytes| bytes.start >= FLAG && bytes.end <= FLAG1);
    let options = Options { values, ..Options::default() };
    let found = places(&run_with(HYBRID, options, script));
    let fast = places(&fast::found_with(options, false, &events(script)));
    assert_eq!(fast, found, "the fast detector");
    found
}

/// t1 writes the data, then something under the lock.
fn hands(under_lock: &[Step]) -> Vec<Step> {
    let mut script = vec![t(1).forks(2), t(1).forks(3), t(1).writes(X).at(1), t(1).locks(M)];
    script.extend_from_slice(under_lock);
    script.push(t(1).unlocks(M));
    script
}

#[test]
fn who_reads_under_the_lock_what_was_written_under_it_comes_after() {
    let mut script = hands(&[t(1).writes(FLAG)]);
    script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).unlocks(M), t(2).reads(X).at(2)]);
    assert_eq!(verdict(&script), []);
}

#[test]
fn the_data_may_be_used_in_the_section_that_found_it() {
    let mut script = hands(&[t(1).writes(FLAG)]);
    script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).reads(X).at(2), t(2).unlocks(M)]);
    assert_eq!(verdict(&script), []);
}

/// As with a reference that is counted atomically: when the section ends, all that was handed to it is known by other means.
#[test]
fn what_was_handed_over_counts_though_it_has_come_to_be_known_since() {
    let counts = |n| t(n).accesses(AccessKind::AtomicUpdate, Y);
    let mut script = hands(&[t(1).writes(FLAG)]);
    script.push(counts(1));
    script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).reads(X).at(2), counts(2)]);
    script.push(t(2).unlocks(M));
    assert_eq!(verdict(&script), []);
}

#[test]
fn a_section_that_reads_nothing_of_the_others_is_not_ordered() {
    for under_lock in [vec![], vec![t(1).reads(FLAG)], vec![t(1).writes(Y)]] {
        let mut script = hands(&under_lock);
        script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).unlocks(M), t(2).reads(X).at(2)]);
        assert_eq!(verdict(&script), [(1, 2, Predicted)]);
    }
}

/// As much as two writes may come in either order, so may two updates.
#[test]
fn counting_under_the_lock_hands_nothing_over() {
    let count = |n| [t(n).reads(FLAG), t(n).writes(FLAG)];
    let mut script = hands(&count(1));
    script.push(t(2).locks(M));
    script.extend(count(2));
    script.extend([t(2).unlocks(M), t(2).reads(X).at(2)]);
    assert_eq!(verdict(&script), [(1, 2, Predicted)]);
    let mut script = hands(&[t(1).writes(FLAG)]);
    script.extend([t(2).locks(M), t(2).writes(FLAG), t(2).unlocks(M), t(2).reads(X).at(2)]);
    assert_eq!(verdict(&script), [(1, 2, Predicted)]);
}

/// A flag taken down, a pointer set to null or to the next element, the last of several references.
#[test]
fn who_leaves_a_link_behind_has_taken_what_was_there() {
    for giver in [vec![t(1).writes(FLAG)], vec![t(1).reads(FLAG), t(1).writes(FLAG)]] {
        let mut script = hands(&giver);
        script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).writes(FLAG), t(2).unlocks(M)]);
        script.push(t(2).reads(X).at(2));
        assert_eq!(verdict_with_links(&script), []);
        assert_eq!(verdict(&script), [(1, 2, Predicted)], "not a link");
    }
}

/// What it has put there itself tells it nothing, and neither does what it has not looked at.
#[test]
fn who_leaves_a_link_behind_must_have_read_what_was_there() {
    for taker in [vec![t(2).writes(FLAG), t(2).reads(FLAG)], vec![t(2).writes(FLAG)]] {
        let mut script = hands(&[t(1).writes(FLAG)]);
        script.push(t(2).locks(M));
        script.extend_from_slice(&taker);
        script.extend([t(2).writes(FLAG), t(2).unlocks(M), t(2).reads(X).at(2)]);
        assert_eq!(verdict_with_links(&script), [(1, 2, Predicted)]);
    }
}

/// Counting beside something that was taken: each is judged by itself.
#[test]
fn a_count_hands_nothing_over_beside_a_link_that_was_taken() {
    let mut script = hands(&[t(1).reads(FLAG1), t(1).writes(FLAG1)]);
    script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).writes(FLAG)]);
    script.extend([t(2).reads(FLAG1), t(2).writes(FLAG1), t(2).unlocks(M), t(2).reads(X).at(2)]);
    assert_eq!(verdict_with_links(&script), [(1, 2, Predicted)]);
}

/// t2 walks a list under the lock, by way of the link in `FLAG`, and t3 changes the link; then it uses what was behind it.
fn walks_and_takes(walk: &[Step], take: &[Step]) -> Vec<Step> {
    let mut script = vec![t(1).forks(2), t(1).forks(3), t(1).forks(4), t(2).locks(M)];
    script.extend_from_slice(walk);
    script.extend([t(2).unlocks(M), t(3).locks(M)]);
    script.extend_from_slice(take);
    script.push(t(3).unlocks(M));
    script
}

#[test]
fn what_was_taken_out_of_a_list_comes_after_those_who_walked_it() {
    for walk in [[t(2).reads(FLAG), t(2).writes(X).at(1)], [t(2).writes(X).at(1), t(2).reads(FLAG)]]
    {
        let mut script = walks_and_takes(&walk, &[t(3).writes(FLAG)]);
        script.push(t(3).writes(X).at(2));
        assert_eq!(verdict_with_links(&script), []);
        assert_eq!(verdict(&script), [(1, 2, Predicted)], "not a link");
    }
}

/// Whoever takes it from the one who took it out.
#[test]
fn what_was_taken_out_of_a_list_may_be_handed_on() {
    let walk = [t(2).reads(FLAG), t(2).writes(X).at(1)];
    let script = walks_and_takes(&walk, &[t(3).writes(FLAG)]);
    let gives = [t(3).locks(N), t(3).writes(Y), t(3).unlocks(N)];
    let takes = [t(4).locks(N), t(4).reads(Y), t(4).writes(X).at(2), t(4).unlocks(N)];
    assert_eq!(verdict_with_links(&[&script[..], &gives, &takes].concat()), []);
    let not_handed = [&script[..], &gives, &takes[..1], &takes[2..]].concat();
    assert_eq!(verdict_with_links(&not_handed), [(1, 2, Predicted)]);
}

#[test]
fn a_section_is_all_that_was_done_under_its_lock() {
    let nested = [t(2).locks(N), t(2).writes(X).at(1), t(2).unlocks(N)];
    for walk in
        [[&[t(2).reads(FLAG)][..], &nested].concat(), [&nested[..], &[t(2).reads(FLAG)]].concat()]
    {
        let mut script = walks_and_takes(&walk, &[t(3).writes(FLAG)]);
        script.push(t(3).writes(X).at(2));
        assert_eq!(verdict_with_links(&script), []);
    }
    // Another section of the same lock.
    let walk = [t(2).writes(X).at(1), t(2).unlocks(M), t(2).locks(M), t(2).reads(FLAG)];
    let mut script = walks_and_takes(&walk, &[t(3).writes(FLAG)]);
    script.push(t(3).writes(X).at(2));
    assert_eq!(verdict_with_links(&script), [(1, 2, Predicted)]);
}

/// It would have done so in either case.
#[test]
fn what_who_walks_did_before_is_not_ordered() {
    let mut script = walks_and_takes(&[t(2).reads(FLAG)], &[t(3).writes(FLAG)]);
    script.insert(3, t(2).writes(X).at(1));
    script.push(t(3).writes(X).at(2));
    assert_eq!(verdict_with_links(&script), [(1, 2, Predicted)]);
}

/// Whoever looks for an element looks there, and finds another one.
#[test]
fn the_link_itself_is_not_ordered_by_being_overwritten() {
    let mut script = walks_and_takes(&[t(2).reads(FLAG).at(1)], &[t(3).writes(FLAG)]);
    script.push(t(3).writes(FLAG).at(2));
    assert_eq!(verdict_with_links(&script), [(1, 2, Predicted)]);
}

#[test]
fn from_who_counts_nothing_is_withdrawn() {
    let walk = [t(2).reads(FLAG), t(2).writes(FLAG), t(2).writes(X).at(1)];
    let mut script = walks_and_takes(&walk, &[t(3).writes(FLAG)]);
    script.push(t(3).writes(X).at(2));
    assert_eq!(verdict_with_links(&script), [(1, 2, Predicted)]);
}

#[test]
fn what_was_written_under_another_lock_is_not_handed_over() {
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        t(1).locks(N),
        t(1).writes(FLAG).at(3),
        t(1).unlocks(N),
        t(1).locks(M),
        t(1).unlocks(M),
        t(2).locks(M),
        t(2).reads(FLAG).at(4),
        t(2).unlocks(M),
        t(2).reads(X).at(2),
    ];
    assert_eq!(verdict(&script), [(3, 4, Predicted), (1, 2, Predicted)]);
}

#[test]
fn what_the_giver_does_afterwards_is_not_handed_over() {
    let mut script = hands(&[t(1).writes(FLAG)]);
    script.extend([t(1).writes(Y).at(3), t(1).locks(N), t(1).unlocks(N)]);
    script.extend([t(2).locks(N), t(2).unlocks(N)]);
    script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).unlocks(M)]);
    script.extend([t(2).reads(X).at(2), t(2).reads(Y).at(4)]);
    assert_eq!(verdict(&script), [(3, 4, Predicted)]);
}

/// Sections of one lock do not overlap, whatever is locked and posted within.
#[test]
fn what_the_giver_does_later_in_the_section_is_handed_over() {
    let within = [
        vec![t(1).locks(N), t(1).unlocks(N)],
        vec![t(1).posts(SEM)],
        vec![t(1).locks(N), t(1).posts(SEM), t(1).unlocks(N), t(1).posts(SEM)],
    ];
    for between in within {
        let mut section = vec![t(1).writes(FLAG)];
        section.extend(between);
        section.push(t(1).writes(Y).at(3));
        let mut script = hands(&section);
        script.extend([t(1).writes(Z).at(5), t(1).locks(M), t(1).unlocks(M)]);
        script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).unlocks(M)]);
        script.extend([t(2).reads(X).at(2), t(2).reads(Y).at(4), t(2).reads(Z).at(6)]);
        assert_eq!(verdict(&script), [(5, 6, Predicted)], "what comes after the section is not");
    }
}

/// Whatever has become of the giver since: t4, which was not asked, has waited for its end.
#[test]
fn what_a_thread_handed_over_that_has_ended_is_known() {
    let mut script = vec![t(4).forks(1), t(4).forks(2), t(4).forks(3)];
    script.extend([t(3).writes(Z).at(5), t(3).locks(N), t(3).writes(FLAG2), t(3).unlocks(N)]);
    script.extend([t(1).locks(N), t(1).reads(FLAG2), t(1).unlocks(N)]);
    script.extend([t(1).locks(M), t(1).writes(FLAG), t(1).posts(SEM), t(1).writes(Y).at(3)]);
    script.extend([t(1).unlocks(M), t(1).exits(), t(4).joins(1)]);
    script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).unlocks(M)]);
    script.extend([t(2).reads(Y).at(4), t(2).reads(Z).at(6)]);
    assert_eq!(verdict(&script), []);
}

/// The lock that both held, and not one that was released before.
#[test]
fn the_section_of_another_lock_hands_nothing_over() {
    let mut script = hands(&[t(1).locks(N), t(1).writes(FLAG), t(1).unlocks(N)]);
    script.insert(script.len() - 1, t(1).writes(Y).at(3));
    script.extend([t(2).locks(N), t(2).reads(FLAG), t(2).unlocks(N)]);
    script.extend([t(2).locks(M), t(2).unlocks(M), t(2).reads(X).at(2), t(2).reads(Y).at(4)]);
    assert_eq!(verdict(&script), [(3, 4, Predicted)]);
}

/// A pipeline: the first's data reaches the third by way of the second.
#[test]
fn what_is_handed_on_comes_after_all_who_handed_it() {
    let mut script = hands(&[t(1).writes(FLAG1)]);
    script.extend([t(2).locks(M), t(2).reads(FLAG1), t(2).unlocks(M)]);
    script.extend([t(2).locks(N), t(2).writes(FLAG2), t(2).unlocks(N)]);
    script.extend([t(3).locks(N), t(3).reads(FLAG2), t(3).unlocks(N), t(3).reads(X).at(2)]);
    assert_eq!(verdict(&script), []);
}

/// Also where it is passed on by a signal from within the section.
#[test]
fn what_was_handed_is_passed_on_from_within_the_section() {
    let mut script = hands(&[t(1).writes(FLAG)]);
    script.extend([t(2).locks(M), t(2).reads(FLAG), t(2).posts(SEM), t(2).unlocks(M)]);
    script.extend([t(3).gets(SEM), t(3).reads(X).at(2)]);
    assert_eq!(verdict(&script), []);
}

#[test]
fn a_lock_held_for_reading_by_both_hands_nothing_over() {
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        t(1).shares(RW),
        t(1).writes(FLAG).at(3),
        t(1).unlocks(RW),
        t(2).shares(RW),
        t(2).reads(FLAG).at(4),
        t(2).unlocks(RW),
        t(2).reads(X).at(2),
    ];
    assert_eq!(verdict(&script), [(3, 4, Observed), (1, 2, Observed)]);
}

#[test]
fn a_race_in_a_section_that_never_ends_is_told() {
    let mut script = hands(&[]);
    script.extend([t(2).locks(M), t(2).reads(X).at(2)]);
    assert_eq!(verdict(&script), [(1, 2, Predicted)]);
}

fn observed(findings: &[Finding]) -> Vec<(u64, u64)> {
    let observed = findings.iter().filter(|f| f.certainty == Observed);
    let mut pairs: Vec<_> =
        observed.map(|f| (f.accesses[0].place.offset, f.accesses[1].place.offset)).collect();
    pairs.sort_unstable();
    pairs
}

/// Has something been handed to the thread of `later`, by the end of its critical section, that comes
/// after `earlier`? Generously: by way of whomever, and of all that the full order has.
fn may_be_handed(events: &[Event], oracle: &Oracle, earlier: usize, later: usize) -> bool {
    let access = |k: usize| match &events[k].kind {
        EventKind::Access { kind, address, size } => {
            Some((*kind, address.0..address.0 + u64::from(*size)))
        }
        _ => None,
    };
    let common_lock = |a: usize, b: usize| {
        oracle.held(a).iter().any(|(lock, mine)| {
            oracle.held(b).get(lock).is_some_and(|theirs| {
                *mine == LockMode::Exclusive || *theirs == LockMode::Exclusive
            })
        })
    };
    // What a writer knew then is not kept: what it has learned since, and before the section was asked, counts as known.
    let has_learned = |write: usize| {
        let mut later = write..events.len();
        let writer = events[write].thread;
        later.any(|e| events[e].thread == writer && oracle.ordered(earlier, e, Order::Weak))
    };
    (0..events.len()).any(|read| {
        let Some((AccessKind::Read, read_bytes)) = access(read) else { return false };
        // Before the later access, by whomever; or after it, in the same section.
        let in_time = read < later || events[read].thread == events[later].thread;
        in_time
            && (0..read).any(|write| {
                access(write).is_some_and(|(kind, bytes)| {
                    kind.writes()
                        && bytes.start < read_bytes.end
                        && read_bytes.start < bytes.end
                        && events[write].thread != events[read].thread
                        && common_lock(write, read)
                        && (oracle.ordered(earlier, read, Order::Full) || has_learned(write))
                })
            })
    })
}

/// Memory that holds links, or none.
fn values(links: bool) -> Values {
    if links { Values(|_| true) } else { Values::default() }
}

/// Has something that the thread of `earlier` read under a lock been overwritten under it, by somebody who comes before
/// `later`? Generously, as above.
fn may_be_withdrawn(events: &[Event], oracle: &Oracle, earlier: usize, later: usize) -> bool {
    let bytes = |k: usize, wanted: AccessKind| match &events[k].kind {
        EventKind::Access { kind, address, size } if *kind == wanted => {
            Some(address.0..address.0 + u64::from(*size))
        }
        _ => None,
    };
    let under = |k: usize, lock| oracle.held(k).contains_key(lock);
    let is_overwritten = |read: usize, write: usize| {
        let (Some(read), Some(write)) =
            (bytes(read, AccessKind::Read), bytes(write, AccessKind::Write))
        else {
            return false;
        };
        write.start < read.end && read.start < write.end
    };
    (0..events.len()).filter(|read| events[*read].thread == events[earlier].thread).any(|read| {
        (read..events.len()).any(|write| {
            let mut common = oracle.held(write).keys();
            is_overwritten(read, write)
                && common.any(|lock| under(read, lock) && under(earlier, lock))
                && (oracle.ordered(write, later, Order::Full)
                    || events[write].thread == events[later].thread)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// What is observed stays so; of what is predicted only such goes as something was handed over for.
    #[test]
    fn a_handover_takes_back_predictions_only(choices in choices(), links in any::<bool>()) {
        let events = world(&choices, Accesses::All, Places::Distinct);
        let oracle = Oracle::new(&events);
        let races = oracle.races();
        let history = History::Everything;
        let all = Options { history, handovers: false, ..Options::default() };
        let mut without = HYBRID.detector(all);
        let mut with = HYBRID.detector(Options { handovers: true, values: values(links), ..all });
        for event in &events {
            raddle_analyse::Analyser::event(&mut without, event);
            raddle_analyse::Analyser::event(&mut with, event);
        }
        raddle_analyse::Analyser::end(&mut with);
        let (with, without) = (
            raddle_analyse::Analyser::findings(&with),
            raddle_analyse::Analyser::findings(&without),
        );
        prop_assert_eq!(observed(with), observed(without), "\n{}", show(&events));
        let pairs = |findings: &[Finding]| -> Vec<(usize, usize)> {
            let races = findings.iter().filter(|f| f.accesses.len() == 2 && f.waits.is_empty());
            races
                .map(|f| (f.accesses[0].place.offset as usize, f.accesses[1].place.offset as usize))
                .collect()
        };
        let left = pairs(with);
        for pair in pairs(without).into_iter().filter(|pair| !left.contains(pair)) {
            let withdrawn = links && may_be_withdrawn(&events, &oracle, pair.0, pair.1);
            prop_assert!(
                withdrawn || may_be_handed(&events, &oracle, pair.0, pair.1),
                "{:?}\n{}", pair, show(&events)
            );
        }
        prop_assert!(left.iter().all(|(a, b)| races.iter().any(|r| (r.0, r.1) == (*a, *b))));
    }

    /// The fast detector observes as without, and predicts nothing else.
    #[test]
    fn the_fast_detector_takes_back_predictions_only(
        choices in choices(), links in any::<bool>(),
    ) {
        let events = world(&choices, Accesses::All, Places::Distinct);
        let races = Oracle::new(&events).races();
        let without = Options { handovers: false, ..Options::default() };
        let options = Options { values: values(links), ..Options::default() };
        let with = fast::found_with(options, false, &events);
        let bytes = |findings: &[Finding]| {
            let observed = findings.iter().filter(|f| f.certainty == Observed);
            observed.map(|f| f.accesses[1].place.offset).collect::<std::collections::BTreeSet<_>>()
        };
        prop_assert_eq!(
            bytes(&with), bytes(&fast::found_with(without, false, &events)), "\n{}", show(&events)
        );
        for f in with {
            let pair = (f.accesses[0].place.offset as usize, f.accesses[1].place.offset as usize);
            prop_assert!(races.contains(&(pair.0, pair.1, f.certainty)), "{:?}\n{}", pair, show(&events));
        }
    }
}

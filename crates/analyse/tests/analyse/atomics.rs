//! Atomic accesses: synchronisation, and rules 1 and 2 of the design, both sides of each.

use crate::dsl::*;
use raddle_analyse::Options;
use raddle_model::finding::{Certainty::*, Rule};

const RULE_OFF: fn() -> Options = || Options { lock_touched: false, ..Options::default() };

#[test]
fn atomic_updates_do_not_race_and_order_what_they_guard() {
    let script =
        [t(1).forks(2), t(1).writes(X), t(1).updates(FLAG), t(2).updates(FLAG), t(2).writes(X)];
    for detector in [HYBRID, HB, SHORT, LONG] {
        assert_eq!(run(detector, &script), []);
    }
}

#[test]
fn what_follows_an_update_is_not_ordered_by_it() {
    let script = [
        t(1).forks(2),
        t(1).updates(FLAG),
        t(1).writes(X).at(1),
        t(2).updates(FLAG),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

/// Both updates are reported before either runs; thread 1's runs first. The last drop of a shared
/// pointer looks like this.
#[test]
fn what_was_released_just_before_an_update_ran_is_acquired() {
    let racing = [
        t(1).forks(2),
        t(2).updates(FLAG),
        t(1).writes(X).at(1),
        t(1).updates(FLAG),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &racing), [(1, 2, Observed)]);
    let mut told = racing.to_vec();
    told.insert(4, t(2).updated(FLAG));
    for detector in [HYBRID, HB, SHORT, LONG] {
        assert_eq!(run(detector, &told), []);
    }
}

/// It is no access of its own: what comes after it in memory's life does not race with it.
#[test]
fn an_update_that_has_run_is_not_an_access() {
    let script = [t(1).forks(2), t(2).updated(FLAG), t(1).frees(FLAG).at(1)];
    assert_eq!(run(HYBRID, &script), []);
}

/// Compilers merge inlined unlocks and keep no name: the holder's atomic change of the lock's word
/// is the release, and orders as little as a release does.
#[test]
fn an_atomic_change_of_a_lock_by_its_holder_releases_it() {
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        t(1).locks(FLAG),
        t(1).updates(FLAG),
        t(1).updated(FLAG),
        t(2).locks(FLAG),
        t(2).updates(FLAG),
        t(2).updated(FLAG),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Predicted)]);
}

/// An unoptimised `try_lock` is an atomic instruction like any other; the unlocking is a known one.
#[test]
fn a_lock_taken_by_an_unknown_atomic_still_protects() {
    let script = [
        t(1).forks(2),
        t(1).locks(FLAG),
        t(1).writes(X).at(1),
        t(1).unlocks(FLAG),
        t(2).updates(FLAG),
        t(2).updated(FLAG),
        t(2).writes(X).at(2),
        t(2).unlocks(FLAG),
        t(1).locks(FLAG),
        t(1).writes(X).at(3),
        t(1).unlocks(FLAG),
    ];
    for detector in [HYBRID, HB] {
        assert_eq!(run(detector, &script), []);
    }
}

#[test]
fn rule_1_a_plain_read_of_a_synchronisation_variable_acquires_and_does_not_race() {
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        t(1).updates(FLAG).at(2),
        t(2).reads(FLAG).at(3),
        t(2).reads(X).at(4),
    ];
    for detector in [HYBRID, SHORT, LONG] {
        assert_eq!(run(detector, &script), []);
    }
    let off = places(&run_with(HYBRID, RULE_OFF(), &script));
    assert_eq!(off, [(2, 3, Observed), (1, 4, Observed)]);
}

#[test]
fn rule_1_holds_whichever_came_first() {
    let script = [t(1).forks(2), t(2).reads(FLAG), t(1).updates(FLAG), t(2).reads(FLAG)];
    for detector in [HYBRID, SHORT, LONG] {
        assert_eq!(run(detector, &script), []);
    }
}

/// A spin lock: taken by `xchg`, given back by a plain store. The store is mixed; what the lock
/// guards is ordered.
#[test]
fn rule_1_a_plain_write_is_mixed_but_orders() {
    let script = [
        t(1).forks(2),
        t(1).updates(FLAG).at(1),
        t(1).writes(X).at(2),
        t(1).writes(FLAG).at(3),
        t(2).updates(FLAG).at(1),
        t(2).writes(X).at(2),
        t(2).writes(FLAG).at(3),
    ];
    let findings = run_with(HYBRID, Options::default(), &script);
    assert_eq!(places(&findings), [(3, 1, Observed)]);
    assert_eq!(findings[0].rules, [Rule::NoCommonLock, Rule::MixedAtomic]);
    assert_eq!(places(&run_with(SHORT, Options::default(), &script)), []);
}

#[test]
fn rule_1_two_plain_accesses_to_a_synchronisation_variable() {
    let script = [
        t(1).updates(FLAG),
        t(1).forks(2),
        t(1).writes(FLAG).at(1),
        t(2).reads(FLAG).at(2),
        t(2).reads(X),
    ];
    let findings = run_with(HYBRID, Options::default(), &script);
    assert_eq!(places(&findings), [(1, 2, Observed)]);
    assert_eq!(findings[0].rules, [Rule::NoCommonLock, Rule::LockTouched]);
    assert!(findings[0].accesses[1].atomic && !findings[0].accesses[0].atomic);
    assert_eq!(run(SHORT, &script).len(), 0, "Exclusive-Write, and the read holds the bus lock");
}

#[test]
fn a_synchronisation_variable_is_one_until_freed() {
    let script = |free: bool| {
        let mut script = vec![t(1).allocates(FLAG, 8), t(1).updates(FLAG)];
        if free {
            script.extend([t(1).frees(FLAG), t(1).allocates(FLAG, 8)]);
        }
        script.extend([t(1).forks(2), t(1).writes(X).at(1), t(1).writes(FLAG).at(2)]);
        script.extend([t(2).reads(FLAG).at(3), t(2).reads(X).at(4)]);
        run(HYBRID, &script)
    };
    assert_eq!(script(false), [(2, 3, Observed)], "the flag orders X");
    assert_eq!(script(true), [(2, 3, Observed), (1, 4, Observed)], "it does not");
}

#[test]
fn rule_2_atomic_reads_and_writes_order_and_do_not_race() {
    let script =
        [t(1).forks(2), t(1).writes(X), t(1).stores(FLAG), t(2).loads(FLAG), t(2).writes(X)];
    for detector in [HYBRID, HB, SHORT, LONG] {
        assert_eq!(run(detector, &script), []);
    }
    assert_eq!(places(&run_with(HYBRID, RULE_OFF(), &script)), []);
}

#[test]
fn rule_2_a_plain_read_beside_an_atomic_write_is_mixed_and_orders_nothing() {
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        t(1).stores(FLAG).at(2),
        t(2).reads(FLAG).at(3),
        t(2).reads(X).at(4),
    ];
    let findings = run_with(HYBRID, Options::default(), &script);
    assert_eq!(places(&findings), [(2, 3, Observed), (1, 4, Observed)]);
    assert_eq!(findings[0].rules, [Rule::NoCommonLock, Rule::MixedAtomic]);
    assert_eq!(run(SHORT, &script), [(2, 3, Observed), (1, 4, Observed)]);
}

#[test]
fn a_store_begins_anew_and_an_update_continues() {
    let script = |second: Step| {
        let script = [
            t(1).forks(2),
            t(1).forks(3),
            t(1).writes(X).at(1),
            t(1).stores(FLAG),
            second,
            t(3).loads(FLAG),
            t(3).reads(X).at(2),
        ];
        run(HYBRID, &script)
    };
    assert_eq!(script(t(2).stores(FLAG)), [(1, 2, Observed)]);
    assert_eq!(script(t(2).updates(FLAG)), []);
}

#[test]
fn bytes_of_a_variable_are_synchronised_each() {
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        t(1).updates(FLAG).sized(8),
        t(2).updates(FLAG + 8).sized(8),
        t(2).reads(X).at(2),
        t(2).updates(FLAG + 7).sized(1),
        t(2).writes(X).at(3),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

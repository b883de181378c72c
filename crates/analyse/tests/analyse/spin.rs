//! Atomics rule 3: a loop that only reads until something changes waits for the write.

use crate::dsl::*;
use raddle_analyse::{Analyser, Options};
use raddle_model::finding::Certainty::*;

/// Thread 2 waits for the flag by reading it, thread 1 sets it when the data is there.
fn flag(spins: impl Fn() -> Step, after: Vec<Step>) -> Vec<Step> {
    let mut script =
        vec![t(1).forks(2), spins(), t(1).writes(X).at(1), t(1).writes(FLAG).at(2), spins()];
    script.extend(after);
    script
}

#[test]
fn a_spin_read_comes_after_the_write_that_ended_it() {
    let script = flag(|| t(2).spins_on(FLAG), vec![t(2).reads(X).at(3)]);
    for detector in [HYBRID, HB, SHORT] {
        assert_eq!(run(detector, &script), []);
    }
    // Without the rule, both the flag and what it guards are reported.
    let plain = flag(|| t(2).reads(FLAG).at(9), vec![t(2).reads(X).at(3)]);
    assert_eq!(run(HB, &plain), [(9, 2, Observed), (1, 3, Observed)]);
}

/// The wait may be over before it began.
#[test]
fn a_spin_read_that_need_not_wait_comes_after_the_write_too() {
    let script =
        [t(1).forks(2), t(1).writes(X), t(1).writes(FLAG), t(2).spins_on(FLAG), t(2).reads(X)];
    assert_eq!(run(HYBRID, &script), []);
}

#[test]
fn what_the_writer_does_later_is_not_ordered() {
    let later = vec![t(1).signals(CV), t(1).writes(Y).at(98), t(2).reads(Y).at(99)];
    let script = flag(|| t(2).spins_on(FLAG), later);
    assert_eq!(run(HB, &script), [(98, 99, Observed)]);
}

/// Even if it does nothing that others could see in between.
#[test]
fn what_the_writer_does_next_is_not_ordered() {
    let script = [
        t(1).forks(2),
        t(2).spins_on(FLAG),
        t(1).writes(FLAG),
        t(1).writes(X).at(1),
        t(2).spins_on(FLAG),
        t(2).reads(X).at(2),
    ];
    assert_eq!(run(HB, &script), [(1, 2, Observed)]);
}

/// Also when the writer has moved on between its write and the read that sees it.
#[test]
fn a_late_spin_read_covers_the_writer_up_to_its_write() {
    let script = [
        t(1).forks(2),
        t(1).writes(X),
        t(1).writes(FLAG),
        t(1).posts(SEM),
        t(1).writes(Y).at(98),
        t(2).spins_on(FLAG),
        t(2).reads(X),
        t(2).reads(Y).at(99),
    ];
    assert_eq!(run(HB, &script), [(98, 99, Observed)]);
}

/// A chain of flags: the third thread comes after the first by way of the second.
#[test]
fn spin_reads_are_transitive() {
    let script = [
        t(1).forks(2),
        t(1).forks(3),
        t(1).writes(X),
        t(1).writes(FLAG1),
        t(2).spins_on(FLAG1),
        t(2).writes(FLAG2),
        t(3).spins_on(FLAG2),
        t(3).reads(X),
    ];
    assert_eq!(run(HYBRID, &script), []);
}

/// Waiting is no excuse for those who do not: two writers of the flag race, and so does a read that
/// does not wait.
#[test]
fn only_the_spin_read_is_excused() {
    let script = [
        t(1).forks(2),
        t(1).forks(3),
        t(2).spins_on(FLAG),
        t(1).writes(FLAG).at(1),
        t(3).writes(FLAG).at(2),
        t(2).reads(FLAG).at(3),
    ];
    assert_eq!(run(HB, &script), [(1, 2, Observed), (1, 3, Observed), (2, 3, Observed)]);
}

/// Giving the flag back under the waiter is a race.
#[test]
fn free_races_with_a_spin_read() {
    let script =
        [t(1).allocates(FLAG, 4), t(1).forks(2), t(2).spins_on(FLAG).at(1), t(1).frees(FLAG).at(2)];
    assert_eq!(run(HB, &script), [(1, 2, Observed)]);
}

/// Nobody waited yet when the flag was set, but the code that will is known.
#[test]
fn what_the_writer_does_next_is_told_apart_where_the_loop_is_known() {
    let script = [
        t(1).forks(2),
        t(1).writes(Y).at(3),
        t(1).writes(FLAG),
        t(1).writes(X).at(1),
        t(2).spins_on(FLAG),
        t(2).reads(Y).at(4),
        t(2).reads(X).at(2),
    ];
    let known = |known: bool| {
        let mut detector = HB.detector(Options::default());
        if known {
            detector.spun_on(FLAG..FLAG + 4);
        }
        events(&script).iter().for_each(|event| detector.event(event));
        places(detector.findings())
    };
    assert_eq!(known(true), [(1, 2, Observed)]);
    assert_eq!(known(false), []);
}

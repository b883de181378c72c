//! Condition variables: the examples of `seeds/000…` 2.2 and 5.

use crate::dsl::*;
use crate::fast;
use raddle_analyse::{ConditionRule, Options};
use raddle_model::finding::Certainty::{self, *};

/// The verdict of the plain detector, which the fast one shares.
fn write_read(script: &[Step]) -> Vec<(u64, u64, Certainty)> {
    let found = write_read_by_event(script);
    assert_eq!(write_read_recalled(script), found, "the fast detector");
    found
}

/// Without hand-overs under the lock, which would hide what the conditions say.
fn write_read_only() -> Options {
    Options { conditions: ConditionRule::WriteRead, handovers: false, ..Options::default() }
}

/// All signallers, and without hand-overs likewise.
fn all_signallers(script: &[Step]) -> Vec<(u64, u64, Certainty)> {
    places(&run_with(HYBRID, Options { handovers: false, ..Options::default() }, script))
}

fn write_read_by_event(script: &[Step]) -> Vec<(u64, u64, Certainty)> {
    places(&run_with(HYBRID, write_read_only(), script))
}

fn write_read_recalled(script: &[Step]) -> Vec<(u64, u64, Certainty)> {
    places(&fast::found_with(write_read_only(), false, &events(script)))
}

/// Figure 1, thread 1: data, then flag and signal under the lock.
fn hands_over(n: u32, data: u64, flag: u64) -> Vec<Step> {
    vec![t(n).writes(data), t(n).locks(M), t(n).writes(flag), t(n).signals(CV), t(n).unlocks(M)]
}

/// Figure 1, thread 2, up to the wait: the flag is not set yet.
fn waits_for(n: u32, flag: u64) -> Vec<Step> {
    vec![t(n).locks(M), t(n).reads(flag), t(n).waits(CV, M)]
}

/// Woken, it finds the flag set, and goes on.
fn goes_on(n: u32, flag: u64) -> Vec<Step> {
    vec![t(n).wakes(CV, M), t(n).reads(flag), t(n).unlocks(M)]
}

/// Woken for nothing, it waits again.
fn waits_again(n: u32, flag: u64) -> Vec<Step> {
    vec![t(n).wakes(CV, M), t(n).reads(flag), t(n).waits(CV, M)]
}

fn forks(children: u32) -> Vec<Step> {
    (2..2 + children).map(|n| t(1).forks(n)).collect()
}

#[test]
fn figure_1_a_signal_orders_the_waiter() {
    let script = [
        forks(1),
        waits_for(2, FLAG),
        hands_over(1, X, FLAG),
        goes_on(2, FLAG),
        vec![t(2).reads(X)],
    ]
    .concat();
    assert_eq!(run(HYBRID, &script), []);
    assert_eq!(write_read(&script), []);
    assert_eq!(run(SHORT, &script), []);
}

/// Section 2.2: the signal came before the wait, which therefore never ran. Only the lock orders the
/// two, and a detector that does not know the loop predicts a race, wrongly.
#[test]
fn figure_1_a_lost_signal_without_the_loop() {
    let skips = vec![t(2).locks(M), t(2).reads(FLAG), t(2).unlocks(M), t(2).reads(X).at(99)];
    let script = [forks(1), hands_over(1, X, FLAG), skips].concat();
    assert_eq!(all_signallers(&script), [(2, 99, Predicted)]);
    assert_eq!(write_read(&script), [(2, 99, Predicted)]);
    assert_eq!(run(HB, &script), [], "the lock did order them");
}

/// Finds the flag set, is spared the wait, and goes on.
fn skips(n: u32, flag: u64, condition: u64) -> Vec<Step> {
    vec![t(n).locks(M), t(n).reads(flag), t(n).passes(condition), t(n).unlocks(M)]
}

/// Section 5.1: with the loop the signal is not lost, whether the code tells the condition or not.
#[test]
fn figure_1_a_lost_signal_orders_by_the_loop() {
    for condition in [CV, 0] {
        let script =
            [forks(1), hands_over(1, X, FLAG), skips(2, FLAG, condition), vec![t(2).reads(X)]]
                .concat();
        assert_eq!(write_read(&script), [], "{condition:#x}");
        assert_eq!(all_signallers(&script).len(), 1, "the plain rule does not look at loops");
    }
}

/// The edge is to who made the condition true and signalled, and to nobody else: another pair's
/// hand-over through the same variable still races.
#[test]
fn a_lost_signal_orders_after_its_own_signaller_only() {
    for condition in [CV, 0] {
        let script = [
            forks(3),
            vec![t(3).writes(Y).at(98)],
            hands_over(3, Z, FLAG2),
            hands_over(2, X, FLAG1),
            skips(4, FLAG1, condition),
            vec![t(4).reads(X), t(4).reads(Y).at(99)],
        ]
        .concat();
        assert_eq!(write_read(&script), [(98, 99, Predicted)], "{condition:#x}");
    }
}

/// What the signaller does after the signal is not covered by it.
#[test]
fn what_follows_a_lost_signal_races() {
    let script = [
        forks(1),
        hands_over(1, X, FLAG),
        vec![t(1).writes(Y).at(98)],
        skips(2, FLAG, CV),
        vec![t(2).reads(Y).at(99)],
    ]
    .concat();
    assert_eq!(write_read(&script), [(98, 99, Observed)]);
}

/// The condition held from the beginning: who has signalled something else orders nothing.
#[test]
fn a_loop_that_never_had_to_wait_orders_nothing() {
    let script = [
        forks(1),
        vec![t(1).writes(X).at(98)],
        hands_over(1, Z, FLAG2),
        skips(2, FLAG1, CV),
        vec![t(2).reads(X).at(99)],
    ]
    .concat();
    assert_eq!(write_read(&script), [(98, 99, Predicted)]);
}

/// Some programs signal only if they know of a waiter. Who made the condition true, under the lock,
/// comes first all the same; who wrote what the loop did not read does not.
#[test]
fn a_signal_that_was_never_sent_orders_by_who_wrote_the_condition() {
    let script = [
        forks(1),
        vec![t(1).writes(X), t(1).locks(M), t(1).writes(FLAG), t(1).unlocks(M)],
        vec![t(1).writes(Y).at(98)],
        skips(2, FLAG, CV),
        vec![t(2).reads(X), t(2).reads(Y).at(99)],
    ]
    .concat();
    assert_eq!(write_read(&script), [(98, 99, Observed)]);
    let elsewhere = [
        forks(1),
        vec![t(1).writes(X).at(98), t(1).locks(M), t(1).writes(FLAG2), t(1).unlocks(M)],
        skips(2, FLAG1, CV),
        vec![t(2).reads(X).at(99)],
    ]
    .concat();
    assert_eq!(write_read(&elsewhere), [(98, 99, Predicted)]);
}

/// A condition that is written without the lock is no protocol to rely on.
#[test]
fn a_condition_written_without_the_lock_orders_nothing() {
    let script = [
        forks(1),
        vec![t(1).writes(X).at(97), t(1).writes(FLAG).at(98)],
        skips(2, FLAG, CV),
        vec![t(2).reads(X).at(99)],
    ]
    .concat();
    assert!(write_read(&script).contains(&(97, 99, Observed)));
}

/// A signaller that wrote outside any lock may be the one that matters.
#[test]
fn a_lost_signal_never_leaves_out_a_signaller_without_known_writes() {
    let script =
        [forks(1), vec![t(1).writes(X), t(1).signals(CV)], skips(2, FLAG, CV), vec![t(2).reads(X)]]
            .concat();
    assert_eq!(write_read(&script), []);
}

#[test]
fn what_follows_the_signal_is_not_ordered() {
    let script = [
        forks(1),
        waits_for(2, FLAG),
        hands_over(1, X, FLAG),
        vec![t(1).writes(Y).at(98)],
        goes_on(2, FLAG),
        vec![t(2).reads(Y).at(99)],
    ]
    .concat();
    assert_eq!(run(HYBRID, &script), [(98, 99, Observed)]);
}

/// Figure 4: signallers 2 and 3 and waiters 4 and 5 in pairs, one condition variable for both. The
/// wake-up by the first signal is spurious for the second waiter. `wrong`: the first waiter also
/// reads the data of the other pair, which is a race.
fn figure_4(wrong: bool) -> Vec<Step> {
    let mut script = [
        forks(4),
        waits_for(4, FLAG1),
        waits_for(5, FLAG2),
        hands_over(3, Y, FLAG2),
        waits_again(4, FLAG1),
        hands_over(2, X, FLAG1),
        goes_on(5, FLAG2),
        goes_on(4, FLAG1),
        vec![t(4).reads(X).at(201), t(5).reads(Y).at(202)],
    ]
    .concat();
    if wrong {
        script.push(t(4).reads(Y).at(203));
    }
    script
}

#[test]
fn figure_5_no_rule_invents_a_race() {
    // Figure 5b, the last signaller only, would report X here.
    assert_eq!(run(HYBRID, &figure_4(false)), []);
    assert_eq!(write_read(&figure_4(false)), []);
}

#[test]
fn figure_5c_all_signallers_miss_the_race_between_the_pairs() {
    assert_eq!(run(HYBRID, &figure_4(true)), []);
}

#[test]
fn figure_5d_write_read_finds_it() {
    let found = write_read(&figure_4(true));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].1, found[0].2), (203, Predicted));
}

/// Without a relation (the waiter's test reads nothing the signaller wrote) all signallers stand in.
#[test]
fn write_read_falls_back_on_all_signallers() {
    let script = [
        forks(1),
        waits_for(2, FLAG1),
        hands_over(1, X, FLAG2),
        goes_on(2, FLAG1),
        vec![t(2).reads(X)],
    ]
    .concat();
    assert_eq!(write_read(&script), []);
    // Also when the thread touches the data before anything else, without leaving the lock.
    let at_once = [
        forks(1),
        waits_for(2, FLAG1),
        hands_over(1, X, FLAG2),
        vec![t(2).wakes(CV, M), t(2).reads(X)],
    ]
    .concat();
    assert_eq!(write_read(&at_once), []);
}

#[test]
fn write_read_knows_a_signal_sent_after_unlocking() {
    let signals_late =
        vec![t(1).writes(X), t(1).locks(M), t(1).writes(FLAG), t(1).unlocks(M), t(1).signals(CV)];
    let script =
        [forks(1), waits_for(2, FLAG), signals_late, goes_on(2, FLAG), vec![t(2).reads(X)]]
            .concat();
    assert_eq!(write_read(&script), []);
}

/// Two signallers raise the same counter; the waiter takes what both have put there.
#[test]
fn write_read_accumulates() {
    let script = [
        forks(3),
        waits_for(4, FLAG),
        hands_over(2, X, FLAG),
        hands_over(3, Y, FLAG),
        goes_on(4, FLAG),
        vec![t(4).reads(X), t(4).reads(Y)],
    ]
    .concat();
    assert_eq!(write_read(&script), []);
}

#[test]
fn a_time_out_orders_only_if_a_signal_came_meanwhile() {
    let ends = |signalled: bool| {
        let mut script = [forks(1), vec![t(1).writes(X).at(98), t(1).signals(CV)]].concat();
        script.extend(waits_for(2, FLAG));
        if signalled {
            script.push(t(1).signals(CV));
        }
        script.extend([t(2).times_out(CV, M), t(2).unlocks(M), t(2).reads(X).at(99)]);
        run(HYBRID, &script)
    };
    assert_eq!(ends(false), [(98, 99, Observed)]);
    assert_eq!(ends(true), []);
}

/// Of one signaller nothing is known that the waiter's test reads; it may be the one that matters.
#[test]
fn write_read_never_leaves_out_a_signaller_without_known_writes() {
    let script = [
        forks(3),
        waits_for(4, FLAG),
        hands_over(2, X, FLAG),
        vec![t(3).writes(Y), t(3).signals(CV)],
        goes_on(4, FLAG),
        vec![t(4).reads(X), t(4).reads(Y)],
    ]
    .concat();
    assert_eq!(write_read(&script), []);
}

/// Another lock taken and given back on the way does not end the critical section.
#[test]
fn write_read_sees_past_an_inner_lock() {
    let with_inner_lock = |n: u32, data: u64, flag: u64| {
        vec![
            t(n).writes(data).at(101),
            t(n).locks(M),
            t(n).writes(flag),
            t(n).locks(N),
            t(n).unlocks(N),
            t(n).signals(CV),
            t(n).unlocks(M),
        ]
    };
    let script = [
        forks(3),
        waits_for(4, FLAG1),
        hands_over(2, X, FLAG1),
        with_inner_lock(3, Y, FLAG2),
        goes_on(4, FLAG1),
        vec![t(4).reads(X), t(4).reads(Y).at(102)],
    ]
    .concat();
    assert_eq!(write_read(&script), [(101, 102, Predicted)]);
}

/// A signaller's section that writes more than is remembered is not told apart by what it wrote.
#[test]
fn write_read_does_not_judge_by_half_a_section() {
    let mut long = vec![t(1).writes(X), t(1).locks(M)];
    long.extend((0..2000).map(|n| t(1).writes(0x10_0000 + 8 * n)));
    long.extend([t(1).writes(FLAG), t(1).signals(CV), t(1).unlocks(M)]);
    let script = [
        forks(2),
        waits_for(2, FLAG),
        hands_over(3, Y, FLAG),
        long,
        goes_on(2, FLAG),
        vec![t(2).reads(X), t(2).reads(Y)],
    ]
    .concat();
    assert_eq!(write_read(&script), []);
}

/// What a thread writes after unlocking says nothing about the conditions of others.
#[test]
fn write_read_looks_at_critical_sections_only() {
    let mut signaller = hands_over(2, X, FLAG2);
    signaller.insert(0, t(2).writes(X).at(101));
    signaller.extend([t(2).writes(FLAG1), t(2).signals(CV)]);
    let script = [
        forks(2),
        waits_for(3, FLAG1),
        // Both signal; only thread 1 has set what thread 3 waits for, under the lock.
        signaller,
        hands_over(1, Y, FLAG1),
        goes_on(3, FLAG1),
        vec![t(3).reads(Y), t(3).reads(X).at(102)],
    ]
    .concat();
    let found = write_read(&script);
    assert!(found.contains(&(101, 102, Predicted)), "{found:?}");
}

/// Who signals from a section in which it wrote nothing has made no condition true there. (Where no loop
/// is known, or nobody else wrote what the condition reads, it may have made it true elsewhere.)
#[test]
fn a_nudge_orders_only_where_nothing_else_does() {
    let nudge = [t(3).writes(Y).at(98), t(3).locks(M), t(3).signals(CV), t(3).unlocks(M)];
    let waits = [t(4).locks(M), t(4).reads(FLAG), t(4).waits(CV, M)];
    let wakes = |end: &[Step]| {
        let mut script = vec![t(4).wakes(CV, M), t(4).reads(FLAG)];
        script.extend_from_slice(end);
        script.extend([t(4).unlocks(M), t(4).reads(X), t(4).reads(Y).at(99)]);
        script
    };
    let begin = [forks(3), waits.to_vec(), nudge.to_vec()].concat();
    let produced = [begin.clone(), hands_over(2, X, FLAG)].concat();
    for condition in [CV, 0] {
        let loop_left = [produced.clone(), wakes(&[t(4).passes(condition)])].concat();
        assert_eq!(write_read(&loop_left), [(98, 99, Predicted)], "{condition:#x}");
    }
    let no_loop = [produced, wakes(&[])].concat();
    assert_eq!(write_read(&no_loop), []);
    let nobody_wrote = [begin, wakes(&[t(4).passes(CV)])].concat();
    assert_eq!(write_read(&nobody_wrote), []);
}

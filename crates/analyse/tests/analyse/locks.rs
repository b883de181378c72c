//! Lock sets: sides, counts, waits, and locks that change hands.

use crate::dsl::*;
use raddle_analyse::Options;
use raddle_model::finding::{Certainty::*, Rule};
use raddle_model::{Address, EventKind, LockMode, lockset::LockSet};

#[test]
fn a_write_under_the_shared_side_is_unprotected_against_readers_and_writers_there() {
    let script = [
        t(1).forks(2),
        t(1).shares(RW),
        t(2).shares(RW),
        t(1).writes(X).at(1),
        t(2).reads(X).at(2),
        t(2).writes(X).at(3),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed), (1, 3, Observed)]);
    let findings = run_with(HYBRID, Options::default(), &script);
    assert_eq!(findings[0].rules, [Rule::SharedSidesOnly]);
}

/// Whoever holds the exclusive side keeps it out, so it never happened in this execution; but the
/// writer with the shared side has met no other of its kind only by luck.
#[test]
fn a_write_under_the_shared_side_is_predicted_to_race_with_one_under_the_exclusive_side() {
    let script = [
        t(1).forks(2),
        t(1).shares(RW),
        t(1).writes(X).at(1),
        t(1).unlocks(RW),
        t(2).locks(RW),
        t(2).writes(X).at(2),
        t(2).unlocks(RW),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Predicted)]);
    let findings = run_with(HYBRID, Options::default(), &script);
    assert_eq!(findings[0].rules, [Rule::SharedSidesOnly, Rule::LockOrderIgnored]);
    // A read there is what the shared side is for.
    let reads = [
        t(1).forks(2),
        t(1).shares(RW),
        t(1).reads(X),
        t(1).unlocks(RW),
        t(2).locks(RW),
        t(2).writes(X),
        t(2).unlocks(RW),
    ];
    assert_eq!(run(HYBRID, &reads), []);
}

#[test]
fn the_exclusive_side_excludes_the_shared_one_both_ways() {
    let script = [
        t(1).forks(2),
        t(1).locks(RW),
        t(1).writes(X),
        t(1).unlocks(RW),
        t(2).shares(RW),
        t(2).reads(X),
        t(2).unlocks(RW),
        t(1).locks(RW),
        t(1).writes(X),
        t(1).unlocks(RW),
    ];
    assert_eq!(run(HYBRID, &script), []);
    assert_eq!(run(SHORT, &script), []);
}

#[test]
fn readers_are_ordered_after_the_writer_but_not_after_each_other() {
    let script = [
        t(1).forks(2),
        t(1).shares(RW),
        t(1).writes(X).at(1),
        t(1).unlocks(RW),
        t(2).shares(RW),
        t(2).unlocks(RW),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)], "no full-order edge between readers");
}

#[test]
fn a_recursive_lock_is_held_until_the_last_release() {
    let inner = |last: bool| {
        let mut script = vec![
            t(1).forks(2),
            t(1).locks(M),
            t(1).locks(M),
            t(1).unlocks(M),
            t(1).writes(X).at(1),
            t(1).unlocks(M),
        ];
        if last {
            script.push(t(1).writes(X).at(2));
        }
        script.extend([t(2).locks(M), t(2).writes(X).at(3), t(2).unlocks(M)]);
        run(HYBRID, &script)
    };
    assert_eq!(inner(false), []);
    assert_eq!(inner(true), [(2, 3, Observed)]);
}

#[test]
fn a_failed_attempt_holds_nothing() {
    let (lock, mode) = (Address(M), LockMode::Exclusive);
    let script = [
        t(1).forks(2),
        t(1).locks(M),
        t(1).writes(X).at(1),
        t(2).does(EventKind::LockFailed { lock, mode }),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

#[test]
fn a_condition_wait_gives_the_lock_up_and_takes_it_back() {
    // While t1 waits it holds nothing; afterwards it does, twice as before.
    let script = [
        t(1).forks(2),
        t(1).locks(M),
        t(1).locks(M),
        t(1).waits(CV, M),
        t(1).writes(X).at(1),
        t(2).locks(M),
        t(2).writes(X).at(2),
        t(2).writes(Y).at(3),
        t(2).unlocks(M),
        t(1).times_out(CV, M),
        t(1).unlocks(M),
        t(1).writes(Y).at(4),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

#[test]
fn a_lock_released_by_another_thread_is_no_longer_held() {
    let script = [
        t(1).forks(2),
        t(1).locks(M),
        t(2).unlocks(M),
        t(1).writes(X).at(1),
        t(2).locks(M),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

#[test]
fn the_next_holder_comes_after_the_thread_that_unlocked_not_after_the_holder() {
    let script = [
        t(1).forks(2),
        t(1).forks(3),
        t(1).locks(M),
        t(1).writes(X).at(1),
        t(2).writes(Y).at(2),
        t(2).unlocks(M),
        t(3).locks(M),
        t(3).unlocks(M),
        t(3).writes(X).at(3),
        t(3).writes(Y).at(4),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 3, Observed), (2, 4, Predicted)]);
}

#[test]
fn a_lock_taken_from_under_its_holder_was_lost_unseen() {
    let script =
        [t(1).forks(2), t(1).locks(M), t(2).locks(M), t(1).writes(X).at(1), t(2).writes(X).at(2)];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

#[test]
fn a_lock_in_freed_or_destroyed_memory_is_held_by_nobody() {
    for ending in [
        t(1).does(EventKind::LockDestroyed { lock: Address(M) }),
        t(1).does(EventKind::Free { address: Address(M), size: 8 }),
    ] {
        let script = [
            t(1).forks(2),
            t(1).locks(M),
            ending,
            t(1).writes(X).at(1),
            t(2).locks(M),
            t(2).writes(X).at(2),
        ];
        assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
    }
}

#[test]
fn both_sides_at_once_are_given_back_the_write_side_first() {
    let script = [
        t(1).forks(2),
        t(1).shares(RW),
        t(1).locks(RW),
        t(1).unlocks(RW),
        t(1).writes(X).at(1),
        t(2).shares(RW),
        t(2).reads(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)], "shared by both");
}

#[test]
fn transactions_exclude_each_other_and_nothing_else() {
    let start = |n| t(n).does(EventKind::TransactionStart);
    let commit = |n| t(n).does(EventKind::TransactionCommit);
    let script = [
        t(1).forks(2),
        start(1),
        start(2),
        t(1).writes(X).at(1),
        commit(1),
        t(2).writes(X).at(2),
        commit(2),
        t(1).writes(X).at(3),
    ];
    assert_eq!(run(HYBRID, &script), [(2, 3, Observed)]);
    let findings = run_with(HYBRID, Options::default(), &script);
    assert_eq!(findings[0].accesses[0].locks[0].lock, LockSet::TRANSACTION);
}

#[test]
fn the_side_named_is_the_side_released() {
    let (lock, mode) = (Address(RW), Some(LockMode::Shared));
    let script = [
        t(1).forks(2),
        t(1).locks(RW),
        t(1).shares(RW),
        t(1).does(EventKind::LockReleased { lock, mode }),
        t(1).writes(X),
        t(1).unlocks(RW),
        t(2).shares(RW),
        t(2).reads(X),
    ];
    assert_eq!(run(HYBRID, &script), [], "downgraded and back: still held exclusively");
}

#[test]
fn a_lock_made_where_another_was_freed_orders_nothing_after_the_old_one() {
    let script = |ending: Step| {
        let script = [
            t(1).forks(2),
            t(1).writes(X).at(1),
            t(1).locks(M),
            t(1).unlocks(M),
            ending,
            t(2).locks(M),
            t(2).writes(X).at(2),
        ];
        run(HYBRID, &script)
    };
    let free = t(1).does(EventKind::Free { address: Address(M), size: 8 });
    let destroy = t(1).does(EventKind::LockDestroyed { lock: Address(M) });
    assert_eq!(script(t(1).reads(Y)), [(1, 2, Predicted)]);
    assert_eq!(script(t(1).allocates(M, 8)), [(1, 2, Observed)]);
    assert_eq!(script(destroy), [(1, 2, Observed)]);
    assert_eq!(script(free), [(1, 2, Observed)]);
}

/// The second transaction began before the first was committed, and takes effect after it.
#[test]
fn transactions_are_ordered_by_their_commits() {
    let script = [
        t(1).forks(2),
        t(2).does(EventKind::TransactionStart),
        t(1).does(EventKind::TransactionStart),
        t(1).writes(X).at(1),
        t(1).does(EventKind::TransactionCommit),
        t(2).does(EventKind::TransactionCommit),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Predicted)]);
}

/// An error-checking mutex refuses to be unlocked by another thread: its holder still has it, and what
/// the other did before is not published by it.
#[test]
fn a_refused_release_changes_nothing() {
    let refused = EventKind::LockFailed { lock: Address(M), mode: LockMode::Exclusive };
    let script = |refused: &[Step]| {
        let mut script = vec![
            t(1).forks(2),
            t(2).writes(X).at(1),
            t(1).locks(M),
            t(1).writes(Y).at(2),
            t(2).unlocks(M),
        ];
        script.extend_from_slice(refused);
        script.extend([
            t(1).writes(Y).at(3),
            t(1).unlocks(M),
            t(1).locks(M),
            t(1).writes(X).at(4),
            t(1).unlocks(M),
            t(2).locks(M),
            t(2).writes(Y).at(5),
        ]);
        run(HYBRID, &script)
    };
    assert_eq!(script(&[t(2).does(refused)]), [(1, 4, Observed)]);
    assert_eq!(script(&[]), [(1, 4, Predicted), (3, 5, Predicted)]);
}

#[test]
fn a_lock_made_anew_while_it_is_held_is_another() {
    let made = |held: bool| {
        let mut script = vec![t(1).forks(2), t(1).locks(M), t(1).writes(X).at(1)];
        if !held {
            script.push(t(1).unlocks(M));
        }
        script.extend([
            t(2).does(EventKind::LockCreated { lock: Address(M) }),
            t(2).locks(M),
            t(2).writes(X).at(2),
        ]);
        run(HYBRID, &script)
    };
    assert_eq!(made(true), [(1, 2, Observed)]);
    // One that is free when it is made anew is taken for the same: its memory may be recycled for ever.
    assert_eq!(made(false), []);
}

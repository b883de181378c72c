//! Order through objects that are no locks (descriptors, signals, annotations), and what the program
//! asks not to be judged.

use crate::dsl::*;
use raddle_model::finding::Certainty::*;
use raddle_model::{Address, EventKind, Ignored, SyncObject};

const PIPE: SyncObject = SyncObject::Channel(1);
const HERE: SyncObject = SyncObject::Address(Address(X));

#[test]
fn who_acquires_comes_after_who_released() {
    for object in [PIPE, HERE, SyncObject::Signal(10), SyncObject::ProcessEnd] {
        let script = [
            t(1).forks(2),
            t(1).writes(Y).at(1),
            t(1).releases(object),
            t(1).writes(Z).at(2),
            t(2).acquires(object),
            t(2).reads(Y).at(3),
            t(2).reads(Z).at(4),
        ];
        assert_eq!(run(HYBRID, &script), [(2, 4, Observed)], "{object:?}");
    }
}

#[test]
fn another_object_orders_nothing() {
    let script = [
        t(1).forks(2),
        t(1).writes(Y).at(1),
        t(1).releases(PIPE),
        t(2).acquires(SyncObject::Channel(2)),
        t(2).reads(Y).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

/// Who gets comes after who put what it gets, and not after who has put more since.
#[test]
fn a_queue_hands_over_in_order() {
    let queue = SyncObject::Queue(Address(X));
    let script = [
        t(1).forks(2),
        t(1).forks(3),
        t(1).writes(Y).at(1),
        t(1).releases(queue),
        t(1).writes(Z).at(2),
        t(1).releases(queue),
        t(2).acquires(queue),
        t(2).reads(Y).at(3),
        t(2).reads(Z).at(4),
        t(3).acquires(queue),
        t(3).reads(Z).at(5),
    ];
    assert_eq!(run(HYBRID, &script), [(2, 4, Observed)]);
}

/// An annotated object is gone with its memory; a channel is not at any address.
#[test]
fn an_object_lives_as_long_as_its_memory() {
    let script = |object| {
        [
            t(1).allocates(X, 16),
            t(1).forks(2),
            t(1).writes(Y).at(1),
            t(1).releases(object),
            t(1).frees(X),
            t(1).allocates(X, 16),
            t(2).acquires(object),
            t(2).reads(Y).at(2),
        ]
    };
    assert_eq!(run(HB, &script(HERE)), [(1, 2, Observed)]);
    assert_eq!(run(HB, &script(PIPE)), []);
}

#[test]
fn a_lock_that_hands_over_is_in_both_orders() {
    let hands = |over: bool| {
        let mut script = vec![t(1).forks(2)];
        if over {
            script.push(t(1).does(EventKind::LockHandsOver { lock: Address(M) }));
        }
        script.extend([
            t(1).writes(X).at(1),
            t(1).locks(M),
            t(1).unlocks(M),
            t(2).locks(M),
            t(2).unlocks(M),
            t(2).reads(X).at(2),
        ]);
        run(HYBRID, &script)
    };
    assert_eq!(hands(false), [(1, 2, Predicted)]);
    assert_eq!(hands(true), []);
}

#[test]
fn renewed_memory_has_no_past() {
    let renewed = EventKind::MemoryRenewed { address: Address(X), size: 2 };
    let script = [
        t(1).forks(2),
        t(1).writes(X).sized(4).at(1),
        t(2).does(renewed),
        t(2).writes(X).sized(2).at(2),
        t(2).writes(X + 2).sized(2).at(3),
    ];
    assert_eq!(run(HB, &script), [(1, 3, Observed)]);
}

#[test]
fn races_declared_benign_are_not_reported_as_long_as_the_memory_lives() {
    let benign = EventKind::BenignRace { address: Address(X), size: 4 };
    let script = [
        t(1).allocates(X, 16),
        t(1).forks(2),
        t(1).does(benign),
        t(1).writes(X).sized(8).at(1),
        t(2).writes(X).at(2),
        t(2).writes(X + 4).at(3),
        t(1).frees(X),
        t(1).allocates(X, 16),
        t(1).writes(X).at(4),
        t(2).writes(X).at(5),
    ];
    assert_eq!(run(HB, &script)[..1], [(1, 3, Observed)]);
    assert!(run(HB, &script).contains(&(4, 5, Observed)));
    assert!(!run(HB, &script).iter().any(|found| (found.0, found.1) == (1, 2)));
}

#[test]
fn ignored_accesses_race_with_nothing_and_ignoring_nests() {
    let ask = |what| t(2).does(EventKind::IgnoreBegin { what });
    let end = |what| t(2).does(EventKind::IgnoreEnd { what });
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        ask(Ignored::Reads),
        ask(Ignored::Reads),
        t(2).reads(X).at(2),
        end(Ignored::Reads),
        t(2).reads(X).at(3),
        t(2).writes(X).at(4),
        end(Ignored::Reads),
        t(2).reads(X).at(5),
    ];
    assert_eq!(run(HB, &script), [(1, 4, Observed), (1, 5, Observed)]);
    let writes = [
        t(1).forks(2),
        ask(Ignored::Writes),
        t(2).writes(X).at(1),
        end(Ignored::Writes),
        t(1).writes(X).at(2),
    ];
    assert_eq!(run(HB, &writes), []);
}

#[test]
fn ignored_synchronisation_orders_nothing() {
    let ask = |what| t(1).does(EventKind::IgnoreBegin { what });
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        ask(Ignored::Synchronisation),
        t(1).posts(SEM),
        t(1).updates(FLAG),
        t(2).gets(SEM),
        t(2).updates(FLAG),
        t(2).reads(X).at(2),
    ];
    assert_eq!(run(HB, &script), [(1, 2, Observed)]);
}

#[test]
fn nothing_is_judged_while_detection_is_off() {
    let switch = |on| t(1).does(EventKind::DetectionSwitched { on });
    let script = [
        t(1).forks(2),
        switch(false),
        t(1).writes(X).at(1),
        switch(true),
        t(2).writes(X).at(2),
        t(1).writes(X).at(3),
    ];
    assert_eq!(run(HB, &script), [(2, 3, Observed)]);
}

//! Each kind of synchronisation, by what it orders and what it does not.

use crate::dsl::*;
use raddle_analyse::ConditionRule;
use raddle_analyse::held::HeldLocks;
use raddle_analyse::order::Orders;
use raddle_model::finding::Certainty::*;
use raddle_model::{Address, EventKind, ThreadId};

/// Is t1's write of X before `middle` ordered before t2's after it, also without locks? And t1's
/// write of Y after `middle` must never be.
fn ordered(middle: &[Step]) -> bool {
    let mut script = vec![t(1).begins(), t(1).forks(2), t(1).forks(3), t(1).writes(X).at(101)];
    script.extend_from_slice(middle);
    script.extend([t(1).writes(Y).at(102), t(2).writes(X).at(103), t(2).writes(Y).at(104)]);
    let found = run(HYBRID, &script);
    assert!(found.contains(&(102, 104, Observed)), "{found:?}");
    !found.iter().any(|(earlier, ..)| *earlier == 101)
}

#[test]
fn semaphores() {
    assert!(ordered(&[t(1).posts(SEM), t(2).gets(SEM)]));
    assert!(!ordered(&[t(2).gets(SEM), t(1).posts(SEM)]));
    assert!(!ordered(&[t(1).posts(SEM), t(2).gets(SEM + 8)]));
    let create = |n| EventKind::SemaphoreCreated { semaphore: Address(SEM), value: n };
    assert!(!ordered(&[t(1).posts(SEM), t(3).does(create(1)), t(2).gets(SEM)]));
}

#[test]
fn chains_of_synchronisation() {
    let relay = [t(1).posts(SEM), t(3).gets(SEM), t(3).posts(SEM + 8), t(2).gets(SEM + 8)];
    assert!(ordered(&relay));
    let gap = [t(3).posts(SEM + 8), t(1).posts(SEM), t(3).gets(SEM), t(2).gets(SEM + 8)];
    assert!(!ordered(&gap));
}

#[test]
fn one_time_initialisation() {
    let once = Address(ONCE);
    let begin = |n| t(n).does(EventKind::OnceBegin { once });
    let end = |n, done| t(n).does(EventKind::OnceEnd { once, done });
    let pass = |n| t(n).does(EventKind::OncePassed { once });
    assert!(ordered(&[begin(1), end(1, true), pass(2)]));
    assert!(ordered(&[begin(1), end(1, false), begin(2), end(2, true)]), "a second attempt");
    assert!(!ordered(&[begin(3), end(3, true), pass(1), pass(2)]), "passing releases nothing");
}

#[test]
fn barriers() {
    assert!(ordered(&[t(1).enters(BAR), t(2).enters(BAR), t(2).leaves(BAR), t(1).leaves(BAR)]));
    assert!(!ordered(&[t(2).enters(BAR), t(3).enters(BAR), t(2).leaves(BAR), t(1).enters(BAR)]));
}

/// A slow thread leaves a round when a fast one has already entered the next: what the fast one did
/// in between is not before the slow one.
#[test]
fn rounds_of_a_barrier_are_apart() {
    let script = [
        t(1).forks(2),
        t(1).enters(BAR),
        t(2).enters(BAR),
        t(1).leaves(BAR),
        t(1).writes(X).at(1),
        t(1).enters(BAR),
        t(2).leaves(BAR),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

/// Three threads share a barrier for two. The third comes before the first two have told that they
/// left; only the count says that it belongs to the next round.
#[test]
fn a_full_round_takes_no_more() {
    let script = |count| {
        let barrier = Address(BAR);
        let script = [
            t(1).does(EventKind::BarrierCreated { barrier, count }),
            t(1).forks(2),
            t(1).forks(3),
            t(1).enters(BAR),
            t(2).enters(BAR),
            t(3).writes(X).at(1),
            t(3).enters(BAR),
            t(2).leaves(BAR),
            t(2).writes(X).at(2),
        ];
        run(HYBRID, &script)
    };
    assert_eq!(script(2), [(1, 2, Observed)]);
    assert_eq!(script(3), []);
}

#[test]
fn a_round_outlives_its_barrier() {
    let free = t(1).does(EventKind::Free { address: Address(BAR), size: 32 });
    let script = [t(1).enters(BAR), t(2).enters(BAR), t(1).leaves(BAR), free, t(2).leaves(BAR)];
    assert!(ordered(&script));
}

#[test]
fn locks_order_in_the_full_order_only() {
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        t(1).locks(M),
        t(1).unlocks(M),
        t(2).locks(M),
        t(2).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Predicted)]);
    assert_eq!(run(HB, &script), []);
}

#[test]
fn teams() {
    let team = Address(TEAM);
    let fork = t(1).does(EventKind::TeamFork { team });
    let begin = |n| t(n).does(EventKind::TeamBodyBegin { team });
    let end = |n| t(n).does(EventKind::TeamBodyEnd { team });
    let join = t(1).does(EventKind::TeamJoin { team });
    assert!(ordered(&[fork.clone(), begin(2)]));
    let script = [
        t(1).forks(2),
        fork,
        begin(2),
        begin(1),
        t(1).writes(Y).at(1),
        t(2).writes(Y).at(2),
        t(2).writes(X).at(3),
        end(2),
        end(1),
        join,
        t(1).writes(X).at(4),
        t(2).writes(Z).at(5),
        t(1).writes(Z).at(6),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed), (5, 6, Observed)]);
}

#[test]
fn tasks_come_after_their_creation_and_before_the_wait() {
    let function = Address(0x9000);
    let create = |data| t(1).does(EventKind::TaskCreate { function, data });
    let begin = |data| t(2).does(EventKind::TaskBegin { function, data });
    let end = |data| t(2).does(EventKind::TaskEnd { function, data });
    let script = [
        t(1).forks(2),
        t(1).writes(X).at(1),
        create(7),
        t(1).writes(Y).at(2),
        create(8),
        begin(7),
        t(2).writes(X).at(3),
        t(2).writes(Y).at(4),
        end(7),
        t(1).does(EventKind::TaskWaited),
        t(1).writes(X).at(5),
    ];
    assert_eq!(run(HYBRID, &script), [(2, 4, Observed)]);
    // A library that hands on a copy of the data: after all creations of the function so far.
    let copied = [
        t(1).forks(2),
        t(1).writes(X),
        create(7),
        t(1).writes(Y),
        create(8),
        begin(0x77),
        t(2).writes(X),
        t(2).writes(Y),
        end(0x77),
        t(1).does(EventKind::TaskWaited),
        t(1).writes(X),
    ];
    assert_eq!(run(HYBRID, &copied), []);
}

/// libgomp runs tasks inside the barrier that waits for them.
#[test]
fn a_task_run_inside_a_barrier_ends_before_anyone_leaves() {
    let (function, data) = (Address(0x9000), 7);
    let script = [
        t(1).forks(2),
        t(1).does(EventKind::TaskCreate { function, data }),
        t(1).enters(BAR),
        t(2).enters(BAR),
        t(2).does(EventKind::TaskBegin { function, data }),
        t(2).writes(X),
        t(2).does(EventKind::TaskEnd { function, data }),
        t(1).leaves(BAR),
        t(1).writes(X),
    ];
    assert_eq!(run(HYBRID, &script), []);
}

#[test]
fn a_join_known_by_handle_only() {
    let created = Some(raddle_model::ThreadId(2));
    let script = [
        t(1).forks(2),
        t(1).does(EventKind::ThreadCreated { created, handle: 0x77 }),
        t(2).writes(X),
        t(2).exits(),
        t(1).does(EventKind::ThreadJoined { joined: None, handle: 0x77 }),
        t(1).writes(X),
    ];
    assert_eq!(run(HYBRID, &script), []);
}

#[test]
fn what_a_thread_does_after_its_exit_event_is_still_its_own() {
    // Destructors of thread-local variables run after `pthread_exit` was called.
    let script = [
        t(1).writes(X),
        t(1).forks(2),
        t(2).writes(Y),
        t(2).exits(),
        t(1).forks(3),
        t(3).writes(Z),
        t(2).writes(X),
        t(2).writes(Y),
        t(1).joins(2),
        t(1).writes(X),
    ];
    assert_eq!(run(HYBRID, &script), []);
}

#[test]
fn futexes_and_functions_order_nothing() {
    let address = Address(FLAG);
    let wake = t(1).does(EventKind::FutexWake { address, count: 1 });
    let woken = t(2).does(EventKind::FutexWaitEnd { address, result: 0 });
    assert!(!ordered(&[wake, woken]));
    let enter = t(1).does(EventKind::FunctionEnter { hook: 0, arguments: vec![] });
    let exit = t(2).does(EventKind::FunctionExit { hook: 0, result: None });
    assert!(!ordered(&[enter, exit]));
}

/// A chain may be given on only to a thread that the weak order has after its last owner. Here the
/// new thread is after it by way of a lock only.
#[test]
fn a_chain_is_not_given_on_by_way_of_a_lock() {
    let script = [
        t(1).forks(2),
        t(1).forks(3),
        t(3).writes(X).at(1),
        t(1).joins(3),
        t(1).locks(M),
        t(1).unlocks(M),
        t(2).locks(M),
        t(2).unlocks(M),
        t(2).forks(4),
        t(4).writes(X).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Predicted)]);
}

/// A worker that is done with its share runs a task while it waits for the others.
#[test]
fn a_task_run_by_a_member_ends_before_the_join_of_the_team() {
    let (team, function, data) = (Address(TEAM), Address(0x9000), 7);
    let script = [
        t(1).forks(2),
        t(1).does(EventKind::TeamFork { team }),
        t(2).does(EventKind::TeamBodyBegin { team }),
        t(1).does(EventKind::TaskCreate { function, data }),
        t(2).does(EventKind::TeamBodyEnd { team }),
        t(2).does(EventKind::TaskBegin { function, data }),
        t(2).writes(X),
        t(2).does(EventKind::TaskEnd { function, data }),
        t(1).does(EventKind::TeamJoin { team }),
        t(1).writes(X),
    ];
    assert_eq!(run(HYBRID, &script), []);
}

/// Threads that end and are never joined are forgotten at last, the oldest first; until then a join
/// still orders.
#[test]
fn ended_threads_are_kept_for_a_join_that_may_come() {
    let last = 20_000;
    let mut script = vec![t(1).begins(), t(1).forks(2), t(2).writes(X).at(1), t(2).exits()];
    for n in 3..last {
        script.extend([t(1).forks(n), t(n).exits()]);
    }
    script.extend([t(1).forks(last), t(last).writes(Y).at(2), t(last).exits()]);
    script.extend([t(1).joins(last), t(1).writes(Y).at(3), t(1).joins(2), t(1).writes(X).at(4)]);
    assert_eq!(run(HYBRID, &script), [(1, 4, Observed)]);
}

/// Is thread 1 the only one after this, with nothing behind it that could race?
fn is_solo(script: &[Step]) -> bool {
    let mut orders = Orders::new(ConditionRule::WriteRead, true);
    let mut held = HeldLocks::default();
    for event in events(script) {
        orders.before(&event);
        orders.stamp(event.thread);
        let change = held.event(&event);
        orders.event(&event, change);
    }
    orders.is_solo(ThreadId(1))
}

#[test]
fn a_thread_is_solo_before_it_makes_another_and_after_it_has_joined_all() {
    assert!(is_solo(&[t(1).begins()]));
    assert!(!is_solo(&[t(1).begins(), t(1).creates(2)]), "it may begin at any time");
    assert!(!is_solo(&[t(1).begins(), t(1).forks(2)]));
    assert!(!is_solo(&[t(1).begins(), t(1).forks(2), t(2).exits()]), "nothing orders its end");
    assert!(is_solo(&[t(1).begins(), t(1).forks(2), t(1).joins(2)]));
    assert!(!is_solo(&[t(1).begins(), t(1).forks(2), t(1).forks(3), t(1).joins(2)]));
    let by_another = [t(1).begins(), t(1).forks(2), t(2).forks(3), t(2).joins(3), t(1).joins(2)];
    assert!(is_solo(&by_another));
    let forgotten = [t(1).begins(), t(1).forks(2), t(2).forks(3), t(3).exits(), t(1).joins(2)];
    assert!(!is_solo(&forgotten), "nobody has joined thread 3");
}

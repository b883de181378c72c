//! Helgrind+: the state machines against the tables in the docs, against the paper's rules run byte by
//! byte, and on examples.

use crate::dsl::*;
use crate::oracle::Oracle;
use crate::scripts::{Accesses, MEMORY, Places, choices, show, world};
use proptest::prelude::*;
use raddle_analyse::helgrind::state::{Candidates, Situation, State, Step as Move, step};
use raddle_analyse::order::Order;
use raddle_analyse::{Analyser, Detector, MsmLength, Options};
use raddle_model::finding::{Certainty::*, Rule};
use raddle_model::{AccessKind, Address, Event, EventKind, LockMode, ThreadId};
use std::collections::BTreeSet;

const DOCS: &str = include_str!("../../../../docs/analysers/helgrind-plus.md");

/// The rows of the table after `marker`, cell by cell.
fn table(marker: &str) -> Vec<Vec<&'static str>> {
    let after = DOCS.split_once(marker).expect("marker").1;
    let lines = after.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn applies(row: &[&str], state: State, now: Situation) -> bool {
    let access = match row[1] {
        "read" => !now.write,
        "write" => now.write,
        "any" => true,
        other => panic!("access {other:?}"),
    };
    let when = row[2].split(", ").all(|condition| match condition {
        "" => true,
        "ordered" => now.ordered,
        "parallel" => !now.ordered,
        "L ≠ ∅" => now.held,
        "L = ∅" => !now.held,
        "C ∩ L ≠ ∅" => now.candidates,
        "C ∩ L = ∅" => !now.candidates,
        "after a read" => now.after_read,
        "after a write" => !now.after_read,
        other => panic!("condition {other:?}"),
    });
    row[0] == state.to_string() && access && when
}

fn says(row: &[&str], then: Move) -> bool {
    let segment = match row[4] {
        "follow" => then.follow,
        "keep" => !then.follow,
        "" => then.next == State::Race,
        other => panic!("segment {other:?}"),
    };
    let candidates = match row[5] {
        "C ← L" => then.candidates == Candidates::Begin,
        "C ← C ∩ L" => then.candidates == Candidates::Refine,
        "C ← C" => then.candidates == Candidates::Keep,
        "" => !then.next.is_shared() && then.next != State::ExclusiveReadWrite,
        other => panic!("candidates {other:?}"),
    };
    row[3] == then.next.to_string() && segment && candidates
}

fn situations() -> impl Iterator<Item = Situation> {
    (0..32u8).map(|bits| Situation {
        write: bits & 1 != 0,
        ordered: bits & 2 != 0,
        held: bits & 4 != 0,
        candidates: bits & 8 != 0,
        after_read: bits & 16 != 0,
    })
}

fn check_table(length: MsmLength, marker: &str, states: usize) {
    let table = table(marker);
    let known: BTreeSet<&str> = table.iter().map(|row| row[0]).collect();
    assert_eq!(known.len(), states);
    for state in State::ALL.into_iter().filter(|s| known.contains(s.to_string().as_str())) {
        for now in situations() {
            let rows: Vec<_> = table.iter().filter(|row| applies(row, state, now)).collect();
            let [row] = rows.as_slice() else { panic!("{state} {now:?}: {rows:?}") };
            let then = step(length, state, now);
            assert!(says(row, then), "{state} {now:?}: {row:?} but {then:?}");
            assert!(known.contains(then.next.to_string().as_str()));
        }
    }
}

#[test]
fn msm_short_is_the_table_in_the_docs() {
    check_table(MsmLength::Short, "msm-short:", 6);
}

#[test]
fn msm_long_is_the_table_in_the_docs() {
    check_table(MsmLength::Long, "msm-long:", 8);
}

/// The paper's MSM-short for one byte, from its pseudo-code: 4.1.2 (join) and 4.2.3.
struct PaperByte {
    state: State,
    ts: usize,
    c: BTreeSet<Address>,
    s: BTreeSet<ThreadId>,
}

impl PaperByte {
    fn access(&mut self, oracle: &Oracle, events: &[Event], k: usize, write: bool) {
        let t = events[k].thread;
        let l_t: BTreeSet<Address> = oracle
            .held(k)
            .iter()
            .filter(|(_, mode)| !write || **mode == LockMode::Exclusive)
            .map(|(lock, _)| *lock)
            .collect();
        let hb = self.state == State::New || oracle.ordered(self.ts, k, Order::Weak);
        let exclusive = if write { State::ExclusiveWrite } else { State::ExclusiveRead };
        match self.state {
            State::New => {
                self.ts = k;
                self.state = exclusive;
            }
            State::ExclusiveWrite | State::ExclusiveRead => {
                let parallel_reads = self.state == State::ExclusiveRead && !write;
                if hb {
                    self.ts = k;
                    self.state = exclusive;
                } else if parallel_reads || !l_t.is_empty() {
                    self.s = BTreeSet::from([t, events[self.ts].thread]);
                    self.c = l_t;
                    self.state =
                        if parallel_reads { State::SharedRead } else { State::SharedModified };
                    if !parallel_reads {
                        self.ts = k;
                    }
                } else {
                    self.state = State::Race;
                }
            }
            State::SharedRead => {
                self.c.retain(|lock| l_t.contains(lock));
                self.s.insert(t);
                if write && (hb || !self.c.is_empty()) {
                    self.ts = k;
                    self.state = State::SharedModified;
                } else if write {
                    self.state = State::Race;
                }
            }
            State::SharedModified => {
                self.c.retain(|lock| l_t.contains(lock));
                self.s.insert(t);
                if !self.c.is_empty() {
                    self.ts = k;
                } else if hb {
                    self.ts = k;
                    self.state = exclusive;
                } else {
                    self.state = State::Race;
                }
            }
            State::Race => {}
            State::ExclusiveReadWrite | State::SharedModified2 => panic!("not in MSM-short"),
        }
    }

    fn join(&mut self, u: ThreadId) {
        let shared = matches!(self.state, State::SharedRead | State::SharedModified);
        if shared && self.s.remove(&u) && self.s.len() == 1 {
            self.state = match self.state {
                State::SharedRead => State::ExclusiveRead,
                _ => State::ExclusiveWrite,
            };
        }
    }
}

fn paper_state(events: &[Event], oracle: &Oracle, byte: u64) -> State {
    let fresh = || PaperByte { state: State::New, ts: 0, c: BTreeSet::new(), s: BTreeSet::new() };
    let mut location = fresh();
    for (k, event) in events.iter().enumerate() {
        match &event.kind {
            EventKind::Access { kind, address, size }
                if (address.0..address.0 + u64::from(*size)).contains(&byte) =>
            {
                location.access(oracle, events, k, *kind == AccessKind::Write);
            }
            EventKind::Allocate { address, size }
                if (address.0..address.0 + size).contains(&byte) =>
            {
                location = fresh();
            }
            EventKind::Free { address, size } if (address.0..address.0 + size).contains(&byte) => {
                location = PaperByte { state: State::ExclusiveWrite, ts: k, ..fresh() };
            }
            EventKind::ThreadJoined { joined: Some(u), .. } => location.join(*u),
            _ => {}
        }
    }
    location.state
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Wide accesses, stretches, orders, lock sets and joins put together give, for each byte, the
    /// state that the paper's rules give for that byte alone.
    #[test]
    fn every_byte_is_in_the_state_the_paper_says(choices in choices()) {
        let events = world(&choices, Accesses::Plain, Places::Few);
        let oracle = Oracle::new(&events);
        let mut detector = SHORT.detector(Options::default());
        for event in &events {
            detector.event(event);
        }
        let Detector::States(machine) = detector else { panic!() };
        for byte in MEMORY {
            let state = machine.state(Address(byte));
            let expected = paper_state(&events, &oracle, byte);
            prop_assert_eq!(state, expected, "byte {:#x}: {} not {}\n{}", byte, state, expected, show(&events));
        }
    }
}

#[test]
fn an_unprotected_parallel_access_is_a_race_at_once_in_short_and_when_repeated_in_long() {
    // n++ in two threads, each once; then once more.
    let plus_plus = |n: u32| [t(n).reads(X).at(1), t(n).writes(X).at(2)];
    let once = [vec![t(1).forks(2)], plus_plus(1).to_vec(), plus_plus(2).to_vec()].concat();
    let again = [once.clone(), plus_plus(1).to_vec()].concat();
    assert_eq!(run(SHORT, &once), [(2, 1, Observed)]);
    assert_eq!(run(LONG, &once), []);
    assert_eq!(run(LONG, &again), [(2, 1, Observed)]);
    let rules = |kind| run_with(kind, Options::default(), &again)[0].rules.clone();
    assert_eq!(rules(SHORT), [Rule::NoLockHeld]);
    assert_eq!(rules(LONG), [Rule::Repeated]);
}

#[test]
fn one_side_locked_is_a_race_in_both() {
    let locked =
        |n: u32| vec![t(n).locks(M), t(n).reads(X).at(1), t(n).writes(X).at(2), t(n).unlocks(M)];
    let bare = |n: u32| vec![t(n).reads(X).at(3), t(n).writes(X).at(4)];
    let script = [vec![t(1).forks(2)], bare(1), locked(2), bare(1), locked(2)].concat();
    assert_eq!(run(SHORT, &script), [(2, 3, Observed)]);
    assert_eq!(run(LONG, &script), [(4, 1, Observed)], "t1's second n++ and t2's second");
}

/// Section 4.2.5: initialised without a lock, then written in parallel under an unrelated one.
#[test]
fn the_papers_own_limitation_is_the_hybrid_detectors_gain() {
    let script =
        [t(1).forks(2), t(1).writes(X).at(1), t(2).locks(M), t(2).writes(X).at(2), t(2).unlocks(M)];
    assert_eq!(run(SHORT, &script), []);
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

#[test]
fn shared_read_needs_an_empty_lock_set_for_a_race() {
    let script = |locked: bool| {
        let mut script = vec![t(1).forks(2), t(1).forks(3)];
        script.extend([t(1).locks(M), t(1).reads(X).at(1), t(1).unlocks(M)]);
        script.extend([t(2).locks(M), t(2).reads(X).at(2), t(2).unlocks(M)]);
        if locked {
            script.push(t(3).locks(M));
        }
        script.push(t(3).writes(X).at(3));
        run(SHORT, &script)
    };
    assert_eq!(script(true), []);
    assert_eq!(script(false), [(1, 3, Observed)]);
}

#[test]
fn in_shared_modified_the_segment_follows_every_access() {
    // Protected by M; then t1 hands it to t2 by the semaphore, and no lock is held any more.
    let script = [
        t(1).forks(2),
        t(1).locks(M),
        t(1).writes(X),
        t(1).unlocks(M),
        t(2).locks(M),
        t(2).writes(X),
        t(2).unlocks(M),
        t(1).locks(M),
        t(1).writes(X),
        t(1).unlocks(M),
        t(1).posts(SEM),
        t(2).gets(SEM),
        t(2).writes(X),
    ];
    assert_eq!(run(SHORT, &script), []);
    assert_eq!(run(LONG, &script), []);
}

#[test]
fn joined_memory_is_exclusive_again() {
    let script = [
        t(1).forks(2),
        t(1).locks(M),
        t(1).writes(X),
        t(1).unlocks(M),
        t(2).locks(M),
        t(2).writes(X),
        t(2).unlocks(M),
        t(1).joins(2),
        t(1).writes(X),
        t(1).forks(3),
        t(3).writes(X),
    ];
    for detector in [SHORT, LONG] {
        assert_eq!(run(detector, &script), []);
    }
}

/// Written by one, read by all, round after round with a barrier between: parallel reads and ordered
/// writes are never suspicious.
#[test]
fn phases_kept_apart_by_barriers_are_clean() {
    let mut script: Vec<Step> = (2..5).map(|n| t(1).forks(n)).collect();
    for round in 0..6 {
        script.push(t(1 + round % 4).writes(X));
        script.extend((1..5).map(|n| t(n).enters(BAR)));
        script.extend((1..5).map(|n| t(n).leaves(BAR)));
        script.extend((1..5).map(|n| t(n).reads(X)));
        script.extend((1..5).map(|n| t(n).enters(BAR)));
        script.extend((1..5).map(|n| t(n).leaves(BAR)));
    }
    for detector in [HYBRID, SHORT, LONG] {
        assert_eq!(run(detector, &script), []);
    }
}

/// Precondition 2 of section 4: one lock at first, another later, with a barrier between.
#[test]
fn phases_with_different_locks_are_clean() {
    let mut script = vec![t(1).forks(2)];
    for lock in [M, N, M, N] {
        for n in [1, 2, 1] {
            script.extend([t(n).locks(lock), t(n).writes(X), t(n).unlocks(lock)]);
        }
        script.extend([t(1).enters(BAR), t(2).enters(BAR), t(1).leaves(BAR), t(2).leaves(BAR)]);
    }
    for detector in [HYBRID, SHORT, LONG] {
        assert_eq!(run(detector, &script), []);
    }
}

#[test]
fn a_racing_read_is_shown_with_the_write_it_races_with() {
    let script = [
        t(1).forks(2),
        t(1).forks(3),
        t(1).locks(M),
        t(1).writes(X).at(1),
        t(1).unlocks(M),
        t(2).locks(M),
        t(2).reads(X).at(2),
        t(2).unlocks(M),
        t(3).reads(X).at(3),
    ];
    assert_eq!(run(SHORT, &script), [(1, 3, Observed)]);
    let findings = run_with(SHORT, Options::default(), &script);
    assert_eq!(findings[0].rules, [Rule::NoCandidateLock]);
}

/// A thread that had been joined before the memory became shared counts as one of its sharers, and
/// a later join, of another thread, does not change that.
#[test]
fn only_a_join_since_then_makes_memory_exclusive() {
    let mut detector = SHORT.detector(Options::default());
    let script = [
        t(1).forks(2),
        t(1).forks(3),
        t(1).forks(4),
        t(1).forks(5),
        t(3).reads(X),
        t(4).joins(3),
        t(2).reads(X),
        t(1).joins(5),
    ];
    for event in events(&script) {
        detector.event(&event);
    }
    let Detector::States(machine) = &detector else { panic!() };
    assert_eq!(machine.state(Address(X)), State::SharedRead);
    for event in events(&[t(1).joins(2)]) {
        detector.event(&event);
    }
    let Detector::States(machine) = &detector else { panic!() };
    assert_eq!(machine.state(Address(X)), State::ExclusiveRead);
}

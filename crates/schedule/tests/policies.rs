//! Policies against small programs typed in as lists of steps: no target, no engine.

use proptest::prelude::*;
use raddle_model::{Address, ModuleId, Place, ThreadId};
use raddle_schedule::*;
use std::collections::BTreeSet;

/// What a thread of a typed program does, step by step.
#[derive(Debug, Clone, Copy)]
enum Do {
    /// An atomic instruction.
    Atomic,
    /// Asks for a lock, holding one.
    Nested,
    /// A watched access: side, address, writes.
    Watched(Side, u64, bool),
    /// Waits until the other thread has done this many steps.
    Until(usize),
    /// Sleeps: runnable again only by a wait.
    Sleep,
    /// Computes, up to the next point where that is noticed.
    Compute,
}

struct Program {
    threads: Vec<Vec<Do>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    /// Thread and index of step, in the order executed.
    trace: Vec<(usize, usize)>,
    meetings: Vec<(ThreadId, ThreadId)>,
    schedule: Schedule,
}

fn place(thread: usize, step: usize) -> Place {
    Place { module: ModuleId(1), offset: (thread * 1000 + step) as u64 }
}

impl Program {
    fn run(&self, policy: &mut dyn Policy) -> Run {
        let mut at = vec![0; self.threads.len()];
        let mut asleep = vec![false; self.threads.len()];
        let mut current = None;
        let mut run = Run::default();
        let mut recorder = Recorder::default();
        for _ in 0..100_000 {
            let done = |t: usize| at[t] >= self.threads[t].len();
            let mut runnable = Vec::new();
            for t in 0..self.threads.len() {
                let Some(step) = self.threads[t].get(at[t]) else { continue };
                let next = match *step {
                    Do::Atomic => Step::Atomic(place(t, at[t])),
                    Do::Nested => Step::Nested(Nested {
                        place: place(t, at[t]),
                        suspected: true,
                        closes: false,
                    }),
                    Do::Compute => Step::Branch(place(t, at[t])),
                    Do::Watched(side, address, writes) => Step::Access(Access {
                        side,
                        place: place(t, at[t]),
                        address: Address(address),
                        size: 4,
                        writes,
                        atomic: false,
                    }),
                    Do::Until(n) if at[1 - t] < n && !done(1 - t) => continue,
                    Do::Sleep if !asleep[t] => {
                        // Falls asleep as soon as it gets there.
                        continue;
                    }
                    Do::Until(_) | Do::Sleep => {
                        Step::SystemCall { number: 35, place: place(t, at[t]) }
                    }
                };
                runnable.push(Candidate { thread: ThreadId(t as u32 + 1), next });
            }
            let sleeper = (0..at.len())
                .find(|&t| matches!(self.threads[t].get(at[t]), Some(Do::Sleep)) && !asleep[t]);
            if runnable.is_empty() {
                match sleeper {
                    Some(t) => asleep[t] = true,
                    None => break,
                }
                continue;
            }
            for m in meetings(&runnable) {
                let met = (m.first.0, m.second.0);
                if run.meetings.last() != Some(&met) {
                    run.meetings.push(met);
                }
            }
            let point = Point {
                current,
                runnable: &runnable,
                can_wait: sleeper.is_some(),
                sleeper: sleeper.map(|t| ThreadId(t as u32 + 1)),
            };
            let decision = policy.choose(&point);
            let step = match decision {
                Decision::Run(thread) => {
                    let chosen = runnable.iter().find(|c| c.thread == thread);
                    Some(chosen.expect("a policy chooses who can run").next)
                }
                Decision::Wait => {
                    let t = sleeper.expect("a policy waits only where somebody sleeps");
                    asleep[t] = true;
                    None
                }
            };
            run.schedule.segments.extend(recorder.decided(decision, step.as_ref()));
            if let Decision::Run(thread) = decision {
                let t = thread.0 as usize - 1;
                run.trace.push((t, at[t]));
                at[t] += 1;
                asleep[t] = false;
                current = Some(thread);
            }
        }
        run.schedule.segments.extend(recorder.close());
        assert!(at.iter().zip(&self.threads).all(|(a, t)| *a >= t.len()), "starved: {at:?}");
        run
    }
}

fn far_apart(distance: usize) -> Program {
    let mut late = vec![Do::Atomic; distance];
    late.push(Do::Watched(Side::First, 64, true));
    Program { threads: vec![late, vec![Do::Watched(Side::Second, 64, false)]] }
}

fn all_policies(seed: u64) -> Vec<Box<dyn Policy>> {
    let pct = PolicyName::Pct { depth: 3, length: 50 };
    let directed = [PolicyName::RaceDirected, PolicyName::LockDirected];
    let random = [PolicyName::Random, PolicyName::Bursts];
    [random[0], random[1], pct, PolicyName::RoundRobin, directed[0], directed[1]]
        .map(|name| name.policy(seed))
        .into()
}

/// Figure 2 of the paper: the race is created every time, each order in about half, whatever the
/// distance.
#[test]
fn a_race_is_created_whatever_the_distance() {
    for distance in [0, 10, 1_000, 10_000] {
        let program = far_apart(distance);
        let mut late_first = 0;
        for seed in 0..200 {
            let run = program.run(&mut RaceDirected::new(seed));
            assert_eq!(run.meetings, [(ThreadId(1), ThreadId(2))], "{distance} {seed}");
            let position = |step| run.trace.iter().position(|s| *s == step).unwrap();
            late_first += u32::from(position((0, distance)) < position((1, 0)));
        }
        assert!((70..=130).contains(&late_first), "{distance}: {late_first} of 200");
    }
}

#[test]
fn at_random_distant_accesses_hardly_meet_in_the_late_order() {
    let program = far_apart(1_000);
    let late = (0..200).filter(|seed| {
        let run = program.run(&mut Random::new(*seed));
        run.trace.last() == Some(&(1, 0))
    });
    assert_eq!(late.count(), 0);
}

/// Figure 1: the pair on x cannot meet, because one is ordered behind the other.
#[test]
fn what_is_ordered_never_meets() {
    let program = Program {
        threads: vec![
            vec![Do::Watched(Side::First, 8, true), Do::Atomic, Do::Atomic],
            vec![Do::Until(2), Do::Watched(Side::Second, 8, false)],
        ],
    };
    for seed in 0..500 {
        assert_eq!(program.run(&mut RaceDirected::new(seed)).meetings, []);
    }
}

#[test]
fn time_passes_before_a_postponed_thread_is_released() {
    let program = Program {
        threads: vec![
            vec![Do::Watched(Side::First, 8, true)],
            vec![Do::Sleep, Do::Atomic, Do::Watched(Side::Second, 8, true)],
        ],
    };
    for seed in 0..100 {
        let run = program.run(&mut RaceDirected::new(seed));
        assert_eq!(run.meetings, [(ThreadId(1), ThreadId(2))], "{seed}");
    }
}

#[test]
fn other_memory_and_two_reads_do_not_meet() {
    for (address, writes) in [(68, true), (64, false)] {
        let program = Program {
            threads: vec![
                vec![Do::Watched(Side::First, 64, writes)],
                vec![Do::Watched(Side::Second, address, false)],
            ],
        };
        assert_eq!(program.run(&mut RaceDirected::new(3)).meetings, []);
    }
}

#[test]
fn two_threads_at_one_side_do_not_confirm_a_pair_but_at_one_place_do() {
    let both = |side| {
        let access = vec![Do::Watched(side, 64, true)];
        Program { threads: vec![access.clone(), access] }.run(&mut RaceDirected::new(1)).meetings
    };
    assert_eq!(both(Side::First), []);
    assert_eq!(both(Side::Both), [(ThreadId(1), ThreadId(2))]);
}

#[test]
fn pct_of_depth_one_switches_only_where_it_must() {
    let program = Program { threads: vec![vec![Do::Atomic; 20]; 3] };
    let runs_of_one = |depth, seed| {
        let run = program.run(&mut Pct::new(seed, depth, 60));
        run.schedule.segments.chunk_by(|a, b| a.who == b.who).count()
    };
    for seed in 0..50 {
        assert_eq!(runs_of_one(1, seed), 3, "{seed}");
    }
    let deeper = (0..50).filter(|seed| runs_of_one(3, *seed) > 3);
    assert!(deeper.count() > 30);
}

/// A thread stays between its two steps while another, which computes for long first, makes all of its own.
#[test]
fn who_computes_can_stay_ahead() {
    let mut late = vec![Do::Compute; 60];
    late.extend([Do::Atomic, Do::Atomic]);
    let program = Program { threads: vec![vec![Do::Atomic, Do::Atomic], late] };
    let between = |run: &Run| {
        let at = |step| run.trace.iter().position(|s| *s == step).unwrap();
        at((0, 0)) < at((1, 60)) && at((1, 61)) < at((0, 1))
    };
    let count = |policy: fn(u64) -> Box<dyn Policy>| {
        (0..1_000).filter(|seed| between(&program.run(&mut *policy(*seed)))).count()
    };
    let bursts = count(|seed| Box::new(Bursts::new(seed)));
    let pct = count(|seed| Box::new(Pct::new(seed, 2, 64)));
    assert!(bursts >= 3 && pct >= 10, "{bursts} {pct}");
}

/// A sleeper comes before the step of somebody who could have made it.
#[test]
fn sleepers_can_come_first() {
    let program = Program { threads: vec![vec![Do::Atomic; 5], vec![Do::Sleep, Do::Atomic]] };
    let first = |run: &Run| run.trace[..2] == [(1, 0), (1, 1)];
    let count = |policy: fn(u64) -> Box<dyn Policy>| {
        (0..1_000).filter(|seed| first(&program.run(&mut *policy(*seed)))).count()
    };
    let bursts = count(|seed| Box::new(Bursts::new(seed)));
    let pct = count(|seed| Box::new(Pct::new(seed, 1, 8)));
    assert!(bursts >= 20 && pct >= 100, "{bursts} {pct}");
}

/// Two threads that take two locks in opposite orders: both stand between them, whatever the
/// distance; at random that is rare.
#[test]
fn threads_that_hold_a_lock_wait_for_each_other() {
    let one = |before: usize| {
        let mut steps = vec![Do::Atomic; before];
        steps.extend([Do::Nested, Do::Atomic]);
        steps
    };
    let program = Program { threads: vec![one(1), one(200)] };
    let both_stood = |run: &Run| {
        let at = |step| run.trace.iter().position(|s| *s == step).unwrap();
        // Neither got its second lock before the other had its first.
        at((0, 1)) > at((1, 199)) && at((1, 200)) > at((0, 0))
    };
    let stood = |policy: fn(u64) -> Box<dyn Policy>| {
        (0..100).filter(|seed| both_stood(&program.run(&mut *policy(*seed)))).count()
    };
    // One in eight is let through on purpose, on either side.
    assert!(stood(|seed| Box::new(LockDirected::new(seed))) > 60);
    assert_eq!(stood(|seed| Box::new(Random::new(seed))), 0);
}

#[test]
fn round_robin_is_in_turn() {
    let program = Program { threads: vec![vec![Do::Atomic; 2]; 3] };
    let run = program.run(&mut RoundRobin);
    assert_eq!(run.trace, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
}

#[test]
fn a_replay_that_goes_elsewhere_says_where() {
    let recorded = far_apart(5).run(&mut Random::new(1)).schedule;
    let mut replay = Replay::new(&recorded);
    far_apart(6).run(&mut replay);
    let divergence = replay.divergence().expect("one more step is another execution");
    assert!(divergence.point <= 8, "{divergence}");
}

/// Also within a long run of one thread: at the very point.
#[test]
fn a_replay_notices_the_first_step_that_differs() {
    let mut long = vec![Do::Atomic; 20];
    let program = |long: &[Do]| Program { threads: vec![long.to_vec(), vec![Do::Atomic; 2]] };
    let recorded = program(&long).run(&mut Pct::new(3, 1, 22)).schedule;
    long[11] = Do::Compute;
    let mut replay = Replay::new(&recorded);
    let run = program(&long).run(&mut replay);
    let divergence = replay.divergence().expect("another step is another execution");
    let differs = run.trace.iter().position(|step| *step == (0, 11)).unwrap() as u64;
    assert_eq!(divergence.point, differs + 1, "{divergence}");
    assert!(
        divergence.what.starts_with("T1 is about to go on computing at module"),
        "{divergence}"
    );
}

fn steps() -> impl Strategy<Value = Do> {
    let side = prop_oneof![Just(Side::First), Just(Side::Second)];
    prop_oneof![
        4 => Just(Do::Atomic),
        1 => Just(Do::Sleep),
        1 => Just(Do::Nested),
        1 => Just(Do::Compute),
        2 => (side, 0..3u64, any::<bool>()).prop_map(|(s, a, w)| Do::Watched(s, a * 4, w)),
    ]
}

proptest! {
    /// Whatever the program, the seed and the policy: all threads come to their end, the same seed
    /// does the same, and the schedule, through its file, repeats it.
    #[test]
    fn every_execution_is_repeated_by_its_seed_and_by_its_schedule(
        threads in prop::collection::vec(prop::collection::vec(steps(), 0..25), 1..5),
        seed in any::<u64>(),
    ) {
        let program = Program { threads };
        for (mut once, mut again) in all_policies(seed).into_iter().zip(all_policies(seed)) {
            let run = program.run(&mut *once);
            prop_assert_eq!(&run, &program.run(&mut *again));
            let stored = Schedule::parse(&run.schedule.to_string()).unwrap();
            prop_assert_eq!(&stored, &run.schedule);
            let mut replay = Replay::new(&stored);
            let repeated = program.run(&mut replay);
            prop_assert_eq!(replay.divergence(), None);
            prop_assert!(replay.is_complete());
            prop_assert_eq!(repeated, run);
        }
    }

    /// Seeds matter.
    #[test]
    fn seeds_give_different_executions(first in any::<u32>()) {
        let program = Program { threads: vec![vec![Do::Atomic; 12]; 3] };
        let seeds = (u64::from(first)..).take(30);
        let traces: BTreeSet<_> =
            seeds.map(|seed| program.run(&mut Random::new(seed)).trace).collect();
        prop_assert!(traces.len() >= 29, "{}", traces.len());
    }
}

#[test]
fn damaged_schedules_get_a_sentence() {
    let said = |text: &str| Schedule::parse(text).unwrap_err().to_string();
    assert!(said("").starts_with("not a schedule of Raddle"));
    assert!(said("raddle-schedule/1\n-\n").starts_with("not a schedule of Raddle"));
    assert_eq!(said("raddle-schedule/2\nseed\n-\n"), "line 2 is damaged: expected name value");
    for line in ["T1 0 00", "T1 1", "Tx 1 00", "T1 1 zz", "T1 1 00 00", "nobody 1 00"] {
        let text = format!("raddle-schedule/2\nseed 7\n-\nT2 4 00\n{line}\n");
        assert_eq!(said(&text), "line 5 is damaged: expected T1 12 9f3c2a11", "{line}");
    }
    assert_eq!(said("raddle-schedule/2\nseed 7\n"), "line 3 is damaged: expected -");
    let whole = Schedule::parse("raddle-schedule/2\nseed 7\n-\nwait 1 0\n").unwrap();
    assert_eq!((whole.setting("seed"), whole.points()), (Some("7"), 1));
}

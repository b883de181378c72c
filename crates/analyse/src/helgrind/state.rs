//! The memory state machines of Helgrind+ as pure functions: MSM-short (`seeds/000…` 4.2.3, Figure
//! 3) and MSM-long (4.2.1, 4.2.4). `docs/analysers/helgrind-plus.md` shows them as tables, and a
//! test holds the two against each other.
//!
//! Points the paper leaves open in MSM-short, as the design decides them: in Shared-Read a race
//! needs an empty lock set, as its text says and its table does not; in Shared-Modified the segment
//! follows every access. One more: an ordered read in Exclusive-Read moves the segment on, as it
//! does in Exclusive-Write, or the race with the later read would be lost.
//!
//! MSM-long is published elsewhere and only described here: it has two states more, and waits for a
//! suspicious pattern to be repeated. Its table is ours, made from that intent:
//! - No access is reported on the first suspicion. Where the candidates run out, or a parallel access
//!   holds no lock, the location enters Shared-Modified-2, and happens-before tracking begins.
//! - From there an ordered access leads to Exclusive-Read-Write: data handed over by ordering.
//! - A second suspicion, in either of these two, is a race: a parallel access that conflicts with the
//!   last one and shares no lock with it. (Not "the next parallel one in Shared-Modified-2" alone:
//!   an unprotected `n++` in two threads would then go back and forth between the two for ever.)
//! - Both remember the locks of the last access as candidates, so that a program which changes from
//!   one lock to another, or from ordering to locks, between two phases returns to Shared-Modified.
//! - Parallel reads are never suspicious: data written in one phase and read by all in the next
//!   moves between Shared-Read, Shared-Modified-2 and Exclusive-Read-Write.

use raddle_model::finding::Rule;
use std::fmt;

/// Which of the two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MsmLength {
    /// Six states; warns at the first sign. For short runs.
    #[default]
    Short,
    /// Eight states; warns when the sign is repeated. For long runs.
    Long,
}

/// The state of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum State {
    /// Not accessed since it was allocated.
    #[default]
    New,
    /// All accesses were ordered; the last was a write.
    ExclusiveWrite,
    /// All accesses were ordered; the last was a read.
    ExclusiveRead,
    /// MSM-long: was suspected once, and is handed over by ordering since.
    ExclusiveReadWrite,
    /// Read in parallel.
    SharedRead,
    /// Accessed in parallel, and protected by the candidates.
    SharedModified,
    /// MSM-long: suspected once.
    SharedModified2,
    /// Reported.
    Race,
}

impl State {
    /// All of them.
    pub const ALL: [State; 8] = [
        State::New,
        State::ExclusiveWrite,
        State::ExclusiveRead,
        State::ExclusiveReadWrite,
        State::SharedRead,
        State::SharedModified,
        State::SharedModified2,
        State::Race,
    ];

    /// Does a set of threads belong to it?
    pub fn is_shared(self) -> bool {
        matches!(self, State::SharedRead | State::SharedModified | State::SharedModified2)
    }

    /// The state when all but one of the threads have been joined (4.1.2).
    pub fn no_longer_shared(self) -> State {
        match self {
            State::SharedRead => State::ExclusiveRead,
            State::SharedModified => State::ExclusiveWrite,
            State::SharedModified2 => State::ExclusiveReadWrite,
            other => other,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::New => "New",
            State::ExclusiveWrite => "Exclusive-Write",
            State::ExclusiveRead => "Exclusive-Read",
            State::ExclusiveReadWrite => "Exclusive-Read-Write",
            State::SharedRead => "Shared-Read",
            State::SharedModified => "Shared-Modified",
            State::SharedModified2 => "Shared-Modified-2",
            State::Race => "Race",
        })
    }
}

/// What the machine may know of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// It writes.
    pub write: bool,
    /// The location's segment happens before it; otherwise they are parallel.
    pub ordered: bool,
    /// It holds a lock: L_t is not empty.
    pub held: bool,
    /// It holds a candidate: the intersection of C_d and L_t is not empty.
    pub candidates: bool,
    /// The access whose segment the location keeps was a read (MSM-long only).
    pub after_read: bool,
}

/// What becomes of the candidates C_d.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// They are not needed.
    Drop,
    /// They become L_t.
    Begin,
    /// They become their intersection with L_t.
    Refine,
    /// They stay.
    Keep,
}

/// What an access does to a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The next state.
    pub next: State,
    /// The location's segment TS_d becomes that of the access; otherwise it is kept.
    pub follow: bool,
    /// What becomes of C_d.
    pub candidates: Candidates,
    /// Why, if the next state is Race.
    pub rule: Option<Rule>,
}

/// One step of the chosen machine.
pub fn step(length: MsmLength, state: State, now: Situation) -> Step {
    match length {
        MsmLength::Short => short(state, now),
        MsmLength::Long => long(state, now),
    }
}

fn short(state: State, now: Situation) -> Step {
    match state {
        State::New => exclusive(now),
        State::ExclusiveWrite | State::ExclusiveRead if now.ordered => exclusive(now),
        State::ExclusiveRead if !now.write => shared_read(Candidates::Begin),
        State::ExclusiveWrite | State::ExclusiveRead if now.held => {
            to(State::SharedModified, Candidates::Begin)
        }
        State::ExclusiveWrite | State::ExclusiveRead => race(Rule::NoLockHeld),
        State::SharedRead if !now.write => shared_read(Candidates::Refine),
        State::SharedRead if now.ordered || now.candidates => {
            to(State::SharedModified, Candidates::Refine)
        }
        State::SharedModified if now.candidates => to(State::SharedModified, Candidates::Refine),
        State::SharedModified if now.ordered => exclusive(now),
        State::SharedRead | State::SharedModified => race(Rule::NoCandidateLock),
        State::Race => stay(state),
        State::ExclusiveReadWrite | State::SharedModified2 => stay(state),
    }
}

fn long(state: State, now: Situation) -> Step {
    let suspected = to(State::SharedModified2, Candidates::Begin);
    match state {
        State::New => exclusive(now),
        State::ExclusiveWrite | State::ExclusiveRead if now.ordered => exclusive(now),
        State::ExclusiveRead if !now.write => shared_read(Candidates::Begin),
        State::ExclusiveWrite | State::ExclusiveRead if now.held => {
            to(State::SharedModified, Candidates::Begin)
        }
        State::ExclusiveWrite | State::ExclusiveRead => suspected,
        State::SharedRead if !now.write => shared_read(Candidates::Refine),
        State::SharedRead | State::SharedModified if now.candidates => {
            to(State::SharedModified, Candidates::Refine)
        }
        State::SharedRead | State::SharedModified => suspected,
        State::SharedModified2 | State::ExclusiveReadWrite if now.ordered => {
            to(State::ExclusiveReadWrite, Candidates::Begin)
        }
        State::SharedModified2 | State::ExclusiveReadWrite if now.candidates => {
            to(State::SharedModified, Candidates::Refine)
        }
        State::SharedModified2 if !now.write && now.after_read => stay(state),
        State::ExclusiveReadWrite if !now.write && now.after_read => shared_read(Candidates::Begin),
        State::SharedModified2 | State::ExclusiveReadWrite => race(Rule::Repeated),
        State::Race => stay(state),
    }
}

/// To the exclusive state of the access.
fn exclusive(now: Situation) -> Step {
    let next = if now.write { State::ExclusiveWrite } else { State::ExclusiveRead };
    to(next, Candidates::Drop)
}

/// To, or on in, Shared-Read, where the segment is kept from before.
fn shared_read(candidates: Candidates) -> Step {
    Step { next: State::SharedRead, follow: false, candidates, rule: None }
}

fn to(next: State, candidates: Candidates) -> Step {
    Step { next, follow: true, candidates, rule: None }
}

fn stay(state: State) -> Step {
    Step { next: state, follow: false, candidates: Candidates::Keep, rule: None }
}

fn race(rule: Rule) -> Step {
    Step { next: State::Race, follow: false, candidates: Candidates::Drop, rule: Some(rule) }
}

//! Scheduling policies: pure deciders. Knows the model only.
//!
//! A controlled execution lets one thread run at a time and asks a [`Policy`] at every *scheduling
//! point* who runs next. The policy is shown the threads that could run and what each is about to
//! do; it knows nothing of how they are stopped and started. Each policy is one small file:
//!
//! - [`Random`]: uniformly at random;
//! - [`Bursts`]: at random, but who computes runs on, and sleepers may come first;
//! - [`Pct`]: priorities with a few random changes (Burckhardt et al., ASPLOS 2010);
//! - [`RoundRobin`]: in turn;
//! - [`RaceDirected`]: Algorithm 1 of RaceFuzzer: makes two suspected accesses meet;
//! - [`LockDirected`]: makes threads that take several locks wait for each other;
//! - [`Replay`]: as a [`Schedule`] says.
//!
//! What is said of the machine in every execution alike is made by [`told`].
//!
//! What was decided is a [`Schedule`]: readable, and, with what came from outside ([`Arrival`]), enough to
//! repeat the execution.

mod bursts;
mod input;
mod lock_directed;
mod meeting;
mod pct;
mod point;
mod race_directed;
mod random;
mod replay;
mod rng;
mod round_robin;
mod schedule;
pub mod told;

pub use bursts::Bursts;
pub use input::{Arrival, Came, InputError, Why, input_text, parse_input};
pub use lock_directed::LockDirected;
pub use meeting::{Meeting, meetings};
pub use pct::Pct;
pub use point::{Access, Candidate, Decision, Nested, Point, Policy, Side, Step};
pub use race_directed::RaceDirected;
pub use random::Random;
pub use replay::{Divergence, Replay};
pub use rng::Rng;
pub use round_robin::RoundRobin;
pub use schedule::{Recorder, Schedule, ScheduleError, Segment, Who};

/// A policy as a person asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// [`Random`].
    Random,
    /// [`Bursts`].
    Bursts,
    /// [`Pct`] with this many ordering constraints, in an execution of about this many points.
    Pct {
        /// The depth of the bugs looked for.
        depth: u32,
        /// Scheduling points expected.
        length: u64,
    },
    /// [`RoundRobin`].
    RoundRobin,
    /// [`RaceDirected`].
    RaceDirected,
    /// [`LockDirected`].
    LockDirected,
}

impl PolicyName {
    /// The policy, drawing its decisions from this seed.
    pub fn policy(self, seed: u64) -> Box<dyn Policy> {
        match self {
            PolicyName::Random => Box::new(Random::new(seed)),
            PolicyName::Bursts => Box::new(Bursts::new(seed)),
            PolicyName::Pct { depth, length } => Box::new(Pct::new(seed, depth, length)),
            PolicyName::RoundRobin => Box::new(RoundRobin),
            PolicyName::RaceDirected => Box::new(RaceDirected::new(seed)),
            PolicyName::LockDirected => Box::new(LockDirected::new(seed)),
        }
    }
}

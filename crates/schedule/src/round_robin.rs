//! In turn: every thread one step, by their numbers.

use crate::{Decision, Point, Policy};

/// The next one after whoever ran last.
#[derive(Debug)]
pub struct RoundRobin;

impl Policy for RoundRobin {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        let after = |c: &&crate::Candidate| point.current.is_none_or(|now| c.thread > now);
        match point.runnable.iter().find(after).or(point.runnable.first()) {
            Some(candidate) => Decision::Run(candidate.thread),
            None => Decision::Wait,
        }
    }
}

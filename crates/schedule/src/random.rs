//! Uniformly at random: the base line of randomised testing.

use crate::{Decision, Point, Policy, Rng};

/// Any of those who can run, with equal chances.
#[derive(Debug)]
pub struct Random {
    rng: Rng,
}

impl Random {
    /// Draws from this seed.
    pub fn new(seed: u64) -> Random {
        Random { rng: Rng::new(seed, 1) }
    }
}

impl Policy for Random {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        match self.rng.pick(point.runnable) {
            Some(candidate) => Decision::Run(candidate.thread),
            None => Decision::Wait,
        }
    }
}

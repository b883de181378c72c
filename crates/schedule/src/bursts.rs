//! At random, in bursts: uniformly where threads can notice each other, but where a thread has merely computed
//! for long it mostly runs on; and sleepers may come first. In a fair walk no thread stays behind another that
//! computes for a millisecond, because the other would have to win fifty coins in a row.

use crate::{Decision, Point, Policy, Rng, Step};

/// Of points in the midst of computing, one in so many is a point like any other.
const RARELY: u64 = 16;
/// Where a sleeper could come first, it does in one of so many points.
const EARLY: u64 = 8;

/// Any of those who can run, with equal chances, until it has done something.
#[derive(Debug)]
pub struct Bursts {
    rng: Rng,
}

impl Bursts {
    /// Draws from this seed.
    pub fn new(seed: u64) -> Bursts {
        Bursts { rng: Rng::new(seed, 7) }
    }
}

impl Policy for Bursts {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        let current = point.runnable.iter().find(|c| Some(c.thread) == point.current);
        if let Some(current) = current
            && matches!(current.next, Step::Branch(_))
            && self.rng.below(RARELY) != 0
        {
            return Decision::Run(current.thread);
        }
        if point.sleeper.is_some() && self.rng.below(EARLY) == 0 {
            return Decision::Wait;
        }
        match self.rng.pick(point.runnable) {
            Some(candidate) => Decision::Run(candidate.thread),
            None => Decision::Wait,
        }
    }
}

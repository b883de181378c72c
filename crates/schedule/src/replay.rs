//! As an earlier execution: the decisions of a schedule, one after the other.
//!
//! What each chosen thread is about to do must have the digest that was recorded: an execution that has gone another
//! way is noticed at the first point that differs, even where the same threads could run.

use crate::schedule::{Who, digest};
use crate::{Decision, Point, Policy, Schedule, Segment, Step};
use raddle_model::ThreadId;
use std::fmt;

/// The decisions of a schedule.
#[derive(Debug)]
pub struct Replay {
    segments: Vec<Segment>,
    at: usize,
    /// Points done of the segment.
    done: u64,
    points: u64,
    divergence: Option<Divergence>,
}

/// Where an execution left its schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The scheduling point, from 1.
    pub point: u64,
    /// What was different.
    pub what: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at scheduling point {}: {}", self.point, self.what)
    }
}

impl Replay {
    /// Repeats this.
    pub fn new(schedule: &Schedule) -> Replay {
        Replay { segments: schedule.segments.clone(), at: 0, done: 0, points: 0, divergence: None }
    }

    /// Did the whole schedule come to pass? The last segment may have been cut short: what ended the
    /// execution can have come in the middle of it.
    pub fn is_complete(&self) -> bool {
        self.at + 1 >= self.segments.len()
    }

    fn diverge(&mut self, what: String) {
        let point = self.points;
        self.divergence.get_or_insert(Divergence { point, what });
    }

    /// Behind the schedule's end, and after a divergence: whoever ran runs on.
    fn go_on(point: &Point<'_>) -> Decision {
        let current = point.runnable.iter().find(|c| Some(c.thread) == point.current);
        let next = current.or(point.runnable.first());
        next.map_or(Decision::Wait, |c| Decision::Run(c.thread))
    }
}

impl Policy for Replay {
    fn choose(&mut self, point: &Point<'_>) -> Decision {
        self.points += 1;
        let Some(&segment) = self.segments.get(self.at).filter(|_| self.divergence.is_none())
        else {
            return Replay::go_on(point);
        };
        let candidate = point.runnable.iter().find(|c| Who::Thread(c.thread) == segment.who);
        let decision = match (segment.who, candidate) {
            (Who::Thread(thread), Some(candidate)) => {
                if digest(&candidate.next) != segment.digest {
                    let what = name(&candidate.next);
                    self.diverge(format!("{thread} is about to {what}, and did something else"));
                }
                Decision::Run(thread)
            }
            (Who::Nobody, _) if point.can_wait => Decision::Wait,
            (Who::Thread(thread), None) => {
                self.diverge(format!("{thread} was to run, and cannot; {}", can(point)));
                return Replay::go_on(point);
            }
            (Who::Nobody, _) => {
                self.diverge(format!("all were to wait, and nobody sleeps; {}", can(point)));
                return Replay::go_on(point);
            }
        };
        self.done += 1;
        if self.done == segment.points {
            (self.at, self.done) = (self.at + 1, 0);
        }
        decision
    }

    fn divergence(&self) -> Option<&Divergence> {
        self.divergence.as_ref()
    }
}

/// A step, for people.
fn name(step: &Step) -> String {
    let at =
        |place: raddle_model::Place| format!("at module {} + {:#x}", place.module.0, place.offset);
    match *step {
        Step::Start => "begin".into(),
        Step::SystemCall { number, place } => format!("make system call {number} {}", at(place)),
        Step::Yield => "yield".into(),
        Step::Atomic(place) => format!("execute an atomic instruction {}", at(place)),
        Step::Branch(place) => format!("go on computing {}", at(place)),
        Step::Nested(nested) => format!("ask for a lock {}", at(nested.place)),
        Step::Access(access) => format!("touch memory {}", at(access.place)),
    }
}

fn can(point: &Point<'_>) -> String {
    let names: Vec<String> =
        point.runnable.iter().map(|c| ThreadId::to_string(&c.thread)).collect();
    format!("able to run: {}", names.join(", "))
}

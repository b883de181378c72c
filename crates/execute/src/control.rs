//! What the scheduler did in a controlled execution.

use raddle_model::{Place, StackId, ThreadId};
use raddle_schedule::{Schedule, Segment, Who};
use raddle_wire::log::{Meeting, Wait};
use std::collections::{BTreeMap, BTreeSet};

/// The scheduler's side of an outcome; empty when the kernel scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// Batches of decisions, by how many came before: each thread writes its own.
    batches: BTreeMap<u64, Vec<(ThreadId, u64, u32)>>,
    /// What came from outside, line by line.
    input: BTreeMap<u64, String>,
    /// When two threads stood at conflicting accesses of the watched pair, in the order they did.
    pub meetings: Vec<Meeting>,
    /// The deadlock that ended it.
    pub stuck: Option<Stuck>,
    /// Where a replay went another way.
    pub divergence: Option<String>,
    /// Where it died, if it did.
    pub crash: Option<Crash>,
    /// What the target asked for and did not get, a sentence each.
    pub refused: BTreeSet<String>,
}

/// Where a thread stood when the target died of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// Where.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
}

/// A deadlock, or no progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// Who waits, and for what.
    pub waits: Vec<Wait>,
    /// They wait for each other's locks; otherwise nobody could run.
    pub cycle: bool,
}

impl Stuck {
    /// Is somebody able to run, who goes round in circles?
    pub fn spins(&self) -> bool {
        !self.cycle && self.waits.iter().any(|wait| wait.spins)
    }
}

impl Control {
    pub(crate) fn decided(&mut self, first: u64, segments: Vec<(ThreadId, u64, u32)>) {
        self.batches.insert(first, segments);
    }

    /// The parts of a line are written by one thread, in order.
    pub(crate) fn came(&mut self, number: u64, text: &str) {
        self.input.entry(number).or_default().push_str(text);
    }

    /// What came from outside, as its file has it.
    pub fn input(&self) -> String {
        raddle_schedule::input_text(self.input.values().map(String::as_str))
    }

    /// Each thread writes its own: they are read as it happens.
    pub(crate) fn met(&mut self, meeting: Meeting) {
        let at = self.meetings.partition_point(|earlier| earlier.point <= meeting.point);
        self.meetings.insert(at, meeting);
    }

    /// The decisions, with the settings that fix the execution beside them.
    pub fn schedule(&self, settings: Vec<(String, String)>) -> Schedule {
        let rows = self.batches.values().flatten();
        let segments = rows.map(|&(thread, points, digest)| Segment {
            who: if thread.0 == 0 { Who::Nobody } else { Who::Thread(thread) },
            points,
            digest,
        });
        Schedule { settings, segments: segments.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::{Address, ModuleId, Place, StackId};
    use raddle_wire::log::MetAccess;

    #[test]
    fn meetings_are_put_in_order() {
        let side = |thread| MetAccess {
            thread: ThreadId(thread),
            place: Place { module: ModuleId::NONE, offset: 0 },
            stack: StackId::NONE,
            address: Address(8),
            size: 4,
            writes: true,
            atomic: false,
            value: None,
        };
        let (first, second) = (side(1), side(2));
        let meeting = |point, first_went| {
            let (first, second) = (first.clone(), second.clone());
            Meeting { point, order: 0, first, second, first_went }
        };
        let mut control = Control::default();
        for (point, first_went) in [(7, true), (3, false), (7, false), (5, true)] {
            control.met(meeting(point, first_went));
        }
        let order: Vec<_> = control.meetings.iter().map(|m| (m.point, m.first_went)).collect();
        assert_eq!(order, [(3, false), (5, true), (7, true), (7, false)]);
    }

    #[test]
    fn batches_are_put_in_order() {
        let mut control = Control::default();
        control.decided(2, vec![(ThreadId(0), 1, 7)]);
        control.decided(0, vec![(ThreadId(1), 5, 8), (ThreadId(2), 1, 9)]);
        let schedule = control.schedule(vec![("seed".into(), "3".into())]);
        let who: Vec<Who> = schedule.segments.iter().map(|s| s.who).collect();
        assert_eq!(who, [Who::Thread(ThreadId(1)), Who::Thread(ThreadId(2)), Who::Nobody]);
        assert_eq!(schedule.points(), 7);
    }
}

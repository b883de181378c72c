//! What two threads did around a race, as two lanes with time going down.
//!
//! Made from what a report has: where each thread came from, which locks it took and held, and the
//! accesses in the order in which they were seen. Between the lanes, only the order of the two
//! accesses means something. A replay knows more; it can fill the same steps
//! (`Step` has a lane, a kind, words and a place) and nothing else has to change.

use crate::findings::schema::{Access, Finding, Report};
use crate::findings::text::words;
use std::path::Path;

/// Lanes and what happened in them, the earliest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// What it shows.
    pub caption: String,
    /// One per thread.
    pub lanes: Vec<Lane>,
    /// In the order in which they happened.
    pub steps: Vec<Step>,
    /// The edge that is not there.
    pub missing: String,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// As it is called.
    pub thread: String,
}

/// Something a thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Index of the lane.
    pub lane: usize,
    /// What sort of thing.
    pub kind: StepKind,
    /// In words.
    pub what: String,
    /// Where.
    pub place: Option<String>,
}

/// What sort of thing a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// The thread began.
    Start,
    /// It took a lock, and holds it.
    Take,
    /// One of the racing accesses.
    Access,
}

impl StepKind {
    pub(super) fn class(self) -> &'static str {
        match self {
            StepKind::Start => "start",
            StepKind::Take => "take",
            StepKind::Access => "access",
        }
    }
}

impl Timeline {
    /// The timeline of a race; none for what does not have two accesses.
    pub fn of(finding: &Finding, report: &Report, base: &Path) -> Option<Timeline> {
        let [first, second] = finding.accesses.as_slice() else { return None };
        let lane = |access: &Access| {
            let thread = words::thread(report, access.thread, access.process);
            Lane { thread }
        };
        let mut steps = Vec::new();
        for (lane, access) in [first, second].into_iter().enumerate() {
            let thread = report.thread(access.thread, access.process);
            if let Some(thread) = thread.filter(|thread| thread.creator.is_some()) {
                let creator = thread.creator.map(|id| words::thread(report, id, access.process));
                let what = format!("starts, created by {}", creator.unwrap_or_default());
                let place = words::called_at(&thread.created_at, base);
                steps.push(Step { lane, kind: StepKind::Start, what, place });
            }
        }
        for (lane, access) in [first, second].into_iter().enumerate() {
            for lock in &access.locks {
                let what = format!("takes {}", words::held(lock));
                let place = words::called_at(&lock.taken_at, base);
                steps.push(Step { lane, kind: StepKind::Take, what, place });
            }
            let what = words::access(access);
            let place = access.frame().map(|frame| words::place(frame, base));
            steps.push(Step { lane, kind: StepKind::Access, what, place });
        }
        Some(Timeline {
            caption: "what each thread did, and which access was seen first; time goes down".into(),
            lanes: vec![lane(first), lane(second)],
            steps,
            missing: format!("nothing makes {} come before {}", sort(first), sort(second)),
        })
    }
}

fn sort(access: &Access) -> String {
    format!("the {} of {}", words::kind(access), access.thread)
}

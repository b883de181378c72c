//! Schedules: what was decided, stored as text.
//!
//! ```text
//! raddle-schedule/2
//! seed 7
//! policy random
//! -
//! T1 12 9f3c2a11
//! T2 3 00ab12cd
//! wait 1 00000000
//! ```
//!
//! First the settings that fix an execution beside its decisions, one `name value` a line; then the decisions,
//! run by run: who, for how many points, and a digest of what it was about to do at each of them: at all the same.

use crate::{Decision, Step};
use raddle_model::{Place, ThreadId};
use std::fmt;

/// First line of the file.
const MAGIC: &str = "raddle-schedule/2";
/// Between settings and decisions.
const RULE: &str = "-";

/// The decisions of an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// What fixes the execution beside the decisions, by name, in order.
    pub settings: Vec<(String, String)>,
    /// The decisions, in order.
    pub segments: Vec<Segment>,
}

/// The same decision, point after point, of a thread that was about to do the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Who ran.
    pub who: Who,
    /// For how many points; not zero.
    pub points: u64,
    /// Of what it was about to do at each of them.
    pub digest: u32,
}

/// Who runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A thread.
    Thread(ThreadId),
    /// None: time passes.
    Nobody,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Thread(thread) => write!(f, "{thread}"),
            Who::Nobody => f.write_str("wait"),
        }
    }
}

/// A digest of a step: FNV-1a over its kind and place. Addresses of data are left out: what the
/// engine maps differs between observers and would move them.
pub(crate) fn digest(step: &Step) -> u32 {
    let mut digest = 0x811C_9DC5_u32;
    let (kind, number, place) = match *step {
        Step::Start => (0, 0, None),
        Step::SystemCall { number, place } => (1, number, Some(place)),
        Step::Yield => (2, 0, None),
        Step::Atomic(place) => (3, 0, Some(place)),
        Step::Branch(place) => (4, 0, Some(place)),
        Step::Nested(nested) => (6, 0, Some(nested.place)),
        Step::Access(access) => (5, u32::from(access.writes), Some(access.place)),
    };
    let place = place.unwrap_or(Place { module: raddle_model::ModuleId(0), offset: 0 });
    // Code without a module moves from run to run.
    let offset = if place.module.0 == 0 { 0 } else { place.offset };
    for word in [kind, number, place.module.0, offset as u32] {
        for byte in word.to_le_bytes() {
            digest = (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }
    digest
}

/// Writes decisions down as they are made.
#[derive(Debug, Default)]
pub struct Recorder {
    open: Option<Segment>,
}

impl Recorder {
    /// One more decision; `step` is what the chosen thread is about to do. Returns the segment
    /// that it ended, if it did.
    pub fn decided(&mut self, decision: Decision, step: Option<&Step>) -> Option<Segment> {
        let who = match decision {
            Decision::Run(thread) => Who::Thread(thread),
            Decision::Wait => Who::Nobody,
        };
        let digest = step.map_or(0, digest);
        let ended = self.open.take_if(|open| (open.who, open.digest) != (who, digest));
        self.open.get_or_insert(Segment { who, points: 0, digest }).points += 1;
        ended
    }

    /// The segment that is not over yet.
    pub fn close(&mut self) -> Option<Segment> {
        self.open.take()
    }
}

/// Why a schedule cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The first line is another.
    #[error("not a schedule of Raddle, or one of another version: it does not begin with {MAGIC}")]
    NotOurs,
    /// A line says nothing we know.
    #[error("line {line} is damaged: expected {expected}")]
    Damaged {
        /// From 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
}

impl Schedule {
    /// A setting by its name.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All points decided.
    pub fn points(&self) -> u64 {
        self.segments.iter().map(|s| s.points).sum()
    }

    /// Back from a file.
    pub fn parse(text: &str) -> Result<Schedule, ScheduleError> {
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        if lines.next().map(|(_, line)| line) != Some(MAGIC) {
            return Err(ScheduleError::NotOurs);
        }
        let mut schedule = Schedule::default();
        let mut ruled = false;
        for (line, text) in lines {
            let damaged = |expected| ScheduleError::Damaged { line, expected };
            if ruled {
                let segment = parse_segment(text);
                schedule.segments.push(segment.ok_or_else(|| damaged("T1 12 9f3c2a11"))?);
            } else if text == RULE {
                ruled = true;
            } else {
                let (name, value) = text.split_once(' ').ok_or_else(|| damaged("name value"))?;
                schedule.settings.push((name.to_owned(), value.to_owned()));
            }
        }
        if ruled {
            return Ok(schedule);
        }
        Err(ScheduleError::Damaged { line: text.lines().count() + 1, expected: RULE })
    }
}

fn parse_segment(text: &str) -> Option<Segment> {
    let mut words = text.split(' ');
    let (who, points, digest) = (words.next()?, words.next()?, words.next()?);
    let who = match who.strip_prefix('T') {
        Some(number) => Who::Thread(ThreadId(number.parse().ok()?)),
        None if who == "wait" => Who::Nobody,
        None => return None,
    };
    let points = points.parse().ok().filter(|points| *points != 0)?;
    let digest = u32::from_str_radix(digest, 16).ok()?;
    words.next().is_none().then_some(Segment { who, points, digest })
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MAGIC}")?;
        for (name, value) in &self.settings {
            writeln!(f, "{name} {value}")?;
        }
        writeln!(f, "{RULE}")?;
        for Segment { who, points, digest } in &self.segments {
            writeln!(f, "{who} {points} {digest:08x}")?;
        }
        Ok(())
    }
}

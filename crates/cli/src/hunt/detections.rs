//! Looking for races under a few schedules, and what an execution came to meanwhile.

use super::failures::Failures;
use super::{Hunt, Spent};
use crate::confirm::locate::{Code, Located, Locator};
use crate::detect::Detection;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::kept;
use crate::progress::Progress;
use crate::runs::Run;
use crate::scheduling::{self, PolicyName, ScheduleArguments};
use crate::serving::Servers;
use crate::trial::{Ending, run_many};
use raddle_report::Report;
use raddle_report::findings::merge;
use raddle_wire::options::WatchedPlace;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Policies under which races are looked for, with PCT's depth: what one keeps in order, another does not.
const DETECTIONS: [(PolicyName, u32); 3] =
    [(PolicyName::Random, scheduling::DEPTH), (PolicyName::Pct, 2), (PolicyName::Pct, 3)];
/// Where they are kept in the run's directory meanwhile.
const DETECTIONS_PART: &str = "detections";
/// Bytes of code around a racing access in which others are points, too: of two accesses to the same memory in one
/// segment the detector needs only the first, but between looking and using is where it hurts.
const AROUND: u64 = 48;

/// What came of it.
pub struct Detected {
    /// The report of all, which is now the run's.
    pub file: PathBuf,
    /// The places of all races.
    pub suspects: Vec<WatchedPlace>,
}

impl Hunt {
    /// Looks for races under a few schedules. Executions that fail meanwhile are failures like any.
    pub(super) fn detect(
        &self,
        run: &Run,
        (started, usual): (Instant, i32),
        (spent, failures): (&mut Spent, &mut Failures),
        interrupt: &Interrupt,
    ) -> Result<Detected, Failure> {
        let progress = Progress::doing("looking for races");
        let parts = run.path().join(DETECTIONS_PART);
        let mut found: Vec<(PathBuf, Report)> = Vec::new();
        // One at least, also where its races are of no interest: for the report.
        let depth = self.depth.unwrap_or(scheduling::DEPTH);
        let asked_for = self.policy.map(|policy| vec![(policy, depth)]);
        let detections = asked_for.unwrap_or_else(|| DETECTIONS.to_vec());
        let mut suspects: BTreeMap<(String, u64), WatchedPlace> = BTreeMap::new();
        for (seed, (policy, depth)) in (self.seed..).zip(&detections) {
            if !found.is_empty() && (started.elapsed() > self.budget / 3 || interrupt.came()) {
                break;
            }
            progress.say(format!("looking for races, seed {seed}"));
            let part = parts.join(seed.to_string());
            let (policy, seed) = (Some(*policy), Some(seed));
            let schedule = ScheduleArguments { policy, seed, depth: *depth, time: self.time };
            let detection = Detection {
                program: &self.program,
                cwd: None,
                hooks: &self.hooks,
                schedule: Some(schedule),
                time: self.time,
                timeout: self.timeout,
            };
            let report = match detection.quietly(&part) {
                Err(_) if !found.is_empty() => continue,
                report => report.inspect_err(|_| drop(std::fs::remove_dir_all(&parts)))?,
            };
            spent.detections += 1;
            let places = nearby(&report).into_iter();
            suspects.extend(places.map(|p| ((p.code.module.clone(), p.code.start), p)));
            if ending(&report).is_some_and(|end| end != Ending::Exit(usual)) {
                self.failed(&part, &schedule, failures)?;
            }
            found.push((part, report));
        }
        // What was run, and how it went, is told of the one that found most.
        found.sort_by_key(|(_, report)| std::cmp::Reverse(report.findings.len()));
        let best = found.first().ok_or_else(|| Failure::Other("there was no time".into()))?;
        let of_one = best.1.summary.clone();
        let file = run.adopt(&best.0)?;
        let mut report = merge(found.into_iter().map(|(_, report)| report).collect())
            .ok_or_else(|| Failure::Other("there was no time".into()))?;
        let summary = &mut report.summary;
        (summary.processes, summary.threads) = (of_one.processes, of_one.threads);
        (summary.accesses, summary.synchronisations) = (of_one.accesses, of_one.synchronisations);
        summary.locks = of_one.locks;
        // They are told as failures of the hunt.
        report.failures.clear();
        run.write(&report)?;
        let _ = std::fs::remove_dir_all(&parts);
        Ok(Detected { file, suspects: suspects.into_values().collect() })
    }

    /// A detection that failed, executed again without the detector to see how; one that does not fail then either is
    /// not told.
    fn failed(
        &self,
        part: &Path,
        schedule: &ScheduleArguments,
        failures: &mut Failures,
    ) -> Result<(), Failure> {
        const NAME: &str = "failed";
        let Some(schedule) = schedule.options() else { return Ok(()) };
        let plan = self.plan(schedule);
        let text = |name: &str| std::fs::read_to_string(part.join(name)).unwrap_or_default();
        let (decided, input) = (text(scheduling::SCHEDULE), text(scheduling::INPUT));
        kept::keep(part, NAME, &plan, (&decided, &input))?;
        let again = kept::load(part, NAME)?;
        let one = Servers::none(self.verbosity);
        run_many(&[again], &one, part, &mut |_, result, written| {
            if let Some(mut result) = result.filter(|result| result.divergence.is_none()) {
                // Of the replay they would say that it is one.
                (result.schedule, result.input) = (decided.clone(), input.clone());
                failures.add(&plan, result, &written);
            }
            true
        })
    }
}

/// How the target ended under the detector; nothing if it was too slow there, or could not be watched.
fn ending(report: &Report) -> Option<Ending> {
    let outcome = &report.outcome;
    let stuck = report.failures.first();
    match (stuck, outcome.signal, outcome.exit) {
        _ if outcome.timed_out || outcome.failure.is_some() => None,
        (Some(stuck), ..) => serde_json::from_value(stuck.end.clone()).ok(),
        (None, Some(signal), _) => Some(Ending::Signal(signal)),
        (None, None, exit) => exit.map(Ending::Exit),
    }
}

/// What is near the accesses of all races: points where a schedule may change.
fn nearby(report: &Report) -> Vec<WatchedPlace> {
    let mut locator = Locator::new(report);
    let mut places = Vec::new();
    for finding in &report.findings {
        if let Located::There(Code::Race(found)) = locator.locate(finding) {
            places.extend(found);
        }
    }
    for place in &mut places {
        let code = &mut place.code;
        (code.start, code.end) = (code.start.saturating_sub(AROUND), code.end + AROUND);
        (place.nearby, place.writes) = (true, None);
    }
    places
}

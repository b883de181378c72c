//! `raddle replay --policy NAME --seed N`: the program of a kept execution, with the same places watched, under
//! decisions that are made anew. It is another execution, and is said to be, unless it turns out decision by decision the same: as
//! it must under the policy and the seed of the kept one, where nothing came from outside.

use super::{EXIT_DIVERGED, LIMIT_MS, ReplayCommand, killed, show};
use crate::confirm::absolute;
use crate::confirm::tally::hit;
use crate::events::hooks;
use crate::failure::Failure;
use crate::gdb;
use crate::kept;
use crate::run::library::Shelf;
use crate::scheduling::{self, Nameless, policy_name};
use crate::trial::{self, Ending, Hearing, Listener, Plan, TrialResult};
use raddle_execute::Control;
use raddle_model::finding::FindingKind;
use raddle_report::findings::{Failure as Failing, Finding, Order};
use raddle_schedule::Schedule;
use std::path::Path;

impl ReplayCommand {
    /// Is another execution asked for?
    pub(super) fn is_other(&self) -> bool {
        self.policy.is_some() || self.seed.is_some()
    }

    /// Of a finding that was confirmed: does it happen there, too?
    pub(super) fn run_other_of_finding(
        &self,
        report: &Path,
        finding: &Finding,
        order: &Order,
    ) -> Result<u8, Failure> {
        let other = Other::new(self, report, &finding.id, &order.kept)?;
        other.announce();
        let hearing = if self.events { Hearing::Calls } else { Hearing::Threads };
        let (end, deadlock, happened) = if self.gdb {
            let Some((end, control)) = gdb::run(&other.plan, self.gdb_port)? else {
                return Ok(killed(&finding.id));
            };
            other.compare(&control);
            let deadlock = scheduling::deadlock(&control, &mut Nameless);
            let result = Listener::default().result(&other.plan, end, &control);
            // Where modules lie is not known here, so of a deadlock it is only known that it is one.
            let happened = match finding.kind {
                FindingKind::DataRace => hit(&[], &result).map(|(order, _)| order),
                FindingKind::LockOrder => deadlock.is_some().then_some(1),
            };
            (end, deadlock, happened)
        } else {
            let mut listener = Listener::new(hearing);
            let (end, control) = trial::run(&other.plan, hearing, &mut listener)?;
            other.compare(&control);
            let result = listener.result(&other.plan, end, &control);
            let happened = hit(&other.plan.schedule.cycle, &result).map(|(order, _)| order);
            if let Some(seen) = happened.filter(|_| self.events) {
                let (seed, end) = (other.plan.schedule.seed.to_string(), serde_json::json!(end));
                let seen = Order { order: seen, seed, end, ..order.clone() };
                show(finding, &seen, result.interleaving.as_ref(), &other.plan.cwd)?;
            }
            (end, by_name(&result), happened)
        };
        if let Some(text) = deadlock {
            eprintln!("raddle: {text}");
        }
        let what = match (finding.kind, happened) {
            (FindingKind::DataRace, Some(1)) => "the two accesses met, and the first went first",
            (FindingKind::DataRace, Some(_)) => "the two accesses met, and the second went first",
            (FindingKind::DataRace, None) => "the two accesses did not meet",
            (FindingKind::LockOrder, Some(_)) => "the threads waited for each other",
            (FindingKind::LockOrder, None) => "the threads did not wait for each other",
        };
        eprintln!("raddle: {}: {what}; the target ended with {end}", other.told);
        let is_wanted = |seen| self.order.is_none_or(|order| order == seen);
        Ok(if happened.is_some_and(is_wanted) { 0 } else { EXIT_DIVERGED })
    }

    /// Of an execution that failed: does this one fail the same way?
    pub(super) fn run_other_of_failure(
        &self,
        report: &Path,
        failure: &Failing,
    ) -> Result<u8, Failure> {
        let other = Other::new(self, report, &failure.id, failure.kept())?;
        other.announce();
        let ran = match self.gdb {
            true => gdb::run(&other.plan, self.gdb_port)?,
            false => Some(self.execute(&other.plan)?),
        };
        let Some((end, control)) = ran else { return Ok(killed(&failure.id)) };
        other.compare(&control);
        if let Some(text) = scheduling::deadlock(&control, &mut Nameless) {
            eprintln!("raddle: {text}");
        }
        let is_same = serde_json::from_value::<Ending>(failure.end.clone()).is_ok_and(|e| e == end);
        let as_it = if is_same { ", as it did" } else { ", which is not how it ended" };
        eprintln!("raddle: {}: the target ended with {end}{as_it}", other.told);
        Ok(if is_same { 0 } else { EXIT_DIVERGED })
    }
}

/// What is executed instead of a kept execution.
struct Other {
    plan: Plan,
    /// Of what, under which policy and seed.
    told: String,
    /// What was decided in the kept one.
    decided: Schedule,
}

impl Other {
    fn new(asked: &ReplayCommand, report: &Path, id: &str, kept: &str) -> Result<Other, Failure> {
        hooks(&asked.hooks)?;
        let directory = report.parent().unwrap_or(Path::new("."));
        let decided = kept::schedule(directory, kept)?;
        let mut plan = kept::plan(directory, kept)?;
        plan.hooks.extend(absolute(&asked.hooks)?);
        if asked.gdb {
            plan.limit_ms = plan.limit_ms.max(LIMIT_MS);
        }
        let schedule = &mut plan.schedule;
        if let Some(policy) = asked.policy {
            schedule.policy = policy.choice(asked.depth, decided.points().max(1));
            schedule.early_time |= policy.early_time();
        }
        schedule.seed = asked.seed.unwrap_or(schedule.seed);
        let told = format!("{id} under {}, seed {}", policy_name(schedule), schedule.seed);
        Ok(Other { plan, told, decided })
    }

    fn announce(&self) {
        eprintln!("raddle: {}: another execution, not a replay", self.told);
    }

    /// Says so if it was not another one after all.
    fn compare(&self, control: &Control) {
        if control.schedule(Vec::new()).segments == self.decided.segments {
            eprintln!("raddle: decision by decision it was the same execution");
        }
    }
}

fn by_name(result: &TrialResult) -> Option<String> {
    result.deadlock_by_name(&mut Shelf::new())
}

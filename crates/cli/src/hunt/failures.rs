//! Executions that failed: one of each kind is kept, once a replay of it has failed the same way.
//!
//! Where the replay does not, something other than the schedule made the program fail. With several executions at a
//! time that is most often another of them, by a file that both use: unless it fails once more when it is executed alone,
//! such a failure is no finding, and from then on executions are made one at a time. Alone the program has failed by itself: that is
//! told, and that it was not repeated.

use crate::arguments::Verbosity;
use crate::confirm::tally::effect_of;
use crate::failure::Failure;
use crate::kept;
use crate::run::library::Shelf;
use crate::scheduling::policy_name;
use crate::serving::Servers;
use crate::trial::{Ending, Plan, TrialResult, run_many};
use raddle_execute::Written;
use raddle_report::findings::{self, stack_of};
use std::collections::BTreeMap;
use std::path::Path;

/// What failed so far.
#[derive(Debug, Default)]
pub struct Failures {
    kept: Vec<Failed>,
    /// Seen and not yet replayed.
    new: Vec<Failed>,
    /// By effect, how many a replay did not repeat, and how it went another way.
    lost: BTreeMap<String, (u64, String)>,
}

/// An execution that failed, and how often such.
#[derive(Debug)]
pub struct Failed {
    /// `exit code 3`.
    pub effect: String,
    /// So many did.
    pub count: u64,
    /// What repeats it, beside its schedule and input.
    pub plan: Plan,
    /// What came of it.
    pub result: TrialResult,
}

impl Failures {
    /// One more: an execution of this plan came to this.
    pub fn add(&mut self, plan: &Plan, result: TrialResult, written: &Written) {
        let effect = effect_of(&result, written).unwrap_or_else(|| result.end.to_string());
        let mut plan = plan.clone();
        plan.schedule.process = result.process;
        if let Some(known) = self.known(&effect) {
            known.count += 1;
        } else {
            self.new.push(Failed { effect, count: 1, plan, result });
        }
    }

    fn known(&mut self, effect: &str) -> Option<&mut Failed> {
        self.kept.iter_mut().chain(&mut self.new).find(|failed| failed.effect == effect)
    }

    /// Kinds of failures.
    pub fn kinds(&self) -> usize {
        self.kept.len() + self.new.len()
    }

    /// Which was first?
    pub fn first(&self) -> Option<&Failed> {
        self.kept.first()
    }

    /// Replays what is new, one after the other, and keeps what was repeated, and what has failed alone: with `alone`, if no
    /// other execution was under way, or now. Returns the effects that were not repeated.
    pub fn check(&mut self, alone: bool, scratch: &Path) -> Result<Vec<String>, Failure> {
        let mut lost = Vec::new();
        for failed in std::mem::take(&mut self.new) {
            let other_way = other_way(&failed, scratch)?;
            if let Some(why) = &other_way {
                lost.push(failed.effect.clone());
                let known = self.lost.entry(failed.effect.clone());
                known.or_insert((0, why.clone())).0 += failed.count;
            }
            // One that ends after all was only slow.
            let is_hang = failed.result.end == Ending::Hang;
            let by_itself = || Ok::<_, Failure>(alone || fails_alone(&failed, scratch)?);
            if other_way.is_none() || (!is_hang && by_itself()?) {
                self.kept.push(failed);
            }
        }
        Ok(lost)
    }

    /// What is new is believed: there is no time to replay it.
    pub fn believe(&mut self) {
        self.kept.append(&mut self.new);
    }

    /// A sentence for each kind of failure that a replay has not repeated.
    pub fn doubts(&self) -> Vec<String> {
        let tell = |(effect, (count, why)): (&String, &(u64, String))| {
            let executions = if *count == 1 { "execution" } else { "executions" };
            format!(
                "{count} {executions} came to {effect}, which a replay did not ({why}): not the schedule decided that, \
                 but perhaps files that executions share or leave"
            )
        };
        self.lost.iter().map(tell).collect()
    }

    /// Leaves what repeats the failures in a run's directory, and says what its report is to say of them.
    pub fn keep(
        &self,
        directory: &Path,
        executions: u64,
    ) -> Result<Vec<findings::Failure>, Failure> {
        let mut shelf = Shelf::new();
        let mut rows = Vec::new();
        for (at, failed) in self.kept.iter().enumerate() {
            let (id, result) = (format!("H{}", at + 1), &failed.result);
            kept::keep(directory, &id, &failed.plan, (&result.schedule, &result.input))?;
            let stacks = result.stood.iter().map(|stack| stack_of(stack, &mut shelf)).collect();
            rows.push(findings::Failure {
                kept: Some(id.clone()),
                id,
                effect: failed.effect.clone(),
                end: serde_json::json!(result.end),
                deadlock: result.deadlock_by_name(&mut shelf),
                policy: policy_name(&failed.plan.schedule),
                seed: failed.plan.schedule.seed.to_string(),
                count: failed.count,
                executions,
                stacks,
                ..findings::Failure::default()
            });
        }
        Ok(rows)
    }
}

/// Does the same plan fail the same way when nothing else is under way?
fn fails_alone(failed: &Failed, scratch: &Path) -> Result<bool, Failure> {
    let one = Servers::none(Verbosity { quiet: true, verbose: false });
    let mut fails = false;
    run_many(std::slice::from_ref(&failed.plan), &one, scratch, &mut |_, again, _| {
        fails = again.is_some_and(|again| again.end == failed.result.end);
        true
    })?;
    Ok(fails)
}

/// How a replay goes another way, if it does.
fn other_way(failed: &Failed, scratch: &Path) -> Result<Option<String>, Failure> {
    const NAME: &str = "suspect";
    let Failed { plan, result, .. } = failed;
    kept::keep(scratch, NAME, plan, (&result.schedule, &result.input))?;
    let again = kept::load(scratch, NAME)?;
    let mut why = None;
    let one = Servers::none(Verbosity { quiet: true, verbose: false });
    run_many(&[again], &one, scratch, &mut |_, again, _| {
        why = match again {
            None => Some("it could not be executed".to_owned()),
            Some(again) if again.divergence.is_some() => again.divergence,
            Some(again) if again.end != result.end => Some(format!("it ended with {}", again.end)),
            Some(_) => None,
        };
        true
    })?;
    Ok(why)
}

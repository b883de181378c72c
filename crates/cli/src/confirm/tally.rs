//! What the trials of one finding came to.

use super::output;
use crate::failure::Failure;
use crate::kept;
use crate::trial::{Ending, Plan, TrialResult};
use raddle_execute::Written;
use raddle_model::finding::{Certainty, FindingKind};
use raddle_report::findings::text::places;
use raddle_report::findings::{
    self, Confirmation, Effect, Finding, Harm, Library, Order, Rate, stack_of,
};
use raddle_wire::options::CyclePart;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Why trials ended before their number was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Early {
    /// By Ctrl-C.
    Interrupted,
    /// The time for them was up.
    TimeUp,
}

impl fmt::Display for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Early::Interrupted => "interrupted",
            Early::TimeUp => "out of time",
        })
    }
}

/// Counts.
#[derive(Debug, Default)]
pub struct Tally {
    /// Executions.
    pub trials: u64,
    /// Those in which the pair met.
    pub hits: u64,
    failed: u64,
    /// Of the hits, those with an atomic access: adjacent, but not a race.
    atomic: u64,
    /// First seed and result of each order: 1 when the first access went first, else 2.
    pub orders: BTreeMap<u8, Kept>,
    /// Order, effect, how often.
    effects: BTreeMap<(u8, String), Seen>,
    /// The requests of the cycle of locks, if it is one.
    cycle: Vec<CyclePart>,
    /// Effects are told by the difference from this.
    habit: Habit,
    /// The policy, where it is not the directed one.
    policy: Option<String>,
}

/// How often something was seen, and where the threads concerned stood the first time.
#[derive(Debug, Clone, Default)]
struct Seen {
    count: u64,
    stood: Vec<Vec<(String, u64)>>,
}

/// What a program does when nobody directs it. What is not known is taken from the first trial.
#[derive(Debug, Clone, Default)]
pub struct Habit {
    /// How it ends.
    pub exit: Option<Ending>,
    /// What it writes.
    pub output: Option<Vec<u8>>,
}

/// The execution that stands for an order.
#[derive(Debug)]
pub struct Kept {
    /// The least is kept.
    rank: (Harm, u64),
    seed: u64,
    result: TrialResult,
}

impl Tally {
    /// Nothing yet, of a program that usually does this.
    pub fn new(habit: Habit, cycle: Vec<CyclePart>, policy: Option<String>) -> Tally {
        Tally { habit, cycle, policy, ..Tally::default() }
    }

    /// One more trial.
    pub fn add(&mut self, seed: u64, result: Option<TrialResult>, written: Written) {
        self.trials += 1;
        let Some(result) = result else {
            self.failed += 1;
            return;
        };
        let Some((order, atomic)) = hit(&self.cycle, &result) else { return };
        self.hits += 1;
        self.atomic += u64::from(atomic);
        let effect = self.effect(&result, &written);
        // What repeats the order should show what it does: a failing execution before others.
        let rank = (Harm::of(&effect), seed);
        let seen = self.effects.entry((order, effect)).or_default();
        if seen.count == 0 {
            seen.stood = result.stood.clone();
        }
        seen.count += 1;
        if self.orders.get(&order).is_none_or(|known| rank < known.rank) {
            self.orders.insert(order, Kept { rank, seed, result });
        }
    }

    /// What happened, in a word or two.
    fn effect(&mut self, result: &TrialResult, written: &Written) -> String {
        if let Some(effect) = effect_of(result, written) {
            return effect;
        }
        let exit = *self.habit.exit.get_or_insert(result.end);
        match result.end {
            Ending::Exit(code) if exit != result.end => return format!("exit code {code}"),
            _ => {}
        }
        let usual = self.habit.output.get_or_insert_with(|| written.output.clone());
        match output::same(usual, &written.output) {
            true => Harm::NOTHING.into(),
            false => Harm::OTHER_OUTPUT.into(),
        }
    }

    /// Did the race happen?
    pub fn is_confirmed(&self) -> bool {
        self.hits > self.atomic
    }

    /// How often it happens.
    fn rate(&self) -> Rate {
        Rate { hits: self.hits, trials: self.trials }
    }

    /// The result in a line; `early` says why there were no more trials, if there could have been.
    pub fn line(&self, finding: &Finding, early: Option<Early>) -> String {
        let subject = subject(finding);
        let under = self.policy.as_ref().map(|policy| format!(" under {policy}"));
        let under = under.unwrap_or_default();
        let failed = match self.failed {
            0 => String::new(),
            n => format!("; {n} executions failed"),
        };
        if self.trials == 0 {
            return match early {
                Some(early) => format!("{subject}: {early} before the first trial"),
                None => format!("{subject}: there is nothing to try"),
            };
        }
        if self.hits == 0 {
            let trials = self.trials;
            let early = early.map(|early| format!(", then {early}")).unwrap_or_default();
            return format!("{subject}: not confirmed in {trials} trials{under}{early}{failed}");
        }
        let word = match self.is_confirmed() {
            true => "confirmed",
            false => "adjacent, atomicity unknown",
        };
        let effects: Vec<String> = self
            .effects
            .iter()
            .map(|((order, effect), seen)| format!("order {order}: {effect} ({})", seen.count))
            .collect();
        let rate = self.rate();
        let seed = self.orders.values().map(|o| o.seed).min().unwrap_or(0);
        format!("{subject}: {word}, {rate}{under}, seed {seed}; {}{failed}", effects.join(", "))
    }

    /// For the report; leaves what repeats each order in the run's directory.
    pub fn confirmation(
        &self,
        id: &str,
        plan: &Plan,
        directory: &Path,
        library: &mut dyn Library,
    ) -> Result<Confirmation, Failure> {
        let mut orders = Vec::new();
        for (&order, Kept { seed, result, .. }) in &self.orders {
            let kept = format!("{id}.{order}");
            let mut plan = plan.clone();
            (plan.schedule.seed, plan.schedule.process) = (*seed, result.process);
            kept::keep(directory, &kept, &plan, (&result.schedule, &result.input))?;
            orders.push(Order {
                order,
                seed: seed.to_string(),
                kept,
                end: json!(result.end),
                accesses: json!(result.meetings.first().map(|met| &met.accesses)),
                interleaving: None,
            });
        }
        let effects = self.effects.iter().map(|((order, effect), seen)| Effect {
            order: *order,
            effect: effect.clone(),
            count: seen.count,
            stacks: seen.stood.iter().map(|stack| stack_of(stack, library)).collect(),
        });
        Ok(Confirmation {
            confirmed: self.is_confirmed(),
            adjacent: self.hits > 0 && !self.is_confirmed(),
            seed: self.orders.values().map(|o| o.seed).min().map(|seed| seed.to_string()),
            policy: self.policy.clone(),
            trials: self.trials,
            hits: self.hits,
            interval: self.rate().interval(),
            failed: self.failed,
            effects: effects.collect(),
            orders,
            ..Confirmation::default()
        })
    }
}

/// Did it happen, in which order, and was one of the accesses atomic? Of a race (without a cycle), by the meeting of its
/// accesses; of a cycle of locks, by the deadlock.
pub fn hit(cycle: &[CyclePart], result: &TrialResult) -> Option<(u8, bool)> {
    if cycle.is_empty() {
        let met = result.meetings.first()?;
        return Some((if met.first_went { 1 } else { 2 }, met.atomic));
    }
    // Every thread of the circle stands at one of the requests.
    let is_part = |(module, offset): &(String, u64)| {
        let holds = |part: &CyclePart| {
            let code = &part.asks.code;
            code.module == *module && (code.start..code.end).contains(offset)
        };
        cycle.iter().any(holds)
    };
    (!result.circle.is_empty() && result.circle.iter().all(is_part)).then_some((1, false))
}

/// `R1 (counter, predicted)`.
pub fn subject(finding: &Finding) -> String {
    let name = match finding.kind {
        FindingKind::DataRace => {
            let places = || Some(places(finding)).filter(|places| !places.is_empty());
            finding.location.name.clone().or_else(places).unwrap_or_else(|| "memory".into())
        }
        FindingKind::LockOrder => "cycle of locks".into(),
    };
    let standing = match (&finding.origin, finding.certainty) {
        (Some(tool), _) => format!(", by {tool}"),
        (None, Certainty::Predicted) => ", predicted".to_owned(),
        (None, Certainty::Observed) => String::new(),
    };
    format!("{} ({name}{standing})", finding.id)
}

/// What went wrong with an execution, if that can be told from itself alone.
pub fn effect_of(result: &TrialResult, written: &Written) -> Option<String> {
    const SIGABRT: i32 = 6;
    let errors = String::from_utf8_lossy(&written.errors);
    let asserted = errors.contains("Assertion") || errors.contains("panicked at");
    match result.end {
        Ending::Deadlock => Some(findings::Failure::DEADLOCK.into()),
        Ending::NoProgress => Some(findings::Failure::NO_PROGRESS.into()),
        Ending::Hang => Some("hang".into()),
        Ending::Signal(_) | Ending::Exit(1..) if asserted => Some("failed assertion".into()),
        Ending::Signal(SIGABRT) => Some("abort".into()),
        Ending::Signal(signal) => Some(format!("killed by signal {signal}")),
        Ending::Exit(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_interrupted_does_not_say_that_there_is_nothing_to_try() {
        let location = json!({
            "kind": "global", "name": "counter", "offset": null, "allocated_at": null, "address": "0x10",
        });
        let finding = json!({
            "id": "R1", "kind": "data-race", "certainty": "observed", "fingerprint": "0", "count": 1,
            "rules": [], "accesses": [], "location": location,
        });
        let finding: Finding = serde_json::from_value(finding).unwrap();
        let mut tally = Tally::default();
        let (interrupted, late) = (Some(Early::Interrupted), Some(Early::TimeUp));
        assert_eq!(tally.line(&finding, None), "R1 (counter): there is nothing to try");
        let none = "R1 (counter): interrupted before the first trial";
        assert_eq!(tally.line(&finding, interrupted), none);
        tally.trials = 2;
        assert_eq!(tally.line(&finding, None), "R1 (counter): not confirmed in 2 trials");
        let early = "R1 (counter): not confirmed in 2 trials, then interrupted";
        assert_eq!(tally.line(&finding, interrupted), early);
        let early = "R1 (counter): not confirmed in 2 trials, then out of time";
        assert_eq!(tally.line(&finding, late), early);
        tally.policy = Some("random".into());
        let early = "R1 (counter): not confirmed in 2 trials under random, then out of time";
        assert_eq!(tally.line(&finding, late), early);
    }

    #[test]
    fn effects_are_told_apart() {
        let result = |end| TrialResult {
            end,
            meetings: Vec::new(),
            interleaving: None,
            deadlock: None,
            circle: Vec::new(),
            locks: Vec::new(),
            divergence: None,
            schedule: String::new(),
            input: String::new(),
            stood: Vec::new(),
            process: None,
        };
        let written = |output: &str, errors: &str| Written {
            output: output.as_bytes().to_vec(),
            errors: errors.as_bytes().to_vec(),
        };
        let habit = Habit { exit: None, output: Some(b"2".to_vec()) };
        let mut tally = Tally::new(habit, Vec::new(), None);
        let mut effect = |end, out, err| tally.effect(&result(end), &written(out, err));
        assert_eq!(effect(Ending::Exit(0), "1", ""), "other output");
        assert_eq!(effect(Ending::Exit(0), "2", ""), "nothing");
        assert_eq!(effect(Ending::Exit(3), "2", ""), "exit code 3");
        assert_eq!(effect(Ending::Signal(11), "", ""), "killed by signal 11");
        assert_eq!(effect(Ending::Signal(6), "", "x: Assertion `a' failed."), "failed assertion");
        assert_eq!(effect(Ending::Signal(6), "", ""), "abort");
        assert_eq!(effect(Ending::Hang, "", ""), "hang");
        assert_eq!(effect(Ending::Deadlock, "", ""), "deadlock");
    }
}

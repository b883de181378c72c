//! `raddle confirm`: makes the races of a report happen, or says that it could not.
//!
//! For each finding, N executions under the race-directed policy with N seeds (RaceFuzzer, section
//! 2): a thread at one access of the pair is held back until another stands at the other, on the same memory. What
//! the target then does, in either order, is the race's effect.

pub mod pair;

use crate::arguments::{Verbosity, duration};
use crate::failure::Failure;
use crate::runs::{self, Run};
use crate::scheduling::Time;
use crate::trial::{Ending, Plan, TrialResult, Written, run_many};
use clap::Args;
use raddle_execute::RunDirectory;
use raddle_model::finding::Certainty;
use raddle_report::findings::Finding;
use raddle_wire::options::{PolicyChoice, ScheduleOptions};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Makes the races of a run happen, one by one
///
/// Takes the findings of a run and executes the program again and again, holding threads back at the two
/// accesses of a finding until both stand there at once: then the race is confirmed. Either order is tried,
/// and what the program does after it is told. Results go into report.json.
///
/// Exits with 66 if a race was confirmed, 0 if none.
#[derive(Debug, Args)]
pub struct Confirm {
    /// A run by its number, its directory, or the file of a report [default: the latest here]
    #[arg(conflicts_with = "program")]
    run: Option<String>,

    /// Executions per finding, at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    trials: u64,

    /// Only this finding (R3); may be repeated
    #[arg(long, value_name = "R", value_delimiter = ',')]
    only: Vec<String>,

    /// All trials, to tell how often: do not stop once both orders were seen
    #[arg(long)]
    rates: bool,

    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// What the target sees of time
    #[arg(long, value_enum, default_value_t = Time::Virtual)]
    time: Time,

    /// Kill an execution after this long: it hangs
    #[arg(long, value_name = "T", value_parser = duration, default_value = "20s")]
    timeout: Duration,

    /// Executions at a time [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

    #[command(flatten)]
    verbosity: Verbosity,

    /// Look for races in this program first
    #[arg(last = true, value_names = ["PROGRAM", "ARGUMENTS"])]
    program: Vec<OsString>,
}

const EXIT_FOUND: u8 = 66;

impl Confirm {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let file = match self.program.as_slice() {
            [] => Run::find(self.run.as_deref())?,
            program => detect(program)?,
        };
        let report = runs::read(&file)?;
        let known: Vec<&str> = report.findings.iter().map(|f| f.id.as_str()).collect();
        if let Some(missing) = self.only.iter().find(|id| !known.contains(&id.as_str())) {
            let known = known.join(", ");
            return Err(Failure::Other(format!(
                "there is no finding {missing}; there are {known}"
            )));
        }
        let mut confirmed = false;
        let mut results = BTreeMap::new();
        for finding in &report.findings {
            if !self.only.is_empty() && !self.only.contains(&finding.id) {
                continue;
            }
            let Some(places) = pair::places(finding) else {
                self.verbosity.note(format_args!("{}: cannot be watched", finding.id));
                continue;
            };
            let plan = Plan {
                program: report.target.argv.iter().map(OsString::from).collect(),
                cwd: PathBuf::from(&report.target.cwd),
                limit_ms: self.timeout.as_millis() as u64,
                hooks: Vec::new(),
                schedule: ScheduleOptions {
                    policy: PolicyChoice::RaceDirected,
                    seed: self.seed,
                    time: self.time.mode(),
                    watch: places,
                    lock_points: false,
                },
            };
            let usual = report.outcome.exit.map(Ending::Exit);
            let tally = self.try_it(&plan, usual)?;
            confirmed |= tally.is_confirmed();
            println!("{}", tally.line(finding));
            let directory = file.parent().unwrap_or(Path::new("."));
            results.insert(finding.id.clone(), tally.json(&finding.id, directory)?);
        }
        change(&file, |report| {
            for finding in report["findings"].as_array_mut().into_iter().flatten() {
                if let Some(result) = finding["id"].as_str().and_then(|id| results.get(id)) {
                    finding["confirmation"] = result.clone();
                }
            }
        })?;
        Ok(if confirmed { EXIT_FOUND } else { 0 })
    }

    fn try_it(&self, plan: &Plan, usual: Option<Ending>) -> Result<Tally, Failure> {
        let scratch = RunDirectory::temporary()?;
        let plans: Vec<Plan> = (0..self.trials)
            .map(|i| {
                let mut plan = plan.clone();
                plan.schedule.seed = self.seed.wrapping_add(i);
                plan
            })
            .collect();
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut tally = Tally { exit: usual, ..Tally::default() };
        let rates = self.rates;
        run_many(
            &plans,
            self.jobs.unwrap_or(processors),
            scratch.path(),
            &mut |i, result, out| {
                tally.add(plans[i].schedule.seed, result, out);
                rates || tally.orders.len() < 2
            },
        )?;
        Ok(tally)
    }
}

/// Runs the detector on a program; returns its report.
fn detect(program: &[OsString]) -> Result<PathBuf, Failure> {
    let command = std::env::current_exe().map_err(Failure::during("finding our own command"))?;
    let status = std::process::Command::new(command)
        .args(["run", "--"])
        .args(program)
        .status()
        .map_err(Failure::during("looking for races"))?;
    match status.code() {
        Some(125..=127) | None => Err(Failure::Other("no races were looked for".into())),
        Some(_) => Run::find(None),
    }
}

/// What the trials of one finding came to.
#[derive(Debug, Default)]
struct Tally {
    trials: u64,
    hits: u64,
    failed: u64,
    /// Of the hits, those with an atomic access: adjacent, but not a race.
    atomic: u64,
    /// First seed and schedule of each order: true when the first access went first.
    orders: BTreeMap<bool, (u64, TrialResult)>,
    /// Order, effect, how often.
    effects: BTreeMap<(bool, String), u64>,
    /// How the target ended when the races were looked for.
    exit: Option<Ending>,
    /// What it wrote the first time it ended so.
    usual: Option<Vec<u8>>,
}

impl Tally {
    fn add(&mut self, seed: u64, result: Option<TrialResult>, written: Written) {
        self.trials += 1;
        let Some(result) = result else {
            self.failed += 1;
            return;
        };
        let Some(met) = result.meetings.first() else { return };
        self.hits += 1;
        self.atomic += u64::from(met.atomic);
        let order = met.first_went;
        let effect = self.effect(&result, &written);
        *self.effects.entry((order, effect)).or_default() += 1;
        let better = |known: &(u64, TrialResult)| seed < known.0;
        if self.orders.get(&order).is_none_or(better) {
            self.orders.insert(order, (seed, result));
        }
    }

    /// What happened, in a word or two.
    fn effect(&mut self, result: &TrialResult, written: &Written) -> String {
        if let Some(effect) = effect_of(result, written) {
            return effect;
        }
        let exit = *self.exit.get_or_insert(result.end);
        match result.end {
            Ending::Exit(code) if exit != result.end => return format!("exit code {code}"),
            _ => {}
        }
        let usual = self.usual.get_or_insert_with(|| written.output.clone());
        if *usual == written.output { "nothing".into() } else { "other output".into() }
    }

    fn is_confirmed(&self) -> bool {
        self.hits > self.atomic
    }

    fn line(&self, finding: &Finding) -> String {
        let id = &finding.id;
        let name = finding.location.name.as_deref().unwrap_or("memory");
        let predicted = if finding.certainty == Certainty::Predicted { ", predicted" } else { "" };
        let failed = match self.failed {
            0 => String::new(),
            n => format!("; {n} executions failed"),
        };
        if self.hits == 0 {
            let trials = self.trials;
            return format!("{id} ({name}{predicted}): not confirmed in {trials} trials{failed}");
        }
        let word = match self.is_confirmed() {
            true => "confirmed",
            false => "adjacent, atomicity unknown",
        };
        let effects: Vec<String> = self
            .effects
            .iter()
            .map(|((first, effect), n)| format!("order {}: {effect} ({n})", order(*first)))
            .collect();
        let (low, high) = interval(self.hits, self.trials);
        let seed = self.orders.values().map(|o| o.0).min().unwrap_or(0);
        format!(
            "{id} ({name}{predicted}): {word}, {} of {} ({:.0}-{:.0} %), seed {seed}; {}{failed}",
            self.hits,
            self.trials,
            100.0 * low,
            100.0 * high,
            effects.join(", "),
        )
    }

    /// The `confirmation` of the report; leaves the schedules in the run's directory.
    fn json(&self, id: &str, directory: &Path) -> Result<Value, Failure> {
        let mut orders = Vec::new();
        for (&first, (seed, result)) in &self.orders {
            let name = format!("{id}.{}.schedule", order(first));
            let file = directory.join(&name);
            std::fs::write(&file, &result.schedule)
                .map_err(Failure::during(format_args!("writing {}", file.display())))?;
            let accesses = result.meetings.first().map(|met| json!(met.accesses));
            orders.push(json!({
                "order": order(first),
                "seed": seed.to_string(),
                "schedule": name,
                "end": result.end,
                "accesses": accesses,
            }));
        }
        let effects = self.effects.iter().map(
            |((first, effect), n)| json!({"order": order(*first), "effect": effect, "count": n}),
        );
        let seed = self.orders.values().map(|o| o.0).min();
        Ok(json!({
            "confirmed": self.is_confirmed(),
            "adjacent": self.hits > 0 && !self.is_confirmed(),
            "seed": seed.map(|s| s.to_string()),
            "trials": self.trials,
            "hits": self.hits,
            "failed": self.failed,
            "orders": orders,
            "effects": effects.collect::<Vec<Value>>(),
        }))
    }
}

/// What went wrong with an execution, if that can be told from itself alone.
pub fn effect_of(result: &TrialResult, written: &Written) -> Option<String> {
    const SIGABRT: i32 = 6;
    let errors = String::from_utf8_lossy(&written.errors);
    let asserted = errors.contains("Assertion") || errors.contains("panicked at");
    match result.end {
        Ending::Deadlock => Some("deadlock".into()),
        Ending::Hang => Some("hang".into()),
        Ending::Signal(_) | Ending::Exit(1..) if asserted => Some("failed assertion".into()),
        Ending::Signal(SIGABRT) => Some("abort".into()),
        Ending::Signal(signal) => Some(format!("killed by signal {signal}")),
        Ending::Exit(_) => None,
    }
}

/// 1 when the first access of the finding went first.
fn order(first_went: bool) -> u8 {
    if first_went { 1 } else { 2 }
}

/// Wilson's interval for a proportion, at 95 %.
fn interval(hits: u64, trials: u64) -> (f64, f64) {
    const Z: f64 = 1.96;
    let n = trials.max(1) as f64;
    let p = hits as f64 / n;
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

/// Changes a report in place, which is otherwise left as it is.
pub fn change(file: &Path, change: impl FnOnce(&mut Value)) -> Result<(), Failure> {
    let context = || format!("writing {}", file.display());
    let text = std::fs::read_to_string(file).map_err(Failure::during(context()))?;
    let mut report: Value = serde_json::from_str(&text).map_err(Failure::during(context()))?;
    change(&mut report);
    let text = serde_json::to_string_pretty(&report).map_err(Failure::during(context()))?;
    let unfinished = file.with_extension("json.tmp");
    std::fs::write(&unfinished, text + "\n")
        .and_then(|()| std::fs::rename(&unfinished, file))
        .map_err(Failure::during(context()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        let close = |a: (f64, f64), b: (f64, f64)| {
            assert!((a.0 - b.0).abs() < 0.002 && (a.1 - b.1).abs() < 0.002, "{a:?} {b:?}");
        };
        close(interval(10, 20), (0.299, 0.701));
        close(interval(20, 20), (0.839, 1.0));
        close(interval(0, 20), (0.0, 0.161));
    }

    #[test]
    fn effects_are_told_apart() {
        let result = |end| TrialResult {
            end,
            meetings: Vec::new(),
            deadlock: None,
            divergence: None,
            schedule: String::new(),
        };
        let written = |output: &str, errors: &str| Written {
            output: output.as_bytes().to_vec(),
            errors: errors.as_bytes().to_vec(),
        };
        let mut tally = Tally::default();
        let mut effect = |end, out, err| tally.effect(&result(end), &written(out, err));
        assert_eq!(effect(Ending::Exit(0), "2", ""), "nothing");
        assert_eq!(effect(Ending::Exit(0), "1", ""), "other output");
        assert_eq!(effect(Ending::Exit(3), "2", ""), "exit code 3");
        assert_eq!(effect(Ending::Signal(11), "", ""), "killed by signal 11");
        assert_eq!(effect(Ending::Signal(6), "", "x: Assertion `a' failed."), "failed assertion");
        assert_eq!(effect(Ending::Signal(6), "", ""), "abort");
        assert_eq!(effect(Ending::Hang, "", ""), "hang");
        assert_eq!(effect(Ending::Deadlock, "", ""), "deadlock");
    }
}

//! `raddle confirm`: makes the findings of a report happen, or says that it could not.
//!
//! For each finding, N executions under the race-directed policy with N seeds (RaceFuzzer, section
//! 2): a thread at one access of the pair is held back until another stands at the other, on the same memory. What
//! the target then does, in either order, is the race's effect; one execution of each order is replayed to record the
//! interleaving around it. Of a cycle of locks, threads are held back at its requests until the circle is closed
//! (DeadlockFuzzer, section 2.3); its effect is the deadlock.
//!
//! With `--policy`, that one decides instead: whether the two meet is judged whatever the policy is, so this tells how
//! often they do where nobody directs them. It shows less, and takes nothing back that was confirmed.

mod imported;
pub mod locate;
mod output;
pub mod tally;

use crate::arguments::{Verbosity, duration, whole};
use crate::detect::Detection;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::kept;
use crate::progress::Progress;
use crate::run::library::Shelf;
use crate::runs::{self, Run};
use crate::scheduling::{DEPTH, LENGTH, PolicyName, ScheduleArguments, Time};
use crate::serving::Servers;
use crate::trial::{Ending, Plan, TrialResult, points, run_many};
use clap::Args;
use locate::{Code, Located, Locator};
use raddle_execute::RunDirectory;
use raddle_report::Report;
use raddle_report::findings::text::{fixed, next};
use raddle_report::findings::{Confirmation, Finding, Rebuilt, Target, Under};
use raddle_wire::options::{PolicyChoice, ScheduleOptions};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tally::{Early, Habit, Tally, subject};

/// Makes the findings of a run happen, one by one
///
/// Takes the findings of a run and executes the program again and again, holding threads back at the two
/// accesses of a finding until both stand there at once: then the race is confirmed. Either order is tried,
/// and what the program does after it is told. Of a cycle of locks, threads are held back before they ask for
/// its locks until they deadlock. Results go into report.json.
///
/// With --policy nobody is held back: it tells how often the race, or the deadlock, happens under that policy. A
/// finding that was confirmed before stays so, and the rate is added to it.
///
/// If the program was rebuilt since, the same places are looked for in the new build (lines of the same
/// text in the same functions), and the question is whether the race is fixed.
///
/// Exits with 66 if a race was confirmed, 0 if none.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Confirm {
    /// A run by its number, its directory, or the file of a report; or one finding, R3 or 12/R3
    /// [default: the latest run here]
    #[arg(conflicts_with = "program")]
    run: Option<String>,

    /// Executions per finding, at most
    #[arg(long, value_name = "N", value_parser = whole::<u64>, default_value_t = 20)]
    trials: u64,

    /// Only this finding (R3); may be repeated
    #[arg(long, value_name = "R", value_delimiter = ',')]
    only: Vec<String>,

    /// All trials, to tell how often: do not stop once both orders were seen
    #[arg(long)]
    rates: bool,

    /// Take the races from what ThreadSanitizer, Helgrind or DRD wrote to this file
    #[arg(long, value_name = "FILE", requires = "program")]
    import: Option<PathBuf>,

    /// The first seed of the executions [default: 1]; races of PROGRAM are looked for under it, too
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    seed: Option<u64>,

    /// Do not direct the executions, but let this policy decide; races of PROGRAM are looked for under it, too
    /// [default: race-directed, or lock-directed for a cycle of locks; races are looked for as the
    /// kernel decides, or at random with --seed]
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,

    /// How many ordering constraints --policy pct looks for
    #[arg(long, value_name = "D", value_parser = whole::<u32>, default_value_t = DEPTH)]
    depth: u32,

    /// What the target sees of time
    #[arg(long, value_enum, default_value_t = Time::Virtual)]
    time: Time,

    /// Also hook the functions that this file describes, beside those the run had; may be repeated
    #[arg(long, value_name = "FILE")]
    hooks: Vec<PathBuf>,

    /// Kill an execution after this long: it hangs
    #[arg(long, value_name = "T", value_parser = duration, default_value = "20s")]
    timeout: Duration,

    /// Executions at a time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    jobs: Option<usize>,

    /// Start the program anew for each execution, instead of copying it at its main function
    #[arg(long)]
    anew: bool,

    /// A step of another command, which has the last word
    #[arg(long, hide = true)]
    step: bool,

    /// Begin no execution after this long
    #[arg(long, value_name = "T", value_parser = duration, hide = true)]
    within: Option<Duration>,

    #[command(flatten)]
    verbosity: Verbosity,

    /// Look for races in this program first, or take them from --import
    #[arg(last = true, value_names = ["PROGRAM", "ARGUMENTS"])]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  Are the races of the latest run real?
      raddle confirm

  How often does this one happen, and what does it do?
      raddle confirm R3 --trials 100 --rates

  How often would it happen if nobody held threads back for it?
      raddle confirm R3 --trials 100 --rates --policy random

  Is it fixed? (after changing the source and building again)
      raddle confirm 12/R3

  Is what another tool reported real?
      valgrind --tool=helgrind --xml=yes --xml-file=races.xml ./bank
      raddle confirm --import races.xml -- ./bank";

const EXIT_FOUND: u8 = 66;

impl Confirm {
    /// Runs the subcommand.
    pub fn run(mut self) -> Result<u8, Failure> {
        crate::events::hooks(&self.hooks)?;
        self.hooks = absolute(&self.hooks)?;
        let patience = Patience {
            interrupt: Interrupt::watch(),
            until: self.within.map(|within| Instant::now() + within),
        };
        let interrupt = &patience.interrupt;
        let Some(file) = self.file()? else {
            self.verbosity.note("there is no race in what was imported");
            return Ok(0);
        };
        let report = runs::read(&file)?;
        self.check_names(&report)?;
        let mut locator = Locator::new(&report);
        let wanted: Vec<&Finding> = report
            .findings
            .iter()
            .filter(|finding| self.only.is_empty() || self.only.contains(&finding.id))
            .collect();
        let rebuilt: Vec<&Finding> =
            wanted.iter().copied().filter(|finding| locator.is_rebuilt(finding)).collect();
        let now = self.now(&report, &rebuilt)?;
        let rebuilt: BTreeSet<&str> = rebuilt.iter().map(|finding| finding.id.as_str()).collect();
        let mut habits = Habits::default();
        let mut confirmed = false;
        let mut results = BTreeMap::new();
        let servers = Servers::new(self.workers(), self.anew, self.verbosity, interrupt);
        let mut left_out = Vec::new();
        for finding in wanted {
            if patience.is_out() {
                left_out.push(finding.id.as_str());
                continue;
            }
            let is_rebuilt = rebuilt.contains(finding.id.as_str());
            let (code, found) = match locator.locate(finding) {
                Located::There(code) => (code, true),
                Located::Gone | Located::Elsewhere { .. } if is_rebuilt => {
                    (Code::Race(Vec::new()), false)
                }
                Located::Elsewhere { line, function } => {
                    let what = format!("the program has code for {line}, but none in {function}");
                    println!("{}: {what}", subject(finding));
                    continue;
                }
                Located::Gone => {
                    let what = "the program has no code for its lines (is it built with -g?)";
                    println!("{}: {what}", subject(finding));
                    continue;
                }
                Located::Nowhere => {
                    self.verbosity.note(format_args!("{}: cannot be watched", finding.id));
                    continue;
                }
            };
            // What was confirmed stands, whatever others than the directed policies come to.
            let stands = self.policy.is_some() && finding.is_confirmed() && !is_rebuilt;
            let directory = (!stands).then(|| file.parent().unwrap_or(Path::new(".")).to_owned());
            let target = report.target_of(finding);
            let plan = self.plan(target, code)?;
            let exit = report.outcome.exit.filter(|_| finding.target.is_none());
            let habit = habits.of(target, || self.habit(&plan, exit))?;
            let (mut confirmation, line) =
                self.try_it(finding, &plan, habit, directory.as_deref(), &servers, &patience)?;
            confirmed |= confirmation.confirmed;
            println!("{line}");
            if found && confirmation.trials == 0 && patience.is_out() {
                // What was not tried is not in the report either.
                continue;
            }
            if let (true, Some(known)) = (stands, &finding.confirmation) {
                println!("  it was confirmed before, and stays so");
                let mut known = known.clone();
                known.add_under(rate(&confirmation));
                results.insert(finding.id.clone(), known);
                continue;
            }
            if let Some(known) = &finding.confirmation {
                let rates = known.policy.iter().map(|_| rate(known)).chain(known.under.clone());
                for rate in rates {
                    if confirmation.policy.as_ref() != Some(&rate.policy) {
                        confirmation.add_under(rate);
                    }
                }
            }
            let happened = confirmation.hits > 0;
            if is_rebuilt {
                let reported = now.reports(finding);
                let rebuilt = Rebuilt { found, reported, fixed: !reported && !happened };
                let tried = confirmation.trials == 0 || confirmation.failed < confirmation.trials;
                let doubt = match () {
                    () if patience.is_out() => Some("interrupted"),
                    () if !tried => Some("no execution of the new build could be watched"),
                    () if found && self.policy.is_some() => Some("nobody was held back for it"),
                    () => now.doubt,
                };
                match doubt.filter(|_| rebuilt.fixed) {
                    None => confirmation.rebuilt = Some(rebuilt),
                    Some(doubt) => {
                        println!("  {doubt}: whether it is fixed is not known");
                        continue;
                    }
                }
            }
            if patience.is_out() && !happened && finding.is_confirmed() {
                // Too few trials to take back what more of them have shown.
                continue;
            }
            if let Some(fixed) = fixed(&confirmation) {
                println!("  {fixed}");
            }
            results.insert(finding.id.clone(), confirmation);
        }
        change(&file, |report| {
            for finding in report["findings"].as_array_mut().into_iter().flatten() {
                if let Some(result) = finding["id"].as_str().and_then(|id| results.get(id)) {
                    finding["confirmation"] = json!(result);
                }
            }
        })?;
        if interrupt.came() && !self.step {
            self.verbosity.note("interrupted; what was found so far is in the report");
        } else if !interrupt.came() && !left_out.is_empty() {
            self.verbosity.note(format_args!("no time to try {}", left_out.join(", ")));
        }
        self.last_word(&file)?;
        Ok(if confirmed { EXIT_FOUND } else { 0 })
    }

    /// What to type next.
    fn last_word(&self, file: &Path) -> Result<(), Failure> {
        if self.step || self.verbosity.quiet {
            return Ok(());
        }
        let mut report = runs::read(file)?;
        report.findings.sort_by_key(Finding::importance);
        if let Some(next) = next(&report, Run::named(file).as_deref(), crate::is_known) {
            eprintln!("{next}");
        }
        Ok(())
    }

    /// The report that is meant; made now, if it has to be.
    fn file(&mut self) -> Result<Option<PathBuf>, Failure> {
        if let Some(log) = &self.import {
            return self.import(log);
        }
        if !self.program.is_empty() {
            let is_asked_for = self.policy.is_some() || self.seed.is_some();
            let schedule = is_asked_for.then(|| self.schedule());
            let detection = self.detection(&self.program, None, &self.hooks);
            return Detection { schedule, ..detection }.openly().map(Some);
        }
        if let Some(meant) = self.run.as_deref().filter(|run| runs::names_a_failure(run)) {
            let (_, report, at) = runs::find_failure(meant)?;
            let effect = &report.failures[at].effect;
            let what =
                format!("{meant} has happened ({effect}); `raddle replay {meant}` repeats it");
            return Err(Failure::Other(what));
        }
        match self.run.as_deref().filter(|run| runs::names_a_finding(run)) {
            Some(meant) => {
                let (file, report, at) = runs::find_finding(meant)?;
                self.only.push(report.findings[at].id.clone());
                Ok(Some(file))
            }
            None => Run::find(self.run.as_deref()).map(Some),
        }
    }

    fn check_names(&self, report: &Report) -> Result<(), Failure> {
        let known: Vec<&str> = report.findings.iter().map(|f| f.id.as_str()).collect();
        match self.only.iter().find(|id| !known.contains(&id.as_str())) {
            Some(missing) => {
                let known = match known.as_slice() {
                    [] => "the report has none".to_owned(),
                    known => format!("there are {}", known.join(", ")),
                };
                let what = format!("there is no finding {missing}; {known}");
                Err(Failure::Other(what))
            }
            None => Ok(()),
        }
    }

    fn detection<'a>(
        &self,
        program: &'a [OsString],
        cwd: Option<&'a Path>,
        hooks: &'a [PathBuf],
    ) -> Detection<'a> {
        let schedule = Some(self.schedule());
        Detection { program, cwd, hooks, schedule, time: self.time, timeout: self.timeout }
    }

    /// Who decides while races are looked for.
    fn schedule(&self) -> ScheduleArguments {
        let policy = self.policy.unwrap_or(PolicyName::Random);
        let (policy, seed) = (Some(policy), Some(self.first_seed()));
        ScheduleArguments { policy, seed, depth: self.depth, time: self.time }
    }

    fn first_seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// What the detector says of the programs of these findings as they are built now.
    fn now(&self, report: &Report, rebuilt: &[&Finding]) -> Result<Now, Failure> {
        let mut targets: Vec<&Target> = rebuilt.iter().map(|f| report.target_of(f)).collect();
        targets.dedup();
        let mut now = Now::default();
        for target in targets {
            let _progress = Progress::doing("the program was rebuilt: looking for its races");
            let (program, hooks) = (Confirm::words(&target.argv), self.hooks(target));
            let detection = self.detection(&program, Some(Path::new(&target.cwd)), &hooks);
            let found = detection.aside()?;
            for finding in found.findings {
                now.fingerprints.insert(finding.fingerprint);
            }
            let outcome = &found.outcome;
            let as_before = outcome.signal == report.outcome.signal;
            now.doubt = match () {
                () if outcome.timed_out => Some("the new build took longer than --timeout"),
                () if outcome.failure.is_some() => Some("the new build could not be watched"),
                () if outcome.signal.is_some() && !as_before => {
                    Some("a signal ended the new build")
                }
                () => now.doubt,
            };
        }
        Ok(now)
    }

    /// The hook files of the run, and ours.
    fn hooks(&self, target: &Target) -> Vec<PathBuf> {
        let known = target.hooks.iter().map(PathBuf::from);
        known.chain(self.hooks.iter().cloned()).collect()
    }

    /// What the program does when nobody directs it: effects are told by the difference.
    fn habit(&self, plan: &Plan, exit: Option<i32>) -> Result<Habit, Failure> {
        let mut plan = plan.clone();
        plan.schedule = ScheduleOptions {
            policy: PolicyChoice::RoundRobin,
            watch: Vec::new(),
            lock_points: false,
            cycle: Vec::new(),
            ..plan.schedule
        };
        let scratch = RunDirectory::temporary()?;
        let mut habit = Habit { exit: exit.map(Ending::Exit), output: None };
        let one = Servers::none(self.verbosity);
        run_many(&[plan], &one, scratch.path(), &mut |_, result, written| {
            if let Some(TrialResult { end: end @ Ending::Exit(_), .. }) = result {
                habit.output = (*habit.exit.get_or_insert(end) == end).then_some(written.output);
            }
            true
        })?;
        Ok(habit)
    }

    fn plan(&self, target: &Target, code: Code) -> Result<Plan, Failure> {
        let (policy, watch, cycle) = match code {
            Code::Race(watch) => (PolicyChoice::RaceDirected, watch, Vec::new()),
            Code::Cycle(cycle) => (PolicyChoice::LockDirected, Vec::new(), cycle),
        };
        let directed = Plan {
            program: Confirm::words(&target.argv),
            cwd: PathBuf::from(&target.cwd),
            limit_ms: self.timeout.as_millis() as u64,
            hooks: self.hooks(target),
            record: false,
            schedule: ScheduleOptions {
                policy,
                seed: self.first_seed(),
                time: self.time.mode(),
                watch,
                lock_points: !cycle.is_empty(),
                early_time: self.policy.is_some_and(PolicyName::early_time),
                process: None,
                cycle,
            },
        };
        let Some(policy) = self.policy else { return Ok(directed) };
        let length = match policy {
            PolicyName::Pct => self.length(&directed)?,
            PolicyName::Random | PolicyName::Bursts | PolicyName::RoundRobin => LENGTH,
        };
        let policy = policy.choice(self.depth, length);
        Ok(Plan { schedule: ScheduleOptions { policy, ..directed.schedule }, ..directed })
    }

    /// How many scheduling points an execution of a plan has, about: PCT spreads its changes over them. Found out by
    /// one without chance, so that the same seeds stay the same executions.
    fn length(&self, plan: &Plan) -> Result<u64, Failure> {
        let mut plan = plan.clone();
        plan.schedule.policy = PolicyChoice::RoundRobin;
        let scratch = RunDirectory::temporary()?;
        let mut length = LENGTH;
        run_many(&[plan], &Servers::none(self.verbosity), scratch.path(), &mut |_, result, _| {
            length = result.map_or(LENGTH, |result| points(&result).max(1));
            true
        })?;
        Ok(length)
    }

    /// The policy of the trials, if one was asked for, as it is told.
    fn policy_told(&self) -> Option<String> {
        self.policy.map(|policy| match policy {
            PolicyName::Pct => format!("{} of depth {}", policy.word(), self.depth),
            PolicyName::Random | PolicyName::Bursts | PolicyName::RoundRobin => {
                policy.word().to_owned()
            }
        })
    }

    /// Tries one finding; returns what came of it, also in a line. Executions are kept in the directory, if
    /// there is one.
    fn try_it(
        &self,
        finding: &Finding,
        plan: &Plan,
        habit: &Habit,
        directory: Option<&Path>,
        servers: &Servers,
        patience: &Patience,
    ) -> Result<(Confirmation, String), Failure> {
        let ScheduleOptions { watch, cycle, .. } = &plan.schedule;
        let mut tally = Tally::new(habit.clone(), cycle.clone(), self.policy_told());
        // Without code to watch there is nothing to try.
        let trials = if watch.is_empty() && cycle.is_empty() { 0 } else { self.trials };
        // A deadlock has no two orders.
        let orders = if cycle.is_empty() { 2 } else { 1 };
        let plans: Vec<Plan> = (0..trials)
            .map(|i| {
                let mut plan = plan.clone();
                plan.schedule.seed = self.first_seed().wrapping_add(i);
                plan
            })
            .collect();
        let scratch = RunDirectory::temporary()?;
        let about = subject(finding);
        let progress = Progress::doing(about.as_str());
        run_many(&plans, servers, scratch.path(), &mut |i, result, out| {
            if patience.interrupt.came() {
                return false;
            }
            tally.add(plans[i].schedule.seed, result, out);
            let Tally { trials, hits, .. } = tally;
            progress.say(format!("{about}: {trials} of {} trials, {hits} hits", self.trials));
            !patience.is_out() && (self.rates || tally.orders.len() < orders)
        })?;
        let is_short = tally.trials < trials && (self.rates || tally.orders.len() < orders);
        let early = patience.early().filter(|_| is_short);
        let keep = directory.unwrap_or(scratch.path());
        let mut confirmation = tally.confirmation(&finding.id, plan, keep, &mut Shelf::new())?;
        let mut line = tally.line(finding, early);
        if let (Some(directory), false) = (directory, patience.interrupt.came()) {
            progress.say(format!("{about}: recording the interleaving"));
            for told in self.record(&mut confirmation, directory, scratch.path())? {
                line.push_str(&format!("\n  {told}"));
            }
        }
        Ok((confirmation, line))
    }

    /// Replays each order once and keeps what the two threads did around the race. Says of which orders that could
    /// not be: then something other than the schedule decides what the program does.
    fn record(
        &self,
        confirmation: &mut Confirmation,
        directory: &Path,
        scratch: &Path,
    ) -> Result<Vec<String>, Failure> {
        let mut plans = Vec::new();
        for order in &confirmation.orders {
            let plan = kept::load(directory, &order.kept)?;
            plans.push(Plan { record: true, ..plan });
        }
        let orders = &mut confirmation.orders;
        let mut told = Vec::new();
        // One after the other, so that nothing disturbs them.
        let one = Servers::none(self.verbosity);
        run_many(&plans, &one, scratch, &mut |i, result, _| {
            let why = match &result {
                Some(result) => result.divergence.clone(),
                None => Some("it could not be executed".to_owned()),
            };
            // An execution that went another way this time shows nothing of the race.
            let same = result.filter(|_| why.is_none());
            orders[i].interleaving = same.and_then(|result| result.interleaving);
            told.extend(why.map(|why| (i, why)));
            true
        })?;
        told.sort();
        let apart = match self.workers() {
            1 => "",
            _ => "; with --jobs 1 executions do not disturb each other through files they share",
        };
        let tell = |(i, why): (usize, String)| {
            format!("order {} was not repeated by a replay: {why}{apart}", orders[i].order)
        };
        Ok(told.into_iter().map(tell).collect())
    }

    fn workers(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
        self.jobs.unwrap_or_else(processors)
    }
}

/// How often it happened under the policy asked for.
fn rate(confirmation: &Confirmation) -> Under {
    let Confirmation { policy, trials, hits, interval, .. } = confirmation;
    let policy = policy.clone().unwrap_or_default();
    Under { policy, trials: *trials, hits: *hits, interval: *interval }
}

/// How long trials go on.
#[derive(Debug)]
struct Patience {
    interrupt: Interrupt,
    until: Option<Instant>,
}

impl Patience {
    /// Why no more trials are to begin, if so.
    fn early(&self) -> Option<Early> {
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        match () {
            () if self.interrupt.came() => Some(Early::Interrupted),
            () if is_late => Some(Early::TimeUp),
            () => None,
        }
    }

    fn is_out(&self) -> bool {
        self.early().is_some()
    }
}

/// The programs of findings after they were rebuilt.
#[derive(Debug, Default)]
struct Now {
    /// What the detector reports.
    fingerprints: BTreeSet<String>,
    /// Why it may not have seen everything.
    doubt: Option<&'static str>,
}

impl Now {
    /// Does the detector still report it? The new build may have other instructions for its lines.
    fn reports(&self, finding: &Finding) -> bool {
        self.fingerprints.contains(&finding.fingerprint)
    }
}

/// What each program does when nobody directs it, found out when it is first asked for.
#[derive(Debug, Default)]
struct Habits(Vec<(Target, Habit)>);

impl Habits {
    fn of(
        &mut self,
        target: &Target,
        find_out: impl FnOnce() -> Result<Habit, Failure>,
    ) -> Result<&Habit, Failure> {
        let known = self.0.iter().position(|(known, _)| known == target);
        let at = match known {
            Some(at) => at,
            None => {
                self.0.push((target.clone(), find_out()?));
                self.0.len() - 1
            }
        };
        Ok(&self.0[at].1)
    }
}

/// Files that are to be found from another directory, too.
pub fn absolute(files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let absolute = |file: &PathBuf| file.canonicalize().map_err(Failure::during(file.display()));
    files.iter().map(absolute).collect()
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
    fn trials_go_on_until_the_time_is_up_or_ctrl_c_comes() {
        let patience = |until| Patience { interrupt: Interrupt::default(), until };
        assert_eq!(patience(None).early(), None);
        let later = Instant::now() + Duration::from_secs(3_600);
        assert_eq!(patience(Some(later)).early(), None);
        assert_eq!(patience(Some(Instant::now())).early(), Some(Early::TimeUp));
    }
}

//! `raddle hunt`: the whole job. Looks for races under several schedules, makes them happen, and spends
//! what is left of its time on executions under random, PCT and lock-directed schedules, in which bugs without a
//! data race (lost updates between two critical sections, order violations, deadlocks) show too.

use crate::arguments::{Verbosity, duration, whole};
use crate::child;
use crate::confirm::absolute;
use crate::confirm::locate::{Code, Located, Locator};
use crate::confirm::tally::effect_of;
use crate::detect::Detection;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::kept;
use crate::progress::Progress;
use crate::run::library::Shelf;
use crate::runs::{self, Run};
use crate::scheduling::{PolicyName, Time, policy_name};
use crate::serving::Servers;
use crate::trial::{Ending, Plan, TrialResult, run_many};
use clap::Args;
use raddle_execute::{RunDirectory, Written, target};
use raddle_report::findings::{self, Finding, Harm, stack_of, text};
use raddle_report::{Report, Symbols};
use raddle_wire::options::{PolicyChoice, ScheduleOptions, WatchedPlace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Finds the concurrency bugs of a program, makes them happen, and keeps what repeats them
///
/// Runs PROGRAM under several schedules with a race detector, confirms what it finds, and then
/// explores other schedules until the time is up. An execution that crashes, hangs, deadlocks or exits
/// otherwise than the program does by itself is a finding: `raddle replay H1` repeats it.
///
/// Exits with 66 if something was confirmed or failed, or else as the program does by itself.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Hunt {
    /// How long to look
    #[arg(long, value_name = "T", value_parser = duration, default_value = "1m")]
    budget: Duration,

    /// At most so many executions after the races
    #[arg(long, value_name = "N", value_parser = whole::<u64>, default_value_t = 1_000)]
    executions: u64,

    /// The first seed
    #[arg(long, value_name = "N", value_parser = whole::<u64>, default_value_t = 1)]
    seed: u64,

    /// What the target sees of time
    #[arg(long, value_enum, default_value_t = Time::Virtual)]
    time: Time,

    /// Kill an execution after this long: it hangs
    #[arg(long, value_name = "T", value_parser = duration, default_value = "20s")]
    timeout: Duration,

    /// Also hook the functions that this file describes; may be repeated, later files win
    #[arg(long, value_name = "FILE")]
    hooks: Vec<PathBuf>,

    /// Stop at the first failing execution
    #[arg(long)]
    first: bool,

    /// Explore under this policy alone, and without what races would tell: for comparison
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,

    /// Executions at a time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    jobs: Option<usize>,

    /// Start the program anew for each execution, instead of copying it at its main function
    #[arg(long)]
    anew: bool,

    #[command(flatten)]
    verbosity: Verbosity,

    /// The program and its arguments
    #[arg(last = true, required = true, value_names = ["PROGRAM", "ARGUMENTS"])]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  Five minutes on a test that fails once a month
      raddle hunt --budget 5m -- ./tests/queue

  Until the first failure, then see it again
      raddle hunt --first -- ./tests/queue
      raddle replay H1

The policies are described in docs/policies/.";

const EXIT_FOUND: u8 = 66;
/// Policies under which races are looked for: what one keeps in order, another does not.
const DETECTIONS: [&[&str]; 3] = [&["random"], &["pct", "--depth", "2"], &["pct", "--depth", "3"]];
/// Where they are kept in the run's directory meanwhile.
const DETECTIONS_PART: &str = "detections";
/// Bytes of code around a racing access in which others are points, too: of two accesses to the same memory in one
/// segment the detector needs only the first, but between looking and using is where it hurts.
const AROUND: u64 = 48;
/// Scheduling points expected before any execution has told.
const FIRST_LENGTH: u64 = 200;
/// How often it is looked whether the program has ended by itself.
const LOOK: Duration = Duration::from_millis(5);
/// Executions planned at once: afterwards PCT knows better how long they are.
const ROUND: u64 = 16;
/// PCT's depths, in turn: most bugs need two or three constraints.
const DEPTHS: [u32; 3] = [2, 3, 4];

impl Hunt {
    /// Runs the subcommand.
    pub fn run(mut self) -> Result<u8, Failure> {
        target::resolve(&self.program, None)?;
        crate::events::hooks(&self.hooks)?;
        self.hooks = absolute(&self.hooks)?;
        let interrupt = Interrupt::watch();
        let started = Instant::now();
        let usual = self.by_itself()?;
        let run = Run::make(None)?;
        let detected = self.detect(&run, started, &interrupt);
        let (report_file, suspects, mut spent) = detected.inspect_err(|_| run.give_up())?;
        let mut confirmed = false;
        let mut watch = Vec::new();
        if self.policy.is_none() {
            confirmed = self.confirm(&report_file, &interrupt)?;
            watch = suspects;
            spent.confirmed(&runs::read(&report_file)?);
        }
        let failures = match self.first && spent.effect.is_some() {
            true => Vec::new(),
            false => self.explore(started, usual, watch, &mut spent, &interrupt)?,
        };
        for failure in &failures {
            println!(
                "{}: {} in {} of {} executions ({}, seed {}); `raddle replay {}/{}` repeats it",
                failure.id,
                failure.effect,
                failure.count,
                failure.of,
                failure.policy,
                failure.plan.schedule.seed,
                report_file.parent().unwrap_or(Path::new(".")).display(),
                failure.id
            );
        }
        keep(&report_file, &failures, &spent)?;
        let found = confirmed || !failures.is_empty();
        if !found {
            self.verbosity.note("nothing was confirmed, and no execution failed");
        }
        self.last_words(&report_file, &spent, &interrupt)?;
        Ok(if found { EXIT_FOUND } else { usual as u8 })
    }

    /// Where everything is, and what to type next.
    fn last_words(&self, file: &Path, spent: &Spent, interrupt: &Interrupt) -> Result<(), Failure> {
        let shown = file.display();
        if interrupt.came() {
            let executions = spent.detections + spent.trials + spent.explored;
            self.verbosity.note(format_args!(
                "interrupted after {executions} executions; what was found so far is in {shown}"
            ));
        } else {
            self.verbosity.note(format_args!("report in {shown}"));
        }
        let mut report = runs::read(file)?;
        report.findings.sort_by_key(Finding::importance);
        if let Some(next) = text::next(&report, Run::named(file).as_deref(), crate::is_known)
            && !self.verbosity.quiet
        {
            eprintln!("{next}");
        }
        Ok(())
    }

    /// The exit code of the program without us.
    fn by_itself(&self) -> Result<i32, Failure> {
        let (name, rest) = self.program.split_first().ok_or_else(|| {
            Failure::Other("there is no program to run; it stands after --".into())
        })?;
        let mut alone = child::command(name)?;
        alone.args(rest).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let what = format!("running {}", name.display());
        let mut alone = alone.spawn().map_err(Failure::during(&what))?;
        let started = Instant::now();
        loop {
            if let Some(status) = alone.try_wait().map_err(Failure::during(&what))? {
                return Ok(status.code().unwrap_or(0));
            }
            if started.elapsed() > self.timeout {
                let _ = (alone.kill(), alone.wait());
                return Err(Failure::Other(format!(
                    "{} does not end by itself within --timeout: hunting is for programs that do",
                    name.display()
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Looks for races under a few schedules; returns the report with the most of them, which is now the run's, and
    /// the places of all.
    fn detect(
        &self,
        run: &Run,
        started: Instant,
        interrupt: &Interrupt,
    ) -> Result<(PathBuf, Vec<WatchedPlace>, Spent), Failure> {
        let (time, timeout) = (self.time, self.timeout);
        let (program, hooks) = (self.program.as_slice(), self.hooks.as_slice());
        let detection = Detection { program, cwd: None, hooks, time, timeout };
        let progress = Progress::doing("looking for races");
        let parts = run.path().join(DETECTIONS_PART);
        let mut best: Option<(usize, PathBuf)> = None;
        let mut spent = Spent::default();
        // One at least, also where its races are of no interest: for the report.
        let detections = if self.policy.is_some() { 1 } else { DETECTIONS.len() };
        let mut suspects: BTreeMap<(String, u64), WatchedPlace> = BTreeMap::new();
        for (seed, policy) in (self.seed..).zip(&DETECTIONS[..detections]) {
            if best.is_some() && (started.elapsed() > self.budget / 3 || interrupt.came()) {
                break;
            }
            progress.say(format!("looking for races, seed {seed}"));
            let part = parts.join(seed.to_string());
            let report = match detection.quietly(seed, policy, &part) {
                Err(_) if best.is_some() => continue,
                report => report.inspect_err(|_| drop(std::fs::remove_dir_all(&parts)))?,
            };
            spent.detections += 1;
            suspects.extend(
                nearby(&report).into_iter().map(|p| ((p.code.module.clone(), p.code.start), p)),
            );
            let found = report.findings.len();
            if best.as_ref().is_none_or(|(most, _)| found >= *most) {
                best = Some((found, part));
            }
        }
        let (_, part) = best.ok_or_else(|| Failure::Other("there was no time".into()))?;
        let file = run.adopt(&part)?;
        // The others have told what they know.
        let _ = std::fs::remove_dir_all(&parts);
        Ok((file, suspects.into_values().collect(), spent))
    }

    fn confirm(&self, report: &Path, interrupt: &Interrupt) -> Result<bool, Failure> {
        if interrupt.came() {
            return Ok(false);
        }
        if runs::read(report)?.findings.is_empty() {
            self.verbosity.note("no races were found; exploring schedules");
            return Ok(false);
        }
        // The hook files are in the report.
        let status = child::ours()?
            .args(["confirm", "--step"])
            .arg(report)
            .args(["--seed", &self.seed.to_string()])
            .args(self.anew.then_some("--anew"))
            .status()
            .map_err(Failure::during("confirming"))?;
        Ok(status.code() == Some(i32::from(EXIT_FOUND)))
    }

    /// Executes under random and PCT schedules until the time is up.
    fn explore(
        &self,
        started: Instant,
        usual: i32,
        watch: Vec<WatchedPlace>,
        spent: &mut Spent,
        interrupt: &Interrupt,
    ) -> Result<Vec<Failed>, Failure> {
        let scratch = RunDirectory::temporary()?;
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let jobs = self.jobs.unwrap_or(processors);
        let servers = Servers::new(jobs, self.anew, self.verbosity, interrupt);
        let cwd = std::env::current_dir().unwrap_or_default();
        let mut failures: BTreeMap<String, Failed> = BTreeMap::new();
        let (mut done, mut length) = (0, FIRST_LENGTH);
        let progress = Progress::doing("exploring schedules");
        let goes_on = || started.elapsed() < self.budget && !interrupt.came();
        while done < self.executions && goes_on() {
            let plans: Vec<Plan> = (done..self.executions.min(done + ROUND))
                .map(|i| Plan {
                    program: self.program.clone(),
                    cwd: cwd.clone(),
                    limit_ms: self.timeout.as_millis() as u64,
                    hooks: self.hooks.clone(),
                    record: false,
                    schedule: ScheduleOptions {
                        policy: self.policy_of(i, length),
                        seed: self.seed.wrapping_add(i),
                        time: self.time.mode(),
                        watch: watch.clone(),
                        lock_points: self.policy.is_none() && i % 4 == 0,
                        early_time: true,
                        process: None,
                        cycle: Vec::new(),
                    },
                })
                .collect();
            let mut news = |i: usize, result: Option<TrialResult>, written: Written| {
                if interrupt.came() {
                    return false;
                }
                done += 1;
                let kinds = failures.len();
                progress.say(format!("{done} executions explored, {kinds} kinds of failure"));
                let Some(result) = result else { return goes_on() };
                length = points(&result).max(1);
                if result.end == Ending::Exit(usual) {
                    return goes_on();
                }
                let effect = effect_of(&result, &written).unwrap_or_else(|| result.end.to_string());
                let id = format!("H{}", failures.len() + 1);
                let failure = failures.entry(effect.clone()).or_insert_with(|| Failed {
                    id,
                    effect,
                    count: 0,
                    of: 0,
                    policy: policy_name(&plans[i].schedule),
                    plan: plans[i].clone(),
                    result,
                });
                failure.count += 1;
                !self.first && goes_on()
            };
            run_many(&plans, &servers, scratch.path(), &mut news)?;
            if self.first && !failures.is_empty() {
                break;
            }
        }
        drop(progress);
        let mut failures: Vec<Failed> = failures.into_values().collect();
        failures.iter_mut().for_each(|f| f.of = done);
        failures.sort_by_key(|f| (f.id.len(), f.id.clone()));
        self.verbosity.note(format_args!("{done} executions explored"));
        spent.explored = done;
        spent.effect = failures.first().map(|f| f.effect.clone()).or(spent.effect.take());
        Ok(failures)
    }

    /// What decides in the i-th execution: all kinds in turn, or the one asked for.
    fn policy_of(&self, i: u64, length: u64) -> PolicyChoice {
        let pct =
            |turn: u64| PolicyChoice::Pct { depth: DEPTHS[turn as usize % DEPTHS.len()], length };
        match self.policy {
            Some(PolicyName::Random) => PolicyChoice::Random,
            Some(PolicyName::Pct) => pct(i),
            Some(PolicyName::RoundRobin) => PolicyChoice::RoundRobin,
            None => match i % 4 {
                0 => PolicyChoice::LockDirected,
                2 => PolicyChoice::Bursts,
                _ => pct(i / 2),
            },
        }
    }
}

/// Executions made, and the first failure they came to.
#[derive(Debug, Default)]
struct Spent {
    detections: u64,
    trials: u64,
    explored: u64,
    effect: Option<String>,
}

impl Spent {
    /// Counts what `confirm` has done.
    fn confirmed(&mut self, report: &Report) {
        for confirmation in report.findings.iter().filter_map(|f| f.confirmation.as_ref()) {
            self.trials += confirmation.trials;
            let mut effects = confirmation.effects.iter().map(|e| &e.effect);
            let failed = effects.find(|effect| Harm::of(effect) == Harm::Failure).cloned();
            self.effect = self.effect.take().or(failed);
        }
    }
}

/// An execution that failed, and how often such.
struct Failed {
    id: String,
    effect: String,
    count: u64,
    of: u64,
    policy: String,
    plan: Plan,
    result: TrialResult,
}

fn points(result: &TrialResult) -> u64 {
    raddle_schedule::Schedule::parse(&result.schedule).map_or(0, |s| s.points())
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

/// The words of a deadlock, with names for the locks that have one. Executions are told in addresses, for
/// there are many, and naming takes its time.
fn deadlock_by_name(result: &TrialResult, symbols: &mut dyn Symbols) -> Option<String> {
    let mut text = result.deadlock.clone()?;
    for (lock, module, offset) in &result.locks {
        if let Some(name) = symbols.variable(module, *offset) {
            text = text.replace(lock.as_str(), &name);
        }
    }
    Some(text)
}

/// Leaves what repeats the failures in the run's directory, and names them in its report.
fn keep(file: &Path, failures: &[Failed], spent: &Spent) -> Result<(), Failure> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let (mut rows, mut shelf) = (Vec::new(), Shelf::new());
    for failed in failures {
        let (mut plan, result) = (failed.plan.clone(), &failed.result);
        plan.schedule.process = result.process;
        kept::keep(directory, &failed.id, &plan, (&result.schedule, &result.input))?;
        let stacks = result.stood.iter().map(|stack| stack_of(stack, &mut shelf)).collect();
        rows.push(findings::Failure {
            id: failed.id.clone(),
            effect: failed.effect.clone(),
            end: json!(failed.result.end),
            deadlock: deadlock_by_name(&failed.result, &mut shelf),
            policy: failed.policy.clone(),
            seed: failed.plan.schedule.seed.to_string(),
            count: failed.count,
            executions: failed.of,
            kept: Some(failed.id.clone()),
            stacks,
            ..findings::Failure::default()
        });
    }
    crate::confirm::change(file, |report: &mut Value| {
        report["failures"] = json!(rows);
        report["hunt"] = json!({
            "detections": spent.detections,
            "trials": spent.trials,
            "explored": spent.explored,
            "effect": spent.effect,
        });
    })
}

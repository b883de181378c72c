//! `raddle hunt`: the whole job. Looks for races under several schedules, makes them happen, and spends
//! what is left of its time on executions under random, PCT and lock-directed schedules, in which bugs without a
//! data race (lost updates between two critical sections, order violations, deadlocks) show too.

mod detections;
mod failures;

use crate::arguments::{Verbosity, duration, whole};
use crate::child;
use crate::confirm::absolute;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::runs::{self, Run};
use crate::scheduling::{PolicyName, Time};
use crate::serving::Servers;
use crate::trial::{Ending, Plan, TrialResult, points, run_many};
use clap::Args;
use detections::Detected;
use failures::Failures;
use raddle_execute::{RunDirectory, Written, target};
use raddle_report::Report;
use raddle_report::findings::{self, Finding, Harm, text};
use raddle_wire::options::{PolicyChoice, ScheduleOptions, WatchedPlace};
use serde_json::{Value, json};
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

    /// How many ordering constraints PCT looks for [default: 2, 3 and 4 in turn]
    #[arg(long, value_name = "D", value_parser = whole::<u32>)]
    depth: Option<u32>,

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
        let (mut spent, mut failures) = (Spent::default(), Failures::default());
        let detected = self.detect(&run, (started, usual), (&mut spent, &mut failures), &interrupt);
        let Detected { file, suspects } = detected.inspect_err(|_| run.give_up())?;
        let mut confirmed = false;
        let mut watch = Vec::new();
        if self.policy.is_none() {
            confirmed = self.confirm(&file, started, &interrupt)?;
            watch = suspects;
            spent.confirmed(&runs::read(&file)?);
        }
        let is_enough = self.first && (spent.effect.is_some() || failures.kinds() > 0);
        self.explore((started, usual), watch, is_enough, (&mut spent, &mut failures), &interrupt)?;
        let rows = failures.keep(run.path(), spent.detections + spent.explored)?;
        for failure in &rows {
            println!(
                "{}: {} in {} of {} executions ({}, seed {}); `raddle replay {}/{}` repeats it",
                failure.id,
                failure.effect,
                failure.count,
                failure.executions,
                failure.policy,
                failure.seed,
                run.path().display(),
                failure.id
            );
        }
        let doubts = failures.doubts();
        doubts.iter().for_each(|doubt| self.verbosity.note(doubt));
        let found = confirmed || !rows.is_empty();
        write(&file, rows, doubts, &spent)?;
        if !found {
            self.verbosity.note("nothing was confirmed, and no execution failed");
        }
        self.last_words(&file, &spent, &interrupt)?;
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

    /// Until two thirds of the time are over: what is left is for schedules that nobody suspects.
    fn confirm(
        &self,
        report: &Path,
        started: Instant,
        interrupt: &Interrupt,
    ) -> Result<bool, Failure> {
        if interrupt.came() {
            return Ok(false);
        }
        if runs::read(report)?.findings.is_empty() {
            self.verbosity.note("no races were found; exploring schedules");
            return Ok(false);
        }
        let within = (self.budget * 2 / 3).saturating_sub(started.elapsed());
        // Nothing at all is not said as a time.
        let within = within.max(Duration::from_millis(1));
        let in_ms = |time: Duration| format!("{}ms", time.as_millis());
        // The hook files are in the report.
        let status = child::ours()?
            .args(["confirm", "--step"])
            .arg(report)
            .args(["--seed", &self.seed.to_string(), "--time", self.time.word()])
            .args(["--within", &in_ms(within), "--timeout", &in_ms(self.timeout)])
            .args(self.jobs.map(|jobs| format!("--jobs={jobs}")))
            .args(self.anew.then_some("--anew"))
            .args(self.verbosity.quiet.then_some("--quiet"))
            .status()
            .map_err(Failure::during("confirming"))?;
        Ok(status.code() == Some(i32::from(EXIT_FOUND)))
    }

    /// Executes under random and PCT schedules until the time is up.
    fn explore(
        &self,
        (started, usual): (Instant, i32),
        watch: Vec<WatchedPlace>,
        is_enough: bool,
        (spent, failures): (&mut Spent, &mut Failures),
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let scratch = RunDirectory::temporary()?;
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut jobs = self.jobs.unwrap_or(processors);
        let mut servers = Servers::new(jobs, self.anew, self.verbosity, interrupt);
        let (mut done, mut length) = (0, FIRST_LENGTH);
        let progress = Progress::doing("exploring schedules");
        let goes_on = || started.elapsed() < self.budget && !interrupt.came();
        // Those of detection, of which there was one at a time.
        failures.check(true, scratch.path())?;
        while done < self.executions && goes_on() && !is_enough {
            let plans: Vec<Plan> = (done..self.executions.min(done + ROUND))
                .map(|i| {
                    self.plan(ScheduleOptions {
                        policy: self.policy_of(i, length),
                        seed: self.seed.wrapping_add(i),
                        time: self.time.mode(),
                        watch: watch.clone(),
                        lock_points: self.policy.is_none() && i % 4 == 0,
                        early_time: true,
                        process: None,
                        cycle: Vec::new(),
                    })
                })
                .collect();
            let mut news = |i: usize, result: Option<TrialResult>, written: Written| {
                if interrupt.came() {
                    return false;
                }
                done += 1;
                let kinds = failures.kinds();
                progress.say(format!("{done} executions explored, {kinds} kinds of failure"));
                let Some(result) = result else { return goes_on() };
                length = points(&result).max(1);
                if result.end == Ending::Exit(usual) {
                    return goes_on();
                }
                failures.add(&plans[i], result, &written);
                !self.first && goes_on()
            };
            run_many(&plans, &servers, scratch.path(), &mut news)?;
            if interrupt.came() {
                failures.believe();
            }
            let lost = failures.check(jobs == 1, scratch.path())?;
            if let (Some(effect), true) = (lost.first(), jobs > 1) {
                self.verbosity.note(format_args!(
                    "a replay does not come to {effect}: executions at a time disturb each other, by files they \
                     share perhaps; from here on one at a time"
                ));
                jobs = 1;
                servers = Servers::new(jobs, self.anew, self.verbosity, interrupt);
            }
            if self.first && failures.first().is_some() {
                break;
            }
        }
        drop(progress);
        if !is_enough {
            self.verbosity.note(format_args!("{done} executions explored"));
        }
        spent.explored = done;
        spent.effect = failures.first().map(|f| f.effect.clone()).or(spent.effect.take());
        Ok(())
    }

    /// An execution under this schedule.
    fn plan(&self, schedule: ScheduleOptions) -> Plan {
        Plan {
            program: self.program.clone(),
            cwd: std::env::current_dir().unwrap_or_default(),
            limit_ms: self.timeout.as_millis() as u64,
            hooks: self.hooks.clone(),
            record: false,
            schedule,
        }
    }

    /// What decides in the i-th execution: all kinds in turn, or the one asked for.
    fn policy_of(&self, i: u64, length: u64) -> PolicyChoice {
        let depth = |turn: u64| self.depth.unwrap_or(DEPTHS[turn as usize % DEPTHS.len()]);
        let pct = |turn: u64| PolicyChoice::Pct { depth: depth(turn), length };
        match self.policy {
            Some(policy) => policy.choice(depth(i), length),
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

/// Names the failures in the run's report, and how much was tried.
fn write(
    file: &Path,
    failures: Vec<findings::Failure>,
    doubts: Vec<String>,
    spent: &Spent,
) -> Result<(), Failure> {
    crate::confirm::change(file, |report: &mut Value| {
        report["failures"] = json!(failures);
        report["hunt"] = json!({
            "detections": spent.detections,
            "trials": spent.trials,
            "explored": spent.explored,
            "effect": spent.effect,
        });
        if let Some(warnings) = report["summary"]["warnings"].as_array_mut() {
            warnings.extend(doubts.into_iter().map(Value::from));
        }
    })
}

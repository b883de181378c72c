//! `--policy`, `--seed` and `--time`: the same words for every command that runs a program.

use crate::arguments::whole;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use raddle_execute::Control;
use raddle_model::Address;
use raddle_wire::options::{PlaceFilter, PolicyChoice, ScheduleOptions, TimeMode};
use std::path::{Path, PathBuf};

/// The schedule in a run directory.
pub const SCHEDULE: &str = "schedule";
/// What came from outside, in a run directory.
pub const INPUT: &str = "input";
/// Points that PCT expects unless told: of the order of what small programs have.
pub const LENGTH: u64 = 1_000;
/// PCT's depth unless told: most bugs need two or three constraints.
pub const DEPTH: u32 = 3;

/// Who decides which thread runs.
#[derive(Debug, Clone, Copy, Args)]
pub struct ScheduleArguments {
    /// Let one thread run at a time, chosen by this policy [default: the kernel decides; random
    /// with --seed]
    #[arg(long, value_enum, help_heading = "Scheduling")]
    pub policy: Option<PolicyName>,

    /// What the policy draws its decisions from: the same seed is the same execution
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Scheduling")]
    pub seed: Option<u64>,

    /// How many ordering constraints --policy pct looks for
    #[arg(long, value_name = "D", value_parser = whole::<u32>, default_value_t = DEPTH, help_heading = "Scheduling")]
    pub depth: u32,

    /// What a scheduled target sees of time: `real` for programs that talk to the outside
    #[arg(long, value_enum, default_value_t = Time::Virtual, help_heading = "Scheduling")]
    pub time: Time,
}

/// The policies, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// Any thread, with equal chances
    Random,
    /// Random, but who merely computes mostly runs on, and sleepers may wake first
    Bursts,
    /// Random priorities, with a few changes
    Pct,
    /// Every thread a step, in turn
    RoundRobin,
}

/// What time is, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Time {
    /// Passes with the target's work, and when nobody can run
    Virtual,
    /// The machine's
    Real,
}

impl Time {
    /// For the probe.
    pub fn mode(self) -> TimeMode {
        match self {
            Time::Virtual => TimeMode::Virtual,
            Time::Real => TimeMode::Real,
        }
    }

    /// As it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Time::Virtual => "virtual",
            Time::Real => "real",
        }
    }
}

impl PolicyName {
    /// As it is typed.
    pub fn word(self) -> &'static str {
        match self {
            PolicyName::Random => "random",
            PolicyName::Bursts => "bursts",
            PolicyName::Pct => "pct",
            PolicyName::RoundRobin => "round-robin",
        }
    }

    /// For the probe: PCT with this depth, in an execution of about so many points.
    pub fn choice(self, depth: u32, length: u64) -> PolicyChoice {
        match self {
            PolicyName::Random => PolicyChoice::Random,
            PolicyName::Bursts => PolicyChoice::Bursts,
            PolicyName::Pct => PolicyChoice::Pct { depth, length },
            PolicyName::RoundRobin => PolicyChoice::RoundRobin,
        }
    }

    /// May time pass though somebody could run? It is what bursts are for, as far as somebody sleeps.
    pub fn early_time(self) -> bool {
        self == PolicyName::Bursts
    }
}

impl ScheduleArguments {
    /// Who decides, as it is typed for another command of ours; time has its own word.
    pub fn words(&self) -> Vec<String> {
        let policy = self.policy.map(|policy| ["--policy".to_owned(), policy.word().to_owned()]);
        let seed = self.seed.map(|seed| ["--seed".to_owned(), seed.to_string()]);
        let depth = ["--depth".to_owned(), self.depth.to_string()];
        policy.into_iter().chain(seed).chain([depth]).flatten().collect()
    }

    /// For the probe; absent when nothing was asked for.
    pub fn options(&self) -> Option<ScheduleOptions> {
        if self.policy.is_none() && self.seed.is_none() {
            return None;
        }
        let name = self.policy.unwrap_or(PolicyName::Random);
        let policy = name.choice(self.depth, LENGTH);
        let seed = self.seed.unwrap_or(1);
        let (time, watch) = (self.time.mode(), Vec::new());
        Some(ScheduleOptions {
            policy,
            seed,
            time,
            watch,
            lock_points: false,
            early_time: name.early_time(),
            process: None,
            cycle: Vec::new(),
        })
    }
}

/// The policy, as it is told.
pub fn policy_name(options: &ScheduleOptions) -> String {
    match &options.policy {
        PolicyChoice::Random => "random".to_owned(),
        PolicyChoice::Bursts => "bursts".to_owned(),
        PolicyChoice::Pct { depth, length } => format!("pct {depth} {length}"),
        PolicyChoice::RoundRobin => "round-robin".to_owned(),
        PolicyChoice::RaceDirected => "race-directed".to_owned(),
        PolicyChoice::LockDirected => "lock-directed".to_owned(),
        PolicyChoice::Replay { file, .. } => format!("replay {file}"),
    }
}

/// What fixes an execution beside its decisions, for its schedule's file.
pub fn settings(options: &ScheduleOptions) -> Vec<(String, String)> {
    let time = match options.time {
        TimeMode::Virtual => Time::Virtual.word(),
        TimeMode::Real => Time::Real.word(),
    };
    let mut settings = vec![
        ("seed".to_owned(), options.seed.to_string()),
        ("policy".to_owned(), policy_name(options)),
        ("time".to_owned(), time.to_owned()),
    ];
    for place in &options.watch {
        let side = match place.sides {
            (true, true) => "both",
            (true, false) => "first",
            _ => "second",
        };
        let code = |code: &PlaceFilter| match code.end - code.start {
            0 | 1 => format!("{}+{:#x}", code.module, code.start),
            _ => format!("{}+{:#x}-{:#x}", code.module, code.start, code.end),
        };
        let caller = place.caller.as_ref().map(|caller| format!(" from {}", code(caller)));
        let at = format!("{side} {}{}", code(&place.code), caller.unwrap_or_default());
        settings.push(("watch".to_owned(), at));
    }
    settings
}

/// Leaves the schedule of a controlled execution in a directory, and what came from outside; returns the
/// schedule's file.
pub fn leave(
    directory: &Path,
    name: &str,
    options: &ScheduleOptions,
    control: &Control,
) -> Result<PathBuf, Failure> {
    let file = directory.join(name);
    let schedule = control.schedule(settings(options));
    let input = directory.join(INPUT);
    for (file, text) in [(&file, schedule.to_string()), (&input, control.input())] {
        std::fs::write(file, text)
            .map_err(Failure::during(format_args!("writing {}", file.display())))?;
    }
    Ok(file)
}

/// Names for what a deadlock is about.
pub trait Naming {
    /// A lock, or another word of memory that is waited on.
    fn lock(&mut self, lock: Address) -> String;
}

/// Addresses.
pub struct Nameless;

impl Naming for Nameless {
    fn lock(&mut self, lock: Address) -> String {
        lock.to_string()
    }
}

/// A deadlock in a few lines, for people.
pub fn deadlock(control: &Control, names: &mut dyn Naming) -> Option<String> {
    let stuck = control.stuck.as_ref()?;
    let mut text = match stuck.cycle {
        true => "deadlock: these threads wait for each other's locks".to_owned(),
        false if stuck.spins() => "no progress: who can run spins, and changes nothing".to_owned(),
        false => "deadlock: no thread can run".to_owned(),
    };
    for wait in &stuck.waits {
        let does = if wait.spins { "spins" } else { "waits" };
        text.push_str(&format!("\n  {} {does}", wait.thread));
        if let Some(lock) = wait.wants.or(wait.futex) {
            text.push_str(&format!(" for {}", names.lock(lock)));
        }
        if !wait.holds.is_empty() {
            let held: Vec<String> = wait.holds.iter().map(|lock| names.lock(*lock)).collect();
            text.push_str(&format!(", and holds {}", held.join(", ")));
        }
    }
    Some(text)
}

//! `raddle run`: one execution of the program with a detector watching, and the report of what it
//! found.

pub mod library;
mod watch;

use crate::arguments::{Engine, RunArguments, duration};
use crate::confirm::absolute;
use crate::events::hooks;
use crate::failure::Failure;
use crate::known::Known;
use crate::progress::Progress;
use crate::runs::Run as RunPlace;
use crate::settings::{Settings, Stop};
use crate::telling::Telling;
use crate::trial::{self, Ending, Plan};
use crate::{kept, scheduling};
use clap::{Args, CommandFactory, FromArgMatches, ValueEnum};
use raddle_execute::{
    EngineMode, ExecuteError, Execution, Outcome, ProbeRequest, RunDirectory, execute, target,
};
use raddle_hooks::HookSet;
use raddle_report::findings::{self, Filter, Report};
use raddle_wire::options::{DetectorChoice, MemoryMode, Rules};
use serde_json::json;
use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use watch::{Watch, Watched};

/// Finds data races in a program while it runs
///
/// Runs PROGRAM as it is, watches what its threads do to memory, and reports pairs of accesses that
/// nothing keeps apart: both with their stacks, threads and locks, the memory by name, and why. The
/// target's own input and output pass through untouched; the report goes to standard error at the
/// end, and to report.json in a new directory .raddle/N.
///
/// Exits with 66 if something was found, whatever the target did; else as the target did.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[command(mut_arg("quiet", |arg| arg.help(QUIET)), mut_arg("verbose", |arg| arg.help(VERBOSE)))]
pub struct Run {
    /// How races are found
    #[arg(long, value_enum, default_value_t = DetectorName::Hybrid, help_heading = "Finding")]
    detector: DetectorName,

    /// The memory states of --detector helgrind+: six, which warn at once, or eight, which warn at
    /// the second time [default: short]
    #[arg(long, value_enum, help_heading = "Finding")]
    states: Option<States>,

    /// Condition variables: precise recognises lost signals and spurious wake-ups, plain orders a
    /// waiter after everybody who has signalled
    #[arg(long, value_enum, default_value_t = Condvars::Precise, help_heading = "Finding")]
    condvars: Condvars,

    /// Which plain-looking accesses count as atomic: by these rules
    #[arg(
        long,
        value_enum,
        value_name = "RULE,...",
        value_delimiter = ',',
        default_values_t = [Atomics::LockTouched, Atomics::DebugInfo, Atomics::SpinReads],
        help_heading = "Finding"
    )]
    atomics: Vec<Atomics>,

    /// Exit with this code if something was found
    #[arg(long, value_name = "N", default_value_t = 66, help_heading = "Reporting")]
    error_exitcode: u8,

    #[command(flatten)]
    telling: Telling,

    #[command(flatten)]
    known: Known,

    /// Keep the logs too, in the run directory
    #[arg(long, help_heading = "Reporting")]
    keep: bool,

    /// End the target after this long (SIGTERM, and SIGKILL 5 seconds later) and report: for
    /// servers
    #[arg(long, value_name = "T", value_parser = duration, help_heading = "Running")]
    duration: Option<Duration>,

    /// Leave report.json and nothing else: somebody merges it with others
    #[arg(long, hide = true)]
    part: bool,

    #[command(flatten)]
    run: RunArguments,
}

/// What Raddle says beside the target, by how much it is asked to.
const QUIET: &str = "Say in one line what was found, and what went wrong";
const VERBOSE: &str =
    "Say what is being done, and show every finding in full, with whole call stacks";

/// How long the replay of an execution may take that did not get on, where nothing was said of the run.
const REPLAY_LIMIT: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Examples:
  Does it race?
      raddle run -- ./bank --accounts 10

  A server: for a minute, while something talks to it
      raddle run --duration 1m -- ./server --port 8080

  Only what concerns my own code, and nothing of a library I cannot change
      raddle run --only-in src --ignore libvendor.so -- ./bank

  In CI: only what really happened in this run, as JSON
      raddle run --detector hb --format json --output races.json -- ./tests

  Read the last report again, with whole stacks
      raddle report --verbose

The report and report.json are described in docs/run.md, the detectors in docs/analysers/.";

/// The detectors, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DetectorName {
    /// Races that happened, and those that only the order of locks prevented in this run
    Hybrid,
    /// Races that happened in this run only
    Hb,
    /// The published Helgrind+ state machines
    #[value(name = "helgrind+")]
    HelgrindPlus,
}

/// The memory states of Helgrind+, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum States {
    /// Six states
    Short,
    /// Eight states
    Long,
}

/// How condition variables order, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Condvars {
    /// By what signallers wrote and waiters read, lost signals included
    Precise,
    /// After all signallers
    Plain,
}

/// The rules for atomic accesses, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Atomics {
    /// Memory that a locked instruction has touched is a synchronisation variable
    LockTouched,
    /// What debug information shows to be atomic is
    DebugInfo,
    /// A small loop that only reads until something changes waits for the write
    SpinReads,
    /// None of these
    None,
}

impl Run {
    /// How reports are told by what environment and file say of `raddle run`, with nothing typed.
    pub fn telling_as_set(settings: &Settings) -> Result<Telling, Failure> {
        let nothing_typed = ["raddle", "run", "--", "tests"].map(OsString::from);
        let wrong = |error: clap::Error, origin: Option<String>| {
            let what = error.to_string();
            let what = what.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let origin = origin.map(|origin| format!("{origin}: ")).unwrap_or_default();
            Failure::Other(format!("{origin}{what}"))
        };
        let matches = match settings.parse(&crate::Raddle::command(), &nothing_typed) {
            Ok(matches) => matches,
            Err(Stop::Settings(failure)) => return Err(failure),
            Err(Stop::Clap(error, origin)) => return Err(wrong(error, origin)),
        };
        let run = matches.subcommand_matches("run");
        let run = run.map(Run::from_arg_matches).unwrap_or_else(|| Run::from_arg_matches(&matches));
        run.map(|run| run.telling).map_err(|error| wrong(error, None))
    }

    /// Runs the subcommand.
    pub fn run(mut self) -> Result<u8, Failure> {
        if self.part {
            self.telling.leave_to_others();
        }
        // Everything that can be wrong with what was asked is found out before anything is
        // written or started.
        let (choice, detector) = self.detector()?;
        let target = target::resolve(&self.run.program, None)?;
        if let Some(sanitizer) = target.sanitizer()? {
            self.telling.verbosity.note(format_args!(
                "the program is built with {}, whose shadow memory lies where Raddle's would: detection \
                 will be slow; build it without {}",
                sanitizer.name(),
                sanitizer.option(),
            ));
        }
        let hooks = hooks(&self.run.hooks)?;
        let hook_files = absolute(&self.run.hooks)?;
        let base = std::env::current_dir().unwrap_or_default();
        let filter = self.known.filter(&base)?;
        self.telling.forms.check()?;
        if self.run.engine == Engine::Bare {
            return self.run_bare(base);
        }
        let run = RunPlace::make(self.run.out.as_deref())?;
        let (logs, output) = self.prepare(&run).inspect_err(|_| run.give_up())?;
        self.telling.verbosity.detail(format_args!("running {}", target.elf.display()));
        self.telling.verbosity.detail(format_args!("run directory {}", run.path().display()));

        let somebody_looks = self.telling.verbosity.verbose || std::io::stderr().is_terminal();
        let live = somebody_looks && !self.telling.verbosity.quiet;
        let program = self.run.program.clone();
        let watched = Watched { program, hooks: hook_files, detector };
        let mut watch = Watch::new(watched, filter, base).telling(live, &run);
        let mut request = request(hooks, choice, self.rules());
        request.schedule = self.run.schedule.options();
        let engine = EngineMode::Probe(request);
        let outcome = match execute(&self.execution(engine, logs.path()), &mut watch) {
            Err(error) if !watch.heard() => {
                // There was no run to speak of.
                run.give_up();
                return Err(error.into());
            }
            outcome => outcome,
        };
        watch.ended();
        let naming = Progress::doing("giving everything its names");
        let mut report = watch.report(&outcome);
        report.failures.extend(self.leave_schedule(&run, &outcome, &mut watch)?);
        drop(naming);
        let failed = !report.failures.is_empty();
        let code = self.tell(&report, &run, output, outcome)?;
        Ok(if failed { self.error_exitcode } else { code })
    }

    /// Stores what the scheduler decided; if that ended in a deadlock or without progress, as an execution that can
    /// be replayed.
    fn leave_schedule(
        &self,
        run: &RunPlace,
        outcome: &Result<Outcome, ExecuteError>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<findings::Failure>, Failure> {
        let (Some(options), Ok(outcome)) = (self.run.schedule.options(), outcome) else {
            return Ok(None);
        };
        let control = &outcome.control;
        scheduling::leave(run.path(), scheduling::SCHEDULE, &options, control)?;
        let Some(stuck) = &control.stuck else { return Ok(None) };
        let (id, ending) = ("H1".to_owned(), trial::ending(outcome));
        let plan = Plan {
            program: self.run.program.clone(),
            cwd: std::env::current_dir().unwrap_or_default(),
            limit_ms: self.run.timeout.unwrap_or(REPLAY_LIMIT).as_millis() as u64,
            hooks: absolute(&self.run.hooks)?,
            record: false,
            schedule: options.clone(),
        };
        let decided = control.schedule(scheduling::settings(&options)).to_string();
        kept::keep(run.path(), &id, &plan, (&decided, &control.input()))?;
        let word = match ending {
            Ending::NoProgress => findings::Failure::NO_PROGRESS,
            _ => findings::Failure::DEADLOCK,
        };
        Ok(Some(findings::Failure {
            id,
            effect: word.to_owned(),
            end: json!(ending),
            deadlock: scheduling::deadlock(control, watch),
            policy: scheduling::policy_name(&options),
            seed: options.seed.to_string(),
            count: 1,
            executions: 1,
            stacks: watch.stacks(stuck),
            ..findings::Failure::default()
        }))
    }

    /// Leaves the report where it belongs and says what is in it; the exit code follows.
    fn tell(
        &self,
        report: &Report,
        run: &RunPlace,
        output: Option<File>,
        outcome: Result<Outcome, ExecuteError>,
    ) -> Result<u8, Failure> {
        self.telling.tell(report, run, output)?;
        let outcome = outcome?;
        Ok(if report.summary.findings > 0 { self.error_exitcode } else { outcome.exit_code() })
    }

    /// The engine alone, for measuring.
    fn run_bare(&self, base: PathBuf) -> Result<u8, Failure> {
        let logs = RunDirectory::temporary()?;
        let watched = Watched { program: Vec::new(), hooks: Vec::new(), detector: "none" };
        let mut deaf = Watch::new(watched, Filter::default(), base);
        Ok(execute(&self.execution(EngineMode::Bare, logs.path()), &mut deaf)?.exit_code())
    }

    /// Where logs and rendering go.
    fn prepare(&self, run: &RunPlace) -> Result<(RunDirectory, Option<File>), Failure> {
        let logs = match self.keeps_logs() {
            true => RunDirectory::kept(&run.path().join("logs"))?,
            false => RunDirectory::temporary()?,
        };
        Ok((logs, self.telling.open()?))
    }

    fn keeps_logs(&self) -> bool {
        self.keep || self.telling.verbosity.verbose
    }

    fn execution(&self, engine: EngineMode, logs: &Path) -> Execution {
        Execution {
            program: self.run.program.clone(),
            cwd: None,
            limit: self.run.timeout,
            stop_after: self.duration,
            fixed_layout: self.run.fixed_layout || self.run.schedule.options().is_some(),
            follow: self.run.follow,
            engine,
            directory: logs.to_owned(),
            keep_logs: self.keeps_logs(),
        }
    }

    /// The detector for the probe, and as the report calls it.
    fn detector(&self) -> Result<(DetectorChoice, &'static str), Failure> {
        match (self.detector, self.states) {
            (DetectorName::Hybrid, None) => Ok((DetectorChoice::Hybrid, "hybrid")),
            (DetectorName::Hb, None) => Ok((DetectorChoice::HappensBefore, "hb")),
            (DetectorName::HelgrindPlus, None | Some(States::Short)) => {
                Ok((DetectorChoice::HelgrindShort, "helgrind+ short"))
            }
            (DetectorName::HelgrindPlus, Some(States::Long)) => {
                Ok((DetectorChoice::HelgrindLong, "helgrind+ long"))
            }
            (DetectorName::Hybrid | DetectorName::Hb, Some(_)) => {
                let why = "--states is about --detector helgrind+; add that, or leave it out";
                Err(Failure::Other(why.into()))
            }
        }
    }

    fn rules(&self) -> Rules {
        let on = |rule| self.atomics.contains(&rule);
        Rules {
            precise_conditions: self.condvars == Condvars::Precise,
            lock_touched: on(Atomics::LockTouched),
            debug_information: on(Atomics::DebugInfo),
            spin_reads: on(Atomics::SpinReads),
        }
    }
}

/// What a detector needs to see: everything, with stacks, and nothing of it written down.
fn request(hooks: HookSet, detector: DetectorChoice, rules: Rules) -> ProbeRequest {
    ProbeRequest {
        hooks,
        count: false,
        memory: MemoryMode::On,
        sync: true,
        functions: false,
        output: false,
        stacks: true,
        implicit_accesses: false,
        only_places: Vec::new(),
        detector: Some(detector),
        rules,
        schedule: None,
        silent: false,
        debug: None,
    }
}

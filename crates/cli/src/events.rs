//! `raddle events`: what the threads of a program do to memory and to each other, as it happens
//! or counted.

mod observers;
mod places;
mod selection;

use crate::arguments::{Engine, Format, RunArguments, ThreadSelector, Verbosity};
use crate::failure::Failure;
use crate::names::Names;
use crate::{scheduling, terminal};
use clap::{Args, ValueEnum};
use observers::{Counter, Output};
use raddle_execute::{
    EngineMode, Execution, Observer, Outcome, ProbeRequest, RunDirectory, execute, target,
};
use raddle_hooks::HookSet;
use raddle_model::{Family, Hook};
use raddle_report::Paint;
use raddle_wire::options::MemoryMode;
use selection::Selection;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

/// Shows what a program's threads do, event by event
///
/// Runs PROGRAM and reports every memory access, lock, wait, thread and output as one line: who,
/// what, on which variable or heap block, at which source line. The target's own output passes
/// through untouched; events go to standard error, or to --output FILE.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Events {
    /// Only events of these families [default: all but function]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FAMILIES")]
    only: Vec<FamilyName>,

    /// Only events of this thread: T1, 1, or its name; may be repeated
    #[arg(long, value_name = "T", value_delimiter = ',')]
    thread: Vec<ThreadSelector>,

    /// Only events at this function (`withdraw`, `Queue::*`) or line (`bank.c:31`) of the program,
    /// or of another module (`/usr/lib/libfoo.so!push`); may be repeated
    #[arg(long, value_name = "SYMBOL")]
    place: Vec<String>,

    /// Count instead: how many of each event per thread, and the hottest places
    #[arg(long)]
    count: bool,

    /// Show the call stack of every event
    #[arg(long, conflicts_with = "count")]
    stacks: bool,

    /// How events are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Write events to this file instead of standard error
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    verbosity: Verbosity,

    #[command(flatten)]
    run: RunArguments,
}

const EXAMPLES: &str = "\
Examples:
  Which locks does it take, and who waits for whom?
      raddle events --only sync,thread -- ./server --port 8080

  What does one function do to memory, with call stacks?
      raddle events --place withdraw --stacks -- ./bank

  Where does the work go? (fast: nothing is written while it runs)
      raddle events --count -- ./sort input.txt

  For a script: one JSON object a line, in a file
      raddle events --format json --output events.jsonl -- ./bank
      jq -r 'select(.event == \"write\") | .object.name' events.jsonl

The formats are described in docs/events.md.";

/// The families of events, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FamilyName {
    /// Accesses, ranges (memcpy, rep strings), allocation
    Memory,
    /// Locks, conditions, barriers, semaphores, once, teams, tasks, transactions, futexes
    Sync,
    /// Start, name, exit, join
    Thread,
    /// Entry and exit of every hooked function
    Function,
    /// Writes to descriptors
    Output,
    /// Modules, signals, child processes
    Process,
}

impl FamilyName {
    fn family(self) -> Family {
        match self {
            FamilyName::Memory => Family::Memory,
            FamilyName::Sync => Family::Sync,
            FamilyName::Thread => Family::Thread,
            FamilyName::Function => Family::Function,
            FamilyName::Output => Family::Output,
            FamilyName::Process => Family::Process,
        }
    }
}

impl Events {
    /// Runs the subcommand; the exit code is the target's.
    pub fn run(self) -> Result<u8, Failure> {
        // Everything that can be wrong with what was asked is found out before anything is
        // written or started.
        let target = target::resolve(&self.run.program, None)?;
        let hooks = hooks(&self.run.hooks)?;
        let mut names = Names::new();
        let places = places::resolve(&self.place, &target.elf, names.symboliser())?;
        let selection = Selection::new(self.families(), self.thread.clone(), places);
        let directory = match &self.run.out {
            Some(path) => RunDirectory::kept(path)?,
            None => RunDirectory::temporary()?,
        };
        self.verbosity.detail(format_args!("running {}", target.elf.display()));
        self.verbosity.detail(format_args!("run directory {}", directory.path().display()));

        let table = hooks.hooks.iter().map(Hook::name).map(String::from).collect();
        let execution = Execution {
            program: self.run.program.clone(),
            cwd: None,
            limit: self.run.timeout,
            stop_after: None,
            fixed_layout: self.run.fixed_layout || self.run.schedule.options().is_some(),
            follow: self.run.follow,
            engine: match self.run.engine {
                Engine::Bare => EngineMode::Bare,
                Engine::Probe => EngineMode::Probe(self.request(hooks, &selection)),
            },
            directory: directory.path().to_owned(),
            keep_logs: self.run.out.is_some(),
        };
        if self.run.engine == Engine::Bare {
            return Ok(self.execute(&execution, &mut Deaf)?.exit_code());
        }
        let (output, paint) = self.open_output()?;
        if self.count {
            let mut counter = Counter::new(selection, names);
            // What was counted before a failure is kept, too.
            let outcome = self.execute(&execution, &mut counter);
            counter.write(output, self.format, paint)?;
            self.warn_of_threads(counter.selection());
            Ok(outcome?.exit_code())
        } else {
            let format = (self.format, paint);
            let mut stream = Stream::new(output, format, self.run.follow, selection, names, table);
            let outcome = self.execute(&execution, &mut stream);
            stream.finish()?;
            let outcome = outcome?;
            if self.format == Format::Text || self.output.is_some() {
                self.verbosity.note(stream.summary(&outcome));
            }
            self.warn_of_threads(stream.selection());
            Ok(outcome.exit_code())
        }
    }

    fn execute(
        &self,
        execution: &Execution,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, Failure> {
        let outcome = execute(execution, observer)?;
        if let Some(options) = self.run.schedule.options() {
            if self.run.out.is_some() {
                let name = scheduling::SCHEDULE;
                scheduling::leave(&execution.directory, name, &options, &outcome.control)?;
            }
            if let Some(text) = scheduling::deadlock(&outcome.control, &mut scheduling::Nameless) {
                self.verbosity.note(text);
            }
        }
        for warning in &outcome.warnings {
            self.verbosity.note(format_args!("warning: {warning}"));
        }
        Ok(outcome)
    }

    /// A thread that was asked for and never seen is probably a slip.
    fn warn_of_threads(&self, selection: &Selection) {
        if let Some(warning) = selection.missing_threads() {
            self.verbosity.note(format_args!("warning: {warning}"));
        }
    }

    fn families(&self) -> Vec<Family> {
        let all_but_function = || {
            let all = FamilyName::value_variants().iter().copied();
            all.filter(|family| *family != FamilyName::Function).map(FamilyName::family).collect()
        };
        match self.only.as_slice() {
            [] => all_but_function(),
            some => some.iter().copied().map(FamilyName::family).collect(),
        }
    }

    fn request(&self, hooks: HookSet, selection: &Selection) -> ProbeRequest {
        let wants = |family| selection.wants_family(family);
        let memory = wants(Family::Memory);
        ProbeRequest {
            hooks,
            count: self.count,
            memory: if memory { MemoryMode::On } else { MemoryMode::Off },
            // Allocation, creation and joining of threads are known through hooks as well.
            sync: memory || wants(Family::Sync) || wants(Family::Thread),
            functions: wants(Family::Function),
            output: wants(Family::Output),
            stacks: self.stacks,
            implicit_accesses: true,
            only_places: selection.places().to_vec(),
            detector: None,
            rules: raddle_wire::options::Rules::default(),
            schedule: self.run.schedule.options(),
            silent: false,
            debug: None,
        }
    }

    fn open_output(&self) -> Result<(Output, Paint), Failure> {
        match &self.output {
            Some(path) => {
                let context = format!("writing {}", path.display());
                let file = File::create(path).map_err(Failure::during(&context))?;
                Ok((Output::new(Box::new(BufWriter::new(file)), context), Paint::Plain))
            }
            None => {
                let stderr = std::io::stderr();
                let paint = terminal::paint(&stderr);
                let writer = Box::new(BufWriter::new(stderr));
                Ok((Output::new(writer, "writing events".into()), paint))
            }
        }
    }
}

pub use observers::{Deaf, Stream};
pub use places::find_module;

/// Writes events of these families as they come.
pub fn stream(
    writer: Box<dyn std::io::Write>,
    format: (Format, Paint),
    families: Vec<Family>,
    hooks: Vec<String>,
) -> Stream {
    let output = Output::new(Box::new(BufWriter::new(writer)), "writing events".into());
    let selection = Selection::new(families, Vec::new(), Vec::new());
    Stream::new(output, format, false, selection, Names::new(), hooks)
}

/// The shipped hook files and the user's.
pub fn hooks(files: &[PathBuf]) -> Result<HookSet, Failure> {
    let mut all = raddle_hooks::shipped();
    for path in files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(Failure::during(format_args!("reading the hook file {name}")))?;
        all.push(raddle_hooks::parse(&text, &name)?);
    }
    Ok(raddle_hooks::merge(all)?)
}

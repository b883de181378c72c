//! One controlled execution of a plan of many: by a server where that can be ([`crate::serving`]), or
//! started anew in a process of its own, `raddle trial PLAN RESULT`, for our own use. Its streams,
//! signals and death disturb no other.

use crate::child;
use crate::events::hooks;
use crate::failure::Failure;
use crate::recording::Recording;
use crate::serving::Servers;
use clap::Args;
use raddle_execute::{
    Control, End, EngineMode, Execution, Observer, Outcome, ProbeRequest, RunDirectory, Stuck,
    Written, execute,
};
use raddle_model::{Address, Event, EventKind, ModuleId, Place, StackId, ThreadId};
use raddle_report::Symbols;
use raddle_report::findings::interleaving::Interleaving;
use raddle_wire::log::{Meeting, MetAccess};
use raddle_wire::options::{MemoryMode, PlaceCount, ScheduleOptions, process_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to execute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// How long it may run.
    pub limit_ms: u64,
    /// Hook files beside the shipped ones.
    pub hooks: Vec<PathBuf>,
    /// Record the interleaving around the meeting.
    #[serde(default)]
    pub record: bool,
    /// Who decides.
    pub schedule: ScheduleOptions,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialResult {
    /// How the target ended.
    pub end: Ending,
    /// When the pair met.
    pub meetings: Vec<Met>,
    /// The interleaving around the first of them, where it was recorded.
    #[serde(default)]
    pub interleaving: Option<Interleaving>,
    /// The deadlock, in words.
    pub deadlock: Option<String>,
    /// Where the threads ask that wait for each other's locks: modules and offsets.
    #[serde(default)]
    pub circle: Vec<(String, u64)>,
    /// Where each thread stood that did not get on, or the one that crashed, innermost first: modules and offsets.
    #[serde(default)]
    pub stood: Vec<Vec<(String, u64)>>,
    /// The locks of the deadlock that are variables: as the words have them, module and offset.
    #[serde(default)]
    pub locks: Vec<(String, String, u64)>,
    /// Where a replay went another way.
    pub divergence: Option<String>,
    /// The decisions, as their file has them.
    pub schedule: String,
    /// What came from outside, as its file has it.
    #[serde(default)]
    pub input: String,
    /// The process id that the target saw.
    #[serde(default)]
    pub process: Option<u32>,
}

impl TrialResult {
    /// The words of a deadlock, with names for the locks that have one. Executions are told in addresses, for there are
    /// many, and naming takes its time.
    pub fn deadlock_by_name(&self, symbols: &mut dyn Symbols) -> Option<String> {
        let mut text = self.deadlock.clone()?;
        for (lock, module, offset) in &self.locks {
            if let Some(name) = symbols.variable(module, *offset) {
                text = text.replace(lock.as_str(), &name);
            }
        }
        Some(text)
    }
}

/// How a target ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// With this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It took too long.
    Hang,
    /// Nobody could go on.
    Deadlock,
    /// Who could go on went round in circles.
    NoProgress,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Exit(code) => write!(f, "exit code {code}"),
            Ending::Signal(signal) => write!(f, "signal {signal}"),
            Ending::Hang => f.write_str("a hang"),
            Ending::Deadlock => f.write_str("a deadlock"),
            Ending::NoProgress => f.write_str("no progress"),
        }
    }
}

/// A meeting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Met {
    /// Was it resolved in favour of the first of the pair?
    pub first_went: bool,
    /// Is one of the accesses atomic?
    pub atomic: bool,
    /// The two.
    pub accesses: [MetSide; 2],
}

/// One side of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MetSide {
    /// Who.
    pub thread: ThreadId,
    /// `0x…`.
    pub address: String,
    /// What stood there.
    pub value: Option<String>,
    /// Module and offset of the access and its callers.
    pub stack: Vec<(String, String)>,
}

/// Runs one execution of a plan.
#[derive(Debug, Args)]
pub struct Trial {
    /// The plan, as JSON
    plan: PathBuf,
    /// Where the result goes
    result: PathBuf,
}

impl Trial {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let text = std::fs::read_to_string(&self.plan)
            .map_err(Failure::during(format_args!("reading {}", self.plan.display())))?;
        let plan: Plan = serde_json::from_str(&text)
            .map_err(Failure::during(format_args!("{}", self.plan.display())))?;
        let hearing = if plan.record { Hearing::Calls } else { Hearing::Threads };
        let mut listener = Listener::new(hearing);
        let (end, control) = run(&plan, hearing, &mut listener)?;
        let result = listener.result(&plan, end, &control);
        let text = serde_json::to_string(&result).map_err(Failure::during("writing a result"))?;
        std::fs::write(&self.result, text)
            .map_err(Failure::during(format_args!("writing {}", self.result.display())))?;
        Ok(0)
    }
}

/// What is told of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    /// Threads and modules, and the stacks of meetings.
    Threads,
    /// Synchronisation and the watched accesses, too.
    Events,
    /// Those with their stacks.
    Calls,
}

/// Executes a plan once, with our own streams.
pub fn run(
    plan: &Plan,
    hearing: Hearing,
    observer: &mut dyn Observer,
) -> Result<(Ending, Control), Failure> {
    let directory = RunDirectory::temporary()?;
    run_in(directory.path(), plan, request(plan, hearing)?, observer)
}

/// The same in a run directory, asking this of the probe.
pub fn run_in(
    directory: &Path,
    plan: &Plan,
    request: ProbeRequest,
    observer: &mut dyn Observer,
) -> Result<(Ending, Control), Failure> {
    let outcome = execute(&execution(plan, request, directory), observer)?;
    Ok((ending(&outcome), outcome.control))
}

/// A plan as an execution that asks this of the probe, with its logs in this directory.
pub fn execution(plan: &Plan, request: ProbeRequest, directory: &Path) -> Execution {
    Execution {
        program: plan.program.clone(),
        cwd: Some(plan.cwd.clone()),
        limit: Some(Duration::from_millis(plan.limit_ms)),
        stop_after: None,
        fixed_layout: true,
        follow: false,
        engine: EngineMode::Probe(request),
        directory: directory.to_owned(),
        keep_logs: false,
    }
}

/// How an execution ended.
pub fn ending(outcome: &Outcome) -> Ending {
    match outcome.end {
        _ if outcome.control.stuck.as_ref().is_some_and(Stuck::spins) => Ending::NoProgress,
        _ if outcome.control.stuck.is_some() => Ending::Deadlock,
        End::Exited(code) => Ending::Exit(code),
        End::Killed(signal) | End::Stopped(signal) => Ending::Signal(signal),
        End::TimedOut => Ending::Hang,
    }
}

/// Only synchronisation and the pair are instrumented.
pub fn request(plan: &Plan, hearing: Hearing) -> Result<ProbeRequest, Failure> {
    let watch = &plan.schedule.watch;
    Ok(ProbeRequest {
        hooks: hooks(&plan.hooks)?,
        count: false,
        memory: if watch.is_empty() { MemoryMode::Off } else { MemoryMode::On },
        sync: true,
        functions: false,
        output: false,
        stacks: hearing != Hearing::Events || watch.iter().any(|w| w.caller.is_some()),
        implicit_accesses: false,
        only_places: watch.iter().map(|watched| watched.code.clone()).collect(),
        rules: raddle_wire::options::Rules::default(),
        detector: None,
        schedule: Some(plan.schedule.clone()),
        silent: hearing == Hearing::Threads,
        debug: None,
    })
}

/// Remembers modules and stacks, so that meetings can be told.
#[derive(Debug, Default)]
pub struct Listener {
    modules: BTreeMap<ModuleId, Module>,
    stacks: BTreeMap<StackId, Vec<Place>>,
    recording: Option<Recording>,
}

/// A module, and where it lies.
#[derive(Debug)]
struct Module {
    path: String,
    bytes: std::ops::Range<u64>,
}

impl Listener {
    /// To be told so much.
    pub fn new(hearing: Hearing) -> Listener {
        let recording = (hearing == Hearing::Calls).then(Recording::default);
        Listener { recording, ..Listener::default() }
    }

    fn module_path(&self, module: ModuleId) -> String {
        self.modules.get(&module).map(|module| module.path.clone()).unwrap_or_default()
    }

    /// What came of the execution that was listened to.
    pub fn result(mut self, plan: &Plan, end: Ending, control: &Control) -> TrialResult {
        let recording = self.recording.take();
        TrialResult {
            end,
            meetings: control.meetings.iter().map(|m| self.met(m)).collect(),
            interleaving: recording.and_then(|heard| heard.interleaving(control, &plan.cwd)),
            deadlock: crate::scheduling::deadlock(control, &mut crate::scheduling::Nameless),
            circle: self.circle(control),
            stood: self.stood(control),
            locks: self.locks(control),
            divergence: control.divergence.clone(),
            schedule: control.schedule(crate::scheduling::settings(&plan.schedule)).to_string(),
            input: control.input(),
            process: plan.schedule.process,
        }
    }

    fn met(&self, meeting: &Meeting) -> Met {
        Met {
            first_went: meeting.first_went,
            atomic: meeting.first.atomic || meeting.second.atomic,
            accesses: [&meeting.first, &meeting.second].map(|side| self.side(side)),
        }
    }

    fn circle(&self, control: &Control) -> Vec<(String, u64)> {
        let stuck = control.stuck.iter().filter(|stuck| stuck.cycle);
        let name = |place: &Place| (self.module_path(place.module), place.offset);
        stuck.flat_map(|stuck| &stuck.waits).map(|wait| name(&wait.place)).collect()
    }

    fn stood(&self, control: &Control) -> Vec<Vec<(String, u64)>> {
        let name = |place: &Place| (self.module_path(place.module), place.offset);
        let waits = control.stuck.iter().flat_map(|stuck| &stuck.waits);
        let waits = waits.map(|wait| (wait.stack, wait.place));
        let crash = control.crash.iter().map(|crash| (crash.stack, crash.place));
        let stack = |(stack, place)| match self.stacks.get(&stack) {
            Some(frames) => frames.iter().map(name).collect(),
            None => vec![name(&place)],
        };
        waits.chain(crash).map(stack).collect()
    }

    fn locks(&self, control: &Control) -> Vec<(String, String, u64)> {
        let waits = control.stuck.iter().flat_map(|stuck| &stuck.waits);
        let locks =
            waits.flat_map(|wait| wait.wants.or(wait.futex).into_iter().chain(wait.holds.clone()));
        let locks: std::collections::BTreeSet<Address> = locks.collect();
        let named = locks.into_iter().filter_map(|lock| {
            let module = self.modules.values().find(|module| module.bytes.contains(&lock.0))?;
            Some((lock.to_string(), module.path.clone(), lock.0 - module.bytes.start))
        });
        named.collect()
    }

    fn side(&self, side: &MetAccess) -> MetSide {
        let name = |p: &Place| (self.module_path(p.module), format!("{:#x}", p.offset));
        let stack = self.stacks.get(&side.stack);
        MetSide {
            thread: side.thread,
            address: side.address.to_string(),
            value: side.value.map(|v| format!("{v:#x}")),
            stack: stack.map_or_else(|| vec![name(&side.place)], |s| s.iter().map(name).collect()),
        }
    }
}

impl Observer for Listener {
    fn event(&mut self, process: u32, event: Event) {
        if let EventKind::ModuleLoad { module, path, base, end } = &event.kind {
            let module_at = Module { path: path.clone(), bytes: base.0..end.0 };
            self.modules.insert(*module, module_at);
        }
        if let Some(recording) = &mut self.recording {
            recording.event(process, event);
        }
    }

    fn stack(&mut self, process: u32, id: StackId, frames: Vec<Place>) {
        if let Some(recording) = &mut self.recording {
            recording.stack(process, id, frames.clone());
        }
        self.stacks.insert(id, frames);
    }

    fn value(&mut self, process: u32, order: u64, after: bool, value: u64) {
        if let Some(recording) = &mut self.recording {
            recording.value(process, order, after, value);
        }
    }

    fn counts(&mut self, _: u32, _: ThreadId, _: Vec<PlaceCount>) {}

    fn event_counts(&mut self, _: u32, _: ThreadId, _: Vec<(String, Place, u64)>) {}
}

/// How many scheduling points an execution had.
pub fn points(result: &TrialResult) -> u64 {
    raddle_schedule::Schedule::parse(&result.schedule).map_or(0, |s| s.points())
}

/// Executes plans, so many at a time as there are servers; `news` hears each result with the plan's
/// index and what the target wrote, and says whether to go on.
pub fn run_many(
    plans: &[Plan],
    servers: &Servers,
    scratch: &Path,
    news: &mut (dyn FnMut(usize, Option<TrialResult>, Written) -> bool + Send),
) -> Result<(), Failure> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let heard = std::sync::Mutex::new((news, true));
    std::thread::scope(|scope| {
        for server in servers.iter() {
            let (next, heard) = (&next, &heard);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(plan) = plans.get(index) else { return };
                    let mut plan = plan.clone();
                    // Files that are named after a process are to be its own.
                    plan.schedule.process.get_or_insert(process_of(server));
                    let (result, written) = match servers.execute(server, &plan) {
                        Some((result, written)) => (Some(result), written),
                        None => one(&plan, scratch, index),
                    };
                    let mut heard = heard.lock().unwrap_or_else(|e| e.into_inner());
                    if heard.1 {
                        heard.1 = heard.0(index, result, written);
                    }
                    if !heard.1 {
                        return;
                    }
                }
            });
        }
    });
    Ok(())
}

fn one(plan: &Plan, scratch: &Path, index: usize) -> (Option<TrialResult>, Written) {
    let (asked, answered) =
        (scratch.join(format!("{index}.plan")), scratch.join(format!("{index}.result")));
    let text = serde_json::to_string(plan).unwrap_or_default();
    if std::fs::write(&asked, text).is_err() {
        return (None, Written::default());
    }
    let run = || {
        let mut trial = child::ours()?;
        trial.arg("trial").args([&asked, &answered]).stdin(std::process::Stdio::null());
        trial.output().map_err(Failure::during("starting an execution"))
    };
    let ran = run();
    let result = std::fs::read_to_string(&answered).ok();
    let result = result.and_then(|text| serde_json::from_str(&text).ok());
    let _ = (std::fs::remove_file(&asked), std::fs::remove_file(&answered));
    let written = ran.map_or_else(
        |e| Written { output: Vec::new(), errors: e.to_string().into_bytes() },
        |ran| Written { output: ran.stdout, errors: ran.stderr },
    );
    (result, written)
}

//! `raddle replay`: a confirmed execution once more, decision by decision.

use crate::arguments::Format;
use crate::confirm::pair;
use crate::events::{self, Stream, hooks};
use crate::failure::Failure;
use crate::runs::{self, Run};
use crate::terminal;
use crate::trial::{self, Ending, Plan};
use clap::Args;
use raddle_execute::{Control, Observer};
use raddle_model::{Event, EventKind, Family, Hook, ModuleId, Place, StackId, ThreadId};
use raddle_schedule::Schedule;
use raddle_wire::options::{PlaceCount, PolicyChoice, ScheduleOptions, TimeMode, WatchedPlace};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Repeats the execution in which a race was confirmed
///
/// The decisions that `raddle confirm` stored are made again, one by one, and the target's streams
/// are the terminal's. Exits with 0 if the execution was repeated, and with 1 if it went another way.
#[derive(Debug, Args)]
pub struct ReplayCommand {
    /// The finding: R3 of the latest run, or 12/R3; H1 for a failing execution of `hunt`
    finding: String,

    /// Which access goes first: 1, the first of the finding, or 2 [default: whichever was seen]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=2))]
    order: Option<u64>,

    /// Show the events of synchronisation and of the pair on standard error
    #[arg(long)]
    events: bool,
}

const EXIT_DIVERGED: u8 = 1;
/// What a replay may take; the execution itself has ended before.
const LIMIT_MS: u64 = 600_000;

impl ReplayCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let (run, id) = match self.finding.rsplit_once('/') {
            Some((run, id)) => (Some(run), id),
            None => (None, self.finding.as_str()),
        };
        let file = Run::find(run)?;
        if id.starts_with('H') {
            return self.run_failure(&file, id);
        }
        let report = runs::read(&file)?;
        let Some(finding) = report.findings.iter().find(|f| f.id == id) else {
            let known: Vec<&str> = report.findings.iter().map(|f| f.id.as_str()).collect();
            let known = known.join(", ");
            return Err(Failure::Other(format!("there is no finding {id}; there are {known}")));
        };
        let stored = self.stored(&file, id)?;
        let directory = file.parent().unwrap_or(Path::new("."));
        let schedule = directory.join(text(&stored, "schedule"));
        let settings = read_schedule(&schedule)?;
        let seed = text(&stored, "seed").parse().unwrap_or(0);
        let plan = Plan {
            program: report.target.argv.iter().map(OsString::from).collect(),
            cwd: PathBuf::from(&report.target.cwd),
            limit_ms: LIMIT_MS,
            hooks: Vec::new(),
            schedule: ScheduleOptions {
                policy: PolicyChoice::Replay { file: absolute(&schedule)? },
                seed,
                time: match settings.setting("time") {
                    Some("real") => TimeMode::Real,
                    _ => TimeMode::Virtual,
                },
                watch: pair::places(finding).unwrap_or_default(),
                lock_points: false,
            },
        };
        let (end, control) = self.execute(&plan)?;
        let wanted = stored["order"] == 1;
        let met = control.meetings.first().map(|m| m.first_went);
        let ended = serde_json::to_value(end).unwrap_or_default();
        let why = match &control.divergence {
            Some(what) => what.clone(),
            None if met != Some(wanted) => "the two accesses did not meet as they did".into(),
            None if ended != stored["end"] => {
                format!("the target ended otherwise: {ended}, not {}", stored["end"])
            }
            None => {
                eprintln!("raddle: {id} repeated, seed {seed}; the target ended with {ended}");
                return Ok(0);
            }
        };
        eprintln!("raddle: {id} was not repeated: {why}");
        Ok(EXIT_DIVERGED)
    }

    /// Executes once more, with events if they were asked for.
    fn execute(&self, plan: &Plan) -> Result<(Ending, Control), Failure> {
        if !self.events {
            return trial::run(plan, true, &mut events::Deaf);
        }
        let families = vec![Family::Memory, Family::Sync, Family::Thread];
        let table = hooks(&[])?.hooks.iter().map(Hook::name).map(String::from).collect();
        let stderr = std::io::stderr();
        let paint = terminal::paint(&stderr);
        let stream = events::stream(Box::new(stderr), (Format::Text, paint), families, table);
        let mut pair = Pair::new(stream, plan.schedule.watch.clone());
        let ran = trial::run(plan, false, &mut pair)?;
        pair.stream.finish()?;
        Ok(ran)
    }

    /// A failing execution that `hunt` has kept.
    fn run_failure(&self, file: &Path, id: &str) -> Result<u8, Failure> {
        let directory = file.parent().unwrap_or(Path::new("."));
        let stored = directory.join(format!("{id}.plan"));
        let text = std::fs::read_to_string(&stored).map_err(Failure::during(stored.display()))?;
        let mut plan: Plan =
            serde_json::from_str(&text).map_err(Failure::during(stored.display()))?;
        let schedule = directory.join(format!("{id}.schedule"));
        read_schedule(&schedule)?;
        plan.schedule.policy = PolicyChoice::Replay { file: absolute(&schedule)? };
        let report = std::fs::read_to_string(file).map_err(Failure::during(file.display()))?;
        let report: Value =
            serde_json::from_str(&report).map_err(Failure::during(file.display()))?;
        let mut failures = report["failures"].as_array().into_iter().flatten();
        let row = failures.find(|f| f["id"] == id).cloned().unwrap_or_default();
        let (end, control) = self.execute(&plan)?;
        if let Some(text) = crate::scheduling::deadlock(&control) {
            eprintln!("raddle: {text}");
        }
        let ended = serde_json::to_value(end).unwrap_or_default();
        let why = match control.divergence {
            Some(what) => what,
            None if ended != row["end"] => {
                format!("the target ended otherwise: {ended}, not {}", row["end"])
            }
            None => {
                let (seed, effect) = (&row["seed"], &row["effect"]);
                eprintln!("raddle: {id} repeated, seed {seed}: {effect}");
                return Ok(0);
            }
        };
        eprintln!("raddle: {id} was not repeated: {why}");
        Ok(EXIT_DIVERGED)
    }

    /// What `confirm` has stored of the finding, for the order asked for.
    fn stored(&self, file: &Path, id: &str) -> Result<Value, Failure> {
        let text = std::fs::read_to_string(file).map_err(Failure::during(file.display()))?;
        let report: Value = serde_json::from_str(&text).map_err(Failure::during(file.display()))?;
        let mut findings = report["findings"].as_array().into_iter().flatten();
        let finding = findings.find(|f| f["id"] == id).cloned().unwrap_or_default();
        let orders = finding["confirmation"]["orders"].as_array().cloned().unwrap_or_default();
        let fits = |o: &&Value| self.order.is_none_or(|wanted| o["order"] == wanted);
        let why = || match (orders.is_empty(), self.order) {
            (false, Some(order)) => format!("{id} was not seen in order {order}"),
            _ => format!("{id} was not confirmed; `raddle confirm --only {id}` tries"),
        };
        orders.iter().find(fits).cloned().ok_or_else(|| Failure::Other(why()))
    }
}

/// Of the events of memory, shows those of the watched places only.
struct Pair {
    stream: Stream,
    watch: Vec<WatchedPlace>,
    modules: BTreeMap<ModuleId, String>,
}

impl Pair {
    fn new(stream: Stream, watch: Vec<WatchedPlace>) -> Pair {
        Pair { stream, watch, modules: BTreeMap::new() }
    }

    fn is_watched(&self, place: Place) -> bool {
        let module = self.modules.get(&place.module);
        let is_it = |w: &WatchedPlace| Some(&w.module) == module && w.offset == place.offset;
        self.watch.iter().any(is_it)
    }
}

impl Observer for Pair {
    fn program(&mut self, process: u32) {
        self.stream.program(process);
    }

    fn event(&mut self, process: u32, event: Event) {
        if let EventKind::ModuleLoad { module, path, .. } = &event.kind {
            self.modules.insert(*module, path.clone());
        }
        if event.kind.family() != Family::Memory || self.is_watched(event.place) {
            self.stream.event(process, event);
        }
    }

    fn stack(&mut self, process: u32, id: StackId, frames: Vec<Place>) {
        self.stream.stack(process, id, frames);
    }

    fn counts(&mut self, _: u32, _: ThreadId, _: Vec<PlaceCount>) {}

    fn event_counts(&mut self, _: u32, _: ThreadId, _: Vec<(String, Place, u64)>) {}

    fn idle(&mut self) {
        self.stream.idle();
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn read_schedule(file: &Path) -> Result<Schedule, Failure> {
    let context = || file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(Failure::during(context()))?;
    Schedule::parse(&text).map_err(Failure::during(context()))
}

fn absolute(file: &Path) -> Result<String, Failure> {
    let path = file.canonicalize().map_err(Failure::during(file.display()))?;
    Ok(path.to_string_lossy().into_owned())
}

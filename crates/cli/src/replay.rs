//! `raddle replay`: a confirmed execution once more, decision by decision.

use crate::arguments::Format;
use crate::confirm::pair;
use crate::events::{self, hooks};
use crate::failure::Failure;
use crate::runs::{self, Run};
use crate::terminal;
use crate::trial::{self, Plan};
use clap::Args;
use raddle_model::{Family, Hook};
use raddle_schedule::Schedule;
use raddle_wire::options::{PolicyChoice, ScheduleOptions, TimeMode};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Repeats the execution in which a race was confirmed
///
/// The decisions that `raddle confirm` stored are made again, one by one, and the target's streams
/// are the terminal's. Exits with 0 if the execution was repeated, and with 1 if it went another way.
#[derive(Debug, Args)]
pub struct ReplayCommand {
    /// The finding: R3 of the latest run, or 12/R3
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
            },
        };
        let (end, control) = if self.events {
            let families = vec![Family::Memory, Family::Sync, Family::Thread];
            let table = hooks(&[])?.hooks.iter().map(Hook::name).map(String::from).collect();
            let stderr = std::io::stderr();
            let paint = terminal::paint(&stderr);
            let mut stream =
                events::stream(Box::new(stderr), (Format::Text, paint), families, table);
            let ran = trial::run(&plan, false, &mut stream)?;
            stream.finish()?;
            ran
        } else {
            trial::run(&plan, true, &mut events::Deaf)?
        };
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

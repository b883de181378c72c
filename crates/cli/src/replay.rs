//! `raddle replay`: a kept execution once more, decision by decision. With `--policy` or `--seed`, what was executed then
//! under other decisions ([`other`]).

mod other;

use crate::arguments::{Format, whole};
use crate::confirm::absolute;
use crate::events::{self, hooks};
use crate::failure::Failure;
use crate::gdb;
use crate::kept;
use crate::run::library::Shelf;
use crate::runs;
use crate::scheduling::{self, DEPTH, Nameless, PolicyName};
use crate::terminal;
use crate::trial::{self, Ending, Hearing, Listener, Plan};
use clap::Args;
use raddle_execute::Control;
use raddle_model::finding::FindingKind;
use raddle_model::{Family, Hook};
use raddle_report::findings::interleaving::{Interleaving, Timeline};
use raddle_report::findings::text::write_timeline;
use raddle_report::findings::{Finding, Order};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Repeats the execution in which a race was confirmed
///
/// The decisions that `raddle confirm` stored are made again, one by one, and the target's streams
/// are the terminal's. Exits with 0 if the execution was repeated, and with 1 if it went another way.
///
/// With --policy or --seed nothing is repeated: the same program is executed under decisions that are made anew, with
/// the same places watched, and what is told is whether the same thing happened. Exits with 0 if it did,
/// and with 1 if not.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ReplayCommand {
    /// The finding: R3 of the latest run, or 12/R3; H1 for a failing execution of `hunt`
    finding: String,

    /// Which access goes first: 1, the first of the finding, or 2 [default: whichever was seen]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=2))]
    order: Option<u8>,

    /// Do not repeat its decisions, but let this policy decide: another execution of the same program
    /// [default with --seed: the policy it had]
    #[arg(long, value_enum, help_heading = "Another execution")]
    policy: Option<PolicyName>,

    /// Do not repeat its decisions, but draw them from this seed [default with --policy: the seed it had]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Another execution")]
    seed: Option<u64>,

    /// How many ordering constraints --policy pct looks for
    #[arg(long, value_name = "D", value_parser = whole::<u32>, default_value_t = DEPTH, help_heading = "Another execution")]
    depth: u32,

    /// Show on standard error what the two threads did around the race, side by side: locks,
    /// source lines, and what stood in memory
    #[arg(long)]
    events: bool,

    /// Let gdb look: the target stops where `main` begins, again when the two accesses meet, and when a
    /// signal or a deadlock ends it. What to type in another terminal is printed
    #[arg(long, conflicts_with = "events")]
    gdb: bool,

    /// Listen at this port of the local machine instead of at a socket of your own; 0 for any
    #[arg(long, value_name = "PORT", requires = "gdb")]
    gdb_port: Option<u16>,

    /// Also hook the functions that this file describes, beside those the execution had; may be
    /// repeated
    #[arg(long, value_name = "FILE")]
    hooks: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  See it happen, thread beside thread
      raddle replay R1 --events

  The other way round
      raddle replay R1 --order 2 --events

  A failing execution that `raddle hunt` has kept
      raddle replay H1

  Look at it with gdb, from another terminal
      raddle replay R1 --gdb

  Does it happen under another policy, too?
      raddle replay R1 --policy pct --seed 4";

const EXIT_DIVERGED: u8 = 1;
/// What a replay may take; the execution itself has ended before.
const LIMIT_MS: u64 = 600_000;

impl ReplayCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        if runs::names_a_failure(&self.finding) {
            return self.run_failure();
        }
        let (file, report, at) = runs::find_finding(&self.finding)?;
        let finding = &report.findings[at];
        let id = finding.id.as_str();
        let order = self.order(finding)?;
        if self.is_other() {
            return self.run_other_of_finding(&file, finding, order);
        }
        let plan = self.plan(&file, &order.kept, &order.end)?;
        let (end, control, deadlock) = if self.gdb {
            match gdb::run(&plan, self.gdb_port)? {
                Some((end, control)) => {
                    let deadlock = scheduling::deadlock(&control, &mut Nameless);
                    (end, control, deadlock)
                }
                None => return Ok(killed(id)),
            }
        } else {
            let hearing = if self.events { Hearing::Calls } else { Hearing::Threads };
            let mut listener = Listener::new(hearing);
            let (end, control) = trial::run(&plan, hearing, &mut listener)?;
            let result = listener.result(&plan, end, &control);
            if self.events {
                show(finding, order, result.interleaving.as_ref(), &plan.cwd)?;
            }
            (end, control, result.deadlock_by_name(&mut Shelf::new()))
        };
        if let Some(text) = deadlock {
            eprintln!("raddle: {text}");
        }
        let is_race = finding.kind == FindingKind::DataRace;
        let met = control.meetings.first().map(|m| m.first_went);
        let why = match other_end(end, &order.end) {
            _ if control.divergence.is_some() => control.divergence.unwrap_or_default(),
            _ if is_race && met != Some(order.order == 1) => {
                "the two accesses did not meet as they did".into()
            }
            Some(why) => why,
            None => {
                let seed = &order.seed;
                eprintln!("raddle: {id} repeated, seed {seed}; the target ended with {end}");
                return Ok(0);
            }
        };
        eprintln!("raddle: {id} was not repeated: {why}");
        if crate::confirm::locate::Locator::new(&report).is_rebuilt(finding) {
            eprintln!("raddle: the program was rebuilt; `raddle confirm {}` tries", self.finding);
        }
        Ok(EXIT_DIVERGED)
    }

    /// What repeats a kept execution.
    fn plan(&self, report: &Path, name: &str, end: &Value) -> Result<Plan, Failure> {
        hooks(&self.hooks)?;
        let mut plan = kept::load(report.parent().unwrap_or(Path::new(".")), name)?;
        plan.hooks.extend(absolute(&self.hooks)?);
        // Of one that hung there is no end to wait for.
        if *end != json!(Ending::Hang) {
            plan.limit_ms = plan.limit_ms.max(LIMIT_MS);
        }
        Ok(plan)
    }

    /// A failing execution that `hunt` has kept.
    fn run_failure(&self) -> Result<u8, Failure> {
        let (file, report, at) = runs::find_failure(&self.finding)?;
        let failure = &report.failures[at];
        let id = failure.id.as_str();
        if self.is_other() {
            return self.run_other_of_failure(&file, failure);
        }
        let plan = self.plan(&file, failure.kept(), &failure.end)?;
        let ran = match self.gdb {
            true => gdb::run(&plan, self.gdb_port)?,
            false => Some(self.execute(&plan)?),
        };
        let Some((end, control)) = ran else { return Ok(killed(id)) };
        let raw = scheduling::deadlock(&control, &mut Nameless);
        let tell = |text: Option<&String>| text.into_iter().for_each(|t| eprintln!("raddle: {t}"));
        let why = match (control.divergence, other_end(end, &failure.end)) {
            (Some(why), _) | (None, Some(why)) => {
                tell(raw.as_ref());
                why
            }
            (None, None) => {
                // It is the same to the instruction, and there it has names.
                tell(raw.as_ref().and(failure.deadlock.as_ref()));
                eprintln!("raddle: {id} repeated, seed {}: {}", failure.seed, failure.effect);
                return Ok(0);
            }
        };
        eprintln!("raddle: {id} was not repeated: {why}");
        Ok(EXIT_DIVERGED)
    }

    /// Executes a failure once more, with its events as they come if they were asked for: there is
    /// no pair of accesses around which they could be shown.
    fn execute(&self, plan: &Plan) -> Result<(Ending, Control), Failure> {
        if !self.events {
            return trial::run(plan, Hearing::Threads, &mut events::Deaf);
        }
        let families = vec![Family::Memory, Family::Sync, Family::Thread];
        let table = hooks(&plan.hooks)?.hooks.iter().map(Hook::name).map(String::from).collect();
        let stderr = std::io::stderr();
        let paint = terminal::paint(&stderr);
        let mut stream = events::stream(Box::new(stderr), (Format::Text, paint), families, table);
        let ran = trial::run(plan, Hearing::Events, &mut stream)?;
        stream.finish()?;
        Ok(ran)
    }

    /// What `confirm` has stored of the finding, for the order asked for.
    fn order<'a>(&self, finding: &'a Finding) -> Result<&'a Order, Failure> {
        let id = &finding.id;
        let orders = finding.confirmation.as_ref().map_or(&[][..], |known| &known.orders);
        let fits = |order: &&Order| self.order.is_none_or(|wanted| order.order == wanted);
        let why = || match (orders.is_empty(), self.order) {
            (false, Some(order)) => format!("{id} was not seen in order {order}"),
            _ => format!("{id} was not confirmed; `raddle confirm {}` tries", self.finding),
        };
        orders.iter().find(fits).ok_or_else(|| Failure::Other(why()))
    }
}

/// gdb has ended it before its time: as far as it came it was the same.
fn killed(id: &str) -> u8 {
    eprintln!("raddle: {id} was killed, or left, by gdb");
    0
}

/// Why this is not how the execution ended, if it is not.
fn other_end(end: Ending, wanted: &Value) -> Option<String> {
    match serde_json::from_value::<Ending>(wanted.clone()) {
        Ok(wanted) if wanted == end => None,
        Ok(wanted) => Some(format!("the target ended with {end}, not with {wanted}")),
        Err(error) => Some(format!("how it ended is damaged in the report: {error}")),
    }
}

/// The interleaving, in a column for each thread.
fn show(
    finding: &Finding,
    order: &Order,
    interleaving: Option<&Interleaving>,
    base: &Path,
) -> Result<(), Failure> {
    let timeline = interleaving.and_then(|known| Timeline::recorded(finding, order, known));
    let Some(timeline) = timeline else {
        let never = match finding.kind {
            FindingKind::DataRace => "the two accesses never met",
            FindingKind::LockOrder => "nobody waited in a circle",
        };
        eprintln!("raddle: {never}, so there is nothing to show");
        return Ok(());
    };
    let stderr = std::io::stderr();
    let style = terminal::style(&stderr, base, false);
    write_timeline(&timeline, &style, &mut stderr.lock())
        .map_err(Failure::during("writing the interleaving"))
}

//! What listens to the detector: remembers what it says, and tells of new findings while the target
//! runs.

use super::library::Shelf;
use crate::progress::{self, Progress};
use crate::runs::Run;
use crate::scheduling::Naming;
use raddle_execute::{End, ExecuteError, Looked, Observer, Outcome, Stuck};
use raddle_model::finding::Finding;
use raddle_model::{Address, Event, Place, StackId, ThreadId};
use raddle_report::findings::{
    self, Block, Circumstances, Filter, Frame, Gathered, Local, Report, Target, Tool,
};
use raddle_wire::log::{HeapBlock, ThreadLocal, Wait};
use raddle_wire::options::PlaceCount;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a report is written while the target runs, at most: naming what is in it takes a while.
const INTERIM: Duration = Duration::from_secs(5);

/// What is watched, as the report has it.
pub struct Watched {
    pub program: Vec<OsString>,
    pub hooks: Vec<PathBuf>,
    pub detector: &'static str,
}

/// Gathers what a report is made of.
pub struct Watch<'a> {
    watched: Watched,
    gathered: Gathered,
    shelf: Shelf,
    filter: Filter,
    /// Where the command was started.
    base: PathBuf,
    /// Tell of findings at once.
    live: bool,
    /// Something was heard of the target.
    heard: bool,
    /// A sign of life, while the target runs and its output goes elsewhere.
    running: Option<Progress>,
    /// While the target waits for us.
    reading: Option<Progress>,
    /// How many findings were told of.
    told: usize,
    /// Where the report is kept up to date, in case we are killed.
    kept: Option<&'a Run>,
    /// When that was last written, and how many findings came since.
    written: Instant,
    unwritten: usize,
}

impl<'a> Watch<'a> {
    pub fn new(watched: Watched, filter: Filter, base: PathBuf) -> Self {
        Watch {
            watched,
            gathered: Gathered::default(),
            shelf: Shelf::new(),
            filter,
            base,
            live: false,
            heard: false,
            running: None,
            reading: None,
            told: 0,
            kept: None,
            written: Instant::now(),
            unwritten: 0,
        }
    }

    /// Tells of findings at once, if `live`, and keeps the report of `run` up to date.
    pub fn telling(mut self, live: bool, run: &'a Run) -> Self {
        self.live = live;
        self.kept = Some(run);
        // A terminal that shows what the target writes is the target's: a sign of life there would be mixed with its
        // output, and would wipe away a question that waits for an answer.
        if live && !std::io::stdout().is_terminal() {
            self.running = Some(Progress::doing(self.state()));
        }
        self
    }

    /// The target has ended.
    pub fn ended(&mut self) {
        self.running = None;
        self.reading = None;
    }

    /// What the sign of life says.
    fn state(&self) -> String {
        let name = self.watched.program.first().map(Path::new).and_then(Path::file_name);
        let name = name.unwrap_or_default().to_string_lossy();
        match self.told {
            0 => format!("watching {name}: nothing found yet"),
            1 => format!("watching {name}: 1 finding"),
            told => format!("watching {name}: {told} findings"),
        }
    }

    /// A line of ours, beside the sign of life if there is one.
    fn line(&self, line: String) {
        match &self.running {
            Some(running) => running.line(line),
            // Nothing can be done about a closed standard error.
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    /// Did the target get as far as to be watched?
    pub fn heard(&self) -> bool {
        self.heard
    }

    /// The report, however the execution ended.
    pub fn report(&mut self, outcome: &Result<Outcome, ExecuteError>) -> Report {
        let known = outcome.as_ref().ok();
        self.report_of(known, ended(outcome))
    }

    /// Where the threads stood that did not get on.
    pub fn stacks(&mut self, stuck: &Stuck) -> Vec<Vec<Frame>> {
        let stack = |wait: &Wait| self.gathered.frames((wait.stack, wait.place), &mut self.shelf);
        stuck.waits.iter().map(stack).collect()
    }

    fn report_of(&mut self, known: Option<&Outcome>, outcome: findings::Outcome) -> Report {
        let lossy = |text: &OsString| text.to_string_lossy().into_owned();
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let Watched { program, hooks, detector } = &self.watched;
        let circumstances = Circumstances {
            tool: Tool {
                name: "raddle".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                detector: (*detector).into(),
            },
            target: Target {
                argv: program.iter().map(lossy).collect(),
                cwd: self.base.to_string_lossy().into_owned(),
                hooks: hooks.iter().map(path).collect(),
            },
            outcome,
            without_symbols: known.map_or_else(Vec::new, |outcome| {
                outcome.without_symbols.iter().map(path).collect()
            }),
            warnings: known.map_or_else(Vec::new, |outcome| outcome.warnings.clone()),
        };
        self.gathered.report(circumstances, &self.filter, &mut self.shelf)
    }

    /// Writes down what was found so far: whoever kills the command leaves no time for it later.
    fn keep(&mut self) {
        let Some(run) = self.kept else { return };
        if self.unwritten == 0 || self.written.elapsed() < INTERIM {
            return;
        }
        let failure = "the command was killed before the target's end".to_owned();
        let outcome = findings::Outcome { failure: Some(failure), ..Default::default() };
        // What cannot be written now is tried again at the end, and complained of there.
        let _ = run.write(&self.report_of(None, outcome));
        (self.written, self.unwritten) = (Instant::now(), 0);
    }
}

impl Naming for Watch<'_> {
    fn lock(&mut self, lock: Address) -> String {
        self.gathered.address(lock, &mut self.shelf, &self.base)
    }
}

/// How the target ended, as the report has it.
fn ended(outcome: &Result<Outcome, ExecuteError>) -> findings::Outcome {
    let nothing = findings::Outcome::default();
    match outcome {
        Err(error) => findings::Outcome { failure: Some(error.to_string()), ..nothing },
        Ok(outcome) => match outcome.end {
            End::Exited(code) => findings::Outcome { exit: Some(code), ..nothing },
            End::Killed(signal) => findings::Outcome { signal: Some(signal), ..nothing },
            End::TimedOut => findings::Outcome { timed_out: true, ..nothing },
            End::Stopped(signal) => {
                findings::Outcome { signal: Some(signal), stopped: true, ..nothing }
            }
        },
    }
}

impl Observer for Watch<'_> {
    fn program(&mut self, process: u32) {
        self.heard = true;
        self.gathered.program(process);
    }

    fn event(&mut self, process: u32, event: Event) {
        self.gathered.event(process, &event);
    }

    fn stack(&mut self, process: u32, id: StackId, frames: Vec<Place>) {
        self.gathered.stack(process, id, frames);
    }

    fn counts(&mut self, _: u32, _: ThreadId, _: Vec<PlaceCount>) {}

    fn event_counts(&mut self, _: u32, _: ThreadId, _: Vec<(String, Place, u64)>) {}

    fn finding(
        &mut self,
        process: u32,
        number: u32,
        finding: Finding,
        block: Option<HeapBlock>,
        thread_local: Option<ThreadLocal>,
    ) {
        let block = block.map(|HeapBlock { start, size, thread, place, stack }| Block {
            start,
            size,
            thread,
            place,
            stack,
        });
        let local = thread_local.map(|ThreadLocal { thread, below }| Local { thread, below });
        self.gathered.finding(process, number, finding, block);
        if let Some(local) = local {
            self.gathered.local(process, number, local);
        }
        self.unwritten += 1;
    }

    fn looked(&mut self, process: u32, looked: Looked) {
        let Looked { accesses, synchronisations, locks } = looked;
        self.gathered.looked(process, findings::Looked { accesses, synchronisations, locks });
    }

    fn reading(&mut self, module: Option<&Path>) {
        match (&self.running, module) {
            (None, _) => self.reading = Progress::reading(module),
            (Some(running), Some(module)) => running.say(progress::reading(module)),
            (Some(running), None) => running.say(self.state()),
        }
    }

    fn idle(&mut self) {
        if self.live {
            let news = self.gathered.news(&self.filter, &mut self.shelf, &self.base);
            self.told += news.len();
            if let Some(running) = self.running.as_ref().filter(|_| !news.is_empty()) {
                running.say(self.state());
            }
            for line in news {
                self.line(format!("raddle: {line}"));
            }
        }
        self.keep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_place_in_the_report() {
        let json = |end| {
            let outcome = Outcome {
                end,
                processes: 1,
                without_symbols: Vec::new(),
                warnings: Vec::new(),
                control: Default::default(),
            };
            serde_json::to_value(super::ended(&Ok(outcome))).unwrap()
        };
        assert_eq!(json(End::Exited(3))["exit"], 3);
        assert_eq!(json(End::Killed(11))["signal"], 11);
        assert_eq!(json(End::TimedOut)["timed_out"], true);
        let stopped = json(End::Stopped(15));
        assert_eq!((&stopped["signal"], &stopped["stopped"]), (&15.into(), &true.into()));
    }
}

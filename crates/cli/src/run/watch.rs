//! What listens to the detector: remembers what it says, and tells of new findings while the target
//! runs.

use super::library::Shelf;
use crate::progress::Progress;
use raddle_execute::{End, ExecuteError, Looked, Observer, Outcome};
use raddle_model::finding::Finding;
use raddle_model::{Event, Place, StackId, ThreadId};
use raddle_report::findings::{self, Block, Circumstances, Filter, Gathered, Report, Target, Tool};
use raddle_wire::log::HeapBlock;
use raddle_wire::options::PlaceCount;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Gathers what a report is made of.
pub struct Watch {
    gathered: Gathered,
    shelf: Shelf,
    filter: Filter,
    /// Where the command was started.
    base: PathBuf,
    /// Tell of findings at once.
    live: bool,
    /// Something was heard of the target.
    heard: bool,
    /// While the target waits for us.
    reading: Option<Progress>,
}

impl Watch {
    pub fn new(filter: Filter, base: PathBuf, live: bool) -> Self {
        let (gathered, shelf) = (Gathered::default(), Shelf::new());
        Watch { gathered, shelf, filter, base, live, heard: false, reading: None }
    }

    /// Did the target get as far as to be watched?
    pub fn heard(&self) -> bool {
        self.heard
    }

    /// The report, however the execution ended.
    pub fn report(
        &mut self,
        program: &[OsString],
        hooks: Vec<PathBuf>,
        detector: &str,
        outcome: &Result<Outcome, ExecuteError>,
    ) -> Report {
        let lossy = |text: &OsString| text.to_string_lossy().into_owned();
        let known = outcome.as_ref().ok();
        let circumstances = Circumstances {
            tool: Tool {
                name: "raddle".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                detector: detector.into(),
            },
            target: Target {
                argv: program.iter().map(lossy).collect(),
                cwd: self.base.to_string_lossy().into_owned(),
                hooks: hooks.into_iter().map(|file| lossy(&file.into_os_string())).collect(),
            },
            outcome: ended(outcome),
            without_symbols: known.map_or_else(Vec::new, |outcome| {
                let paths = outcome.without_symbols.iter();
                paths.map(|path| path.to_string_lossy().into_owned()).collect()
            }),
            warnings: known.map_or_else(Vec::new, |outcome| outcome.warnings.clone()),
        };
        self.gathered.report(circumstances, &self.filter, &mut self.shelf)
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

impl Observer for Watch {
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

    fn finding(&mut self, process: u32, number: u32, finding: Finding, block: Option<HeapBlock>) {
        let block = block.map(|HeapBlock { start, size, thread, place, stack }| Block {
            start,
            size,
            thread,
            place,
            stack,
        });
        self.gathered.finding(process, number, finding, block);
    }

    fn looked(&mut self, process: u32, looked: Looked) {
        let Looked { accesses, synchronisations, locks } = looked;
        self.gathered.looked(process, findings::Looked { accesses, synchronisations, locks });
    }

    fn reading(&mut self, module: Option<&Path>) {
        self.reading = Progress::reading(module);
    }

    fn idle(&mut self) {
        if self.live {
            for line in self.gathered.news(&self.filter, &mut self.shelf, &self.base) {
                // Nothing can be done about a closed standard error.
                let _ = writeln!(std::io::stderr(), "raddle: {line}");
            }
        }
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

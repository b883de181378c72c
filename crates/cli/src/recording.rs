//! Listening to a replay for the interleaving around its race, or before its deadlock.

use crate::run::library::Shelf;
use raddle_execute::{Control, Observer};
use raddle_model::{Event, Place, StackId, ThreadId};
use raddle_report::findings::interleaving::{Interleaving, Met, Recorder, Waiting};
use raddle_wire::options::PlaceCount;
use std::path::Path;

/// Listens.
#[derive(Debug, Default)]
pub struct Recording(Recorder);

impl Recording {
    /// What it heard around the first meeting, or else before threads waited for each other's locks,
    /// with paths relative to `base`.
    pub fn interleaving(self, control: &Control, base: &Path) -> Option<Interleaving> {
        let Some(meeting) = control.meetings.first() else {
            return self.0.deadlock(&circle(control), base, &mut Shelf::new());
        };
        let sides = [&meeting.first, &meeting.second];
        let met = Met {
            threads: sides.map(|side| side.thread),
            memory: sides.map(|side| (side.address, side.size)),
            order: meeting.order,
        };
        self.0.interleaving(&met, base, &mut Shelf::new())
    }
}

/// Those who wait for each other's locks.
fn circle(control: &Control) -> Vec<Waiting> {
    let waits = control.stuck.iter().filter(|stuck| stuck.cycle).flat_map(|stuck| &stuck.waits);
    let waiting = waits.filter_map(|wait| {
        let lock = wait.wants.or(wait.futex)?;
        Some(Waiting { thread: wait.thread, lock, place: wait.place, stack: wait.stack })
    });
    waiting.collect()
}

impl Observer for Recording {
    fn event(&mut self, _: u32, event: Event) {
        self.0.event(event);
    }

    fn stack(&mut self, _: u32, id: StackId, frames: Vec<Place>) {
        self.0.stack(id, frames);
    }

    fn counts(&mut self, _: u32, _: ThreadId, _: Vec<PlaceCount>) {}

    fn event_counts(&mut self, _: u32, _: ThreadId, _: Vec<(String, Place, u64)>) {}

    fn value(&mut self, _: u32, order: u64, after: bool, value: u64) {
        self.0.value(order, after, value);
    }
}

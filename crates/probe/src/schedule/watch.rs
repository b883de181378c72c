//! Watched places: a thread that is about to touch memory there stops first, so that a policy sees
//! what it is about to do, and two that are about to collide can be seen to.
//!
//! A place is watched where events are made ([`crate::thread::ThreadState::emit`]): whatever is an
//! event of memory, by an instruction, a string, the lanes of a vector or a function such as
//! `memcpy`, can be watched alike.

use super::{Scheduler, State};
use crate::monitor::modules::LoadedModule;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_dynamorio::process;
use raddle_model::{Address, EventKind, ModuleId, Place, StackId, ThreadId};
use raddle_schedule::{Access, Candidate, Side, Step, meetings};
use raddle_wire::log::{Meeting, MetAccess, Record};
use raddle_wire::options::{PlaceFilter, WatchedPlace};
use std::ops::Range;
use std::sync::RwLock;

/// Meetings written down of one execution: the first tells all, the others how often.
const MOST_MEETINGS: u32 = 1_000;

/// The places that are watched.
#[derive(Debug)]
pub struct Watched {
    asked: Vec<WatchedPlace>,
    /// Those whose modules are loaded.
    found: RwLock<Vec<Found>>,
}

/// A watched place whose module is loaded.
#[derive(Debug)]
struct Found {
    /// Index of what was asked for.
    index: usize,
    code: Stretch,
    /// Absent also while the caller's module is not loaded.
    caller: Option<Stretch>,
}

/// A stretch of a loaded module's code.
#[derive(Debug)]
struct Stretch {
    module: ModuleId,
    offsets: Range<u64>,
}

impl Stretch {
    fn new(module: ModuleId, code: &PlaceFilter) -> Stretch {
        Stretch { module, offsets: code.start..code.end }
    }

    fn holds(&self, place: Place) -> bool {
        self.module == place.module && self.offsets.contains(&place.offset)
    }

    /// Is there a call in it that this is a return address of? A call is known by a byte of it or
    /// by where it returns to.
    fn calls(&self, place: Place) -> bool {
        let from = self.offsets.start.saturating_sub(1);
        self.module == place.module && (from..=self.offsets.end).contains(&place.offset)
    }
}

impl Watched {
    pub fn new(places: &[WatchedPlace]) -> Watched {
        Watched { asked: places.to_vec(), found: RwLock::default() }
    }

    /// A module was loaded: places in it have numbers now.
    pub fn module_loaded(&self, module: &LoadedModule) {
        let mut found = self.found.write().unwrap_or_else(|e| e.into_inner());
        for (index, watched) in self.asked.iter().enumerate() {
            if watched.code.module == module.path {
                found.retain(|row| row.index != index);
                let code = Stretch::new(module.id, &watched.code);
                found.push(Found { index, code, caller: None });
            }
        }
        for row in found.iter_mut() {
            let caller = self.asked[row.index].caller.as_ref();
            if let Some(caller) = caller.filter(|caller| caller.module == module.path) {
                row.caller = Some(Stretch::new(module.id, caller));
            }
        }
    }

    /// Is nothing watched?
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// The watched places that this is, when called from where it must be: their indices.
    pub fn all(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        writes: bool,
    ) -> Vec<usize> {
        let mut all = Vec::new();
        if self.asked.is_empty() {
            return all;
        }
        let found = self.found.read().unwrap_or_else(|e| e.into_inner());
        let here = found.iter().filter(|row| row.code.holds(spot.place));
        let mut callers: Option<Vec<Place>> = None;
        for Found { index, caller, .. } in here {
            let Some(watched) = self.asked.get(*index) else { continue };
            if !thread.updates && watched.writes.is_some_and(|wanted| wanted != writes) {
                continue;
            }
            if watched.caller.is_none() {
                all.push(*index);
                continue;
            }
            let callers = callers.get_or_insert_with(|| {
                let addresses = probe.stacks.callers(thread, spot);
                addresses.iter().map(|a| probe.modules.place_of(*a)).collect()
            });
            if caller.as_ref().is_some_and(|caller| callers.iter().any(|p| caller.calls(*p))) {
                all.push(*index);
            }
        }
        all
    }
}

impl Scheduler {
    /// An event of the current thread, before it takes effect. Returns the memory that a watched
    /// access is now going to touch.
    pub fn event(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        kind: &EventKind,
    ) -> Option<(Address, u64)> {
        let (address, size, writes, atomic) = match *kind {
            EventKind::Access { kind, address, size } => {
                (address, u64::from(size), kind.writes(), kind.is_atomic())
            }
            EventKind::Range { kind, address, length } => (address, length, kind.writes(), false),
            EventKind::Free { address, size } => (address, size, true, false),
            _ => {
                self.lock_event(probe, thread, spot, kind);
                return None;
            }
        };
        if self.watched.asked.is_empty() || !self.controls_many(thread) {
            return None;
        }
        if thread.updates && !writes {
            // Nobody can come between it and its write: they are one step.
            return None;
        }
        let found = self.watched.all(probe, thread, spot, writes);
        let watched = found.first().and_then(|at| self.watched.asked.get(*at))?;
        if watched.nearby {
            // What is nearby was not found to race: what the thread keeps to itself is none of it.
            thread.find_stack(spot.sp);
            if (thread.stack_region.0..thread.stack_region.1).contains(&address.0) {
                return None;
            }
        }
        let side = match watched.sides {
            (true, true) => Side::Both,
            (true, false) => Side::First,
            _ => Side::Second,
        };
        let size = watched.size.unwrap_or(0).max(size);
        let stack = match probe.options.stacks {
            true => probe.stacks.capture_and_tell(probe, thread, spot),
            false => StackId::NONE,
        };
        if let Some(entry) = self.lock().entry(thread.id) {
            (entry.spot, entry.stack) = (Some(spot), stack);
        }
        let access = Access { side, place: spot.place, address, size, writes, atomic };
        self.give_way(probe, thread, Step::Access(access));
        Some((address, size))
    }

    /// Writes down who met, when one of them is chosen.
    pub(super) fn note_meetings(
        &self,
        reporter: &mut ThreadState,
        state: &mut State,
        runnable: &[Candidate],
        chosen: ThreadId,
    ) {
        for met in meetings(runnable) {
            if met.first.0 != chosen && met.second.0 != chosen || state.meetings >= MOST_MEETINGS {
                continue;
            }
            state.meetings += 1;
            let other = if met.first.0 == chosen { met.second.0 } else { met.first.0 };
            state.met = Some((chosen, other));
            let side = |(thread, access): (ThreadId, Access)| MetAccess {
                thread,
                place: access.place,
                stack: state.table.get(thread).map_or(StackId::NONE, |e| e.stack),
                address: access.address,
                size: access.size,
                writes: access.writes,
                atomic: access.atomic,
                value: value_at(access.address, access.size),
            };
            let meeting = Meeting {
                point: state.points,
                order: reporter.log().map_or(0, |log| log.order()),
                first: side(met.first),
                second: side(met.second),
                first_went: met.first.0 == chosen,
            };
            reporter.write(&Record::Meeting(Box::new(meeting)));
        }
    }
}

/// What stands in memory, up to eight bytes.
pub fn value_at(address: Address, size: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let size = size.clamp(1, 8) as usize;
    (process::read(address.0, &mut bytes[..size]) == size).then(|| u64::from_le_bytes(bytes))
}

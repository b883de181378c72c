//! Which events are shown: by family, thread and place. The probe already leaves out what it can;
//! here the rest is left out, by the same rules for a stream and for counts.

use crate::arguments::ThreadSelector;
use raddle_model::{Event, Family, Place, ThreadId};
use raddle_report::World;
use raddle_wire::options::PlaceFilter;
use std::collections::BTreeMap;

/// What was asked for.
#[derive(Debug)]
pub struct Selection {
    families: Vec<Family>,
    threads: Vec<ThreadSelector>,
    places: Vec<PlaceFilter>,
    /// Threads that were there, for a word about those that were not.
    seen: BTreeMap<ThreadId, Option<String>>,
    /// Selectors that selected something.
    used: Vec<bool>,
}

impl Selection {
    pub fn new(
        families: Vec<Family>,
        threads: Vec<ThreadSelector>,
        places: Vec<PlaceFilter>,
    ) -> Self {
        let used = vec![false; threads.len()];
        Selection { families, threads, places, seen: BTreeMap::new(), used }
    }

    /// Was this family asked for?
    pub fn wants_family(&self, family: Family) -> bool {
        self.families.contains(&family)
    }

    /// The places asked for; empty means everywhere.
    pub fn places(&self) -> &[PlaceFilter] {
        &self.places
    }

    /// Is this event to be shown?
    pub fn wants(&mut self, event: &Event, world: &World) -> bool {
        // In this order: threads are noted whatever else is asked for.
        self.wants_thread(event.thread, world.thread_name(event.thread))
            && self.wants_family(event.kind.family())
            && self.wants_place(event.place, world)
    }

    /// Is this thread to be shown?
    pub fn wants_thread(&mut self, thread: ThreadId, name: Option<&str>) -> bool {
        if self.threads.is_empty() {
            return true;
        }
        if thread == ThreadId(0) {
            // The process itself.
            return false;
        }
        let known = self.seen.entry(thread).or_default();
        if known.as_deref() != name {
            *known = name.map(String::from);
        }
        let mut wanted = false;
        for (selector, used) in self.threads.iter().zip(&mut self.used) {
            if selector.selects(thread, name) {
                *used = true;
                wanted = true;
            }
        }
        wanted
    }

    /// Is this place to be shown?
    pub fn wants_place(&self, place: Place, world: &World) -> bool {
        self.places.is_empty()
            || world.module(place.module).is_some_and(|path| {
                self.places.iter().any(|filter| {
                    filter.module == **path && (filter.start..filter.end).contains(&place.offset)
                })
            })
    }

    /// A sentence about threads that were asked for and never came.
    pub fn missing_threads(&self) -> Option<String> {
        let missing: Vec<String> = self
            .threads
            .iter()
            .zip(&self.used)
            .filter(|(_, used)| !**used)
            .map(|(selector, _)| match selector {
                ThreadSelector::Number(thread) => thread.to_string(),
                ThreadSelector::Name(name) => format!("\"{name}\""),
            })
            .collect();
        if missing.is_empty() || self.seen.is_empty() {
            return None;
        }
        let seen: Vec<String> = self
            .seen
            .iter()
            .map(|(thread, name)| match name {
                Some(name) => format!("{thread} \"{name}\""),
                None => thread.to_string(),
            })
            .collect();
        Some(format!("there was no thread {}; there were {}", missing.join(", "), seen.join(", ")))
    }
}

/// The family of an event that is known by its name ([`raddle_model::EventKind::name`]) alone.
pub fn family_of(name: &str) -> Family {
    let first = name.split('-').next().unwrap_or(name);
    match first {
        "read" | "write" | "atomic" | "spin" | "allocate" | "free" | "memory" | "benign" => {
            Family::Memory
        }
        "thread" => Family::Thread,
        "function" => Family::Function,
        "output" => Family::Output,
        "module" | "signal" | "process" => Family::Process,
        _ => Family::Sync,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::{Address, EventKind, ModuleId, StackId};

    fn event(thread: u32, offset: u64, kind: EventKind) -> Event {
        let place = Place { module: ModuleId(1), offset };
        Event { order: 0, thread: ThreadId(thread), place, stack: StackId::NONE, kind }
    }

    fn world() -> World {
        let mut world = World::default();
        world.begin(&event(
            1,
            0,
            EventKind::ModuleLoad {
                module: ModuleId(1),
                path: "/bin/bank".into(),
                base: Address(0x1000),
                end: Address(0x2000),
            },
        ));
        world.begin(&event(2, 0, EventKind::ThreadName { name: "teller".into() }));
        world
    }

    #[test]
    fn family_thread_and_place_must_all_agree() {
        let world = world();
        let places = vec![PlaceFilter { module: "/bin/bank".into(), start: 0x10, end: 0x20 }];
        let threads = vec!["teller".parse().unwrap()];
        let mut selection = Selection::new(vec![Family::Thread], threads, places);
        let exit = |thread, offset| event(thread, offset, EventKind::ThreadExit);
        assert!(selection.wants(&exit(2, 0x10), &world));
        assert!(!selection.wants(&exit(2, 0x20), &world));
        assert!(!selection.wants(&exit(1, 0x10), &world));
        assert!(!selection.wants(&event(2, 0x10, EventKind::TaskWaited), &world));
    }

    #[test]
    fn a_name_tells_the_family() {
        use raddle_model::{AccessKind, LockMode};
        let address = Address(1);
        let kinds = [
            EventKind::Access { kind: AccessKind::AtomicUpdate, address, size: 4 },
            EventKind::Range { kind: AccessKind::Write, address, length: 4 },
            EventKind::Free { address, size: 0 },
            EventKind::Access { kind: AccessKind::SpinRead, address, size: 4 },
            EventKind::MemoryRenewed { address, size: 4 },
            EventKind::BenignRace { address, size: 4 },
            EventKind::ConditionLoopLeft { condition: address },
            EventKind::DetectionSwitched { on: true },
            EventKind::LockAcquired { lock: address, mode: LockMode::Shared },
            EventKind::ConditionSignal { condition: address, all: true },
            EventKind::TaskWaited,
            EventKind::TransactionStart,
            EventKind::FutexWake { address, count: 1 },
            EventKind::ThreadExit,
            EventKind::FunctionExit { hook: 0, result: None },
            EventKind::Output { descriptor: 1, length: 1 },
            EventKind::ModuleUnload { module: ModuleId(1) },
            EventKind::SignalDelivered { signal: 1 },
            EventKind::ProcessEnd { status: None },
        ];
        for kind in kinds {
            assert_eq!(family_of(kind.name()), kind.family(), "{}", kind.name());
        }
    }

    #[test]
    fn a_thread_that_never_came_is_said() {
        let world = world();
        let threads = vec!["T2".parse().unwrap(), "teler".parse().unwrap()];
        let mut selection = Selection::new(vec![Family::Thread], threads, Vec::new());
        selection.wants(&event(1, 0, EventKind::ThreadExit), &world);
        selection.wants(&event(2, 0, EventKind::ThreadExit), &world);
        assert_eq!(
            selection.missing_threads().unwrap(),
            "there was no thread \"teler\"; there were T1, T2 \"teller\""
        );
        let all = Selection::new(vec![Family::Thread], Vec::new(), Vec::new());
        assert_eq!(all.missing_threads(), None);
    }
}

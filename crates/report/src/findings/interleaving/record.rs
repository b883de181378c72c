//! From the events of a replay to the interleaving around its race, or to how its deadlock came about.
//!
//! The recorder hears the whole execution but keeps a window of it: what came shortly before the two
//! accesses met, and what came shortly after. Which locks each thread holds is followed from the
//! beginning, because one may have been taken long before.

use super::{Interleaving, Lane, Step, StepKind, Values};
use crate::events::text::{object, what};
use crate::findings::runtime::own_frame;
use crate::findings::schema::Frame;
use crate::findings::{Library, stack};
use crate::world::World;
use raddle_model::{AccessKind, Address, Event, EventKind, Place, StackId, ThreadId};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;

/// Events kept while it is not known which of them are around the meeting. Other threads' events
/// count too: this many are some tenths of a second of the busiest programs.
const KEPT: usize = 20_000;
/// Steps of a thread shown before its racing access.
const BEFORE: usize = 6;
/// Steps of a thread shown after both.
const AFTER: usize = 4;
/// Steps of a thread shown between the two accesses.
const BETWEEN: usize = 8;

/// When and where the two accesses met.
#[derive(Debug, Clone, Copy)]
pub struct Met {
    /// Who stood at the finding's first access, and who at its second.
    pub threads: [ThreadId; 2],
    /// The memory of each: first byte and bytes.
    pub memory: [(Address, u64); 2],
    /// Events from this number on came after.
    pub order: u64,
}

/// One who waits in a deadlock.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// Who.
    pub thread: ThreadId,
    /// For which lock.
    pub lock: Address,
    /// Where it asked for it.
    pub place: Place,
    /// Called from where.
    pub stack: StackId,
}

/// Listens to an execution.
#[derive(Debug, Default)]
pub struct Recorder {
    world: World,
    kept: VecDeque<Kept>,
    /// What stood in memory before and after accesses, by their numbers.
    values: HashMap<u64, [Option<u64>; 2]>,
    /// The locks that threads hold.
    held: BTreeMap<ThreadId, Vec<Held>>,
    /// The last request of each thread for a lock, by its number.
    asked: BTreeMap<ThreadId, u64>,
    /// Who created whom, and where.
    creators: BTreeMap<ThreadId, (ThreadId, StackId, Place)>,
}

#[derive(Debug)]
struct Kept {
    event: Event,
    /// After the event, by its thread.
    holds: Vec<Held>,
    /// The write of an instruction that reads the same memory first. To other threads that is one step,
    /// made when the instruction runs, whoever ran between the two events.
    updates: bool,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    lock: Address,
    stack: StackId,
    place: Place,
    /// The event that took it.
    order: u64,
}

impl Recorder {
    /// An event, in order.
    pub fn event(&mut self, event: Event) {
        self.world.begin(&event);
        let held = self.held.entry(event.thread).or_default();
        let mut take = |lock| {
            let Event { stack, place, order, .. } = event;
            held.push(Held { lock, stack, place, order });
        };
        match event.kind {
            EventKind::LockAcquired { lock, .. } => take(lock),
            EventKind::ConditionWaitEnd { lock, .. } => take(lock),
            EventKind::LockReleased { lock, .. } | EventKind::ConditionWaitBegin { lock, .. } => {
                // A lock taken twice is given back twice.
                if let Some(at) = held.iter().rposition(|known| known.lock == lock) {
                    held.remove(at);
                }
            }
            EventKind::LockRequested { .. } => {
                self.asked.insert(event.thread, event.order);
            }
            EventKind::ThreadCreate { child } => {
                self.creators.insert(child, (event.thread, event.stack, event.place));
            }
            _ => {}
        }
        if kind_of(&event.kind).is_none() {
            return;
        }
        let holds = held.clone();
        let updates = self.take_read_of(&event);
        self.kept.push_back(Kept { event, holds, updates });
        if self.kept.len() > KEPT
            && let Some(forgotten) = self.kept.pop_front()
        {
            self.values.remove(&forgotten.event.order);
        }
    }

    /// Takes away the read of the instruction whose write this is, if there is one.
    fn take_read_of(&mut self, write: &Event) -> bool {
        let EventKind::Access { kind: AccessKind::Write, address, size } = write.kind else {
            return false;
        };
        let read = EventKind::Access { kind: AccessKind::Read, address, size };
        let last = self.kept.iter().rposition(|kept| kept.event.thread == write.thread);
        let found = last.filter(|at| {
            let event = &self.kept[*at].event;
            event.place == write.place && event.kind == read
        });
        found.and_then(|at| self.kept.remove(at)).is_some()
    }

    /// A call stack.
    pub fn stack(&mut self, id: StackId, frames: Vec<Place>) {
        self.world.add_stack(id, frames);
    }

    /// What stood in the memory of an access.
    pub fn value(&mut self, order: u64, after: bool, value: u64) {
        self.values.entry(order).or_default()[usize::from(after)] = Some(value);
    }

    /// The interleaving around a meeting; none if one of the two accesses was never made.
    pub fn interleaving(
        mut self,
        met: &Met,
        base: &Path,
        library: &mut dyn Library,
    ) -> Option<Interleaving> {
        let races = [0, 1].map(|lane| self.race(met, lane));
        let [Some(first), Some(second)] = races else { return None };
        let mut steps = self.held_before(met, [first, second], base, library);
        for at in self.window(met, [first, second]) {
            let event = &self.kept[at].event;
            let lane = usize::from(event.thread == met.threads[1]);
            let kind = match at == first || at == second {
                true => StepKind::Race,
                false => kind_of(&event.kind).unwrap_or(StepKind::Sync),
            };
            steps.push(self.step(at, lane, kind, base, library));
        }
        Some(Interleaving { lanes: self.lanes(&met.threads), steps })
    }

    /// How a circle of threads came to wait for each other; none of what is no circle.
    pub fn deadlock(
        mut self,
        waits: &[Waiting],
        base: &Path,
        library: &mut dyn Library,
    ) -> Option<Interleaving> {
        let mut steps: Vec<(u64, Step)> = Vec::new();
        for (lane, wait) in waits.iter().enumerate() {
            let own = |at: &usize| self.kept[*at].event.thread == wait.thread;
            let last: Vec<usize> = (0..self.kept.len()).rev().filter(own).take(BEFORE).collect();
            let first = last.last().map_or(u64::MAX, |at| self.kept[*at].event.order);
            let held = self.held.get(&wait.thread).cloned().unwrap_or_default();
            let earlier = self.taken_before(first, lane, &held, base, library);
            steps.extend(earlier.into_iter().map(|step| (0, step)));
            for at in last {
                let event = &self.kept[at].event;
                let (order, kind) = (event.order, kind_of(&event.kind).unwrap_or(StepKind::Sync));
                steps.push((order, self.step(at, lane, kind, base, library)));
            }
            // What a thread waits in is the last that it does.
            let asked = self.asked.get(&wait.thread).copied().unwrap_or(u64::MAX).max(first);
            steps.push((asked, self.request(lane, wait, &held, base, library)));
        }
        steps.sort_by_key(|(order, _)| *order);
        let threads: Vec<ThreadId> = waits.iter().map(|wait| wait.thread).collect();
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        (waits.len() > 1).then(|| Interleaving { lanes: self.lanes(&threads), steps })
    }

    /// A thread asks for a lock that it will not get.
    fn request(
        &mut self,
        lane: usize,
        wait: &Waiting,
        held: &[Held],
        base: &Path,
        library: &mut dyn Library,
    ) -> Step {
        let owner = self.held.iter().find(|(thread, held)| {
            **thread != wait.thread && held.iter().any(|held| held.lock == wait.lock)
        });
        let owner = owner.map(|(thread, _)| format!(", which {thread} holds"));
        let name =
            self.world.address(wait.lock, stack::as_symbols(library)).text(wait.lock.0, base);
        Step {
            lane,
            kind: StepKind::Wait,
            what: format!("asks for {}{}", lock_name(&name), owner.unwrap_or_default()),
            at: self.frame(wait.stack, wait.place, library),
            holds: self.lock_names(held, base, library),
            values: None,
        }
    }

    /// A kept event.
    fn step(
        &mut self,
        at: usize,
        lane: usize,
        kind: StepKind,
        base: &Path,
        library: &mut dyn Library,
    ) -> Step {
        let kept = &self.kept[at];
        let (event, holds, updates) = (kept.event.clone(), kept.holds.clone(), kept.updates);
        let mut what = self.what(&event, kind, base, library);
        if updates {
            what = format!("read and {what}");
        }
        let mut at = self.frame(event.stack, event.place, library);
        if kind == StepKind::Start {
            // A thread begins nowhere in particular: what matters is who made it.
            let creator = self.creators.get(&event.thread).copied();
            at = creator.and_then(|(_, stack, place)| self.frame(stack, place, library));
        }
        let holds = self.lock_names(&holds, base, library);
        let values = self.values(&event);
        Step { lane, kind, what, at, holds, values }
    }

    fn lanes(&self, threads: &[ThreadId]) -> Vec<Lane> {
        let name = |thread| self.world.thread_name(thread).map(String::from);
        threads.iter().map(|&thread| Lane { thread, name: name(thread) }).collect()
    }

    /// Index of the access that a thread stood at when they met.
    fn race(&self, met: &Met, lane: usize) -> Option<usize> {
        self.kept.iter().position(|Kept { event, .. }| {
            event.order >= met.order
                && event.thread == met.threads[lane]
                && touches(&event.kind, met.memory[lane]) == Some(true)
        })
    }

    /// Which of the kept events are shown.
    fn window(&self, met: &Met, races: [usize; 2]) -> Vec<usize> {
        let (early, late) = (races[0].min(races[1]), races[0].max(races[1]));
        let mut shown = Vec::new();
        for thread in met.threads {
            // Of memory only that of the race: hooked functions touch much else.
            let own = |at: &usize| {
                let event = &self.kept[*at].event;
                let elsewhere = |memory| touches(&event.kind, memory) == Some(false);
                event.thread == thread && !met.memory.into_iter().all(elsewhere)
            };
            shown.extend((0..early).rev().filter(own).take(BEFORE));
            shown.extend((early + 1..late).filter(own).take(BETWEEN));
            shown.extend((late + 1..self.kept.len()).filter(own).take(AFTER));
        }
        shown.extend([early, late]);
        shown.sort_unstable();
        shown.dedup();
        shown
    }

    /// Locks that are held at the race and were taken before what is shown.
    fn held_before(
        &mut self,
        met: &Met,
        races: [usize; 2],
        base: &Path,
        library: &mut dyn Library,
    ) -> Vec<Step> {
        let shown = self.window(met, races);
        let mut steps = Vec::new();
        for (lane, race) in races.into_iter().enumerate() {
            let first = shown.iter().map(|at| &self.kept[*at].event);
            let first = first.filter(|event| event.thread == met.threads[lane]).map(|e| e.order);
            let first = first.min().unwrap_or(0);
            let held = self.kept[race].holds.clone();
            steps.extend(self.taken_before(first, lane, &held, base, library));
        }
        steps
    }

    /// Those of the locks that were taken before an event.
    fn taken_before(
        &mut self,
        order: u64,
        lane: usize,
        held: &[Held],
        base: &Path,
        library: &mut dyn Library,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        for held in held.iter().filter(|held| held.order < order) {
            let name = self.lock_names(&[*held], base, library).join("");
            let at = self.frame(held.stack, held.place, library);
            let what = format!("took {name} earlier");
            let (kind, holds) = (StepKind::Take, vec![name]);
            steps.push(Step { lane, kind, what, at, holds, values: None });
        }
        steps
    }

    fn what(
        &mut self,
        event: &Event,
        kind: StepKind,
        base: &Path,
        library: &mut dyn Library,
    ) -> String {
        let symbols = stack::as_symbols(library);
        let on = object(&event.kind, base, &mut self.world, symbols);
        match (&event.kind, kind) {
            (EventKind::ThreadStart { creator, .. }, _) => match creator {
                Some(creator) => format!("starts, created by {creator}"),
                None => "starts".into(),
            },
            (EventKind::ThreadExit, _) => "ends".into(),
            (EventKind::LockAcquired { .. }, _) => format!("takes {}", lock_name(&on)),
            (EventKind::LockReleased { .. }, _) => format!("releases {}", lock_name(&on)),
            (EventKind::Free { .. }, _) => format!("free, {on}"),
            (kind, StepKind::Race | StepKind::Access) => {
                let bytes = if length(kind) == Some(1) { "byte" } else { "bytes" };
                format!("{} {bytes}, {on}", what(kind))
            }
            (kind, _) => format!("{} {on}", what(kind)).trim_end().to_owned(),
        }
    }

    /// The frame of the program's own, with its line of source.
    fn frame(&mut self, stack: StackId, place: Place, library: &mut dyn Library) -> Option<Frame> {
        let mut calls = stack::named(&mut self.world, stack, place, library);
        stack::with_source(&mut calls, library);
        let own = own_frame(&calls).unwrap_or(0);
        let frame = (own < calls.len()).then(|| calls.swap_remove(own))?;
        (frame.module.is_some() || frame.offset.0 != 0).then_some(frame)
    }

    fn lock_names(&mut self, held: &[Held], base: &Path, library: &mut dyn Library) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for Held { lock, .. } in held {
            let name = self.world.address(*lock, stack::as_symbols(library)).text(lock.0, base);
            let name = lock_name(&name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn values(&self, event: &Event) -> Option<Values> {
        let (size, writes) = match event.kind {
            EventKind::Access { kind, size, .. } => (u64::from(size), kind.writes()),
            EventKind::Range { kind, length, .. } => (length, kind.writes()),
            _ => return None,
        };
        let [before, after] = self.values.get(&event.order).copied().unwrap_or_default();
        let hex = |value: Option<u64>| value.map(|value| format!("{value:#x}"));
        Some(Values { size: size.min(8), writes, before: hex(before), after: hex(after) })
    }
}

/// Bytes that an access touches; none for what is no access.
fn length(kind: &EventKind) -> Option<u64> {
    match *kind {
        EventKind::Access { size, .. } => Some(u64::from(size)),
        EventKind::Range { length, .. } => Some(length),
        EventKind::Free { size, .. } => Some(size),
        _ => None,
    }
}

/// Does an access touch this memory? None for what is no access.
fn touches(kind: &EventKind, (address, size): (Address, u64)) -> Option<bool> {
    let (start, length) = match *kind {
        EventKind::Access { address, size, .. } => (address, u64::from(size)),
        EventKind::Range { address, length, .. } => (address, length),
        EventKind::Free { address, size } => (address, size),
        _ => return None,
    };
    let end = |start: Address, length: u64| start.0.saturating_add(length.max(1));
    Some(start.0 < end(address, size) && address.0 < end(start, length))
}

/// A bare address is called what it is.
fn lock_name(name: &str) -> String {
    if name.starts_with("0x") { format!("the lock at {name}") } else { name.to_owned() }
}

/// What sort of step an event is; none for what tells nothing about order: the attempt before a lock
/// is taken, the futex below it, memory that comes and goes.
fn kind_of(kind: &EventKind) -> Option<StepKind> {
    use EventKind::*;
    match kind {
        ThreadStart { .. } => Some(StepKind::Start),
        ThreadExit => Some(StepKind::End),
        Access { .. } | Range { .. } | Free { .. } => Some(StepKind::Access),
        LockAcquired { .. } => Some(StepKind::Take),
        LockReleased { .. } => Some(StepKind::Release),
        ThreadCreate { .. }
        | ThreadJoined { .. }
        | ConditionSignal { .. }
        | ConditionWaitBegin { .. }
        | ConditionWaitEnd { .. }
        | BarrierEnter { .. }
        | BarrierLeave { .. }
        | SemaphorePost { .. }
        | SemaphoreAcquired { .. }
        | OnceBegin { .. }
        | OnceEnd { .. }
        | OncePassed { .. }
        | TeamFork { .. }
        | TeamBodyBegin { .. }
        | TeamBodyEnd { .. }
        | TeamJoin { .. }
        | TaskCreate { .. }
        | TaskBegin { .. }
        | TaskEnd { .. }
        | TaskWaited
        | LockFailed { .. }
        | Release { .. }
        | Acquire { .. }
        | TransactionStart
        | TransactionCommit
        | TransactionAbort
        | SignalDelivered { .. } => Some(StepKind::Sync),
        ThreadName { .. }
        | ThreadCreated { .. }
        | ThreadDetached { .. }
        | ThreadCancelled { .. }
        | Allocate { .. }
        | LockCreated { .. }
        | LockDestroyed { .. }
        | LockRequested { .. }
        | BarrierCreated { .. }
        | SemaphoreCreated { .. }
        | ConditionLoopLeft { .. }
        | LockHandsOver { .. }
        | AtomicUpdated { .. }
        | MemoryRenewed { .. }
        | BenignRace { .. }
        | IgnoreBegin { .. }
        | IgnoreEnd { .. }
        | DetectionSwitched { .. }
        | FunctionEnter { .. }
        | FunctionExit { .. }
        | TransactionAccess { .. }
        | FutexWait { .. }
        | FutexWaitEnd { .. }
        | FutexWake { .. }
        | ModuleLoad { .. }
        | ModuleUnload { .. }
        | Output { .. }
        | ProcessForked { .. }
        | ProcessExec { .. }
        | ProcessEnd { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed::{BANK, Table, place};
    use raddle_model::{AccessKind, LockMode, ModuleId};

    const COUNTER: Address = Address(BANK + 0x4010);
    const LOCK: Address = Address(BANK + 0x4040);

    /// T2 reads the counter at line 20 with a lock, T3 writes it at line 16 without; it is known
    /// from event `met` on that they stood there at once.
    fn recorded(noise: u64) -> Interleaving {
        recorded_of(noise, 4)
    }

    fn recorded_of(noise: u64, size: u8) -> Interleaving {
        let mut recorder = Recorder::default();
        let mut order = 0;
        let mut tell = |recorder: &mut Recorder, thread, line: u64, kind| {
            let (thread, place, stack) = (ThreadId(thread), place(1, 0x100 + line), StackId::NONE);
            recorder.event(Event { order, thread, place, stack, kind });
            order += 1;
            order - 1
        };
        let load = EventKind::ModuleLoad {
            module: ModuleId(1),
            path: "/w/bank".into(),
            base: Address(BANK),
            end: Address(BANK + 0x5000),
        };
        let access = |kind| EventKind::Access { kind, address: COUNTER, size: size.into() };
        let (lock, mode) = (LOCK, LockMode::Exclusive);
        tell(&mut recorder, 1, 0, load);
        tell(&mut recorder, 1, 48, EventKind::ThreadCreate { child: ThreadId(3) });
        let start = EventKind::ThreadStart { creator: Some(ThreadId(1)), os_id: 7 };
        tell(&mut recorder, 3, 0, start);
        tell(&mut recorder, 2, 32, EventKind::LockRequested { lock, mode, waits: true });
        tell(&mut recorder, 2, 32, EventKind::LockAcquired { lock, mode });
        let elsewhere =
            EventKind::Range { kind: AccessKind::Read, address: Address(0x20), length: 9 };
        tell(&mut recorder, 3, 64, elsewhere);
        // An earlier access of the same place is not the race.
        let early = tell(&mut recorder, 3, 16, access(AccessKind::Write));
        recorder.value(early, false, 0);
        recorder.value(early, true, 1);
        for _ in 0..noise {
            tell(&mut recorder, 2, 64, EventKind::SemaphorePost { semaphore: Address(0x10) });
        }
        let met = early + noise + 1;
        let read = tell(&mut recorder, 2, 20, access(AccessKind::Read));
        recorder.value(read, false, 1);
        let write = tell(&mut recorder, 3, 16, access(AccessKind::Write));
        recorder.value(write, false, 1);
        recorder.value(write, true, u64::from(u32::MAX));
        tell(&mut recorder, 2, 32, EventKind::LockReleased { lock, mode: None });
        tell(&mut recorder, 1, 48, EventKind::SemaphorePost { semaphore: Address(0x10) });
        let threads = [ThreadId(2), ThreadId(3)];
        let met = Met { threads, memory: [(COUNTER, 4); 2], order: met };
        recorder.interleaving(&met, Path::new("/w"), &mut Table).unwrap()
    }

    fn told(interleaving: &Interleaving) -> Vec<String> {
        let step = |step: &Step| {
            let values = step.values.as_ref().and_then(Values::words).unwrap_or_default();
            let line = step.at.as_ref().and_then(|at| at.line).unwrap_or(0);
            format!("{} {:?} {line} {} {values} {:?}", step.lane, step.kind, step.what, step.holds)
        };
        interleaving.steps.iter().map(step).collect()
    }

    #[test]
    fn the_two_threads_around_their_meeting() {
        assert_eq!(
            told(&recorded(0)),
            [
                r#"1 Start 48 starts, created by T1  []"#,
                r#"0 Take 32 takes m  ["m"]"#,
                r#"1 Access 16 write 4 bytes, counter 0 → 1 []"#,
                r#"0 Race 20 read 4 bytes, counter sees 1 ["m"]"#,
                r#"1 Race 16 write 4 bytes, counter 1 → -1 []"#,
                r#"0 Release 32 releases m  []"#,
            ]
        );
    }

    #[test]
    fn one_byte_is_one_byte() {
        let told = told(&recorded_of(0, 1));
        assert_eq!(told[3], r#"0 Race 20 read 1 byte, counter sees 1 ["m"]"#);
    }

    #[test]
    fn a_lock_taken_long_before_is_still_told() {
        let told = told(&recorded(40_000));
        assert_eq!(told[0], r#"0 Take 32 took m earlier  ["m"]"#);
        assert_eq!(told.len(), 1 + BEFORE + 2 + 1, "{told:#?}");
    }

    #[test]
    fn how_a_deadlock_came_about() {
        let mut recorder = Recorder::default();
        let mut order = 0;
        let mut tell = |thread, line: u64, kind| {
            let (thread, place, stack) = (ThreadId(thread), place(1, 0x100 + line), StackId::NONE);
            recorder.event(Event { order, thread, place, stack, kind });
            order += 1;
        };
        let (m, n, mode) = (LOCK, Address(BANK + 0x4068), LockMode::Exclusive);
        let load = EventKind::ModuleLoad {
            module: ModuleId(1),
            path: "/w/bank".into(),
            base: Address(BANK),
            end: Address(BANK + 0x5000),
        };
        tell(1, 0, load);
        tell(2, 32, EventKind::LockAcquired { lock: m, mode });
        for _ in 0..9 {
            tell(2, 64, EventKind::SemaphorePost { semaphore: Address(0x10) });
        }
        tell(3, 32, EventKind::LockAcquired { lock: n, mode });
        tell(3, 20, EventKind::LockRequested { lock: m, mode, waits: true });
        tell(2, 16, EventKind::LockRequested { lock: n, mode, waits: true });
        let wait = |thread, lock, line: u64| Waiting {
            thread: ThreadId(thread),
            lock,
            place: place(1, 0x100 + line),
            stack: StackId::NONE,
        };
        let waits = [wait(2, n, 16), wait(3, m, 20)];
        let interleaving = recorder.deadlock(&waits, Path::new("/w"), &mut Table).unwrap();
        assert_eq!(interleaving.lanes.len(), 2);
        let told = told(&interleaving);
        assert_eq!(told[0], r#"0 Take 32 took m earlier  ["m"]"#);
        assert_eq!(
            told[1 + BEFORE..],
            [
                r#"1 Take 32 takes n  ["n"]"#,
                r#"1 Wait 20 asks for m, which T2 holds  ["n"]"#,
                r#"0 Wait 16 asks for n, which T3 holds  ["m"]"#,
            ]
        );
        assert_eq!(Recorder::default().deadlock(&[], Path::new("/w"), &mut Table), None);
    }

    #[test]
    fn what_never_came_makes_no_interleaving() {
        let met = Met { threads: [ThreadId(2), ThreadId(3)], memory: [(COUNTER, 4); 2], order: 0 };
        let nothing = Recorder::default();
        assert_eq!(nothing.interleaving(&met, Path::new("/w"), &mut Table), None);
    }
}

//! Executions typed into a test: `t(1).writes(X)`, `t(1).forks(2)`, `t(2).locks(M)`.
//!
//! A step is one or two events. Each access has a place: given with `.at(n)`, or else the number of
//! the step in the script, from 1. Variables are 16 bytes apart and accessed by 4 bytes unless said
//! otherwise.

use raddle_analyse::{Analyser, DetectorKind, MsmLength, Options};
use raddle_model::finding::{Certainty, Finding};
use raddle_model::{
    AccessKind, Address, Event, EventKind, LockMode, ModuleId, Place, StackId, SyncObject, ThreadId,
};

pub const X: u64 = 0x1000;
pub const Y: u64 = 0x1010;
pub const Z: u64 = 0x1020;
pub const FLAG: u64 = 0x1030;
pub const FLAG1: u64 = 0x1040;
pub const FLAG2: u64 = 0x1050;
pub const M: u64 = 0x2000;
pub const N: u64 = 0x2100;
pub const RW: u64 = 0x2200;
pub const CV: u64 = 0x3000;
pub const BAR: u64 = 0x4000;
pub const SEM: u64 = 0x5000;
pub const ONCE: u64 = 0x6000;
pub const TEAM: u64 = 0x7000;

pub const HYBRID: DetectorKind = DetectorKind::Hybrid;
pub const HB: DetectorKind = DetectorKind::HappensBefore;
pub const SHORT: DetectorKind = DetectorKind::HelgrindPlus(MsmLength::Short);
pub const LONG: DetectorKind = DetectorKind::HelgrindPlus(MsmLength::Long);

/// A thread, about to do something.
#[derive(Clone, Copy)]
pub struct T(ThreadId);

pub fn t(number: u32) -> T {
    T(ThreadId(number))
}

/// What it does: events by whom, and where.
#[derive(Clone)]
pub struct Step {
    events: Vec<(ThreadId, EventKind)>,
    place: Option<u64>,
    /// Bytes of an access, if not those in the event.
    size: Option<u32>,
}

impl Step {
    pub fn at(mut self, place: u64) -> Step {
        self.place = Some(place);
        self
    }

    /// The number of bytes accessed.
    pub fn sized(mut self, bytes: u32) -> Step {
        self.size = Some(bytes);
        self
    }
}

impl T {
    pub fn does(self, kind: EventKind) -> Step {
        Step { events: vec![(self.0, kind)], place: None, size: None }
    }

    pub fn accesses(self, kind: AccessKind, at: u64) -> Step {
        self.does(EventKind::Access { kind, address: Address(at), size: 4 })
    }

    pub fn reads(self, at: u64) -> Step {
        self.accesses(AccessKind::Read, at)
    }

    pub fn writes(self, at: u64) -> Step {
        self.accesses(AccessKind::Write, at)
    }

    pub fn updates(self, at: u64) -> Step {
        self.accesses(AccessKind::AtomicUpdate, at)
    }

    pub fn updated(self, at: u64) -> Step {
        self.does(EventKind::AtomicUpdated { address: Address(at), size: 4 })
    }

    pub fn loads(self, at: u64) -> Step {
        self.accesses(AccessKind::AtomicRead, at)
    }

    pub fn stores(self, at: u64) -> Step {
        self.accesses(AccessKind::AtomicWrite, at)
    }

    pub fn clears(self, at: u64, length: u64) -> Step {
        self.does(EventKind::Range { kind: AccessKind::Write, address: Address(at), length })
    }

    pub fn allocates(self, at: u64, size: u64) -> Step {
        self.does(EventKind::Allocate { address: Address(at), size })
    }

    pub fn frees(self, at: u64) -> Step {
        self.does(EventKind::Free { address: Address(at), size: 0 })
    }

    pub fn begins(self) -> Step {
        self.does(EventKind::ThreadStart { creator: None, os_id: 0 })
    }

    pub fn creates(self, child: u32) -> Step {
        self.does(EventKind::ThreadCreate { child: ThreadId(child) })
    }

    pub fn starts(self, creator: u32) -> Step {
        self.does(EventKind::ThreadStart { creator: Some(ThreadId(creator)), os_id: 0 })
    }

    /// Creation and start.
    pub fn forks(self, child: u32) -> Step {
        let mut step = self.creates(child);
        step.events.extend(t(child).starts(self.0.0).events);
        step
    }

    pub fn exits(self) -> Step {
        self.does(EventKind::ThreadExit)
    }

    /// The other's exit and the join.
    pub fn joins(self, other: u32) -> Step {
        let mut step = t(other).exits();
        let joined = Some(ThreadId(other));
        step.events.push((self.0, EventKind::ThreadJoined { joined, handle: 0 }));
        step
    }

    pub fn locks(self, lock: u64) -> Step {
        self.takes(lock, LockMode::Exclusive)
    }

    pub fn shares(self, lock: u64) -> Step {
        self.takes(lock, LockMode::Shared)
    }

    /// Asks for a lock, and may wait.
    pub fn asks(self, lock: u64, mode: LockMode) -> Step {
        self.does(EventKind::LockRequested { lock: Address(lock), mode, waits: true })
    }

    /// Asks for a lock, does not wait, and gets it.
    pub fn tries(self, lock: u64) -> Step {
        let (lock, mode) = (Address(lock), LockMode::Exclusive);
        let mut step = self.does(EventKind::LockRequested { lock, mode, waits: false });
        step.events.push((self.0, EventKind::LockAcquired { lock, mode }));
        step
    }

    /// Asks for a lock and gets it; [`T::locks`] is what is seen of it where the call was inlined.
    pub fn waits_and_locks(self, lock: u64) -> Step {
        self.asks_and_takes(lock, LockMode::Exclusive)
    }

    pub fn asks_and_takes(self, lock: u64, mode: LockMode) -> Step {
        let mut step = self.asks(lock, mode);
        step.events.extend(self.takes(lock, mode).events);
        step
    }

    pub fn takes(self, lock: u64, mode: LockMode) -> Step {
        self.does(EventKind::LockAcquired { lock: Address(lock), mode })
    }

    pub fn unlocks(self, lock: u64) -> Step {
        self.does(EventKind::LockReleased { lock: Address(lock), mode: None })
    }

    pub fn signals(self, condition: u64) -> Step {
        self.does(EventKind::ConditionSignal { condition: Address(condition), all: true })
    }

    pub fn waits(self, condition: u64, lock: u64) -> Step {
        let (condition, lock) = (Address(condition), Address(lock));
        self.does(EventKind::ConditionWaitBegin { condition, lock })
    }

    pub fn wakes(self, condition: u64, lock: u64) -> Step {
        let (condition, lock) = (Address(condition), Address(lock));
        self.does(EventKind::ConditionWaitEnd { condition, lock, woken: true })
    }

    pub fn times_out(self, condition: u64, lock: u64) -> Step {
        let (condition, lock) = (Address(condition), Address(lock));
        self.does(EventKind::ConditionWaitEnd { condition, lock, woken: false })
    }

    /// Leaves a loop around a wait for the condition, or is spared it; zero for one unknown.
    pub fn passes(self, condition: u64) -> Step {
        self.does(EventKind::ConditionLoopLeft { condition: Address(condition) })
    }

    pub fn spins_on(self, at: u64) -> Step {
        self.accesses(AccessKind::SpinRead, at)
    }

    pub fn releases(self, object: SyncObject) -> Step {
        self.does(EventKind::Release { object })
    }

    pub fn acquires(self, object: SyncObject) -> Step {
        self.does(EventKind::Acquire { object })
    }

    pub fn enters(self, barrier: u64) -> Step {
        self.does(EventKind::BarrierEnter { barrier: Address(barrier) })
    }

    pub fn leaves(self, barrier: u64) -> Step {
        self.does(EventKind::BarrierLeave { barrier: Address(barrier) })
    }

    pub fn posts(self, semaphore: u64) -> Step {
        self.does(EventKind::SemaphorePost { semaphore: Address(semaphore) })
    }

    pub fn gets(self, semaphore: u64) -> Step {
        self.does(EventKind::SemaphoreAcquired { semaphore: Address(semaphore) })
    }
}

/// The events of a script.
pub fn events(steps: &[Step]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for (number, step) in (1..).zip(steps) {
        for (thread, kind) in &step.events {
            let mut kind = kind.clone();
            if let (EventKind::Access { size, .. }, Some(bytes)) = (&mut kind, step.size) {
                *size = bytes;
            }
            let place = Place { module: ModuleId(1), offset: step.place.unwrap_or(number) };
            let (order, thread) = (events.len() as u64, *thread);
            events.push(Event { order, thread, place, stack: StackId::NONE, kind });
        }
    }
    events
}

/// Runs a script; what a detector with these options finds.
pub fn run_with(kind: DetectorKind, options: Options, steps: &[Step]) -> Vec<Finding> {
    let mut detector = kind.detector(options);
    for event in events(steps) {
        detector.event(&event);
    }
    detector.end();
    detector.findings().to_vec()
}

/// Runs a script; the places of what was found, the earlier first, and how sure.
pub fn run(kind: DetectorKind, steps: &[Step]) -> Vec<(u64, u64, Certainty)> {
    places(&run_with(kind, Options::default(), steps))
}

/// The places of findings, the earlier first, and how sure.
pub fn places(findings: &[Finding]) -> Vec<(u64, u64, Certainty)> {
    let place = |f: &Finding, i: usize| f.accesses[i].place.offset;
    findings.iter().map(|f| (place(f, 0), place(f, 1), f.certainty)).collect()
}

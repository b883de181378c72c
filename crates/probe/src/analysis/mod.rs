//! Feeding a detector.
//!
//! `hybrid` and `hb` run as the fast detector: plain accesses go to shadow memory without a lock, and
//! inserted code leaves out those of which nothing new can be learned; all other events take a lock.
//! Helgrind+ runs as the plain one, behind a lock for everything: exact, and slow on programs
//! that touch much shared memory. There an access that repeats one of the same segment (same
//! instruction, same address, no synchronisation of this thread in between) is left out before
//! the lock: whatever races with the second races with the first.

mod accesses;
mod at_once;
mod heap;
mod recent;
mod tally;

pub use accesses::{AccessCache, Touching};
pub use recent::Recent;
pub use tally::Counted;

use crate::instrument::handlers::Number;
use crate::memory::shadow::{PageKind, Shadow};
use crate::memory::target;
use crate::middle::Middle;
use crate::probe::{Probe, fail};
use crate::thread::ThreadState;
use crate::trampoline::slot;
use heap::Heap;
use raddle_analyse::execution::Execution;
use raddle_analyse::fast::access::LockSetId;
use raddle_analyse::fast::cell::LINE;
use raddle_analyse::fast::crowd::MEMBERS;
use raddle_analyse::fast::{FastHybrid, Journal, Planes, Side};
use raddle_analyse::handover::Values;
use raddle_analyse::order::Orders;
use raddle_analyse::{Analyser, ConditionRule, Detector, DetectorKind, MsmLength, Options};
use raddle_dynamorio::client::Client;
use raddle_model::finding::Finding;
use raddle_model::{Event, EventKind, ThreadId};
use raddle_wire::log::Record;
use raddle_wire::options::{DetectorChoice, Rules};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use tally::Tally;

/// A detector at work.
#[derive(Debug)]
pub struct Analysis {
    choice: DetectorChoice,
    rules: Rules,
    first: Work,
    /// A forked child adds its own and leaves its parent's alone, whose locks some thread may have held that does not
    /// exist in the child.
    inherited: boxcar::Vec<Work>,
    /// Which of those, counted from one; zero for the first.
    current: AtomicUsize,
}

#[derive(Debug)]
struct Work {
    engine: Engine,
    /// Findings the command has been told of.
    reported: AtomicUsize,
    tally: Mutex<Tally>,
    heap: Heap,
}

#[derive(Debug)]
enum Engine {
    Fast(Box<FastHybrid<Shadow>>),
    Plain(Box<Mutex<Plain>>),
}

#[derive(Debug)]
struct Plain {
    detector: Detector,
    next_order: u64,
}

impl Engine {
    fn new(choice: DetectorChoice, rules: Rules, shadow: Option<Shadow>) -> Engine {
        let kind = match choice {
            DetectorChoice::Hybrid => DetectorKind::Hybrid,
            DetectorChoice::HappensBefore => DetectorKind::HappensBefore,
            DetectorChoice::HelgrindShort => DetectorKind::HelgrindPlus(MsmLength::Short),
            DetectorChoice::HelgrindLong => DetectorKind::HelgrindPlus(MsmLength::Long),
        };
        let options = Options {
            conditions: match rules.precise_conditions {
                true => ConditionRule::WriteRead,
                false => ConditionRule::AllSignallers,
            },
            lock_touched: rules.lock_touched,
            handovers: rules.precise_conditions,
            values: Values(are_link),
            ..Options::default()
        };
        let (Some(shadow), DetectorKind::Hybrid | DetectorKind::HappensBefore) = (shadow, kind)
        else {
            let detector = kind.detector(options);
            return Engine::Plain(Box::new(Mutex::new(Plain { detector, next_order: 0 })));
        };
        let slots = Planes::slots(&shadow) as u32;
        let chains = (slots, slots - 1 + MEMBERS as u32);
        let orders = Orders::with_chains(chains, options.conditions, options.lock_touched);
        let execution = Execution::new(orders, options.lock_touched).with_sizes_told();
        let observed_only = kind == DetectorKind::HappensBefore;
        let execution = match (observed_only, options.handovers) {
            (true, _) => execution,
            (false, true) => execution.with_lock_order().with_handovers(options.values),
            (false, false) => execution.with_lock_order(),
        };
        Engine::Fast(Box::new(FastHybrid::new(shadow, execution, observed_only)))
    }

    fn end(&self) {
        match self {
            Engine::Fast(fast) => fast.end(),
            Engine::Plain(plain) => lock(plain).detector.end(),
        }
    }

    fn findings(&self, first: usize) -> Vec<Finding> {
        match self {
            Engine::Fast(fast) => fast.findings(first),
            Engine::Plain(plain) => {
                lock(plain).detector.findings().get(first..).unwrap_or_default().to_vec()
            }
        }
    }

    fn found(&self) -> usize {
        match self {
            Engine::Fast(fast) => fast.found(),
            Engine::Plain(plain) => lock(plain).detector.findings().len(),
        }
    }
}

impl Work {
    fn new(choice: DetectorChoice, rules: Rules, shadow: Option<Shadow>) -> Work {
        Work {
            engine: Engine::new(choice, rules, shadow),
            reported: AtomicUsize::new(0),
            tally: Mutex::default(),
            heap: Heap::default(),
        }
    }
}

/// Would it be of no consequence if this thread asked for a lock? That may come to close a circle of locks only
/// if the thread holds one, and decides by whose signal it was woken only if that is open.
fn stands_idle(thread: &ThreadState) -> bool {
    thread.standing.as_ref().is_some_and(|standing| {
        standing.locks() == LockSetId::default() && !standing.is_undecided()
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Do these bytes of the target's memory hold a link? What one leads to somebody has touched; to read there, where a number is not
/// an address, would be a fault each time.
fn are_link(bytes: Range<u64>) -> bool {
    let analysis = Probe::instance().analysis.as_ref();
    target::are_link(bytes, |address| analysis.is_some_and(|analysis| analysis.is_touched(address)))
}

/// Writes a finding, after the stacks it speaks of.
fn write_finding(thread: &mut ThreadState, record: &Record) {
    let Record::Finding { finding, block, .. } = record else { return };
    let stacks = &Probe::instance().stacks;
    for access in &finding.accesses {
        stacks.tell(thread, access.stack);
        access.locks.iter().for_each(|held| stacks.tell(thread, held.stack));
    }
    for wait in &finding.waits {
        stacks.tell(thread, wait.wants.stack);
        wait.holds.iter().for_each(|held| stacks.tell(thread, held.stack));
    }
    if let Some(block) = block {
        stacks.tell(thread, block.stack);
    }
    thread.write(record);
}

impl Analysis {
    /// A detector of this kind; with shadow memory, if it may have some and there is room. `is_copied`: forked children go on with
    /// what it knows.
    pub fn new(choice: DetectorChoice, rules: Rules, shadow: bool, is_copied: bool) -> Analysis {
        let shadow = if shadow { Shadow::new(is_copied) } else { None };
        let first = Work::new(choice, rules, shadow);
        let (inherited, current) = (boxcar::Vec::new(), AtomicUsize::new(0));
        Analysis { choice, rules, first, inherited, current }
    }

    /// In a forked child, before it does anything.
    pub fn forked(&self) {
        if let Engine::Fast(fast) = &self.work().engine {
            fast.planes().forked();
        }
    }

    /// Begins anew, in a forked child.
    pub fn restart(&self) {
        let shadow = match &self.work().engine {
            Engine::Fast(fast) => Some(fast.planes().inherit()),
            Engine::Plain(_) => None,
        };
        let new = self.inherited.push(Work::new(self.choice, self.rules, shadow));
        self.current.store(new + 1, Ordering::Release);
    }

    /// If accesses are checked in shadow memory: the size of the windows that have some, as a power of two,
    /// and whether all of this memory lies in them.
    pub fn windows(&self, start: u64, length: u64) -> Option<(u32, bool)> {
        let Engine::Fast(fast) = &self.work().engine else { return None };
        let planes = fast.planes();
        Some((planes.window_bits(), planes.covers(start, start.saturating_add(length))))
    }

    /// Says of pages of the target's memory what they are, if accesses are checked in shadow memory.
    pub fn mark_pages(&self, stretch: Range<u64>, kind: PageKind) {
        if let Engine::Fast(fast) = &self.work().engine {
            fast.planes().mark_pages(stretch, kind);
        }
    }

    /// A module was mapped here: what lies there is its variables.
    pub fn module_mapped(&self, module: Range<u64>) {
        self.work().heap.mapped(module);
    }

    /// There is code that spins on these bytes.
    pub fn spun_on(&self, start: u64, end: u64) {
        match &self.work().engine {
            Engine::Fast(fast) => fast.spun_on((start, end)),
            Engine::Plain(plain) => lock(plain).detector.spun_on(start..end),
        }
    }

    /// Are accesses checked in shadow memory?
    pub fn is_fast(&self) -> bool {
        matches!(self.work().engine, Engine::Fast(_))
    }

    /// Has any thread touched what is at this address, or near it?
    fn is_touched(&self, address: u64) -> bool {
        match &self.work().engine {
            Engine::Fast(fast) => {
                let (planes, line) = (fast.planes(), address / LINE);
                let touched = |side| planes.sharers(side, line) != 0;
                planes.covers(address, address + 1) && (touched(Side::Write) || touched(Side::Read))
            }
            Engine::Plain(_) => target::word(address).is_some(),
        }
    }

    /// Is this thread the only one, and can nothing that others did race with what it does from now on?
    pub fn is_solo(&self, thread: ThreadId) -> bool {
        match &self.work().engine {
            Engine::Fast(fast) => fast.is_solo(thread),
            Engine::Plain(_) => false,
        }
    }

    /// One more event; new findings are reported at once.
    pub fn event(&self, thread: &mut ThreadState, event: &mut Event) {
        let work = self.work();
        self.look_back(thread);
        thread.counted.note(&event.kind);
        match &work.engine {
            Engine::Fast(fast) => {
                if let EventKind::Free { address, size: size @ 0 } = &mut event.kind {
                    *size = work.heap.size_of(*address);
                }
                work.heap.note(event);
                match (&thread.standing, &thread.middle) {
                    // In most critical sections nobody else is concerned.
                    (Some(standing), Some(middle))
                        if fast.quickly(standing, event, &middle.journal) => {}
                    (_, Some(middle)) => fast.event(event, &middle.journal),
                    (_, None) => fast.event(event, &Journal::default()),
                }
                self.load_standing(thread);
            }
            Engine::Plain(plain) => {
                lock(&work.tally).note(event);
                work.heap.note(event);
                let mut plain = lock(plain);
                event.order = plain.next_order;
                plain.next_order += 1;
                plain.detector.event(event);
            }
        }
        self.report(thread);
    }

    /// Is what this thread does now of no consequence? It is counted, and that is all.
    pub fn is_idle(&self, thread: &mut ThreadState, kind: &EventKind) -> bool {
        use EventKind::*;
        let idle = match kind {
            LockRequested { .. } => stands_idle(thread),
            // These order nothing: at most they show that a thread goes on.
            FutexWait { .. } | FutexWaitEnd { .. } | FutexWake { .. } | Output { .. } => {
                thread.standing.as_ref().is_some_and(|standing| !standing.is_undecided())
            }
            _ => false,
        };
        if idle {
            thread.counted.note(kind);
        }
        idle
    }

    /// Reports the final counts.
    pub fn finish(&self, last: &mut ThreadState) {
        let work = self.work();
        let tally = lock(&work.tally);
        work.engine.end();
        let monitor = &Probe::instance().monitor;
        for (number, finding) in work.engine.findings(0).into_iter().enumerate() {
            write_finding(last, &work.heap.record(monitor, number, finding));
        }
        last.write(&tally.looked(match &work.engine {
            Engine::Fast(fast) => Some(fast.locks()),
            Engine::Plain(_) => None,
        }));
    }

    /// A thread begins, or begins anew in a forked child: what inserted code compares with.
    pub fn begin_thread(&self, probe: &Probe, thread: &mut ThreadState) {
        if let Engine::Fast(fast) = &self.work().engine {
            thread.standing = Some(fast.standing(thread.id));
            // Who schedules wants to know of a race before the next step.
            let at_once = probe.scheduler.is_some();
            let Some(middle) = Middle::new(fast.planes(), at_once) else {
                fail("no memory for a thread's shadow");
            };
            let middle = thread.middle.insert(middle);
            let address = &raw mut **middle as u64;
            thread.slots.set(slot::MIDDLE, address);
            let entry = probe.trampoline.entry(Number::Access as usize);
            thread.slots.set(slot::ACCESS_ENTRY, entry.address());
            thread.slots.set(slot::PAGES, fast.planes().pages_base());
            self.load_standing(thread);
        }
    }

    /// A thread ended: what it counted.
    pub fn end_thread(&self, probe: &Probe, thread: &mut ThreadState) {
        self.look_back(thread);
        thread.add_all_quick(probe);
        let mut counted = thread.counted;
        counted.accesses += thread.middle.as_ref().map_or(0, |middle| middle.accesses());
        lock(&self.work().tally).add(counted);
        if let Some(stack) = thread.given_stack {
            self.work().heap.end_stack(stack);
        }
    }

    /// Reports findings that the command has not been told of.
    fn report(&self, thread: &mut ThreadState) {
        let work = self.work();
        if work.engine.found() == work.reported.load(Ordering::Relaxed) {
            return;
        }
        let turn = lock(&work.tally);
        let first = work.reported.load(Ordering::Relaxed);
        let fresh = work.engine.findings(first);
        work.reported.store(first + fresh.len(), Ordering::Relaxed);
        let monitor = &Probe::instance().monitor;
        let record = |(n, finding)| work.heap.record(monitor, first + n, finding);
        let news: Vec<Record> = fresh.into_iter().enumerate().map(record).collect();
        drop(turn);
        news.iter().for_each(|record| write_finding(thread, record));
    }

    /// Gives inserted code the thread's current segment and planes.
    fn load_standing(&self, thread: &mut ThreadState) {
        let (Some(standing), Some(middle)) = (&thread.standing, &mut thread.middle) else { return };
        let Engine::Fast(fast) = &self.work().engine else { return };
        if let Some(member) = standing.member().checked_sub(1) {
            fast.planes().rooms().note_member(member as usize);
        }
        middle.load(standing, fast.planes());
        let (segment, write, read) =
            (standing.current(), middle.key(Side::Write), middle.key(Side::Read));
        thread.slots.set(slot::SEGMENT, segment);
        thread.slots.set(slot::WRITE_KEY, write);
        thread.slots.set(slot::READ_KEY, read);
        let idle = stands_idle(thread);
        if let Some(quick) = &mut thread.quick {
            quick.set_idle(idle);
        }
    }

    fn work(&self) -> &Work {
        match self.current.load(Ordering::Acquire) {
            0 => &self.first,
            // The index is that of an element that was pushed before.
            inherited => &self.inherited[inherited - 1],
        }
    }
}

//! The detector `helgrind+`: a state per location (`seeds/000…` 4.2).
//!
//! Instead of remembering accesses, each byte is in a state, and each access moves it by the table
//! in [`state`]: exclusive as long as accesses are ordered, shared when they are not, and then
//! protected by the locks that were held at every access (the *candidates* C), until none is left.
//! The order is the weak one: the paper ignores lock edges. Cheap per location, and blind where
//! the pairwise detector is not: it compares with the last access only.
//!
//! What the paper leaves open, and is decided here:
//! - The lock set L of a write holds only locks held exclusively, that of a read all (Eraser).
//! - An atomic access holds, besides, a lock that all atomic accesses share and plain writes do
//!   not (the "bus lock" of early Helgrind), so atomics rule 1 of the design holds here too.
//! - Free is a write, and leaves the memory in Exclusive-Write; allocation makes it New.
//! - On join (4.1.2) Shared-Read becomes Exclusive-Read, Shared-Modified becomes Exclusive-Write;
//!   the segment stays. The thread set is not scanned for at each join but brought up to date at the
//!   next access, which is the same.
//! - A finding shows the access that broke the rules, and for a read the last write before it,
//!   where that is parallel, else the last access. It is observed if these two conflict and are
//!   concurrent in the full order.

pub mod state;

pub use state::MsmLength;

use crate::detector::Analyser;
use crate::execution::{Execution, Memory};
use crate::findings::Findings;
use crate::order::{Order, bytes};
use crate::shadow::Shadow;
use crate::touch::{Kind, PlainReads, Touch};
use raddle_model::finding::{Certainty, Finding, Rule};
use raddle_model::{AccessKind, Address, Event, EventKind, ThreadId};
use state::{Candidates, Situation, State};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The lock that atomic accesses hold; no lock of the program lives there.
const BUS: Address = Address(u64::MAX - 1);

/// What is known of a byte.
#[derive(Debug, Clone, Default)]
struct Location {
    state: State,
    /// The access whose segment is the paper's TS_d.
    last: Option<Arc<Touch>>,
    /// The last write: for reports only.
    writer: Option<Arc<Touch>>,
    /// C_d, in shared states.
    candidates: Vec<Address>,
    /// S_d, in shared states.
    threads: Vec<ThreadId>,
    /// How many joins S_d knows of.
    joins: u64,
}

impl PartialEq for Location {
    fn eq(&self, other: &Location) -> bool {
        let same = |a: &Option<Arc<Touch>>, b: &Option<Arc<Touch>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        self.state == other.state
            && same(&self.last, &other.last)
            && same(&self.writer, &other.writer)
            && self.candidates == other.candidates
            && self.threads == other.threads
            && (self.threads.is_empty() || self.joins == other.joins)
    }
}

/// The detector `helgrind+`.
#[derive(Debug)]
pub struct HelgrindPlus {
    execution: Execution,
    length: MsmLength,
    shadow: Shadow<Location>,
    findings: Findings,
    /// Joins so far, and the number of each joined thread's.
    joins: u64,
    joined: HashMap<ThreadId, u64>,
}

impl HelgrindPlus {
    /// Before the first event.
    pub fn new(execution: Execution, length: MsmLength) -> HelgrindPlus {
        HelgrindPlus {
            execution,
            length,
            shadow: Shadow::default(),
            findings: Findings::default(),
            joins: 0,
            joined: HashMap::new(),
        }
    }

    /// The state of a byte.
    pub fn state(&self, byte: Address) -> State {
        let mut location = self.shadow.get(byte.0);
        location.after_joins(&self.joined, self.joins);
        location.state
    }

    fn touch(&mut self, touch: &Arc<Touch>, freed: bool) {
        let mut found = Vec::new();
        let mut awaited = Vec::new();
        let (execution, length) = (&self.execution, self.length);
        let (joined, joins) = (&self.joined, self.joins);
        for part in execution.parts(touch) {
            self.shadow.update(part, |bytes, location| {
                location.after_joins(joined, joins);
                if touch.is_spin_read() {
                    let write = location.writer.iter().map(|t| (t.segment.thread, t.segment.stamp));
                    awaited.extend(write);
                    return;
                }
                found.extend(location.step(execution, length, touch, bytes));
                if freed {
                    *location = Location {
                        state: State::ExclusiveWrite,
                        last: Some(Arc::clone(touch)),
                        writer: Some(Arc::clone(touch)),
                        ..Location::default()
                    };
                }
            });
        }
        self.findings.add(found);
        self.execution.spun(touch, &awaited);
    }
}

impl Analyser for HelgrindPlus {
    fn event(&mut self, event: &Event) {
        match self.execution.begin(event) {
            Memory::Untouched => {}
            Memory::Touched(touch) => self.touch(&touch, false),
            Memory::Freed(touch) => self.touch(&touch, true),
            Memory::Fresh(bytes) => self.shadow.clear(bytes),
        }
        let reads = self.execution.condition_reads(event);
        if !reads.is_empty() {
            let bytes = reads.into_iter().flat_map(bytes::each);
            let writers: Vec<_> = bytes.filter_map(|at| self.shadow.get(at).writer).collect();
            self.execution.left_loop(event, writers.iter().map(Arc::as_ref));
        }
        if let EventKind::ThreadJoined { joined: Some(joined), .. } = &event.kind {
            self.joins += 1;
            self.joined.insert(*joined, self.joins);
        }
        self.execution.finish(event);
        self.findings.add(self.execution.take_cycles());
    }

    fn spun_on(&mut self, bytes: Range<u64>) {
        self.execution.spun_on(bytes);
    }

    fn findings(&self) -> &[Finding] {
        self.findings.all()
    }
}

impl Location {
    /// Takes threads joined meanwhile out of S_d; memory no longer shared becomes exclusive.
    fn after_joins(&mut self, joined: &HashMap<ThreadId, u64>, joins: u64) {
        let known = std::mem::replace(&mut self.joins, joins);
        if self.threads.is_empty() || known == joins {
            return;
        }
        self.threads.retain(|thread| joined.get(thread).is_none_or(|number| *number <= known));
        if self.threads.len() < 2 {
            self.state = self.state.no_longer_shared();
            self.threads.clear();
        }
    }

    fn step(
        &mut self,
        execution: &Execution,
        length: MsmLength,
        touch: &Arc<Touch>,
        bytes: Range<u64>,
    ) -> Option<Finding> {
        if self.state == State::Race {
            return None;
        }
        let held = lock_set(execution, touch, bytes.clone());
        let common: Vec<Address> =
            self.candidates.iter().copied().filter(|lock| held.contains(lock)).collect();
        let last = self.last.as_deref();
        let step = state::step(
            length,
            self.state,
            Situation {
                write: touch.kind.writes(),
                ordered: last.is_none_or(|last| execution.ordered(last, touch, Order::Weak)),
                held: !held.is_empty(),
                candidates: !common.is_empty(),
                after_read: last.is_some_and(|last| !last.kind.writes()),
            },
        );
        if step.next == State::Race {
            let rule = step.rule.unwrap_or(Rule::NoCandidateLock);
            let found = self.finding(execution, touch, bytes, rule);
            *self = Location { state: State::Race, ..Location::default() };
            return found;
        }
        self.threads = match (step.next.is_shared(), self.state.is_shared()) {
            (false, _) => Vec::new(),
            (true, true) => std::mem::take(&mut self.threads),
            (true, false) => last.iter().map(|last| last.segment.thread).collect(),
        };
        let thread = touch.segment.thread;
        if step.next.is_shared() && !self.threads.contains(&thread) {
            self.threads.push(thread);
        }
        match step.candidates {
            Candidates::Drop => self.candidates.clear(),
            Candidates::Begin => self.candidates = held,
            Candidates::Refine => self.candidates = common,
            Candidates::Keep => {}
        }
        if step.follow {
            self.last = Some(Arc::clone(touch));
        }
        if touch.kind.writes() {
            self.writer = Some(Arc::clone(touch));
        }
        self.state = step.next;
        None
    }

    fn finding(
        &self,
        execution: &Execution,
        touch: &Touch,
        bytes: Range<u64>,
        rule: Rule,
    ) -> Option<Finding> {
        let parallel = |earlier: &&Touch| !execution.ordered(earlier, touch, Order::Weak);
        let writer = self.writer.as_deref().filter(|_| !touch.kind.writes()).filter(parallel);
        let earlier = writer.or(self.last.as_deref())?;
        let observed = execution.conflict(earlier, touch, bytes.clone())
            && !execution.ordered(earlier, touch, Order::Full);
        let certainty = if observed { Certainty::Observed } else { Certainty::Predicted };
        Some(execution.finding(certainty, bytes, earlier, touch, vec![rule]))
    }
}

/// The paper's L_t: the locks that protect this access.
fn lock_set(execution: &Execution, touch: &Touch, bytes: Range<u64>) -> Vec<Address> {
    let write = touch.kind.writes();
    let mut locks: Vec<Address> = touch.segment.locks.protecting(write).collect();
    let read = touch.kind == Kind::Access(AccessKind::Read);
    if touch.kind.is_atomic() || read && execution.plain_reads(bytes) == PlainReads::Atomic {
        locks.push(BUS);
    }
    locks
}

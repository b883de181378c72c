//! Condition variables: a wait that ended comes after the signal.
//!
//! Which signal woke a waiter cannot be seen, and one condition variable often serves several
//! conditions, so two rules exist ([`ConditionRule`]):
//! - *all signallers*: the waiter comes after everybody who has signalled that variable so far (the
//!   "fake segment" of `seeds/000…` 5.2, Figure 5c). It invents no race and loses some: of two
//!   pairs that share the variable, each waiter seems ordered after both signallers.
//! - *write/read* (5.3, Figures 5d and 6): the waiter comes after those signallers who, before they
//!   signalled, wrote what the waiter read in its critical section before it waited, that is, what
//!   its loop tests. If there are none, all signallers again.
//!
//! Where the second differs from Figure 6:
//! - The relation is kept per condition variable: having written the variable and signalled another
//!   one says nothing.
//! - It accumulates: after a counter or a queue has passed through several signallers' hands, the
//!   waiter takes what all of them put there, not only the last.
//! - A signal may follow the unlocking, so what a critical section wrote is kept until the next.
//! - A signaller of whom no write is known is always among those the waiter comes after. But one who
//!   signalled from within a critical section in which it wrote nothing has made no condition true there:
//!   where the waiter's loop is known and others wrote what its condition reads, it has only nudged, and
//!   the waiter could have gone on without it.
//! - Without a relation the wake-up is undecided until it shows: if the thread goes back to wait,
//!   it was spurious and orders nothing; if it touches anything it had not touched before the wait,
//!   it has left the loop, and comes after all signallers.
//!
//! *Lost signals* (5.1, 6.3): when the condition already held, no wait happens. The loop around the
//! wait is recognised in the machine code, and an event tells that it was left or passed over. With
//! the write/read rule the thread then comes after those signallers who wrote what it has read in
//! its critical section: of this condition variable, or of any where the code does not tell which.
//! Without a relation the condition held for other reasons and nothing is ordered, but for
//! signallers of whom no write is known; where the section has read more than is remembered, any of
//! them may be meant. The plain rule does as a detector without this knowledge
//! would, and orders nothing.
//!
//! Some programs signal only if somebody is known to wait, so there may be no signal at all. Therefore
//! whoever leaves such a loop also comes after those who last wrote, under a lock that it holds too,
//! what it has read in its critical section. Writes are remembered by the detectors: they ask
//! [`super::Orders::condition_reads`].
//!
//! A detector to which plain accesses are no events says before a signal, a wait or the end of a loop
//! what the section has touched ([`Conditions::recall`]), and tells of accesses by a thread whose wake-up
//! is undecided ([`Conditions::touches`]).

use super::bytes::{ByteSet, Part, Piece, words};
use super::thread::Threads;
use super::{Clocks, forget_in};
use crate::held::LockChange;
use raddle_model::{AccessKind, Address, Event, EventKind, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// Words remembered of one critical section. The test of a loop and what makes it true are short; a
/// section that touches more is not told apart by them, and all signallers stand in.
const SECTION_WORDS: usize = 4096;
/// Bytes of one access that are remembered.
const ACCESS_BYTES: u64 = 4096;
/// Words whose writers are remembered of one condition variable. Whoever signals it after writing yet
/// others counts as one of whom no write is known.
const WRITTEN_WORDS: usize = 1 << 16;

/// Whom a waiter comes after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConditionRule {
    /// Everybody who signalled.
    #[default]
    AllSignallers,
    /// Those who signalled and wrote what the waiter's condition reads.
    WriteRead,
}

#[derive(Debug, Default)]
struct Condition {
    signals: u64,
    /// All signallers.
    all: Clocks,
    /// Those of whom no write is known.
    unrelated: Clocks,
    /// Those who wrote nothing in the section they signalled from.
    nudges: Clocks,
    /// By word, those who wrote these bytes of it.
    wrote: FxHashMap<u64, SmallVec<[(Part, Clocks); 1]>>,
}

impl Condition {
    /// Who wrote these bytes of a word is there.
    fn written(&mut self, (word, part): Piece, now: &Clocks) {
        let writers = self.wrote.entry(word).or_default();
        match writers.iter_mut().find(|(of, _)| *of == part) {
            Some((_, clocks)) => clocks.join(now),
            None => writers.push((part, now.clone())),
        }
    }

    /// Those who wrote some of these.
    fn writers<'a>(&'a self, bytes: &'a ByteSet) -> impl Iterator<Item = &'a Clocks> {
        bytes.words().flat_map(|(word, part)| {
            let writers = self.wrote.get(&word).into_iter().flatten();
            writers.filter(move |(of, _)| of & part != 0).map(|(_, clocks)| clocks)
        })
    }
}

/// What a thread did in its critical section, or in the last one.
#[derive(Debug, Default)]
struct Section {
    open: bool,
    reads: ByteSet,
    writes: ByteSet,
    /// More than is remembered.
    overflown: bool,
}

/// All condition variables.
#[derive(Debug)]
pub(super) struct Conditions {
    rule: ConditionRule,
    conditions: BTreeMap<Address, Condition>,
    /// How many signals a waiting thread's condition had when the wait began.
    waiting: FxHashMap<ThreadId, (Address, u64)>,
    sections: FxHashMap<ThreadId, Section>,
    /// Woken from which condition, and by whom is not yet clear.
    undecided: FxHashMap<ThreadId, (Address, Doubt)>,
    /// Threads leaving a loop whose condition others have written.
    made_true: FxHashSet<ThreadId>,
}

/// What is not clear of a wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// Anything.
    Everything,
    /// Whether it was a nudge that mattered.
    Nudges,
}

impl Conditions {
    pub(super) fn new(rule: ConditionRule) -> Conditions {
        Conditions {
            rule,
            conditions: BTreeMap::new(),
            waiting: FxHashMap::default(),
            sections: FxHashMap::default(),
            undecided: FxHashMap::default(),
            made_true: FxHashSet::default(),
        }
    }

    pub(super) fn forget(&mut self, bytes: &Range<u64>) {
        forget_in(&mut self.conditions, bytes);
    }

    pub(super) fn signal(&mut self, threads: &mut Threads, thread: ThreadId, condition: Address) {
        let now = threads.publish(thread);
        let condition = self.conditions.entry(condition).or_default();
        condition.signals += 1;
        condition.all.join(&now);
        if self.rule == ConditionRule::AllSignallers {
            return;
        }
        match self.sections.get(&thread) {
            Some(section)
                if !section.overflown
                    && !section.writes.is_empty()
                    && condition.wrote.len() < WRITTEN_WORDS =>
            {
                section.writes.words().for_each(|bytes| condition.written(bytes, &now));
            }
            Some(section) if section.open && !section.overflown && section.writes.is_empty() => {
                condition.nudges.join(&now);
            }
            _ => condition.unrelated.join(&now),
        }
    }

    /// `thread`, about to leave a loop, comes after others who wrote what its condition reads.
    pub(super) fn made_true(&mut self, thread: ThreadId) {
        self.made_true.insert(thread);
    }

    pub(super) fn wait_begin(&mut self, thread: ThreadId, condition: Address) {
        let signals = self.conditions.get(&condition).map_or(0, |c| c.signals);
        self.waiting.insert(thread, (condition, signals));
    }

    /// `woken` is false for a time-out; if there was a signal meanwhile, it may have been both.
    pub(super) fn wait_end(
        &mut self,
        threads: &mut Threads,
        thread: ThreadId,
        condition: Address,
        woken: bool,
    ) {
        let began = self.waiting.remove(&thread);
        let Some(state) = self.conditions.get(&condition) else { return };
        let signalled = began.is_some_and(|(at, n)| at == condition && n != state.signals);
        if !woken && !signalled {
            return;
        }
        let section = self.sections.get(&thread).filter(|s| !s.overflown);
        let Some(section) = section.filter(|_| self.rule == ConditionRule::WriteRead) else {
            threads.acquire(thread, Some(&state.all));
            return;
        };
        let mut related = false;
        for clocks in state.writers(&section.reads) {
            threads.acquire(thread, Some(clocks));
            related = true;
        }
        let doubt = match related {
            true => Doubt::Nudges,
            false => Doubt::Everything,
        };
        if related {
            threads.acquire(thread, Some(&state.unrelated));
        }
        if !related || state.nudges != Clocks::default() {
            self.undecided.insert(thread, (condition, doubt));
        }
    }

    /// `thread` has left the loop around a wait for this condition (zero: for one unknown), or was
    /// spared it.
    pub(super) fn loop_left(
        &mut self,
        threads: &mut Threads,
        thread: ThreadId,
        condition: Address,
    ) {
        let mut related = self.made_true.remove(&thread);
        if self.rule == ConditionRule::AllSignallers {
            return;
        }
        let section = self.sections.get(&thread);
        // Nobody has signalled where the code says it is: it may be elsewhere.
        let condition = match self.conditions.contains_key(&condition) {
            true => condition,
            false => Address(0),
        };
        let named = self.conditions.get(&condition);
        let every = self.conditions.values().filter(|_| condition.0 == 0);
        for state in named.into_iter().chain(every) {
            match section.filter(|section| !section.overflown) {
                Some(section) => {
                    for clocks in state.writers(&section.reads) {
                        threads.acquire(thread, Some(clocks));
                        related = true;
                    }
                    if condition.0 != 0 {
                        threads.acquire(thread, Some(&state.unrelated));
                    }
                    if condition.0 != 0 && !related {
                        threads.acquire(thread, Some(&state.nudges));
                    }
                }
                // More was read than is remembered: any of them may be meant.
                None => threads.acquire(thread, Some(&state.all)),
            }
        }
    }

    /// The bytes that `thread` has read in its critical section, for the write/read rule.
    pub(super) fn reads(&self, thread: ThreadId) -> Vec<Piece> {
        let section = self.sections.get(&thread).filter(|s| s.open && !s.overflown);
        section.map_or_else(Vec::new, |section| section.reads.words().collect())
    }

    /// What `thread` has touched in its critical section, or in the last one, and was no event. Not
    /// `whole` if some of it is forgotten.
    pub(super) fn recall(
        &mut self,
        thread: ThreadId,
        touched: impl IntoIterator<Item = (AccessKind, Range<u64>)>,
        whole: bool,
    ) {
        let Some(section) = self.sections.get_mut(&thread) else { return };
        section.overflown |= !whole;
        touched.into_iter().for_each(|(kind, bytes)| section.record(kind, bytes));
    }

    /// `thread` has taken and released locks: it has begun a section, or is in none any more.
    pub(super) fn catch_up(&mut self, thread: ThreadId, began: bool, open: bool) {
        if self.rule == ConditionRule::AllSignallers {
            return;
        }
        let section = self.sections.entry(thread).or_default();
        if began {
            *section = Section::default();
        }
        section.open = open;
    }

    /// Is it not yet clear by whom this thread was woken?
    pub(super) fn is_undecided(&self, thread: ThreadId) -> bool {
        self.undecided.contains_key(&thread)
    }

    /// Decides an undecided wake-up, if `event` shows that the thread has left the loop.
    pub(super) fn before(&mut self, threads: &mut Threads, event: &Event) {
        let Some(&(woken_from, doubt)) = self.undecided.get(&event.thread) else { return };
        match &event.kind {
            EventKind::Access { address, size, .. } => {
                self.touches(threads, event.thread, bytes_of(*address, *size));
            }
            EventKind::ConditionWaitBegin { condition, .. } if *condition == woken_from => {
                self.undecided.remove(&event.thread);
            }
            EventKind::ConditionLoopLeft { .. } if doubt == Doubt::Nudges => {
                self.undecided.remove(&event.thread);
            }
            _ => self.leave(threads, event.thread),
        }
    }

    /// The same for an access that is no event.
    pub(super) fn touches(&mut self, threads: &mut Threads, thread: ThreadId, bytes: Range<u64>) {
        let section = self.sections.get(&thread);
        let again = section.is_some_and(|section| section.has_touched(bytes));
        if !again {
            self.leave(threads, thread);
        }
    }

    /// A thread whose wake-up was undecided has left the loop.
    fn leave(&mut self, threads: &mut Threads, thread: ThreadId) {
        if let Some((woken_from, doubt)) = self.undecided.remove(&thread) {
            let signallers = self.conditions.get(&woken_from).map(|c| match doubt {
                Doubt::Everything => &c.all,
                Doubt::Nudges => &c.nudges,
            });
            threads.acquire(thread, signallers);
        }
    }

    /// Records what critical sections read and write.
    pub(super) fn after(&mut self, event: &Event, change: Option<LockChange>) {
        if self.rule == ConditionRule::AllSignallers {
            return;
        }
        match &event.kind {
            EventKind::Access { kind, address, size } => {
                if let Some(section) = self.sections.get_mut(&event.thread).filter(|s| s.open) {
                    section.record(*kind, bytes_of(*address, *size));
                }
            }
            EventKind::Range { kind, address, length } => {
                if let Some(section) = self.sections.get_mut(&event.thread).filter(|s| s.open) {
                    section.overflown |= *length > ACCESS_BYTES;
                    let length = (*length).min(ACCESS_BYTES) as u32;
                    section.record(*kind, bytes_of(*address, length));
                }
            }
            EventKind::ThreadExit => {
                self.made_true.remove(&event.thread);
                self.sections.remove(&event.thread);
                self.undecided.remove(&event.thread);
                self.waiting.remove(&event.thread);
            }
            // A wait in the midst of a section does not end it.
            EventKind::ConditionWaitBegin { .. }
            | EventKind::ConditionWaitEnd { .. }
            | EventKind::ConditionLoopLeft { .. } => {}
            _ => match change {
                Some(LockChange::Acquired { first: true, .. }) => {
                    self.sections
                        .insert(event.thread, Section { open: true, ..Section::default() });
                }
                Some(LockChange::Released { last: true, .. }) => {
                    if let Some(section) = self.sections.get_mut(&event.thread) {
                        section.open = false;
                    }
                }
                _ => {}
            },
        }
    }
}

impl Section {
    fn has_touched(&self, bytes: Range<u64>) -> bool {
        let untouched = |word| !(self.reads.part(word) | self.writes.part(word));
        words(bytes).all(|(word, part)| part & untouched(word) == 0)
    }

    fn record(&mut self, kind: AccessKind, bytes: Range<u64>) {
        if self.reads.len() + self.writes.len() >= SECTION_WORDS {
            self.overflown = true;
            return;
        }
        if !kind.writes() || kind == AccessKind::AtomicUpdate {
            self.reads.add(bytes.clone());
        }
        if kind.writes() {
            self.writes.add(bytes);
        }
    }
}

fn bytes_of(address: Address, size: u32) -> Range<u64> {
    address.0..address.0.saturating_add(u64::from(size))
}

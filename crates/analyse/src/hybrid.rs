//! The default detector, `hybrid`: pairs of accesses, compared (`seeds/003…` 2.2, phase 1).
//!
//! Each byte remembers accesses to it. A new access is compared with each: the two race if
//! - their kinds conflict (at least one writes, and not both are atomic),
//! - nothing but locks orders them (they are concurrent in the *weak* order), and
//! - they hold no common lock: none that both hold, a writer exclusively.
//!
//! If they are concurrent in the *full* order too, nothing ordered them in this very execution: the
//! race is *observed*. If not, only the order in which locks happened to be taken kept them apart:
//! it is *predicted*. The detector `hb` is the same with predicted ones left out.
//!
//! What a byte remembers is bounded ([`History`]). An earlier access e need not be remembered beside
//! a later n that *stands for* it: if e is ordered before n in the weak order, n's locks exclude
//! nothing that e's do not, and whatever conflicts with e's kind conflicts with n's. For a later
//! access m that races with e then races with n: m is not ordered after n, or it would be after e;
//! it shares no lock with n; and the kinds conflict. If m and e race in the full order, so do m
//! and n. So no access goes unreported by this; what can be lost is the pair of places (e, m) beside
//! (n, m). Likewise n is not remembered if an access of the same tick already stands for it.
//!
//! What is left are accesses that are concurrent, or differ in locks. Of more than the limit, the
//! oldest goes: the longer ago, the more likely something has ordered it before all that will
//! follow. That can miss a race.

use crate::detector::Analyser;
use crate::execution::{Execution, Memory};
use crate::findings::Findings;
use crate::handover::{Ended, HeldBack, Race, Touched, closes};
use crate::order::{Order, bytes};
use crate::shadow::Shadow;
use crate::touch::{Kind, Touch, kind_within};
use crate::withdrawn::{Recent, Withdrawn, section};
use raddle_model::clock::{Stamp, VectorClock};
use raddle_model::finding::{Certainty, Finding, Rule};
use raddle_model::lockset::LockSet;
use raddle_model::{AccessKind, Event, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// What is remembered of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// Every access of distinct tick, locks, kind and place: every racing pair of places is found,
    /// in memory that grows with the execution.
    Everything,
    /// Accesses that no other stands for, and at most so many of them.
    Representatives {
        /// At most.
        limit: usize,
    },
}

impl Default for History {
    /// Eight: four threads that read and write under two different locks. Not measured yet.
    fn default() -> History {
        History::Representatives { limit: 8 }
    }
}

/// The accesses a byte remembers, oldest first.
#[derive(Debug, Clone, Default)]
struct Remembered(Vec<Arc<Touch>>);

impl PartialEq for Remembered {
    fn eq(&self, other: &Remembered) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

/// The detectors `hybrid` and `hb`.
#[derive(Debug)]
pub struct Hybrid {
    execution: Execution,
    history: History,
    observed_only: bool,
    shadow: Shadow<Remembered>,
    findings: Findings,
    /// What threads have touched under their locks, and races they may find to be none.
    touched: Touched,
    held_back: FxHashMap<ThreadId, HeldBack>,
    withdrawn: Withdrawn,
    /// The locks held in each tick.
    held: Recent<Stamp, Arc<LockSet>>,
}

impl Hybrid {
    /// Before the first event.
    pub fn new(execution: Execution, history: History, observed_only: bool) -> Hybrid {
        Hybrid {
            execution,
            history,
            observed_only,
            shadow: Shadow::default(),
            findings: Findings::default(),
            touched: Touched::default(),
            held_back: FxHashMap::default(),
            withdrawn: Withdrawn::default(),
            held: Recent::default(),
        }
    }

    /// How much is remembered: components of the clocks, and stretches of memory.
    pub fn size(&self) -> (usize, usize) {
        (self.execution.width(), self.shadow.len())
    }

    fn touch(&mut self, touch: &Arc<Touch>, freed: bool) {
        let mut found = Vec::new();
        let mut awaited = Vec::new();
        let (execution, history, withdrawn) = (&self.execution, self.history, &self.withdrawn);
        let observed_only = self.observed_only;
        for part in execution.parts(touch) {
            self.shadow.update(part, |bytes, remembered| {
                for earlier in &remembered.0 {
                    let race = race(execution, earlier, touch, bytes.clone());
                    let was_withdrawn = || {
                        let mut by = withdrawn.by(earlier.segment.stamp, bytes.start);
                        by.any(|by| execution.comes_after(touch.segment.thread, by))
                    };
                    let race = race.filter(|race| {
                        race.certainty == Certainty::Observed || !observed_only && !was_withdrawn()
                    });
                    found.extend(race.map(|race| (race, earlier.segment.stamp)));
                }
                if touch.is_spin_read() {
                    let writes = remembered.0.iter().filter(|t| t.kind.writes());
                    awaited.extend(writes.map(|t| (t.segment.thread, t.segment.stamp)));
                }
                if freed {
                    // What was known of the memory ends here, but for this.
                    remembered.0.clear();
                }
                remember(execution, history, &mut remembered.0, touch, bytes);
            });
        }
        self.add(touch.segment.thread, found);
        self.execution.spun(touch, &awaited);
    }

    /// Races whose later access is `thread`'s; those that the end of its critical section decides wait.
    fn add(&mut self, thread: ThreadId, races: Vec<Race>) {
        if races.is_empty() {
            return;
        }
        if !self.execution.follows_handovers() {
            return self.findings.add(races.into_iter().map(|(race, _)| race).collect());
        }
        let held_back = self.held_back.entry(thread).or_default();
        self.findings.add(held_back.sort(races, self.execution.holds_locks(thread)));
    }

    /// What has been handed to the event's thread under its locks, if it is time to ask.
    fn hand_over(&mut self, event: &Event) {
        let thread = event.thread;
        let held = Arc::clone(self.execution.locks(thread));
        if !held.is_empty() {
            self.touched.note(event);
            *self.held.entry(self.execution.stamp(thread)) = Arc::clone(&held);
        }
        if !closes(event, || Arc::clone(&held)) {
            return;
        }
        let Ended { depended_on, links } = self.touched.take(thread, self.execution.values());
        self.withdraw(thread, &held, links);
        let remembered: Vec<Remembered> =
            depended_on.iter().map(|at| self.shadow.get(*at)).collect();
        let writes: Vec<(ThreadId, Stamp)> = remembered
            .iter()
            .flat_map(|r| &r.0)
            .filter(|touch| touch.kind.writes() && touch.kind != Kind::Free)
            .filter(|touch| touch.segment.locks.excludes(&held))
            .map(|touch| (touch.segment.thread, touch.segment.stamp))
            .collect();
        let handed = self.execution.handed(thread, &writes);
        if let Some(mut held_back) = self.held_back.remove(&thread) {
            self.findings.add(held_back.decide(&handed, &self.withdrawn));
        }
    }

    /// A tick ends where the lock set changes, if it has not for other reasons: by its ticks a section is known.
    fn begin_tick(&mut self, thread: ThreadId, held: u64, before: Option<Stamp>) {
        let holds = self.execution.locks_version(thread);
        if holds != held && holds != 0 && before.is_none_or(|it| it == self.execution.stamp(thread))
        {
            self.execution.advance(thread);
        }
    }

    /// A thread has overwritten links: others may have read them under a lock that it holds too.
    fn withdraw(&mut self, thread: ThreadId, held: &LockSet, links: FxHashSet<Range<u64>>) {
        if links.is_empty() {
            return;
        }
        let now = self.execution.stamp(thread);
        for at in links.into_iter().flatten() {
            let Remembered(touches) = self.shadow.get(at);
            for read in touches.iter().filter(|touch| touch.kind == Kind::Access(AccessKind::Read))
            {
                let stamp = read.segment.stamp;
                let counts =
                    |touch: &Arc<Touch>| touch.segment.stamp == stamp && touch.kind.writes();
                let is_own = read.segment.thread == thread;
                if is_own || self.execution.comes_after(thread, stamp) || touches.iter().any(counts)
                {
                    continue;
                }
                let under = |stamp: Stamp| {
                    let of_tick = self.held.get(stamp).next();
                    of_tick.is_some_and(|locks| locks.protects(held, (false, true)))
                };
                if under(stamp) {
                    section(stamp, under).for_each(|tick| self.withdrawn.add(tick, now, at));
                }
            }
        }
    }
}

impl Analyser for Hybrid {
    fn event(&mut self, event: &Event) {
        match self.execution.begin(event) {
            Memory::Untouched => {}
            Memory::Touched(touch) => self.touch(&touch, false),
            Memory::Freed(touch) => self.touch(&touch, true),
            Memory::Fresh(bytes) => self.shadow.clear(bytes),
        }
        if self.execution.follows_handovers() {
            self.hand_over(event);
        }
        let reads = self.execution.condition_reads(event);
        if !reads.is_empty() {
            let bytes = reads.into_iter().flat_map(bytes::each);
            let remembered: Vec<Remembered> = bytes.map(|at| self.shadow.get(at)).collect();
            let touches = remembered.iter().flat_map(|r| &r.0).map(Arc::as_ref);
            self.execution.left_loop(event, touches.filter(|touch| touch.kind.writes()));
        }
        let held = self.execution.locks_version(event.thread);
        let before = (held != 0).then(|| self.execution.stamp(event.thread));
        self.execution.finish(event);
        if self.execution.follows_handovers() {
            self.begin_tick(event.thread, held, before);
        }
        self.findings.add(self.execution.take_cycles());
    }

    fn spun_on(&mut self, bytes: Range<u64>) {
        self.execution.spun_on(bytes);
    }

    fn end(&mut self) {
        for (_, mut held_back) in std::mem::take(&mut self.held_back) {
            self.findings.add(held_back.decide(&VectorClock::default(), &self.withdrawn));
        }
    }

    fn findings(&self) -> &[Finding] {
        self.findings.all()
    }
}

/// The race between two accesses, if it is one.
fn race(e: &Execution, earlier: &Touch, later: &Touch, bytes: Range<u64>) -> Option<Finding> {
    let (before, now) = (&earlier.segment.locks, &later.segment.locks);
    if !e.conflict(earlier, later, bytes.clone())
        || e.ordered(earlier, later, Order::Weak)
        || before.protects(now, (earlier.kind.writes(), later.kind.writes()))
    {
        return None;
    }
    let mut rules = vec![match before.excludes(now) || before.shares_only(now) {
        true => Rule::SharedSidesOnly,
        false => Rule::NoCommonLock,
    }];
    let certainty = match e.ordered(earlier, later, Order::Full) {
        true => {
            rules.push(Rule::LockOrderIgnored);
            Certainty::Predicted
        }
        false => Certainty::Observed,
    };
    Some(e.finding(certainty, bytes, earlier, later, rules))
}

fn remember(
    e: &Execution,
    history: History,
    touches: &mut Vec<Arc<Touch>>,
    new: &Arc<Touch>,
    bytes: Range<u64>,
) {
    let now = &new.segment;
    match history {
        History::Everything => {
            let known = touches.iter().any(|t| {
                t.segment.stamp == now.stamp
                    && t.segment.locks == now.locks
                    && (t.kind, t.place) == (new.kind, new.place)
            });
            if !known {
                touches.push(Arc::clone(new));
            }
        }
        History::Representatives { limit } => {
            let reads = e.plain_reads(bytes);
            let stands_for = |stronger: &Touch, weaker: &Touch| {
                kind_within(weaker.kind, stronger.kind, reads)
                    && stronger.segment.locks.within(&weaker.segment.locks)
            };
            if touches.iter().any(|t| t.segment.stamp == now.stamp && stands_for(t, new)) {
                return;
            }
            touches.retain(|t| !(e.ordered(t, new, Order::Weak) && stands_for(new, t)));
            touches.push(Arc::clone(new));
            if touches.len() > limit {
                touches.remove(0);
            }
        }
    }
}

//! Work handed over under a lock: a list, a queue, a flag that one thread fills and another looks at,
//! each holding the lock.
//!
//! Who comes first at a lock is chance, and the weak order leaves it out. But a critical section that
//! reads what an earlier one of another thread wrote depends on it: had it come first, it would have
//! read something else, and the program might have gone another way. So whoever reads, under a lock,
//! what another thread wrote under it comes after that write in the weak order too (true dependences
//! between critical sections: the "weak-dependently precedes" of Genç, Roemer, Xu and Bond, OOPSLA
//! 2019, a weakening of Kini, Mathur and Viswanathan's WCP, PLDI 2017).
//!
//! What a section both reads and writes hands nothing over: two threads that count (`n++`) do so in
//! whichever order, and predicted races between them are what the weak order is for. Unless it leaves a *link*
//! behind ([`Values`]): zero, as in a pointer set to null, a flag taken down, a count that has come to its end; or the address of something
//! else, as where the first element of a list was. Then
//! it has *taken* what others had put there, and would have found nothing to take, or not all of it, had it come
//! first; so it comes after them. An element that is taken out of a list, a queue or a container, one that is put in front of another,
//! and the last of the references
//! to something, are of this kind. Somebody who merely counts down to zero is too, or who counts by moving a pointer on, and
//! is ordered in vain.
//!
//! What else a value decided is not known, so a section that happens to look at something without
//! depending on it is ordered all the same: that misses predicted races, and no observed ones, since
//! the full order stays what it is.
//!
//! A section is looked at when it ends, and when its thread takes another lock or releases something
//! to others ([`closes`]). Until then predicted races of its accesses are held back ([`HeldBack`]): the
//! data is often used in the section that found it. An access that comes before the read in its
//! section is not told from one after it.

use crate::withdrawn::Withdrawn;
use raddle_model::clock::{Stamp, VectorClock};
use raddle_model::finding::{Certainty, Finding};
use raddle_model::lockset::LockSet;
use raddle_model::{AccessKind, Event, EventKind, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// Bytes remembered of one stretch; the rest hands nothing over.
const BYTES: usize = 4096;

/// What the target's memory holds now: do these bytes hold a link, that is zero, or the address of something? No, where nobody
/// can tell.
#[derive(Debug, Clone, Copy)]
pub struct Values(pub fn(Range<u64>) -> bool);

impl Values {
    /// See [`Values`].
    pub fn are_link(&self, bytes: Range<u64>) -> bool {
        (self.0)(bytes)
    }
}

impl Default for Values {
    /// Nobody can tell.
    fn default() -> Values {
        Values(|_| false)
    }
}

/// Is what the event's thread has read under its locks to be looked at before this?
pub fn closes(event: &Event, held: impl FnOnce() -> Arc<LockSet>) -> bool {
    use EventKind::*;
    match &event.kind {
        LockAcquired { .. }
        | LockReleased { .. }
        | ConditionWaitBegin { .. }
        | ConditionSignal { .. }
        | BarrierEnter { .. }
        | SemaphorePost { .. }
        | Release { .. }
        | ThreadCreate { .. }
        | ThreadExit => true,
        // The release of an inlined lock whose name is lost.
        Access { kind: AccessKind::AtomicUpdate, address, .. } => held().mode(*address).is_some(),
        _ => false,
    }
}

/// A race and when its earlier access was.
pub type Race = (Finding, Stamp);

/// Predicted races that wait for the end of their critical section.
#[derive(Debug, Default)]
pub struct HeldBack(Vec<Race>);

impl HeldBack {
    /// Sorts out what must wait, of races whose later access was under locks or not; the rest is given
    /// back.
    pub fn sort(&mut self, races: Vec<Race>, locked: bool) -> Vec<Finding> {
        let mut certain = Vec::new();
        for (finding, stamp) in races {
            if finding.certainty == Certainty::Predicted && locked {
                self.0.push((finding, stamp));
            } else {
                certain.push(finding);
            }
        }
        certain
    }

    /// None?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The section has been looked at so far, and comes after this: what that decides waits no more.
    pub fn take_back(&mut self, handed: &VectorClock, withdrawn: &Withdrawn) {
        let is_handed = |(finding, stamp): &Race| {
            let mut withdrawn_by = withdrawn.by(*stamp, finding.address.0);
            handed.covers(*stamp) || withdrawn_by.any(|by| handed.covers(by))
        };
        self.0.retain(|race| !is_handed(race));
    }

    /// The same at its end: what is left of its races.
    pub fn decide(&mut self, handed: &VectorClock, withdrawn: &Withdrawn) -> Vec<Finding> {
        self.take_back(handed, withdrawn);
        self.0.drain(..).map(|(finding, _)| finding).collect()
    }
}

/// What each thread has touched under its locks since it was last looked at, for a detector to which
/// every access is an event.
#[derive(Debug, Default)]
pub struct Touched {
    threads: FxHashMap<ThreadId, Stretch>,
}

#[derive(Debug, Default)]
struct Stretch {
    /// What was read before it was written here.
    reads: FxHashSet<u64>,
    /// The same, access by access.
    whole: FxHashSet<Range<u64>>,
    writes: FxHashSet<u64>,
    whole_writes: FxHashSet<Range<u64>>,
}

impl Touched {
    /// Notes an access, by a thread that holds a lock.
    pub fn note(&mut self, event: &Event) {
        let EventKind::Access { kind, address, size } = &event.kind else { return };
        let stretch = self.threads.entry(event.thread).or_default();
        let bytes = address.0..address.0.saturating_add(u64::from(*size));
        if stretch.reads.len() + stretch.writes.len() < BYTES {
            match kind {
                AccessKind::Read => {
                    let Stretch { reads, whole, writes, .. } = stretch;
                    reads.extend(bytes.clone().filter(|byte| !writes.contains(byte)));
                    whole.insert(bytes);
                }
                AccessKind::Write => {
                    stretch.writes.extend(bytes.clone());
                    stretch.whole_writes.insert(bytes);
                }
                _ => {}
            }
        }
    }

    /// What `thread` has touched since the last call.
    pub fn take(&mut self, thread: ThreadId, values: Values) -> Ended {
        let Stretch { reads, whole, writes, mut whole_writes } =
            self.threads.remove(&thread).unwrap_or_default();
        whole_writes.retain(|bytes| values.are_link(bytes.clone()));
        let overwritten = |bytes: &&Range<u64>| (*bytes).clone().any(|byte| writes.contains(&byte));
        let taken =
            whole.iter().filter(overwritten).filter(|bytes| values.are_link((*bytes).clone()));
        let taken: FxHashSet<u64> = taken.cloned().flatten().collect();
        let is_needed = |byte: &u64| !writes.contains(byte) || taken.contains(byte);
        Ended { depended_on: reads.into_iter().filter(is_needed).collect(), links: whole_writes }
    }
}

/// What a stretch of a critical section has touched.
#[derive(Debug)]
pub struct Ended {
    /// What it has read, and not written, or taken.
    pub depended_on: Vec<u64>,
    /// What it has written, and left a link in.
    pub links: FxHashSet<Range<u64>>,
}

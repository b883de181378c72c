//! The threads' own clocks: fork, join, and which chain of the vector clocks a thread counts in.
//!
//! Fork and join are `seeds/000…` 4.1.2: a child comes after what its creator did before the creating
//! call, and before what follows its join.
//!
//! Chains. A vector clock with a component per thread that ever lived grows without end in a program
//! that starts a thread per request. So a thread that ended leaves its chain, and a new thread may
//! go on counting in it, one tick further, when either
//! - the end of the old thread is ordered before the new one (in the weak order, hence in both):
//!   whoever comes after a tick of the new thread then comes after all of the old one's; or
//! - nothing remembers a tick of the old thread any more ([`Tenure`]), so none will be asked for.
//!
//! Both are exact: no answer of [`super::Orders::ordered`] changes.

use super::Clocks;
use raddle_model::ThreadId;
use raddle_model::clock::{Chain, Stamp, VectorClock};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Threads that ended and were not joined, whose last clock is kept: a join may yet come. A program
/// that has left more of them behind does not join the oldest.
const ENDED_KEPT: usize = 16 * 1024;

/// Held by whoever remembers a stamp of a thread: until all are dropped the thread's chain keeps its
/// past.
#[derive(Debug, Clone, Default)]
pub struct Tenure(Arc<()>);

impl Tenure {
    /// Does nobody else hold it?
    fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// A thread's place in a chain.
#[derive(Debug)]
struct Seat {
    stamp: Stamp,
    tenure: Tenure,
}

#[derive(Debug, Default)]
struct Thread {
    clocks: Clocks,
    /// Absent before it first does anything and after its end.
    seat: Option<Seat>,
    /// Its number among the ended.
    ended: Option<u64>,
}

/// All threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    threads: HashMap<ThreadId, Thread>,
    /// Clocks for threads created and not yet started.
    births: HashMap<ThreadId, Clocks>,
    /// Who has which library handle.
    handles: HashMap<u64, ThreadId>,
    /// Ended and not joined, in the order of their end.
    ended: BTreeMap<u64, ThreadId>,
    ends: u64,
    /// Seats left by threads that ended.
    left: Vec<Seat>,
    chains: u32,
}

impl Threads {
    /// How many chains there are.
    pub(super) fn width(&self) -> usize {
        self.chains as usize
    }

    /// A thread's clocks, if it has done anything.
    pub(super) fn clocks(&self, thread: ThreadId) -> Option<&Clocks> {
        self.threads.get(&thread).map(|t| &t.clocks)
    }

    /// The tick a thread is in.
    pub(super) fn stamp(&mut self, thread: ThreadId) -> (Stamp, Tenure) {
        let (_, seat) = self.seated(thread);
        (seat.stamp, seat.tenure.clone())
    }

    /// `thread` comes after what `clocks` holds.
    pub(super) fn acquire(&mut self, thread: ThreadId, clocks: Option<&Clocks>) {
        if let Some(clocks) = clocks {
            self.threads.entry(thread).or_default().clocks.join(clocks);
        }
    }

    /// What `thread` did so far goes into `clocks`; what it does next does not.
    pub(super) fn release(&mut self, thread: ThreadId, clocks: &mut Clocks) {
        clocks.join(self.seated(thread).0);
        self.advance(thread);
    }

    /// The same for several at once: what `thread` did so far.
    pub(super) fn publish(&mut self, thread: ThreadId) -> Clocks {
        let clocks = self.seated(thread).0.clone();
        self.advance(thread);
        clocks
    }

    /// Like [`Threads::acquire`], in the full order only.
    pub(super) fn acquire_full(&mut self, thread: ThreadId, clock: &VectorClock) {
        self.threads.entry(thread).or_default().clocks.full.join(clock);
    }

    /// Like [`Threads::release`], in the full order only.
    pub(super) fn release_full(&mut self, thread: ThreadId, clock: &mut VectorClock) {
        clock.join(&self.seated(thread).0.full);
        self.advance(thread);
    }

    /// `creator` is about to make `child`.
    pub(super) fn create(&mut self, creator: ThreadId, child: ThreadId) {
        let birth = self.publish(creator);
        self.births.insert(child, birth);
    }

    /// A thread begins. If its creation was not seen, it comes after all its creator did so far.
    pub(super) fn start(&mut self, thread: ThreadId, creator: Option<ThreadId>) {
        let birth = self.births.remove(&thread).or_else(|| creator.map(|c| self.publish(c)));
        self.acquire(thread, birth.as_ref());
    }

    /// The library knows a thread by this handle.
    pub(super) fn named(&mut self, created: Option<ThreadId>, handle: u64) {
        match created {
            Some(created) => self.handles.insert(handle, created),
            None => self.handles.remove(&handle),
        };
    }

    /// A thread is about to end. What it still does until it is joined finds a new seat.
    pub(super) fn exit(&mut self, thread: ThreadId) {
        let state = self.threads.entry(thread).or_default();
        self.left.extend(state.seat.take());
        if state.ended.is_none() {
            state.ended = Some(self.ends);
            self.ended.insert(self.ends, thread);
            self.ends += 1;
        }
        if self.ended.len() > ENDED_KEPT
            && let Some((_, oldest)) = self.ended.pop_first()
        {
            self.remove(oldest);
        }
    }

    /// `thread` has waited for another to end.
    pub(super) fn join(&mut self, thread: ThreadId, joined: Option<ThreadId>, handle: u64) {
        let known = self.handles.remove(&handle);
        let Some(joined) = joined.or(known) else { return };
        if joined == thread {
            return;
        }
        if let Some(last) = self.remove(joined) {
            self.acquire(thread, Some(&last));
        }
    }

    /// Forgets a thread; gives its last clocks.
    fn remove(&mut self, thread: ThreadId) -> Option<Clocks> {
        let state = self.threads.remove(&thread)?;
        self.left.extend(state.seat);
        if let Some(number) = state.ended {
            self.ended.remove(&number);
        }
        Some(state.clocks)
    }

    fn advance(&mut self, thread: ThreadId) {
        let (clocks, seat) = self.seated(thread);
        seat.stamp = seat.stamp.next();
        clocks.raise(seat.stamp);
    }

    /// A thread's clocks and its seat; it gets one if it has none.
    fn seated(&mut self, thread: ThreadId) -> (&mut Clocks, &mut Seat) {
        let Thread { clocks, seat, .. } = self.threads.entry(thread).or_default();
        let seat = seat.get_or_insert_with(|| {
            let free = |left: &Seat| clocks.weak.covers(left.stamp) || left.tenure.is_last();
            let stamp = match self.left.iter().position(free) {
                Some(at) => self.left.swap_remove(at).stamp.next(),
                None => {
                    self.chains += 1;
                    Stamp { chain: Chain(self.chains - 1), tick: 1 }
                }
            };
            clocks.raise(stamp);
            Seat { stamp, tenure: Tenure::default() }
        });
        (clocks, seat)
    }
}

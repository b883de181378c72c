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
//! Both are exact: no answer of [`super::Orders::ordered`] changes. Where the number of chains is to be
//! small, a new thread beyond that number goes on in the chain of one that ended, if there is one: what it does then
//! counts as ordered with what the other did. That can miss a race. Threads alive at once have a chain each,
//! up to a second, much larger limit.

use super::sections::Sections;
use super::{Ahead, Clocks};
use raddle_model::ThreadId;
use raddle_model::clock::{Chain, Stamp, VectorClock};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Threads that ended and were not joined, whose last clock is kept: a join may yet come. A program
/// that has left more of them behind does not join the oldest.
const ENDED_KEPT: usize = 16 * 1024;
/// So many of them, those that ended last, keep a chain for themselves, if they have one. A program that joins none of its threads
/// would come to have thousands, and clocks as wide.
const ENDED_SEATED: u64 = 64;

/// Threads that are forgotten, having been joined, of which it is still known what they have handed over.
const GONE_KEPT: usize = 64;

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
    /// The chain's last tick before it was taken.
    before: u64,
    tenure: Tenure,
    /// Of those who counted in the chain before and may be remembered.
    past: Vec<Tenure>,
}

impl Seat {
    /// Does somebody remember a tick of the chain?
    fn is_remembered(&self) -> bool {
        !self.tenure.is_last() || self.past.iter().any(|tenure| !tenure.is_last())
    }

    /// The tenures that whoever goes on in the chain must know of.
    fn tenures(self) -> Vec<Tenure> {
        let mut tenures = self.past;
        tenures.push(self.tenure);
        tenures.retain(|tenure| !tenure.is_last());
        tenures
    }
}

#[derive(Debug, Default)]
struct Thread {
    clocks: Clocks,
    /// Absent before it first does anything and after its end.
    seat: Option<Seat>,
    /// Its number among the ended.
    ended: Option<u64>,
    /// How often it gave to or took from others in the weak order.
    version: u64,
    sections: Sections,
}

/// A chain in use.
#[derive(Debug)]
struct ChainState {
    /// Its last tick.
    tick: u64,
    /// How many threads count in it.
    members: u32,
}

/// All threads.
#[derive(Debug)]
pub(super) struct Threads {
    threads: FxHashMap<ThreadId, Thread>,
    /// Clocks for threads created and not yet started.
    births: FxHashMap<ThreadId, Clocks>,
    /// Who has which library handle.
    handles: FxHashMap<u64, ThreadId>,
    /// Ended and not joined, in the order of their end.
    ended: BTreeMap<u64, ThreadId>,
    ends: u64,
    /// Seats left by threads that ended, of chains that nobody counts in.
    left: Vec<Seat>,
    chains: Vec<ChainState>,
    /// Beyond so many chains, those of threads that ended are gone on with. Who limits them remembers stamps
    /// without holding a tenure.
    few: u32,
    /// At most so many.
    limit: u32,
    /// Those forgotten last: what they came after in the weak order, and their sections.
    gone: VecDeque<(ThreadId, VectorClock, Sections)>,
}

impl Threads {
    /// None yet.
    pub(super) fn new(few: u32, limit: u32) -> Threads {
        Threads {
            threads: FxHashMap::default(),
            births: FxHashMap::default(),
            handles: FxHashMap::default(),
            ended: BTreeMap::new(),
            ends: 0,
            left: Vec::new(),
            chains: Vec::new(),
            few,
            limit,
            gone: VecDeque::new(),
        }
    }

    /// How many chains there are.
    pub(super) fn width(&self) -> usize {
        self.chains.len()
    }

    /// See [`super::Orders::settled`].
    pub(super) fn settled(&self, chain: Chain) -> u64 {
        let others = self.threads.values().filter(|thread| {
            let inside = thread.seat.as_ref().is_some_and(|seat| seat.stamp.chain == chain);
            thread.ended.is_none() && !inside
        });
        let known = others.map(|thread| &thread.clocks).chain(self.births.values());
        known.map(|clocks| clocks.weak.tick(chain)).min().unwrap_or(u64::MAX)
    }

    /// See [`super::Orders::is_solo`].
    pub(super) fn is_solo(&self, thread: ThreadId) -> bool {
        let Some(Thread { clocks, seat: Some(seat), .. }) = self.threads.get(&thread) else {
            return false;
        };
        let is_other = |id: &ThreadId, other: &Thread| *id != thread && other.ended.is_none();
        let mut chains = self.chains.iter().enumerate();
        self.births.is_empty()
            && !self.threads.iter().any(|(id, other)| is_other(id, other))
            && chains.all(|(number, state)| {
                let chain = Chain(number as u32);
                chain == seat.stamp.chain || state.tick <= clocks.weak.tick(chain)
            })
    }

    /// See [`super::Orders::is_over`].
    pub(super) fn is_over(&self, chain: Chain, newcomer: ThreadId) -> bool {
        let seat = self.threads.get(&newcomer).and_then(|thread| thread.seat.as_ref());
        let seat = seat.filter(|seat| seat.stamp.chain == chain);
        self.chains.get(chain.0 as usize).is_none_or(|state| {
            state.members == u32::from(seat.is_some())
                && seat.map_or(state.tick, |seat| seat.before) <= self.settled(chain)
        })
    }

    /// See [`super::Orders::alone`].
    pub(super) fn alone(&self, thread: ThreadId) -> Option<(Stamp, &Clocks)> {
        let Thread { clocks, seat, .. } = self.threads.get(&thread)?;
        let stamp = seat.as_ref()?.stamp;
        (self.chains[stamp.chain.0 as usize].members == 1).then_some((stamp, clocks))
    }

    /// What a thread, which may be gone, has come after in the weak order, and its critical sections.
    pub(super) fn past(&self, thread: ThreadId) -> Option<(&VectorClock, &Sections)> {
        let known = self.threads.get(&thread).map(|of| (&of.clocks.weak, &of.sections));
        known.or_else(|| {
            let gone = self.gone.iter().find(|(of, ..)| *of == thread);
            gone.map(|(_, weak, sections)| (weak, sections))
        })
    }

    /// The same, to change them; and the tick it is in.
    pub(super) fn sections_mut(&mut self, thread: ThreadId) -> (&mut Sections, Stamp) {
        let stamp = self.tick(thread);
        (&mut self.threads.entry(thread).or_default().sections, stamp)
    }

    /// See [`super::Orders::catch_up`].
    pub(super) fn catch_up(
        &mut self,
        thread: ThreadId,
        Ahead { tick, clocks, exchanges, .. }: Ahead,
    ) {
        let (known, seat, chains) = self.seated_with_chains(thread);
        let chain = &mut chains[seat.stamp.chain.0 as usize];
        debug_assert!(chain.members == 1 && chain.tick <= tick);
        (chain.tick, seat.stamp.tick) = (tick, tick);
        *known = clocks;
        known.raise(seat.stamp);
        self.threads.entry(thread).or_default().version += exchanges;
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

    /// The same without a token.
    pub(super) fn tick(&mut self, thread: ThreadId) -> Stamp {
        self.seated(thread).1.stamp
    }

    /// `thread` comes after what `clocks` holds.
    pub(super) fn acquire(&mut self, thread: ThreadId, clocks: Option<&Clocks>) {
        if let Some(clocks) = clocks {
            let thread = self.threads.entry(thread).or_default();
            thread.version += u64::from(!thread.clocks.weak.includes(&clocks.weak));
            thread.clocks.join(clocks);
        }
    }

    /// What `thread` did so far goes into `clocks`; what it does next does not.
    pub(super) fn release(&mut self, thread: ThreadId, clocks: &mut Clocks) {
        clocks.join(self.seated(thread).0);
        self.advance(thread);
        self.gave(thread);
    }

    /// The same for several at once: what `thread` did so far.
    pub(super) fn publish(&mut self, thread: ThreadId) -> Clocks {
        let clocks = self.seated(thread).0.clone();
        self.advance(thread);
        self.gave(thread);
        clocks
    }

    fn gave(&mut self, thread: ThreadId) {
        self.threads.entry(thread).or_default().version += 1;
    }

    /// How often a thread gave to or took from others in the weak order.
    pub(super) fn version(&self, thread: ThreadId) -> u64 {
        self.threads.get(&thread).map_or(0, |t| t.version)
    }

    /// Like [`Threads::acquire`], in the weak order only: what the full one knows already.
    pub(super) fn acquire_weak(&mut self, thread: ThreadId, clock: &VectorClock) {
        let thread = self.threads.entry(thread).or_default();
        thread.version += u64::from(!thread.clocks.weak.includes(clock));
        thread.clocks.weak.join(clock);
    }

    /// Like [`Threads::acquire`], in the full order only.
    pub(super) fn acquire_full(&mut self, thread: ThreadId, clock: &VectorClock) {
        self.threads.entry(thread).or_default().clocks.full.join(clock);
    }

    /// Like [`Threads::release`], in the full order only.
    pub(super) fn release_full(&mut self, thread: ThreadId, clock: &mut VectorClock) {
        let (clocks, seat, chains) = self.seated_with_chains(thread);
        clock.join(&clocks.full);
        advance(clocks, seat, chains);
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
        leave(&mut self.chains, &mut self.left, state.seat.take());
        if state.ended.is_none() {
            state.ended = Some(self.ends);
            self.ended.insert(self.ends, thread);
            self.ends += 1;
        }
        let earlier = self.ends.checked_sub(ENDED_SEATED + 1).and_then(|n| self.ended.get(&n));
        if let Some(state) = earlier.and_then(|earlier| self.threads.get_mut(earlier)) {
            leave(&mut self.chains, &mut self.left, state.seat.take());
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
        leave(&mut self.chains, &mut self.left, state.seat);
        if let Some(number) = state.ended {
            self.ended.remove(&number);
        }
        if self.gone.len() == GONE_KEPT {
            self.gone.pop_front();
        }
        self.gone.push_back((thread, state.clocks.weak.clone(), state.sections));
        Some(state.clocks)
    }

    /// A thread begins a new tick.
    pub(super) fn advance(&mut self, thread: ThreadId) {
        let (clocks, seat, chains) = self.seated_with_chains(thread);
        advance(clocks, seat, chains);
    }

    /// A thread's clocks and its seat; it gets one if it has none.
    fn seated(&mut self, thread: ThreadId) -> (&mut Clocks, &mut Seat) {
        let (clocks, seat, _) = self.seated_with_chains(thread);
        (clocks, seat)
    }

    /// The same, and the chains.
    fn seated_with_chains(
        &mut self,
        thread: ThreadId,
    ) -> (&mut Clocks, &mut Seat, &mut [ChainState]) {
        let (chains, left) = (&mut self.chains, &mut self.left);
        let (few, limit) = (self.few, self.limit);
        let Thread { clocks, seat, .. } = self.threads.entry(thread).or_default();
        let seat = seat.get_or_insert_with(|| {
            let remembered = |seat: &Seat| limit != u32::MAX || seat.is_remembered();
            let free = |seat: &Seat| clocks.weak.covers(seat.stamp) || !remembered(seat);
            // The first chains are the cheapest.
            let free = left.iter().enumerate().filter(|(_, seat)| free(seat));
            let first = free.min_by_key(|(_, seat)| seat.stamp.chain).map(|(at, _)| at);
            let (chain, past) = if let Some(at) = first {
                let seat = left.remove(at);
                (seat.stamp.chain, seat.tenures())
            } else if (chains.len() as u32) < few
                || left.is_empty() && (chains.len() as u32) < limit
            {
                chains.push(ChainState { tick: 0, members: 0 });
                (Chain(chains.len() as u32 - 1), Vec::new())
            } else if !left.is_empty() {
                // That of who ended longest ago.
                (left.remove(0).stamp.chain, Vec::new())
            } else {
                let fewest = (0..chains.len()).min_by_key(|at| chains[*at].members);
                (Chain(fewest.unwrap_or(0) as u32), Vec::new())
            };
            let before = chains[chain.0 as usize].tick;
            let tick = next_tick(chains, chain);
            chains[chain.0 as usize].members += 1;
            let stamp = Stamp { chain, tick };
            clocks.raise(stamp);
            Seat { stamp, before, tenure: Tenure::default(), past }
        });
        (clocks, seat, chains)
    }
}

fn advance(clocks: &mut Clocks, seat: &mut Seat, chains: &mut [ChainState]) {
    seat.stamp.tick = next_tick(chains, seat.stamp.chain);
    clocks.raise(seat.stamp);
}

fn next_tick(chains: &mut [ChainState], chain: Chain) -> u64 {
    let state = &mut chains[chain.0 as usize];
    state.tick = after(state.tick);
    state.tick
}

/// The tick that comes next. Numbers with 0xff among their three lowest bytes are left out: a tick is part of
/// a word ([`crate::fast::cell`]) of which one byte only may be that.
pub fn after(tick: u64) -> u64 {
    [0, 8, 16].into_iter().fold(tick + 1, |tick, at| match tick >> at & 0xff {
        0xff => tick + (1 << at),
        _ => tick,
    })
}

/// A thread gives up its seat; the last of a chain leaves it to others.
fn leave(chains: &mut [ChainState], left: &mut Vec<Seat>, seat: Option<Seat>) {
    let Some(mut seat) = seat else { return };
    let state = &mut chains[seat.stamp.chain.0 as usize];
    state.members -= 1;
    if state.members == 0 {
        seat.stamp.tick = state.tick;
        left.push(seat);
    }
}

#[cfg(test)]
mod tests {
    use super::{ENDED_SEATED, Threads, after};
    use raddle_model::ThreadId;

    #[test]
    fn who_is_never_joined_gives_its_chain_up_some_time() {
        let (main, few) = (ThreadId(1), 4);
        let mut threads = Threads::new(few, 2000);
        for n in 2..1500 {
            threads.create(main, ThreadId(n));
            threads.start(ThreadId(n), Some(main));
            let stamp = threads.tick(ThreadId(n));
            threads.exit(ThreadId(n));
            // Its end is asked for as well.
            assert!(threads.tick(ThreadId(n)) > stamp);
        }
        assert!(threads.width() <= few as usize + ENDED_SEATED as usize + 2);
        // A join may yet come.
        threads.join(main, Some(ThreadId(2)), 0);
        assert!(threads.clocks(ThreadId(2)).is_none());
    }

    #[test]
    fn a_chain_is_over_when_everybody_comes_after_all_that_was_done_in_it() {
        let (main, [a, b, c]) = (ThreadId(1), [2, 3, 4].map(ThreadId));
        let mut threads = Threads::new(8, 8);
        let begins = |threads: &mut Threads, thread| {
            threads.create(main, thread);
            threads.start(thread, Some(main));
            threads.tick(thread).chain
        };
        let (of_a, of_b) = (begins(&mut threads, a), begins(&mut threads, b));
        assert!(!threads.is_over(of_a, c), "somebody is in it");
        threads.exit(a);
        assert!(!threads.is_over(of_a, c), "nobody knows of its end");
        threads.join(main, Some(a), 0);
        assert!(!threads.is_over(of_a, c), "one does not");
        threads.exit(b);
        threads.join(main, Some(b), 0);
        assert!(threads.is_over(of_a, c) && threads.is_over(of_b, c));
        assert_eq!(begins(&mut threads, c), of_a);
        assert!(threads.is_over(of_a, c), "it has only just begun");
        assert!(!threads.is_over(of_a, main));
    }

    #[test]
    fn ticks_grow_and_have_no_byte_of_all_ones() {
        for start in [0, 0xfd, 0xfefe, 0x00fe_fefe, 0x01fe_fefe, 0x77fe] {
            let mut tick = start;
            for _ in 0..600 {
                let next = after(tick);
                assert!(next > tick);
                assert!([0, 8, 16].iter().all(|at| next >> at & 0xff != 0xff), "{next:x}");
                tick = next;
            }
        }
        assert_eq!((after(1), after(0xfe), after(0xfefefe)), (2, 0x100, 0x1000000));
    }
}

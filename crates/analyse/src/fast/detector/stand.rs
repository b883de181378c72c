//! Where threads stand: brought up to date after what the detector has done to them.
//!
//! A tick ends where a thread's lock set changes. Its number in the cells of its slot, the number of its lock set and
//! what it knows of the others go to its [`Standing`], where the thread itself finds them without a lock. What of
//! its past cannot race any more is *settled*, and forgotten: here, who counted in a chain.

use super::{FastHybrid, Member, State};
use crate::fast::access::{LockSetId, Numbered, Successors};
use crate::fast::cell::LAST_TICK;
use crate::fast::protocol::Planes;
use crate::order::Order;
use raddle_model::clock::{Chain, Stamp};
use raddle_model::lockset::HeldLock;
use raddle_model::{Event, EventKind, ThreadId};
use smallvec::SmallVec;
use std::iter::repeat;
use std::sync::atomic::Ordering;

/// What is known of a chain.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// From which tick on which thread counted in it, in order.
    tenants: Vec<(u64, ThreadId)>,
    /// Those that can race no more are looked for when there are more than this.
    many: usize,
}

/// How many threads that counted in a chain are kept whatever they did.
pub(super) const TENANTS: usize = 64;

impl Slot {
    /// A thread counts from this tick on; `settled` says up to which one nobody asks any more. True if there were so many
    /// before it that it is time to forget.
    fn begin_tenancy(
        &mut self,
        kept: usize,
        (tick, thread): (u64, ThreadId),
        settled: impl FnOnce() -> u64,
    ) -> bool {
        if self.tenants.last().is_some_and(|(_, last)| *last == thread) {
            return false;
        }
        let were_many = self.tenants.len() >= self.many.max(kept);
        if were_many {
            let settled = settled();
            let over = self.tenants.partition_point(|(from, _)| *from <= settled);
            // The last of them may have counted further.
            self.tenants.drain(..over.saturating_sub(1));
            self.many = if kept == 0 { 0 } else { 2 * self.tenants.len() };
        }
        self.tenants.push((tick, thread));
        were_many
    }

    /// Nobody if it is forgotten.
    fn tenant(&self, tick: u64) -> ThreadId {
        let after = self.tenants.partition_point(|(from, _)| *from <= tick);
        self.tenants[..after].last().map_or(ThreadId(0), |(_, thread)| *thread)
    }
}

impl<P: Planes> FastHybrid<P> {
    /// Brings a thread's standing up to date.
    pub(super) fn refresh(&self, state: &mut State, thread: ThreadId) {
        self.take_over(state, thread);
        let State { execution, threads, slots, tenants, used, successors, .. } = &mut *state;
        let member = threads.entry(thread).or_default();
        let standing = &member.standing;
        let version = execution.locks_version(thread);
        if member.version != version {
            member.version = version;
            let held: SmallVec<[HeldLock; 4]> = execution.each_lock(thread).collect();
            let Numbered { id, alike } = self.number(successors, &held);
            // A tick ends where the lock set changes, if it has not for other reasons. None is left out: by its ticks a
            // section is known ([`crate::withdrawn`]).
            if member.locks != id {
                member.locks = id;
                standing.set_alike(alike);
                if member.stamp.is_none_or(|stamp| stamp == execution.stamp(thread)) {
                    execution.advance(thread);
                }
            }
        }
        let locks = member.locks;
        let stamp = execution.stamp(thread);
        member.stamp = Some(stamp);
        let chain = stamp.chain.0 as usize;
        let number = chain.min(self.crowd.slot());
        if number >= *used {
            assert!(self.planes.use_slot(number), "no address space for shadow memory");
            *used = number + 1;
        }
        if slots.len() <= chain {
            slots.resize_with(chain + 1, Slot::default);
        }
        let settled = || execution.settled(stamp.chain);
        let were_many = slots[chain].begin_tenancy(*tenants, (stamp.tick, thread), settled);
        let (tick, own) = match chain.checked_sub(self.crowd.slot()) {
            None => {
                if were_many && execution.is_over(stamp.chain, thread) {
                    // Threads come and go, each to other memory: in the end there would be cells of every slot for all of
                    // it. What is settled nobody asks for.
                    state.specials.forget_slot(number);
                    self.planes.clear_slot(number);
                }
                let base = &self.bases[number];
                if stamp.tick - base.load(Ordering::Relaxed) > u64::from(LAST_TICK) {
                    // A slot's ticks have grown too large for its cells: they are forgotten, and counted anew.
                    // The lowest bytes of a tick stay what they are: none is to become 0xff.
                    self.take_over_all(state);
                    base.store(stamp.tick & !0xff_ffff, Ordering::Relaxed);
                    self.forget_slot(state, number);
                }
                (self.in_cells(number, stamp.tick), 0)
            }
            Some(own) => {
                let is_over = |chain| state.execution.is_over(Chain(chain as u32), thread);
                let forget = were_many
                    && state.runs.are_many()
                    && (self.crowd.slot()..state.execution.width()).all(is_over);
                let mut tick = match forget {
                    true => None,
                    false => state.runs.tick(&self.crowd, own, stamp.tick),
                };
                if tick.is_none() {
                    self.take_over_all(state);
                    state.runs.forget(&self.crowd);
                    self.forget_slot(state, number);
                    tick = state.runs.tick(&self.crowd, own, stamp.tick);
                }
                (tick.unwrap_or_default(), own as u32 + 1)
            }
        };
        let State { execution, threads, runs, .. } = state;
        let Some(Member { standing, told, .. }) = threads.get_mut(&thread) else { return };
        standing.mute(execution.muted(thread));
        standing.set_undecided(execution.is_undecided(thread));
        standing.set_member(&self.crowd, own);
        self.planes.set_locks(number, tick, locks);
        standing.set(number, tick, locks);
        let known = |order| execution.known(thread, order).chain(repeat(0));
        let width = execution.width().min(self.crowd.slot());
        let known_in_both = known(Order::Weak).zip(known(Order::Full)).take(width);
        for (slot, (weak, full)) in known_in_both.enumerate() {
            standing.set_known(slot, self.in_cells(slot, weak), self.in_cells(slot, full));
        }
        let now = Some((execution.weak_version(thread), runs.age(), own));
        if self.crowd.members() != 0 && *told != now {
            *told = now;
            let known = known(Order::Weak).skip(self.crowd.slot()).take(self.crowd.members());
            let known = known.enumerate().map(|(member, tick)| runs.limit(member, tick));
            standing.set_members(known);
        }
    }

    /// Forgets what a slot did.
    fn forget_slot(&self, state: &mut State, number: usize) {
        state.specials.forget_slot(number);
        for Member { standing, .. } in state.threads.values() {
            standing.set_known(number, 0, 0);
            if standing.slot() == number {
                standing.set_settled(0);
            }
            if number == self.crowd.slot() {
                standing.set_members(repeat(0));
            }
        }
        self.planes.clear_slot(number);
    }

    /// The number of a lock set. That of a lock taken with empty hands the lock itself remembers.
    fn number(&self, successors: &mut Successors, held: &[HeldLock]) -> Numbered {
        if let [one] = held
            && let Some((known, [id, alike])) =
                self.lock_objects.with(one.lock, |lock| lock.name(one)).flatten()
            && known == *one
        {
            return Numbered { id: LockSetId(id), alike };
        }
        let tell = |id, alike| self.planes.note(id, alike);
        let numbered = successors.number(&self.locks, held, tell);
        if let [one] = held {
            let name = [numbered.id.0, numbered.alike];
            self.lock_objects.with(one.lock, |lock| lock.set_name(*one, name));
        }
        numbered
    }

    /// Tells a thread what of its past cannot race any more. Not at events of locks, which are many and
    /// settle nothing.
    pub(super) fn settle(&self, state: &mut State, event: &Event) {
        use EventKind::*;
        if matches!(event.kind, LockRequested { .. } | LockAcquired { .. } | LockReleased { .. }) {
            return;
        }
        if let Some(member) = state.threads.get(&event.thread) {
            let standing = &member.standing;
            let settled = self.settled(state, standing.slot(), standing.tick());
            standing.set_settled(settled.min(standing.tick()));
        }
    }

    /// Who counted in a slot at a tick, and which of its chain's it is.
    pub(super) fn when(&self, state: &State, number: usize, tick: u32) -> (ThreadId, Stamp) {
        let (chain, tick) = if number == self.crowd.slot() {
            // What is forgotten is ordered before all: nobody asks for it but by chance.
            let (member, tick) = state.runs.when(tick).unwrap_or_default();
            (number + member, tick)
        } else {
            (number, self.bases[number].load(Ordering::Relaxed) + u64::from(tick))
        };
        let thread = state.slots.get(chain).map_or(ThreadId(0), |slot| slot.tenant(tick));
        (thread, Stamp { chain: Chain(chain as u32), tick })
    }

    /// The last tick of a slot that is ordered before whatever any other thread does from now on; in the crowd, of
    /// those who have this tick.
    pub(super) fn settled(&self, state: &State, slot: usize, tick: u32) -> u32 {
        let settled = if slot == self.crowd.slot() {
            let Some((member, _)) = state.runs.when(tick) else { return LAST_TICK };
            state.runs.limit(member, state.execution.settled(Chain((slot + member) as u32)))
        } else {
            self.in_cells(slot, state.execution.settled(Chain(slot as u32)))
        };
        settled.min(LAST_TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_keeps_those_who_may_still_race() {
        let mut slot = Slot::default();
        for n in 1..100_000u64 {
            let begins = (n * 10, ThreadId(n as u32));
            slot.begin_tenancy(TENANTS, begins, || n.saturating_sub(3) * 10 + 5);
            assert_eq!(slot.tenant(n * 10 + 7), ThreadId(n as u32));
            assert_eq!(slot.tenant((n - 1) * 10 + 7).0 as u64, n - 1);
        }
        assert!(slot.tenants.len() <= TENANTS);
        assert_eq!(slot.tenant(20), ThreadId(0));
        // Of what is not settled nobody is forgotten.
        let mut slot = Slot::default();
        for n in 1..1000u64 {
            slot.begin_tenancy(TENANTS, (n, ThreadId(n as u32)), || 0);
        }
        assert!((1..1000).all(|n| slot.tenant(n) == ThreadId(n as u32)));
    }
}

//! Which locks each thread holds (`seeds/000…` 4.1.1), counted, with the side and where taken.
//!
//! A lock taken again by its holder is only counted: what matters to an analyser is the first taking
//! of a side and its last release, and that is what [`HeldLocks::event`] answers. A condition wait
//! gives the lock up, whatever its count, and takes it back as it was. A transaction counts as a
//! lock that all transactions share out of sight ([`LockSet::TRANSACTION`]).
//!
//! Programs, and what we see of them, are not always tidy:
//! - A lock released by a thread that does not hold it leaves the hands of whoever does, unless the
//!   release turns out to be refused (error-checking mutexes): then all is as before.
//! - A lock taken by a thread that could not have it while another holds it has left the other's
//!   hands unseen. Lock sets that are too large hide races, so the last taking counts.
//! - A lock whose word its holder changes by an atomic instruction that no hook names has been
//!   released by it: compilers merge inlined unlocks and keep no name.
//! - A lock that is destroyed, created anew, or whose memory comes or goes, is in nobody's hands. If it
//!   was, what is made there is another lock: it does not exclude who believes to hold the old one.

use raddle_model::lockset::{HeldLock, LockSet};
use raddle_model::{AccessKind, Address, Event, EventKind, LockMode, Place, StackId, ThreadId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// What an event did to the locks held, where it matters beyond counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockChange {
    /// A side of a lock was taken.
    Acquired {
        /// Which.
        lock: Address,
        /// Which side.
        mode: LockMode,
        /// The thread held no other.
        first: bool,
    },
    /// A side of a lock is released.
    Released {
        /// Which.
        lock: Address,
        /// Which side.
        mode: LockMode,
        /// The thread holds no other.
        last: bool,
        /// Nobody was known to hold it.
        unseen: bool,
        /// The thread does not hold it.
        foreign: bool,
    },
    /// The release before, of a lock that the thread does not hold, was refused.
    Refused {
        /// Which.
        lock: Address,
        /// Which side.
        mode: LockMode,
    },
}

impl LockChange {
    /// Is it a release of this lock?
    pub fn releases(self, which: Address) -> bool {
        matches!(self, LockChange::Released { lock, .. } if lock == which)
    }
}

/// One lock in one thread's hands.
#[derive(Debug, Clone, Copy)]
struct Hold {
    lock: Address,
    /// How often each side was taken.
    exclusive: u32,
    shared: u32,
    place: Place,
    stack: StackId,
    life: u32,
}

#[derive(Debug, Default)]
struct Hands {
    holds: Vec<Hold>,
    /// The same as a set, made when it is asked for: most critical sections begin and end unasked.
    set: OnceCell<Arc<LockSet>>,
    /// How often they changed.
    version: u64,
    /// What a condition wait gave up.
    given_up: Option<Hold>,
}

/// Who holds a lock: one, as a rule.
type Holders = SmallVec<[ThreadId; 4]>;

/// The locks of all threads.
#[derive(Debug, Default)]
pub struct HeldLocks {
    threads: FxHashMap<ThreadId, Hands>,
    /// Who holds a lock.
    holders: FxHashMap<Address, Holders>,
    /// Locks that left somebody's hands unseen.
    unsure: BTreeSet<Address>,
    /// Who made the event being followed, and out of whose hands it has taken locks.
    acting: Option<ThreadId>,
    robbed: Vec<ThreadId>,
    /// How often locks were made anew or destroyed while held.
    lives: FxHashMap<Address, u32>,
    /// The last thing a thread did with locks was to release one it does not hold: whose it was.
    foreign: FxHashMap<ThreadId, (Address, Option<(ThreadId, Hold)>)>,
    none: Arc<LockSet>,
}

impl HeldLocks {
    /// The locks a thread holds. The same allocation is answered until they change.
    pub fn of(&self, thread: ThreadId) -> &Arc<LockSet> {
        match self.threads.get(&thread) {
            Some(hands) if !hands.holds.is_empty() => hands.set(),
            _ => &self.none,
        }
    }

    /// How often the locks a thread holds have changed: while it is the same, so are they.
    pub fn version(&self, thread: ThreadId) -> u64 {
        self.threads.get(&thread).map_or(0, |hands| hands.version)
    }

    /// The locks a thread holds, in the order in which it took them.
    pub fn each(&self, thread: ThreadId) -> impl Iterator<Item = HeldLock> + '_ {
        self.threads.get(&thread).into_iter().flat_map(|hands| hands.holds.iter().map(held))
    }

    /// Those who hold a lock, and which side.
    pub fn holders(&self, lock: Address) -> impl Iterator<Item = (ThreadId, LockMode)> + '_ {
        let all = self.holders.get(&lock).into_iter().flatten();
        all.filter_map(move |thread| {
            let held = self.each(*thread).find(|held| held.lock == lock)?;
            Some((*thread, held.mode))
        })
    }

    /// Those who hold a lock that lies in `bytes`. Of those that are held now there are few.
    pub fn holders_within(&self, bytes: &Range<u64>) -> impl Iterator<Item = ThreadId> + '_ {
        let bytes = bytes.clone();
        let held = self.holders.iter().filter(move |(lock, _)| bytes.contains(&lock.0));
        held.flat_map(|(_, holders)| holders.iter().copied())
    }

    /// What a thread holds, if that is at most one lock, taken once, and nothing of what it did with locks is
    /// still open.
    pub fn one_at_most(&self, thread: ThreadId) -> Option<Option<HeldLock>> {
        if self.foreign.contains_key(&thread) {
            return None;
        }
        let Some(hands) = self.threads.get(&thread) else { return Some(None) };
        match (&hands.holds[..], &hands.given_up) {
            ([], None) => Some(None),
            ([one], None) if one.exclusive + one.shared == 1 => Some(Some(held(one))),
            _ => None,
        }
    }

    /// A thread of which [`HeldLocks::one_at_most`] was known has come to hold this, and nothing else.
    pub fn catch_up(&mut self, thread: ThreadId, holds: Option<HeldLock>) {
        if self.one_at_most(thread) == Some(holds) {
            return;
        }
        self.acting = Some(thread);
        let locks: SmallVec<[Address; 1]> = self.each(thread).map(|held| held.lock).collect();
        for lock in locks {
            self.take_away(thread, lock);
        }
        if let Some(HeldLock { lock, mode, place, stack, life }) = holds {
            let exclusive = u32::from(mode == LockMode::Exclusive);
            let hold = Hold { lock, exclusive, shared: 1 - exclusive, place, stack, life };
            self.give(thread, hold);
        }
    }

    /// Does a thread hold none?
    pub fn is_empty_handed(&self, thread: ThreadId) -> bool {
        self.threads.get(&thread).is_none_or(|hands| hands.holds.is_empty())
    }

    fn holds(&self, thread: ThreadId, lock: Address) -> bool {
        let holds = |hands: &Hands| hands.holds.iter().any(|hold| hold.lock == lock);
        self.threads.get(&thread).is_some_and(holds)
    }

    /// Threads that others have taken locks from since the last call.
    pub fn take_robbed(&mut self) -> Vec<ThreadId> {
        std::mem::take(&mut self.robbed)
    }

    /// Follows one event.
    pub fn event(&mut self, event: &Event) -> Option<LockChange> {
        use EventKind::*;
        let thread = event.thread;
        self.acting = Some(thread);
        if let LockRequested { .. } | LockAcquired { .. } | LockReleased { .. } | ThreadExit =
            &event.kind
        {
            self.foreign.remove(&thread);
        }
        match &event.kind {
            LockAcquired { lock, mode } => self.acquire(event, *lock, *mode),
            LockReleased { lock, mode } => self.release(thread, *lock, *mode),
            Access { kind: AccessKind::AtomicUpdate, address: word, .. }
                if self.holds(thread, *word) =>
            {
                self.release(thread, *word, None)
            }
            LockCreated { lock } | LockDestroyed { lock } => {
                if self.holders.contains_key(lock) {
                    *self.lives.entry(*lock).or_default() += 1;
                }
                self.drop_lock(*lock);
                None
            }
            ConditionWaitBegin { lock, .. } => self.give_up(thread, *lock),
            ConditionWaitEnd { lock, .. } => self.take_back(event, *lock),
            TransactionStart => self.acquire(event, LockSet::TRANSACTION, LockMode::Exclusive),
            TransactionCommit => {
                self.release(thread, LockSet::TRANSACTION, Some(LockMode::Exclusive))
            }
            TransactionAbort => {
                // Given up as a whole, and with no effect: orders nothing.
                self.take_away(thread, LockSet::TRANSACTION);
                None
            }
            ThreadExit => {
                let locks: Vec<Address> = self.of(thread).iter().map(|held| held.lock).collect();
                for lock in locks {
                    self.take_away(thread, lock);
                }
                self.threads.remove(&thread);
                None
            }
            LockFailed { lock, mode } => self.refused(thread, *lock, *mode),
            LockRequested { .. } => None,
            ThreadCreate { .. }
            | ThreadStart { .. }
            | ThreadName { .. }
            | ThreadCreated { .. }
            | ThreadJoined { .. }
            | ThreadDetached { .. }
            | ThreadCancelled { .. }
            | Access { .. }
            | Range { .. }
            | Allocate { .. }
            | Free { .. }
            | ConditionSignal { .. }
            | BarrierCreated { .. }
            | BarrierEnter { .. }
            | BarrierLeave { .. }
            | SemaphoreCreated { .. }
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
            | Release { .. }
            | Acquire { .. }
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
            | SignalDelivered { .. }
            | Output { .. }
            | ProcessForked { .. }
            | ProcessExec { .. }
            | ProcessEnd { .. } => None,
        }
    }

    /// Memory comes or goes: locks that lay there are no more.
    pub fn forget(&mut self, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        // Of those that are held now there are few.
        if self.holders.keys().any(|lock| bytes.contains(&lock.0)) {
            let mut locks: Vec<Address> = self.holders.keys().copied().collect();
            locks.retain(|lock| bytes.contains(&lock.0));
            locks.sort_unstable();
            for lock in locks {
                self.drop_lock(lock);
            }
        }
        if !self.unsure.is_empty() {
            self.unsure.retain(|lock| !bytes.contains(&lock.0));
        }
        if !self.lives.is_empty() {
            self.lives.retain(|lock, _| !bytes.contains(&lock.0));
        }
    }

    fn acquire(&mut self, event: &Event, lock: Address, mode: LockMode) -> Option<LockChange> {
        let thread = event.thread;
        self.evict(thread, lock, mode);
        let mut hold = self.take_away(thread, lock).unwrap_or(Hold {
            lock,
            exclusive: 0,
            shared: 0,
            place: event.place,
            stack: event.stack,
            life: self.lives.get(&lock).copied().unwrap_or(0),
        });
        let count = match mode {
            LockMode::Exclusive => &mut hold.exclusive,
            LockMode::Shared => &mut hold.shared,
        };
        *count += 1;
        let new = *count == 1;
        let first = self.is_empty_handed(thread);
        self.give(thread, hold);
        new.then_some(LockChange::Acquired { lock, mode, first })
    }

    fn release(
        &mut self,
        thread: ThreadId,
        lock: Address,
        mode: Option<LockMode>,
    ) -> Option<LockChange> {
        let holder = self.holder(thread, lock);
        let Some(mut hold) = holder.and_then(|holder| self.take_away(holder, lock)) else {
            // Taken before we watched, or unseen: its release orders all the same.
            let last = self.is_empty_handed(thread);
            self.foreign.insert(thread, (lock, None));
            return Some(LockChange::Released {
                lock,
                mode: mode.unwrap_or(LockMode::Exclusive),
                last,
                unseen: true,
                foreign: true,
            });
        };
        let foreign = holder.filter(|holder| *holder != thread);
        if let Some(holder) = foreign {
            self.foreign.insert(thread, (lock, Some((holder, hold))));
        }
        // A call that serves both sides gives up the write side first, as it was taken last.
        let mode = match mode {
            Some(LockMode::Shared) if hold.shared > 0 => LockMode::Shared,
            _ if hold.exclusive > 0 => LockMode::Exclusive,
            _ => LockMode::Shared,
        };
        let count = match mode {
            LockMode::Exclusive => &mut hold.exclusive,
            LockMode::Shared => &mut hold.shared,
        };
        *count -= 1;
        let gone = *count == 0;
        if let (Some(holder), true) = (holder, hold.exclusive + hold.shared > 0) {
            self.give(holder, hold);
        }
        let last = self.is_empty_handed(thread);
        let foreign = foreign.is_some();
        gone.then_some(LockChange::Released { lock, mode, last, unseen: false, foreign })
    }

    /// An attempt of `thread` failed: if it was to release what is not its own, it never happened.
    fn refused(&mut self, thread: ThreadId, lock: Address, mode: LockMode) -> Option<LockChange> {
        let (_, robbed) = self.foreign.remove(&thread).filter(|(of, _)| *of == lock)?;
        if let Some((holder, hold)) = robbed
            && !self.holders.contains_key(&lock)
        {
            self.give(holder, hold);
            self.robbed.push(holder);
        }
        Some(LockChange::Refused { lock, mode })
    }

    fn give_up(&mut self, thread: ThreadId, lock: Address) -> Option<LockChange> {
        let hold = self.take_away(thread, lock);
        let hands = self.threads.entry(thread).or_default();
        hands.given_up = hold;
        let mode = mode_of(&hold?);
        let last = self.is_empty_handed(thread);
        Some(LockChange::Released { lock, mode, last, unseen: false, foreign: false })
    }

    fn take_back(&mut self, event: &Event, lock: Address) -> Option<LockChange> {
        let thread = event.thread;
        let hands = self.threads.entry(thread).or_default();
        let Some(hold) = hands.given_up.take().filter(|hold| hold.lock == lock) else {
            return self.acquire(event, lock, LockMode::Exclusive);
        };
        let mode = mode_of(&hold);
        self.evict(thread, lock, mode);
        let first = self.is_empty_handed(thread);
        self.give(thread, hold);
        Some(LockChange::Acquired { lock, mode, first })
    }

    /// Others who cannot hold `lock` beside `thread` have lost it unseen.
    fn evict(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        if lock == LockSet::TRANSACTION {
            return;
        }
        let Some(holders) = self.holders.get(&lock) else { return };
        if holders.iter().all(|holder| *holder == thread) {
            return;
        }
        for other in holders.clone().into_iter().filter(|other| *other != thread) {
            let theirs = self.of(other).mode(lock);
            if mode == LockMode::Exclusive || theirs == Some(LockMode::Exclusive) {
                self.take_away(other, lock);
                self.unsure.insert(lock);
            }
        }
    }

    /// Have we missed releases of a lock? Then who is said to hold it may not.
    pub fn is_unsure(&self, lock: Address) -> bool {
        self.unsure.contains(&lock)
    }

    /// Who gives up `lock` when `thread` releases it: the thread itself, else any holder.
    fn holder(&self, thread: ThreadId, lock: Address) -> Option<ThreadId> {
        if self.holds(thread, lock) {
            return Some(thread);
        }
        self.holders.get(&lock)?.first().copied()
    }

    fn drop_lock(&mut self, lock: Address) {
        for thread in self.holders.get(&lock).cloned().unwrap_or_default() {
            self.take_away(thread, lock);
        }
    }

    fn give(&mut self, thread: ThreadId, hold: Hold) {
        let hands = self.threads.entry(thread).or_default();
        hands.holds.push(hold);
        hands.changed();
        self.holders.entry(hold.lock).or_default().push(thread);
    }

    fn take_away(&mut self, thread: ThreadId, lock: Address) -> Option<Hold> {
        let hands = self.threads.get_mut(&thread)?;
        let at = hands.holds.iter().position(|hold| hold.lock == lock)?;
        let hold = hands.holds.remove(at);
        hands.changed();
        if self.acting != Some(thread) {
            self.robbed.push(thread);
        }
        if let Some(holders) = self.holders.get_mut(&lock) {
            holders.retain(|holder| *holder != thread);
            if holders.is_empty() {
                self.holders.remove(&lock);
            }
        }
        Some(hold)
    }
}

impl Hands {
    fn changed(&mut self) {
        self.version += 1;
        self.set.take();
    }

    fn set(&self) -> &Arc<LockSet> {
        self.set.get_or_init(|| Arc::new(self.holds.iter().map(held).collect()))
    }
}

fn held(hold: &Hold) -> HeldLock {
    let Hold { lock, place, stack, life, .. } = *hold;
    HeldLock { lock, mode: mode_of(hold), place, stack, life }
}

fn mode_of(hold: &Hold) -> LockMode {
    if hold.exclusive > 0 { LockMode::Exclusive } else { LockMode::Shared }
}

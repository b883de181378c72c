//! What is ordered before what: two happens-before orders side by side.
//!
//! The *full* order contains every edge that the synchronisation of this execution made; two
//! accesses it leaves unordered could have come the other way round in this very execution. The
//! *weak* order leaves out the edges from a lock's release to its next acquisition (`seeds/000…`
//! section 4, `seeds/003…` 2.1): who came first at a lock is chance, so it orders nothing that must
//! be ordered. Everything else is in both: fork and join, condition variables, barriers,
//! semaphores, one-time initialisation, teams and tasks, atomic accesses.
//!
//! Each thread has a clock per order, and one [`Stamp`] for both: the tick of its own chain. A
//! thread that *releases* (publishes its clock to an object) begins a new tick, so that what it does
//! afterwards is not covered; a thread that *acquires* (joins an object's clock) does not. Because
//! events arrive in an order consistent with both, the question is always the same: does the
//! clock of the thread acting now cover the stamp remembered from then?
//!
//! Futexes and hooked functions as such order nothing: their meaning, where they have one, arrives
//! as other events. What orders threads in ways of its own (descriptors, signals, annotations)
//! arrives as `Release` and `Acquire` of an object, and is in both orders.

mod atomic;
mod barrier;
pub mod bytes;
mod condition;
mod locks;
mod objects;
mod sections;
mod task;
mod thread;

pub use condition::ConditionRule;
pub use locks::{Lock, LockSetName};
pub use objects::Objects;
pub use thread::{Tenure, after};

use crate::held::LockChange;
use atomic::Atomics;
use barrier::Barriers;
use bytes::Piece;
use condition::Conditions;
use objects::Register;
use raddle_model::clock::{Chain, Stamp, VectorClock};
use raddle_model::lockset::{HeldLock, LockSet};
use raddle_model::{AccessKind, Address, Event, EventKind, LockMode, SyncObject, ThreadId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use task::Tasks;
use thread::Threads;

/// One of the two orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Lock edges included.
    Full,
    /// Lock edges left out.
    Weak,
}

/// A clock in each order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Lock edges included.
    pub full: VectorClock,
    /// Lock edges left out.
    pub weak: VectorClock,
}

impl Clocks {
    /// From now on all that `other` knows to have passed has passed.
    pub fn join(&mut self, other: &Clocks) {
        self.full.join(&other.full);
        self.weak.join(&other.weak);
    }

    /// From now on this tick, and all before it, have passed.
    pub fn raise(&mut self, stamp: Stamp) {
        self.full.raise(stamp);
        self.weak.raise(stamp);
    }

    /// Of this chain no more than this tick.
    fn limit(&mut self, stamp: Stamp) {
        self.full.limit(stamp);
        self.weak.limit(stamp);
    }

    fn of(&self, order: Order) -> &VectorClock {
        match order {
            Order::Full => &self.full,
            Order::Weak => &self.weak,
        }
    }
}

/// What a thread did by itself: see [`Orders::catch_up`].
#[derive(Debug)]
pub struct Ahead {
    /// It is in this tick of its chain.
    pub tick: u64,
    /// What it comes after.
    pub clocks: Clocks,
    /// How often it gave to or took from others in the weak order.
    pub exchanges: u64,
    /// Absent if it has neither taken nor released a lock.
    pub sections: Option<AheadSections>,
}

/// The critical sections of a thread that went on by itself.
#[derive(Debug, Clone, Copy)]
pub struct AheadSections {
    /// It has begun one.
    pub began: bool,
    /// It is in one, of this lock.
    pub open: Option<HeldLock>,
}

/// Both orders of an execution, as far as it has come.
#[derive(Debug)]
pub struct Orders {
    threads: Threads,
    /// Those that were ever released.
    locks: Register<Address, Lock>,
    /// What a lock had published before a thread that does not hold it released it; and after.
    foreign: BTreeMap<ThreadId, (Address, [VectorClock; 2])>,
    /// Locks that hand over: their edges are in both orders.
    handing: BTreeSet<Address>,
    /// What was released to queues and not yet taken.
    queues: BTreeMap<Address, VecDeque<Clocks>>,
    /// What was released to objects that are nothing else.
    released: Register<SyncObject, Clocks>,
    semaphores: BTreeMap<Address, Clocks>,
    onces: BTreeMap<Address, Clocks>,
    barriers: Barriers,
    conditions: Conditions,
    tasks: Tasks,
    atomics: Atomics,
    /// Bytes that some thread has spun on: who writes one begins a new tick, so that what it does
    /// next is not taken for what the write announced.
    spun_on: BTreeSet<u64>,
}

impl Orders {
    /// Before the first event. `lock_touched` switches atomics rule 1 of the design: that plain
    /// reads and writes of memory touched by an atomic instruction synchronise too.
    pub fn new(conditions: ConditionRule, lock_touched: bool) -> Orders {
        Orders::with_chains((u32::MAX, u32::MAX), conditions, lock_touched)
    }

    /// The same, with few chains: beyond the first number, only threads alive at once have one each, and
    /// new ones go on in those of threads that ended; beyond the second, they share one, and
    /// count as ordered where nothing orders them.
    pub fn with_chains(
        (few, limit): (u32, u32),
        conditions: ConditionRule,
        lock_touched: bool,
    ) -> Orders {
        Orders {
            threads: Threads::new(few, limit),
            locks: Register::default(),
            foreign: BTreeMap::new(),
            handing: BTreeSet::new(),
            queues: BTreeMap::new(),
            released: Register::default(),
            semaphores: BTreeMap::new(),
            onces: BTreeMap::new(),
            barriers: Barriers::default(),
            conditions: Conditions::new(conditions),
            tasks: Tasks::default(),
            atomics: Atomics::new(lock_touched),
            spun_on: BTreeSet::new(),
        }
    }

    /// The tick that what `thread` does now belongs to, and a token to keep as long as the stamp
    /// is remembered.
    pub fn stamp(&mut self, thread: ThreadId) -> (Stamp, Tenure) {
        self.threads.stamp(thread)
    }

    /// Is what happened at `stamp` ordered before what `thread` does now?
    pub fn ordered(&self, stamp: Stamp, thread: ThreadId, order: Order) -> bool {
        self.threads.clocks(thread).is_some_and(|clocks| clocks.of(order).covers(stamp))
    }

    /// What is ordered before what `thread` does now, in the weak order.
    pub fn weak_clock(&self, thread: ThreadId) -> VectorClock {
        self.threads.clocks(thread).map(|clocks| clocks.weak.clone()).unwrap_or_default()
    }

    /// A number that changes when what `thread` does next may stand in another relation to others, in
    /// the weak order, than what it did last.
    pub fn weak_version(&self, thread: ThreadId) -> u64 {
        self.threads.version(thread)
    }

    /// Begins a new tick of a thread, as a release would.
    pub fn advance(&mut self, thread: ThreadId) {
        self.threads.advance(thread);
    }

    /// The locks, for whoever follows one of them by itself.
    pub fn locks(&self) -> &Arc<Objects<Address, Lock>> {
        self.locks.objects()
    }

    /// The same for what is released to objects that are nothing else.
    pub fn released(&self) -> &Arc<Objects<SyncObject, Clocks>> {
        self.released.objects()
    }

    /// Those who hold a lock, as far as is kept with it: see [`Orders::set_holders`].
    pub fn holders(&self, lock: Address) -> Vec<ThreadId> {
        let all = self.locks.with(lock, |lock| lock.holders().map(|(of, _)| of).collect());
        all.unwrap_or_default()
    }

    /// The same for all locks that lie in `bytes`.
    pub fn holders_within(&self, bytes: &Range<u64>) -> Vec<ThreadId> {
        self.locks.within(addresses(bytes)).flat_map(|lock| self.holders(lock)).collect()
    }

    /// Keeps with a lock that was ever released who holds it.
    pub fn set_holders(&self, lock: Address, all: impl Iterator<Item = (ThreadId, LockMode)>) {
        self.locks.with(lock, |lock| lock.set_holders(all));
    }

    /// A thread has done by itself what this says. It was alone in its chain since [`Orders::alone`].
    pub fn catch_up(&mut self, thread: ThreadId, ahead: Ahead) {
        let Some(AheadSections { began, open }) = ahead.sections else {
            self.threads.catch_up(thread, ahead);
            return;
        };
        // What it was in before it has left, in the tick that was known.
        let (sections, stamp) = self.threads.sections_mut(thread);
        if began || open.is_none() {
            sections.end_all(stamp);
        }
        self.threads.catch_up(thread, ahead);
        if let Some(held) = open.filter(|_| began) {
            let (sections, stamp) = self.threads.sections_mut(thread);
            sections.begin((held.lock, held.mode), stamp);
        }
        self.conditions.catch_up(thread, began, open.is_some());
    }

    /// Where a thread stands that may go on by itself: nobody counts in its chain beside it, and no
    /// event of its past is still to be decided.
    pub fn alone(&self, thread: ThreadId) -> Option<(Stamp, &Clocks)> {
        let decided = !self.foreign.contains_key(&thread) && !self.is_undecided(thread);
        self.threads.alone(thread).filter(|_| decided)
    }

    /// The tick that what `thread` does now belongs to, for whoever does not remember it beyond the
    /// chain's past.
    pub fn tick(&mut self, thread: ThreadId) -> Stamp {
        self.threads.tick(thread)
    }

    /// By chain, the last tick that is ordered before what `thread` does now; none beyond the end.
    pub fn known(&self, thread: ThreadId, order: Order) -> impl Iterator<Item = u64> {
        let clocks = self.threads.clocks(thread);
        clocks.into_iter().flat_map(move |clocks| clocks.of(order).ticks())
    }

    /// The last tick of a chain that is ordered, in the weak order, before whatever threads outside
    /// the chain do from now on.
    pub fn settled(&self, chain: Chain) -> u64 {
        self.threads.settled(chain)
    }

    /// See [`crate::execution::Execution::is_solo`].
    pub fn is_solo(&self, thread: ThreadId) -> bool {
        !self.is_undecided(thread) && self.threads.is_solo(thread)
    }

    /// Is all over that was done in a chain: by threads that have ended, and ordered, in the weak order, before whatever
    /// happens from now on? A thread that has only just begun to count in it has done nothing.
    pub fn is_over(&self, chain: Chain, newcomer: ThreadId) -> bool {
        self.threads.is_over(chain, newcomer)
    }

    /// Are any of these bytes a synchronisation variable: touched by an atomic update since they were
    /// allocated?
    pub fn is_synchronisation(&self, bytes: Range<u64>) -> bool {
        self.atomics.updated(bytes)
    }

    /// `bytes` in parts, each all or not at all a synchronisation variable.
    pub fn parts(&self, bytes: Range<u64>) -> Vec<Range<u64>> {
        self.atomics.parts(bytes)
    }

    /// `thread` has read what others wrote, in a loop that waited for it: it comes after those
    /// writes, and after whatever their threads had come after. (Also after what these came after
    /// since; what they did themselves since is left out.)
    pub fn spun(&mut self, thread: ThreadId, writes: &[(ThreadId, Stamp)]) {
        for (writer, stamp) in writes.iter().filter(|(writer, _)| *writer != thread) {
            let mut clocks = self.threads.clocks(*writer).cloned().unwrap_or_default();
            clocks.limit(*stamp);
            clocks.raise(*stamp);
            self.threads.acquire(thread, Some(&clocks));
        }
    }

    /// There is code that spins on these bytes, though it may not have run.
    pub fn spun_on(&mut self, bytes: Range<u64>) {
        self.spun_on.extend(bytes);
    }

    /// `thread` has read, under the locks it holds, what others wrote under them: it comes after the critical sections
    /// of those writes in the weak order too, and after what their threads had come after, as far as the full
    /// order knows it. Gives all that.
    pub fn handed(
        &mut self,
        thread: ThreadId,
        held: &LockSet,
        writes: &[(ThreadId, Stamp)],
    ) -> VectorClock {
        let mut all = VectorClock::default();
        let excludes = |(lock, mode): (Address, LockMode)| match held.mode(lock) {
            Some(mine) => mine == LockMode::Exclusive || mode == LockMode::Exclusive,
            None => false,
        };
        for (writer, stamp) in writes.iter().filter(|(writer, _)| *writer != thread) {
            let (mut clock, stamp) = match self.threads.past(*writer) {
                Some((weak, sections)) => (weak.clone(), sections.end_of(*stamp, excludes)),
                None => (VectorClock::default(), *stamp),
            };
            clock.limit(stamp);
            clock.raise(stamp);
            all.join(&clock);
        }
        if let Some(clocks) = self.threads.clocks(thread) {
            all.meet(&clocks.full);
        }
        self.threads.acquire_weak(thread, &all);
        all
    }

    /// What `thread`, leaving a loop around a wait, has read in its critical section: it comes after
    /// those who wrote it under the same lock. Empty with the plain rule for conditions.
    pub fn condition_reads(&self, thread: ThreadId) -> Vec<Piece> {
        self.conditions.reads(thread)
    }

    /// `thread` has left a loop around a wait whose condition read what these wrote under a lock that
    /// it holds too: it comes after them, and after the rest of their sections, which were over before it had the lock.
    pub fn left_loop(&mut self, thread: ThreadId, held: &LockSet, writes: &[(ThreadId, Stamp)]) {
        self.spun(thread, writes);
        self.handed(thread, held, writes);
        if writes.iter().any(|(writer, _)| *writer != thread) {
            self.conditions.made_true(thread);
        }
    }

    /// What `thread` has touched in its critical section, or in the last one, and was no event. Not
    /// `whole` if some of it is forgotten.
    pub fn recall(
        &mut self,
        thread: ThreadId,
        touched: impl IntoIterator<Item = (AccessKind, Range<u64>)>,
        whole: bool,
    ) {
        self.conditions.recall(thread, touched, whole);
    }

    /// How many components the clocks have: grows with the threads alive at once.
    pub fn width(&self) -> usize {
        self.threads.width()
    }

    /// To be called before an access is judged: an undecided wake-up is decided by what the thread
    /// touches next. Only [`ConditionRule::WriteRead`] leaves any undecided.
    pub fn before(&mut self, event: &Event) {
        self.conditions.before(&mut self.threads, event);
    }

    /// The same for an access that is no event.
    pub fn touches(&mut self, thread: ThreadId, bytes: Range<u64>) {
        self.conditions.touches(&mut self.threads, thread, bytes);
    }

    /// Is a wake-up of this thread undecided?
    pub fn is_undecided(&self, thread: ThreadId) -> bool {
        self.conditions.is_undecided(thread)
    }

    /// Memory comes or goes: synchronisation objects that lay there are no more.
    pub fn forget(&mut self, bytes: Range<u64>) {
        self.locks.forget(addresses(&bytes));
        forget_in(&mut self.semaphores, &bytes);
        forget_in(&mut self.onces, &bytes);
        forget_in(&mut self.queues, &bytes);
        let Range { start, end } = addresses(&bytes);
        self.released.forget(SyncObject::Address(start)..SyncObject::Address(end));
        let spun: Vec<u64> = self.spun_on.range(bytes.clone()).copied().collect();
        for at in spun {
            self.spun_on.remove(&at);
        }
        if !self.handing.is_empty() {
            self.handing.retain(|lock| !bytes.contains(&lock.0));
        }
        self.barriers.forget(&bytes);
        self.conditions.forget(&bytes);
        self.atomics.forget(&bytes);
    }

    /// Follows one event, after [`Orders::before`] and after an access has been judged. `change` is
    /// what the event did to the locks held.
    pub fn event(&mut self, event: &Event, change: Option<LockChange>) {
        use EventKind::*;
        let thread = event.thread;
        if let Some(LockChange::Released { lock, mode, unseen, foreign, .. }) = change {
            let (sections, stamp) = self.threads.sections_mut(thread);
            sections.end(lock, stamp);
            if unseen && self.atomics.updated(lock.0..lock.0 + 1) {
                // Taken by an atomic instruction that no hook names, as below.
                self.hand_over(lock);
            }
            let before = foreign.then(|| self.published(lock, mode));
            self.release_lock(thread, lock, mode);
            if let Some(before) = before {
                let after = self.published(lock, mode);
                self.foreign.insert(thread, (lock, [before, after]));
            }
        }
        if let Some(LockChange::Refused { lock, mode }) = change
            && let Some((of, [before, after])) = self.foreign.remove(&thread)
            && of == lock
            && self.published(lock, mode) == after
        {
            self.locks.with(lock, |lock| *lock.of(mode) = before);
        }
        match &event.kind {
            ThreadCreate { child } => self.threads.create(thread, *child),
            ThreadStart { creator, .. } => self.threads.start(thread, *creator),
            ThreadExit => {
                self.foreign.remove(&thread);
                self.threads.exit(thread);
            }
            ThreadCreated { created, handle } => self.threads.named(*created, *handle),
            ThreadJoined { joined, handle } => self.threads.join(thread, *joined, *handle),

            // The release of a lock, and nothing else.
            Access { address, .. } if change.is_some_and(|c| c.releases(*address)) => {}
            Access { kind, address, size } => {
                if *kind == AccessKind::AtomicUpdate && self.locks.contains(*address) {
                    // An atomic instruction that no hook names changes a word that is a lock
                    // elsewhere (an unoptimised `try_lock`): it may take it, and no lock set will
                    // tell.
                    self.hand_over(*address);
                    self.acquire_word(thread, *address);
                }
                self.access(thread, *kind, address.0..address.0.saturating_add(u64::from(*size)));
            }
            Range { kind, address, length } => {
                self.access(thread, *kind, address.0..address.0.saturating_add(*length));
            }

            AtomicUpdated { address, size } => {
                let bytes = address.0..address.0.saturating_add(*size);
                self.atomics.read(&mut self.threads, thread, bytes);
                if self.handing.contains(address) {
                    self.acquire_word(thread, *address);
                }
            }

            LockCreated { lock } | LockDestroyed { lock } => {
                self.locks.remove(*lock);
            }

            ConditionSignal { condition, .. } => {
                self.conditions.signal(&mut self.threads, thread, *condition);
            }
            ConditionWaitBegin { condition, .. } => {
                self.conditions.wait_begin(thread, *condition);
            }
            ConditionWaitEnd { condition, woken, .. } => {
                self.conditions.wait_end(&mut self.threads, thread, *condition, *woken);
            }

            BarrierCreated { barrier, count } => self.barriers.create(*barrier, *count),
            BarrierEnter { barrier } => {
                self.barriers.enter(&mut self.threads, thread, *barrier);
            }
            BarrierLeave { barrier } => {
                self.barriers.leave(&mut self.threads, thread, *barrier);
            }

            SemaphoreCreated { semaphore, .. } => {
                self.semaphores.remove(semaphore);
            }
            SemaphorePost { semaphore } => {
                self.threads.release(thread, self.semaphores.entry(*semaphore).or_default());
            }
            SemaphoreAcquired { semaphore } => {
                self.threads.acquire(thread, self.semaphores.get(semaphore));
            }

            Release { object: SyncObject::Queue(queue) } => {
                let now = self.threads.publish(thread);
                self.queues.entry(*queue).or_default().push_back(now);
            }
            Acquire { object: SyncObject::Queue(queue) } => {
                let taken = self.queues.get_mut(queue).and_then(VecDeque::pop_front);
                self.threads.acquire(thread, taken.as_ref());
            }
            Release { object } => self.release_to(thread, *object),
            Acquire { object } => self.acquire_from(thread, *object),
            LockHandsOver { lock } => {
                self.hand_over(*lock);
            }
            ConditionLoopLeft { condition } => {
                self.conditions.loop_left(&mut self.threads, thread, *condition);
            }

            OnceEnd { once, .. } => {
                self.threads.release(thread, self.onces.entry(*once).or_default());
            }
            // A body that gave up comes before the next attempt.
            OnceBegin { once } | OncePassed { once } => {
                self.threads.acquire(thread, self.onces.get(once));
            }

            TeamFork { team } => self.tasks.team_fork(&mut self.threads, thread, *team),
            TeamBodyBegin { team } => self.tasks.body_begin(&mut self.threads, thread, *team),
            TeamBodyEnd { team } => self.tasks.body_end(&mut self.threads, thread, *team),
            TeamJoin { team } => self.tasks.team_join(&mut self.threads, thread, *team),
            TaskCreate { function, data } => {
                self.tasks.create(&mut self.threads, thread, *function, *data);
            }
            TaskBegin { function, data } => {
                self.tasks.begin(&mut self.threads, thread, *function, *data);
            }
            TaskEnd { .. } => {
                // A barrier lets nobody through before the tasks run inside it have ended.
                self.barriers.release_inside(&mut self.threads, thread);
                self.tasks.end(&mut self.threads, thread);
            }
            TaskWaited => self.tasks.waited(&mut self.threads, thread),

            // Where memory lies is the caller's to know: it calls `forget`.
            Allocate { .. } | Free { .. } | MemoryRenewed { .. } => {}
            // What is not to be judged does not concern the order.
            BenignRace { .. }
            | IgnoreBegin { .. }
            | IgnoreEnd { .. }
            | DetectionSwitched { .. } => {}
            // The lock changes come as `change`.
            LockRequested { .. }
            | LockAcquired { .. }
            | LockFailed { .. }
            | LockReleased { .. }
            | TransactionStart
            | TransactionCommit
            | TransactionAbort
            | TransactionAccess { .. } => {}
            ThreadName { .. }
            | ThreadDetached { .. }
            | ThreadCancelled { .. }
            | FunctionEnter { .. }
            | FunctionExit { .. }
            | FutexWait { .. }
            | FutexWaitEnd { .. }
            | FutexWake { .. }
            | ModuleLoad { .. }
            | ModuleUnload { .. }
            | SignalDelivered { .. }
            | Output { .. }
            | ProcessForked { .. }
            | ProcessExec { .. }
            | ProcessEnd { .. } => {}
        }
        if let Some(LockChange::Acquired { lock, mode, .. }) = change {
            self.acquire_lock(thread, lock, mode);
            let (sections, stamp) = self.threads.sections_mut(thread);
            sections.begin((lock, mode), stamp);
        }
        self.conditions.after(event, change);
    }

    fn access(&mut self, thread: ThreadId, kind: AccessKind, bytes: Range<u64>) {
        match kind {
            AccessKind::SpinRead => self.spun_on.extend(bytes.clone()),
            AccessKind::Write if self.spun_on.range(bytes.clone()).next().is_some() => {
                self.threads.publish(thread);
            }
            _ => {}
        }
        match kind {
            AccessKind::Read => self.atomics.plain_read(&mut self.threads, thread, bytes),
            AccessKind::Write => self.atomics.plain_write(&mut self.threads, thread, bytes),
            AccessKind::AtomicUpdate => self.atomics.update(&mut self.threads, thread, bytes),
            AccessKind::AtomicRead => self.atomics.read(&mut self.threads, thread, bytes),
            AccessKind::AtomicWrite => self.atomics.write(&mut self.threads, thread, bytes),
            // Whom it comes after is known to who remembers the writes: they call `spun`. The
            // variable may be an atomic one as well.
            AccessKind::SpinRead => self.atomics.read(&mut self.threads, thread, bytes),
        }
    }

    /// A lock's edges are in both orders from now on.
    fn hand_over(&mut self, lock: Address) {
        self.handing.insert(lock);
        self.locks.with(lock, |lock| lock.hands_over = true);
    }

    /// What the release of a side of a lock has published.
    fn published(&self, lock: Address, mode: LockMode) -> VectorClock {
        self.locks.with(lock, |lock| lock.of(mode).clone()).unwrap_or_default()
    }

    /// Comes after all who released the lock at `word`, in both orders.
    fn acquire_word(&mut self, thread: ThreadId, word: Address) {
        let Orders { locks, threads, .. } = self;
        locks.with(word, |lock| {
            for full in lock.before(LockMode::Exclusive) {
                let clocks = Clocks { full: full.clone(), weak: full.clone() };
                threads.acquire(thread, Some(&clocks));
            }
        });
    }

    fn release_to(&mut self, thread: ThreadId, object: SyncObject) {
        let Orders { released, threads, .. } = self;
        released.entry(object, |clocks| threads.release(thread, clocks));
    }

    fn acquire_from(&mut self, thread: ThreadId, object: SyncObject) {
        let Orders { released, threads, .. } = self;
        released.with(object, |clocks| threads.acquire(thread, Some(clocks)));
    }

    /// Who takes a lock comes after what [`Lock::before`] says.
    fn acquire_lock(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        if self.handing.contains(&lock) {
            self.acquire_from(thread, SyncObject::Address(lock));
        }
        let Orders { locks, threads, .. } = self;
        locks.with(lock, |lock| {
            lock.before(mode).for_each(|clock| threads.acquire_full(thread, clock));
        });
    }

    fn release_lock(&mut self, thread: ThreadId, lock: Address, mode: LockMode) {
        if lock == LockSet::TRANSACTION {
            // Transactions overlap, and take effect in the order of their commits.
            self.acquire_lock(thread, lock, mode);
        }
        let hands_over = self.handing.contains(&lock);
        if hands_over {
            self.release_to(thread, SyncObject::Address(lock));
        }
        let Orders { locks, threads, .. } = self;
        locks.entry(lock, |lock| {
            lock.hands_over |= hands_over;
            threads.release_full(thread, lock.of(mode));
        });
    }
}

fn addresses(bytes: &Range<u64>) -> Range<Address> {
    Address(bytes.start)..Address(bytes.end)
}

/// Removes what lies in `bytes` from a map by address.
fn forget_in<T>(map: &mut BTreeMap<Address, T>, bytes: &Range<u64>) {
    if bytes.is_empty() || map.is_empty() {
        return;
    }
    let gone: Vec<Address> =
        map.range(Address(bytes.start)..Address(bytes.end)).map(|(at, _)| *at).collect();
    for at in gone {
        map.remove(&at);
    }
}

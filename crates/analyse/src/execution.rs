//! The execution as every detector sees it: orders, held locks, segments, and what an event does to
//! memory. A detector asks [`Execution::begin`] what an event touches, judges it, and then lets
//! [`Execution::finish`] take the event into account: an atomic access is judged before it
//! synchronises, or a plain write would never race with the atomic reads that follow it.

use crate::handover::Values;
use crate::held::HeldLocks;
use crate::lock_order::LockOrder;
use crate::order::bytes::Piece;
use crate::order::{Ahead, Clocks, Lock, Objects, Order, Orders};
use crate::touch::{Kind, PlainReads, Segment, Touch, kinds_conflict, kinds_rule};
use crate::unjudged::Unjudged;
use raddle_model::clock::{Chain, Stamp, VectorClock};
use raddle_model::finding::{Certainty, Finding, FindingKind, Rule};
use raddle_model::lockset::{HeldLock, LockSet};
use raddle_model::{AccessKind, Address, Event, EventKind, Family, SyncObject, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What an event does to memory.
#[derive(Debug)]
pub enum Memory {
    /// Nothing.
    Untouched,
    /// Reads or writes it.
    Touched(Arc<Touch>),
    /// Gives it back, which counts as a write.
    Freed(Arc<Touch>),
    /// Brings it into being.
    Fresh(Range<u64>),
}

/// An execution, as far as it has come.
#[derive(Debug)]
pub struct Execution {
    orders: Orders,
    held: HeldLocks,
    unjudged: Unjudged,
    /// Absent when only what happened is asked for.
    lock_order: Option<LockOrder>,
    lock_touched: bool,
    /// Work handed over under a lock orders in the weak order too, by what memory holds.
    handovers: Option<Values>,
    /// The segment each thread is in, if it has accessed memory in it.
    segments: FxHashMap<ThreadId, Arc<Segment>>,
    /// Sizes of live allocations, by address, unless they are told when memory is given back.
    allocations: Option<BTreeMap<u64, u64>>,
}

impl Execution {
    /// Before the first event.
    pub fn new(orders: Orders, lock_touched: bool) -> Execution {
        Execution {
            orders,
            held: HeldLocks::default(),
            unjudged: Unjudged::default(),
            lock_order: None,
            lock_touched,
            handovers: None,
            segments: FxHashMap::default(),
            allocations: Some(BTreeMap::new()),
        }
    }

    /// With cycles of locks looked for, too: [`Execution::take_cycles`].
    pub fn with_lock_order(mut self) -> Execution {
        self.lock_order = Some(LockOrder::default());
        self
    }

    /// Whoever gives memory back says how much it is.
    pub fn with_sizes_told(mut self) -> Execution {
        self.allocations = None;
        self
    }

    /// With work handed over under a lock followed: [`crate::handover`].
    pub fn with_handovers(mut self, values: Values) -> Execution {
        self.handovers = Some(values);
        self
    }

    /// Is work handed over under a lock to be followed?
    pub fn follows_handovers(&self) -> bool {
        self.handovers.is_some()
    }

    /// What memory holds, for those who follow it.
    pub fn values(&self) -> Values {
        self.handovers.unwrap_or_default()
    }

    /// See [`Orders::handed`].
    pub fn handed(&mut self, thread: ThreadId, writes: &[(ThreadId, Stamp)]) -> VectorClock {
        let held = Arc::clone(self.locks(thread));
        self.orders.handed(thread, &held, writes)
    }

    /// The cycles of locks found since the last call.
    pub fn take_cycles(&mut self) -> Vec<Finding> {
        self.lock_order.as_mut().map(LockOrder::take_found).unwrap_or_default()
    }

    /// Threads whose lock sets events of others have changed since the last call.
    pub fn take_robbed(&mut self) -> Vec<ThreadId> {
        self.held.take_robbed()
    }

    /// What the event does to memory. To be followed by [`Execution::finish`].
    pub fn begin(&mut self, event: &Event) -> Memory {
        use EventKind::*;
        self.orders.before(event);
        match &event.kind {
            Access { kind, .. } | Range { kind, .. } | TransactionAccess { kind, .. }
                if self.unjudged.access(event.thread, *kind) =>
            {
                Memory::Untouched
            }
            Access { kind, address, size } => {
                self.touched(event, Kind::Access(*kind), *address, u64::from(*size))
            }
            Range { kind, address, length: size } | TransactionAccess { kind, address, size } => {
                self.touched(event, Kind::Access(*kind), *address, *size)
            }
            Allocate { address, size } | MemoryRenewed { address, size } => {
                Memory::Fresh(span(*address, *size))
            }
            Free { address, size } => {
                let size = self.size_of(*address, *size);
                match self.touched(event, Kind::Free, *address, size) {
                    Memory::Touched(touch) => Memory::Freed(touch),
                    other => other,
                }
            }
            ThreadCreate { .. }
            | ThreadStart { .. }
            | ThreadName { .. }
            | ThreadExit
            | ThreadCreated { .. }
            | ThreadJoined { .. }
            | ThreadDetached { .. }
            | ThreadCancelled { .. }
            | LockCreated { .. }
            | LockDestroyed { .. }
            | LockRequested { .. }
            | LockAcquired { .. }
            | LockFailed { .. }
            | LockReleased { .. }
            | ConditionSignal { .. }
            | ConditionWaitBegin { .. }
            | ConditionWaitEnd { .. }
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
            | AtomicUpdated { .. }
            | Release { .. }
            | Acquire { .. }
            | ConditionLoopLeft { .. }
            | LockHandsOver { .. }
            | BenignRace { .. }
            | IgnoreBegin { .. }
            | IgnoreEnd { .. }
            | DetectionSwitched { .. }
            | FunctionEnter { .. }
            | FunctionExit { .. }
            | TransactionStart
            | TransactionCommit
            | TransactionAbort
            | FutexWait { .. }
            | FutexWaitEnd { .. }
            | FutexWake { .. }
            | ModuleLoad { .. }
            | ModuleUnload { .. }
            | SignalDelivered { .. }
            | Output { .. }
            | ProcessForked { .. }
            | ProcessExec { .. }
            | ProcessEnd { .. } => Memory::Untouched,
        }
    }

    /// Takes the event into account.
    pub fn finish(&mut self, event: &Event) {
        if let Some(lock_order) = &mut self.lock_order {
            lock_order.event(event, &self.held, &mut self.orders);
        }
        let change = self.held.event(event);
        self.unjudged.event(event);
        let synchronises = match &event.kind {
            EventKind::Access { kind, .. } => kind.is_atomic(),
            kind => kind.family() == Family::Sync,
        };
        if !(synchronises && self.unjudged.synchronisation(event.thread)) {
            self.orders.event(event, change);
        }
        match &event.kind {
            EventKind::Allocate { address, size } => {
                self.forget(span(*address, *size));
                if let Some(allocations) = &mut self.allocations {
                    allocations.insert(address.0, *size);
                }
            }
            EventKind::MemoryRenewed { address, size } => {
                let bytes = span(*address, *size);
                self.unjudged.forget(&bytes);
                self.orders.forget(bytes);
            }
            EventKind::Free { address, size } => {
                let size = self.size_of(*address, *size);
                self.forget(span(*address, size));
            }
            EventKind::ThreadExit => {
                self.segments.remove(&event.thread);
            }
            EventKind::ThreadJoined { joined: Some(joined), .. } => {
                self.segments.remove(joined);
            }
            _ => {}
        }
    }

    /// Is an earlier access ordered before a later one, whose thread has not moved on since?
    pub fn ordered(&self, earlier: &Touch, later: &Touch, order: Order) -> bool {
        self.orders.ordered(earlier.segment.stamp, later.segment.thread, order)
    }

    /// Does what a thread does now come after this in the weak order?
    pub fn comes_after(&self, thread: ThreadId, stamp: Stamp) -> bool {
        self.orders.ordered(stamp, thread, Order::Weak)
    }

    /// The bytes of an access in parts, within each of which [`Execution::plain_reads`] is the same.
    pub fn parts(&self, touch: &Touch) -> Vec<Range<u64>> {
        self.unjudged.judged(self.orders.parts(touch.bytes.clone()))
    }

    /// A loop that waited for a change has read what others wrote: see [`Orders::spun`].
    pub fn spun(&mut self, touch: &Touch, writes: &[(ThreadId, Stamp)]) {
        self.orders.spun(touch.segment.thread, writes);
    }

    /// There is code that spins on these bytes: see [`Orders::spun_on`].
    pub fn spun_on(&mut self, bytes: Range<u64>) {
        self.orders.spun_on(bytes);
    }

    /// When plain reads of these bytes, which belong to one part, count as atomic.
    pub fn plain_reads(&self, bytes: Range<u64>) -> PlainReads {
        match (self.lock_touched, self.orders.is_synchronisation(bytes)) {
            (false, _) => PlainReads::Plain,
            (true, false) => PlainReads::AtomicBesideUpdates,
            (true, true) => PlainReads::Atomic,
        }
    }

    /// To be called before an event is judged, by who does not call [`Execution::begin`].
    pub fn before(&mut self, event: &Event) {
        self.orders.before(event);
    }

    /// See [`Orders::touches`].
    pub fn touches(&mut self, thread: ThreadId, bytes: Range<u64>) {
        self.orders.touches(thread, bytes);
    }

    /// Is it to be told, by [`Execution::touches`], of a thread's plain accesses before they are judged?
    pub fn is_undecided(&self, thread: ThreadId) -> bool {
        self.orders.is_undecided(thread)
    }

    /// Are a thread's plain reads, and its plain writes, not to be judged now?
    pub fn muted(&self, thread: ThreadId) -> (bool, bool) {
        let asked = |kind| self.unjudged.access(thread, kind);
        (asked(AccessKind::Read), asked(AccessKind::Write))
    }

    /// Are races on this byte declared harmless?
    pub fn is_benign(&self, byte: u64) -> bool {
        self.unjudged.is_benign(byte)
    }

    /// A loop of `thread` that waited for a change has read what these wrote: see [`Orders::spun`].
    pub fn spun_by(&mut self, thread: ThreadId, writes: &[(ThreadId, Stamp)]) {
        self.orders.spun(thread, writes);
    }

    /// The locks a thread holds. The same allocation is answered until they change.
    pub fn locks(&self, thread: ThreadId) -> &Arc<LockSet> {
        self.held.of(thread)
    }

    /// See [`HeldLocks::version`].
    pub fn locks_version(&self, thread: ThreadId) -> u64 {
        self.held.version(thread)
    }

    /// See [`HeldLocks::each`].
    pub fn each_lock(&self, thread: ThreadId) -> impl Iterator<Item = HeldLock> + '_ {
        self.held.each(thread)
    }

    /// See [`Orders::locks`].
    pub fn lock_objects(&self) -> &Arc<Objects<Address, Lock>> {
        self.orders.locks()
    }

    /// See [`Orders::released`].
    pub fn released(&self) -> &Arc<Objects<SyncObject, Clocks>> {
        self.orders.released()
    }

    /// Threads whose locks an event may concern: those that hold them, and those that did when they were last
    /// caught up with.
    pub fn concerned(&self, event: &Event) -> Vec<ThreadId> {
        use EventKind::*;
        let lying_in = |bytes: std::ops::Range<u64>| {
            let mut all = self.orders.holders_within(&bytes);
            all.extend(self.held.holders_within(&bytes));
            all
        };
        match &event.kind {
            Allocate { address, size } | MemoryRenewed { address, size } => {
                lying_in(span(*address, *size))
            }
            Free { address, size } => lying_in(span(*address, self.size_of(*address, *size))),
            kind => {
                let Some(lock) = named_lock(kind) else { return Vec::new() };
                let mut all = self.orders.holders(lock);
                all.extend(self.held.holders(lock).map(|(thread, _)| thread));
                all
            }
        }
    }

    /// After an event: what is kept with the lock it names, or with those that its thread held.
    pub fn note_holders(&self, kind: &EventKind, held_before: &[Address]) {
        for lock in named_lock(kind).into_iter().chain(held_before.iter().copied()) {
            self.orders.set_holders(lock, self.held.holders(lock));
        }
    }

    /// Where a thread stands that may go on by itself, and the one lock it holds, if any.
    pub fn alone(&self, thread: ThreadId) -> Option<(Stamp, &Clocks, Option<HeldLock>)> {
        let asked = self.lock_order.as_ref().is_some_and(|order| order.has_asked(thread));
        if asked || !self.unjudged.is_calm() {
            return None;
        }
        let holds = self.held.one_at_most(thread)?;
        let (stamp, clocks) = self.orders.alone(thread)?;
        Some((stamp, clocks, holds))
    }

    /// A thread that stood alone has gone on by itself.
    pub fn catch_up(&mut self, thread: ThreadId, ahead: Ahead) {
        let sections = ahead.sections;
        self.orders.catch_up(thread, ahead);
        if let Some(sections) = sections {
            self.held.catch_up(thread, sections.open);
        }
    }

    /// Does a thread hold any lock?
    pub fn holds_locks(&self, thread: ThreadId) -> bool {
        !self.held.is_empty_handed(thread)
    }

    /// The tick a thread is in.
    pub fn stamp(&mut self, thread: ThreadId) -> Stamp {
        self.orders.tick(thread)
    }

    /// Begins a new tick of a thread.
    pub fn advance(&mut self, thread: ThreadId) {
        self.orders.advance(thread);
    }

    /// See [`Orders::weak_version`].
    pub fn weak_version(&self, thread: ThreadId) -> u64 {
        self.orders.weak_version(thread)
    }

    /// By chain, the last tick that is ordered before what a thread does now; none beyond the end.
    pub fn known(&self, thread: ThreadId, order: Order) -> impl Iterator<Item = u64> {
        self.orders.known(thread, order)
    }

    /// The last tick of a chain that is ordered, in the weak order, before whatever threads outside
    /// the chain do from now on.
    pub fn settled(&self, chain: Chain) -> u64 {
        self.orders.settled(chain)
    }

    /// Is this thread the only one, with all that others did ordered before it in the weak order? Then whatever it does is
    /// ordered with all there was, and with all there will be, until it makes another.
    pub fn is_solo(&self, thread: ThreadId) -> bool {
        self.orders.is_solo(thread)
    }

    /// See [`Orders::is_over`].
    pub fn is_over(&self, chain: Chain, newcomer: ThreadId) -> bool {
        self.orders.is_over(chain, newcomer)
    }

    /// If the event is the end of a loop around a wait, the bytes its condition may have read.
    pub fn condition_reads(&self, event: &Event) -> Vec<Piece> {
        match event.kind {
            EventKind::ConditionLoopLeft { .. } => self.orders.condition_reads(event.thread),
            _ => Vec::new(),
        }
    }

    /// See [`Orders::recall`].
    pub fn recall(
        &mut self,
        thread: ThreadId,
        touched: impl IntoIterator<Item = (AccessKind, Range<u64>)>,
        whole: bool,
    ) {
        self.orders.recall(thread, touched, whole);
    }

    /// The thread of `event` has left a loop around a wait whose condition read what these wrote:
    /// it comes after those that were made under a lock it holds now.
    pub fn left_loop<'a>(&mut self, event: &Event, writes: impl Iterator<Item = &'a Touch>) {
        let held = self.held.of(event.thread);
        let writes: Vec<(ThreadId, Stamp)> = writes
            .filter(|write| write.segment.locks.excludes(held))
            .map(|write| (write.segment.thread, write.segment.stamp))
            .collect();
        self.left_loop_after(event.thread, &writes);
    }

    /// The same for writes of which that is known.
    pub fn left_loop_after(&mut self, thread: ThreadId, writes: &[(ThreadId, Stamp)]) {
        let held = Arc::clone(self.locks(thread));
        self.orders.left_loop(thread, &held, writes);
    }

    /// Components of the clocks: grows with the threads alive at once.
    pub fn width(&self) -> usize {
        self.orders.width()
    }

    /// The finding that two accesses race at `bytes`; `rules` are the detector's own reasons.
    pub fn finding(
        &self,
        certainty: Certainty,
        bytes: Range<u64>,
        earlier: &Touch,
        later: &Touch,
        mut rules: Vec<Rule>,
    ) -> Finding {
        let kinds = [earlier.kind, later.kind];
        let synchronisation = self.plain_reads(bytes.clone()) == PlainReads::Atomic;
        rules.extend(kinds_rule(kinds, synchronisation));
        rules.sort();
        Finding {
            kind: FindingKind::DataRace,
            certainty,
            address: Address(bytes.start),
            accesses: vec![earlier.shown(synchronisation), later.shown(synchronisation)],
            count: 1,
            rules,
            waits: Vec::new(),
        }
    }

    /// Are the kinds of these accesses to `bytes` such that they must be ordered?
    pub fn conflict(&self, a: &Touch, b: &Touch, bytes: Range<u64>) -> bool {
        kinds_conflict(a.kind, b.kind, self.plain_reads(bytes))
    }

    fn touched(&mut self, event: &Event, kind: Kind, at: Address, size: u64) -> Memory {
        if size == 0 {
            return Memory::Untouched;
        }
        let segment = self.segment(event.thread);
        let bytes = span(at, size);
        let touch = Touch { bytes, kind, segment, place: event.place, stack: event.stack };
        Memory::Touched(Arc::new(touch))
    }

    fn segment(&mut self, thread: ThreadId) -> Arc<Segment> {
        let (stamp, tenure) = self.orders.stamp(thread);
        let locks = self.held.of(thread);
        if let Some(segment) = self.segments.get(&thread)
            && segment.stamp == stamp
            && Arc::ptr_eq(&segment.locks, locks)
        {
            return Arc::clone(segment);
        }
        let segment = Arc::new(Segment { thread, stamp, locks: Arc::clone(locks), tenure });
        self.segments.insert(thread, Arc::clone(&segment));
        segment
    }

    /// The size of a block given back: as told, or as allocated; zero when neither is known.
    pub fn size_of(&self, address: Address, told: u64) -> u64 {
        if told != 0 {
            return told;
        }
        let allocated = self.allocations.as_ref().and_then(|all| all.get(&address.0));
        allocated.copied().unwrap_or(0)
    }

    /// Memory comes or goes: whatever lay there is no more.
    fn forget(&mut self, bytes: Range<u64>) {
        if let Some(allocations) = &mut self.allocations {
            let gone: Vec<u64> = allocations.range(bytes.clone()).map(|(at, _)| *at).collect();
            for at in gone {
                allocations.remove(&at);
            }
        }
        self.held.forget(bytes.clone());
        if let Some(lock_order) = &mut self.lock_order {
            lock_order.forget(bytes.clone());
        }
        self.unjudged.forget(&bytes);
        self.orders.forget(bytes);
    }
}

/// The lock that an event of this kind may put into hands, or take out of them.
fn named_lock(kind: &EventKind) -> Option<Address> {
    use EventKind::*;
    match kind {
        LockAcquired { lock, .. }
        | LockReleased { lock, .. }
        | LockFailed { lock, .. }
        | LockCreated { lock }
        | LockDestroyed { lock }
        | ConditionWaitBegin { lock, .. }
        | ConditionWaitEnd { lock, .. } => Some(*lock),
        // The release of an inlined lock whose name is lost.
        Access { kind: AccessKind::AtomicUpdate, address, .. } => Some(*address),
        _ => None,
    }
}

/// May an analyser remember where an event of this kind happened? Of the others place and stack are nobody's
/// business, and need not be found out.
pub fn is_remembered(kind: &EventKind) -> bool {
    use EventKind::*;
    matches!(
        kind,
        Access { .. }
            | Range { .. }
            | TransactionAccess { .. }
            | Free { .. }
            | LockRequested { .. }
            | LockAcquired { .. }
            | ConditionWaitBegin { .. }
            | ConditionWaitEnd { .. }
            | TransactionStart
    )
}

fn span(address: Address, size: u64) -> Range<u64> {
    address.0..address.0.saturating_add(size)
}

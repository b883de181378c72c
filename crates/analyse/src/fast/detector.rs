//! The detector: plain accesses through planes, everything else behind a lock.

mod heap;
mod judge;
mod keep;
mod late;
mod memory;
mod quick;
mod section;
mod simply;
mod split;
mod stand;
mod withdraw;

pub use memory::FREED;
pub use quick::Own;
pub use simply::Simply;

use crate::execution::Execution;
use crate::fast::SLOTS;
use crate::fast::access::{
    AccessId, Accesses, Description, LockSetId, LockSets, Record, Successors,
};
use crate::fast::cell::{Bytes, Cell, GRANULE, LINE, WHOLE, granules, lines};
use crate::fast::crowd::{Crowd, Runs};
use crate::fast::inhabited::{Inhabited, named};
use crate::fast::journal::Journal;
use crate::fast::protocol::{
    Planes, SPECIAL, SYNCHRONISES, Side, Suspect, in_room, look, place, share, slots_of,
};
use crate::fast::special::{Kept, Specials};
use crate::fast::standing::Standing;
use crate::findings::Findings;
use crate::handover::{HeldBack, Race, Values};
use crate::order::{Clocks, Lock, Objects};
use crate::padded::Padded;
use crate::touch::Kind;
use crate::withdrawn::Withdrawn;
use raddle_model::clock::Stamp;
use raddle_model::finding::Finding;
use raddle_model::{AccessKind, Address, Event, EventKind, SyncObject, ThreadId};
use rustc_hash::FxHashMap;
use section::Section;
use smallvec::SmallVec;
use stand::{Slot, TENANTS};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// How often the lock is tried before its waiter sleeps. It is held for less than a microsecond, and to sleep and be woken
/// takes ten: with 300 tries two threads that do little else than lock took 10.2 s of processor time instead of 16.6.
const SPINS: usize = 300;

/// Lines of a long access that are stamped before the others are looked at for all of them, behind one fence.
const TOGETHER: usize = 16;

/// What became of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Taken into account.
    Done,
    /// It may synchronise: tell [`FastHybrid::event`] instead.
    Synchronises,
}

/// Where an access that loses its cell is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Among the older ones.
    Older,
    /// Behind the lock, where it costs much more.
    Special,
}

/// The detectors `hybrid` and `hb`, for threads in parallel.
#[derive(Debug)]
pub struct FastHybrid<P> {
    planes: P,
    observed_only: bool,
    accesses: Accesses,
    locks: LockSets,
    found: AtomicUsize,
    /// Who shares the last slot.
    crowd: Arc<Crowd>,
    /// Locks and channels, for threads that follow them by themselves ([`quick`]).
    lock_objects: Arc<Objects<Address, Lock>>,
    released: Arc<Objects<SyncObject, Clocks>>,
    /// Where there may be more than memory.
    inhabited: Inhabited,
    /// There are blocks of the heap that begin within a granule.
    packed: AtomicBool,
    handovers: bool,
    values: Values,
    /// By slot: the chain's ticks up to this one are forgotten; cells count from here. Changed behind the lock, when
    /// no thread goes on by itself.
    bases: [AtomicU64; SLOTS],
    state: Padded<Mutex<State>>,
    /// Its lock is taken last.
    withdrawn: Padded<Mutex<Withdrawn>>,
}

#[derive(Debug)]
struct State {
    /// Slots whose planes are there.
    used: usize,
    execution: Execution,
    findings: Findings,
    specials: Specials,
    /// By chain. Those of the crowd share a slot.
    slots: Vec<Slot>,
    /// So many threads that counted in a chain are kept whatever they did.
    tenants: usize,
    runs: Runs,
    threads: FxHashMap<ThreadId, Member>,
    successors: Successors,
}

/// A thread, as the detector knows it.
#[derive(Debug, Default)]
struct Member {
    standing: Arc<Standing>,
    /// Its locks, and which version of them it is; since which tick it has them.
    locks: LockSetId,
    version: u64,
    stamp: Option<Stamp>,
    /// What it was last told of the crowd: after how many changes of what it knows, how often the crowd had forgotten, and
    /// which member it was.
    told: Option<(u64, u64, u32)>,
    section: Section,
    held_back: HeldBack,
}

/// An access being judged.
#[derive(Debug, Clone, Copy)]
struct Now<'a> {
    standing: &'a Standing,
    thread: ThreadId,
    access: AccessId,
}

impl<P: Planes> FastHybrid<P> {
    /// Before the first event. `execution` must not have more chains than there are slots and
    /// [`crate::fast::crowd::MEMBERS`].
    pub fn new(planes: P, execution: Execution, observed_only: bool) -> FastHybrid<P> {
        let crowd = Arc::new(Crowd::new(planes.slots()));
        let (lock_objects, handovers) =
            (Arc::clone(execution.lock_objects()), execution.follows_handovers());
        let released = Arc::clone(execution.released());
        let values = execution.values();
        let state = State {
            used: 0,
            execution,
            findings: Findings::default(),
            specials: Specials::default(),
            slots: Vec::new(),
            tenants: TENANTS,
            runs: Runs::default(),
            threads: FxHashMap::default(),
            successors: Successors::default(),
        };
        FastHybrid {
            planes,
            observed_only,
            accesses: Accesses::default(),
            locks: LockSets::default(),
            found: AtomicUsize::new(0),
            crowd,
            lock_objects,
            released,
            inhabited: Inhabited::default(),
            packed: AtomicBool::new(false),
            handovers,
            values,
            bases: Default::default(),
            state: Padded::new(Mutex::new(state)),
            withdrawn: Padded::default(),
        }
    }

    /// Forgets what is over as soon as that is known, not when there is much of it, and takes combinations of accesses for ever
    /// new from the first on: for tests.
    pub fn forgetting_soon(mut self) -> FastHybrid<P> {
        self.accesses.are_many_from(0);
        let mut state = self.lock();
        state.tenants = 0;
        state.runs.are_many_from(0);
        drop(state);
        self
    }

    /// The shadow memory.
    pub fn planes(&self) -> &P {
        &self.planes
    }

    /// Who shares the last slot.
    pub fn crowd(&self) -> &Crowd {
        &self.crowd
    }

    /// The number that stands for a description.
    pub fn describe(&self, description: Description) -> AccessId {
        self.accesses.intern(Record::One(description))
    }

    /// How many locks were ever held.
    pub fn locks(&self) -> usize {
        self.locks.count_locks()
    }

    /// A thread's standing; the same from its first event to its last.
    pub fn standing(&self, thread: ThreadId) -> Arc<Standing> {
        let mut state = self.lock();
        if !state.stands(thread) {
            self.refresh(&mut state, thread);
        }
        Arc::clone(&state.threads.entry(thread).or_default().standing)
    }

    /// See [`Execution::is_solo`].
    pub fn is_solo(&self, thread: ThreadId) -> bool {
        self.lock().execution.is_solo(thread)
    }

    /// What was found from number `first` on.
    pub fn findings(&self, first: usize) -> Vec<Finding> {
        let state = self.lock();
        state.findings.all().get(first..).unwrap_or_default().to_vec()
    }

    /// How many were found.
    pub fn found(&self) -> usize {
        self.found.load(Ordering::Relaxed)
    }

    /// How many granules need more than their cells.
    pub fn specials(&self) -> usize {
        self.lock().specials.len()
    }

    /// A plain access. `describe` is asked at most once, and only if there is something new. `keeps`
    /// says of a granule whether an access that loses its cell is worth keeping there.
    pub fn access(
        &self,
        thread: ThreadId,
        standing: &Standing,
        side: Side,
        (start, end): (u64, u64),
        mut keeps: impl FnMut(u64, Keeping) -> bool,
        mut describe: impl FnMut() -> AccessId,
    ) -> Outcome {
        if standing.is_muted(side) {
            return Outcome::Done;
        }
        let mut described = None;
        let mut at = start;
        loop {
            let mut synchronises = false;
            let mut stamped: SmallVec<[(u64, u64); TOGETHER]> = SmallVec::new();
            while stamped.len() < TOGETHER
                && let Some(part) = lines(self.after_known(standing, side, (at, end)), end).next()
            {
                let describe = || *described.get_or_insert_with(&mut describe);
                let Some(news) = self.stamp_part(standing, side, part, &mut keeps, describe) else {
                    synchronises = true;
                    break;
                };
                at = part.1;
                if news {
                    stamped.push(part);
                }
            }
            if let Some(access) = described.filter(|_| !stamped.is_empty()) {
                self.planes.fence();
                let now = Now { standing, thread, access };
                for part in &stamped {
                    synchronises |= self.look(now, side, *part) == Outcome::Synchronises;
                }
            }
            if synchronises {
                return Outcome::Synchronises;
            }
            if stamped.is_empty() {
                return Outcome::Done;
            }
        }
    }

    /// The first half of a plain access that lies in one line: it is stamped. The second half, if there was something new, is
    /// [`FastHybrid::look_back`], a fence later; before its thread's next event.
    pub fn stamp_in_line(
        &self,
        standing: &Standing,
        side: Side,
        part: (u64, u64),
        keeps: impl FnMut(u64, Keeping) -> bool,
        describe: impl FnMut() -> AccessId,
    ) -> Outcome {
        if standing.is_muted(side) {
            return Outcome::Done;
        }
        match self.stamp_part(standing, side, part, keeps, describe) {
            Some(_) => Outcome::Done,
            None => Outcome::Synchronises,
        }
    }

    /// Stamps a part of a line, and shares the line if there was something new, which is said. Nothing is done if it
    /// may synchronise.
    fn stamp_part(
        &self,
        standing: &Standing,
        side: Side,
        part: (u64, u64),
        keeps: impl FnMut(u64, Keeping) -> bool,
        describe: impl FnMut() -> AccessId,
    ) -> Option<bool> {
        let line = part.0 / LINE;
        if self.planes.sharers(Side::Write, line) & SYNCHRONISES != 0 && self.synchronises(part) {
            return None;
        }
        let news = self.stamp(standing, side, part, keeps, describe);
        if news {
            share(&self.planes, standing, side, part);
        }
        Some(news)
    }

    /// Stamps the cells of a part of a line, as far as this segment has not touched them. False if it has touched all.
    fn stamp(
        &self,
        standing: &Standing,
        side: Side,
        part: (u64, u64),
        mut keeps: impl FnMut(u64, Keeping) -> bool,
        mut describe: impl FnMut() -> AccessId,
    ) -> bool {
        let is_whole = part.1 - part.0 == LINE;
        if is_whole && standing.locks() == LockSetId::default() && !standing.is_in_crowd() {
            // Whatever was there is stood for.
            let cell = Cell::new(standing.tick(), WHOLE, describe());
            for granule in part.0 / GRANULE..part.1 / GRANULE {
                self.planes.set_cell(standing.slot(), side, granule, cell);
            }
            return true;
        }
        let mut news = false;
        for (granule, bytes) in granules(part.0, part.1) {
            let old = place(&self.planes, standing, side, granule).get(
                &self.planes,
                standing,
                (side, granule),
            );
            if old.tick() == standing.tick() && old.bytes() & bytes == bytes {
                continue;
            }
            self.restamp(standing, side, granule, (bytes, describe()), |cell| {
                self.make_room(standing, (side, granule), cell, |keeping| keeps(granule, keeping));
            });
            news = true;
        }
        news
    }

    /// Where in `at..end` something may be new: behind whole granules that this segment has touched. What synchronises is
    /// never stamped.
    fn after_known(&self, standing: &Standing, side: Side, (at, end): (u64, u64)) -> u64 {
        if at % GRANULE != 0 {
            return at;
        }
        let granules = at / GRANULE..end / GRANULE;
        at + GRANULE * self.planes.known(standing.slot(), side, granules, Cell(standing.current()))
    }

    /// There is code that spins on these bytes: see [`crate::Analyser::spun_on`].
    pub fn spun_on(&self, (start, end): (u64, u64)) {
        self.inhabited.mark(start..end);
        let mut state = self.lock();
        if self.planes.covers(start, end) {
            for (granule, _) in granules(start, end) {
                if !state.specials.get(granule).is_some_and(|s| s.synchronisation) {
                    self.take_from_planes(&mut state, granule);
                }
            }
            state.execution.spun_on(start..end);
        }
    }

    /// Looks at the others for a part of a line that was stamped, and a fence ago.
    fn look(&self, now: Now<'_>, side: Side, part: (u64, u64)) -> Outcome {
        let mut suspects = Vec::new();
        let writers =
            look(&self.planes, now.standing, side, part, |s| self.suspect(now, s, &mut suspects));
        if writers & SPECIAL != 0
            && !self.is_alone(now.standing, side, part.0 / LINE)
            && self.look_at_special(now, side, part, &mut suspects)
        {
            return Outcome::Synchronises;
        }
        if !suspects.is_empty() {
            self.judge(now, &suspects);
        }
        Outcome::Done
    }

    /// Has nobody else done anything to a line that an access of this side could race with? Then what is kept of it beside its
    /// cells is the thread's own, too: whoever has something there is among its sharers. But where accesses synchronise, each
    /// is to be seen.
    fn is_alone(&self, standing: &Standing, side: Side, line: u64) -> bool {
        let writers = self.planes.sharers(Side::Write, line);
        let readers = match side {
            Side::Write => self.planes.sharers(Side::Read, line),
            Side::Read => 0,
        };
        let mut others = slots_of((writers | readers) & !standing.own_slots());
        others.next().is_none() && writers & SYNCHRONISES == 0
    }

    /// Any other event, and accesses that may synchronise. `journal`: what its thread touched last.
    pub fn event(&self, event: &Event, journal: &Journal) {
        use EventKind::*;
        named(&event.kind).into_iter().for_each(|bytes| self.inhabited.mark(bytes));
        let mut state = self.lock();
        let state = &mut *state;
        let sized = state.with_size(event);
        let event = sized.as_ref().unwrap_or(event);
        // Memory that comes and goes changes nothing in where its thread stands.
        let apart = matches!(event.kind, Allocate { .. } | Free { .. } | MemoryRenewed { .. });
        if matches!(event.kind, ThreadStart { .. }) || !state.threads.contains_key(&event.thread) {
            // It finds a chain, perhaps somebody else's; its creator may have to publish.
            self.take_over_all(state);
        }
        if !apart {
            self.catch_up(state, event.thread);
        }
        self.take_over_concerned(state, event, apart);
        if !matches!(event.kind, ThreadStart { .. }) && !state.stands(event.thread) {
            self.refresh(state, event.thread);
        }
        let leaving: SmallVec<[Address; 2]> = match event.kind {
            ThreadExit => state.execution.each_lock(event.thread).map(|held| held.lock).collect(),
            _ => SmallVec::new(),
        };
        state.execution.before(event);
        self.recall(state, event, journal);
        let held = state.execution.holds_locks(event.thread);
        self.hand_over(state, event, journal);
        match &event.kind {
            kind if !self.has_shadow(state, kind) => {}
            Access { kind, address, size } => {
                self.synchronise(state, event, *kind, (address.0, u64::from(*size)));
            }
            Range { kind, address, length: size } | TransactionAccess { kind, address, size } => {
                self.synchronise(state, event, *kind, (address.0, *size));
            }
            Allocate { address, size } | MemoryRenewed { address, size } => {
                self.clear(state, address.0, *size);
            }
            Free { address, size } => {
                let size = state.execution.size_of(*address, *size);
                self.free(state, event, address.0, size);
            }
            ConditionLoopLeft { .. } => self.left_loop(state, event),
            _ => {}
        }
        state.execution.finish(event);
        state.execution.note_holders(&event.kind, &leaving);
        let holds = state.execution.holds_locks(event.thread);
        let cycles = state.execution.take_cycles();
        self.add(&mut state.findings, cycles);
        if !apart {
            self.refresh(state, event.thread);
        }
        self.settle(state, event);
        if let Some(member) = state.threads.get_mut(&event.thread).filter(|_| !apart) {
            member.section.event(&event.kind, (held, holds), journal.count);
        }
        for robbed in state.execution.take_robbed() {
            // It may come to its next access without an event of its own.
            if state.threads.contains_key(&robbed) {
                self.refresh(state, robbed);
            }
        }
        if matches!(event.kind, DetectionSwitched { .. }) {
            // It is about everybody.
            let threads: Vec<ThreadId> = state.threads.keys().copied().collect();
            threads.into_iter().for_each(|thread| self.refresh(state, thread));
        }
        match event.kind {
            ThreadExit => drop(state.threads.remove(&event.thread)),
            _ if apart => {}
            _ => self.let_go(state, event.thread),
        }
    }

    /// Is there shadow for all memory that an event touches?
    fn has_shadow(&self, state: &State, kind: &EventKind) -> bool {
        use EventKind::*;
        let (address, size) = match kind {
            Access { address, size, .. } => (*address, u64::from(*size)),
            Range { address, length: size, .. }
            | TransactionAccess { address, size, .. }
            | Allocate { address, size }
            | MemoryRenewed { address, size } => (*address, *size),
            Free { address, size } => (*address, state.execution.size_of(*address, *size)),
            _ => return true,
        };
        self.planes.covers(address.0, address.0.saturating_add(size))
    }

    fn add(&self, findings: &mut Findings, races: Vec<Finding>) {
        if !races.is_empty() {
            findings.add(races);
            self.found.store(findings.all().len(), Ordering::Relaxed);
        }
    }

    /// Races whose later access is `thread`'s; those that the end of its critical section decides wait.
    fn add_races(&self, state: &mut State, thread: ThreadId, races: Vec<Race>) {
        if races.is_empty() {
            return;
        }
        let races = match state.threads.get_mut(&thread).filter(|_| self.handovers) {
            Some(Member { standing, held_back, .. }) => {
                let certain = held_back.sort(races, standing.locks() != LockSetId::default());
                standing.set_holds_back(!held_back.is_empty());
                certain
            }
            None => races.into_iter().map(|(race, _)| race).collect(),
        };
        self.add(&mut state.findings, races);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        for _ in 0..SPINS {
            if let Ok(state) = self.state.try_lock() {
                return state;
            }
            std::hint::spin_loop();
        }
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Is any granule of these bytes accessed atomically?
    fn synchronises(&self, (start, end): (u64, u64)) -> bool {
        self.lock().specials.synchronise(start / GRANULE..end.div_ceil(GRANULE))
    }

    /// Looks at what is kept of a line beside its cells. True if a granule has come to be accessed
    /// atomically meanwhile: the stamps there are taken back.
    fn look_at_special(
        &self,
        now: Now<'_>,
        side: Side,
        (start, end): (u64, u64),
        suspects: &mut Vec<Suspect>,
    ) -> bool {
        let state = self.lock();
        let mut synchronises = false;
        for (granule, bytes) in granules(start, end) {
            let Some(special) = state.specials.get(granule) else { continue };
            if special.synchronisation {
                let place = place(&self.planes, now.standing, side, granule);
                place.set(&self.planes, now.standing, (side, granule), Cell::EMPTY);
                synchronises = true;
            }
            self.kept_suspects(now, granule, (bytes, &special.kept), suspects);
        }
        synchronises
    }

    /// An access to memory that is, or now becomes, a means of synchronisation.
    fn synchronise(
        &self,
        state: &mut State,
        event: &Event,
        kind: AccessKind,
        (address, size): (u64, u64),
    ) {
        let end = address.saturating_add(size);
        let Some(member) = state.threads.get(&event.thread) else { return };
        if member.standing.is_muted(if kind.writes() { Side::Write } else { Side::Read }) {
            return;
        }
        let standing = Arc::clone(&member.standing);
        let access = self.describe(Description {
            kind: Kind::Access(kind),
            size,
            place: event.place,
            stack: event.stack,
        });
        let now = Now { standing: &standing, thread: event.thread, access };
        let settled = self.settled(state, standing.slot(), standing.tick());
        let mut races = Vec::new();
        let mut awaited = Vec::new();
        for (granule, bytes) in granules(address, end) {
            if !state.specials.get(granule).is_some_and(|s| s.synchronisation) {
                self.take_from_planes(state, granule);
            }
            let kept = state.specials.entry(granule).kept.clone();
            if kind == AccessKind::SpinRead {
                let writes = kept.iter().filter(|kept| {
                    kept.bytes & bytes != 0
                        && self.accesses.one(kept.access).is_some_and(|one| one.kind.writes())
                });
                awaited.extend(writes.map(|kept| self.when(state, kept.slot, kept.tick)));
            }
            let mut suspects = Vec::new();
            self.kept_suspects(now, granule, (bytes, &kept), &mut suspects);
            races.extend(suspects.iter().flat_map(|s| self.races_by_byte(state, now, s)));
            let new = Kept { slot: standing.slot(), tick: standing.tick(), bytes, access };
            let special = state.specials.entry(granule);
            special.keep(new, self.most_kept(), |old| self.stands_for(&new, old, settled));
        }
        self.add_races(state, event.thread, races);
        self.catch_up_with(state, &awaited);
        state.execution.spun_by(event.thread, &awaited);
    }

    /// A granule becomes a means of synchronisation: what its cells hold is kept beside them, and
    /// nothing is stamped there from now on, so that every access to it is seen.
    fn take_from_planes(&self, state: &mut State, granule: u64) {
        let line = granule * GRANULE / LINE;
        state.specials.entry(granule).synchronisation = true;
        self.planes.add_sharers(Side::Write, line, SPECIAL | SYNCHRONISES);
        // A stamp made before this fence is found below; who stamps after it finds the mark.
        self.planes.fence();
        for side in [Side::Write, Side::Read] {
            for slot in slots_of(self.planes.sharers(side, line)) {
                let special = state.specials.entry(granule);
                let mut take = |cell: Cell, bytes: Bytes| {
                    self.each_access((slot, side, granule), cell, bytes, |one| {
                        let (tick, bytes, access) = (one.tick(), one.bytes(), one.access());
                        let kept = Kept { slot, tick, bytes, access };
                        special.keep(kept, self.most_kept(), |_| false);
                    });
                };
                // In this order: who makes room meanwhile is in both places, not in neither.
                let newest = self.planes.cell(slot, side, granule);
                if let Some(cell) = self.older(slot, side, granule) {
                    let of_strip = cell.access().is_strip() && cell.access() == newest.access();
                    take(cell, if of_strip { WHOLE & !newest.bytes() } else { WHOLE });
                    self.planes.set_older(slot, side, granule, Cell::EMPTY);
                }
                if newest != Cell::EMPTY {
                    take(newest, WHOLE);
                    self.planes.set_cell(slot, side, granule, Cell::EMPTY);
                }
                if slot == self.crowd.slot() {
                    in_room(&self.planes, &self.crowd, (side, granule), |member, room, cell| {
                        self.planes.set_entry(room, member, Cell::EMPTY);
                        take(cell, WHOLE);
                    });
                }
            }
        }
    }
}

impl State {
    /// If memory is given back and it is not said how much: the same event with its size.
    fn with_size(&self, event: &Event) -> Option<Event> {
        let EventKind::Free { address, size: 0 } = event.kind else { return None };
        let kind = EventKind::Free { address, size: self.execution.size_of(address, 0) };
        let Event { order, thread, place, stack, .. } = *event;
        Some(Event { order, thread, place, stack, kind })
    }

    /// Is a thread known, and its standing what its last event made it? Events of others that change it
    /// bring it up to date themselves.
    fn stands(&self, thread: ThreadId) -> bool {
        let version = self.execution.locks_version(thread);
        self.threads.get(&thread).is_some_and(|member| member.version == version)
    }
}

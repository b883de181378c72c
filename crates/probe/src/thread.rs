//! What the probe keeps for each thread of the target, and finding it.
//!
//! A state belongs to its thread: inserted code hands it to the handlers through a slot, engine
//! callbacks find it through the same slot. Only the end of a thread goes through the registry,
//! because the engine may end threads from another one when the process exits.

use crate::analysis::{AccessCache, Counted, Recent, Touching};
use crate::debug::At;
use crate::frames::{self, Frames};
use crate::instrument::leave::Leave;
use crate::memory::Reservation;
use crate::memory::kept::Kept;
use crate::memory::kernel::SignalAction;
use crate::memory::log::{Log, Writer};
use crate::memory::quick::{QuickTable, Row};
use crate::middle::Middle;
use crate::monitor::channels::KnownChannels;
use crate::monitor::hooks::{self, Pending};
use crate::monitor::modules::PlaceCache;
use crate::monitor::roles::Quiet;
use crate::monitor::signals::Dispositions;
use crate::probe::{Probe, fail};
use crate::schedule::{Again, PendingInput, value_at};
use crate::stacks::{Spot, ThreadStacks};
use crate::trampoline::{has_wide_vectors, slot};
use raddle_analyse::execution::is_remembered;
use raddle_analyse::fast::Standing;
use raddle_dynamorio::process;
use raddle_dynamorio::slots::{Slots, ThreadSlots};
use raddle_model::{Address, Event, EventKind, Family, Place, StackId, ThreadId};
use raddle_wire::log::Record;
use rustc_hash::FxHashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// Stack for Rust code called from inserted code: unwinding and encoding are the deepest users.
const STACK_SIZE: usize = 256 * 1024;

/// One thread's state.
#[derive(Debug)]
pub struct ThreadState {
    pub id: ThreadId,
    pub slots: ThreadSlots,
    pub stack: Reservation,
    /// Executions per block, in count mode.
    pub counters: Option<Reservation>,
    /// Hooked calls counted by the trampoline, when nothing else is wanted of them.
    pub quick: Option<QuickTable>,
    /// Hooked calls that have not returned, innermost last.
    pub pending: Vec<Pending>,
    /// OpenMP teams this thread works in, innermost last.
    pub teams: Vec<Address>,
    /// The thread this one made last.
    pub last_child: Option<ThreadId>,
    /// Registers before a scanning string instruction.
    pub scan: Scan,
    /// Memory operand of the inlined lock operation under way.
    pub inlined: Address,
    pub places: PlaceCache,
    pub stacks: ThreadStacks,
    /// Frames of its stack that are known.
    pub frames: Frames,
    /// Accesses the detector has been told of since the last synchronisation.
    pub recent: Recent,
    /// Where the thread stands in the fast detector's order.
    pub standing: Option<Arc<Standing>>,
    /// The same for the middle path.
    pub middle: Option<Box<Middle>>,
    /// Its recent accesses, described.
    pub accesses: AccessCache,
    /// What the detector was told.
    pub counted: Counted,
    /// The site of the instruction whose access is being reported.
    pub site: Option<u32>,
    /// Its instruction reads and writes the memory.
    pub updates: bool,
    /// The watched access under way.
    touched: Option<Touched>,
    /// When it last left the code cache.
    pub leave: Leave,
    /// How it came into our code, and its registers then, for a debugger.
    pub at: At,
    pub kept: Kept,
    /// The mapped region the stack pointer was last seen in.
    pub stack_region: (u64, u64),
    /// Where the stack begins that it was given, if it was.
    pub given_stack: Option<Address>,
    /// What descriptors it uses stand for.
    pub channels: KnownChannels,
    /// Arguments of the system call under way that are needed after it.
    pub system_call: [u64; 6],
    /// Arguments of the call under way, as a scheduler sees it.
    pub call_arguments: [u64; 2],
    /// Arguments of the call under way that were changed, and what they were.
    pub changed_arguments: Vec<(u32, u64)>,
    /// A call that a signal has interrupted and that is to be made again.
    pub again: Option<Again>,
    /// The name of a file that one of them is.
    pub changed_path: Option<CString>,
    /// The call under way, when its answer comes from outside.
    pub input: Option<PendingInput>,
    /// The path of the file that is being opened.
    pub system_call_path: Option<String>,
    /// What the child of a vfork has said about signals.
    pub dispositions: Option<Box<Dispositions>>,
    /// Signals that the kernel ignores while the program becomes another, and what it did with them.
    pub handed_down: Vec<(u32, SignalAction)>,
    log: Option<Arc<Log>>,
    writer: Writer,
    counts: FxHashMap<(usize, Place), (&'static str, u64)>,
}

/// A watched access: its event and its memory.
#[derive(Debug, Clone, Copy)]
struct Touched {
    order: u64,
    address: Address,
    size: u64,
}

/// Whose code a thread runs: what is an event depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// The program's: everything counts.
    Program = 0,
    /// An opaque hooked function's: only what it does to the heap counts, because the memory it
    /// takes and gives back is shared with the program.
    Library = 1,
    /// An opaque allocation function's: nothing counts.
    Allocator = 2,
    /// What comes before and after a thread's own function: the C library sets it up and cleans up
    /// after it (accesses of guarded modules do not count), and runs the program's destructors (all
    /// else does).
    Margin = 3,
}

impl Inside {
    /// By its number in the slot.
    pub fn from_slot(number: u64) -> Inside {
        match number {
            0 => Inside::Program,
            1 => Inside::Library,
            2 => Inside::Allocator,
            _ => Inside::Margin,
        }
    }
}

/// See [`ThreadState::scan`].
#[derive(Debug, Default, Clone, Copy)]
pub struct Scan {
    pub rdi: u64,
    pub rsi: u64,
    pub rcx: u64,
}

impl ThreadState {
    /// A state for a thread with this number; `None` when memory is short.
    pub fn new(
        id: ThreadId,
        slots: ThreadSlots,
        counters: Option<Reservation>,
        log: Option<Arc<Log>>,
    ) -> Option<ThreadState> {
        Some(ThreadState {
            id,
            slots,
            stack: Reservation::new(STACK_SIZE)?,
            counters,
            quick: None,
            pending: Vec::new(),
            teams: Vec::new(),
            last_child: None,
            scan: Scan::default(),
            inlined: Address(0),
            places: PlaceCache::default(),
            stacks: ThreadStacks::default(),
            frames: Frames::new()?,
            recent: Recent::default(),
            standing: None,
            middle: None,
            accesses: AccessCache::default(),
            counted: Counted::default(),
            site: None,
            updates: false,
            touched: None,
            leave: Leave::default(),
            at: At::default(),
            kept: Kept::default(),
            stack_region: (0, 0),
            given_stack: None,
            channels: KnownChannels::default(),
            system_call: [0; 6],
            call_arguments: [0; 2],
            changed_arguments: Vec::new(),
            changed_path: None,
            again: None,
            input: None,
            system_call_path: None,
            dispositions: None,
            handed_down: Vec::new(),
            log,
            writer: Writer::new(id),
            counts: FxHashMap::default(),
        })
    }

    /// Inside an opaque hooked function?
    pub fn is_opaque(&self) -> bool {
        matches!(self.inside(), Inside::Library | Inside::Allocator)
    }

    /// Is this before or after the thread's own function, so that accesses of guarded modules are no
    /// events?
    pub fn is_in_margin(&self) -> bool {
        self.inside() == Inside::Margin
    }

    /// Whose code runs.
    pub fn inside(&self) -> Inside {
        Inside::from_slot(self.slots.get(slot::OPAQUE))
    }

    /// Enters or leaves the inside of an opaque hooked function.
    pub fn set_inside(&mut self, inside: Inside) {
        self.slots.set(slot::OPAQUE, inside as u64);
    }

    /// The innermost hooked call will have returned at this stack pointer.
    pub fn set_hooked(&mut self, sp: u64) {
        self.frames.set_hooked(sp);
        self.set_top(self.slots.get(slot::TOP));
    }

    /// The innermost known frame is this one, by what the slot holds.
    pub fn set_top(&mut self, top: u64) {
        self.slots.set(slot::TOP, top);
        self.slots.set(slot::PENDING, self.frames.pending(top));
    }

    /// Makes [`Self::stack_region`] the region the stack pointer is in. Looking for it means reading
    /// all mappings of the process, so what happens outside the target's code does not.
    pub fn find_stack(&mut self, sp: u64) {
        if sp != 0 && !(self.stack_region.0..self.stack_region.1).contains(&sp) {
            self.stack_region = process::region_of(sp).map_or((0, 0), |r| (r.start, r.end));
        }
    }

    /// Reports an event at a spot of the target's code: to the log, the detector or the counts,
    /// whichever this execution has.
    pub fn emit(&mut self, probe: &Probe, spot: Spot, kind: EventKind) {
        let family = kind.family();
        if self.log.is_none() || !probe.wants(family) {
            return;
        }
        self.tell_after();
        let touches = match &probe.scheduler {
            Some(scheduler) => scheduler.event(probe, self, spot, &kind),
            None => None,
        };
        if probe.options.silent && !matches!(family, Family::Thread | Family::Process) {
            return;
        }
        if probe.options.count && family != Family::Process {
            let name = kind.name();
            let count =
                self.counts.entry((name.as_ptr() as usize, spot.place)).or_insert((name, 0));
            count.1 += 1;
            return;
        }
        if let Some(analysis) = &probe.analysis {
            if let Some(touching) = Touching::of(&kind)
                && analysis.access(probe, self, spot, touching)
            {
                return;
            }
            if analysis.is_idle(self, &kind) {
                return;
            }
        }
        let stack = match &probe.analysis {
            _ if !probe.options.stacks => StackId::NONE,
            Some(_) if !is_kept(&kind) => StackId::NONE,
            _ => probe.stacks.capture(probe, self, spot),
        };
        let mut event = Event { order: 0, thread: self.id, place: spot.place, stack, kind };
        if let Some(analysis) = &probe.analysis {
            if !matches!(event.kind, EventKind::Access { .. } | EventKind::Range { .. }) {
                self.recent.next_segment();
            }
            analysis.event(self, &mut event);
            // Who the threads are and what code there is, the report must know as well.
            if !matches!(family, Family::Thread | Family::Process) {
                return;
            }
        }
        if event.stack != StackId::NONE {
            probe.stacks.tell(self, event.stack);
        }
        if let Some(log) = &self.log {
            let order = log.next_order();
            event.order = order;
            self.write(&Record::Event(event));
            if let Some((address, size)) = touches {
                self.tell_value(Touched { order, address, size }, false);
                self.touched = Some(Touched { order, address, size });
            }
        }
    }

    /// Tells what a watched access has left in its memory: when its instruction has run, or, for a
    /// function or a string instruction, when the thread next has something to tell.
    pub fn tell_after(&mut self) {
        if let Some(touched) = self.touched.take() {
            self.tell_value(touched, true);
        }
    }

    fn tell_value(&mut self, Touched { order, address, size }: Touched, after: bool) {
        if let Some(value) = value_at(address, size) {
            self.write(&Record::Value { order, after, value });
        }
    }

    /// Reports an event of another thread that this one brought about.
    pub fn emit_for(&mut self, other: ThreadId, probe: &Probe, spot: Spot, kind: EventKind) {
        if let Some(analysis) = &probe.analysis {
            analysis.look_back(self);
        }
        let own = std::mem::replace(&mut self.id, other);
        self.emit(probe, spot, kind);
        self.id = own;
    }

    /// Appends a record to the log.
    pub fn write(&mut self, record: &Record) {
        if let Some(log) = &self.log
            && let Err(why) = self.writer.write(log, record)
        {
            fail(&why);
        }
    }

    /// Writes what was counted; the thread has stopped.
    pub fn flush_counts(&mut self, probe: &Probe) {
        const ROWS: usize = 500;
        if let Some(mut quick) = self.quick.take() {
            quick.rows().for_each(|row| self.add_quick(probe, row));
        }
        let mut events: Vec<_> = self
            .counts
            .drain()
            .map(|((_, place), (name, count))| (name.to_owned(), place, count))
            .collect();
        events.sort();
        for rows in events.chunks(ROWS) {
            self.write(&Record::EventCounts { thread: self.id, counts: rows.to_vec() });
        }
        let Some(counters) = &self.counters else { return };
        let places = probe.instrumentation.counted(counters);
        for rows in places.chunks(ROWS) {
            self.write(&Record::Counts { thread: self.id, places: rows.to_vec() });
        }
    }

    /// Adds a row of the quick counts to the others and empties it.
    pub fn add_quick(&mut self, probe: &Probe, row: &mut Row) {
        let Some(hook) = probe.monitor.hooks.get(row.hook as usize) else { return };
        if hook.quiet == Some(Quiet::Entry { always: false }) {
            self.counted.synchronisations += std::mem::take(&mut row.entered);
        }
        let Some(tally) = &hook.tally else { return };
        let counted = [(&tally.entry, &mut row.entered), (&tally.success, &mut row.succeeded)];
        for (names, times) in counted {
            let times = std::mem::take(times);
            for name in names.iter().filter(|_| times != 0) {
                let key = (name.as_ptr() as usize, row.place);
                self.counts.entry(key).or_insert((name, 0)).1 += times;
            }
        }
    }

    /// Adds all of them.
    pub fn add_all_quick(&mut self, probe: &Probe) {
        if let Some(mut quick) = self.quick.take() {
            quick.rows().for_each(|row| self.add_quick(probe, row));
            self.quick = Some(quick);
        }
    }

    /// Where its events go; absent in a process nobody follows.
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.log.as_ref()
    }

    /// Gives up the chunk: nothing more will be written.
    pub fn close(&mut self) {
        if let Some(log) = &self.log {
            self.writer.close(log);
        }
    }

    /// In a forked child: what was counted and written is the parent's; goes on with another log.
    pub fn restart(&mut self, id: ThreadId, log: Option<Arc<Log>>) {
        self.id = id;
        self.writer.disown();
        self.writer = Writer::new(id);
        self.log = log;
        self.counts.clear();
        self.counted = Counted::default();
        if let Some(quick) = &mut self.quick {
            quick.clear();
        }
        self.last_child = None;
    }
}

/// With a detector: is it remembered where an event of this kind happened, by the detector or the command?
fn is_kept(kind: &EventKind) -> bool {
    is_remembered(kind)
        || matches!(kind, EventKind::Allocate { .. })
        || matches!(kind.family(), Family::Thread | Family::Process)
}

/// The states of all live threads, by the kernel's id.
#[derive(Debug, Default)]
pub struct Registry {
    states: Mutex<FxHashMap<u32, StatePointer>>,
    /// Events from before the first thread's start: the first modules.
    early: Mutex<Vec<EventKind>>,
    /// What the process gave the kernel as its exit status, plus one; zero while it lives.
    status: AtomicI64,
}

#[derive(Debug)]
struct StatePointer(*mut ThreadState);

// SAFETY: whoever removes the pointer from the registry owns the state.
unsafe impl Send for StatePointer {}

impl Registry {
    /// Adds the current thread's state, which from now on is reached through its slot.
    pub fn add(&self, os_id: u32, mut state: ThreadState, handlers: u64, private_fs: u64) {
        state.slots.set(slot::STACK, state.stack.end());
        state.slots.set(slot::HANDLERS, handlers);
        state.slots.set(slot::PRIVATE_FS, private_fs);
        state.slots.set(slot::FRAMES, state.frames.start());
        state.slots.set(slot::WIDE, u64::from(has_wide_vectors()));
        state.slots.set(slot::TOP, frames::FIRST as u64);
        state.slots.set(slot::PENDING, u64::MAX);
        state.slots.set(slot::QUICK, state.quick.as_ref().map_or(0, QuickTable::start));
        state.slots.set(slot::COUNTERS, state.counters.as_ref().map_or(0, Reservation::start));
        let state = Box::into_raw(Box::new(state));
        // SAFETY: just made; the current thread is its owner.
        unsafe { (*state).slots.set(slot::THREAD, state as u64) };
        self.lock().insert(os_id, StatePointer(state));
    }

    /// Takes a thread's state out. The thread must run no more of its own code.
    pub fn remove(&self, slots: Slots, os_id: u32) -> Option<Box<ThreadState>> {
        let pointer = self.lock().remove(&os_id)?;
        if slots.get(slot::THREAD) == pointer.0 as u64 {
            slots.set(slot::THREAD, 0);
        }
        // SAFETY: made by `Box::into_raw` in `add`; removed once.
        Some(unsafe { Box::from_raw(pointer.0) })
    }

    /// In a forked child: only the current thread is left.
    pub fn keep_only(&self, current: &mut ThreadState, os_id: u32) {
        let mut states = self.lock();
        // The states of threads that do not exist here are leaked: their memory may have been
        // half-changed when the process was copied.
        states.clear();
        states.insert(os_id, StatePointer(current));
    }

    /// Keeps an event for the first thread to report.
    pub fn keep_early(&self, event: EventKind) {
        self.early.lock().unwrap_or_else(|e| e.into_inner()).push(event);
    }

    /// Takes what was kept.
    pub fn take_early(&self) -> Vec<EventKind> {
        std::mem::take(&mut *self.early.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// Remembers what the process tells the kernel at its end.
    pub fn set_exit_status(&self, status: i32) {
        self.status.store(i64::from(status as u8) + 1, Ordering::Relaxed);
    }

    /// See [`Self::set_exit_status`].
    pub fn exit_status(&self) -> Option<i32> {
        match self.status.load(Ordering::Relaxed) {
            0 => None,
            status => Some(status as i32 - 1),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<u32, StatePointer>> {
        self.states.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The current thread's state, inside an engine callback. Absent before the thread's start and
/// after its end.
pub fn current(probe: &Probe) -> Option<&'static mut ThreadState> {
    let state = probe.slots.get(slot::THREAD) as *mut ThreadState;
    // SAFETY: the slot is null or the state of this very thread, which lives until the thread's
    // end. An engine callback and a handler never run in one thread at once, and no caller keeps
    // the reference beyond its callback.
    let thread = unsafe { state.as_mut() }?;
    hooks::settle(thread);
    Some(thread)
}

//! Controlled execution: one thread runs at a time, and a policy says which.
//!
//! There is one *turn*. Who has it runs; everybody else stands in a wait of ours, on a word of its
//! own ([`turn`]). At a *scheduling point* the running thread asks the policy and hands the turn on:
//! before system calls, atomic instructions, watched places, and after so many branches
//! ([`points`], [`watch`]). What would block in the kernel is waited for here instead ([`futex`],
//! [`descriptors`], [`calls`], [`again`]), so that whoever has the turn is never stuck while another
//! could run; time is ours as well ([`clock`], [`timers`], [`given`]), and so are the numbers of
//! processes and threads ([`ids`]) and what the kernel says of the process and the machine ([`told`]).
//! When nobody can go on, that is a deadlock ([`stuck`]), and when
//! nobody gets on, that is no better ([`progress`]). What everybody is about to do can be told in
//! words ([`overview`]). What comes from outside is kept, and given again
//! in a replay ([`input`], [`outputs`]).
//!
//! All of it is one state behind one lock, and only the thread that has the turn changes it (but for
//! a new thread entering its name, while its creator waits for that).

mod again;
mod calls;
mod clock;
mod descriptors;
mod farewell;
mod futex;
mod given;
mod ids;
mod input;
mod locks;
mod outputs;
mod overview;
mod points;
mod progress;
mod signals;
mod streams;
mod stuck;
mod table;
mod timers;
mod told;
mod turn;
mod watch;

pub use again::Again;
pub use input::PendingInput;
pub use points::BlockPoints;
pub use watch::value_at;

use crate::memory::kernel;
use crate::memory::outside::{self, Mode};
use crate::monitor::modules::{self, LoadedModule};
use crate::monitor::system_calls::is_futex_wait;
use crate::probe::Probe;
use crate::thread::ThreadState;
use crate::trampoline::slot;
use clock::Clock;
use raddle_dynamorio::process::{self, SystemCall};
use raddle_model::ThreadId;
use raddle_schedule::{Policy, PolicyName, Recorder, Replay, Rng, Schedule, Step};
use raddle_wire::options::{PolicyChoice, ScheduleOptions};
use raddle_wire::serve::Request;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use table::{Entry, Table};

/// Branches a thread may make between two scheduling points, on average. A point costs a
/// microsecond: one in five thousand branches is lost in the noise, and a spinning thread gives way
/// within some ten microseconds.
const QUANTUM: u64 = 5_000;
/// Quanta that a thread may have at a time while it is alone: nobody waits for it, but somebody may want to know
/// whether it gets on.
const ALONE: u64 = 1_000;

/// Who may run.
#[derive(Debug)]
pub struct Scheduler {
    /// Not in a forked child, and not while the process ends.
    on: AtomicBool,
    /// Set by a new thread when it is known; its creator waits for it.
    born: AtomicU32,
    /// The call that makes a thread is under way; only who makes it knows.
    expecting: AtomicBool,
    forks: turn::Forks,
    ids: ids::Ids,
    watched: watch::Watched,
    cycle: locks::Cycle,
    /// Asking for a lock while another is held is a point.
    lock_points: AtomicBool,
    /// Time may pass though somebody could run.
    early_time: bool,
    /// A timer may interrupt what a thread computes: calls at points see the target's registers.
    interruptible: AtomicBool,
    /// Signals whose handlers let calls go on, one bit each.
    restarting: AtomicU64,
    /// Signals that have handlers, one bit each.
    handled: AtomicU64,
    /// What each of the handlers does not want to be interrupted by.
    handler_masks: [AtomicU64; outside::LAST as usize + 1],
    state: Mutex<State>,
}

/// What the thread with the turn changes.
#[derive(Debug)]
struct State {
    table: Table,
    /// Who has the turn; absent when it has just ended.
    current: Option<ThreadId>,
    /// The thread under way.
    newborn: Option<Newborn>,
    policy: Box<dyn Policy>,
    recorder: Recorder,
    /// Segments not written yet, and how many were.
    segments: Vec<(ThreadId, u64, u32)>,
    written: u64,
    points: u64,
    /// Moments at which a thread that was alone could have taken a signal.
    lone: u64,
    /// Looks for signals from outside in a row that found none.
    looks: u32,
    diverged: bool,
    meetings: u32,
    /// Who was just chosen at one of the two accesses while another stood at the other, for a debugger.
    met: Option<(ThreadId, ThreadId)>,
    clock: Clock,
    progress: progress::Progress,
    /// Nanoseconds that have passed though somebody could run.
    hurried: u64,
    quanta: Rng,
    random: Rng,
    /// Descriptors that give random bytes.
    random_descriptors: BTreeSet<i32>,
    /// Descriptors that tell of signals.
    signal_descriptors: BTreeSet<i32>,
    inputs: input::Inputs,
    streams: streams::Streams,
    timers: timers::Timers,
    /// Who waits, and is to look who can run next: the thread that had the turn has left for the
    /// kernel.
    driver: Option<ThreadId>,
    /// All have left for the kernel: who comes back first decides.
    unowned: bool,
}

/// A thread that is being made.
#[derive(Debug, Clone, Copy)]
struct Newborn {
    id: ThreadId,
    /// Where the kernel is to write zero when it ends.
    clear_id: u64,
    /// Where it has written its number.
    id_at: [u64; 2],
    mask: u64,
    /// Where the call that makes it returns to.
    pc: u64,
}

impl Scheduler {
    /// As the options say; of a target that serves, or of one that is executed.
    pub fn new(options: &ScheduleOptions, serves: bool) -> Result<Scheduler, String> {
        let seed = options.seed;
        let kept = match &options.policy {
            PolicyChoice::Replay { input, .. } => input.as_deref(),
            _ => None,
        };
        let policy = policy(&options.policy, seed)?;
        let inputs = input::Inputs::new(kept, serves)?;
        outside::begin(inputs.signal_mode());
        Ok(Scheduler {
            on: AtomicBool::new(true),
            born: AtomicU32::new(0),
            expecting: AtomicBool::new(false),
            forks: turn::Forks::default(),
            ids: ids::Ids::new(options.process),
            watched: watch::Watched::new(&options.watch),
            cycle: locks::Cycle::new(&options.cycle),
            lock_points: AtomicBool::new(options.lock_points),
            early_time: options.early_time,
            interruptible: AtomicBool::new(false),
            restarting: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            handler_masks: [const { AtomicU64::new(0) }; outside::LAST as usize + 1],
            state: Mutex::new(State {
                table: Table::default(),
                current: None,
                newborn: None,
                policy,
                recorder: Recorder::default(),
                segments: Vec::new(),
                written: 0,
                points: 0,
                lone: 0,
                looks: 0,
                diverged: false,
                meetings: 0,
                met: None,
                clock: Clock::new(options.time),
                progress: progress::Progress::default(),
                hurried: 0,
                quanta: quanta(seed),
                // The same whatever the seed: it decides the schedule and nothing else.
                random: Rng::new(0, 5),
                random_descriptors: BTreeSet::new(),
                signal_descriptors: BTreeSet::new(),
                inputs,
                streams: streams::Streams::default(),
                timers: timers::Timers::default(),
                driver: None,
                unowned: false,
            }),
        })
    }

    /// This process is a copy of the target at `main`, where nothing has been decided yet: goes on as
    /// if it had been started with this policy and seed.
    pub fn restart(&self, request: &Request, os_id: u32) -> Result<(), String> {
        let mut state = self.lock();
        state.policy = policy(&request.policy, request.seed)?;
        state.quanta = quanta(request.seed);
        state.inputs.restart();
        outside::begin(state.inputs.signal_mode());
        self.lock_points.store(request.lock_points, Ordering::Relaxed);
        let Some(entry) = state.entry(ThreadId::MAIN) else { return Ok(()) };
        entry.os_id = os_id;
        self.ids.restart();
        Ok(())
    }

    /// The current thread is new: known from here on, and running when it is its turn.
    pub fn thread_begins(&self, probe: &Probe, os_id: u32) {
        if !self.is_on() || !probe.is_own_process() {
            return;
        }
        let mut state = self.lock();
        if state.table.is_empty() {
            state.table.add(Entry::new(ThreadId::MAIN, os_id, 0, 0));
            state.current = Some(ThreadId::MAIN);
            return;
        }
        // Without a creator that waits for it, it is the child of a vfork: another process.
        let Some(newborn) = state.newborn.take() else { return };
        for at in newborn.id_at.into_iter().filter(|at| *at != 0) {
            process::write(at, &self.ids.shown(newborn.id).to_le_bytes());
        }
        let entry = Entry::new(newborn.id, os_id, newborn.clear_id, newborn.mask);
        let turn = entry.turn.clone();
        state.table.add(entry);
        state.news();
        let quantum = state.quantum();
        drop(state);
        if let Some(debugger) = &probe.debugger {
            debugger.begins(newborn.id, newborn.pc);
        }
        self.born.store(1, Ordering::Release);
        kernel::futex_wake(&self.born);
        probe.slots.set(slot::CONTROLLED, 1);
        probe.slots.set(slot::BUDGET, quantum);
        turn.wait(&self.forks);
    }

    /// The current thread has ended but for what the engine does; others may run.
    pub fn thread_gone(&self, probe: &Probe, os_id: u32) {
        if !self.is_on() {
            return;
        }
        let mut state = self.lock();
        let Some(id) = state.table.leaving(os_id) else { return };
        let Some(entry) = state.table.remove(id) else { return };
        farewell::let_go(&mut state.table, &entry, self.ids.shown(id));
        if let Some(debugger) = &probe.debugger {
            debugger.gone(id);
        }
        state.current = None;
        if state.table.is_empty() {
            return;
        }
        state.news();
        let Some(mut reporter) = stuck::reporter(probe) else { return };
        let (mut state, next) = self.choose(probe, &mut reporter, state);
        if state.segments.len() >= turn::BATCH {
            state.write(&mut reporter);
        }
        reporter.close();
        // What it has mapped is given back before others run: where their mappings lie must not depend on who is
        // quicker.
        drop(reporter);
        self.hand_to(state, next);
    }

    /// A system call comes: others may run before it.
    pub fn call_comes(&self, probe: &Probe, thread: &mut ThreadState, call: &SystemCall<'_>) {
        let step = match i64::from(call.number) {
            libc::SYS_rt_sigreturn | libc::SYS_exit_group => return,
            number if is_private(number) => return,
            _ if !self.controls_many(thread) => return self.take_alone(probe, thread),
            libc::SYS_sched_yield => Step::Yield,
            _ => self.step_of(probe, thread, call),
        };
        match i64::from(call.number) {
            libc::SYS_sched_yield | libc::SYS_nanosleep | libc::SYS_clock_nanosleep => {
                let registers = call.state();
                self.look(probe, thread, (registers.pc, &registers), 1);
            }
            libc::SYS_futex if is_futex_wait(call.argument(1)) => {
                let registers = call.state();
                self.look(probe, thread, (registers.pc, &registers), 1);
            }
            // It is news when it wakes somebody.
            libc::SYS_futex => {}
            _ => self.lock().news(),
        }
        self.give_way(probe, thread, step);
    }

    fn step_of(&self, probe: &Probe, thread: &mut ThreadState, call: &SystemCall<'_>) -> Step {
        let pc = call.state().pc;
        let place = modules::spot(probe, thread, pc, 0, 0).place;
        Step::SystemCall { number: call.number as u32, place }
    }

    /// A system call has returned from the kernel.
    pub fn call_returned(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        call: &mut SystemCall<'_>,
    ) {
        if self.is_on() && self.lock().table.get(thread.id).is_some() {
            calls::returned(self, probe, thread, call);
        }
    }

    /// Answers a call in the kernel's stead, if that is ours to do.
    pub fn answer(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        call: &mut SystemCall<'_>,
    ) -> Option<i64> {
        if !self.is_on() || self.lock().table.get(thread.id).is_none() {
            return None;
        }
        calls::answer(self, probe, thread, call)
    }

    /// A module was loaded: watched places may be in it.
    pub fn module_loaded(&self, module: &LoadedModule) {
        self.watched.module_loaded(module);
        self.cycle.module_loaded(module);
    }

    /// Writes the decisions down that are not written yet.
    pub fn flush(&self, thread: &mut ThreadState) {
        if self.is_on() {
            self.lock().write_all(thread);
        }
    }

    /// Nothing is controlled from here on.
    pub fn stop(&self) {
        self.on.store(false, Ordering::Release);
        outside::set(Mode::Through);
    }

    fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// Must a call that would block wait with us? Somebody else could run, or time is to pass until
    /// a timer goes off, or a signal from outside is to be seen to come.
    fn waits_here(&self, thread: &ThreadState) -> bool {
        let may_be_interrupted = || {
            let state = self.lock();
            state.timers.next().is_some() || self.expects_signals(&state)
        };
        self.controls_many(thread) || (self.is_on() && may_be_interrupted())
    }

    /// Is this thread controlled, and not alone?
    fn controls_many(&self, thread: &ThreadState) -> bool {
        if !self.is_on() {
            return false;
        }
        let state = self.lock();
        state.table.len() > 1 && state.table.get(thread.id).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits until the thread under way is known: numbers would depend on luck otherwise.
    fn await_birth(&self) {
        process::while_suspendable(|| {
            while self.born.load(Ordering::Acquire) == 0 {
                kernel::futex_wait(&self.born, 0);
            }
        });
    }
}

/// Decides as is asked for.
fn policy(choice: &PolicyChoice, seed: u64) -> Result<Box<dyn Policy>, String> {
    Ok(match choice {
        PolicyChoice::Random => PolicyName::Random.policy(seed),
        PolicyChoice::Bursts => PolicyName::Bursts.policy(seed),
        &PolicyChoice::Pct { depth, length } => PolicyName::Pct { depth, length }.policy(seed),
        PolicyChoice::RoundRobin => PolicyName::RoundRobin.policy(seed),
        PolicyChoice::RaceDirected => PolicyName::RaceDirected.policy(seed),
        PolicyChoice::LockDirected => PolicyName::LockDirected.policy(seed),
        PolicyChoice::Replay { file, .. } => {
            let text = std::fs::read_to_string(file)
                .map_err(|e| format!("cannot read the schedule {file}: {e}"))?;
            let schedule = Schedule::parse(&text).map_err(|e| format!("{file}: {e}"))?;
            Box::new(Replay::new(&schedule))
        }
    })
}

/// What the lengths of quanta are drawn from.
fn quanta(seed: u64) -> Rng {
    Rng::new(seed, 4)
}

/// Calls that no other thread can tell from their absence: giving way before them would only
/// make schedules longer, and those that matter rarer among them.
fn is_private(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_mremap
            | libc::SYS_madvise
            | libc::SYS_brk
            | libc::SYS_rt_sigprocmask
            | libc::SYS_rt_sigaction
            | libc::SYS_sigaltstack
            | libc::SYS_set_robust_list
            | libc::SYS_set_tid_address
            | libc::SYS_rseq
            | libc::SYS_gettid
            | libc::SYS_getpid
            | libc::SYS_clock_gettime
            | libc::SYS_gettimeofday
            | libc::SYS_time
            | libc::SYS_getrandom
            | libc::SYS_prctl
            | libc::SYS_sched_getaffinity
            | libc::SYS_clone
            | libc::SYS_clone3
    )
}

impl State {
    /// Branches until the next point.
    fn quantum(&mut self) -> u64 {
        1 + self.quanta.below(2 * QUANTUM)
    }

    fn entry(&mut self, thread: ThreadId) -> Option<&mut Entry> {
        self.table.get_mut(thread)
    }
}

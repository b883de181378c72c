//! A debugger's view of the target: where it stops, and what every thread's registers are then.
//!
//! One thread runs at a time, so a stop is simple: the running thread, wherever it is in our code,
//! tells the command and waits ([`Mailbox`]); all others stand in the scheduler, which has noted their
//! registers when they came there ([`registers`]). The schedule never hears of it: time stands, no
//! scheduling point is counted, and the execution is the one without a debugger.
//!
//! Before every instruction stand two checks of a byte each, which is not zero where there may be something to
//! stop for ([`checks`]). Nothing is ever built anew for a breakpoint or a step, so a thread that stands
//! in the middle of a block meets the next one there too. That is slow, and only debugging pays for it.

mod checks;
mod registers;
mod watches;

pub use registers::At;

use crate::instrument::Site;
use crate::instrument::handlers::Number;
use crate::memory::mailbox::Mailbox;
use crate::monitor::modules::LoadedModule;
use crate::probe::Probe;
use crate::thread::ThreadState;
use crate::trampoline::slot;
use checks::Checks;
use raddle_dynamorio::block::Point;
use raddle_dynamorio::process::{self, MachineState};
use raddle_model::ThreadId;
use raddle_wire::debug::{Registers, Resume, Stepping, Stop, StoppedThread, Why};
use raddle_wire::options::{DebugOptions, ProbeOptions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};
use watches::Watch;

/// What stops the target.
#[derive(Debug)]
pub struct Debugger {
    mailbox: Mailbox,
    checks: Checks,
    /// Nothing stops the target any more when nobody is there.
    attached: AtomicBool,
    options: DebugOptions,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Registers of the threads that stand.
    registers: FxHashMap<ThreadId, Registers>,
    breakpoints: FxHashSet<u64>,
    /// Where the program begins, until it has.
    starts: Vec<u64>,
    step: Option<Stepping>,
    watches: Vec<Watch>,
    /// The two accesses have met: the stop is for the first time.
    met: bool,
}

impl Debugger {
    /// If the options ask for one.
    pub fn new(options: &ProbeOptions) -> Result<Option<Debugger>, String> {
        let Some(debug) = &options.debug else { return Ok(None) };
        Ok(Some(Debugger {
            mailbox: Mailbox::create(&options.directory, options.command)?,
            checks: Checks::new().ok_or("no memory for breakpoints")?,
            attached: AtomicBool::new(true),
            options: debug.clone(),
            state: Mutex::default(),
        }))
    }

    /// Inserts the check that comes before everything else of an instruction.
    pub fn insert_early(&self, probe: &Probe, point: &mut Point<'_>, pc: u64) {
        insert(probe, point, self.checks.early(), Site::Check { pc, late: false });
    }

    /// Inserts the check that comes right before an instruction.
    pub fn insert_late(&self, probe: &Probe, point: &mut Point<'_>, pc: u64) {
        insert(probe, point, self.checks.late(pc), Site::Check { pc, late: true });
    }

    /// A module was loaded: if it is the program, it is known where that begins.
    pub fn module_loaded(&self, module: &LoadedModule) {
        if process::program_path().is_some_and(|program| program == module.path) {
            let mut state = self.lock();
            state.starts = self.options.starts.iter().map(|at| module.start + at).collect();
            self.checks.set(false, state.stops());
        }
    }

    /// The current thread has come to an instruction: is a step done, or has memory changed?
    pub fn check_early(&self, probe: &Probe, thread: &mut ThreadState, pc: u64) {
        let state = self.lock();
        let is_done = |step: &Stepping| {
            let stops_late = !step.alone && state.breakpoints.contains(&pc);
            step.thread == thread.id && !(step.start..step.end).contains(&pc) && !stops_late
        };
        let why = if state.step.as_ref().is_some_and(is_done) {
            Why::Stepped
        } else if let Some(start) = state.watches.iter().find_map(Watch::changed) {
            Why::Changed { start }
        } else {
            return;
        };
        drop(state);
        self.stop(probe, thread, why);
    }

    /// The current thread is about to execute an instruction: is there a breakpoint?
    pub fn check_late(&self, probe: &Probe, thread: &mut ThreadState, pc: u64) {
        let mut state = self.lock();
        let is_other = |step: Stepping| step.alone && step.thread != thread.id;
        let why = if state.starts.contains(&pc) {
            state.starts.clear();
            Why::Started
        } else if state.breakpoints.contains(&pc) && !state.step.is_some_and(is_other) {
            Why::Breakpoint
        } else {
            return;
        };
        drop(state);
        self.stop(probe, thread, why);
    }

    /// A moment at which an interrupt can be heard.
    pub fn listen(&self, probe: &Probe, thread: &mut ThreadState) {
        if self.mailbox.is_interrupted() {
            self.stop(probe, thread, Why::Interrupted);
        }
    }

    /// Is an interrupt to be heard?
    pub fn is_interrupted(&self) -> bool {
        self.is_attached() && self.mailbox.is_interrupted()
    }

    /// The current thread is about to wait for its turn.
    pub fn parks(&self, probe: &Probe, thread: &ThreadState) {
        if let Some(registers) = registers::of(probe, thread) {
            self.lock().registers.insert(thread.id, registers);
        }
    }

    /// The current thread is new, made by a system call that returns to `pc`, and about to wait for its
    /// turn.
    pub fn begins(&self, thread: ThreadId, pc: u64) {
        let registers = registers::of_state(&MachineState::current(true), pc, 0);
        self.lock().registers.insert(thread, registers);
    }

    /// A thread is gone.
    pub fn gone(&self, thread: ThreadId) {
        self.lock().registers.remove(&thread);
    }

    /// The current thread was chosen while it and another stood at the two accesses.
    pub fn met(&self, probe: &Probe, thread: &mut ThreadState, with: ThreadId) {
        if !std::mem::replace(&mut self.lock().met, true) {
            self.stop(probe, thread, Why::Met { with });
        }
    }

    /// A signal is about to kill the target.
    pub fn signal(&self, probe: &Probe, thread: &mut ThreadState, number: i32, at: &MachineState) {
        let registers = registers::of_state(at, at.pc, thread.kept.fs_base);
        thread.stands(At::Nowhere);
        self.lock().registers.insert(thread.id, registers);
        self.stop(probe, thread, Why::Signal(number as u32));
    }

    /// Nothing stops this process any more.
    pub fn detach(&self) {
        self.attached.store(false, Ordering::Release);
    }

    /// The target stands until the debugger lets it go on.
    pub fn stop(&self, probe: &Probe, thread: &mut ThreadState, why: Why) {
        if !self.is_attached() || !probe.is_own_process() {
            return;
        }
        let Some(scheduler) = &probe.scheduler else { return };
        self.parks(probe, thread);
        // Who runs has done what it was about to do at its last point, unless it stops there.
        let running = (!matches!(why, Why::Met { .. } | Why::Deadlock)).then_some(thread.id);
        let mut threads = Vec::new();
        for (id, os_id, about) in scheduler.overview(running) {
            if let Some(registers) = self.lock().registers.get(&id).cloned() {
                threads.push(StoppedThread { id, os_id, about, registers });
            }
        }
        let is_there = |id: ThreadId| threads.iter().any(|thread| thread.id == id);
        // Who tells may be on its way out and no longer one of them.
        let known =
            if is_there(thread.id) { Some(thread.id) } else { threads.first().map(|t| t.id) };
        let Some(known) = known else { return };
        let answer = self.mailbox.stop(&Stop { thread: known, why, threads });
        self.resume(answer.unwrap_or_default());
    }

    fn resume(&self, resume: Resume) {
        self.attached.store(resume.attached, Ordering::Release);
        let mut state = self.lock();
        state.breakpoints = resume.breakpoints.into_iter().collect();
        state.step = resume.step;
        if !resume.attached {
            state.starts.clear();
        }
        state.watches = resume.watched.iter().map(Watch::new).collect();
        let everywhere = state.step.is_some() || !state.watches.is_empty();
        self.checks.set(everywhere, state.stops());
    }

    fn is_attached(&self) -> bool {
        self.attached.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn insert(probe: &Probe, point: &mut Point<'_>, byte: &'static AtomicU8, check: Site) {
    let site = probe.instrumentation.add_site(check);
    point.call_if(byte, slot::NUMBER, site, probe.trampoline.entry(Number::Check as usize));
}

impl State {
    fn stops(&self) -> impl Iterator<Item = u64> {
        self.breakpoints.iter().chain(&self.starts).copied()
    }
}

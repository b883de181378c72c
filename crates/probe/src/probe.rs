//! The probe as a whole: what it was told, what it has learned, and its start and end.

use crate::analysis::Analysis;
use crate::debug::{At, Debugger};
use crate::frames;
use crate::instrument::{Instrumentation, Plan};
use crate::memory::log::{Log, Writer};
use crate::memory::{blocks, environment, kernel, note_own};
use crate::middle::MiddlePath;
use crate::monitor::{Monitor, modules, signals, system_calls, threads};
use crate::schedule::Scheduler;
use crate::serve::Server;
use crate::stacks::Stacks;
use crate::thread::{self, Registry};
use crate::trampoline::{self, Trampoline, slot};
use raddle_dynamorio::block::{Block, Point};
use raddle_dynamorio::client::{self, Client};
use raddle_dynamorio::process::{self, MachineState, Module, SystemCall, Thread};
use raddle_dynamorio::slots::Slots;
use raddle_model::{Family, ThreadId};
use raddle_wire::log::{Record, State};
use raddle_wire::options::{self, ProbeOptions, TimeMode};
use raddle_wire::serve::Request;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Everything shared between the target's threads.
#[derive(Debug)]
pub struct Probe {
    pub options: ProbeOptions,
    pub slots: Slots,
    pub trampoline: Trampoline,
    pub middle: MiddlePath,
    pub threads: Registry,
    pub modules: modules::Modules,
    pub monitor: Monitor,
    pub instrumentation: Instrumentation,
    pub stacks: Stacks,
    pub analysis: Option<Analysis>,
    /// Who may run, when that is ours to say.
    pub scheduler: Option<Scheduler>,
    /// Who may stop it and look.
    pub debugger: Option<Debugger>,
    /// Copies the target at `main`, if that was asked for.
    pub server: Option<Server>,
    /// The process that all of this is about. In a fresh fork the engine ends the copies of the
    /// parent's other threads before it tells us of the fork.
    process: AtomicU32,
    /// Replaced in a forked child that is followed; absent in one that is not.
    log: Mutex<Option<Arc<Log>>>,
}

static PROBE: OnceLock<Probe> = OnceLock::new();

/// Scratch registers that insertion needs at once: an address, a segment base, the flags.
const SPILL_REGISTERS: u32 = 4;

/// Reads the options, opens the log, registers with the engine.
pub fn start(options_file: &str) {
    std::panic::set_hook(Box::new(|panic| fail(&panic.to_string())));
    if let Err(why) = try_start(options_file) {
        fail(&why);
    }
}

fn try_start(options_file: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(options_file)
        .map_err(|e| format!("cannot read {options_file}: {e}"))?;
    let options: ProbeOptions =
        serde_json::from_str(&text).map_err(|e| format!("{options_file}: {e}"))?;
    if options.version != options::VERSION {
        return Err(format!("{options_file} has version {}", options.version));
    }
    // A server's life is its own affair: the thread that starts it ends before.
    if !options.serve {
        kernel::end_with_parent(options.command);
    }
    if let Some(schedule) = &options.schedule {
        environment::pin(schedule.time == TimeMode::Virtual);
        note_own();
    }
    if !environment::hide_engine_variables(&options.environment) {
        return Err("the target's initial stack is not where the kernel says".to_owned());
    }
    let slots = Slots::take(trampoline::slot::COUNT).ok_or("the engine has no slots left")?;
    let log = open_log(&options, None)?;
    let analysis = options
        .detector
        .map(|choice| Analysis::new(choice, options.rules, options.shadow, options.serve));
    let shadows = analysis.as_ref().is_some_and(Analysis::is_fast);
    let probe = Probe {
        slots,
        trampoline: trampoline::install(slots)?,
        middle: MiddlePath::install(slots)?,
        threads: Registry::default(),
        modules: modules::Modules::default(),
        monitor: Monitor::new(&options),
        instrumentation: Instrumentation::new(&options, shadows),
        stacks: Stacks::default(),
        analysis,
        scheduler: {
            let controlled = options.schedule.as_ref();
            controlled.map(|asked| Scheduler::new(asked, options.serve)).transpose()?
        },
        debugger: Debugger::new(&options)?,
        server: options.serve.then(|| Server::new(&options.directory)).transpose()?,
        process: AtomicU32::new(std::process::id()),
        log: Mutex::new(Some(Arc::new(log))),
        options,
    };
    PROBE.set(probe).map_err(|_| "the probe was started twice")?;
    client::register::<Probe>(SPILL_REGISTERS)?;
    Ok(())
}

fn open_log(options: &ProbeOptions, before: Option<&Log>) -> Result<Log, String> {
    let ProbeOptions { directory, max_lag, command, .. } = options;
    Log::create(directory, std::process::id(), *max_lag, *command, before)
}

/// Ends the target because we cannot go on: says why in the log, and on the terminal if there is
/// no log, and leaves with Raddle's own exit code. Never looks like the target's failure.
pub fn fail(why: &str) -> ! {
    const RADDLE_FAILED: i32 = 125;
    let log = PROBE.get().and_then(|p| p.log());
    match log {
        Some(log) => {
            let record = Record::Failure { what: why.chars().take(4000).collect() };
            let mut writer = Writer::new(ThreadId(0));
            let written = writer.write(&log, &record);
            writer.close(&log);
            log.set_state(State::Failed);
            if written.is_err() {
                eprintln!("raddle: the probe failed: {why}");
            }
        }
        None => eprintln!("raddle: the probe failed: {why}"),
    }
    process::abort(RADDLE_FAILED)
}

impl Probe {
    /// The log, unless this is a child nobody follows.
    pub fn log(&self) -> Option<Arc<Log>> {
        self.log.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn set_log(&self, log: Option<Arc<Log>>) {
        *self.log.lock().unwrap_or_else(|e| e.into_inner()) = log;
    }

    /// This process is a copy of the target at `main`, made to be executed.
    fn copied(&self, thread: Thread<'_>, request: &Request) {
        // Until it has a log of its own it must not write into the server's.
        let before = self.log();
        self.set_log(None);
        let log = open_log(&self.options, before.as_deref()).unwrap_or_else(|why| fail(&why));
        self.set_log(Some(Arc::new(log)));
        if let Some(scheduler) = &self.scheduler
            && let Err(why) = scheduler.restart(request, thread.os_id())
        {
            fail(&why);
        }
        threads::forked(self, thread.os_id());
        modules::announce_all(self);
    }

    /// Is this still the process we were last told of, and not a copy of it?
    pub fn is_own_process(&self) -> bool {
        self.process.load(Ordering::Relaxed) == std::process::id()
    }

    /// Are events of this family reported?
    pub fn wants(&self, family: Family) -> bool {
        self.options.wants(family)
    }

    /// Is it told what watched accesses find and leave in memory?
    pub fn tells_values(&self) -> bool {
        let watched = self.options.schedule.as_ref().is_some_and(|s| !s.watch.is_empty());
        watched && !self.options.silent
    }
}

impl Client for Probe {
    type Plan = Plan;

    fn instance() -> &'static Probe {
        PROBE.get().unwrap_or_else(|| fail("called before the start"))
    }

    fn slots(&self) -> Slots {
        self.slots
    }

    fn plan(&self, block: &Block<'_>) -> Plan {
        self.monitor.dispositions.begin();
        if let Some(server) = &self.server {
            server.block(block.tag());
        }
        self.instrumentation.plan(self, block)
    }

    fn insert(&self, point: &mut Point<'_>, plan: &mut Plan) {
        if let Some(server) = &self.server {
            server.insert(point);
        }
        self.instrumentation.insert(self, point, plan);
    }

    fn thread_start(&self, thread: Thread<'_>) {
        if let Some(scheduler) = &self.scheduler {
            scheduler.thread_begins(self, thread.os_id());
        }
        let shown = |scheduler: &Scheduler| scheduler.shown_id(thread.os_id());
        let shown = self.scheduler.as_ref().map_or(thread.os_id(), shown);
        threads::start(self, thread.os_id(), shown);
    }

    fn thread_exit(&self, thread: Thread<'_>) {
        threads::exit(self, thread.os_id());
        if let Some(scheduler) = &self.scheduler {
            scheduler.thread_gone(self, thread.os_id());
        }
    }

    fn module_load(&self, module: &Module<'_>) {
        modules::load(self, module);
    }

    fn module_unload(&self, module: &Module<'_>) {
        modules::unload(self, module);
    }

    fn wants_system_call(&self, number: i32) -> bool {
        self.scheduler.is_some() || self.monitor.calls.has(number)
    }

    fn before_system_call(&self, call: &mut SystemCall<'_>) {
        if self.server.as_ref().is_some_and(|server| server.call_comes(self, call)) {
            return;
        }
        let Some(thread) = thread::current(self) else { return };
        thread.stands(At::SystemCall);
        thread.leave.has_left();
        if let Some(debugger) = &self.debugger {
            debugger.listen(self, thread);
        }
        if let Some(scheduler) = &self.scheduler {
            scheduler.call_comes(self, thread, call);
            scheduler.translate(thread, call);
        }
        if self.monitor.calls.has(call.number) {
            system_calls::before(self, thread, call);
        }
        if let Some(scheduler) = &self.scheduler
            && let Some(result) = scheduler.answer(self, thread, call)
        {
            call.finish(result);
            if self.monitor.calls.has(call.number) {
                system_calls::after(self, thread, call);
            }
            scheduler.give_back(thread, call);
        }
    }

    fn after_system_call(&self, call: &mut SystemCall<'_>) {
        if self.server.as_ref().is_some_and(Server::call_returned) {
            return;
        }
        let Some(thread) = thread::current(self) else { return };
        thread.stands(At::SystemCall);
        if let Some(scheduler) = &self.scheduler {
            scheduler.call_returned(self, thread, call);
            scheduler.give_back(thread, call);
            scheduler.show_result(call);
        }
        if self.monitor.calls.has(call.number) {
            system_calls::after(self, thread, call);
        }
    }

    fn signal(&self, _thread: Thread<'_>, number: i32, blocked: bool, state: &MachineState) {
        // A blocked one may have come in the middle of our own code.
        if !blocked && let Some(thread) = thread::current(self) {
            if let Some(debugger) = &self.debugger
                && signals::kills(self, number)
            {
                debugger.signal(self, thread, number, state);
            }
            signals::delivered(self, thread, number, state);
            if let Some(scheduler) = &self.scheduler {
                scheduler.signal_taken(thread);
                if signals::kills(self, number) {
                    signals::tell_crash(self, thread, state);
                }
                scheduler.flush(thread);
            }
        }
    }

    fn moved_by_kernel(&self) {
        self.slots.set(slot::TOP, frames::FIRST as u64);
    }

    fn handler_begins(&self, state: &MachineState) {
        if let Some(scheduler) = &self.scheduler {
            // The second argument of a handler: who sent the signal.
            scheduler.show_sender(state.general[6]);
            if let Some(thread) = thread::current(self) {
                scheduler.handler_begins(thread, state.general[7]);
            }
        }
    }

    fn forked(&self, thread: Thread<'_>) {
        blocks::forked();
        if let Some(analysis) = &self.analysis {
            analysis.forked();
        }
        self.process.store(std::process::id(), Ordering::Relaxed);
        if let Some(request) = self.server.as_ref().and_then(Server::copied) {
            return self.copied(thread, &request);
        }
        let log = self.options.follow.then(|| open_log(&self.options, None));
        let log = match log {
            Some(Ok(log)) => Some(Arc::new(log)),
            Some(Err(why)) => fail(&why),
            None => None,
        };
        self.set_log(log);
        if let Some(analysis) = self.analysis.as_ref().filter(|_| self.options.follow) {
            analysis.restart();
        }
        if let Some(scheduler) = &self.scheduler {
            // One process is controlled, and this is another.
            scheduler.stop();
        }
        if let Some(debugger) = &self.debugger {
            debugger.detach();
        }
        threads::forked(self, thread.os_id());
        modules::announce_all(self);
    }

    fn process_exit(&self) {
        if let Some(log) = self.log().filter(|_| self.is_own_process()) {
            threads::process_end(self, &log);
            log.set_state(State::Ended);
            if let Some(server) = &self.server {
                server.end(self.threads.exit_status());
            }
        }
    }
}

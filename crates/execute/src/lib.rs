//! The primitive: launch the target once under the engine, supervise it, and hand what the probe
//! saw to an observer, in the order it happened.
//!
//! [`execute`] is all of it, and [`Server`] is the same for many executions that differ in their
//! schedules only. Before the launch: [`target`] finds and judges the program as the
//! kernel would, [`engine`] finds our own libraries. Then [`launch`] starts it, and [`supervise`]
//! follows every log that appears in the run directory ([`directory`]) until the target is gone,
//! answering the probe's questions about modules ([`facts`]), passing signals on ([`signals`])
//! and looking whether we hang ([`hang`]). What went wrong is an [`ExecuteError`]: ours, and never to be mistaken for how
//! the target ended, which is an [`Outcome`].

mod control;
pub mod directory;
pub mod engine;
mod error;
mod facts;
mod follow;
mod hang;
mod judge;
mod launch;
pub mod server;
mod signals;
mod supervise;
pub mod target;

pub use control::{Control, Crash, Stuck};
pub use directory::RunDirectory;
pub use error::{EXIT_FAILED, EXIT_TIMED_OUT, ExecuteError};
pub use facts::cache_directory;
pub use server::{Served, Server, Written};
pub use signals::end_with_parent;
pub use target::{Target, TargetError};

pub use engine::EngineFiles;
use raddle_hooks::HookSet;
use raddle_model::finding::Finding;
use raddle_model::{Event, Place, StackId, ThreadId};
use raddle_wire::log::{HeapBlock, ThreadLocal};
use raddle_wire::options::{
    DebugOptions, DetectorChoice, MemoryMode, PlaceCount, PlaceFilter, Rules, ScheduleOptions,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One run of one program, as asked for.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The program and its arguments, as typed.
    pub program: Vec<OsString>,
    /// Where the target runs; here, if absent.
    pub cwd: Option<PathBuf>,
    /// How long it may run before it is killed.
    pub limit: Option<Duration>,
    /// How long it may run before it is asked to end by `SIGTERM`, and killed when it does not.
    pub stop_after: Option<Duration>,
    /// Switch address-space randomisation off, so that addresses repeat from run to run.
    pub fixed_layout: bool,
    /// Take the probe into child processes and into programs started by `exec`, and wait for them.
    pub follow: bool,
    /// What runs beside the target.
    pub engine: EngineMode,
    /// The run directory: logs, options and facts go there. It must exist.
    pub directory: PathBuf,
    /// Leave the logs whole, instead of freeing their space behind the reader.
    pub keep_logs: bool,
}

/// What runs beside the target.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // There is one of an execution.
pub enum EngineMode {
    /// The engine alone: what every measurement of the probe is compared with.
    Bare,
    /// The engine with the probe.
    Probe(ProbeRequest),
}

/// What the probe is asked to see.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    /// The merged hook table.
    pub hooks: HookSet,
    /// Count events per thread and place instead of reporting each.
    pub count: bool,
    /// What is done with memory accesses.
    pub memory: MemoryMode,
    /// Events of hooked synchronisation, allocation and threads.
    pub sync: bool,
    /// Events of entry and exit of hooked functions.
    pub functions: bool,
    /// Events of writes to descriptors.
    pub output: bool,
    /// Call stacks with every event.
    pub stacks: bool,
    /// Memory events of what `push`, `pop`, `call` and `ret` do to the stack too.
    pub implicit_accesses: bool,
    /// Memory events only from here; everywhere, if empty.
    pub only_places: Vec<PlaceFilter>,
    /// Feed the events to this detector and report its findings instead.
    pub detector: Option<DetectorChoice>,
    /// How synchronisation is recognised.
    pub rules: Rules,
    /// Control who runs; the kernel does, if absent.
    pub schedule: Option<ScheduleOptions>,
    /// Report events of threads and modules only.
    pub silent: bool,
    /// Let a debugger stop the target and look at it.
    pub debug: Option<DebugOptions>,
}

/// What a detector looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looked {
    /// Accesses that reached it.
    pub accesses: u64,
    /// Synchronisation events that reached it.
    pub synchronisations: u64,
    /// Distinct locks.
    pub locks: u64,
}

/// Hears what the probe saw. Events of one process come in their total order; a stack comes
/// before the first event that refers to it.
pub trait Observer {
    /// A process begins to be watched, or has become another program by `exec`: its module, thread
    /// and stack numbers begin anew.
    fn program(&mut self, _process: u32) {}

    /// An event.
    fn event(&mut self, process: u32, event: Event);

    /// A call stack: the place of the event first, then its callers.
    fn stack(&mut self, process: u32, id: StackId, frames: Vec<Place>);

    /// Accesses per place of one thread, in count mode; several calls add up.
    fn counts(&mut self, process: u32, thread: ThreadId, places: Vec<PlaceCount>);

    /// Other events of one thread in count mode: name, place, how often; several calls add up.
    fn event_counts(&mut self, process: u32, thread: ThreadId, counts: Vec<(String, Place, u64)>);

    /// A finding of the detector: when it is new and again when its count is final, so the last
    /// call with a number holds. `block` is the heap block that the memory belongs to, `thread_local`
    /// the thread whose local variables may include it.
    fn finding(
        &mut self,
        _process: u32,
        _number: u32,
        _finding: Finding,
        _block: Option<HeapBlock>,
        _thread_local: Option<ThreadLocal>,
    ) {
    }

    /// What stands in the memory of a watched access, up to eight bytes, the first byte lowest:
    /// right before the access with this number in the total order, or once it has been made. May
    /// come before the access itself.
    fn value(&mut self, _process: u32, _order: u64, _after: bool, _value: u64) {}

    /// What the detector looked at, once, at the end.
    fn looked(&mut self, _process: u32, _looked: Looked) {}

    /// The target waits while the debug information of this module is read; or waits no more.
    fn reading(&mut self, _module: Option<&Path>) {}

    /// Nothing more has come for now: the moment to flush.
    fn idle(&mut self) {}

    /// False when nothing more is wanted: the target then runs on unheard, without waiting for us.
    fn listening(&self) -> bool {
        true
    }
}

/// How the target ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
    /// It exceeded [`Execution::limit`] and was killed by us.
    TimedOut,
    /// It ran as long as [`Execution::stop_after`] says and died of this signal of ours.
    Stopped(i32),
}

/// What became of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How the target ended.
    pub end: End,
    /// Processes that were watched.
    pub processes: usize,
    /// Modules that have no names beyond their exports.
    pub without_symbols: Vec<PathBuf>,
    /// What the user should know and what did not stop us: a module without facts, for one.
    pub warnings: Vec<String>,
    /// What the scheduler did in the first process, if there was one.
    pub control: Control,
}

impl Outcome {
    /// The exit code a shell would see, or 124 for the time limit. To have been stopped is what was
    /// asked for.
    pub fn exit_code(&self) -> u8 {
        match self.end {
            End::Exited(code) => code as u8,
            End::Killed(signal) => 128u8.saturating_add(signal as u8),
            End::TimedOut => EXIT_TIMED_OUT,
            End::Stopped(_) => 0,
        }
    }
}

/// Runs the program once, to its end.
pub fn execute(
    execution: &Execution,
    observer: &mut dyn Observer,
) -> Result<Outcome, ExecuteError> {
    let target = target::resolve(&execution.program, execution.cwd.as_deref())?;
    let files = EngineFiles::find(matches!(execution.engine, EngineMode::Probe(_)))?;
    let signals = signals::Signals::take().map_err(ExecuteError::during("taking signals"))?;
    let child = launch::launch(execution, &target, &files, launch::Start::Alone)?;
    supervise::supervise(execution, child, signals, observer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let code = |end| {
            let outcome = Outcome {
                end,
                processes: 1,
                without_symbols: Vec::new(),
                warnings: Vec::new(),
                control: Control::default(),
            };
            outcome.exit_code()
        };
        assert_eq!(code(End::Exited(3)), 3);
        assert_eq!(code(End::Exited(255)), 255);
        assert_eq!(code(End::Killed(11)), 139);
        assert_eq!(code(End::TimedOut), 124);
        assert_eq!(code(End::Stopped(15)), 0);
    }
}

//! What the command asks of the probe: written as JSON to a file in the run directory whose path
//! is the probe's only argument.

use raddle_model::{Family, Hook, Place};
use serde::{Deserialize, Serialize};

/// Bump when a field comes, or changes its meaning.
pub const VERSION: u32 = 7;

/// Everything the probe is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeOptions {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Where the probe puts `<pid>.log` and looks for facts.
    pub directory: String,
    /// Count events per thread and place instead of reporting each.
    pub count: bool,
    /// What is done with memory accesses.
    pub memory: MemoryMode,
    /// Hooked functions and system calls make events.
    pub sync: bool,
    /// Entry and exit of every hooked function make events of their own.
    pub functions: bool,
    /// Writes to descriptors make events.
    pub output: bool,
    /// Take the call stack of every event.
    pub stacks: bool,
    /// What `push`, `pop`, `call`, `ret` and kin do to the stack makes events too.
    pub implicit_accesses: bool,
    /// Restrict memory events to these places: per module path, offset ranges. Empty: all.
    pub only_places: Vec<PlaceFilter>,
    /// Feed the events to this detector instead of reporting them; its findings are reported.
    pub detector: Option<DetectorChoice>,
    /// How synchronisation is recognised.
    pub rules: Rules,
    /// The detector may keep shadow memory.
    pub shadow: bool,
    /// Report forked children too, each in a log of its own.
    pub follow: bool,
    /// Process id of the command: when it is gone, nobody reads and nobody is waited for.
    pub command: u32,
    /// How much the log may run ahead of the command before the target waits, in bytes.
    pub max_lag: u64,
    /// File names of modules whose accesses the detector is not told of.
    pub private: Vec<String>,
    /// Names of the environment's variables, in the order the target is to find them.
    pub environment: Vec<String>,
    /// The merged hook table; module facts refer to it by index.
    pub hooks: Vec<Hook>,
    /// Let one thread run at a time, as this says. Absent: the kernel schedules.
    #[serde(default)]
    pub schedule: Option<ScheduleOptions>,
    /// Events of threads and modules only: the others are watched for the schedule's sake.
    #[serde(default)]
    pub silent: bool,
    /// A debugger is attached, by way of the file of [`crate::debug`].
    #[serde(default)]
    pub debug: Option<DebugOptions>,
    /// Wait at `main` and make a copy for each execution asked for.
    #[serde(default)]
    pub serve: bool,
    /// Hang at the start of the third thread, so that it can be seen what comes of it.
    #[serde(default)]
    pub rehearse_hang: bool,
}

/// How a target is debugged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebugOptions {
    /// Offsets in the program's own module: it stops at the first of these that it reaches.
    pub starts: Vec<u64>,
}

/// How an execution is controlled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleOptions {
    /// Who decides.
    pub policy: PolicyChoice,
    /// What it draws its decisions from; also fixes how long a thread may run without a point.
    pub seed: u64,
    /// What the target sees of time.
    pub time: TimeMode,
    /// Places where threads stop before they touch memory: of one pair.
    pub watch: Vec<WatchedPlace>,
    /// Threads stop, too, before they ask for a lock while they hold another.
    #[serde(default)]
    pub lock_points: bool,
    /// Time may pass though somebody could run: as if that one were slow.
    #[serde(default)]
    pub early_time: bool,
    /// The process id that the target sees, above all that the kernel gives; absent: the usual one.
    #[serde(default)]
    pub process: Option<u32>,
    /// The requests of the circle that is looked for; any, if there are none.
    #[serde(default)]
    pub cycle: Vec<CyclePart>,
}

/// The kernel's ids of processes and threads are below this (`PID_MAX_LIMIT`).
pub const ID_LIMIT: u32 = 1 << 22;

/// The process id that a target sees, among executions that run at a time: that of the `lane`-th. The
/// kernel gives none of these, and there is room for a million threads each.
pub fn process_of(lane: usize) -> u32 {
    const THREADS: u32 = 1 << 20;
    // Locks have 30 bits for them.
    let lanes = ((1 << 30) - ID_LIMIT) / THREADS;
    ID_LIMIT + 1 + (lane as u32 % lanes) * THREADS
}

/// A request for a lock that is part of a circle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CyclePart {
    /// Where it is made.
    pub asks: WatchedPlace,
    /// Where the lock was taken that the one before waits for.
    pub took: WatchedPlace,
}

/// The policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyChoice {
    /// Any, with equal chances.
    Random,
    /// Any, but who computes runs on, and sleepers may come first.
    Bursts,
    /// Priorities with `depth` - 1 changes in about `length` points.
    Pct {
        /// The depth of the bugs looked for.
        depth: u32,
        /// Points expected.
        length: u64,
    },
    /// In turn.
    RoundRobin,
    /// Makes the watched accesses meet.
    RaceDirected,
    /// Makes threads that take several locks wait for each other.
    LockDirected,
    /// As the schedule in this file says.
    Replay {
        /// The file.
        file: String,
        /// The file of what came from outside; absent, it comes from there again.
        #[serde(default)]
        input: Option<String>,
    },
}

/// What the target sees of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeMode {
    /// Time that passes with the target's work, and when nobody can run.
    Virtual,
    /// The kernel's.
    Real,
}

/// A place where threads stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedPlace {
    /// First or second of the pair; both, when the pair is one place.
    pub sides: (bool, bool),
    /// The instruction, a byte of the call of a hooked function, or, where only the line is known,
    /// the line's code.
    pub code: PlaceFilter,
    /// Only accesses that can change the memory, or only those that cannot: a line has both.
    pub writes: Option<bool>,
    /// Only when called, at whatever depth, from here: a byte of the call, or the line's code.
    pub caller: Option<PlaceFilter>,
    /// Bytes touched, where the access itself does not tell (`free`).
    pub size: Option<u64>,
    /// The code is what is near the place: only accesses to memory that may be shared are meant.
    #[serde(default)]
    pub nearby: bool,
}

impl ProbeOptions {
    /// Are events of this family asked for?
    pub fn wants(&self, family: Family) -> bool {
        match family {
            Family::Memory => self.memory == MemoryMode::On,
            Family::Sync | Family::Thread => self.sync,
            Family::Function => self.functions,
            Family::Output => self.output,
            Family::Process => true,
        }
    }
}

/// Rules of recognising synchronisation that can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Lost signals and spurious wake-ups of condition variables are told apart.
    pub precise_conditions: bool,
    /// Memory that an atomic instruction has touched is a synchronisation variable.
    pub lock_touched: bool,
    /// Accesses that debug information shows to be atomic are.
    pub debug_information: bool,
    /// The loads of small loops that wait for a change are spin reads.
    pub spin_reads: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            precise_conditions: true,
            lock_touched: true,
            debug_information: true,
            spin_reads: true,
        }
    }
}

/// The detectors, by the words of `--detector` and `--states`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DetectorChoice {
    /// Observed and predicted races.
    Hybrid,
    /// Observed races only.
    HappensBefore,
    /// Helgrind+ with six states.
    HelgrindShort,
    /// Helgrind+ with eight states.
    HelgrindLong,
}

/// What is done with memory accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryMode {
    /// Nothing is instrumented.
    Off,
    /// Accesses, ranges and allocation are watched: as events, or, with `count`, by each block
    /// counting its executions per thread (the accesses follow from the block's content).
    On,
}

/// A stretch of a module's code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlaceFilter {
    /// The module's path as the engine reports it.
    pub module: String,
    /// First offset.
    pub start: u64,
    /// One past the last offset.
    pub end: u64,
}

/// Where the probe keeps one place's executions, as it reports them at the end (count mode).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceCount {
    /// The instruction.
    pub place: Place,
    /// Reads, writes and atomic updates it made.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Atomic updates.
    pub atomics: u64,
}

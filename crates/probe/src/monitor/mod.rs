//! Monitoring: what hooked functions, system calls, threads, modules and signals mean, as events.
//! Nothing here knows how the code was instrumented.

pub mod bodies;
pub mod channels;
pub mod hooks;
pub mod masks;
pub mod modules;
pub mod requests;
pub mod roles;
pub mod signals;
pub mod system_calls;
pub mod threads;
pub mod transfers;

mod expression;
mod formats;

use raddle_model::hook::{Hook, Role};
use raddle_model::{Address, ThreadId};
use raddle_wire::log::ThreadLocal;
use raddle_wire::options::{MemoryMode, ProbeOptions};
use rustc_hash::FxHashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

/// Bytes of thread-local variables: more than any program has.
const MOST_LOCALS: u64 = 1 << 20;

/// What monitoring keeps for the whole process.
#[derive(Debug)]
pub struct Monitor {
    /// The hook table; module facts refer to it by index.
    pub hooks: Vec<MonitoredHook>,
    /// The trampoline has quick paths for simple calls: nothing but counts is wanted of them, or a detector
    /// only of one end of each.
    pub quick: bool,
    /// Events are for a detector, and for nobody else.
    pub only_detects: bool,
    /// Threads by their library's handle.
    pub handles: Mutex<FxHashMap<u64, ThreadId>>,
    /// Some hook is a generic `wait` or `post`.
    pub has_generic: bool,
    /// What generic objects were created as (thesis 4.4).
    pub created: Mutex<FxHashMap<Address, Created>>,
    /// OpenMP teams at work.
    pub teams: bodies::Teams,
    /// System calls that mean something.
    pub calls: system_calls::Wanted,
    /// What descriptors stand for.
    pub channels: channels::Channels,
    /// What the program does with signals.
    pub dispositions: signals::Dispositions,
    /// What it has blocked.
    pub masks: masks::Masks,
    /// System calls under way that make a thread.
    pub births: Mutex<Vec<threads::Birth>>,
    /// The number the next thread gets.
    pub next_thread: AtomicU32,
}

/// A hook and what this execution makes of it.
#[derive(Debug)]
pub struct MonitoredHook {
    pub hook: Hook,
    /// Its functions are instrumented at all.
    pub active: bool,
    /// What its calls count for, when nothing but counts is wanted of them.
    pub tally: Option<roles::Tally>,
    /// The end of its calls that is nothing to a detector.
    pub quiet: Option<roles::Quiet>,
    /// The memory its functions touch.
    pub stretches: Vec<roles::Stretch>,
}

impl MonitoredHook {
    /// May the trampoline note the entry by itself?
    pub fn is_quick(&self) -> bool {
        self.tally.is_some() || matches!(self.quiet, Some(roles::Quiet::Entry { .. }))
    }
}

/// What a generic `wait` or `post` means for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Lock,
    Semaphore,
    Thread,
}

impl Monitor {
    /// Prepares the hook table for what was asked.
    pub fn new(options: &ProbeOptions) -> Monitor {
        let memory = options.memory == MemoryMode::On;
        let tallies = options.count && !options.functions;
        // A scheduler hears of everything.
        let detects = options.detector.is_some()
            && !(options.count || options.functions || options.silent)
            && options.schedule.is_none()
            && options.debug.is_none();
        let hooks = options.hooks.iter().map(|hook| MonitoredHook {
            active: options.functions
                || match hook.role {
                    // What code does is known from its calls of these.
                    Role::ConditionWrapper | Role::ThreadPause => false,
                    Role::Function => (hook.opaque || hook.callback.is_some()) && memory,
                    Role::Allocate { .. }
                    | Role::Reallocate { .. }
                    | Role::Free { .. }
                    | Role::Range { .. }
                    | Role::Print { .. }
                    | Role::Scan { .. } => memory,
                    // The inside of a synchronisation function is no event either, so watching
                    // memory needs these too.
                    _ => options.sync || memory,
                },
            tally: roles::tally(hook, |family| options.wants(family)).filter(|_| tallies),
            quiet: roles::quiet(hook).filter(|_| detects),
            stretches: roles::stretches(hook),
            hook: hook.clone(),
        });
        Monitor {
            hooks: hooks.collect(),
            quick: tallies || detects,
            only_detects: detects,
            has_generic: options
                .hooks
                .iter()
                .any(|h| matches!(h.role, Role::Wait { .. } | Role::Post { .. })),
            handles: Mutex::default(),
            created: Mutex::default(),
            teams: bodies::Teams::default(),
            calls: system_calls::Wanted::new(options),
            channels: channels::Channels::default(),
            dispositions: signals::Dispositions::inherited(),
            masks: masks::Masks::default(),
            births: Mutex::default(),
            next_thread: AtomicU32::new(1),
        }
    }

    /// The thread among whose local variables an address may be: they lie below its pointer, which
    /// is also the C libraries' handle of it.
    pub fn thread_local(&self, address: Address) -> Option<ThreadLocal> {
        let handles = self.handles.lock().unwrap_or_else(|e| e.into_inner());
        let below = |(pointer, thread): (&u64, &ThreadId)| {
            let below = pointer.checked_sub(address.0).filter(|below| *below <= MOST_LOCALS)?;
            Some(ThreadLocal { thread: *thread, below })
        };
        handles.iter().filter_map(below).min_by_key(|found| found.below)
    }
}

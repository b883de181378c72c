//! Signals: that one was delivered, and where it struck.
//!
//! The engine catches every signal. One that the program ignores would thus end its waits, which it does not by
//! itself: so the kernel ignores it, too, and the engine never hears of it. Likewise of those that are ignored by default,
//! when children end, above all.

use super::{hooks, modules};
use crate::memory::kernel::{self, SignalAction};
use crate::memory::{inherited, outside, target};
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::MachineState;
use raddle_model::{EventKind, StackId, SyncObject};
use raddle_wire::log::{Record, State};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const LAST_SIGNAL: usize = SignalAction::LAST as usize;

/// What the program does with each signal: as it was told at its start, or as it told the kernel.
#[derive(Debug)]
pub struct Dispositions {
    handlers: [AtomicU64; LAST_SIGNAL + 1],
    /// What the engine has the kernel do, once it is at work.
    engine: OnceLock<[SignalAction; LAST_SIGNAL + 1]>,
}

/// Flags of an action that say something though there is no handler.
const FLAGS: u64 = (libc::SA_NOCLDWAIT | libc::SA_NOCLDSTOP) as u64;

impl Dispositions {
    /// Those of the start.
    pub fn inherited() -> Dispositions {
        let ignored = inherited::ignored();
        let handler = |signal: usize| match signal.checked_sub(1) {
            Some(bit) if ignored >> bit & 1 != 0 => libc::SIG_IGN,
            _ => libc::SIG_DFL,
        };
        let handlers = std::array::from_fn(|signal| AtomicU64::new(handler(signal) as u64));
        Dispositions { handlers, engine: OnceLock::new() }
    }

    /// Code of the target is about to run for the first time: the engine catches signals from now on.
    pub fn begin(&self) {
        if self.engine.get().is_some() {
            return;
        }
        let caught = |signal| kernel::signal_action(signal as u32, None).unwrap_or_default();
        if self.engine.set(std::array::from_fn(caught)).is_ok() {
            (1..=SignalAction::LAST).for_each(|signal| self.tell_kernel(signal, 0, 0));
        }
    }

    /// Has the kernel ignore what the program ignores, unless the engine is to feed it to a descriptor.
    fn tell_kernel(&self, signal: u32, flags: u64, fed: u64) {
        let Some(engine) = self.engine.get() else { return };
        let mine = (super::masks::NEVER_BLOCKED | fed) & SignalAction::bit(signal) != 0;
        let action = match self.is_ignored(signal as i32) {
            true if !mine => SignalAction::without_handler(self.of(signal as i32), flags & FLAGS),
            // We are to know that it has come; under a policy, those from outside are the scheduler's to deliver.
            false if !mine => outside::before(engine[signal as usize]),
            _ => engine[signal as usize],
        };
        kernel::signal_action(signal, Some(action));
    }

    /// The engine is to get these signals: it feeds them to a descriptor.
    pub fn feed(&self, signals: u64) {
        let fed = |signal: &u32| signals & SignalAction::bit(*signal) != 0;
        (1..=SignalAction::LAST)
            .filter(fed)
            .for_each(|signal| self.tell_kernel(signal, 0, signals));
    }

    /// For a process that is about to go its own way.
    fn copy(&self) -> Dispositions {
        let handler = |signal: usize| self.handlers[signal].load(Ordering::Relaxed);
        let handlers = std::array::from_fn(|signal| AtomicU64::new(handler(signal)));
        Dispositions { handlers, engine: self.engine.clone() }
    }

    /// The program calls `sigaction(signal, action, …)`; the engine feeds these signals to descriptors.
    pub fn set(&self, signal: u64, action: u64, fed: u64) {
        // struct sigaction: the handler, flags, …
        let word = |at: u64| (action != 0).then(|| target::word(action + at)).flatten();
        let (Some(handler), Some(flags)) = (word(0), word(8)) else { return };
        if let Some(slot) = self.handlers.get(signal as usize).filter(|_| signal > 0) {
            slot.store(handler, Ordering::Relaxed);
            self.tell_kernel(signal as u32, flags, fed);
        }
    }

    /// Does nothing happen when it comes?
    pub fn is_ignored(&self, signal: i32) -> bool {
        let by_default =
            matches!(signal, libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH);
        match self.of(signal) {
            libc::SIG_IGN => true,
            libc::SIG_DFL => by_default,
            _ => false,
        }
    }

    /// Does the target have a handler for it?
    pub fn is_handled(&self, signal: i32) -> bool {
        !matches!(self.of(signal), libc::SIG_DFL | libc::SIG_IGN)
    }

    fn of(&self, signal: i32) -> usize {
        let slot = self.handlers.get(signal as usize);
        slot.map_or(libc::SIG_DFL, |h| h.load(Ordering::Relaxed) as usize)
    }
}

/// The program calls `sigaction(signal, action, …)`. The child of a vfork does so in its parent's
/// memory, and speaks for itself only.
pub fn set_action(probe: &Probe, thread: &mut ThreadState, signal: u64, action: u64) {
    let all = &probe.monitor.dispositions;
    let fed = probe.monitor.masks.fed();
    if probe.is_own_process() {
        all.set(signal, action, fed);
    } else {
        thread.dispositions.get_or_insert_with(|| Box::new(all.copy())).set(signal, action, fed);
    }
}

/// The process is about to become another program, which inherits what is ignored. From the engine
/// it would not: it catches what the program ignores, and forgets it.
pub fn hand_down(probe: &Probe, thread: &mut ThreadState) {
    let dispositions = thread.dispositions.as_deref().unwrap_or(&probe.monitor.dispositions);
    let ignored = |signal: &u32| {
        let is_the_engines = super::masks::NEVER_BLOCKED & SignalAction::bit(*signal) != 0;
        dispositions.of(*signal as i32) == libc::SIG_IGN && !is_the_engines
    };
    let signals = (1..=SignalAction::LAST).filter(ignored);
    let caught = signals
        .filter_map(|signal| {
            Some((signal, kernel::signal_action(signal, Some(SignalAction::ignore()))?))
        })
        .collect();
    thread.handed_down = caught;
}

/// It could not, and stays what it is.
pub fn take_back(thread: &mut ThreadState) {
    for (signal, action) in std::mem::take(&mut thread.handed_down) {
        kernel::signal_action(signal, Some(action));
    }
}

/// Does the process die of this signal, as far as known?
pub fn kills(probe: &Probe, number: i32) -> bool {
    let stops = matches!(number, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
    let dispositions = &probe.monitor.dispositions;
    dispositions.of(number) == libc::SIG_DFL && !dispositions.is_ignored(number) && !stops
}

/// The target dies of a signal of the current thread's: says where.
pub fn tell_crash(probe: &Probe, thread: &mut ThreadState, state: &MachineState) {
    let spot = modules::spot(probe, thread, state.pc, state.general[4], state.general[5]);
    let stack = match probe.options.stacks {
        true => probe.stacks.capture_and_tell(probe, thread, spot),
        false => StackId::NONE,
    };
    thread.write(&Record::Crash { place: spot.place, stack });
}

/// A signal has come for the current thread.
pub fn delivered(probe: &Probe, thread: &mut ThreadState, number: i32, state: &MachineState) {
    let handler = probe.monitor.dispositions.of(number);
    let by_default = matches!(
        number,
        libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH if handler == libc::SIG_DFL
    );
    if by_default || handler == libc::SIG_IGN {
        return;
    }
    let sp = state.general[4];
    let spot = modules::spot(probe, thread, state.pc, sp, state.general[5]);
    thread.emit(probe, spot, EventKind::SignalDelivered { signal: number as u32 });
    let object = SyncObject::Signal(number as u32);
    thread.emit(probe, spot, EventKind::Acquire { object });
    if handler != libc::SIG_DFL {
        hooks::enter_handler(thread, sp);
    } else if kills(probe, number)
        && let Some(log) = thread.log()
    {
        // The process dies of it, perhaps (two threads aborting at once) before the engine has
        // told us of its end: that is the program's doing and not our failure.
        log.set_state(State::Ending);
    }
}

//! Signals: that one was delivered, and where it struck.

use super::{hooks, modules};
use crate::memory::target;
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::MachineState;
use raddle_model::{EventKind, StackId, SyncObject};
use raddle_wire::log::{Record, State};
use std::sync::atomic::{AtomicU64, Ordering};

/// Signals are numbered from 1 to this.
const LAST_SIGNAL: usize = 64;

/// What the program does with each signal, as it told the kernel.
#[derive(Debug)]
pub struct Dispositions {
    handlers: [AtomicU64; LAST_SIGNAL + 1],
}

impl Default for Dispositions {
    fn default() -> Self {
        Dispositions { handlers: [const { AtomicU64::new(libc::SIG_DFL as u64) }; LAST_SIGNAL + 1] }
    }
}

impl Dispositions {
    /// The program calls `sigaction(signal, action, …)`.
    pub fn set(&self, signal: u64, action: u64) {
        // struct sigaction begins with the handler.
        let Some(handler) = (action != 0).then(|| target::word(action)).flatten() else { return };
        if let Some(slot) = self.handlers.get(signal as usize) {
            slot.store(handler, Ordering::Relaxed);
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

    fn of(&self, signal: i32) -> usize {
        let slot = self.handlers.get(signal as usize);
        slot.map_or(libc::SIG_DFL, |h| h.load(Ordering::Relaxed) as usize)
    }
}

/// Does the process die of this signal, as far as known?
pub fn kills(probe: &Probe, number: i32) -> bool {
    let stops = matches!(number, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
    let dispositions = &probe.monitor.dispositions;
    dispositions.of(number) == libc::SIG_DFL && !dispositions.is_ignored(number) && !stops
}

/// The target dies of a signal of the current thread's: says where.
pub fn tell_crash(probe: &Probe, thread: &mut ThreadState, number: i32, state: &MachineState) {
    let spot = modules::spot(probe, thread, state.pc, state.general[4], state.general[5]);
    let stack = match probe.options.stacks {
        true => probe.stacks.capture_and_tell(probe, thread, spot),
        false => StackId::NONE,
    };
    let (signal, place) = (number as u32, spot.place);
    thread.write(&Record::Crash { signal, thread: thread.id, place, stack });
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

//! Signals, as far as waiting is concerned: one that a thread of the target sends to another ends
//! the other's wait, as the kernel would.

use super::table::{Entry, Table, Wait, Woken};
use super::{Scheduler, State};
use crate::memory::{kernel, target};
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::SystemCall;
use std::sync::atomic::Ordering;

/// The call may send a signal or say what one does.
pub fn note(scheduler: &Scheduler, probe: &Probe, thread: &ThreadState, call: &SystemCall<'_>) {
    let argument = |i| call.argument(i);
    match i64::from(call.number) {
        libc::SYS_rt_sigaction if argument(1) != 0 => {
            // struct sigaction of the kernel: handler, flags, …
            let flags = target::word(argument(1) + 8).unwrap_or(0);
            let bit = 1u64.wrapping_shl(argument(0).wrapping_sub(1) as u32);
            if flags & libc::SA_RESTART as u64 != 0 {
                scheduler.restarting.fetch_or(bit, Ordering::Relaxed);
            } else {
                scheduler.restarting.fetch_and(!bit, Ordering::Relaxed);
            }
        }
        libc::SYS_rt_sigprocmask => {
            let Some(set) = target::word(argument(1)) else { return };
            if let Some(entry) = scheduler.lock().entry(thread.id) {
                match argument(0) as i32 {
                    libc::SIG_BLOCK => entry.mask |= set,
                    libc::SIG_UNBLOCK => entry.mask &= !set,
                    _ => entry.mask = set,
                }
            }
        }
        libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => {
            send(scheduler, probe, Some(argument(1) as u32), argument(2));
        }
        libc::SYS_tkill => send(scheduler, probe, Some(argument(0) as u32), argument(1)),
        libc::SYS_kill | libc::SYS_rt_sigqueueinfo if argument(0) as u32 == std::process::id() => {
            send(scheduler, probe, None, argument(1));
        }
        _ => {}
    }
}

/// A signal is sent, to one thread or to any.
fn send(scheduler: &Scheduler, probe: &Probe, to: Option<u32>, signal: u64) {
    if signal == 0 || probe.monitor.dispositions.is_ignored(signal as i32) {
        return;
    }
    let mut state = scheduler.lock();
    let State { table, .. } = &mut *state;
    interrupt(table, probe, to, signal);
}

impl Scheduler {
    /// The handler of a signal is about to run in this thread.
    pub fn signal_taken(&self, thread: &ThreadState) {
        if self.is_on()
            && let Some(entry) = self.lock().entry(thread.id)
        {
            entry.pending = 0;
            entry.signalled = false;
        }
    }
}

/// A timer sends a signal; `with` is how the kernel says so and what goes with it.
pub fn send_from_timer(
    table: &mut Table,
    probe: &Probe,
    (signal, to): (i32, Option<u32>),
    with: Option<(i32, u64)>,
) {
    let bit = 1u64.wrapping_shl(signal.wrapping_sub(1) as u32);
    let first = || {
        let open = table.iter().find(|e| e.mask & bit == 0);
        open.or_else(|| table.iter().next()).map(|e| e.os_id)
    };
    let Some(thread) = to.or_else(first) else { return };
    let process = u64::from(std::process::id());
    let (thread_word, signal_word) = (u64::from(thread), signal as u64);
    match with {
        // struct siginfo: signal, error, code; then timer, overrun, value.
        Some((code, value)) => {
            let mut about = [0u8; 128];
            about[..4].copy_from_slice(&signal.to_le_bytes());
            about[8..12].copy_from_slice(&code.to_le_bytes());
            about[24..32].copy_from_slice(&value.to_le_bytes());
            let about = about.as_ptr() as u64;
            let arguments = [process, thread_word, signal_word, about, 0, 0];
            kernel::call(libc::SYS_rt_tgsigqueueinfo, arguments);
        }
        None => {
            kernel::call(libc::SYS_tgkill, [process, thread_word, signal_word, 0, 0, 0]);
        }
    }
    if !probe.monitor.dispositions.is_ignored(signal) {
        if let Some(entry) = table.iter_mut().find(|e| e.os_id == thread) {
            entry.signalled = true;
        }
        interrupt(table, probe, Some(thread), signal_word);
    }
}

/// Ends the wait of whoever takes the signal.
fn interrupt(table: &mut Table, probe: &Probe, to: Option<u32>, signal: u64) {
    // Who asks for signals may get this one: it looks.
    let may_ask = |e: &&mut Entry| to.is_none_or(|os_id| e.os_id == os_id);
    for entry in table.iter_mut().filter(may_ask) {
        if matches!(entry.wait, Wait::Signal) {
            entry.wake(Woken::Came(0));
        }
    }
    let bit = 1u64.wrapping_shl(signal.wrapping_sub(1) as u32);
    let mut takers = table.iter_mut().filter(|e| e.mask & bit == 0);
    let taker = match to {
        Some(os_id) => takers.find(|e| e.os_id == os_id),
        // The kernel prefers the first thread.
        None => takers.next(),
    };
    let Some(entry) = taker else { return };
    match entry.wait {
        // It may be about to wait, and the kernel would not let it.
        Wait::Nothing if probe.monitor.dispositions.is_handled(signal as i32) => {
            entry.pending = signal as u32;
            entry.signalled = true;
        }
        // A replay knows where the wait was ended by it.
        Wait::Nothing | Wait::Outside | Wait::Recorded => {}
        _ => {
            entry.wake(Woken::Interrupted);
            entry.interrupted_by = signal as u32;
        }
    }
}

/// Does the handler of the signal that interrupted this thread let its call go on?
pub fn restarts(scheduler: &Scheduler, thread: &ThreadState) -> bool {
    let signal = scheduler.lock().entry(thread.id).map_or(0, |e| e.interrupted_by);
    let bit = 1u64.wrapping_shl(signal.wrapping_sub(1));
    signal != 0 && scheduler.restarting.load(Ordering::Relaxed) & bit != 0
}

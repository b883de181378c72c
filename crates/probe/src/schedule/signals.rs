//! Signals, as far as waiting is concerned: one that a thread of the target sends to another ends
//! the other's wait, as the kernel would.

use super::table::{Wait, Woken};
use super::{Scheduler, State};
use crate::memory::target;
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
    let bit = 1u64.wrapping_shl(signal.wrapping_sub(1) as u32);
    let mut state = scheduler.lock();
    let State { table, .. } = &mut *state;
    let mut takers = table.iter_mut().filter(|e| e.mask & bit == 0);
    let taker = match to {
        Some(os_id) => takers.find(|e| e.os_id == os_id),
        // The kernel prefers the first thread.
        None => takers.next(),
    };
    if let Some(entry) = taker
        // A replay knows where the wait was ended by it.
        && !matches!(entry.wait, Wait::Nothing | Wait::Outside | Wait::Recorded)
    {
        entry.wake(Woken::Interrupted);
        entry.interrupted_by = signal as u32;
    }
}

/// Does the handler of the signal that interrupted this thread let its call go on?
pub fn restarts(scheduler: &Scheduler, thread: &ThreadState) -> bool {
    let signal = scheduler.lock().entry(thread.id).map_or(0, |e| e.interrupted_by);
    let bit = 1u64.wrapping_shl(signal.wrapping_sub(1));
    signal != 0 && scheduler.restarting.load(Ordering::Relaxed) & bit != 0
}

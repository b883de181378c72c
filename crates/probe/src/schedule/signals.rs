//! Signals, as far as waiting is concerned: one that a thread of the target sends to another ends
//! the other's wait, as the kernel would.

use super::input::Signal;
use super::table::{Entry, Table, Wait, Woken};
use super::{Scheduler, State};
use crate::memory::outside::{self, Mode};
use crate::memory::{kernel, target};
use crate::monitor::masks::{MASK_IN_FRAME, NEVER_BLOCKED};
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::SystemCall;
use std::sync::atomic::Ordering;

/// Looks for a signal that may be under way, before nobody can run for good: half a millisecond each.
const LOOKS: u32 = 40;

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
            if let Some(mask) = scheduler.handler_masks.get(argument(0) as usize) {
                let own = if flags & libc::SA_NODEFER as u64 != 0 { 0 } else { bit };
                let others = target::word(argument(1) + 24).unwrap_or(0);
                mask.store(own | others, Ordering::Relaxed);
            }
            let handler = target::word(argument(1)).unwrap_or(0) as usize;
            if matches!(handler, libc::SIG_DFL | libc::SIG_IGN) {
                scheduler.handled.fetch_and(!bit, Ordering::Relaxed);
            } else if argument(0) <= outside::LAST.into() && bit & NEVER_BLOCKED == 0 {
                scheduler.handled.fetch_or(bit, Ordering::Relaxed);
                scheduler.be_interruptible();
            }
        }
        // A handler returns.
        libc::SYS_rt_sigreturn => {
            let at = call.state().general[4].wrapping_add(MASK_IN_FRAME);
            if let Some(mask) = target::word(at)
                && let Some(entry) = scheduler.lock().entry(thread.id)
            {
                entry.mask = mask;
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
    /// The handler of this signal begins in this thread, which wants some others less meanwhile.
    pub fn handler_begins(&self, thread: &ThreadState, signal: u64) {
        if let Some(mask) = self.handler_masks.get(signal as usize)
            && let Some(entry) = self.lock().entry(thread.id)
        {
            entry.mask |= mask.load(Ordering::Relaxed);
        }
    }

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

impl Scheduler {
    /// May a process that the target has made send it a signal that it handles, if only by ending?
    pub(super) fn expects_signals(&self, state: &State) -> bool {
        state.inputs.has_children() && self.handled.load(Ordering::Relaxed) != 0
    }

    /// Nobody can run, or gets on: may such a signal still come?
    pub(super) fn awaits_signals(&self, state: &mut State) -> bool {
        if state.inputs.is_replaying() {
            return state.inputs.next_signal().is_some();
        }
        if !self.expects_signals(state) {
            return false;
        }
        let wanted = self.handled.load(Ordering::Relaxed) & state.wanted_signals();
        // In this order: whoever has ended has said so before.
        if wanted != 0 && (kernel::has_children() || outside::has_come(wanted)) {
            state.looks = 0;
            return true;
        }
        // A thread may be on its way from the kernel to us with one, which shows nowhere.
        state.looks += 1;
        wanted != 0 && state.looks < LOOKS
    }

    /// A moment at which the current thread may take signals from outside; it is alone.
    pub(super) fn take_alone(&self, probe: &Probe, thread: &mut ThreadState) {
        let mut state = self.lock();
        if self.is_on() && state.table.get(thread.id).is_some() {
            state.take_alone(probe, thread);
        }
    }
}

/// Signals from outside are taken when the policy is asked, or when a thread that is alone makes a call or has
/// computed for a while. They are sent to who takes them as a timer's are, and so they strike where those do.
impl State {
    /// Those that somebody takes. The others are kept until somebody does.
    fn wanted_signals(&self) -> u64 {
        self.table.iter().filter(|e| !e.leaving).fold(0, |all, e| all | !e.mask)
    }

    fn moment(&self) -> u64 {
        self.points + self.lone
    }

    pub fn take_alone(&mut self, probe: &Probe, thread: &mut ThreadState) {
        if self.inputs.is_replaying() {
            self.send_recorded(probe);
        } else if self.send_held(probe) {
            self.inputs.write(thread);
        }
        self.lone += 1;
    }

    /// Sends those on that have come. Were there any?
    pub fn send_held(&mut self, probe: &Probe) -> bool {
        let (moment, clock) = (self.moment(), self.clock.now());
        let mut any = false;
        while let Some((signal, about, is_sent)) = outside::take(self.wanted_signals()) {
            let bit = 1u64.wrapping_shl(signal.wrapping_sub(1));
            // The kernel prefers the first thread.
            let taker = self.table.iter().find(|e| e.mask & bit == 0 && !e.leaving);
            let Some((id, os_id)) = taker.map(|entry| (entry.id, entry.os_id)) else { break };
            self.inputs.add_signal(id, Signal { moment, clock, about });
            any = true;
            if !is_sent {
                send_from_outside(&mut self.table, probe, os_id, about);
            }
        }
        any
    }

    /// Sends those that were taken at this moment; in a replay.
    pub fn send_recorded(&mut self, probe: &Probe) {
        while let Some((thread, signal)) = self.inputs.next_signal() {
            let is_time = !self.clock.is_virtual() || signal.clock <= self.clock.now();
            let now = self.moment();
            if !(signal.moment < now || (signal.moment == now && is_time)) {
                return;
            }
            self.inputs.signal_came();
            if let Some(os_id) = self.table.get(thread).map(|entry| entry.os_id) {
                send_from_outside(&mut self.table, probe, os_id, signal.about);
            }
        }
    }

    /// Nobody can run: in a replay, did a signal come before the next deadline? Then it is that time now.
    pub fn await_signal(&mut self) -> bool {
        let (now, moment) = (self.clock.now(), self.moment());
        let deadline = self.next_deadline();
        let comes = |signal: &Signal| {
            signal.moment == moment && deadline.is_none_or(|deadline| signal.clock <= deadline)
        };
        let next = self.inputs.next_signal().map(|(_, signal)| signal).filter(comes);
        next.is_some_and(|signal| {
            self.clock.pass_to(signal.clock.max(now));
            true
        })
    }

    /// The last thread leaves for the kernel: what comes meanwhile comes to it there, and is taken at this moment.
    pub fn send_before_leaving(&mut self, probe: &Probe, thread: &mut ThreadState) {
        if self.inputs.is_replaying() {
            self.send_recorded(probe);
        } else {
            outside::set(Mode::Noted);
            if self.send_held(probe) {
                self.inputs.write(thread);
            }
        }
    }

    /// One of those who were in the kernel is back, and looks what came meanwhile.
    pub fn note_after_leaving(&mut self, probe: &Probe, thread: &mut ThreadState) {
        outside::set(self.inputs.signal_mode());
        if !self.inputs.is_replaying() && self.send_held(probe) {
            self.inputs.write(thread);
        }
    }
}

/// A signal from outside is sent on.
fn send_from_outside(table: &mut Table, probe: &Probe, thread: u32, about: outside::About) {
    let signal = about[0] as i32;
    outside::send(thread, about);
    if !probe.monitor.dispositions.is_ignored(signal) {
        if let Some(entry) = table.iter_mut().find(|e| e.os_id == thread) {
            entry.signalled = true;
        }
        interrupt(table, probe, Some(thread), signal as u64);
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

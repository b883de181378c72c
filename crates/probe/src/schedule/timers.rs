//! Timers of the target, by our clock: `alarm` and `setitimer`, `timer_create`, `timerfd_create`.
//!
//! A timer that is due sends its signal, to a thread of our choosing, as if another thread did; or it makes
//! its descriptor ready, by way of the kernel's own timer, which is set to go off at once and never
//! otherwise. So whoever waits for the descriptor, by whatever call, is served by the kernel, and when is
//! ours to say. Timers of processor time go off when so much was computed, by whichever thread; nobody waits for
//! them, so time does not jump to where they would.

use super::clock::{Clock, Scale};
use super::{Scheduler, State, calls, signals};
use crate::memory::{kernel, target};
use crate::probe::Probe;
use crate::thread::ThreadState;
use crate::trampoline::slot;
use raddle_dynamorio::process::{self, SystemCall};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;
/// How long the kernel may take to let a timer go off that is due, in nanoseconds a look.
const LOOK: u64 = 1_000_000;
/// The kernel's own ids, of timers that stay its, are below.
const FIRST_ID: i32 = 1 << 20;
/// From `asm-generic/siginfo.h`: the signal comes from a timer.
const SI_TIMER: i32 = -2;

/// The timers.
#[derive(Debug, Default)]
pub struct Timers {
    all: BTreeMap<Key, Timer>,
    made: i32,
}

/// Which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// One of `setitimer`, by its number there; that of `alarm` is one of them.
    Interval(i32),
    Descriptor(i32),
    /// One of `timer_create`.
    Made(i32),
}

#[derive(Debug, Clone, Copy)]
struct Timer {
    /// The clock that absolute times are by.
    clock: i32,
    /// When it goes off next, on the scale of its clock.
    deadline: Option<u64>,
    /// Nanoseconds between two times; zero for once only.
    interval: u64,
    /// How often it has gone off since it was read.
    expirations: u64,
    notice: Option<Notice>,
}

/// The signal that a timer sends.
#[derive(Debug, Clone, Copy)]
struct Notice {
    signal: i32,
    /// To this thread, or to any.
    thread: Option<u32>,
    /// What goes with it, and whether anything does.
    value: Option<u64>,
}

impl Timers {
    /// When the next one goes off, if nobody need compute for it.
    pub fn next(&self) -> Option<u64> {
        let waits = self.all.values().filter(|timer| timer.scale() == Scale::Time);
        waits.filter_map(|timer| timer.deadline).min()
    }

    /// Does one go off when threads have computed so much?
    pub fn count_work(&self) -> bool {
        self.all.values().any(|timer| timer.deadline.is_some() && timer.scale() == Scale::Work)
    }

    /// May one interrupt what a thread computes?
    pub fn interrupt(&self) -> bool {
        self.all.values().any(|timer| timer.deadline.is_some() && timer.notice.is_some())
    }

    fn set(&mut self, key: Key, deadline: Option<u64>, interval: u64) -> Option<Timer> {
        let timer = self.all.get_mut(&key)?;
        let before = *timer;
        (timer.deadline, timer.interval, timer.expirations) = (deadline, interval, 0);
        Some(before)
    }
}

impl Timer {
    fn new(clock: i32, notice: Option<Notice>) -> Timer {
        Timer { clock, deadline: None, interval: 0, expirations: 0, notice }
    }

    fn scale(&self) -> Scale {
        Scale::of(self.clock)
    }

    /// When it goes off if it is set so now: not at all for no time.
    fn deadline_in(&self, clock: &Clock, time: u64) -> Option<u64> {
        (time != 0).then(|| clock.on(self.scale()).saturating_add(time))
    }

    /// Interval and time left, as `itimerspec` and `itimerval` have them; `unit` is 1 or 1,000 nanoseconds.
    fn told(&self, clock: &Clock, unit: u64) -> [u8; 32] {
        let now = clock.on(self.scale());
        let left = self.deadline.map_or(0, |deadline| deadline.saturating_sub(now).max(1));
        let mut bytes = [0; 32];
        for (index, time) in [self.interval, left].into_iter().enumerate() {
            let parts = [time / SECOND, (time % SECOND).div_ceil(unit)];
            for (part, value) in parts.into_iter().enumerate() {
                let at = 16 * index + 8 * part;
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        bytes
    }
}

fn error(number: i32) -> i64 {
    -i64::from(number)
}

/// Interval and time of an `itimerspec` or `itimerval`.
fn times_at(address: u64, unit: u64) -> Option<(u64, u64)> {
    let time = |at: u64| {
        let (seconds, rest) = (target::word(at)?, target::word(at + 8)?);
        Some(
            seconds
                .min(i64::MAX as u64)
                .saturating_mul(SECOND)
                .saturating_add(rest.saturating_mul(unit)),
        )
    };
    Some((time(address)?, time(address + 16)?))
}

/// Answers calls that make, set or read timers; `None` leaves them to the kernel.
pub fn answer(
    scheduler: &Scheduler,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
) -> Option<i64> {
    if !scheduler.lock().clock.is_virtual() {
        return None;
    }
    let argument = |i| call.argument(i);
    let result = match i64::from(call.number) {
        libc::SYS_alarm => {
            let time = (argument(0) as u32 as u64) * SECOND;
            let mut state = scheduler.lock();
            let before = state.set_interval(libc::ITIMER_REAL, time, 0)?;
            let left = before.deadline.map_or(0, |d| d.saturating_sub(state.clock.now()));
            left.div_ceil(SECOND) as i64
        }
        libc::SYS_setitimer => {
            let (interval, time) = match argument(1) {
                0 => (0, 0),
                at => times_at(at, 1_000)?,
            };
            let mut state = scheduler.lock();
            let before = state.set_interval(argument(0) as i32, time, interval)?;
            tell(&state, &before, argument(2), 1_000)
        }
        libc::SYS_getitimer => {
            let state = scheduler.lock();
            let none = interval_timer(argument(0) as i32)?;
            let timer = state.timers.all.get(&Key::Interval(argument(0) as i32));
            tell(&state, timer.unwrap_or(&none), argument(1), 1_000)
        }
        libc::SYS_timer_create => {
            return make(scheduler, argument(0) as i32, argument(1), argument(2));
        }
        libc::SYS_timer_settime => {
            let key = Key::Made(argument(0) as i32);
            let absolute = argument(1) & libc::TIMER_ABSTIME as u64 != 0;
            set(scheduler, key, absolute, argument(2), argument(3))?
        }
        libc::SYS_timerfd_settime => {
            let key = Key::Descriptor(argument(0) as i32);
            let absolute = argument(1) & libc::TFD_TIMER_ABSTIME as u64 != 0;
            let result = set(scheduler, key, absolute, argument(2), argument(3))?;
            disarm(argument(0));
            result
        }
        libc::SYS_timer_gettime | libc::SYS_timerfd_gettime => {
            let key = match i64::from(call.number) {
                libc::SYS_timer_gettime => Key::Made(argument(0) as i32),
                _ => Key::Descriptor(argument(0) as i32),
            };
            let state = scheduler.lock();
            let timer = *state.timers.all.get(&key)?;
            tell(&state, &timer, argument(1), 1)
        }
        libc::SYS_timer_getoverrun => {
            scheduler.lock().timers.all.get(&Key::Made(argument(0) as i32))?;
            0
        }
        libc::SYS_timer_delete => {
            scheduler.lock().timers.all.remove(&Key::Made(argument(0) as i32))?;
            0
        }
        _ => return None,
    };
    // Who computes is to look now and then.
    if scheduler.lock().timers.interrupt() {
        scheduler.be_interruptible();
        thread.slots.set(slot::BUDGET, 1);
    }
    Some(result)
}

/// Tells a timer's times, if somewhere.
fn tell(state: &State, timer: &Timer, to: u64, unit: u64) -> i64 {
    let bytes = timer.told(&state.clock, unit);
    if to == 0 || process::write(to, &bytes) { 0 } else { error(libc::EFAULT) }
}

fn set(scheduler: &Scheduler, key: Key, absolute: bool, times: u64, old: u64) -> Option<i64> {
    let mut state = scheduler.lock();
    let timer = *state.timers.all.get(&key)?;
    let Some((interval, time)) = times_at(times, 1) else { return Some(error(libc::EFAULT)) };
    let deadline = match (timer.scale(), absolute) {
        (Scale::Time, true) if time != 0 => Some(state.clock.deadline(timer.clock, time)),
        (Scale::Work, true) if time != 0 => Some(time),
        _ => timer.deadline_in(&state.clock, time),
    };
    let before = state.timers.set(key, deadline, interval)?;
    Some(tell(&state, &before, old, 1))
}

/// A timer of `setitimer` that is not set; `None` if there is none of this number.
fn interval_timer(which: i32) -> Option<Timer> {
    let (clock, signal) = match which {
        libc::ITIMER_REAL => (libc::CLOCK_MONOTONIC, libc::SIGALRM),
        libc::ITIMER_VIRTUAL => (libc::CLOCK_PROCESS_CPUTIME_ID, libc::SIGVTALRM),
        libc::ITIMER_PROF => (libc::CLOCK_PROCESS_CPUTIME_ID, libc::SIGPROF),
        _ => return None,
    };
    Some(Timer::new(clock, Some(Notice { signal, thread: None, value: None })))
}

/// `timer_create(clock, event, id)`.
fn make(scheduler: &Scheduler, clock: i32, event: u64, id_at: u64) -> Option<i64> {
    let mut state = scheduler.lock();
    let id = FIRST_ID + state.timers.made;
    // struct sigevent: value, signal, how, thread.
    let notice = match event {
        0 => Some(Notice { signal: libc::SIGALRM, thread: None, value: Some(id as u64) }),
        at => {
            let (value, signal) = (target::word(at)?, target::half(at + 8)? as i32);
            match target::half(at + 12)? as i32 {
                libc::SIGEV_NONE => None,
                libc::SIGEV_THREAD_ID => {
                    let said = target::half(at + 16)?;
                    let os_id = |thread| state.table.get(thread).map(|entry| entry.os_id);
                    let thread = scheduler.ids.meant(said, os_id).or(Some(said));
                    Some(Notice { signal, thread, value: Some(value) })
                }
                _ => Some(Notice { signal, thread: None, value: Some(value) }),
            }
        }
    };
    if !process::write(id_at, &id.to_le_bytes()) {
        return Some(error(libc::EFAULT));
    }
    state.timers.made += 1;
    state.timers.all.insert(Key::Made(id), Timer::new(clock, notice));
    Some(0)
}

/// A descriptor of a timer was made.
pub fn descriptor_made(scheduler: &Scheduler, clock: u64, descriptor: i64) {
    let mut state = scheduler.lock();
    if descriptor >= 0 && state.clock.is_virtual() {
        let timer = Timer::new(clock as i32, None);
        state.timers.all.insert(Key::Descriptor(descriptor as i32), timer);
    }
}

/// A descriptor is closed.
pub fn descriptor_closed(scheduler: &Scheduler, descriptor: u64) {
    scheduler.lock().timers.all.remove(&Key::Descriptor(descriptor as i32));
}

/// A read of a timer's descriptor has returned: how often it has gone off is ours to say.
pub fn was_read(scheduler: &Scheduler, descriptor: u64, buffer: u64, result: i64) {
    let mut state = scheduler.lock();
    let Some(timer) = state.timers.all.get_mut(&Key::Descriptor(descriptor as i32)) else { return };
    if result == 8 {
        let count = std::mem::take(&mut timer.expirations).max(1);
        process::write(buffer, &count.to_le_bytes());
    }
}

/// The kernel's own timer does not go off by itself.
fn disarm(descriptor: u64) {
    kernel::call(libc::SYS_timerfd_settime, [descriptor, 0, [0u64; 4].as_ptr() as u64, 0, 0, 0]);
}

/// Makes the descriptor ready.
fn go_off(descriptor: i32) {
    let at_once = [0u64, 0, 0, 1];
    let arguments = [descriptor as u64, 0, at_once.as_ptr() as u64, 0, 0, 0];
    if kernel::call(libc::SYS_timerfd_settime, arguments) != 0 {
        return;
    }
    let mut wanted = [kernel::Descriptor { fd: descriptor, events: libc::POLLIN, revents: 0 }];
    while kernel::poll(&mut wanted, LOOK) == Some(false) {}
}

impl State {
    /// Sets a timer of `setitimer`, and returns what it was.
    fn set_interval(&mut self, which: i32, time: u64, interval: u64) -> Option<Timer> {
        let timer = self.timers.all.entry(Key::Interval(which));
        let timer = timer.or_insert(interval_timer(which)?);
        let before = *timer;
        (timer.deadline, timer.interval) = (timer.deadline_in(&self.clock, time), interval);
        Some(before)
    }

    /// Lets those timers go off whose time has come.
    pub fn fire_timers(&mut self, probe: &Probe) {
        let State { timers, table, clock, .. } = self;
        for (key, timer) in &mut timers.all {
            let now = clock.on(timer.scale());
            let Some(deadline) = timer.deadline.filter(|deadline| *deadline <= now) else {
                continue;
            };
            // Those times count, too, at which nobody could look.
            let times = (now - deadline).checked_div(timer.interval).map_or(1, |more| 1 + more);
            timer.expirations += times;
            let is_periodic = timer.interval != 0;
            timer.deadline = is_periodic.then(|| deadline + times * timer.interval);
            match (*key, timer.notice) {
                (Key::Descriptor(descriptor), _) => go_off(descriptor),
                (_, Some(notice)) => {
                    signals::send_from_timer(
                        table,
                        probe,
                        (notice.signal, notice.thread),
                        notice.value.map(|value| (SI_TIMER, value)),
                    );
                }
                (_, None) => {}
            }
        }
    }
}

/// Processor time: all of it is the target's own. `times` and `getrusage`.
pub fn processor_time(scheduler: &Scheduler, call: &SystemCall<'_>) -> Option<i64> {
    let mut state = scheduler.lock();
    if !state.clock.is_virtual() {
        return None;
    }
    let used = state.clock.look(libc::CLOCK_PROCESS_CPUTIME_ID);
    let (to, bytes, result) = match i64::from(call.number) {
        libc::SYS_times => {
            // struct tms: user, system, children's; hundredths of a second.
            let mut bytes = vec![0; 32];
            bytes[..8].copy_from_slice(&(used / 10_000_000).to_le_bytes());
            let shown = state.clock.look(libc::CLOCK_MONOTONIC) / 10_000_000;
            (call.argument(0), bytes, shown as i64)
        }
        libc::SYS_getrusage => {
            // struct rusage: user time first; children have used none, as far as is told.
            let mut bytes = vec![0; size_of::<libc::rusage>()];
            if call.argument(0) as i32 != libc::RUSAGE_CHILDREN {
                bytes[..8].copy_from_slice(&(used / SECOND).to_le_bytes());
                bytes[8..16].copy_from_slice(&(used % SECOND / 1_000).to_le_bytes());
            }
            (call.argument(1), bytes, 0)
        }
        _ => return None,
    };
    drop(state);
    let written = to == 0 || process::write(to, &bytes);
    Some(if written { result } else { error(libc::EFAULT) })
}

/// What is left of the time that `calls` knows how to read.
pub fn deadline_of(scheduler: &Scheduler, time_at: u64) -> Option<u64> {
    let time = calls::time_at(time_at)?;
    Some(scheduler.lock().clock.after(time))
}

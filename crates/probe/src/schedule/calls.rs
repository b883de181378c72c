//! System calls that are ours to answer: time, chance, the number of processors, waiting.

use super::input::{self, Replayed};
use super::table::{Wait, Woken};
use super::told;
use super::{Newborn, Scheduler, again, descriptors, futex, signals, streams, timers};
use crate::memory::{kernel, target};
use crate::probe::Probe;
use crate::thread::ThreadState;
use crate::trampoline::slot;
use raddle_dynamorio::process::{self, SystemCall};
use raddle_schedule::Step;
use raddle_schedule::told::PROCESSORS;
use std::sync::atomic::Ordering;

const SYS_FUTEX_WAITV: i64 = 449;
/// `futex_wake`, `futex_wait` and `futex_requeue`: the call by its parts, since Linux 6.7.
const SYS_FUTEX_PARTS: std::ops::RangeInclusive<i64> = 454..=456;
const SYS_IO_PGETEVENTS: i64 = 333;

/// Answers a call; `None` leaves it to the kernel.
pub fn answer(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &mut SystemCall<'_>,
) -> Option<i64> {
    let number = i64::from(call.number);
    thread.call_arguments = std::array::from_fn(|i| call.argument(i as u32));
    again::forget(thread, call);
    signals::note(scheduler, probe, thread, call);
    let timed = of_time(scheduler, call)
        .or_else(|| timers::processor_time(scheduler, call))
        .or_else(|| timers::answer(scheduler, thread, call));
    if timed.is_some() {
        return timed;
    }
    match number {
        libc::SYS_futex | SYS_FUTEX_WAITV => {
            let step = scheduler.step_of(probe, thread, call);
            note_spot(scheduler, probe, thread, call);
            return match number {
                libc::SYS_futex => futex::answer(scheduler, probe, thread, call, step),
                _ => futex::answer_many(scheduler, probe, thread, call, step),
            };
        }
        libc::SYS_getpid | libc::SYS_gettid | libc::SYS_getppid => {
            return scheduler.told_id(thread, number);
        }
        libc::SYS_sched_yield => return Some(0),
        libc::SYS_pause => return Some(pause(scheduler, probe, thread, call)),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => {
            return Some(sleep(scheduler, probe, thread, call));
        }
        libc::SYS_getrandom => return Some(random(scheduler, call.argument(0), call.argument(1))),
        libc::SYS_sched_getaffinity => return Some(processors(call.argument(1), call.argument(2))),
        libc::SYS_sched_setaffinity => return Some(0),
        libc::SYS_getcpu => return Some(first_processor(call)),
        libc::SYS_set_tid_address => {
            let mut state = scheduler.lock();
            let entry = state.entry(thread.id)?;
            entry.clear_id = call.argument(0);
            return Some(i64::from(scheduler.ids.shown(thread.id)));
        }
        libc::SYS_set_robust_list => {
            scheduler.lock().entry(thread.id)?.robust = call.argument(0);
            return Some(0);
        }
        libc::SYS_sysinfo => return Some(told::machine(scheduler, call.argument(0))),
        // Whoever makes them knows what to do where they are not there.
        number if SYS_FUTEX_PARTS.contains(&number) => return Some(-i64::from(libc::ENOSYS)),
        // The kernel would write there which processor it is.
        libc::SYS_rseq => return Some(-i64::from(libc::ENOSYS)),
        libc::SYS_clone | libc::SYS_clone3 => expect_thread(scheduler, thread, call),
        libc::SYS_fork | libc::SYS_vfork => scheduler.forks.begin(),
        libc::SYS_exit => {
            // The kernel is to do nothing when the thread has ended: we do, in our order.
            kernel::call(libc::SYS_set_tid_address, [0; 6]);
            if let Some(entry) = scheduler.lock().entry(thread.id) {
                entry.leaving = true;
            }
        }
        libc::SYS_exit_group => {
            scheduler.flush(thread);
            scheduler.stop();
        }
        libc::SYS_execve | libc::SYS_execveat => scheduler.flush(thread),
        libc::SYS_kill | libc::SYS_rt_sigqueueinfo => return input::redirect(scheduler, call),
        libc::SYS_close => {
            scheduler.lock().random_descriptors.remove(&(call.argument(0) as i32));
            timers::descriptor_closed(scheduler, call.argument(0));
        }
        libc::SYS_read if is_random(scheduler, call.argument(0)) => {
            return Some(random(scheduler, call.argument(1), call.argument(2)));
        }
        _ => {}
    }
    told::before(scheduler, probe, call);
    match input::answer(scheduler, probe, thread, call) {
        Replayed::Answered(result) => return Some(again::told(thread, call, result)),
        Replayed::Made => return None,
        Replayed::Not => {}
    }
    input::expect(scheduler, thread, call);
    let result = wait_for(scheduler, probe, thread, call)?;
    let result = again::judge(scheduler, thread, call, result);
    scheduler.show_senders(number, thread.call_arguments, result);
    input::note(scheduler, thread, result);
    Some(again::told(thread, call, result))
}

/// Waits until the call can be made without waiting, or makes it, again and again. `None` leaves it to
/// the kernel.
fn wait_for(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &mut SystemCall<'_>,
) -> Option<i64> {
    if let Some(result) = descriptors::answer(scheduler, probe, thread, call) {
        return Some(result);
    }
    let alone = !scheduler.waits_here(thread);
    let retried = (!alone).then(|| retry(scheduler, probe, thread, call)).flatten();
    if retried.is_none() && !alone && blocks_otherwise(call) {
        go_outside(scheduler, probe, thread, call);
    }
    retried
}

/// A call has returned from the kernel.
pub fn returned(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &mut SystemCall<'_>,
) {
    let number = i64::from(call.number);
    let result = call.result();
    if may_block_otherwise(number) {
        come_back(scheduler, probe, thread);
    }
    scheduler.show_senders(number, thread.call_arguments, result);
    input::note(scheduler, thread, result);
    input::descriptors_change(scheduler, call, thread.call_arguments);
    if result >= 0 {
        scheduler.lock().streams.change(number, thread.call_arguments, result);
    }
    if result > 0 && streams::sends(number) {
        streams::sent(scheduler, thread.call_arguments[0] as i32);
    }
    match number {
        libc::SYS_clone | libc::SYS_clone3 => {
            // The new thread may have entered its name, and not said so yet: neither tells what was made.
            if !scheduler.expecting.swap(false, Ordering::Relaxed) {
                process_made(scheduler, thread, call);
                return;
            }
            if result < 0 {
                scheduler.lock().newborn = None;
                return;
            }
            scheduler.await_birth();
            scheduler.born.store(0, Ordering::Release);
            let shown = scheduler.shown_id(result as u32);
            call.change_result(i64::from(shown));
            thread.slots.set(slot::CONTROLLED, 1);
            let quantum = scheduler.lock().quantum();
            thread.slots.set(slot::BUDGET, quantum);
            let step = scheduler.step_of(probe, thread, call);
            scheduler.give_way(probe, thread, step);
        }
        libc::SYS_openat | libc::SYS_open | libc::SYS_openat2 if result >= 0 => {
            let path = thread.system_call_path.take();
            if path.is_some_and(|path| matches!(&*path, "/dev/urandom" | "/dev/random")) {
                scheduler.lock().random_descriptors.insert(result as i32);
            }
            told::opened(scheduler, probe, result as i32);
        }
        libc::SYS_timerfd_create => {
            timers::descriptor_made(scheduler, thread.call_arguments[0], result);
        }
        libc::SYS_read => {
            let [descriptor, buffer] = thread.call_arguments;
            timers::was_read(scheduler, descriptor, buffer, result);
        }
        libc::SYS_fork | libc::SYS_vfork => process_made(scheduler, thread, call),
        _ => {}
    }
}

/// A process has been made, or could not be; of the two who return from the call, this is for the parent.
fn process_made(scheduler: &Scheduler, thread: &mut ThreadState, call: &mut SystemCall<'_>) {
    if call.result() != 0 {
        scheduler.forks.end();
    }
    if call.result() > 0
        && let Some(told) = input::process_made(scheduler, thread, call)
    {
        call.change_result(told);
    }
}

/// A thread comes: it is to be known before this one goes on.
fn expect_thread(scheduler: &Scheduler, thread: &ThreadState, call: &SystemCall<'_>) {
    let is_clone3 = i64::from(call.number) == libc::SYS_clone3;
    let field = |i: u64| target::word(call.argument(0) + 8 * i).unwrap_or(0);
    let flags = if is_clone3 { field(0) } else { call.argument(0) };
    scheduler.expecting.store(false, Ordering::Relaxed);
    if flags & libc::CLONE_THREAD as u64 == 0 {
        return scheduler.forks.begin();
    }
    let Some(id) = thread.last_child else { return };
    // struct clone_args: flags, pidfd, child_tid, parent_tid, …
    let (child_id, parent_id) = match is_clone3 {
        true => (field(2), field(3)),
        false => (call.argument(3), call.argument(2)),
    };
    let if_asked = |flag: i32, at: u64| if flags & flag as u64 != 0 { at } else { 0 };
    let id_at = [
        if_asked(libc::CLONE_CHILD_SETTID, child_id),
        if_asked(libc::CLONE_PARENT_SETTID, parent_id),
    ];
    let clear_id = if_asked(libc::CLONE_CHILD_CLEARTID, child_id);
    let pc = call.state().pc;
    let mut state = scheduler.lock();
    let mask = state.entry(thread.id).map_or(0, |e| e.mask);
    state.newborn = Some(Newborn { id, clear_id, id_at, mask, pc });
    scheduler.expecting.store(true, Ordering::Relaxed);
    scheduler.born.store(0, Ordering::Release);
}

/// Remembers where the thread is, for a deadlock's report.
fn note_spot(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
) {
    let at = call.state();
    let spot = crate::monitor::modules::spot(probe, thread, at.pc, at.general[4], at.general[5]);
    if let Some(entry) = scheduler.lock().entry(thread.id) {
        entry.spot = Some(spot);
    }
}

/// Looks at clocks.
fn of_time(scheduler: &Scheduler, call: &SystemCall<'_>) -> Option<i64> {
    let mut state = scheduler.lock();
    if !state.clock.is_virtual() {
        return None;
    }
    let (id, to, unit) = match i64::from(call.number) {
        libc::SYS_clock_gettime => (call.argument(0) as i32, call.argument(1), 1),
        libc::SYS_gettimeofday => (libc::CLOCK_REALTIME, call.argument(0), 1_000),
        libc::SYS_time => {
            let seconds = state.clock.look(libc::CLOCK_REALTIME) / 1_000_000_000;
            let to = call.argument(0);
            let failed = to != 0 && !process::write(to, &seconds.to_le_bytes());
            return Some(if failed { -i64::from(libc::EFAULT) } else { seconds as i64 });
        }
        _ => return None,
    };
    let now = state.clock.look(id);
    drop(state);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(now / 1_000_000_000).to_le_bytes());
    bytes[8..].copy_from_slice(&(now % 1_000_000_000 / unit).to_le_bytes());
    let failed = to != 0 && !process::write(to, &bytes);
    Some(if failed { -i64::from(libc::EFAULT) } else { 0 })
}

/// The nanoseconds of a `timespec`.
pub fn time_at(address: u64) -> Option<u64> {
    let (seconds, rest) = (target::word(address)?, target::word(address + 8)?);
    Some(seconds.min(i64::MAX as u64).saturating_mul(1_000_000_000).saturating_add(rest))
}

fn sleep(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
) -> i64 {
    let is_plain = i64::from(call.number) == libc::SYS_nanosleep;
    let (clock, absolute, time, rest) = if is_plain {
        (libc::CLOCK_MONOTONIC, false, call.argument(0), call.argument(1))
    } else {
        let absolute = call.argument(1) & libc::TIMER_ABSTIME as u64 != 0;
        (call.argument(0) as i32, absolute, call.argument(2), call.argument(3))
    };
    let Some(time) = time_at(time) else { return -i64::from(libc::EFAULT) };
    let deadline = {
        let state = scheduler.lock();
        if absolute { state.clock.deadline(clock, time) } else { state.clock.after(time) }
    };
    let step = scheduler.step_of(probe, thread, call);
    if scheduler.block(probe, thread, Wait::Time, Some(deadline), step) != Woken::Interrupted {
        return 0;
    }
    if rest != 0 && !absolute {
        let left = deadline.saturating_sub(scheduler.lock().clock.now());
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(left / 1_000_000_000).to_le_bytes());
        bytes[8..].copy_from_slice(&(left % 1_000_000_000).to_le_bytes());
        process::write(rest, &bytes);
    }
    -i64::from(libc::EINTR)
}

/// Until a signal comes, from wherever.
fn pause(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
) -> i64 {
    let step = scheduler.step_of(probe, thread, call);
    // A timer's signal is ours to send, and another's may come at any time.
    let wait = || match scheduler.lock().timers.interrupt() {
        true => Wait::Time,
        false => Wait::Descriptors(Vec::new()),
    };
    while scheduler.block(probe, thread, wait(), None, step) != Woken::Interrupted {}
    -i64::from(libc::EINTR)
}

/// Fills memory with bytes that look random and are the same in every execution.
fn random(scheduler: &Scheduler, to: u64, length: u64) -> i64 {
    let length = length.min(1 << 20);
    let mut bytes = Vec::with_capacity(length as usize + 8);
    let mut state = scheduler.lock();
    while (bytes.len() as u64) < length {
        bytes.extend(state.random.draw().to_le_bytes());
    }
    bytes.truncate(length as usize);
    if process::write(to, &bytes) { length as i64 } else { -i64::from(libc::EFAULT) }
}

fn is_random(scheduler: &Scheduler, descriptor: u64) -> bool {
    scheduler.lock().random_descriptors.contains(&(descriptor as i32))
}

/// `sched_getaffinity`: returns the bytes written.
fn processors(size: u64, to: u64) -> i64 {
    let mask: u64 = (1u64 << PROCESSORS) - 1;
    if size < 8 || !size.is_multiple_of(8) {
        return -i64::from(libc::EINVAL);
    }
    if process::write(to, &mask.to_le_bytes()) { 8 } else { -i64::from(libc::EFAULT) }
}

fn first_processor(call: &SystemCall<'_>) -> i64 {
    let zero = |at: u64| at == 0 || process::write(at, &[0; 4]);
    if zero(call.argument(0)) && zero(call.argument(1)) { 0 } else { -i64::from(libc::EFAULT) }
}

/// Calls that can be made without blocking, again and again, until they succeed.
fn retry(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
) -> Option<i64> {
    let mut number = i64::from(call.number);
    let no_time = [0u64; 2];
    let mut about = [0u64; 16];
    let mut arguments: [u64; 6] = std::array::from_fn(|i| call.argument(i as u32));
    let mut deadline = None;
    // Which result means "not yet".
    let not_yet = match number {
        libc::SYS_wait4 => {
            arguments[2] |= libc::WNOHANG as u64;
            (call.argument(2) & libc::WNOHANG as u64 == 0).then_some(0)?
        }
        libc::SYS_flock => {
            arguments[1] |= libc::LOCK_NB as u64;
            (call.argument(1) & libc::LOCK_NB as u64 == 0).then_some(-libc::EAGAIN)?
        }
        libc::SYS_fcntl if arguments[1] == libc::F_SETLKW as u64 => {
            arguments[1] = libc::F_SETLK as u64;
            -libc::EAGAIN
        }
        libc::SYS_fcntl if arguments[1] == libc::F_OFD_SETLKW as u64 => {
            arguments[1] = libc::F_OFD_SETLK as u64;
            -libc::EAGAIN
        }
        libc::SYS_waitid => {
            let is_waiting = arguments[3] & libc::WNOHANG as u64 == 0;
            arguments[3] |= libc::WNOHANG as u64;
            // Who has ended is told there, and only there: zero is nobody.
            if arguments[2] == 0 {
                arguments[2] = about.as_mut_ptr() as u64;
            }
            is_waiting.then_some(0)?
        }
        libc::SYS_rt_sigtimedwait => {
            if arguments[2] != 0 {
                deadline = timers::deadline_of(scheduler, arguments[2]);
            }
            arguments[2] = no_time.as_ptr() as u64;
            -libc::EAGAIN
        }
        libc::SYS_semop | libc::SYS_semtimedop if waits_for_semaphores(arguments) => {
            if number == libc::SYS_semtimedop && arguments[3] != 0 {
                deadline = timers::deadline_of(scheduler, arguments[3]);
            }
            arguments[3] = no_time.as_ptr() as u64;
            number = libc::SYS_semtimedop;
            -libc::EAGAIN
        }
        libc::SYS_msgsnd => {
            let is_waiting = arguments[3] & libc::IPC_NOWAIT as u64 == 0;
            arguments[3] |= libc::IPC_NOWAIT as u64;
            is_waiting.then_some(-libc::EAGAIN)?
        }
        libc::SYS_msgrcv => {
            let is_waiting = arguments[4] & libc::IPC_NOWAIT as u64 == 0;
            arguments[4] |= libc::IPC_NOWAIT as u64;
            is_waiting.then_some(-libc::ENOMSG)?
        }
        _ => return None,
    };
    let step: Step = scheduler.step_of(probe, thread, call);
    let mut is_late = false;
    loop {
        let result = kernel::call(number, arguments);
        let nobody = || number != libc::SYS_waitid || target::half(arguments[2] + 16) == Some(0);
        if result != i64::from(not_yet) || !nobody() || is_late {
            return Some(result);
        }
        let wait = match number {
            libc::SYS_rt_sigtimedwait => Wait::Signal,
            _ => Wait::Retry,
        };
        match scheduler.block(probe, thread, wait, deadline, step) {
            Woken::Came(_) => {}
            Woken::Late => is_late = true,
            Woken::Interrupted => return Some(-i64::from(libc::EINTR)),
        }
    }
}

/// Does none of these operations say that it is not to wait?
fn waits_for_semaphores([_, operations, count, ..]: [u64; 6]) -> bool {
    // struct sembuf: number, operation, flags, of two bytes each.
    let flags = |i| target::word(operations + 6 * i).map_or(0, |word| word >> 32);
    (0..count.min(512)).all(|i| flags(i) & libc::IPC_NOWAIT as u64 == 0)
}

/// Calls that may block and that we cannot wait for in the kernel's stead. They are made without the
/// turn: others run meanwhile, and when it ends is not ours to say.
fn may_block_otherwise(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_rt_sigsuspend
            | libc::SYS_splice
            | libc::SYS_tee
            | libc::SYS_vmsplice
            | libc::SYS_sendfile
            | libc::SYS_io_getevents
            | SYS_IO_PGETEVENTS
            | libc::SYS_io_uring_enter
            | libc::SYS_mq_timedreceive
            | libc::SYS_mq_timedsend
            | libc::SYS_recvmmsg
            | libc::SYS_sendmmsg
            | libc::SYS_open
            | libc::SYS_openat
            | libc::SYS_openat2
            | libc::SYS_vfork
    )
}

/// Is this such a call, and would it block?
fn blocks_otherwise(call: &SystemCall<'_>) -> bool {
    let argument = |i| call.argument(i);
    let waits = |flags: u64, but: i32| {
        let flags_of = kernel::flags_of(argument(0) as i32);
        flags & but as u64 == 0 && flags_of & libc::O_NONBLOCK == 0
    };
    match i64::from(call.number) {
        // For every message that there is room for.
        libc::SYS_recvmmsg => waits(argument(3), libc::MSG_DONTWAIT | libc::MSG_WAITFORONE),
        libc::SYS_sendmmsg => waits(argument(3), libc::MSG_DONTWAIT),
        // Of a pipe with a name, for somebody at its other end.
        libc::SYS_open => opens_pipe(libc::AT_FDCWD as u64, argument(0), argument(1)),
        libc::SYS_openat => opens_pipe(argument(0), argument(1), argument(2)),
        libc::SYS_openat2 => {
            opens_pipe(argument(0), argument(1), target::word(argument(2)).unwrap_or(0))
        }
        number => may_block_otherwise(number),
    }
}

fn opens_pipe(directory: u64, path: u64, flags: u64) -> bool {
    let flags = flags as i32;
    let waits = flags & (libc::O_NONBLOCK | libc::O_PATH) == 0;
    waits && flags & libc::O_ACCMODE != libc::O_RDWR && kernel::is_pipe(directory, path)
}

fn go_outside(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
) {
    let mut state = scheduler.lock();
    if let Some(entry) = state.entry(thread.id) {
        if i64::from(call.number) == libc::SYS_rt_sigsuspend
            && let Some(mask) = target::word(call.argument(0))
        {
            entry.other_mask = Some(std::mem::replace(&mut entry.mask, mask));
        }
        entry.wait = Wait::Outside;
        entry.waits_outside = true;
        entry.returned = false;
    }
    drop(state);
    scheduler.leave(probe, thread);
}

fn come_back(scheduler: &Scheduler, probe: &Probe, thread: &mut ThreadState) {
    let mut state = scheduler.lock();
    let replays = state.inputs.is_replaying();
    if state.unowned {
        state.note_after_leaving(probe, thread);
    }
    let Some(entry) = state.entry(thread.id) else { return };
    if let Some(mask) = entry.other_mask.take() {
        entry.mask = mask;
    }
    if matches!(entry.wait, Wait::Outside) {
        let turn = entry.turn.clone();
        match replays {
            true => entry.returned = true,
            false => entry.wake(Woken::Came(0)),
        }
        if std::mem::take(&mut state.unowned) {
            let (state, next) = scheduler.choose(probe, thread, state);
            if next == thread.id {
                return;
            }
            scheduler.hand_to(state, next);
        } else {
            drop(state);
        }
        scheduler.await_turn(probe, thread, &turn);
    }
}

//! The futex call, answered by us: under every lock, condition and semaphore of every library there
//! is one, so this is all the blocking that synchronisation does.
//!
//! Addresses stand for themselves: within one process that is what the kernel's keys come to, but for shared memory,
//! which may be mapped twice: there the first of a word's addresses stands for it. A futex in memory shared with other
//! processes is theirs too: a wake is passed on to the kernel, and a wait looks again and again.

use super::signals;
use super::table::{Futex, Wait, Woken};
use super::{Scheduler, calls};
use crate::memory::kernel;
use crate::memory::maps::mappings;
use crate::memory::target;
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::{self, SystemCall};
use raddle_schedule::Step;
use raddle_wire::log::Record;

const WAITERS: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;
const OWNER: u32 = OWNER_DIED - 1;
const LOCK_PI2: i32 = 13;
/// Of `futex_waitv`, at most so many.
const MOST_FUTEXES: u64 = 128;

/// A futex call as a whole.
struct Call<'a> {
    scheduler: &'a Scheduler,
    probe: &'a Probe,
    thread: &'a mut ThreadState,
    step: Step,
    address: u64,
    value: u32,
    /// The fourth argument: a time or a count.
    fourth: u64,
    other: u64,
    last: u32,
}

/// Answers the call; `None` lets the kernel.
pub fn answer(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
    step: Step,
) -> Option<i64> {
    let operation = call.argument(1);
    let command = (operation & 0x7f) as i32;
    let is_private = operation & libc::FUTEX_PRIVATE_FLAG as u64 != 0;
    let clock = match operation & libc::FUTEX_CLOCK_REALTIME as u64 {
        0 => libc::CLOCK_MONOTONIC,
        _ => libc::CLOCK_REALTIME,
    };
    let mut futex = Call {
        scheduler,
        probe,
        thread,
        step,
        address: call.argument(0),
        value: call.argument(2) as u32,
        fourth: call.argument(3),
        other: call.argument(4),
        last: call.argument(5) as u32,
    };
    if !futex.address.is_multiple_of(4) {
        return Some(error(libc::EINVAL));
    }
    let shared = match is_private || futex.is_end_of_thread() {
        true => None,
        false => shared_key(futex.address),
    };
    Some(match command {
        libc::FUTEX_WAIT => match futex.time(None) {
            Ok(deadline) => futex.wait(u32::MAX, deadline, shared),
            Err(errno) => error(errno),
        },
        libc::FUTEX_WAIT_BITSET => match futex.time(Some(clock)) {
            _ if futex.last == 0 => error(libc::EINVAL),
            Ok(deadline) => futex.wait(futex.last, deadline, shared),
            Err(errno) => error(errno),
        },
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => {
            let bits = if command == libc::FUTEX_WAKE { u32::MAX } else { futex.last };
            let count = u64::from(futex.value.max(1));
            match shared {
                None => futex.wake(futex.address, count, bits),
                Some(key) => futex.wake_everywhere(key, count, bits, operation),
            }
        }
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE => {
            let compares = command == libc::FUTEX_CMP_REQUEUE;
            match target::half(futex.address) {
                None => error(libc::EFAULT),
                Some(now) if compares && now != futex.last => error(libc::EAGAIN),
                Some(_) => futex.requeue(),
            }
        }
        libc::FUTEX_WAKE_OP => futex.wake_op(),
        libc::FUTEX_LOCK_PI | LOCK_PI2 => {
            let clock = if command == LOCK_PI2 { clock } else { libc::CLOCK_REALTIME };
            match futex.time(Some(clock)) {
                Ok(deadline) => futex.lock_pi(deadline),
                Err(errno) => error(errno),
            }
        }
        libc::FUTEX_TRYLOCK_PI => futex.try_lock_pi().unwrap_or(error(libc::EAGAIN)),
        libc::FUTEX_UNLOCK_PI => futex.unlock_pi(),
        // Requeueing to a priority-inheriting lock, as a rule: no C library of today does, and all of them can
        // do without.
        _ => {
            let what = format!(
                "futex operation {command} is refused under a policy (ENOSYS): requeueing to a \
                 priority-inheriting lock is not supported there"
            );
            futex.thread.write(&Record::Refused { what });
            error(libc::ENOSYS)
        }
    })
}

/// `futex_waitv(waiters, count, flags, timeout, clock)`.
pub fn answer_many(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
    step: Step,
) -> Option<i64> {
    let (list, count) = (call.argument(0), call.argument(1));
    if count == 0 || count > MOST_FUTEXES {
        return Some(error(libc::EINVAL));
    }
    let deadline = match call.argument(3) {
        0 => None,
        time => match calls::time_at(time) {
            Some(time) => Some(scheduler.lock().clock.deadline(call.argument(4) as i32, time)),
            None => return Some(error(libc::EFAULT)),
        },
    };
    let mut addresses = Vec::new();
    for i in 0..count {
        // struct futex_waitv: value, address, flags, reserved.
        let (value, address) = (target::word(list + 24 * i), target::word(list + 24 * i + 8));
        let (Some(value), Some(address)) = (value, address) else {
            return Some(error(libc::EFAULT));
        };
        match target::half(address) {
            None => return Some(error(libc::EFAULT)),
            Some(now) if now != value as u32 => return Some(error(libc::EAGAIN)),
            Some(_) => addresses.push(Futex { address, bits: u32::MAX }),
        }
    }
    let arrival = scheduler.lock().table.arrival();
    let wait = Wait::Futex { addresses, arrival };
    Some(match scheduler.block(probe, thread, wait, deadline, step) {
        Woken::Came(index) => index as i64,
        Woken::Late => error(libc::ETIMEDOUT),
        Woken::Interrupted => error(libc::EINTR),
    })
}

impl Call<'_> {
    /// The deadline: relative without a clock, absolute with one; absent for ever.
    fn time(&self, clock: Option<i32>) -> Result<Option<u64>, i32> {
        if self.fourth == 0 {
            return Ok(None);
        }
        let time = calls::time_at(self.fourth).ok_or(libc::EFAULT)?;
        let state = self.scheduler.lock();
        Ok(Some(match clock {
            Some(clock) => state.clock.deadline(clock, time),
            None => state.clock.after(time),
        }))
    }

    /// Is this what the kernel clears when a thread of ours ends? Who joins one waits for it, not
    /// saying that it is private.
    fn is_end_of_thread(&self) -> bool {
        self.scheduler.lock().table.iter().any(|entry| entry.clear_id == self.address)
    }

    fn wait(&mut self, bits: u32, deadline: Option<u64>, shared: Option<u64>) -> i64 {
        match target::half(self.address) {
            None => return error(libc::EFAULT),
            Some(now) if now != self.value => return error(libc::EAGAIN),
            Some(_) => {}
        }
        if let Some(key) = shared {
            let result = self.wait_outside(Futex { address: key, bits }, deadline);
            if let Some(entry) = self.scheduler.lock().entry(self.thread.id) {
                entry.shared = None;
            }
            return result;
        }
        let futex = Futex { address: self.address, bits };
        let woken = self.block_on(futex, deadline);
        match woken {
            Woken::Came(_) => 0,
            Woken::Late => error(libc::ETIMEDOUT),
            // The kernel would make the call again after the handler. Waking for nothing is allowed
            // at any time, and comes to the same.
            Woken::Interrupted if signals::restarts(self.scheduler, self.thread) => 0,
            Woken::Interrupted => error(libc::EINTR),
        }
    }

    fn block_on(&mut self, futex: Futex, deadline: Option<u64>) -> Woken {
        let arrival = self.scheduler.lock().table.arrival();
        let wait = Wait::Futex { addresses: vec![futex], arrival };
        if deadline.is_none() {
            self.scheduler.check_cycle(self.probe, self.thread);
        }
        self.scheduler.block(self.probe, self.thread, wait, deadline, self.step)
    }

    /// Somebody of another process may change the word and wake us, or a thread of this one wakes us.
    fn wait_outside(&mut self, futex: Futex, deadline: Option<u64>) -> i64 {
        let mut state = self.scheduler.lock();
        let arrival = state.table.arrival();
        if let Some(entry) = state.entry(self.thread.id) {
            entry.shared = Some((futex, arrival));
        }
        drop(state);
        let is_woken = |scheduler: &Scheduler, thread: &ThreadState| {
            scheduler.lock().entry(thread.id).is_some_and(|entry| entry.shared.is_none())
        };
        loop {
            match self.scheduler.block(self.probe, self.thread, Wait::Retry, deadline, self.step) {
                Woken::Late => return error(libc::ETIMEDOUT),
                Woken::Interrupted => return error(libc::EINTR),
                Woken::Came(_) if is_woken(self.scheduler, self.thread) => return 0,
                Woken::Came(_) if target::half(self.address) != Some(self.value) => return 0,
                Woken::Came(_) => {}
            }
        }
    }

    fn wake(&self, address: u64, count: u64, bits: u32) -> i64 {
        let mut state = self.scheduler.lock();
        let woken = state.table.wake_futex(address, count, bits);
        if woken > 0 {
            state.news();
        }
        woken as i64
    }

    /// Those of this process first, and then those of others, whom the kernel knows.
    fn wake_everywhere(&self, key: u64, count: u64, bits: u32, operation: u64) -> i64 {
        let mut state = self.scheduler.lock();
        let woken = state.table.wake_shared(key, count, bits);
        if woken > 0 {
            state.news();
        }
        drop(state);
        if woken == count {
            return woken as i64;
        }
        let rest = [self.address, operation, count - woken, 0, 0, u64::from(self.last)];
        let others = kernel::call(libc::SYS_futex, rest);
        if others < 0 && woken == 0 { others } else { woken as i64 + others.max(0) }
    }

    /// The kernel counts both, whether it was asked to compare or not.
    fn requeue(&self) -> i64 {
        let mut state = self.scheduler.lock();
        let woken = state.table.wake_futex(self.address, u64::from(self.value), u32::MAX);
        let moved = state.table.requeue(self.address, self.other, u64::from(self.fourth as u32));
        if woken + moved > 0 {
            state.news();
        }
        (woken + moved) as i64
    }

    /// futex(2), FUTEX_WAKE_OP: changes the other word, wakes here, and there if the old value
    /// compares.
    fn wake_op(&self) -> i64 {
        let code = self.last;
        let signed = |from: u32| ((from & 0xfff) << 20) as i32 >> 20;
        let (mut operand, compared) = (signed(code >> 12), signed(code));
        let operation = code >> 28;
        if operation & 8 != 0 {
            operand = 1i32.wrapping_shl(operand as u32);
        }
        let Some(old) = target::half(self.other).map(|word| word as i32) else {
            return error(libc::EFAULT);
        };
        let new = match operation & 7 {
            0 => operand,
            1 => old.wrapping_add(operand),
            2 => old | operand,
            3 => old & !operand,
            4 => old ^ operand,
            _ => return error(libc::ENOSYS),
        };
        if !process::write(self.other, &new.to_le_bytes()) {
            return error(libc::EFAULT);
        }
        let holds = match code >> 24 & 15 {
            0 => old == compared,
            1 => old != compared,
            2 => old < compared,
            3 => old <= compared,
            4 => old > compared,
            5 => old >= compared,
            _ => return error(libc::ENOSYS),
        };
        let woken = self.wake(self.address, u64::from(self.value), u32::MAX);
        let there = u64::from(self.fourth as u32);
        woken + if holds { self.wake(self.other, there, u32::MAX) } else { 0 }
    }

    /// The number that stands in a lock of the current thread's.
    fn own_id(&self) -> u32 {
        self.scheduler.ids.shown(self.thread.id)
    }

    /// Takes a priority-inheriting lock if nobody has it. Priorities are a policy's business.
    fn try_lock_pi(&self) -> Option<i64> {
        let word = match target::half(self.address) {
            None => return Some(error(libc::EFAULT)),
            Some(word) => word,
        };
        let me = self.own_id();
        if word & OWNER == me {
            return Some(error(libc::EDEADLK));
        }
        if word & OWNER != 0 {
            return None;
        }
        let taken = word & (WAITERS | OWNER_DIED) | me;
        let written = process::write(self.address, &taken.to_le_bytes());
        Some(if written { 0 } else { error(libc::EFAULT) })
    }

    fn lock_pi(&mut self, deadline: Option<u64>) -> i64 {
        if let Some(done) = self.try_lock_pi() {
            return done;
        }
        let word = target::half(self.address).unwrap_or(0) | WAITERS;
        if !process::write(self.address, &word.to_le_bytes()) {
            return error(libc::EFAULT);
        }
        let futex = Futex { address: self.address, bits: u32::MAX };
        match self.block_on(futex, deadline) {
            // Who unlocked has made it ours.
            Woken::Came(_) => 0,
            Woken::Late => error(libc::ETIMEDOUT),
            Woken::Interrupted => error(libc::EINTR),
        }
    }

    fn unlock_pi(&self) -> i64 {
        let Some(word) = target::half(self.address) else { return error(libc::EFAULT) };
        if word & OWNER != self.own_id() {
            return error(libc::EPERM);
        }
        let mut state = self.scheduler.lock();
        let heir = state.table.first_on(self.address, u32::MAX).map(|(id, _)| id);
        let owner = heir.map_or(0, |id| self.scheduler.ids.shown(id));
        if state.table.wake_futex(self.address, 1, u32::MAX) > 0 {
            state.news();
        }
        let waiters = state.table.first_on(self.address, u32::MAX).map_or(0, |_| WAITERS);
        let written = process::write(self.address, &(owner | waiters).to_le_bytes());
        if written { 0 } else { error(libc::EFAULT) }
    }
}

fn error(errno: i32) -> i64 {
    -i64::from(errno)
}

/// What stands for a word in memory that another process, or this one, may map as well; `None` if it is not.
fn shared_key(address: u64) -> Option<u64> {
    let mappings = mappings();
    let mut shared = mappings.iter().filter(|mapping| mapping.is_shared());
    let its = shared.clone().find(|mapping| mapping.bytes.contains(&address))?;
    shared.find_map(|mapping| mapping.alias(its, address))
}

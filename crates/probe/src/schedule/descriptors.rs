//! Waiting for descriptors: a call that would block is made when it will not.
//!
//! Readiness is asked again after every wake, because two may wait for one byte. What is longer than what a pipe or
//! a socket takes at once is written in pieces, and what is to be read whole is read as it comes: the kernel would wait
//! for the rest, and nobody could send or take it meanwhile.

use super::table::{Wait, Woken};
use super::{Scheduler, streams};
use crate::memory::kernel::{self, Descriptor};
use crate::memory::{sockets, target};
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::{self, SystemCall};
use raddle_schedule::Step;
use std::cell::Cell;

/// What a pipe or socket that is ready for writing takes without blocking: a page.
pub const PIECE: u64 = 4096;

/// Waits as the call would, and answers it where waiting is all of it. `None`: the call can be made
/// now.
pub fn answer(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &mut SystemCall<'_>,
) -> Option<i64> {
    let number = i64::from(call.number);
    if matches!(number, libc::SYS_openat | libc::SYS_open | libc::SYS_openat2) {
        let path = call.argument(u32::from(number != libc::SYS_open));
        thread.system_call_path = Some(target::string(path, 64));
        return None;
    }
    if let Some(set) = Multiplexed::of(call) {
        return Some(multiplex(scheduler, probe, thread, call, set));
    }
    if !scheduler.waits_here(thread) {
        return None;
    }
    let (events, flags) = match number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_accept | libc::SYS_accept4 => {
            (libc::POLLIN, 0)
        }
        libc::SYS_recvfrom => (libc::POLLIN, call.argument(3)),
        libc::SYS_recvmsg => (libc::POLLIN, call.argument(2)),
        libc::SYS_recvmmsg => (libc::POLLIN, call.argument(3)),
        libc::SYS_write | libc::SYS_writev => (libc::POLLOUT, 0),
        libc::SYS_sendto => (libc::POLLOUT, call.argument(3)),
        libc::SYS_sendmsg => (libc::POLLOUT, call.argument(2)),
        libc::SYS_sendmmsg => (libc::POLLOUT, call.argument(3)),
        libc::SYS_connect => (libc::POLLOUT, 0),
        _ => return None,
    };
    let descriptor = call.argument(0) as i32;
    let step = scheduler.step_of(probe, thread, call);
    let mut waiting = Waiting { scheduler, probe, thread, step, descriptor, events };
    let arguments: [u64; 6] = std::array::from_fn(|i| call.argument(i as u32));
    if flags & libc::MSG_DONTWAIT as u64 != 0
        || kernel::flags_of(descriptor) & libc::O_NONBLOCK != 0
    {
        return waiting.write_what_has_room(&Parts::written(number, arguments)?);
    }
    if number == libc::SYS_connect {
        return Some(waiting.connect(call.argument(1), call.argument(2)));
    }
    if let Some(parts) = Parts::written(number, arguments)
        && takes_pieces(descriptor, number)
        && parts.length() > PIECE
    {
        return Some(waiting.write(&parts));
    }
    if let Some(parts) = Parts::read_whole(number, arguments) {
        return Some(waiting.read(&parts));
    }
    (!waiting.until_ready()).then_some(-i64::from(libc::EINTR))
}

/// May what is written there be written in pieces? Not a message, which is one.
fn takes_pieces(descriptor: i32, number: i64) -> bool {
    let kind = kernel::mode_of(descriptor).map(|mode| mode & libc::S_IFMT);
    match kind {
        Some(libc::S_IFIFO) => true,
        Some(libc::S_IFSOCK) if matches!(number, libc::SYS_write | libc::SYS_writev) => true,
        Some(libc::S_IFSOCK) => {
            let kind = sockets::option(descriptor, (libc::SOL_SOCKET, libc::SO_TYPE));
            kind == Ok(libc::SOCK_STREAM)
        }
        _ => false,
    }
}

/// What a call writes or reads, piece by piece.
struct Parts {
    memory: Vec<(u64, u64)>,
    /// Of a call that sends or receives.
    flags: Option<u64>,
    /// The message, if it has more than its bytes (descriptors, say), which go with the first of them.
    message: Option<u64>,
}

impl Parts {
    /// Of a call that writes.
    fn written(number: i64, [_, first, second, third, ..]: [u64; 6]) -> Option<Parts> {
        let plain = |memory| Parts { memory, flags: None, message: None };
        Some(match number {
            libc::SYS_write => plain(vec![(first, second)]),
            libc::SYS_writev => plain(vectors(first, second)),
            libc::SYS_sendto => Parts { flags: Some(third), ..plain(vec![(first, second)]) },
            libc::SYS_sendmsg => Parts::message(first, second)?,
            _ => return None,
        })
    }

    /// Of a call that reads until there is no room left.
    fn read_whole(number: i64, [_, first, second, third, ..]: [u64; 6]) -> Option<Parts> {
        let is_whole = |flags: u64| {
            let (whole, but) = (libc::MSG_WAITALL as u64, libc::MSG_PEEK as u64);
            flags & whole != 0 && flags & but == 0
        };
        match number {
            libc::SYS_recvfrom if is_whole(third) => {
                Some(Parts { memory: vec![(first, second)], flags: Some(third), message: None })
            }
            libc::SYS_recvmsg if is_whole(second) => {
                Some(Parts { message: Some(first), ..Parts::message(first, second)? })
            }
            _ => None,
        }
    }

    /// struct msghdr: name and its length, vector and its length, what else and its length, flags.
    fn message(at: u64, flags: u64) -> Option<Parts> {
        let field = |i: u64| target::word(at + 8 * i);
        let memory = vectors(field(2)?, field(3)?);
        let message = (field(5)? != 0).then_some(at);
        Some(Parts { memory, flags: Some(flags), message })
    }

    fn length(&self) -> u64 {
        self.memory.iter().map(|part| part.1).sum()
    }

    /// What is left after so many bytes, at most so much of it in one go.
    fn after(&self, mut done: u64, most: u64) -> Option<(u64, u64)> {
        for &(start, length) in &self.memory {
            if done < length {
                return Some((start + done, (length - done).min(most)));
            }
            done -= length;
        }
        None
    }
}

/// The stretches of memory that an array of `iovec` names.
pub fn vectors(address: u64, count: u64) -> Vec<(u64, u64)> {
    let one = |i| Some((target::word(address + 16 * i)?, target::word(address + 16 * i + 8)?));
    (0..count.min(1024)).map_while(one).collect()
}

struct Waiting<'a> {
    scheduler: &'a Scheduler,
    probe: &'a Probe,
    thread: &'a mut ThreadState,
    step: Step,
    descriptor: i32,
    events: i16,
}

impl Waiting<'_> {
    /// False when a signal came instead.
    fn until_ready(&mut self) -> bool {
        let wanted = Descriptor { fd: self.descriptor, events: self.events, revents: 0 };
        let reader = match self.events == libc::POLLOUT {
            true => streams::reader(self.scheduler, self.descriptor),
            false => None,
        };
        loop {
            let wait = match reader {
                Some(reader) if !streams::has_room(reader) => Wait::Room { reader, until: None },
                // The kernel may still have to acknowledge what was read: that takes its time, but nobody's turn.
                Some(_) if kernel::poll(&mut [wanted], streams::DELIVERY) == Some(true) => {
                    return true;
                }
                None if kernel::poll(&mut [wanted], 0) != Some(false) => return true,
                _ => Wait::Descriptors(vec![wanted]),
            };
            if self.scheduler.block(self.probe, self.thread, wait, None, self.step)
                == Woken::Interrupted
            {
                return false;
            }
        }
    }

    /// A blocking `connect`: begun without blocking, and then waited for.
    fn connect(&mut self, address: u64, length: u64) -> i64 {
        let interrupted = -i64::from(libc::EINTR);
        loop {
            let begun = self.begin_to_connect(address, length);
            if begun == -i64::from(libc::EAGAIN) {
                // Whom it calls has no room for another at the moment, and cannot be polled for that.
                let (scheduler, probe, step) = (self.scheduler, self.probe, self.step);
                match scheduler.block(probe, self.thread, Wait::Retry, None, step) {
                    Woken::Interrupted => return interrupted,
                    Woken::Came(_) | Woken::Late => continue,
                }
            }
            if begun != -i64::from(libc::EINPROGRESS) {
                return begun;
            }
            return if self.until_ready() { self.outcome() } else { interrupted };
        }
    }

    fn begin_to_connect(&self, address: u64, length: u64) -> i64 {
        let descriptor = self.descriptor as u64;
        let set = |flags: i32| {
            let flags = flags as u64;
            kernel::call(libc::SYS_fcntl, [descriptor, libc::F_SETFL as u64, flags, 0, 0, 0])
        };
        let flags = kernel::flags_of(self.descriptor);
        set(flags | libc::O_NONBLOCK);
        let begun = kernel::call(libc::SYS_connect, [descriptor, address, length, 0, 0, 0]);
        set(flags);
        begun
    }

    /// What has become of the connection.
    fn outcome(&self) -> i64 {
        match sockets::option(self.descriptor, (libc::SOL_SOCKET, libc::SO_ERROR)) {
            Ok(error) => -i64::from(error),
            Err(failed) => failed,
        }
    }

    /// A blocking write of all of it.
    fn write(&mut self, parts: &Parts) -> i64 {
        let descriptor = self.descriptor as u64;
        let now = |flags: u64| flags | libc::MSG_DONTWAIT as u64;
        self.all(
            parts,
            PIECE,
            || false,
            |first, (start, size)| match (parts.flags, parts.message) {
                (None, _) => kernel::call(libc::SYS_write, [descriptor, start, size, 0, 0, 0]),
                (Some(flags), Some(message)) if first => {
                    kernel::call(libc::SYS_sendmsg, [descriptor, message, now(flags), 0, 0, 0])
                }
                (Some(flags), _) => {
                    kernel::call(libc::SYS_sendto, [descriptor, start, size, now(flags), 0, 0])
                }
            },
        )
    }

    /// A write that does not wait, to another thread over TCP: as much of it as there is room for. Where there is
    /// none, whoever reads is let go first, as if the writer had been late. `None` where that does not help, or this is
    /// no such write: then it is the kernel's to say what it takes.
    fn write_what_has_room(&mut self, parts: &Parts) -> Option<i64> {
        let reader = streams::reader(self.scheduler, self.descriptor)?;
        if parts.message.is_some() || parts.length() == 0 {
            return None;
        }
        if !streams::has_room(reader) {
            let until = Some(self.scheduler.lock().points + streams::LATE);
            let wait = Wait::Room { reader, until };
            self.scheduler.block(self.probe, self.thread, wait, None, self.step);
        }
        let (room, unread) = streams::room(reader)?;
        let (start, size) = parts.after(0, room)?;
        let wanted = Descriptor { fd: self.descriptor, events: libc::POLLOUT, revents: 0 };
        kernel::poll(&mut [wanted], streams::DELIVERY);
        let descriptor = self.descriptor as u64;
        let result = match parts.flags {
            None => kernel::call(libc::SYS_write, [descriptor, start, size, 0, 0, 0]),
            Some(flags) => kernel::call(libc::SYS_sendto, [descriptor, start, size, flags, 0, 0]),
        };
        if result > 0 {
            streams::sent(self.scheduler, self.descriptor);
            streams::await_arrival(reader, unread + result as u64);
        }
        Some(result)
    }

    /// A blocking read until all of it is there, or nothing more comes.
    fn read(&mut self, parts: &Parts) -> i64 {
        let descriptor = self.descriptor as u64;
        let flags = parts.flags.unwrap_or(0) & !(libc::MSG_WAITALL as u64);
        let now = flags | libc::MSG_DONTWAIT as u64;
        let is_over = Cell::new(false);
        self.all(
            parts,
            u64::MAX,
            || is_over.get(),
            |first, (start, size)| match parts.message {
                Some(message) if first => {
                    let result =
                        kernel::call(libc::SYS_recvmsg, [descriptor, message, now, 0, 0, 0]);
                    // What comes with descriptors is a whole by itself.
                    is_over.set(target::word(message + 40) != Some(0));
                    result
                }
                _ if is_over.get() => 0,
                _ => kernel::call(libc::SYS_recvfrom, [descriptor, start, size, now, 0, 0]),
            },
        )
    }

    /// Makes a call for one part after the other, whenever it would not wait or there is nothing more to wait for;
    /// it is told which is the first of them.
    fn all(
        &mut self,
        parts: &Parts,
        most: u64,
        is_over: impl Fn() -> bool,
        make: impl Fn(bool, (u64, u64)) -> i64,
    ) -> i64 {
        let mut done = 0;
        while let Some(part) = parts.after(done, most) {
            let result = match is_over() || self.until_ready() {
                true => make(done == 0, part),
                false => -i64::from(libc::EINTR),
            };
            match result {
                n if n > 0 => {
                    if self.events == libc::POLLOUT {
                        streams::sent(self.scheduler, self.descriptor);
                    }
                    done += n as u64;
                }
                // Ready, but not for this: it is tried again.
                error if error == -i64::from(libc::EAGAIN) => {
                    let (scheduler, probe, step) = (self.scheduler, self.probe, self.step);
                    let woken = scheduler.block(probe, self.thread, Wait::Retry, None, step);
                    if woken == Woken::Interrupted {
                        return if done > 0 { done as i64 } else { -i64::from(libc::EINTR) };
                    }
                }
                end => return if done > 0 { done as i64 } else { end },
            }
        }
        done as i64
    }
}

/// A call that waits for several descriptors.
struct Multiplexed {
    /// What is waited for.
    list: Vec<Descriptor>,
    /// Nanoseconds; absent for ever.
    time: Option<u64>,
    /// The arguments of the same call without waiting; `zero` is where a zero time stands.
    arguments: [u64; 6],
    zero: Option<usize>,
}

impl Multiplexed {
    fn of(call: &SystemCall<'_>) -> Option<Multiplexed> {
        let mut arguments: [u64; 6] = std::array::from_fn(|i| call.argument(i as u32));
        let milliseconds = |n: u64| u64::try_from(n as i32).ok().map(|n| n * 1_000_000);
        let timespec = |at: u64| if at == 0 { None } else { super::calls::time_at(at) };
        let number = i64::from(call.number);
        let (list, time, zero) = match number {
            libc::SYS_poll => {
                let time = milliseconds(arguments[2]);
                arguments[2] = 0;
                (polled(arguments[0], arguments[1]), time, None)
            }
            libc::SYS_ppoll => {
                (polled(arguments[0], arguments[1]), timespec(arguments[2]), Some(2))
            }
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait => {
                let time = milliseconds(arguments[3]);
                arguments[3] = 0;
                (vec![readable(arguments[0])], time, None)
            }
            libc::SYS_epoll_pwait2 => {
                (vec![readable(arguments[0])], timespec(arguments[3]), Some(3))
            }
            libc::SYS_select => {
                let time = match arguments[4] {
                    0 => None,
                    // struct timeval: seconds and microseconds.
                    at => {
                        let (s, us) = (target::word(at)?, target::word(at + 8)?);
                        Some(s.saturating_mul(1_000_000_000).saturating_add(us * 1_000))
                    }
                };
                (selected(&arguments), time, Some(4))
            }
            libc::SYS_pselect6 => (selected(&arguments), timespec(arguments[4]), Some(4)),
            _ => return None,
        };
        Some(Multiplexed { list, time, arguments, zero })
    }
}

fn readable(descriptor: u64) -> Descriptor {
    Descriptor { fd: descriptor as i32, events: libc::POLLIN, revents: 0 }
}

/// An array of `pollfd`.
fn polled(address: u64, count: u64) -> Vec<Descriptor> {
    let one = |i| {
        let word = target::word(address + 8 * i)?;
        Some(Descriptor { fd: word as i32, events: (word >> 32) as i16, revents: 0 })
    };
    (0..count.min(65_536)).map_while(one).collect()
}

/// The sets of `select`: to read, to write, exceptions.
fn selected(arguments: &[u64; 6]) -> Vec<Descriptor> {
    let kinds = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
    let mut list = Vec::new();
    for (set, events) in arguments[1..4].iter().zip(kinds).filter(|(set, _)| **set != 0) {
        for fd in 0..arguments[0].min(65_536) {
            let word = target::word(set + fd / 64 * 8).unwrap_or(0);
            if word >> (fd % 64) & 1 != 0 {
                list.push(Descriptor { fd: fd as i32, events, revents: 0 });
            }
        }
    }
    list
}

fn multiplex(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
    mut set: Multiplexed,
) -> i64 {
    let step = scheduler.step_of(probe, thread, call);
    let deadline = set.time.map(|time| scheduler.lock().clock.after(time));
    let zero = [0u64; 2];
    if let Some(index) = set.zero {
        set.arguments[index] = zero.as_ptr() as u64;
    }
    // The sets of `select` are overwritten by each try.
    let sets: Vec<(u64, Vec<u8>)> = match i64::from(call.number) {
        libc::SYS_select | libc::SYS_pselect6 => {
            let size = set.arguments[0].min(65_536).div_ceil(64) as usize * 8;
            let given = set.arguments[1..4].iter().filter(|at| **at != 0);
            let copy = |at: &u64| {
                let mut bytes = vec![0; size];
                process::read(*at, &mut bytes);
                (*at, bytes)
            };
            given.map(copy).collect()
        }
        _ => Vec::new(),
    };
    let mut woken = Woken::Came(0);
    loop {
        let result = kernel::call(i64::from(call.number), set.arguments);
        if result != 0 || set.time == Some(0) || woken == Woken::Late {
            return result;
        }
        if woken == Woken::Interrupted {
            return -i64::from(libc::EINTR);
        }
        for (at, bytes) in &sets {
            process::write(*at, bytes);
        }
        // An epoll descriptor is ready when something in it is; with nothing to wait for but time,
        // that is all there is.
        let wait = match set.list.as_slice() {
            [] if deadline.is_some() => Wait::Time,
            _ => Wait::Descriptors(set.list.clone()),
        };
        woken = scheduler.block(probe, thread, wait, deadline, step);
    }
}

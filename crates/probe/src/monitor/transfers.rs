//! System calls by which one thread hands over to another through the kernel: what writes, signals
//! or posts releases before the call, what reads, waits or is told of it acquires after.
//!
//! Which channel a descriptor stands for is the business of [`super::channels`].

use super::system_calls::is_error;
use crate::memory::target;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_model::{EventKind, SyncObject};

/// As many elements of an array are looked at as any sensible program passes.
const ELEMENTS: u64 = 4096;

/// Between `connect` and `accept` there is no channel yet.
const CONNECTIONS: &str = "connections";

/// Does this call hand anything over?
pub fn is_one(number: i64) -> bool {
    is_sending(number)
        || is_receiving(number)
        || is_about_descriptors(number)
        || changed_path(number).is_some()
        || looked_up_path(number).is_some()
}

fn is_sending(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_shutdown
            | libc::SYS_mq_timedsend
            | libc::SYS_connect
            | libc::SYS_close
            | libc::SYS_kill
            | libc::SYS_tkill
            | libc::SYS_tgkill
            | libc::SYS_rt_sigqueueinfo
            | libc::SYS_rt_tgsigqueueinfo
            | libc::SYS_alarm
            | libc::SYS_setitimer
            | libc::SYS_timerfd_settime
            | libc::SYS_msgsnd
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_sendfile
            | libc::SYS_splice
            | libc::SYS_tee
            | libc::SYS_copy_file_range
    )
}

fn is_receiving(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_read
            | libc::SYS_pread64
            | libc::SYS_readv
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg
            | libc::SYS_mq_timedreceive
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_msgrcv
    )
}

fn is_about_descriptors(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_socketpair
            | libc::SYS_dup
            | libc::SYS_dup2
            | libc::SYS_dup3
            | libc::SYS_fcntl
            | libc::SYS_close_range
            | libc::SYS_epoll_ctl
    )
}

/// Calls that change what a path stands for, and which argument the path is.
fn changed_path(number: i64) -> Option<usize> {
    Some(match number {
        libc::SYS_unlink
        | libc::SYS_rmdir
        | libc::SYS_mkdir
        | libc::SYS_creat
        | libc::SYS_rename
        | libc::SYS_truncate => 0,
        libc::SYS_unlinkat | libc::SYS_mkdirat | libc::SYS_link | libc::SYS_symlink => 1,
        libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => 3,
        libc::SYS_symlinkat => 2,
        _ => return None,
    })
}

/// Calls that find out what a path stands for, and which argument the path is.
fn looked_up_path(number: i64) -> Option<usize> {
    Some(match number {
        libc::SYS_open | libc::SYS_stat | libc::SYS_lstat | libc::SYS_access => 0,
        libc::SYS_openat
        | libc::SYS_openat2
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_faccessat
        | libc::SYS_faccessat2 => 1,
        _ => return None,
    })
}

/// The channel of a path: who looks comes after who changed it, by whatever name both used.
fn path_channel(probe: &Probe, path: u64) -> SyncObject {
    let name = format!("path {}", target::string(path, 4096));
    SyncObject::Channel(probe.monitor.channels.named(&name))
}

/// The call is about to be made.
pub fn before(
    probe: &Probe,
    thread: &mut ThreadState,
    number: i64,
    arguments: [u64; 6],
    spot: Spot,
) {
    let channels = &probe.monitor.channels;
    let known = &mut thread.channels;
    let mut channel = |descriptor: u64| SyncObject::Channel(channels.of(known, descriptor as i32));
    let object = match number {
        libc::SYS_kill | libc::SYS_tkill | libc::SYS_rt_sigqueueinfo if arguments[1] != 0 => {
            SyncObject::Signal(arguments[1] as u32)
        }
        libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo if arguments[2] != 0 => {
            SyncObject::Signal(arguments[2] as u32)
        }
        libc::SYS_alarm => SyncObject::Signal(libc::SIGALRM as u32),
        libc::SYS_setitimer => SyncObject::Signal(match arguments[0] as i32 {
            libc::ITIMER_VIRTUAL => libc::SIGVTALRM,
            libc::ITIMER_PROF => libc::SIGPROF,
            _ => libc::SIGALRM,
        } as u32),
        libc::SYS_connect => SyncObject::Channel(channels.named(CONNECTIONS)),
        libc::SYS_msgsnd => SyncObject::Channel(channels.named(&queue("message", arguments[0]))),
        libc::SYS_semop | libc::SYS_semtimedop => {
            if !operations(arguments).any(|change| change > 0) {
                return;
            }
            SyncObject::Channel(channels.named(&queue("semaphore", arguments[0])))
        }
        libc::SYS_splice | libc::SYS_copy_file_range => channel(arguments[2]),
        libc::SYS_tee => channel(arguments[1]),
        libc::SYS_close => {
            // The reader of a pipe is told of its end.
            let released = channel(arguments[0]);
            channels.closed(arguments[0] as i32, arguments[0] as i32);
            released
        }
        libc::SYS_close_range => {
            let last = i32::try_from(arguments[1] as u32).unwrap_or(i32::MAX);
            channels.closed(arguments[0] as i32, last);
            return;
        }
        libc::SYS_epoll_ctl => {
            if arguments[1] as i32 != libc::EPOLL_CTL_DEL {
                // struct epoll_event, packed: 4 bytes of events, 8 of data.
                let data = target::word(arguments[3] + 4).unwrap_or(0);
                channels.watched(arguments[0] as i32, data, arguments[2] as i32);
            }
            channel(arguments[0])
        }
        _ if changed_path(number).is_some() => {
            path_channel(probe, arguments[changed_path(number).unwrap_or(0)])
        }
        _ if is_sending(number) => channel(arguments[0]),
        _ => return,
    };
    thread.emit(probe, spot, EventKind::Release { object });
}

/// The call has returned.
pub fn after(
    probe: &Probe,
    thread: &mut ThreadState,
    number: i64,
    arguments: [u64; 6],
    result: i64,
    spot: impl Fn(&mut ThreadState) -> Spot,
) {
    if let Some(path) = looked_up_path(number) {
        // Also when it was found to stand for nothing.
        let path = arguments[path];
        if probe.monitor.channels.is_named(&format!("path {}", target::string(path, 4096))) {
            let object = path_channel(probe, path);
            let spot = spot(thread);
            thread.emit(probe, spot, EventKind::Acquire { object });
        }
        return;
    }
    if is_error(result) {
        return;
    }
    let channels = &probe.monitor.channels;
    let descriptor = arguments[0] as i32;
    let acquire = |thread: &mut ThreadState, object| {
        let spot = spot(thread);
        thread.emit(probe, spot, EventKind::Acquire { object });
    };
    let acquire_from = |thread: &mut ThreadState, descriptor: i32| {
        let channel = channels.of(&mut thread.channels, descriptor);
        acquire(thread, SyncObject::Channel(channel));
    };
    match number {
        libc::SYS_socketpair => {
            let end = |i: u64| target::half(arguments[3] + 4 * i).map_or(-1, |fd| fd as i32);
            channels.pair([end(0), end(1)]);
        }
        libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => {
            channels.copied(descriptor, result as i32);
        }
        libc::SYS_fcntl if matches!(arguments[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
            channels.copied(descriptor, result as i32);
        }
        libc::SYS_accept | libc::SYS_accept4 => {
            acquire(thread, SyncObject::Channel(channels.named(CONNECTIONS)));
        }
        libc::SYS_rt_sigtimedwait => acquire(thread, SyncObject::Signal(result as u32)),
        libc::SYS_msgrcv => {
            acquire(thread, SyncObject::Channel(channels.named(&queue("message", arguments[0]))));
        }
        libc::SYS_semop | libc::SYS_semtimedop
            if operations(arguments).any(|change| change <= 0) =>
        {
            acquire(thread, SyncObject::Channel(channels.named(&queue("semaphore", arguments[0]))));
        }
        libc::SYS_poll | libc::SYS_ppoll if result > 0 => {
            // struct pollfd: descriptor, events asked for, events found.
            for i in 0..arguments[1].min(ELEMENTS) {
                let Some(row) = target::word(arguments[0] + 8 * i) else { break };
                let found = (row >> 48) as i16;
                if found & !(libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND) != 0 {
                    acquire_from(thread, row as i32);
                }
            }
        }
        libc::SYS_select | libc::SYS_pselect6 if result > 0 && arguments[1] != 0 => {
            let count = arguments[0].min(ELEMENTS);
            for word in 0..count.div_ceil(64) {
                let bits = target::word(arguments[1] + 8 * word).unwrap_or(0);
                let ready = (0..64).filter(|bit| bits >> bit & 1 != 0);
                ready.for_each(|bit| acquire_from(thread, (64 * word + bit) as i32));
            }
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            acquire_from(thread, descriptor);
            for i in 0..(result as u64).min(ELEMENTS) {
                let row = arguments[1] + 12 * i;
                let (Some(found), Some(data)) = (target::half(row), target::word(row + 4)) else {
                    break;
                };
                if found & !(libc::EPOLLOUT as u32) != 0
                    && let Some(ready) = channels.watched_as(descriptor, data)
                {
                    acquire_from(thread, ready);
                }
            }
        }
        libc::SYS_sendfile => acquire_from(thread, arguments[1] as i32),
        libc::SYS_splice | libc::SYS_tee | libc::SYS_copy_file_range => {
            acquire_from(thread, descriptor)
        }
        // At the end of a pipe, too: whoever closed it comes before.
        _ if is_receiving(number)
            && !matches!(
                number,
                libc::SYS_poll | libc::SYS_ppoll | libc::SYS_select | libc::SYS_pselect6
            ) =>
        {
            acquire_from(thread, descriptor);
        }
        _ => {}
    }
}

fn queue(kind: &str, id: u64) -> String {
    format!("{kind} queue {}", id as i32)
}

/// By how much each operation of a `semop` changes its semaphore. `struct sembuf` is three 16-bit
/// numbers, the second of which that is.
fn operations(arguments: [u64; 6]) -> impl Iterator<Item = i16> {
    let count = arguments[2].min(ELEMENTS);
    (0..count).filter_map(move |i| target::half(arguments[1] + 6 * i).map(|row| (row >> 16) as i16))
}

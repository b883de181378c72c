//! TCP between threads of one process: what is sent has arrived when the call returns.
//!
//! The kernel hands segments over within the sending call, but for two rules of TCP that go by real time: small
//! segments wait until earlier ones are acknowledged (Nagle's rule), and acknowledgements wait for company. Where both
//! ends are here, neither saves anybody anything, and each makes the order of arrivals, and with it what `epoll_wait`
//! returns, depend on how busy the machine is. So what was sent is pushed, and acknowledged at once. Both are done
//! through options of the sockets that are as they were afterwards.
//!
//! How much a connection holds that nobody has read is the kernel's to say as well, and goes by how fast it was until
//! then. So who waits to write waits for less: for this much at most to be unread. And who does not wait writes no more
//! than that at a time, and is late where there is no room, so that the reader comes first: to be refused, it takes that nobody
//! else can run, or that the others do something else for long.

use super::Scheduler;
use crate::memory::{kernel, sockets};
use std::collections::BTreeSet;

/// Bytes that nobody has read: less than any connection takes from the beginning.
const UNREAD: i32 = 16 * 1024;
/// Nanoseconds that the kernel may take to acknowledge what was read: it waits for company.
pub const DELIVERY: u64 = 1_000_000_000;

/// Scheduling points by which who does not want to wait for room is late at most.
pub const LATE: u64 = 256;
/// Nanoseconds between two looks at whether what was sent has arrived, and how often it is looked.
const LOOK: u64 = 50_000;
const LOOKS: u32 = 1_000;

/// The TCP sockets of the process, by descriptor.
#[derive(Debug, Default)]
pub struct Streams(BTreeSet<i32>);

impl Streams {
    /// A call has made or closed descriptors.
    pub fn change(&mut self, number: i64, [first, second]: [u64; 2], result: i64) {
        match number {
            libc::SYS_socket if is_stream(first, second) => {
                self.0.insert(result as i32);
            }
            libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_dup
            | libc::SYS_dup2
            | libc::SYS_dup3
                if self.0.contains(&(first as i32)) =>
            {
                self.0.insert(result as i32);
            }
            libc::SYS_close => {
                self.0.remove(&(first as i32));
            }
            _ => {}
        }
    }
}

fn is_stream(family: u64, kind: u64) -> bool {
    let kind = kind as i32 & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    [libc::AF_INET, libc::AF_INET6].contains(&(family as i32)) && kind == libc::SOCK_STREAM
}

/// Is this a call that sends by its first argument?
pub fn sends(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_sendfile
    )
}

/// Something was sent by this descriptor: lets it arrive, if the other end is here.
pub fn sent(scheduler: &Scheduler, descriptor: i32) {
    if !scheduler.lock().streams.0.contains(&descriptor) {
        return;
    }
    let Some([here, there]) = sockets::ends(descriptor) else { return };
    if host(&here) != host(&there) {
        return;
    }
    push(descriptor);
    // The other end may not have been accepted yet; then nobody sees what it has.
    let Some(other) = other_end(scheduler, descriptor, [there, here]) else { return };
    sockets::set_option(other, (libc::IPPROTO_TCP, libc::TCP_QUICKACK), 1);
}

/// Until so many bytes are there to be read: on a busy machine the kernel may leave their delivery to a thread of its own.
pub fn await_arrival(reader: i32, bytes: u64) {
    for _ in 0..LOOKS {
        if sockets::unread(reader) as u64 >= bytes {
            return;
        }
        kernel::poll(&mut [], LOOK);
    }
}

/// The descriptor by which this very process reads what it sends by this one.
pub fn reader(scheduler: &Scheduler, descriptor: i32) -> Option<i32> {
    if !scheduler.lock().streams.0.contains(&descriptor) {
        return None;
    }
    let [here, there] = sockets::ends(descriptor)?;
    if host(&here) != host(&there) {
        return None;
    }
    other_end(scheduler, descriptor, [there, here])
}

/// Is there room for more that is to be read by this descriptor? One that was closed takes everything.
pub fn has_room(reader: i32) -> bool {
    room(reader).is_some()
}

/// For how much there is room, if there is, and how much is there to be read.
pub fn room(reader: i32) -> Option<(u64, u64)> {
    let unread = sockets::unread(reader);
    let room = u64::try_from(UNREAD - unread).ok().filter(|room| *room > 0)?;
    Some((room, unread as u64))
}

/// The descriptor with these two addresses, from its side.
fn other_end(scheduler: &Scheduler, descriptor: i32, ends: [Vec<u8>; 2]) -> Option<i32> {
    let streams: Vec<i32> = scheduler.lock().streams.0.iter().copied().collect();
    let back = Some(ends);
    streams.into_iter().find(|other| *other != descriptor && sockets::ends(*other) == back)
}

/// Which machine: a `sockaddr_in` or `sockaddr_in6` without port, flow and scope.
fn host(address: &[u8]) -> Option<&[u8]> {
    match address.len() {
        16 => address.get(4..8),
        _ => address.get(8..24),
    }
}

/// Sends what Nagle's rule holds back: that is what switching it off does.
fn push(descriptor: i32) {
    const NO_DELAY: (i32, i32) = (libc::IPPROTO_TCP, libc::TCP_NODELAY);
    if sockets::option(descriptor, NO_DELAY) == Ok(0) {
        sockets::set_option(descriptor, NO_DELAY, 1);
        sockets::set_option(descriptor, NO_DELAY, 0);
    }
}

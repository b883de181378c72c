//! TCP between threads of one process: what is sent has arrived when the call returns.
//!
//! The kernel hands segments over within the sending call, but for two rules of TCP that go by real time: small
//! segments wait until earlier ones are acknowledged (Nagle's rule), and acknowledgements wait for company. Where both
//! ends are here, neither saves anybody anything, and each makes the order of arrivals, and with it what `epoll_wait`
//! returns, depend on how busy the machine is. So what was sent is pushed, and acknowledged at once. Both are done
//! through options of the sockets that are as they were afterwards.

use super::Scheduler;
use crate::memory::kernel;
use std::collections::BTreeSet;

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
            libc::SYS_accept | libc::SYS_accept4 | libc::SYS_dup | libc::SYS_dup2
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
    let streams: Vec<i32> = {
        let streams = &scheduler.lock().streams.0;
        if !streams.contains(&descriptor) {
            return;
        }
        streams.iter().copied().filter(|other| *other != descriptor).collect()
    };
    let (Some(here), Some(there)) = (Address::near(descriptor), Address::far(descriptor)) else {
        return;
    };
    if here.host() != there.host() {
        return;
    }
    push(descriptor);
    // The other end may not have been accepted yet; then nobody sees what it has.
    let is_other = |other: &i32| {
        Address::near(*other).as_ref() == Some(&there)
            && Address::far(*other).as_ref() == Some(&here)
    };
    if let Some(other) = streams.into_iter().find(is_other) {
        set(other, libc::TCP_QUICKACK, 1);
    }
}

/// Sends what Nagle's rule holds back: that is what switching it off does.
fn push(descriptor: i32) {
    if get(descriptor, libc::TCP_NODELAY) == Some(0) {
        set(descriptor, libc::TCP_NODELAY, 1);
        set(descriptor, libc::TCP_NODELAY, 0);
    }
}

fn get(descriptor: i32, option: i32) -> Option<i32> {
    let (mut value, mut size) = (0i32, size_of::<i32>() as u32);
    let (to, length) = (&raw mut value as u64, &raw mut size as u64);
    let level = libc::IPPROTO_TCP as u64;
    let asked = [descriptor as u64, level, option as u64, to, length, 0];
    (kernel::call(libc::SYS_getsockopt, asked) == 0).then_some(value)
}

fn set(descriptor: i32, option: i32, value: i32) {
    let (from, size) = (&raw const value as u64, size_of::<i32>() as u64);
    let level = libc::IPPROTO_TCP as u64;
    kernel::call(libc::SYS_setsockopt, [descriptor as u64, level, option as u64, from, size, 0]);
}

/// The address of one end: a `sockaddr_in` or `sockaddr_in6`.
#[derive(PartialEq)]
struct Address {
    bytes: [u8; 28],
    length: usize,
}

impl Address {
    fn near(descriptor: i32) -> Option<Address> {
        Address::asked(libc::SYS_getsockname, descriptor)
    }

    fn far(descriptor: i32) -> Option<Address> {
        Address::asked(libc::SYS_getpeername, descriptor)
    }

    fn asked(call: i64, descriptor: i32) -> Option<Address> {
        let mut bytes = [0u8; 28];
        let mut length = bytes.len() as u32;
        let (to, size) = (bytes.as_mut_ptr() as u64, &raw mut length as u64);
        let result = kernel::call(call, [descriptor as u64, to, size, 0, 0, 0]);
        (result == 0).then(|| Address { bytes, length: (length as usize).min(bytes.len()) })
    }

    /// Which machine: the address without port, flow and scope.
    fn host(&self) -> &[u8] {
        match self.length {
            28 => &self.bytes[8..24],
            _ => &self.bytes[4..8],
        }
    }
}

//! Sockets, as the kernel knows them: which two are the ends of one connection, and their options.

use super::kernel;

/// Longest address of any family (`sockaddr_storage`).
const LONGEST: usize = 128;

/// The socket's own address and its peer's, as the kernel writes them; `None` without a peer.
pub fn ends(descriptor: i32) -> Option<[Vec<u8>; 2]> {
    Some([address(libc::SYS_getsockname, descriptor)?, address(libc::SYS_getpeername, descriptor)?])
}

fn address(call: libc::c_long, descriptor: i32) -> Option<Vec<u8>> {
    let mut bytes = vec![0_u8; LONGEST];
    let mut length = LONGEST as u32;
    let (at, length_at) = (bytes.as_mut_ptr(), &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to the buffer, which has as many, and the
    // true length behind the second pointer.
    let result = unsafe { libc::syscall(call, descriptor, at, length_at) };
    bytes.truncate(length as usize);
    (result == 0).then_some(bytes)
}

/// The value of an option that is a number.
pub fn option(descriptor: i32, (level, option): (i32, i32)) -> Result<i32, i64> {
    let (mut value, mut size) = (0i32, size_of::<i32>() as u32);
    let (to, length) = (&raw mut value as u64, &raw mut size as u64);
    let asked = [descriptor as u64, level as u64, option as u64, to, length, 0];
    match kernel::call(libc::SYS_getsockopt, asked) {
        0 => Ok(value),
        error => Err(error),
    }
}

/// Sets such an option; where that cannot be, it stays as it is.
pub fn set_option(descriptor: i32, (level, option): (i32, i32), value: i32) {
    let (from, size) = (&raw const value as u64, size_of::<i32>() as u64);
    let asked = [descriptor as u64, level as u64, option as u64, from, size, 0];
    kernel::call(libc::SYS_setsockopt, asked);
}

/// Bytes that have arrived and that nobody has read.
pub fn unread(descriptor: i32) -> i32 {
    let mut bytes = 0i32;
    let to = &raw mut bytes as u64;
    let asked = [descriptor as u64, libc::FIONREAD, to, 0, 0, 0];
    if kernel::call(libc::SYS_ioctl, asked) == 0 { bytes } else { 0 }
}

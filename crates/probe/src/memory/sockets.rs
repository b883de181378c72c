//! The addresses of a socket, asked of the kernel: which two sockets are the ends of one connection.

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

//! What a server waits for: a request, and the end of a copy; both end with the command.

use crate::memory::kernel;
use raddle_dynamorio::process;

/// Nanoseconds of a wait that is begun again when it ends.
const LONG: u64 = 3_600_000_000_000;

/// The next line; `None` when nobody will write one any more.
pub fn line(descriptor: i32) -> Option<String> {
    let mut line = Vec::new();
    let mut buffer = [0u8; 4096];
    while line.last() != Some(&b'\n') {
        let into = [descriptor as u64, buffer.as_mut_ptr() as u64, buffer.len() as u64, 0, 0, 0];
        match kernel::call(libc::SYS_read, into) {
            n if n == i64::from(-libc::EINTR) => {}
            n if n <= 0 => return None,
            n => line.extend_from_slice(&buffer[..n as usize]),
        }
    }
    String::from_utf8(line).ok()
}

/// Waits for the end of a child and returns its wait status. `None` when the command is gone, which
/// is known by its end of a pipe; the child is then killed.
pub fn for_end(child: i32, pipe: i32) -> Option<i32> {
    let handle = kernel::call(libc::SYS_pidfd_open, [child as u64, 0, 0, 0, 0, 0]);
    // A kernel without handles for processes cannot wait for anything beside an end.
    let mut waits = handle >= 0;
    while waits {
        let mut both = [
            kernel::Descriptor { fd: handle as i32, events: libc::POLLIN, revents: 0 },
            kernel::Descriptor { fd: pipe, events: 0, revents: 0 },
        ];
        kernel::poll(&mut both, LONG);
        if both[1].revents != 0 {
            kernel::call(libc::SYS_kill, [child as u64, libc::SIGKILL as u64, 0, 0, 0, 0]);
            return None;
        }
        waits = both[0].revents == 0;
    }
    if handle >= 0 {
        // Copies are not to find it.
        kernel::call(libc::SYS_close, [handle as u64, 0, 0, 0, 0, 0]);
    }
    let mut status = 0i32;
    let arguments = [child as u64, &raw mut status as u64, libc::__WALL as u64, 0, 0, 0];
    loop {
        match kernel::call(libc::SYS_wait4, arguments) {
            n if n == i64::from(child) => return Some(status),
            n if n == i64::from(-libc::EINTR) => {}
            _ => return None,
        }
    }
}

/// The kernel is to kill this process when its parent ends.
pub fn end_with_parent() {
    let parent = || kernel::call(libc::SYS_getppid, [0; 6]);
    let before = parent();
    let (what, signal) = (libc::PR_SET_PDEATHSIG as u64, libc::SIGKILL as u64);
    kernel::call(libc::SYS_prctl, [what, signal, 0, 0, 0, 0]);
    // It may have ended just before.
    if parent() != before {
        process::abort(0);
    }
}

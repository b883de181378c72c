//! Where a system call writes to the target's memory: what has to be kept of its answer, and put
//! there again when the answer is given without the kernel.

use super::descriptors;
use crate::memory::target;
use raddle_dynamorio::process;

/// More of anything than a call is given in earnest.
const MOST: u64 = 1024;
/// `struct epoll_event`, packed.
const EPOLL_EVENT: u64 = 12;
/// `struct msghdr`, and with the length behind it `struct mmsghdr`.
const MESSAGE: u64 = 56;
const MESSAGES: u64 = 64;

/// A stretch of memory that a call may write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    address: u64,
    length: u64,
    share: Share,
}

/// How much of a stretch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// All of it, or as if.
    Whole,
    /// Its part of as many bytes as the result says, which fill such stretches one after another.
    Bytes,
    /// So many bytes for each of as many as the result says.
    Each(u64),
}

/// The stretches, before the call is made; empty for a call that only has a result.
pub fn of(number: i64, arguments: [u64; 6]) -> Vec<Output> {
    let [a, b, c, d, e, f] = arguments;
    match number {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_getdents64 => vec![Output::bytes(b, c)],
        // Its type is not counted.
        libc::SYS_msgrcv => vec![Output::whole(b, 8), Output::bytes(b + 8, c)],
        libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => vectors(b, c),
        libc::SYS_recvfrom => {
            let mut outputs = vec![Output::bytes(b, c)];
            outputs.extend(counted(e, f));
            outputs
        }
        libc::SYS_recvmsg => message(b, MESSAGE),
        libc::SYS_recvmmsg => {
            (0..c.min(MOST)).flat_map(|i| message(b + MESSAGES * i, MESSAGES)).collect()
        }
        libc::SYS_accept | libc::SYS_accept4 | libc::SYS_getsockname | libc::SYS_getpeername => {
            counted(b, c)
        }
        libc::SYS_getsockopt => counted(d, e),
        libc::SYS_poll | libc::SYS_ppoll => vec![Output::whole(a, 8 * b.min(65_536))],
        libc::SYS_select | libc::SYS_pselect6 => {
            let size = a.min(65_536).div_ceil(64) * 8;
            [b, c, d].into_iter().map(|set| Output::whole(set, size)).collect()
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            let length = EPOLL_EVENT * c.min(65_536);
            vec![Output { address: b, length, share: Share::Each(EPOLL_EVENT) }]
        }
        libc::SYS_wait4 => vec![Output::whole(b, 4), Output::whole(d, RUSAGE)],
        libc::SYS_waitid => vec![Output::whole(c, SIGINFO), Output::whole(e, RUSAGE)],
        libc::SYS_rt_sigtimedwait => vec![Output::whole(b, SIGINFO)],
        libc::SYS_fstat => vec![Output::whole(b, STAT)],
        libc::SYS_newfstatat => vec![Output::whole(c, STAT)],
        libc::SYS_statx => vec![Output::whole(e, STATX)],
        libc::SYS_ioctl => match b {
            libc::FIONREAD => vec![Output::whole(c, 4)],
            libc::TIOCGWINSZ => vec![Output::whole(c, 8)],
            libc::TCGETS => vec![Output::whole(c, TERMIOS)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

const RUSAGE: u64 = size_of::<libc::rusage>() as u64;
const SIGINFO: u64 = size_of::<libc::siginfo_t>() as u64;
const STAT: u64 = size_of::<libc::stat>() as u64;
const STATX: u64 = 256;
/// The kernel's own, which is shorter than the C library's.
const TERMIOS: u64 = 36;

impl Output {
    fn whole(address: u64, length: u64) -> Output {
        // A null pointer says that nothing is to be written.
        Output { address, length: if address == 0 { 0 } else { length }, share: Share::Whole }
    }

    fn bytes(address: u64, length: u64) -> Output {
        Output { address, length, share: Share::Bytes }
    }
}

/// Something whose length is read and written behind another pointer.
fn counted(address: u64, length_at: u64) -> Vec<Output> {
    let length = target::half(length_at).unwrap_or(0);
    vec![Output::whole(address, u64::from(length).min(4 * MOST)), Output::whole(length_at, 4)]
}

/// An array of `iovec`.
fn vectors(address: u64, count: u64) -> Vec<Output> {
    let stretches = descriptors::vectors(address, count);
    stretches.into_iter().map(|(start, length)| Output::bytes(start, length)).collect()
}

/// A `msghdr`: name, its length, vector, its count, control data, its length, flags.
fn message(address: u64, size: u64) -> Vec<Output> {
    let field = |i: u64| target::word(address + 8 * i).unwrap_or(0);
    let named = Output::whole(field(0), u64::from(field(1) as u32).min(4 * MOST));
    let mut outputs = vec![Output::whole(address, size), named];
    outputs.push(Output::whole(field(4), field(5).min(64 * MOST)));
    outputs.extend(vectors(field(2), field(3)));
    outputs
}

/// How much of each stretch a call with this result has written.
fn lengths(outputs: &[Output], result: i64) -> Vec<u64> {
    let result = u64::try_from(result).ok();
    let mut left = result.unwrap_or(0);
    let length = |output: &Output| match (output.share, result) {
        (_, None) => 0,
        (Share::Whole, _) => output.length,
        (Share::Each(size), Some(count)) => output.length.min(size * count),
        (Share::Bytes, _) => {
            let part = output.length.min(left);
            left -= part;
            part
        }
    };
    outputs.iter().map(length).collect()
}

/// What a call with this result has written.
pub fn pieces(outputs: &[Output], result: i64) -> Vec<Vec<u8>> {
    let piece = |(output, length): (&Output, u64)| {
        let mut bytes = vec![0; length as usize];
        let read = process::read(output.address, &mut bytes);
        bytes.truncate(read);
        bytes
    };
    outputs.iter().zip(lengths(outputs, result)).map(piece).collect()
}

/// Writes it again. False when it does not fit: then it is not the same call.
pub fn restore(outputs: &[Output], pieces: &[Vec<u8>]) -> bool {
    let fits = |(output, piece): (&Output, &Vec<u8>)| piece.len() as u64 <= output.length;
    let write = |(output, piece): (&Output, &Vec<u8>)| {
        piece.is_empty() || process::write(output.address, piece)
    };
    let both = || outputs.iter().zip(pieces);
    outputs.len() == pieces.len() && both().all(fits) && both().all(write)
}

/// A digest of what a call with this result has written: FNV-1a over words of eight bytes.
pub fn digest(outputs: &[Output], result: i64) -> u64 {
    let mut digest: u64 = 0xcbf2_9ce4_8422_2325;
    let mut buffer = [0; 4096];
    for (output, length) in outputs.iter().zip(lengths(outputs, result)) {
        let mut done = 0;
        while done < length {
            let size = (length - done).min(buffer.len() as u64) as usize;
            let read = process::read(output.address + done, &mut buffer[..size]);
            if read == 0 {
                break;
            }
            for word in buffer[..read].chunks(8) {
                let mut bytes = [0; 8];
                bytes[..word.len()].copy_from_slice(word);
                digest = (digest ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0100_0000_01b3);
            }
            done += read as u64;
        }
    }
    digest
}

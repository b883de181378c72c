//! Reading the target's memory as a hook's expressions ask for it. Nothing here can fault: a bad
//! pointer is the target's bug, and must crash in the target's code, not in ours.

use raddle_dynamorio::process;
use smallvec::SmallVec;

/// The eight bytes at an address; `None` when unreadable.
pub fn word(address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (process::read(address, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
}

/// The return address on top of the stack, at a function's entry.
pub fn return_address(sp: u64) -> u64 {
    // SAFETY: at the entry of a function that was called the stack pointer is at the return address,
    // which the call has just written there.
    unsafe { (sp as *const u64).read_unaligned() }
}

/// The eight bytes at an address, quickly if they are on the current thread's own stack.
///
/// `stack` must be the mapped region from the thread's stack pointer up to the stack's end.
pub fn stack_word(address: u64, stack: &std::ops::Range<u64>) -> Option<u64> {
    if stack.contains(&address) && stack.end - address >= 8 {
        // SAFETY: inside the live part of the current thread's stack, which stays mapped while the
        // thread runs our code.
        return Some(unsafe { (address as *const u64).read_unaligned() });
    }
    word(address)
}

/// The four bytes at an address; `None` when unreadable.
pub fn half(address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    (process::read(address, &mut bytes) == 4).then(|| u32::from_le_bytes(bytes))
}

/// Does a short stretch hold zero, or the address of something that `is_there`? Not if it is unreadable. Whatever is in a list begins
/// at a multiple of eight; the lowest addresses are nobody's, and numbers that are counted.
pub fn are_link(bytes: std::ops::Range<u64>, is_there: impl FnOnce(u64) -> bool) -> bool {
    const LOWEST: u64 = 1 << 22;
    let length = bytes.end.saturating_sub(bytes.start);
    let mut all = [0; 8];
    let Some(held) = usize::try_from(length).ok().and_then(|length| all.get_mut(..length)) else {
        return false;
    };
    if process::read(bytes.start, held) != held.len() {
        return false;
    }
    let is_whole = held.len() == 8;
    match u64::from_le_bytes(all) {
        0 => true,
        address => is_whole && address.is_multiple_of(8) && address >= LOWEST && is_there(address),
    }
}

/// Bytes before the first NUL, at most `limit`.
pub fn string_length(address: u64, limit: u64) -> u64 {
    let mut length = 0;
    walk(address, limit, |bytes| match bytes.iter().position(|b| *b == 0) {
        Some(at) => {
            length += at as u64;
            false
        }
        None => {
            length += bytes.len() as u64;
            true
        }
    });
    length.min(limit)
}

/// A C string of at most `limit` bytes, as text.
pub fn string(address: u64, limit: usize) -> String {
    let mut text = vec![0; string_length(address, limit as u64) as usize];
    let read = process::read(address, &mut text);
    text.truncate(read);
    String::from_utf8_lossy(&text).into_owned()
}

/// The bytes of a C string before its NUL; `None` if there is none among so many.
pub fn bytes_of_string(address: u64, most: u64) -> Option<SmallVec<[u8; CHUNK]>> {
    let mut found = SmallVec::new();
    let mut ends = false;
    walk(address, most, |bytes| {
        let end = bytes.iter().position(|b| *b == 0);
        found.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        ends = end.is_some();
        !ends
    });
    ends.then_some(found)
}

/// How many leading bytes two strings have in common, NUL ending both, at most `limit`.
pub fn common_length(a: u64, b: u64, limit: u64) -> u64 {
    let mut same = 0;
    let mut are_same = |bytes: &[u8], other: &mut [u8]| {
        let read = process::read(b + same, other);
        for (x, y) in bytes.iter().zip(&other[..read]) {
            if x != y || *x == 0 {
                return false;
            }
            same += 1;
        }
        read == bytes.len()
    };
    walk(a, limit, |bytes| match bytes.len() {
        few @ ..=FIRST => are_same(bytes, &mut [0; FIRST][..few]),
        many => are_same(bytes, &mut [0; CHUNK][..many]),
    });
    same.min(limit)
}

/// Most strings are short, and what is read of the memory behind one is read in vain.
const FIRST: usize = 32;
const CHUNK: usize = 256;

/// Shows memory from `address` on piece by piece, no piece crossing a page, until `more` says no,
/// `limit` bytes are shown, or memory ends.
fn walk(address: u64, limit: u64, mut more: impl FnMut(&[u8]) -> bool) {
    let mut show = |done: u64, buffer: &mut [u8]| {
        let at = address + done;
        let to_page_end = 4096 - at % 4096;
        let length = to_page_end.min(limit - done).min(buffer.len() as u64) as usize;
        let read = process::read(at, &mut buffer[..length]);
        (read != 0 && more(&buffer[..read])).then_some(done + read as u64)
    };
    if limit == 0 {
        return;
    }
    // To make a large buffer takes longer than to look at a short string.
    let Some(mut done) = show(0, &mut [0; FIRST]) else { return };
    let mut buffer = [0; CHUNK];
    while done < limit {
        match show(done, &mut buffer) {
            Some(further) => done = further,
            None => return,
        }
    }
}

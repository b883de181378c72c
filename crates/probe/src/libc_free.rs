//! `memcpy` and kin of our own, without vector registers.
//!
//! The compiler turns Rust code into calls of these. libc's versions use the upper halves of the
//! vector registers and clear them (`vzeroupper`), which a lean call does not save: the target
//! would lose floating-point values. With `-Bsymbolic` (build.rs) the probe's own calls come here.
//! Long copies are `rep movsb`, fast on every processor with ERMS (since 2013).

use core::arch::asm;
use core::ffi::{c_char, c_int, c_void};

/// Up to here words and 16-byte moves are faster than starting a string instruction, which takes
/// tens of cycles.
const SHORT: usize = 256;
/// The same where source and destination may overlap, which string instructions do not like.
const LONG: usize = 2048;

/// # Safety
/// As C's `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void {
    // SAFETY: the caller promises two valid, disjoint stretches; the direction flag is clear.
    unsafe {
        if n <= SHORT {
            copy_short(to.cast(), from.cast(), n);
        } else {
            asm!("rep movsb", inout("rcx") n => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
    }
    to
}

/// Copies by moves that overlap at the end. The 16-byte ones are assembly, lest the compiler
/// recognise the loop and call memcpy for it.
///
/// # Safety
/// As `memcpy`.
#[inline]
unsafe fn copy_short(to: *mut u8, from: *const u8, n: usize) {
    // SAFETY: every move lies within the `n` bytes that the caller promises.
    unsafe {
        match n {
            0 => {}
            1..4 => {
                let (first, middle, last) = (*from, *from.add(n / 2), *from.add(n - 1));
                to.write(first);
                to.add(n / 2).write(middle);
                to.add(n - 1).write(last);
            }
            4..8 => {
                let first = from.cast::<u32>().read_unaligned();
                let last = from.add(n - 4).cast::<u32>().read_unaligned();
                to.cast::<u32>().write_unaligned(first);
                to.add(n - 4).cast::<u32>().write_unaligned(last);
            }
            8..16 => {
                let first = from.cast::<u64>().read_unaligned();
                let last = from.add(n - 8).cast::<u64>().read_unaligned();
                to.cast::<u64>().write_unaligned(first);
                to.add(n - 8).cast::<u64>().write_unaligned(last);
            }
            _ => copy_upwards(to, from, n),
        }
    }
}

/// Copies at least sixteen bytes, also if they begin inside the destination: what a move overwrites has been
/// read, by itself or, at the end, before all others.
///
/// # Safety
/// Both stretches must be valid, and the destination must not begin inside the source.
#[inline]
unsafe fn copy_upwards(to: *mut u8, from: *const u8, n: usize) {
    // SAFETY: every move lies within the `n` bytes that the caller promises.
    unsafe {
        let last = from.add(n - 16).cast::<u128>().read_unaligned();
        let mut at = 0;
        while at + 16 < n {
            move_16(to.add(at), from.add(at));
            at += 16;
        }
        to.add(n - 16).cast::<u128>().write_unaligned(last);
    }
}

/// The same for a destination that begins inside the source, from the end on.
///
/// # Safety
/// Both stretches must be valid, and the source must not begin inside the destination.
#[inline]
unsafe fn copy_downwards(to: *mut u8, from: *const u8, n: usize) {
    // SAFETY: every move lies within the `n` bytes that the caller promises.
    unsafe {
        let first = from.cast::<u128>().read_unaligned();
        let mut at = n;
        while at > 16 {
            at -= 16;
            move_16(to.add(at), from.add(at));
        }
        to.cast::<u128>().write_unaligned(first);
    }
}

/// # Safety
/// Sixteen bytes must be valid on both sides.
#[inline(always)]
unsafe fn move_16(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise; the lean call has saved the register.
    unsafe {
        asm!("movups {x}, [{from}]", "movups [{to}], {x}", x = out(xmm_reg) _, from = in(reg) from,
            to = in(reg) to, options(nostack, preserves_flags));
    }
}

/// # Safety
/// As C's `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void {
    let (begin, source) = (to.cast::<u8>(), from.cast::<u8>());
    if n < 16 {
        // SAFETY: the caller promises two valid stretches; so short a copy reads all before it writes.
        unsafe { copy_short(begin, source, n) };
    } else if (to as usize).wrapping_sub(from as usize) < n {
        // SAFETY: as above; the destination begins inside the source. (A string instruction that goes downwards
        // takes a cycle or more for each byte.)
        unsafe { copy_downwards(begin, source, n) };
    } else if n <= LONG {
        // SAFETY: as above; the destination does not begin inside the source.
        unsafe { copy_upwards(begin, source, n) };
    } else {
        // SAFETY: copying upwards never overwrites what is still to be read; a string instruction
        // reads each byte before it writes one at or above it.
        unsafe {
            asm!("rep movsb", inout("rcx") n => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
    }
    to
}

/// # Safety
/// As C's `memset`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut c_void, byte: c_int, n: usize) -> *mut c_void {
    let word = u64::from(byte as u8) * 0x0101_0101_0101_0101;
    let begin = to.cast::<u8>();
    // SAFETY: the caller promises a valid stretch; every store lies within its `n` bytes.
    unsafe {
        match n {
            0 => {}
            1..4 => {
                begin.write(word as u8);
                begin.add(n / 2).write(word as u8);
                begin.add(n - 1).write(word as u8);
            }
            4..8 => {
                begin.cast::<u32>().write_unaligned(word as u32);
                begin.add(n - 4).cast::<u32>().write_unaligned(word as u32);
            }
            8..16 => {
                begin.cast::<u64>().write_unaligned(word);
                begin.add(n - 8).cast::<u64>().write_unaligned(word);
            }
            16..=SHORT => {
                let mut at = 0;
                while at + 16 < n {
                    store_16(begin.add(at), word);
                    at += 16;
                }
                store_16(begin.add(n - 16), word);
            }
            _ => {
                asm!("rep stosb", inout("rcx") n => _, inout("rdi") to => _, in("al") byte as u8,
                    options(nostack, preserves_flags));
            }
        }
    }
    to
}

/// Stores a word twice; assembly for the same reason as [`move_16`].
///
/// # Safety
/// Sixteen bytes must be valid.
#[inline(always)]
unsafe fn store_16(to: *mut u8, word: u64) {
    // SAFETY: the caller's promise; the lean call has saved the register.
    unsafe {
        asm!("movq {x}, {word}", "punpcklqdq {x}, {x}", "movups [{to}], {x}",
            x = out(xmm_reg) _, word = in(reg) word, to = in(reg) to,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// As C's `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const c_void, b: *const c_void, n: usize) -> c_int {
    let (a, b) = (a.cast::<u8>(), b.cast::<u8>());
    let mut i = 0;
    while i + 8 <= n {
        // SAFETY: both stretches have `n` bytes.
        let (x, y) = unsafe { (load_8(a.add(i)), load_8(b.add(i))) };
        if x != y {
            return if x.swap_bytes() < y.swap_bytes() { -1 } else { 1 };
        }
        i += 8;
    }
    while i < n {
        // SAFETY: both stretches have `n` bytes; volatile keeps the compiler from making this a
        // call of memcmp.
        let (x, y) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
        if x != y {
            return c_int::from(x) - c_int::from(y);
        }
        i += 1;
    }
    0
}

/// Loads a word; assembly, lest the compiler make a call of memcmp of what compares it.
///
/// # Safety
/// Eight bytes must be valid.
#[inline(always)]
unsafe fn load_8(from: *const u8) -> u64 {
    let word;
    // SAFETY: the caller's promise.
    unsafe {
        asm!("mov {word}, [{from}]", word = out(reg) word, from = in(reg) from,
            options(nostack, preserves_flags, readonly));
    }
    word
}

/// # Safety
/// As C's `bcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const c_void, b: *const c_void, n: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { memcmp(a, b, n) }
}

/// # Safety
/// As C's `strlen`.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const c_char) -> usize {
    let mut n = 0;
    // SAFETY: the caller promises a terminated string.
    while unsafe { text.add(n).read_volatile() } != 0 {
        n += 1;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against what they are to do, byte by byte, for all short lengths and overlaps.
    #[test]
    fn bytes_are_moved_set_and_compared() {
        let fresh = || -> Vec<u8> { (0..5000).map(|n| (n * 7 % 251) as u8).collect() };
        let lengths = (0..300).chain([511, 1000, 2047, 2048, 2049, 2500]);
        for n in lengths {
            for (from, to) in [(100, 90), (100, 99), (100, 101), (100, 117), (100, 100), (0, 2500)]
            {
                let (mut got, was) = (fresh(), fresh());
                let memory = got.as_mut_ptr();
                // SAFETY: all within the vector.
                unsafe { memmove(memory.add(to).cast(), memory.add(from).cast(), n) };
                let mut expected = was.clone();
                (0..n).for_each(|i| expected[to + i] = was[from + i]);
                assert!(got == expected, "{n} bytes from {from} to {to}");
            }
            let mut set = fresh();
            // SAFETY: all within the vector.
            unsafe { memset(set.as_mut_ptr().add(3).cast(), 0x1ab, n) };
            let mut expected = fresh();
            (0..n).for_each(|i| expected[3 + i] = 0xab);
            assert!(set == expected, "{n} bytes set");
            for at in [0, n / 2, n.saturating_sub(1)] {
                let (a, mut b) = (fresh(), fresh());
                // SAFETY: all within the vectors.
                let compare = |b: &[u8]| unsafe { memcmp(a.as_ptr().cast(), b.as_ptr().cast(), n) };
                assert_eq!(compare(&b), 0);
                b[at] ^= 0x80;
                let expected = if n == 0 { 0 } else { c_int::from(a[at]) - c_int::from(b[at]) };
                assert_eq!(compare(&b).signum(), expected.signum(), "{n} bytes, {at}");
            }
        }
    }
}

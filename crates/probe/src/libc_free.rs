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
            _ => {
                let mut at = 0;
                while at + 16 < n {
                    move_16(to.add(at), from.add(at));
                    at += 16;
                }
                move_16(to.add(n - 16), from.add(n - 16));
            }
        }
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
    if (to as usize).wrapping_sub(from as usize) >= n {
        // SAFETY: copying upwards never overwrites what is still to be read; a string instruction
        // reads each byte before it writes one at or above it.
        unsafe {
            asm!("rep movsb", inout("rcx") n => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
        return to;
    }
    // SAFETY: the destination begins inside the source: copy downwards, then clear the direction.
    unsafe {
        asm!("std", "rep movsb", "cld",
            inout("rcx") n => _,
            inout("rdi") to.cast::<u8>().wrapping_add(n).wrapping_sub(1) => _,
            inout("rsi") from.cast::<u8>().wrapping_add(n).wrapping_sub(1) => _,
            options(nostack));
    }
    to
}

/// # Safety
/// As C's `memset`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut c_void, byte: c_int, n: usize) -> *mut c_void {
    // SAFETY: the caller promises a valid stretch.
    unsafe {
        asm!("rep stosb", inout("rcx") n => _, inout("rdi") to => _, in("al") byte as u8,
            options(nostack, preserves_flags));
    }
    to
}

/// # Safety
/// As C's `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const c_void, b: *const c_void, n: usize) -> c_int {
    let (a, b) = (a.cast::<u8>(), b.cast::<u8>());
    let mut i = 0;
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

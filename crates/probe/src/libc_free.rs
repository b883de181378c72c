//! `memcpy` and kin of our own, without vector registers.
//!
//! The compiler turns Rust code into calls of these. libc's versions use the upper halves of the
//! vector registers and clear them (`vzeroupper`), which a lean call does not save: the target
//! would lose floating-point values. With `-Bsymbolic` (build.rs) the probe's own calls come here.
//! `rep movsb` and `rep stosb` are fast on every processor with ERMS (since 2013), and what we copy
//! is short.

use core::arch::asm;
use core::ffi::{c_char, c_int, c_void};

/// # Safety
/// As C's `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void {
    // SAFETY: the caller promises two valid, disjoint stretches; the direction flag is clear.
    unsafe {
        asm!("rep movsb", inout("rcx") n => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
    to
}

/// # Safety
/// As C's `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, n: usize) -> *mut c_void {
    if (to as usize).wrapping_sub(from as usize) >= n {
        // SAFETY: copying upwards never overwrites what is still to be read.
        return unsafe { memcpy(to, from, n) };
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

//! Takes the engine's variables out of the target's environment before the target looks at it.
//!
//! The engine is told what to do by `DYNAMORIO_*` variables, which sit on the target's initial
//! stack: `argc, argv…, 0, envp…, 0, auxv…`. Their pointers are removed, and the auxiliary vector
//! moves up behind the shorter list, where the C library looks for it. The others go back to the
//! order the command found them in: Rust's standard library sorts what it hands on.

use rustc_hash::FxHashMap;
use std::ffi::CStr;

const PREFIX: &[u8] = b"DYNAMORIO_";

/// Removes the variables, and puts the others in `order`, by name. `false` when the initial stack was not found as expected; then nothing
/// was changed.
pub fn hide_engine_variables(order: &[String]) -> bool {
    let Some(stack) = initial_stack() else { return false };
    // SAFETY: `initial_stack` gave the address the kernel put argc at; the layout is fixed by the
    // ABI, every list ends with a zero, the memory is writable, and no application code has run.
    unsafe {
        let argc = stack.read() as usize;
        let environment = stack.add(1 + argc + 1);
        if stack.add(1 + argc).read() != 0 {
            return false;
        }
        let mut kept = 0;
        let mut seen = 0;
        while environment.add(seen).read() != 0 {
            let variable = environment.add(seen).read();
            if !starts_with(variable as *const u8, PREFIX) {
                environment.add(kept).write(variable);
                kept += 1;
            }
            seen += 1;
        }
        sort(std::slice::from_raw_parts_mut(environment, kept), order);
        // The terminator, then pairs of the auxiliary vector up to and with AT_NULL.
        let (mut from, mut to) = (environment.add(seen), environment.add(kept));
        to.write(0);
        (from, to) = (from.add(1), to.add(1));
        loop {
            let (kind, value) = (from.read(), from.add(1).read());
            to.write(kind);
            to.add(1).write(value);
            if kind == 0 {
                return true;
            }
            (from, to) = (from.add(2), to.add(2));
        }
    }
}

/// Puts variables, each a C string, in the order of their names; others come last.
///
/// # Safety
/// Every element must be the address of a C string.
unsafe fn sort(variables: &mut [u64], order: &[String]) {
    let places: FxHashMap<&[u8], usize> =
        order.iter().enumerate().map(|(place, name)| (name.as_bytes(), place)).collect();
    variables.sort_by_key(|variable| {
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(*variable as *const _) }.to_bytes();
        let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
        places.get(name).copied().unwrap_or(usize::MAX)
    });
}

/// Makes what the kernel drew for this process the same in every process: the random bytes a program
/// starts with, and, when its time is to be ours, the vdso, which reads clocks without asking.
pub fn pin(hide_vdso: bool) {
    /// Tells a C library to skip the entry.
    const AT_IGNORE: u64 = 1;
    let Some(stack) = initial_stack() else { return };
    // SAFETY: the layout is as in `hide_engine_variables`; AT_RANDOM points to sixteen bytes of the
    // same writable stack.
    unsafe {
        let mut at = stack.add(1 + stack.read() as usize + 1);
        while at.read() != 0 {
            at = at.add(1);
        }
        at = at.add(1);
        while at.read() != 0 {
            match at.read() {
                libc::AT_SYSINFO_EHDR if hide_vdso => at.write(AT_IGNORE),
                libc::AT_RANDOM => {
                    // The lowest byte is zero, as the kernel never promises it is not: it ends up in
                    // the stack protector's canary, which is best caught by strings.
                    let bytes = at.add(1).read() as *mut u64;
                    bytes.write_unaligned(0x8FB7_1C93_5A2E_D600);
                    bytes.add(1).write_unaligned(0x5D1E_A3B4_977C_20E8);
                }
                _ => {}
            }
            at = at.add(2);
        }
    }
}

/// An entry of the auxiliary vector. (Our own libc copy was never given it, so its `getauxval` does
/// not know.)
pub fn auxiliary(kind: u64) -> Option<u64> {
    let bytes = std::fs::read("/proc/self/auxv").ok()?;
    let word = |b: &[u8]| b.try_into().map(u64::from_le_bytes).ok();
    bytes.chunks_exact(16).find(|pair| word(&pair[..8]) == Some(kind)).and_then(|p| word(&p[8..]))
}

/// Where the kernel put `argc`: field 28 (`start_stack`) of `/proc/self/stat`.
fn initial_stack() -> Option<*mut u64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let after_name = &text[text.rfind(')')? + 2..];
    let start: u64 = after_name.split(' ').nth(25)?.parse().ok()?;
    (start != 0).then_some(start as *mut u64)
}

/// # Safety
/// `text` must be a C string.
unsafe fn starts_with(text: *const u8, prefix: &[u8]) -> bool {
    // SAFETY: reading stops at the first difference, the terminator included.
    prefix.iter().enumerate().all(|(i, byte)| unsafe { text.add(i).read() } == *byte)
}

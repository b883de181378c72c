//! System calls of our own, and the target's made in its stead.

use std::sync::atomic::AtomicU32;

/// The process that made this one.
pub fn parent() -> u32 {
    call(libc::SYS_getppid, [0; 6]) as u32
}

/// A descriptor that is waited for, as `poll` has it.
pub type Descriptor = libc::pollfd;

/// Waits until `word` is no longer `expected`, or something wakes this thread. Returns whether a
/// signal did: a time-out, however long, is what makes the kernel tell.
pub fn futex_wait(word: &AtomicU32, expected: u32) -> bool {
    let long = libc::timespec { tv_sec: 3600, tv_nsec: 0 };
    let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as u64;
    let arguments =
        [word.as_ptr() as u64, operation, u64::from(expected), &raw const long as u64, 0, 0];
    call(libc::SYS_futex, arguments) == i64::from(-libc::EINTR)
}

/// Wakes who waits for `word`.
pub fn futex_wake(word: &AtomicU32) {
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64;
    call(libc::SYS_futex, [word.as_ptr() as u64, operation, 1, 0, 0, 0]);
}

/// Is one of these ready? Waits for at most `nanoseconds`; `None` when a signal came.
pub fn poll(descriptors: &mut [Descriptor], nanoseconds: u64) -> Option<bool> {
    let wait = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    };
    let (list, count) = (descriptors.as_mut_ptr() as u64, descriptors.len() as u64);
    match call(libc::SYS_ppoll, [list, count, &raw const wait as u64, 0, 8, 0]) {
        n if n == i64::from(-libc::EINTR) => None,
        n => Some(n > 0),
    }
}

/// Nanoseconds of a clock of the kernel's.
pub fn clock(id: i32) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    call(libc::SYS_clock_gettime, [id as u64, &raw mut now as u64, 0, 0, 0, 0]);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The state of a descriptor's file as `fstat` has it: its mode.
pub fn mode_of(descriptor: i32) -> Option<u32> {
    // SAFETY: a zeroed struct is filled in by the kernel.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    let result = call(libc::SYS_fstat, [descriptor as u64, &raw mut found as u64, 0, 0, 0, 0]);
    (result == 0).then_some(found.st_mode)
}

/// Is the file of this path a pipe?
pub fn is_pipe(directory: u64, path: u64) -> bool {
    // SAFETY: a zeroed struct is filled in by the kernel.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    let asked = [directory, path, &raw mut found as u64, 0, 0, 0];
    call(libc::SYS_newfstatat, asked) == 0 && found.st_mode & libc::S_IFMT == libc::S_IFIFO
}

/// Is the descriptor's file one that the kernel makes up as it is read (`/proc`, `/sys`)?
pub fn makes_up(descriptor: i32) -> bool {
    const SYSFS: u64 = 0x6265_6572;
    // struct statfs: the kind of file system first, 120 bytes in all.
    let mut found = [0u64; 15];
    let to = found.as_mut_ptr() as u64;
    let result = call(libc::SYS_fstatfs, [descriptor as u64, to, 0, 0, 0, 0]);
    result == 0 && [libc::PROC_SUPER_MAGIC as u64, SYSFS].contains(&found[0])
}

/// The flags of a descriptor's file, as `F_GETFL` has them.
pub fn flags_of(descriptor: i32) -> i32 {
    call(libc::SYS_fcntl, [descriptor as u64, libc::F_GETFL as u64, 0, 0, 0, 0]) as i32
}

/// Are there children of this process that have not ended?
pub fn has_children() -> bool {
    // struct siginfo: who it is stands in its third word, and nobody is zero.
    let mut about = [0u64; 16];
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    let to = about.as_mut_ptr() as u64;
    let result = call(libc::SYS_waitid, [libc::P_ALL.into(), 0, to, how as u64, 0, 0]);
    result == 0 && about[2] as u32 == 0
}

/// What the kernel does with a signal: its `struct sigaction`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct SignalAction {
    pub handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

impl SignalAction {
    /// Signals are numbered from 1 to this.
    pub const LAST: u32 = 64;

    pub fn ignore() -> SignalAction {
        SignalAction::without_handler(libc::SIG_IGN, 0)
    }

    /// To ignore it, or what happens by default.
    pub fn without_handler(what: usize, flags: u64) -> SignalAction {
        SignalAction { handler: what as u64, flags, ..SignalAction::default() }
    }

    /// The same with another handler.
    pub fn with_handler(self, handler: u64) -> SignalAction {
        SignalAction { handler, ..self }
    }

    /// A signal in a set.
    pub const fn bit(signal: u32) -> u64 {
        1 << (signal - 1)
    }
}

/// Tells the kernel what to do with a signal, behind the engine's back, or only asks. Returns what it
/// was, or `None` if the kernel refuses.
pub fn signal_action(signal: u32, action: Option<SignalAction>) -> Option<SignalAction> {
    let mut was = SignalAction::default();
    let action = action.as_ref().map_or(0, |action| std::ptr::from_ref(action) as u64);
    let arguments = [u64::from(signal), action, &raw mut was as u64, 8, 0, 0];
    (call(libc::SYS_rt_sigaction, arguments) == 0).then_some(was)
}

/// This process is to be killed when its parent dies, if that is `parent`: whoever kills the command,
/// which cannot see it coming, expects the program to be gone too.
pub fn end_with_parent(parent: u32) {
    if call(libc::SYS_getppid, [0; 6]) == i64::from(parent) {
        let arguments = [libc::PR_SET_PDEATHSIG as u64, libc::SIGKILL as u64, 0, 0, 0, 0];
        call(libc::SYS_prctl, arguments);
    }
}

/// Makes a system call with the target's arguments, or with ours: an error is a negative number.
///
/// What it does to the target's memory is what the target's own call would have done; calls that
/// take away our own memory or descriptors must not be made.
pub fn call(number: i64, arguments: [u64; 6]) -> i64 {
    let result: i64;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: see above; the kernel checks every pointer it is given. The instruction changes rax,
    // rcx and r11 only.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    result
}

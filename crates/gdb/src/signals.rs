//! Signals: gdb has its own numbers for those that systems number differently.

use gdbstub::common::Signal;

/// Linux's number as gdb has it.
pub fn of_linux(number: i32) -> Signal {
    match number {
        1..=6 | 8 | 9 | 11 | 13 | 14 | 15 => Signal(number as u8),
        7 => Signal::SIGBUS,
        10 => Signal::SIGUSR1,
        12 => Signal::SIGUSR2,
        16 => Signal::SIGSEGV, // SIGSTKFLT, which gdb does not know.
        17 => Signal::SIGCHLD,
        18 => Signal::SIGCONT,
        19 => Signal::SIGSTOP,
        20 => Signal::SIGTSTP,
        21 => Signal::SIGTTIN,
        22 => Signal::SIGTTOU,
        23 => Signal::SIGURG,
        24 => Signal::SIGXCPU,
        25 => Signal::SIGXFSZ,
        26 => Signal::SIGVTALRM,
        27 => Signal::SIGPROF,
        28 => Signal::SIGWINCH,
        29 => Signal::SIGIO,
        30 => Signal::SIGPWR,
        31 => Signal::SIGSYS,
        _ => Signal::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ() {
        assert_eq!(of_linux(6), Signal::SIGABRT);
        assert_eq!(of_linux(7), Signal::SIGBUS);
        assert_eq!(of_linux(11), Signal::SIGSEGV);
        assert_eq!(of_linux(31), Signal::SIGSYS);
        assert_eq!(of_linux(99), Signal::UNKNOWN);
    }
}

//! Signals sent to the command while the target runs, with the manners of a waiting shell: the
//! terminal sends `SIGINT` and `SIGQUIT` to the target too, so they are the target's business;
//! `SIGTERM` and `SIGHUP` are passed on; and a target that hears nothing any more can be killed by
//! pressing Ctrl-C three times in two seconds.

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// This many Ctrl-C ...
const IMPATIENT: usize = 3;
/// ... within this time are an order to kill: slow enough for a hand, too fast for a user of an
/// interactive program whose lines Ctrl-C merely clears.
const WITHIN: Duration = Duration::from_secs(2);

/// This process is killed when the thread that started it ends, until it is another program with more rights.
/// `false` if its parent is not this one any more.
pub fn end_with_parent(parent: u32) -> bool {
    // Where the kernel cannot, nothing is lost but that.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    rustix::process::getppid().is_some_and(|now| now.as_raw_nonzero().get() as u32 == parent)
}

/// The command's signals, caught. (Caught, not ignored: ignoring would be inherited.)
pub(crate) struct Signals {
    caught: signal_hook::iterator::Signals,
    interrupts: VecDeque<Instant>,
}

impl Signals {
    /// Takes them over; those the command was started with ignored stay ignored, for the target
    /// too (`nohup`, background jobs of a script).
    pub(crate) fn take() -> io::Result<Self> {
        let ignored = ignored_signals();
        let ours = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
        let taken = ours.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
        Ok(Signals {
            caught: signal_hook::iterator::Signals::new(taken)?,
            interrupts: VecDeque::new(),
        })
    }

    /// What has to be sent to the target because of what has come since the last call.
    pub(crate) fn take_pending(&mut self) -> Vec<Signal> {
        let mut signals = Vec::new();
        for signal in self.caught.pending() {
            match signal {
                SIGHUP => signals.push(Signal::HUP),
                SIGTERM => signals.push(Signal::TERM),
                SIGINT if impatient(&mut self.interrupts, Instant::now()) => {
                    signals.push(Signal::KILL);
                }
                _ => {}
            }
        }
        signals
    }
}

/// Notes an interrupt; true when it is one too many.
fn impatient(interrupts: &mut VecDeque<Instant>, now: Instant) -> bool {
    interrupts.push_back(now);
    while interrupts.front().is_some_and(|first| now.duration_since(*first) > WITHIN) {
        interrupts.pop_front();
    }
    interrupts.len() >= IMPATIENT
}

/// The mask of signals this process ignores; none where it cannot be known.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    parse_ignored(&status).unwrap_or(0)
}

fn parse_ignored(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_interrupts_in_a_row_are_an_order() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut interrupts = VecDeque::new();
        let presses: Vec<bool> = [0, 1500, 3000, 3400, 4000]
            .into_iter()
            .map(|ms| impatient(&mut interrupts, after(ms)))
            .collect();
        assert_eq!(presses, [false, false, false, true, true]);
    }

    #[test]
    fn the_ignored_signals_are_read_from_the_kernel() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001003\nSigCgt:\t0\n";
        assert_eq!(parse_ignored(status), Some(0x1003));
        assert_eq!(parse_ignored(""), None);
    }
}

//! Progress: is there anybody who does not merely go round in circles?
//!
//! A thread that spins comes by the same branch again with the same registers and the same words on top of
//! its stack. So this is looked at now and then, where a thread has computed for a while, yields,
//! sleeps or waits. Everything else that a thread does is news. While nothing new is seen of any thread for
//! a while, all that the target can write is compared with what it was before; only if that is the same,
//! too, nobody gets on. Then time passes until the next deadline, as if nobody could run, and if there is
//! none, or an hour of it has changed nothing, the target makes no progress.

use super::table::{Table, Wait};
use super::{Scheduler, State};
use crate::memory::written;
use crate::monitor::modules;
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::{self, MachineState};
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Quanta without news before memory is compared for the first time.
const DULL: u64 = 500;
/// And before it is said that there is no progress: some 25 million branches.
const HOPELESS: u64 = 5_000;
/// And this much time, if time could change something: nanoseconds.
const LONG_ENOUGH: u64 = 3_600_000_000_000;
/// Looks at each thread that could run, at least.
const LOOKS: u64 = 100;
/// One look in so many quanta while there is news.
const RARELY: u64 = 16;
/// What is kept of each thread: more than a spin with a pause in it has states.
const KEPT: usize = 64;
/// Bytes of the stack: what is below its pointer and what is above.
const BELOW: u64 = 128;
const WINDOW: usize = 1024;

/// How a thread was when it was looked at.
#[derive(Debug, Default)]
pub struct Seen {
    states: Vec<u64>,
    next: usize,
    /// Looks at it since there was news of anybody.
    looks: u64,
    /// Its stack pointer then.
    sp: u64,
}

impl Seen {
    /// Was it like this before?
    fn is_known(&mut self, state: u64) -> bool {
        if self.states.contains(&state) {
            return true;
        }
        if self.states.len() < KEPT {
            self.states.push(state);
        } else {
            self.states[self.next] = state;
            self.next = (self.next + 1) % KEPT;
        }
        false
    }
}

/// Since when there has been nothing new.
#[derive(Debug)]
pub struct Progress {
    /// Quanta.
    dull: u64,
    /// What the clock showed at the last news.
    since: u64,
    /// Quanta since the last look.
    unseen: u64,
    /// What memory was when a thread was like this, and after how many dull quanta.
    before: Option<Memory>,
    /// It was the same later.
    stands_still: bool,
    /// Quanta to be dull before memory is looked at: more each time that it had changed.
    patience: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    look: u64,
    digest: u64,
    dull: u64,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { dull: 0, since: 0, unseen: 0, before: None, stands_still: false, patience: DULL }
    }
}

impl State {
    /// Somebody has done something that is more than to spin.
    pub fn news(&mut self) {
        let progress = &mut self.progress;
        if progress.dull != 0 {
            (progress.dull, progress.before, progress.stands_still) = (0, None, false);
            self.table.iter_mut().for_each(|entry| entry.seen.looks = 0);
        }
        progress.since = self.clock.now();
    }

    /// Does nobody get on, though somebody could run? And does nobody wait for those outside, who may?
    pub fn stands_still(&self) -> bool {
        self.progress.stands_still && !self.table.iter().any(|entry| entry.wait.is_outside())
    }

    /// Is there no hope any more?
    pub fn is_hopeless(&self, deadline: Option<u64>) -> bool {
        let passed = self.clock.now().saturating_sub(self.progress.since);
        self.progress.dull >= HOPELESS
            && self.stands_still()
            && (deadline.is_none() || passed >= LONG_ENOUGH)
            // Who computes gets on towards that.
            && !self.timers.count_work()
            && all_were_looked_at(&self.table)
    }

    /// A thread was seen as it is now before. Has memory changed meanwhile?
    fn compare(&mut self, look: u64) {
        let progress = &self.progress;
        let is_time = match progress.before {
            None => progress.dull >= progress.patience,
            Some(before) => before.look == look && progress.dull >= before.dull + progress.patience,
        };
        if !is_time || progress.stands_still {
            return;
        }
        let live = self.table.iter().filter(|e| matches!(e.wait, Wait::Nothing));
        let above = |sp: u64| sp.wrapping_sub(BELOW).wrapping_add(WINDOW as u64);
        let stacks: Vec<u64> = live.map(|e| e.seen.sp).filter(|sp| *sp != 0).map(above).collect();
        let progress = &mut self.progress;
        match (written::digest(&stacks), progress.before) {
            (Some(digest), None) => {
                progress.before = Some(Memory { look, digest, dull: progress.dull });
            }
            (Some(digest), Some(before)) if digest == before.digest => progress.stands_still = true,
            _ => {
                progress.patience = progress.patience.saturating_mul(2);
                self.news();
            }
        }
    }
}

fn all_were_looked_at(table: &Table) -> bool {
    let mut able = table.iter().filter(|entry| matches!(entry.wait, Wait::Nothing));
    able.all(|entry| entry.seen.looks >= LOOKS)
}

impl Scheduler {
    /// A thread has computed for so many quanta: is it time to look at it?
    pub(super) fn is_to_look(&self, quanta: u64) -> bool {
        let mut state = self.lock();
        state.progress.unseen += quanta;
        let is_time = state.progress.dull != 0 || state.progress.unseen >= RARELY;
        if is_time {
            state.progress.unseen = 0;
        }
        is_time
    }

    /// Looks at a thread that has computed for so many quanta, or yields, sleeps or waits, at `pc`.
    pub(super) fn look(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        (pc, registers): (u64, &MachineState),
        quanta: u64,
    ) {
        let look = digest(pc, registers);
        let (sp, bp) = (registers.general[4], registers.general[5]);
        let mut state = self.lock();
        let Some(entry) = state.entry(thread.id) else { return };
        if !entry.seen.is_known(look) {
            return state.news();
        }
        entry.seen.looks += quanta;
        entry.seen.sp = sp;
        entry.spot = Some(modules::spot(probe, thread, pc, sp, bp));
        state.progress.dull += quanta;
        state.compare(look);
    }
}

fn digest(pc: u64, registers: &MachineState) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(pc);
    registers.general.iter().for_each(|register| hasher.write_u64(*register));
    let mut stack = [0; WINDOW];
    let length = process::read(registers.general[4].wrapping_sub(BELOW), &mut stack);
    hasher.write(&stack[..length]);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_known_until_too_much_else_was() {
        let mut seen = Seen::default();
        assert!(!seen.is_known(1));
        assert!(seen.is_known(1));
        assert!((2..2 + KEPT as u64).all(|state| !seen.is_known(state)));
        assert!(!seen.is_known(1));
    }
}

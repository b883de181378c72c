//! What the target sees of time.
//!
//! Virtual time begins at the same moment in every execution, passes a little with every scheduling
//! point and every look at a clock (so that a loop that waits for a time to come ends), and
//! jumps when nobody can run before a deadline. What it did not jump is processor time.

use crate::memory::kernel;
use raddle_wire::options::TimeMode;

/// Nanoseconds a scheduling point takes.
const POINT: u64 = 100;
/// Nanoseconds a look at a clock takes.
const LOOK: u64 = 1_000;
/// Nanoseconds that a thread computes without a point, at most: what some five thousand branches take.
const WORK: u64 = 5_000;
/// What the clocks show at the start: a day in 2025, and a machine up for a quarter of an hour.
pub const REAL_START: u64 = 1_750_000_000_000_000_000;
pub const MONOTONIC_START: u64 = 1_000_000_000_000;

/// What a clock of the kernel's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// What passes.
    Time,
    /// What threads compute.
    Work,
}

impl Scale {
    /// Negative numbers are clocks of processor time, of a process or thread.
    pub fn of(clock: i32) -> Scale {
        match clock {
            libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => Scale::Work,
            clock if clock < 0 => Scale::Work,
            _ => Scale::Time,
        }
    }
}

/// A clock.
#[derive(Debug)]
pub struct Clock {
    mode: TimeMode,
    /// Virtual nanoseconds since the start.
    passed: u64,
    /// How many of them everybody has waited: the rest is processor time.
    waited: u64,
}

impl Clock {
    pub fn new(mode: TimeMode) -> Clock {
        Clock { mode, passed: 0, waited: 0 }
    }

    pub fn is_virtual(&self) -> bool {
        self.mode == TimeMode::Virtual
    }

    /// Now, on the scale of deadlines.
    pub fn now(&self) -> u64 {
        match self.mode {
            TimeMode::Virtual => self.passed,
            TimeMode::Real => kernel::clock(libc::CLOCK_MONOTONIC),
        }
    }

    /// A scheduling point has passed.
    pub fn tick(&mut self) {
        self.passed += POINT;
    }

    /// A thread has computed for a while.
    pub fn work(&mut self) {
        self.passed += WORK;
    }

    /// What a clock of the kernel's shows; time for the look included.
    pub fn look(&mut self, id: i32) -> u64 {
        self.passed += LOOK;
        match Scale::of(id) {
            Scale::Time => self.passed + start(id),
            Scale::Work => self.worked(),
        }
    }

    /// Processor time used.
    pub fn worked(&self) -> u64 {
        self.passed - self.waited
    }

    /// Now, on this scale. Processor time of real time is the kernel's to tell.
    pub fn on(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Time => self.now(),
            Scale::Work => self.worked(),
        }
    }

    /// Time passes until then, virtually.
    pub fn pass_to(&mut self, deadline: u64) {
        let skipped = deadline.saturating_sub(self.passed);
        self.passed += skipped;
        self.waited += skipped;
    }

    /// A time that a clock of the kernel's will show, on the scale of deadlines.
    pub fn deadline(&self, id: i32, shown: u64) -> u64 {
        match self.mode {
            TimeMode::Virtual => shown.saturating_sub(start(id)),
            TimeMode::Real => {
                let left = shown.saturating_sub(kernel::clock(id));
                kernel::clock(libc::CLOCK_MONOTONIC).saturating_add(left)
            }
        }
    }

    /// After so much time from now, on the scale of deadlines.
    pub fn after(&self, nanoseconds: u64) -> u64 {
        self.now().saturating_add(nanoseconds)
    }
}

fn start(id: i32) -> u64 {
    match id {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => REAL_START,
        id if Scale::of(id) == Scale::Work => 0,
        _ => MONOTONIC_START,
    }
}

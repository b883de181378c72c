//! A lock for a few instructions.
//!
//! What a thread does to a lock or a channel that it follows takes some fifty nanoseconds. A mutex of the standard library costs two
//! atomic exchanges, each of which waits for all that was stored before; to open a latch takes a plain store. It pays as
//! nobody waits, and hardly anybody does: what is behind a latch is a thread's own, or one object's.
//!
//! Who does have to wait tries for a while and then sleeps for a moment, so that a holder that does not run can: also one
//! of lower real-time priority. Nobody is woken, so no wake-up is lost.

use spin::mutex::{SpinMutex, SpinMutexGuard};
use std::time::Duration;

/// So often who waits tries, about a microsecond: a latch is held for less, unless its holder does not run.
const TRIES: u32 = 100;
/// And then sleeps.
const NAP: Duration = Duration::from_micros(50);

/// See the module.
#[derive(Debug, Default)]
pub struct Latch<T>(SpinMutex<T>);

impl<T> Latch<T> {
    /// What is behind it, until the guard is dropped.
    #[inline]
    pub fn hold(&self) -> SpinMutexGuard<'_, T> {
        match self.0.try_lock() {
            Some(held) => held,
            None => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> SpinMutexGuard<'_, T> {
        let mut patience = Patience::default();
        loop {
            patience.wait();
            if let Some(held) = self.0.try_lock() {
                return held;
            }
        }
    }
}

/// Waiting for somebody who needs a moment, if he runs.
#[derive(Debug, Default)]
pub struct Patience(u32);

impl Patience {
    /// For a moment, and after many for a longer one.
    pub fn wait(&mut self) {
        self.0 = self.0.wrapping_add(1);
        match self.0.is_multiple_of(TRIES) {
            true => std::thread::sleep(NAP),
            false => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    #[test]
    fn one_holds_it_at_a_time() {
        let latch = Latch::<(u64, u64)>::default();
        scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..20_000 {
                        let mut held = latch.hold();
                        assert_eq!(held.0, held.1);
                        held.0 += 1;
                        std::hint::black_box(&mut held);
                        held.1 += 1;
                    }
                });
            }
        });
        assert_eq!(*latch.hold(), (80_000, 80_000));
    }

    #[test]
    fn who_waits_for_one_who_sleeps_gets_it() {
        let latch = Latch::<bool>::default();
        let held = latch.hold();
        scope(|threads| {
            threads.spawn(|| *latch.hold() = true);
            std::thread::sleep(Duration::from_millis(5));
            drop(held);
        });
        assert!(*latch.hold());
    }
}

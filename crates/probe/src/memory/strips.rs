//! Strips: where granules whose bytes are touched one by one have a cell for each byte ([`raddle_analyse::fast::strips`]).
//!
//! They lie side by side in one reservation, are counted, and are used again when the memory whose granules had them has been given
//! back. Not at once: somebody may still be reading. There is an end to them, because a strip is eight times as large as what it stands
//! for; where there are no more, granules are not split.

use raddle_analyse::fast::Side;
use raddle_analyse::fast::access::AccessId;
use raddle_analyse::fast::cell::GRANULE;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Bytes of a strip, as a power of two.
pub const STRIP_BITS: u32 = 6;
const _: () = assert!(1 << STRIP_BITS == GRANULE * 8);
/// So many there are at most: 16 MiB of memory, for 2 MiB of the target's.
const STRIPS: u32 = 1 << 18;
/// So many that were given back wait until the first is used again.
const WAITING: usize = 1 << 12;

/// All strips.
#[derive(Debug)]
pub struct Strips {
    start: u64,
    /// Was there ever one? Most programs have none, and who gives memory back need not ask.
    any: AtomicBool,
    pool: Mutex<Pool>,
}

/// Which of them are in use.
#[derive(Debug, Default)]
struct Pool {
    /// How many were ever opened.
    opened: u32,
    /// Those given back, the oldest first.
    free: VecDeque<AccessId>,
    /// By granule, and slot and side.
    of: BTreeMap<(u64, usize), AccessId>,
}

impl Pool {
    fn next(&mut self) -> Option<AccessId> {
        if self.free.len() > WAITING {
            return self.free.pop_front();
        }
        let strip = AccessId::of_strip(self.opened).filter(|_| self.opened < STRIPS)?;
        self.opened += 1;
        Some(strip)
    }
}

/// Which of a slot's planes.
fn plane(slot: usize, side: Side) -> usize {
    slot * 2 + side as usize
}

impl Strips {
    /// Here.
    pub fn new(start: u64) -> Strips {
        Strips { start, any: AtomicBool::new(false), pool: Mutex::default() }
    }

    /// Where they are, and how many bytes all take.
    pub fn memory(&self) -> (u64, u64) {
        let last = AccessId::of_strip(STRIPS - 1).map_or(0, AccessId::strips_before);
        (self.start, (u64::from(last) + 1) << STRIP_BITS)
    }

    /// The same, with none in use.
    pub fn inherit(&self) -> Strips {
        Strips::new(self.start)
    }

    /// The cell of a byte.
    pub fn cell(&self, strip: AccessId, byte: u32) -> &AtomicU64 {
        // SAFETY: strips are numbered by `next`, and their memory is reserved, zeroed and never unmapped; aligned.
        unsafe { AtomicU64::from_ptr(self.address(strip, byte) as *mut u64) }
    }

    fn address(&self, strip: AccessId, byte: u32) -> u64 {
        self.start + (u64::from(strip.strips_before()) << STRIP_BITS) + u64::from(byte % 8) * 8
    }

    /// That of a granule of a slot; opens one if there is none. What is in it then is left from another: who splits the granule
    /// writes all of it. Nothing if there are no more.
    pub fn open(&self, slot: usize, side: Side, granule: u64) -> Option<AccessId> {
        let mut pool = self.pool();
        let key = (granule, plane(slot, side));
        if let Some(strip) = pool.of.get(&key) {
            return Some(*strip);
        }
        let strip = pool.next()?;
        pool.of.insert(key, strip);
        self.any.store(true, Ordering::Release);
        Some(strip)
    }

    /// Nobody has done anything to these granules any more, and their cells say so.
    pub fn close(&self, granules: Range<u64>) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut pool = self.pool();
        let keys = (granules.start, 0)..(granules.end, 0);
        let closed: Vec<_> = pool.of.range(keys).map(|(key, strip)| (*key, *strip)).collect();
        for (key, strip) in closed {
            pool.of.remove(&key);
            pool.free.push_back(strip);
        }
    }

    /// A slot has done nothing any more.
    pub fn close_slot(&self, slot: usize) {
        let mut pool = self.pool();
        let Pool { free, of, .. } = &mut *pool;
        of.retain(|(_, at), strip| {
            let stays = at / 2 != slot;
            if !stays {
                free.push_back(*strip);
            }
            stays
        });
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Reservation;

    #[test]
    fn a_granule_has_one_strip_until_its_memory_is_given_back() {
        let memory = Reservation::new(1 << STRIP_BITS << 4).unwrap();
        let strips = Strips::new(memory.start());
        let wanted = [(0, Side::Write, 100), (0, Side::Read, 100), (3, Side::Write, 101)];
        let opened = wanted.map(|(slot, side, granule)| strips.open(slot, side, granule));
        assert_eq!(strips.open(0, Side::Read, 100), opened[1]);
        assert_ne!(strips.open(0, Side::Write, 200), opened[1]);
        assert!(opened.iter().flatten().all(|strip| strip.is_strip()));
        let left = || strips.pool().of.keys().copied().collect::<Vec<_>>();
        strips.close(100..101);
        assert_eq!(left(), [(101, plane(3, Side::Write)), (200, plane(0, Side::Write))]);
        strips.close_slot(3);
        assert_eq!(left(), [(200, plane(0, Side::Write))]);
        // Somebody may still be reading those.
        let fresh = strips.pool().next();
        assert!(!opened.contains(&fresh));
        strips.pool().free.extend(std::iter::repeat_n(AccessId::default(), WAITING));
        assert_eq!(strips.pool().next(), opened[0]);
    }

    #[test]
    fn strips_lie_within_their_memory() {
        let strips = Strips::new(1 << 40);
        let (start, length) = strips.memory();
        for number in [0, 1, 4080, STRIPS - 1] {
            let strip = AccessId::of_strip(number).unwrap();
            let last = strips.address(strip, GRANULE as u32 - 1);
            assert!(start <= last && last + 8 <= start + length, "{number}");
        }
    }
}

//! Where something may lie that is more than memory.
//!
//! A block of the heap that comes or goes takes with it the locks, conditions and whatever else lay there, and these are kept behind the
//! detector's lock. In most blocks nothing of the sort ever lay: here, that is known without a lock. A line that an event has
//! named is remembered for good, and with it those that share its bit: what is said to be empty is empty, what is said to be inhabited need
//! not be.

use crate::fast::cell::LINE;
use raddle_model::{EventKind, SyncObject};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many bits, as a power of two: 64 KiB.
const BITS: u32 = 19;

/// See the module.
#[derive(Debug)]
pub struct Inhabited(Box<[AtomicU64]>);

impl Default for Inhabited {
    fn default() -> Inhabited {
        Inhabited((0..1 << (BITS - u64::BITS.ilog2())).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Inhabited {
    /// Something lies here.
    pub fn mark(&self, bytes: Range<u64>) {
        let Some(lines) = few_lines(&bytes) else {
            return self.0.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        };
        for (word, bit) in lines.map(place) {
            if self.0[word].load(Ordering::Relaxed) & bit == 0 {
                self.0[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// May something lie here?
    pub fn is_anywhere_in(&self, bytes: Range<u64>) -> bool {
        few_lines(&bytes).is_none_or(|mut lines| {
            lines.any(|line| {
                let (word, bit) = place(line);
                self.0[word].load(Ordering::Relaxed) & bit != 0
            })
        })
    }
}

/// The lines in which some bytes lie, unless there are so many that most bits are some line's.
fn few_lines(bytes: &Range<u64>) -> Option<Range<u64>> {
    let lines = bytes.start / LINE..bytes.end.div_ceil(LINE);
    (lines.end.saturating_sub(lines.start) < 1 << BITS).then_some(lines)
}

/// The word and the bit of a line.
fn place(line: u64) -> (usize, u64) {
    // By the golden ratio (Knuth 6.4): lines one behind the other have bits of their own.
    let bit = line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - BITS);
    (bit as usize / u64::BITS as usize, 1 << (bit % u64::from(u64::BITS)))
}

/// Where there is something besides memory, by what an event says. What accesses make of memory is known by its lines
/// ([`super::protocol::SPECIAL`]) unless they update it.
pub fn named(kind: &EventKind) -> SmallVec<[Range<u64>; 2]> {
    use EventKind::*;
    let at = |address: u64| address..address.saturating_add(1);
    match *kind {
        LockCreated { lock }
        | LockDestroyed { lock }
        | LockRequested { lock, .. }
        | LockAcquired { lock, .. }
        | LockFailed { lock, .. }
        | LockReleased { lock, .. }
        | LockHandsOver { lock } => smallvec![at(lock.0)],
        ConditionSignal { condition, .. } | ConditionLoopLeft { condition } => {
            smallvec![at(condition.0)]
        }
        ConditionWaitBegin { condition, lock } | ConditionWaitEnd { condition, lock, .. } => {
            smallvec![at(condition.0), at(lock.0)]
        }
        BarrierCreated { barrier, .. } | BarrierEnter { barrier } | BarrierLeave { barrier } => {
            smallvec![at(barrier.0)]
        }
        SemaphoreCreated { semaphore, .. }
        | SemaphorePost { semaphore }
        | SemaphoreAcquired { semaphore } => smallvec![at(semaphore.0)],
        OnceBegin { once } | OnceEnd { once, .. } | OncePassed { once } => smallvec![at(once.0)],
        TeamFork { team } | TeamBodyBegin { team } | TeamBodyEnd { team } | TeamJoin { team } => {
            smallvec![at(team.0)]
        }
        Release { object } | Acquire { object } => match object {
            SyncObject::Address(address) | SyncObject::Queue(address) => smallvec![at(address.0)],
            SyncObject::Channel(_) | SyncObject::Signal(_) | SyncObject::ProcessEnd => smallvec![],
        },
        FutexWait { address, .. } | FutexWaitEnd { address, .. } | FutexWake { address, .. } => {
            smallvec![at(address.0)]
        }
        Access { kind, address, size } if kind.is_atomic() => {
            smallvec![address.0..address.0.saturating_add(u64::from(size))]
        }
        AtomicUpdated { address, size }
        | BenignRace { address, size }
        | TransactionAccess { address, size, .. } => {
            smallvec![address.0..address.0.saturating_add(size)]
        }
        // Memory alone, or nothing that lies anywhere.
        Access { .. }
        | Range { .. }
        | Allocate { .. }
        | Free { .. }
        | MemoryRenewed { .. }
        | ThreadCreate { .. }
        | ThreadStart { .. }
        | ThreadName { .. }
        | ThreadExit
        | ThreadCreated { .. }
        | ThreadJoined { .. }
        | ThreadDetached { .. }
        | ThreadCancelled { .. }
        | TaskCreate { .. }
        | TaskBegin { .. }
        | TaskEnd { .. }
        | TaskWaited
        | IgnoreBegin { .. }
        | IgnoreEnd { .. }
        | DetectionSwitched { .. }
        | FunctionEnter { .. }
        | FunctionExit { .. }
        | TransactionStart
        | TransactionCommit
        | TransactionAbort
        | ModuleLoad { .. }
        | ModuleUnload { .. }
        | SignalDelivered { .. }
        | Output { .. }
        | ProcessForked { .. }
        | ProcessExec { .. }
        | ProcessEnd { .. } => smallvec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::{AccessKind, Address};

    #[test]
    fn what_was_named_is_inhabited_and_its_neighbours_are_not() {
        let all = Inhabited::default();
        assert!(!all.is_anywhere_in(0..1 << 20));
        let lock = Address(0x5555_0040);
        named(&EventKind::LockCreated { lock }).into_iter().for_each(|bytes| all.mark(bytes));
        assert!(all.is_anywhere_in(0x5555_0000..0x5555_1000));
        assert!(all.is_anywhere_in(0x5555_0070..0x5555_0071), "its line");
        assert!(!all.is_anywhere_in(0x5555_0000..0x5555_0040));
        assert!(!all.is_anywhere_in(0x5555_0080..0x5555_1000));
        all.mark(0..u64::MAX);
        let everywhere = (0..1 << 20).map(|line| line * LINE);
        assert!(everywhere.into_iter().all(|at| all.is_anywhere_in(at..at + 1)));
    }

    #[test]
    fn plain_accesses_leave_memory_uninhabited() {
        let access = |kind| EventKind::Access { kind, address: Address(64), size: 8 };
        assert!(named(&access(AccessKind::Write)).is_empty());
        assert_eq!(named(&access(AccessKind::AtomicUpdate))[0], 64..72);
    }
}

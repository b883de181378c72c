//! Requests that a program makes to Valgrind's tools (`valgrind.h`, `helgrind.h`, `drd.h`): what it
//! says about its synchronisation by an instruction sequence that does nothing natively.
//!
//! rax holds the address of six words: the request and its arguments. Requests to other tools
//! are most common and mean nothing here; no request is answered, so the program goes on believing
//! that no tool watches it.

use crate::memory::target;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_model::{Address, EventKind, Ignored, LockMode, SyncObject};

/// `VG_USERREQ_TOOL_BASE('H', 'G')`, and where Helgrind's internal requests begin.
const HELGRIND: u64 = 0x4847_0000;
const INTERNAL: u64 = HELGRIND + 256;
/// `VG_USERREQ_TOOL_BASE('D', 'R')`.
const DRD: u64 = 0x4452_0000;

// Helgrind's internal requests that programs make through its macros, by their distance from
// `INTERNAL`. DRD's for locks and happens-before have the same numbers.
const MUTEX_INIT_POST: u64 = 3;
const MUTEX_DESTROY_PRE: u64 = 4;
const MUTEX_UNLOCK_PRE: u64 = 5;
const MUTEX_ACQUIRE_POST: u64 = 8;
const RWLOCK_INIT_POST: u64 = 14;
const RWLOCK_DESTROY_PRE: u64 = 15;
const RWLOCK_ACQUIRED: u64 = 17;
const RWLOCK_RELEASED: u64 = 18;
const SEM_INIT_POST: u64 = 20;
const SEM_RELEASED: u64 = 22;
const SEM_ACQUIRED: u64 = 23;
const USERSO_SEND_PRE: u64 = 33;
const USERSO_RECV_POST: u64 = 34;
const MAKE_UNTRACKED: u64 = 39;
const MAKE_TRACKED: u64 = 40;

// DRD's own, by their distance from `DRD`.
const START_SUPPRESSION: u64 = 2;
const FINISH_SUPPRESSION: u64 = 3;
const RECORD_LOADS: u64 = 6;
const RECORD_STORES: u64 = 7;
const DRD_SEM_INIT_PRE: u64 = 10;
const DRD_SEM_WAIT_POST: u64 = 13;
const DRD_SEM_POST_PRE: u64 = 14;

/// The program has made the request whose words are at `block`.
pub fn asked(probe: &Probe, thread: &mut ThreadState, block: u64, spot: Spot) {
    let word = |i: u64| target::word(block.wrapping_add(8 * i)).unwrap_or(0);
    let (first, second) = (word(1), word(2));
    let address = Address(first);
    let object = SyncObject::Address(address);
    let mode = if second as u32 != 0 { LockMode::Exclusive } else { LockMode::Shared };
    let event = match word(0) {
        HELGRIND => EventKind::MemoryRenewed { address, size: second },
        request @ INTERNAL.. if request < INTERNAL + 256 => match request - INTERNAL {
            MUTEX_INIT_POST | RWLOCK_INIT_POST => EventKind::LockCreated { lock: address },
            MUTEX_DESTROY_PRE | RWLOCK_DESTROY_PRE => EventKind::LockDestroyed { lock: address },
            MUTEX_UNLOCK_PRE => {
                EventKind::LockReleased { lock: address, mode: Some(LockMode::Exclusive) }
            }
            MUTEX_ACQUIRE_POST => {
                EventKind::LockAcquired { lock: address, mode: LockMode::Exclusive }
            }
            RWLOCK_ACQUIRED => EventKind::LockAcquired { lock: address, mode },
            RWLOCK_RELEASED => EventKind::LockReleased { lock: address, mode: None },
            SEM_INIT_POST => EventKind::SemaphoreCreated { semaphore: address, value: second },
            SEM_RELEASED => EventKind::SemaphorePost { semaphore: address },
            SEM_ACQUIRED => EventKind::SemaphoreAcquired { semaphore: address },
            USERSO_SEND_PRE => EventKind::Release { object },
            USERSO_RECV_POST => EventKind::Acquire { object },
            MAKE_UNTRACKED => EventKind::BenignRace { address, size: second },
            MAKE_TRACKED => EventKind::MemoryRenewed { address, size: second },
            _ => return,
        },
        request @ DRD.. if request < DRD + 256 => match request - DRD {
            START_SUPPRESSION => EventKind::BenignRace { address, size: second },
            FINISH_SUPPRESSION => EventKind::MemoryRenewed { address, size: second },
            RECORD_LOADS => ignore(Ignored::Reads, first),
            RECORD_STORES => ignore(Ignored::Writes, first),
            DRD_SEM_INIT_PRE => EventKind::SemaphoreCreated { semaphore: address, value: second },
            DRD_SEM_WAIT_POST => EventKind::SemaphoreAcquired { semaphore: address },
            DRD_SEM_POST_PRE => EventKind::SemaphorePost { semaphore: address },
            _ => return,
        },
        _ => return,
    };
    thread.emit(probe, spot, event);
}

/// DRD is told whether to record, which is the opposite of ignoring.
fn ignore(what: Ignored, record: u64) -> EventKind {
    match record as u32 {
        0 => EventKind::IgnoreBegin { what },
        _ => EventKind::IgnoreEnd { what },
    }
}

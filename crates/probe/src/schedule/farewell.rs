//! What the kernel does for a thread that has ended: tells who waits for its end, and for the locks
//! it died with (`set_tid_address`, `set_robust_list`).

use super::table::{Entry, Table};
use crate::memory::target;
use raddle_dynamorio::process;

/// The kernel's own limit for a list of robust locks.
const ROBUST_LIMIT: usize = 2048;
/// Bits of a robust lock's word: waiters, the owner died, the owner.
const WAITERS: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;
const OWNER: u32 = OWNER_DIED - 1;

/// The thread has ended, whose number in its locks this is.
pub fn let_go(table: &mut Table, entry: &Entry, shown: u32) {
    give_up_locks(table, entry, shown);
    if entry.clear_id != 0 && process::write(entry.clear_id, &0u32.to_le_bytes()) {
        table.wake_futex(entry.clear_id, 1, u32::MAX);
    }
}

/// struct robust_list_head: the first element, the offset from an element to its lock's word, the
/// element of an operation under way.
fn give_up_locks(table: &mut Table, entry: &Entry, shown: u32) {
    let head = entry.robust;
    let field = |i: u64| target::word(head + 8 * i);
    let (Some(first), Some(offset), Some(under_way)) = (field(0), field(1), field(2)) else {
        return;
    };
    let word_of = |element: u64| (element & !1).wrapping_add(offset);
    let mut element = first;
    for _ in 0..ROBUST_LIMIT {
        if element & !1 == head || element == 0 {
            break;
        }
        if element & !1 != under_way & !1 {
            give_up(table, shown, word_of(element));
        }
        match target::word(element & !1) {
            Some(next) => element = next,
            None => break,
        }
    }
    if under_way & !1 != 0 {
        give_up(table, shown, word_of(under_way));
    }
}

fn give_up(table: &mut Table, shown: u32, address: u64) {
    let Some(word) = target::half(address).filter(|word| word & OWNER == shown) else { return };
    let orphaned = word & WAITERS | OWNER_DIED;
    if process::write(address, &orphaned.to_le_bytes()) && word & WAITERS != 0 {
        table.wake_futex(address, 1, u32::MAX);
    }
}

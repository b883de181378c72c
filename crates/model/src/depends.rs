//! What OpenMP tasks depend on (`depend` clauses), as the compiler tells the library.
//!
//! A task that writes something (`out`, `inout`) comes after all tasks made before it that read or write
//! it, one that reads it (`in`) after all that write it. The library lets a task begin only when those
//! have ended, so it is enough that a task releases what it depends on when it ends and acquires it when
//! it begins. A task is known by its function only, because libraries copy its data: tasks of one
//! function depend on all that any of them does. That can hide a race, and invents none.

use crate::event::{EventKind, SyncObject};
use crate::hook::Dependences;
use crate::ids::Address;

/// So many are told apart; a function whose tasks depend on more depends on everything.
const MOST: usize = 64;
/// `GOMP_TASK_FLAG_DEPEND`.
const GOMP_DEPENDS: u64 = 1 << 3;
/// Of libomp's flags: written, in whatever way.
const KMP_WRITES: u64 = 0b1110;
/// Bytes of one of libomp's records.
const KMP_RECORD: u64 = 24;
/// Those who only read an address release to this one instead: no program has memory there.
const READERS: u64 = 1 << 63;
/// Every task releases to this one, too.
const ANYTHING: u64 = 1;

/// Something a task depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependence {
    /// By its address.
    pub address: u64,
    /// `out`, `inout` and the like.
    pub writes: bool,
}

/// All that tasks of one function depend on.
#[derive(Debug, Default)]
pub struct Depends {
    some: Vec<Dependence>,
    /// There are more.
    many: bool,
}

impl Depends {
    /// Tasks of the function depend on these, too.
    pub fn add(&mut self, more: &[Dependence]) {
        for dependence in more.iter().filter(|d| d.address != 0) {
            if self.some.contains(dependence) {
                continue;
            }
            if self.some.len() < MOST {
                self.some.push(*dependence);
            } else {
                self.many = true;
            }
        }
    }

    /// Not all of them are told apart.
    pub fn is_many(&self) -> bool {
        self.many
    }

    /// What orders a task of the function when it begins, or ends. `many`: somewhere in the program not
    /// all dependences are told apart.
    pub fn events(&self, end: bool, many: bool) -> Vec<EventKind> {
        if self.some.is_empty() {
            return Vec::new();
        }
        let object = |address| SyncObject::Address(Address(address));
        let event = |address| match end {
            true => EventKind::Release { object: object(address) },
            false => EventKind::Acquire { object: object(address) },
        };
        let mut events = Vec::new();
        if end || many {
            events.push(event(ANYTHING));
        }
        for Dependence { address, writes } in &self.some {
            if *writes || !end {
                events.push(event(*address));
            }
            if *writes != end {
                events.push(event(*address | READERS));
            }
        }
        events
    }
}

/// What the task that is being made depends on. `sp`: the stack pointer around the call, where
/// arguments beyond the sixth lie; `word` reads memory.
pub fn read(
    form: Dependences,
    arguments: &[u64; 6],
    sp: u64,
    word: impl Fn(u64) -> u64,
) -> Vec<Dependence> {
    match form {
        Dependences::Gomp => {
            let (flags, list) = (word(sp), word(sp + 8));
            if flags & GOMP_DEPENDS == 0 || list == 0 {
                return Vec::new();
            }
            // The old form: all, written, addresses. The new: 0, all, written, two more numbers.
            let (all, written, first) = match word(list) {
                0 => (word(list + 8), word(list + 16), list + 40),
                all => (all, word(list + 8), list + 16),
            };
            let one = |n: u64| Dependence { address: word(first + 8 * n), writes: n < written };
            (0..all.min(MOST as u64 + 1)).map(one).collect()
        }
        Dependences::Kmp => {
            let (count, list) = (arguments[3] & u64::from(u32::MAX), arguments[4]);
            let one = |n: u64| {
                let record = list + n * KMP_RECORD;
                Dependence { address: word(record), writes: word(record + 16) & KMP_WRITES != 0 }
            };
            (0..count.min(MOST as u64 + 1)).map(one).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Dependence = Dependence { address: 0x100, writes: false };
    const WRITTEN: Dependence = Dependence { address: 0x200, writes: true };

    fn events(depends: &[Dependence], end: bool) -> Vec<EventKind> {
        let mut all = Depends::default();
        all.add(depends);
        all.events(end, all.is_many())
    }

    fn object(address: u64) -> SyncObject {
        SyncObject::Address(Address(address))
    }

    /// Memory that holds these words from `start` on.
    fn memory(start: u64, words: &[u64]) -> impl Fn(u64) -> u64 {
        move |at| {
            at.checked_sub(start).and_then(|n| words.get(n as usize / 8)).copied().unwrap_or(0)
        }
    }

    #[test]
    fn readers_come_after_writers_and_not_after_each_other() {
        assert_eq!(events(&[READ], false), [EventKind::Acquire { object: object(0x100) }]);
        let [_, released] = events(&[READ], true).try_into().unwrap();
        assert_eq!(released, EventKind::Release { object: object(0x100 | READERS) });
        let acquired = [0x200, 0x200 | READERS].map(|at| EventKind::Acquire { object: object(at) });
        assert_eq!(events(&[WRITTEN], false), acquired);
        let [_, released] = events(&[WRITTEN], true).try_into().unwrap();
        assert_eq!(released, EventKind::Release { object: object(0x200) });
        assert_eq!(events(&[], true), []);
    }

    #[test]
    fn beyond_so_many_everything_is_meant() {
        let many: Vec<_> = (1..100).map(|n| Dependence { address: n << 4, writes: true }).collect();
        let acquired = events(&many, false);
        assert_eq!(acquired[0], EventKind::Acquire { object: object(ANYTHING) });
        assert_eq!(acquired.len(), 1 + 2 * MOST);
        assert_eq!(events(&many, true)[0], EventKind::Release { object: object(ANYTHING) });
    }

    #[test]
    fn libomps_records() {
        let word = memory(0x1000, &[0x100, 4, 1, 0x200, 4, 3]);
        let arguments = [0, 0, 0, 2, 0x1000, 0];
        assert_eq!(read(Dependences::Kmp, &arguments, 0, word), [READ, WRITTEN]);
    }

    #[test]
    fn libgomps_lists() {
        for list in [&[2, 1, 0x200, 0x100][..], &[0, 2, 1, 0, 1, 0x200, 0x100]] {
            for (flags, expected) in [(GOMP_DEPENDS, &[WRITTEN, READ][..]), (0, &[])] {
                let words = [&[flags, 0x1010], list].concat();
                let word = memory(0x1000, &words);
                assert_eq!(read(Dependences::Gomp, &[0; 6], 0x1000, word), expected);
            }
        }
    }
}

//! What a plane holds for a granule of memory: when it was last touched, which of its bytes, and by
//! what. One word, so that nobody ever sees one half of it without the other.
//!
//! ```text
//! bits 0-7   the bytes touched      8-35   the tick      36-63   the access
//! ```
//!
//! Inserted code compares the lower half with the current segment, all bytes touched, at the address
//! that the program computes, aligned or not. Read at an odd place, a word must never look
//! like that: so no byte but the lowest is ever 0xff. Ticks and [`AccessId`]s that would have such a
//! byte are left out. (The ticks' lowest 24 bits are all that is compared: see [`crate::fast`].)

use crate::fast::access::AccessId;
use crate::order::bytes;
use std::ops::Range;

/// Bytes of memory that one cell stands for.
pub const GRANULE: u64 = bytes::WORD;

/// Bytes of memory whose sharers are known together: a cache line, what programs keep apart when they
/// care.
pub const LINE: u64 = 64;

/// Bytes of memory of which it is known together under what locks all was done there: what allocators align what they give to, so that
/// things that different locks guard seldom lie in one.
pub const BLOCK: u64 = 16;

/// The last tick before a slot's ticks are forgotten and begin anew. A cell has room for more, but for
/// each tick of a slot the lock set held is kept.
pub const LAST_TICK: u32 = (1 << 26) - 1;

/// Some of the bytes of a granule, a bit for each.
pub type Bytes = u32;

/// All bytes of a granule.
pub const WHOLE: Bytes = 0xff;

/// Where in a cell its tick begins, and where its access does. The probe's assembly knows them.
pub const TICK_AT: u32 = 8;
pub const ACCESS_AT: u32 = 36;

/// A tick, the bytes of the granule touched in it, and by what; zero for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell(pub u64);

impl Cell {
    /// Never touched.
    pub const EMPTY: Cell = Cell(0);

    /// These bytes, touched in this tick by this access.
    #[inline]
    pub fn new(tick: u32, bytes: Bytes, access: AccessId) -> Cell {
        debug_assert!(tick <= LAST_TICK && bytes <= WHOLE && access <= AccessId::LAST);
        Cell(u64::from(access.0) << ACCESS_AT | u64::from(tick) << TICK_AT | u64::from(bytes))
    }

    /// The same bytes in the same tick, by whatever?
    #[inline]
    pub fn is_like(self, other: Cell) -> bool {
        (self.0 ^ other.0) << (u64::BITS - ACCESS_AT) == 0
    }

    /// When.
    #[inline]
    pub fn tick(self) -> u32 {
        (self.0 << (u64::BITS - ACCESS_AT) >> (u64::BITS - ACCESS_AT + TICK_AT)) as u32
    }

    /// Which bytes.
    #[inline]
    pub fn bytes(self) -> Bytes {
        self.0 as Bytes & WHOLE
    }

    /// By what.
    #[inline]
    pub fn access(self) -> AccessId {
        AccessId((self.0 >> ACCESS_AT) as u32)
    }

    /// The same, for these bytes only; nothing if it is none of them.
    #[inline]
    pub fn only(self, bytes: Bytes) -> Cell {
        match self.bytes() & bytes {
            0 => Cell::EMPTY,
            rest => Cell::new(self.tick(), rest, self.access()),
        }
    }
}

/// The granules of `address..end`, each with the bytes of it that are meant.
#[inline]
pub fn granules(address: u64, end: u64) -> impl Iterator<Item = (u64, Bytes)> {
    bytes::words(address..end).map(|(granule, part)| (granule, Bytes::from(part)))
}

/// The blocks in which `address..end` lies, by their numbers.
#[inline]
pub fn blocks(address: u64, end: u64) -> Range<u64> {
    address / BLOCK..end.div_ceil(BLOCK)
}

/// The parts of `address..end` that lie in one line each.
#[inline]
pub fn lines(address: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = address;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let stop = end.min((at / LINE + 1) * LINE);
        let part = (at, stop);
        at = stop;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::access::STRIP_DIGIT;

    #[test]
    fn a_cell_keeps_its_tick_and_bytes() {
        for tick in [1, 77, LAST_TICK] {
            for access in [AccessId(1), AccessId::LAST] {
                for bytes in 1..=WHOLE {
                    let cell = Cell::new(tick, bytes, access);
                    assert_eq!((cell.tick(), cell.bytes(), cell.access()), (tick, bytes, access));
                }
            }
        }
    }

    /// Whatever stands beside it.
    #[test]
    fn read_at_an_odd_place_a_cell_is_not_the_current_segment() {
        let ticks = [1, 0xfe, 0xfefe, 0xfe_fefe, 0x1fe_fefe, 0x200_0000, 0x3fe_fefe];
        let accesses = [1, 15, 16, 255 << 4, 4095, 65025 << 4, 0xff_ffff].map(AccessId::numbered);
        for current in ticks {
            let current = (Cell::new(current, WHOLE, AccessId(0)).0 as u32).to_le_bytes();
            for (tick, access) in ticks.iter().flat_map(|t| accesses.map(|a| (*t, a))) {
                for bytes in [1, 0xf0, WHOLE] {
                    let cell = Cell::new(tick, bytes, access).0.to_le_bytes();
                    let memory = [cell, cell].concat();
                    assert!((1..8).all(|at| memory[at..at + 4] != current));
                }
            }
        }
    }

    #[test]
    fn a_cell_says_whether_it_names_a_strip() {
        let records = [1, 16, 255 << 4, 65025 << 4, 0xff_ffff, ((STRIP_DIGIT * 65025) << 4) - 1];
        assert!(records.map(AccessId::numbered).iter().all(|one| one.0 != 0 && !one.is_strip()));
        assert_eq!(AccessId::numbered((STRIP_DIGIT * 65025) << 4), AccessId::default());
        let mut before = None;
        for number in [0, 1, 15, 16, 255 << 4, 1 << 18] {
            let strip = AccessId::of_strip(number).unwrap();
            let cell = Cell::new(1, WHOLE, strip).0.to_le_bytes();
            assert!(
                strip.is_strip() && u32::from(cell[7]) >= STRIP_DIGIT && strip <= AccessId::LAST
            );
            assert!(cell[1..].iter().all(|byte| *byte != 0xff) && strip.strips_before() >= number);
            assert!(before.replace(strip).is_none_or(|before| before < strip));
        }
    }

    #[test]
    fn granules_cover_exactly_the_bytes_asked_for() {
        for address in 96..104 {
            for size in 1..20 {
                let mut covered = Vec::new();
                for (granule, bytes) in granules(address, address + size) {
                    covered.extend(
                        (0..GRANULE).filter(|b| bytes >> b & 1 == 1).map(|b| granule * GRANULE + b),
                    );
                }
                assert_eq!(covered, (address..address + size).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn lines_cut_at_their_ends() {
        assert_eq!(lines(60, 70).collect::<Vec<_>>(), [(60, 64), (64, 70)]);
        assert_eq!(lines(64, 128).collect::<Vec<_>>(), [(64, 128)]);
        assert_eq!(lines(5, 5).count(), 0);
    }
}

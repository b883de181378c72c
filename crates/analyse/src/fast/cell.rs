//! What a plane holds for a granule of memory: when it was last touched, and which of its bytes.

/// Bytes of memory that one cell stands for.
pub const GRANULE: u64 = 4;

/// Bytes of memory whose sharers are known together: a cache line, what programs keep apart when they
/// care.
pub const LINE: u64 = 64;

/// The last tick before a slot's ticks are forgotten and begin anew. A cell has room for more, but for
/// each tick of a slot the lock set held is kept.
pub const LAST_TICK: u32 = (1 << 26) - 1;

/// Some of the four bytes of a granule, a bit for each.
pub type Bytes = u32;

/// All bytes of a granule.
pub const WHOLE: Bytes = 0xf;

/// A tick and the bytes of the granule touched in it; zero for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell(pub u32);

impl Cell {
    /// Never touched.
    pub const EMPTY: Cell = Cell(0);

    /// These bytes, touched in this tick.
    #[inline]
    pub fn new(tick: u32, bytes: Bytes) -> Cell {
        debug_assert!(tick <= LAST_TICK && bytes <= WHOLE);
        Cell(tick << 4 | bytes)
    }

    /// When.
    #[inline]
    pub fn tick(self) -> u32 {
        self.0 >> 4
    }

    /// Which bytes.
    #[inline]
    pub fn bytes(self) -> Bytes {
        self.0 & WHOLE
    }
}

/// The granules of `address..end`, each with the bytes of it that are meant.
#[inline]
pub fn granules(address: u64, end: u64) -> impl Iterator<Item = (u64, Bytes)> {
    let first = address / GRANULE;
    let last = end.saturating_sub(1).max(address) / GRANULE;
    (first..=last).map(move |granule| {
        let start = granule * GRANULE;
        let from = address.max(start) - start;
        let to = end.min(start + GRANULE) - start;
        let bytes = (WHOLE << from & WHOLE) & (WHOLE >> (GRANULE - to));
        (granule, bytes)
    })
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

    #[test]
    fn a_cell_keeps_its_tick_and_bytes() {
        for tick in [1, 77, LAST_TICK] {
            for bytes in 1..=WHOLE {
                let cell = Cell::new(tick, bytes);
                assert_eq!((cell.tick(), cell.bytes()), (tick, bytes));
            }
        }
    }

    #[test]
    fn granules_cover_exactly_the_bytes_asked_for() {
        for address in 96..104 {
            for size in 1..20 {
                let mut covered = Vec::new();
                for (granule, bytes) in granules(address, address + size) {
                    covered.extend((0..4).filter(|b| bytes >> b & 1 == 1).map(|b| granule * 4 + b));
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

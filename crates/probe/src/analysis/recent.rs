//! A thread's memory of accesses made since its last synchronisation, for the plain detector.

use raddle_model::Address;

/// A table in which a newer access takes the place of an older one.
#[derive(Debug, Default)]
pub struct Recent {
    /// Address, and segment and site; allocated when first used.
    rows: Vec<(u64, u64)>,
    segment: u32,
}

const RECENT_ROWS: usize = 1 << 14;

impl Recent {
    /// The thread synchronised: what it did before may be ordered now.
    pub fn next_segment(&mut self) {
        self.segment = self.segment.wrapping_add(1);
        if self.segment == 0 {
            self.rows.clear();
        }
    }

    /// Was this access made before in this segment? Remembers it if not.
    pub fn is_repeated(&mut self, site: u32, address: Address) -> bool {
        if self.rows.is_empty() {
            self.rows.resize(RECENT_ROWS, (u64::MAX, 0));
            self.segment = self.segment.max(1);
        }
        let row = (address.0, u64::from(self.segment) << 32 | u64::from(site));
        let hash = (address.0 ^ u64::from(site) << 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &mut self.rows[(hash >> 50) as usize % RECENT_ROWS];
        let repeated = *slot == row;
        *slot = row;
        repeated
    }
}

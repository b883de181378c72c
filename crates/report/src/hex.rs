//! Addresses, offsets and handles in JSON: strings, because a double cannot hold 64 bits.

use serde::{Serialize, Serializer};

/// A number that is written as `"0x1f"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

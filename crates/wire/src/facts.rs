//! Module facts: what the probe must know of one module and cannot find out cheaply itself.
//!
//! The command makes the table from symbols and debug information, once per build-id and hook
//! table; the probe maps the file and looks things up in place, so every array is sorted by
//! offset and every number little-endian at a fixed width.
//!
//! ```text
//! magic "RADDFACT"  u32 version  u32 flags
//! u32 n_hooks  u32 n_inlined  u32 n_atomic  u32 n_spins  u32 n_exits  u32 n_constant  u32 n_private
//! n_hooks   x { u64 offset, u32 hook, u32 0 }       function entries
//! n_inlined x { u64 offset, u32 hook, u32 0 }       atomic instructions of inlined instances
//! n_atomic  x { u64 offset, u32 length, u32 0 }     plain accesses that are atomic by their call chain
//! n_spins   x { u64 offset, u32 0, u32 0 }          loads of loops that wait for a change
//! n_exits   x { u64 offset, u32 value, u32 kind }   where loops around a condition wait are left
//! n_constant x { u64 offset, u32 length, u32 0 }    memory that the program never writes
//! n_private x { u64 offset, u32 length, u32 0 }     code of a library that is linked in
//! ```

use crate::WireError;

const MAGIC: &[u8; 8] = b"RADDFACT";
/// Bump on any change of layout.
pub const VERSION: u32 = 4;
const HEADER: usize = 44;
const ROW: usize = 16;

/// The facts in a form to build and test with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleFacts {
    /// Code of this module may run inside opaque hooked functions (it has some, or is listed as a
    /// library's runtime): its accesses must ask whether they do.
    pub guarded: bool,
    /// The module is listed as a library's runtime: what it does with its own static data is its own
    /// business.
    pub runtime: bool,
    /// The module has a symbol table or debug information beyond its exports.
    pub has_symbols: bool,
    /// Entry offsets of hooked functions, each with its index in the hook table.
    pub hooks: Vec<(u64, u32)>,
    /// Offsets of atomic instructions inside inlined instances, likewise.
    pub inlined: Vec<(u64, u32)>,
    /// Code ranges (offset, length) whose plain accesses are atomic by their inlined call chain
    /// (`std::atomic`, `core::sync::atomic`), or accesses of variables of atomic type.
    pub atomic: Vec<(u64, u32)>,
    /// Offsets of instructions whose loads are spin reads.
    pub spin_reads: Vec<u64>,
    /// Where control goes when a loop around a condition wait is left or passed over.
    pub wait_exits: Vec<WaitExit>,
    /// Ranges (offset, length) of the module's memory that the program never writes: nothing races
    /// with a read there.
    pub constant: Vec<(u64, u32)>,
    /// Ranges (offset, length) of code that no detector looks into, because a library was linked in that
    /// synchronises by means of its own.
    pub private: Vec<(u64, u32)>,
}

/// The exit of a loop around a condition wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitExit {
    /// The instruction reached.
    pub offset: u64,
    /// What the loop waits for.
    pub condition: LoopCondition,
}

/// Where the condition of a loop is when the loop is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoopCondition {
    /// The code does not tell.
    Unknown,
    /// In the module.
    Offset(u64),
    /// At a register's value (by its number in machine code) plus this.
    Register(u8, i32),
}

impl LoopCondition {
    const OFFSET: u32 = 1;
    const REGISTER: u32 = 2;

    /// A value and a kind; modules of 4 GiB and more do not tell.
    fn encode(self) -> (u32, u32) {
        match self {
            LoopCondition::Unknown => (0, 0),
            LoopCondition::Offset(offset) => match u32::try_from(offset) {
                Ok(offset) => (offset, Self::OFFSET),
                Err(_) => (0, 0),
            },
            LoopCondition::Register(number, displacement) => {
                (displacement as u32, Self::REGISTER | u32::from(number) << 8)
            }
        }
    }

    fn decode(value: u32, kind: u32) -> LoopCondition {
        match kind & 0xff {
            Self::OFFSET => LoopCondition::Offset(u64::from(value)),
            Self::REGISTER => LoopCondition::Register((kind >> 8) as u8, value as i32),
            _ => LoopCondition::Unknown,
        }
    }
}

const FLAG_GUARDED: u32 = 1;
const FLAG_SYMBOLS: u32 = 2;
const FLAG_RUNTIME: u32 = 4;

impl ModuleFacts {
    /// The file's bytes. Sorts the rows.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        let flags = if self.guarded { FLAG_GUARDED } else { 0 }
            | if self.has_symbols { FLAG_SYMBOLS } else { 0 }
            | if self.runtime { FLAG_RUNTIME } else { 0 };
        for n in [
            VERSION,
            flags,
            self.hooks.len() as u32,
            self.inlined.len() as u32,
            self.atomic.len() as u32,
            self.spin_reads.len() as u32,
            self.wait_exits.len() as u32,
            self.constant.len() as u32,
            self.private.len() as u32,
        ] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        let plain = |rows: &[(u64, u32)]| -> Vec<(u64, u32, u32)> {
            rows.iter().map(|(offset, value)| (*offset, *value, 0)).collect()
        };
        let spins = self.spin_reads.iter().map(|offset| (*offset, 0, 0)).collect();
        let exits = self.wait_exits.iter().map(|exit| {
            let (value, kind) = exit.condition.encode();
            (exit.offset, value, kind)
        });
        let exits = exits.collect();
        let (constant, private) = (plain(&self.constant), plain(&self.private));
        let [hooks, inlined, atomic] = [&self.hooks, &self.inlined, &self.atomic].map(|r| plain(r));
        for mut rows in [hooks, inlined, atomic, spins, exits, constant, private] {
            rows.sort_unstable();
            for (offset, value, kind) in rows {
                out.extend_from_slice(&offset.to_le_bytes());
                out.extend_from_slice(&value.to_le_bytes());
                out.extend_from_slice(&kind.to_le_bytes());
            }
        }
        out
    }
}

/// The facts in place: a view of the mapped file.
#[derive(Debug, Clone, Copy)]
pub struct FactsView<'a> {
    flags: u32,
    hooks: &'a [u8],
    inlined: &'a [u8],
    atomic: &'a [u8],
    spin_reads: &'a [u8],
    wait_exits: &'a [u8],
    constant: &'a [u8],
    private: &'a [u8],
}

impl<'a> FactsView<'a> {
    /// Checks the header and the lengths; nothing is copied.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        if bytes.len() < HEADER || &bytes[..8] != MAGIC {
            return Err(WireError::NotOurs("module facts"));
        }
        let word = |i: usize| u32_at(bytes, 8 + 4 * i);
        if word(0) != VERSION {
            return Err(WireError::Version {
                what: "module facts",
                found: word(0),
                expected: VERSION,
            });
        }
        let lengths = [2, 3, 4, 5, 6, 7, 8].map(word).map(|n| n as usize * ROW);
        if bytes.len() != HEADER + lengths.iter().sum::<usize>() {
            return Err(WireError::Damaged("module facts", format!("{} bytes", bytes.len())));
        }
        let (hooks, rest) = bytes[HEADER..].split_at(lengths[0]);
        let (inlined, rest) = rest.split_at(lengths[1]);
        let (atomic, rest) = rest.split_at(lengths[2]);
        let (spin_reads, rest) = rest.split_at(lengths[3]);
        let (wait_exits, rest) = rest.split_at(lengths[4]);
        let (constant, private) = rest.split_at(lengths[5]);
        let flags = word(1);
        Ok(FactsView { flags, hooks, inlined, atomic, spin_reads, wait_exits, constant, private })
    }

    /// See [`ModuleFacts::guarded`].
    pub fn guarded(&self) -> bool {
        self.flags & FLAG_GUARDED != 0
    }

    /// See [`ModuleFacts::has_symbols`].
    pub fn has_symbols(&self) -> bool {
        self.flags & FLAG_SYMBOLS != 0
    }

    /// See [`ModuleFacts::runtime`].
    pub fn runtime(&self) -> bool {
        self.flags & FLAG_RUNTIME != 0
    }

    /// The hooks whose function begins at this offset.
    pub fn hooks_at(&self, offset: u64) -> impl Iterator<Item = u32> + 'a {
        rows_at(self.hooks, offset)
    }

    /// The hooks that an atomic instruction at this offset stands for.
    pub fn inlined_at(&self, offset: u64) -> impl Iterator<Item = u32> + 'a {
        rows_at(self.inlined, offset)
    }

    /// Is a plain access at this offset atomic by its call chain?
    pub fn is_atomic(&self, offset: u64) -> bool {
        is_in_range(self.atomic, offset)
    }

    /// Is the code at this offset a library's that was linked in, and private?
    pub fn is_private(&self, offset: u64) -> bool {
        is_in_range(self.private, offset)
    }

    /// Does the program never write the memory at this offset?
    pub fn is_constant(&self, offset: u64) -> bool {
        is_in_range(self.constant, offset)
    }
}

impl FactsView<'_> {
    /// Offsets of all instructions whose loads are spin reads.
    pub fn spin_reads(&self) -> impl Iterator<Item = u64> + '_ {
        let rows = self.spin_reads;
        (0..rows.len() / ROW).map(move |i| row(rows, i).0)
    }

    /// Are the loads of the instruction at this offset spin reads?
    pub fn is_spin_read(&self, offset: u64) -> bool {
        rows_at(self.spin_reads, offset).next().is_some()
    }

    /// What was waited for, if a loop around a condition wait is left at this offset.
    pub fn wait_exit(&self, offset: u64) -> Option<LoopCondition> {
        let at = partition(self.wait_exits, |o| o < offset);
        let found = at * ROW < self.wait_exits.len() && row(self.wait_exits, at).0 == offset;
        found.then(|| {
            let kind = u32_at(self.wait_exits, at * ROW + 12);
            LoopCondition::decode(row(self.wait_exits, at).1, kind)
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn row(rows: &[u8], i: usize) -> (u64, u32) {
    let at = i * ROW;
    (u64::from(u32_at(rows, at)) | u64::from(u32_at(rows, at + 4)) << 32, u32_at(rows, at + 8))
}

/// How many rows have an offset for which `before` holds.
fn partition(rows: &[u8], before: impl Fn(u64) -> bool) -> usize {
    let (mut low, mut high) = (0, rows.len() / ROW);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(row(rows, middle).0) { low = middle + 1 } else { high = middle }
    }
    low
}

fn is_in_range(rows: &[u8], offset: u64) -> bool {
    let after = partition(rows, |o| o <= offset);
    after > 0 && {
        let (start, length) = row(rows, after - 1);
        offset - start < u64::from(length)
    }
}

fn rows_at(rows: &[u8], offset: u64) -> impl Iterator<Item = u32> + '_ {
    let first = partition(rows, |o| o < offset);
    (first..rows.len() / ROW).map(|i| row(rows, i)).take_while(move |r| r.0 == offset).map(|r| r.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ModuleFacts {
        ModuleFacts {
            guarded: true,
            has_symbols: false,
            runtime: true,
            hooks: vec![(0x2000, 7), (0x1000, 3), (0x2000, 4)],
            inlined: vec![(0x55, 1)],
            atomic: vec![(0x100, 4), (0x200, 1)],
            spin_reads: vec![0x300, 0x310],
            wait_exits: vec![
                WaitExit { offset: 0x420, condition: LoopCondition::Register(3, -8) },
                WaitExit { offset: 0x400, condition: LoopCondition::Offset(0x8000) },
                WaitExit { offset: 0x440, condition: LoopCondition::Unknown },
            ],
            constant: vec![(0x5000, 0x1000)],
            private: vec![(0x700, 0x10), (0x600, 0x20)],
        }
    }

    #[test]
    fn what_was_encoded_is_found() {
        let bytes = sample().encode();
        let view = FactsView::new(&bytes).unwrap();
        assert!(view.guarded() && !view.has_symbols() && view.runtime());
        assert_eq!(view.hooks_at(0x2000).collect::<Vec<_>>(), [4, 7]);
        assert_eq!(view.hooks_at(0x1fff).count(), 0);
        assert_eq!(view.inlined_at(0x55).collect::<Vec<_>>(), [1]);
        assert!(view.is_atomic(0x103) && !view.is_atomic(0x104) && !view.is_atomic(0xff));
        assert!(view.is_atomic(0x200) && !view.is_atomic(0x201));
        assert_eq!(view.spin_reads().collect::<Vec<_>>(), [0x300, 0x310]);
        assert!(view.is_spin_read(0x300) && view.is_spin_read(0x310) && !view.is_spin_read(0x308));
        assert_eq!(view.wait_exit(0x400), Some(LoopCondition::Offset(0x8000)));
        assert_eq!(view.wait_exit(0x420), Some(LoopCondition::Register(3, -8)));
        assert_eq!(view.wait_exit(0x440), Some(LoopCondition::Unknown));
        assert!(view.is_constant(0x5fff) && !view.is_constant(0x6000));
        assert!(view.is_private(0x61f) && view.is_private(0x700) && !view.is_private(0x620));
        assert_eq!((view.wait_exit(0x3ff), view.wait_exit(0x441)), (None, None));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let bytes = sample().encode();
        assert_eq!(FactsView::new(&bytes[..20]).unwrap_err(), WireError::NotOurs("module facts"));
        assert!(matches!(FactsView::new(&bytes[..48]), Err(WireError::Damaged(..))));
        let mut other = bytes.clone();
        other[8] = 99;
        assert!(matches!(FactsView::new(&other), Err(WireError::Version { found: 99, .. })));
    }
}

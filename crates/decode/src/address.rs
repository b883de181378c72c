//! Where an operand lies: an address as an expression over registers, and its value.
//!
//! The expression is always in terms of the register values *before* the instruction runs; what the
//! processor adjusts on the way (a push's stack pointer, the instruction pointer) is folded into the
//! displacement.

use iced_x86::{CodeSize, Register, UsedMemory};
use raddle_model::Address;

/// `segment:[base + index * scale + displacement]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressExpr {
    /// The segment whose base is added. The other segments start at zero in 64-bit mode.
    pub segment: Option<Segment>,
    /// Added as it is.
    pub base: Option<Gpr>,
    /// Added `scale` times.
    pub index: Option<Gpr>,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Added last; for an operand relative to the instruction pointer it is the whole address.
    pub displacement: i64,
    /// 32-bit address size: the sum, without the segment's base, is cut to 32 bits.
    pub narrow: bool,
}

impl AddressExpr {
    /// The address with these register values.
    pub fn resolve(&self, registers: &dyn Registers) -> Address {
        self.resolve_with(registers, 0)
    }

    /// The address with `extra` more bytes: a vector's index, a bit string's offset.
    pub(crate) fn resolve_with(&self, registers: &dyn Registers, extra: u64) -> Address {
        let base = self.base.map_or(0, |r| registers.gpr(r));
        let index = self.index.map_or(0, |r| registers.gpr(r));
        let mut sum = base
            .wrapping_add(index.wrapping_mul(u64::from(self.scale)))
            .wrapping_add(self.displacement as u64)
            .wrapping_add(extra);
        if self.narrow {
            sum = u64::from(sum as u32);
        }
        Address(sum.wrapping_add(self.segment.map_or(0, |s| registers.segment_base(s))))
    }

    /// What `iced` reports. An index that is no address-sized register (a gather's vector, `al` of
    /// `xlat`) is left out: such operands are [`crate::Extent::Lanes`].
    pub(crate) fn of(memory: &UsedMemory) -> Self {
        let base = Gpr::of(memory.base());
        let index = Gpr::of(memory.index());
        let narrow = memory.address_size() == CodeSize::Code32;
        let displacement = memory.displacement() as i64;
        AddressExpr {
            segment: Segment::of(memory.segment()),
            base,
            index,
            scale: if index.is_some() { memory.scale() as u8 } else { 1 },
            // Of a narrow address iced gives the low 32 bits. Beside a register they are a signed
            // distance; alone they are the address.
            displacement: if narrow && (base.is_some() || index.is_some()) {
                i64::from(displacement as i32)
            } else {
                displacement
            },
            narrow,
        }
    }
}

/// The segments with a base of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Thread-local storage, on Linux.
    Fs,
    /// Unused by most programs.
    Gs,
}

impl Segment {
    pub(crate) fn of(register: Register) -> Option<Segment> {
        match register {
            Register::FS => Some(Segment::Fs),
            Register::GS => Some(Segment::Gs),
            _ => None,
        }
    }
}

/// A general-purpose register, 0 to 15 in the order of its encoding:
/// rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gpr(pub u8);

impl Gpr {
    /// What `clzero` zeroes a line by.
    pub(crate) const RAX: Gpr = Gpr(0);
    /// The stack pointer.
    pub const RSP: Gpr = Gpr(4);

    /// A 64- or 32-bit register; both have the same number.
    pub(crate) fn of(register: Register) -> Option<Gpr> {
        (register.is_gpr64() || register.is_gpr32()).then(|| Gpr(register.number() as u8))
    }
}

/// The register values an address is computed from.
pub trait Registers {
    /// All 64 bits of a general-purpose register.
    fn gpr(&self, r: Gpr) -> u64;
    /// The base of a segment.
    fn segment_base(&self, s: Segment) -> u64;
    /// Vector register `n` (0 to 31), least byte first. What the processor or the instruction does
    /// not have of it is never looked at.
    fn vector(&self, n: u8) -> [u8; 64];
    /// Mask register `k` (0 to 7).
    fn mask(&self, k: u8) -> u64;
}

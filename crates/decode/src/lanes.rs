//! Accesses whose bytes the register values choose: gathers and scatters, masked moves of AVX, AVX2
//! and AVX-512, `maskmovdqu`, bit strings, `xlat`, `clzero`.
//!
//! [`Pattern`] recognises them when a block is built, [`lanes`] computes what they touch when the
//! values are known. A lane that is switched off is not touched: the processor does not even fault
//! on it.

use crate::address::{AddressExpr, Gpr, Registers};
use crate::mask::Masked;
use crate::operand::{CACHE_LINE, Extent, instruction, operands};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use raddle_model::{AccessKind, Address};

/// The memory a gather / scatter / masked move (AVX, AVX2, AVX-512, maskmovdqu) touches with these
/// register values, lane by lane, adjacent lanes merged. Bit strings (`bt [m], r`), `xlat` and
/// `clzero` are answered too; of an instruction without an [`Extent::Lanes`] operand, nothing is.
///
/// The values are those from before the instruction; a gather that faults half-way has cleared the
/// mask of the lanes it did, and is asked about anew when it resumes.
pub fn lanes(bytes: &[u8], ip: u64, registers: &dyn Registers) -> Vec<(AccessKind, Address, u32)> {
    let Some(instruction) = instruction(bytes, ip) else { return Vec::new() };
    let Some(pattern) = Pattern::of(&instruction) else { return Vec::new() };
    let mut touched = Vec::new();
    for operand in operands(&instruction) {
        if operand.extent == Extent::Lanes {
            for (address, size) in merged(pattern.places(&operand.address, registers)) {
                touched.push((operand.kind, address, size));
            }
        }
    }
    touched
}

/// How registers choose the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// One element per lane, each at its own index.
    Gather { index: Vector, scale: u8, index_size: u32, element: u32, lanes: u32, mask: Mask },
    /// One element per lane, side by side, where the top bit of the mask register's lane is set.
    VectorMask { mask: u8, element: u32, lanes: u32 },
    /// AVX-512: `elements` of memory, spread over `lanes` of the register (more of them where it is
    /// broadcast), switched by a mask register.
    Opmask { mask: u8, element: u32, elements: u32, lanes: u32 },
    /// Compress and expand: as many elements as lanes are on, without gaps.
    Compressed { mask: u8, element: u32, lanes: u32 },
    /// `bt [m], r`: the word that holds the bit, counted (signed) from the operand.
    BitString { offset: Register, element: u32 },
    /// `xlat`: the byte `al` places on.
    Table,
    /// `clzero`: the line around the address.
    CacheLine,
}

/// A vector register's number.
type Vector = u8;

/// What switches a gather's lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mask {
    /// The top bit of each element of a vector register (AVX2).
    Vector(Vector),
    /// The bits of a mask register (AVX-512).
    Opmask(u8),
}

impl Pattern {
    /// The pattern of an instruction, if its bytes depend on more than an address.
    pub(crate) fn of(instruction: &Instruction) -> Option<Pattern> {
        let element = instruction.memory_size().element_size() as u32;
        if let Some(wide) = instruction.vsib() {
            return gather(instruction, if wide { 8 } else { 4 }, element);
        }
        match instruction.mnemonic() {
            Mnemonic::Vmaskmovps
            | Mnemonic::Vmaskmovpd
            | Mnemonic::Vpmaskmovd
            | Mnemonic::Vpmaskmovq => {
                let mask = instruction.op1_register();
                let lanes = mask.size() as u32 / element;
                Some(Pattern::VectorMask { mask: mask.number() as u8, element, lanes })
            }
            Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => {
                let mask = instruction.op2_register().number() as u8;
                Some(Pattern::VectorMask { mask, element: 1, lanes: 16 })
            }
            Mnemonic::Bt | Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts
                if instruction.op0_kind() == OpKind::Memory
                    && instruction.op1_kind() == OpKind::Register =>
            {
                Some(Pattern::BitString { offset: instruction.op1_register(), element })
            }
            Mnemonic::Xlatb => Some(Pattern::Table),
            Mnemonic::Clzero => Some(Pattern::CacheLine),
            _ => masked(instruction),
        }
    }

    /// Bytes of one lane.
    pub(crate) fn element(&self) -> u32 {
        match *self {
            Pattern::Gather { element, .. }
            | Pattern::VectorMask { element, .. }
            | Pattern::Opmask { element, .. }
            | Pattern::Compressed { element, .. }
            | Pattern::BitString { element, .. } => element,
            Pattern::Table => 1,
            Pattern::CacheLine => CACHE_LINE,
        }
    }

    /// What is touched, lane by lane.
    fn places(&self, at: &AddressExpr, registers: &dyn Registers) -> Vec<(Address, u32)> {
        let place = |extra: u64, size: u32| (at.resolve_with(registers, extra), size);
        let side_by_side = |n: u32, size: u32| place(u64::from(n) * u64::from(size), size);
        match *self {
            Pattern::Gather { index, scale, index_size, element, lanes, mask } => {
                let index = registers.vector(index);
                let on = match mask {
                    Mask::Vector(n) => sign_bits(&registers.vector(n), element, lanes),
                    Mask::Opmask(k) => registers.mask(k) & low_bits(lanes),
                };
                let distance = |lane: u32| {
                    let index = signed(&index, lane, index_size);
                    (index as u64).wrapping_mul(u64::from(scale))
                };
                set_bits(on).map(|lane| place(distance(lane), element)).collect()
            }
            Pattern::VectorMask { mask, element, lanes } => {
                let on = sign_bits(&registers.vector(mask), element, lanes);
                set_bits(on).map(|lane| side_by_side(lane, element)).collect()
            }
            Pattern::Opmask { mask, element, elements, lanes } => {
                let on = registers.mask(mask) & low_bits(lanes);
                // Lane n of the register comes from (or goes to) element n modulo `elements`.
                let on = set_bits(on).fold(0, |all, lane| all | 1 << (lane % elements));
                set_bits(on).map(|n| side_by_side(n, element)).collect()
            }
            Pattern::Compressed { mask, element, lanes } => {
                let count = (registers.mask(mask) & low_bits(lanes)).count_ones();
                (0..count).map(|n| side_by_side(n, element)).collect()
            }
            Pattern::BitString { offset, element } => {
                let bits = 8 * element;
                let value = registers.gpr(Gpr(offset.full_register().number() as u8));
                let bit = (value << (64 - bits)) as i64 >> (64 - bits);
                let word = bit.div_euclid(i64::from(bits));
                vec![place((word as u64).wrapping_mul(u64::from(element)), element)]
            }
            Pattern::Table => {
                vec![place(registers.gpr(Gpr::RAX) & 0xff, 1)]
            }
            Pattern::CacheLine => {
                let (Address(address), size) = place(0, CACHE_LINE);
                vec![(Address(address & !u64::from(CACHE_LINE - 1)), size)]
            }
        }
    }
}

/// A gather or scatter: the shorter of data and index says how many lanes there are.
fn gather(instruction: &Instruction, index_size: u32, element: u32) -> Option<Pattern> {
    let index = instruction.memory_index();
    let data = (0..instruction.op_count())
        .map(|n| instruction.op_register(n))
        .find(|register| register.is_vector_register())?;
    let mask = if instruction.has_op_mask() {
        Mask::Opmask(instruction.op_mask().number() as u8)
    } else {
        Mask::Vector(instruction.op2_register().number() as u8)
    };
    Some(Pattern::Gather {
        index: index.number() as u8,
        scale: instruction.memory_index_scale() as u8,
        index_size,
        element,
        lanes: (data.size() as u32 / element).min(index.size() as u32 / index_size),
        mask,
    })
}

/// An AVX-512 instruction with a memory operand and a mask that matters to it.
fn masked(instruction: &Instruction) -> Option<Pattern> {
    let mask = instruction.op_mask().number() as u8;
    match Masked::of(instruction)? {
        Masked::Elements { element, elements, lanes } => {
            Some(Pattern::Opmask { mask, element, elements, lanes })
        }
        Masked::Compressed { element, lanes } => Some(Pattern::Compressed { mask, element, lanes }),
        Masked::Whole => None,
    }
}

/// A lane that continues the one before it, or lies within it, joins it.
fn merged(places: Vec<(Address, u32)>) -> Vec<(Address, u32)> {
    let mut joined: Vec<(Address, u32)> = Vec::new();
    for (address, size) in places {
        if let Some((start, length)) = joined.last_mut() {
            let distance = address.0.wrapping_sub(start.0);
            if distance <= u64::from(*length) {
                *length = (*length).max(distance as u32 + size);
                continue;
            }
        }
        joined.push((address, size));
    }
    joined
}

/// The numbers of the bits that are set, lowest first.
fn set_bits(bits: u64) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |n| bits >> n & 1 == 1)
}

/// The lowest `count` bits.
fn low_bits(count: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - count).unwrap_or(0)
}

/// The top bit of each of the first `lanes` elements.
fn sign_bits(vector: &[u8; 64], element: u32, lanes: u32) -> u64 {
    (0..lanes).fold(0, |bits, lane| {
        let top = vector[(lane * element + element - 1) as usize];
        bits | u64::from(top >> 7) << lane
    })
}

/// Element `lane` of `size` bytes (4 or 8), sign-extended.
fn signed(vector: &[u8; 64], lane: u32, size: u32) -> i64 {
    let at = (lane * size) as usize;
    let mut bytes = [0; 8];
    bytes[..size as usize].copy_from_slice(&vector[at..at + size as usize]);
    let value = i64::from_le_bytes(bytes);
    if size == 4 { i64::from(value as i32) } else { value }
}

//! Which bytes of its memory operand an AVX-512 instruction touches under its mask.
//!
//! Three ways, by the exception classes of the manual (Intel SDM vol. 2, 2.8 "Exception
//! classifications of EVEX-encoded instructions"): most instructions suppress the faults of lanes
//! that are off, so each element is touched or not by itself; compress and expand touch as many
//! elements as lanes are on; permutations and the like (classes "NF", no fault suppression) touch
//! all of it, because any lane may need any element.

use iced_x86::{Instruction, MemorySize, Mnemonic, OpKind};

/// What the mask does to the memory operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Masked {
    /// `elements` of `element` bytes, each touched when one of its `lanes` is on.
    Elements { element: u32, elements: u32, lanes: u32 },
    /// As many elements as lanes are on.
    Compressed { element: u32, lanes: u32 },
    /// Nothing: it is touched whole.
    Whole,
}

impl Masked {
    /// `None` where there is no mask, or no memory.
    pub(crate) fn of(instruction: &Instruction) -> Option<Masked> {
        if !instruction.has_op_mask() || memory_operand(instruction).is_none() {
            return None;
        }
        if touches_all(instruction) {
            return Some(Masked::Whole);
        }
        let memory = instruction.memory_size();
        if memory.is_broadcast() {
            let element = memory.size() as u32;
            let lanes = broadcast_bytes(memory) / element;
            return Some(Masked::Elements { element, elements: 1, lanes });
        }
        let element = lane_bytes(instruction);
        let elements = memory.size() as u32 / element;
        Some(if is_compressed(instruction) {
            Masked::Compressed { element, lanes: elements }
        } else {
            let lanes = if is_broadcast(instruction) {
                instruction.op0_register().size() as u32 / element
            } else {
                elements
            };
            Masked::Elements { element, elements, lanes }
        })
    }
}

/// Which of its operands is the memory.
fn memory_operand(instruction: &Instruction) -> Option<u32> {
    (0..instruction.op_count()).find(|&n| instruction.op_kind(n) == OpKind::Memory)
}

/// Bytes of memory one bit of the mask stands for. More than an element where several of them make
/// one lane of the result.
fn lane_bytes(instruction: &Instruction) -> u32 {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Vpdpbusd | Vpdpbusds | Vpdpwssd | Vpdpwssds => 4,
        Vfcmaddcsh | Vfcmulcsh | Vfmaddcsh | Vfmulcsh => 4,
        Vpmuldq | Vpmuludq => 8,
        _ => instruction.memory_size().element_size() as u32,
    }
}

/// Bytes of the vector that an embedded broadcast (`{1toN}`) fills: its kinds stand in the order of
/// that width.
fn broadcast_bytes(memory: MemorySize) -> u32 {
    match memory {
        m if m >= MemorySize::Broadcast512_Int16 => 64,
        m if m >= MemorySize::Broadcast256_Int16 => 32,
        m if m >= MemorySize::Broadcast128_Int16 => 16,
        m if m >= MemorySize::Broadcast64_UInt32 => 8,
        _ => 4,
    }
}

/// Instructions that repeat what they read to fill a register.
fn is_broadcast(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Vbroadcastss
            | Vbroadcastsd
            | Vbroadcastf32x2
            | Vbroadcastf32x4
            | Vbroadcastf32x8
            | Vbroadcastf64x2
            | Vbroadcastf64x4
            | Vbroadcasti32x2
            | Vbroadcasti32x4
            | Vbroadcasti32x8
            | Vbroadcasti64x2
            | Vbroadcasti64x4
            | Vpbroadcastb
            | Vpbroadcastw
            | Vpbroadcastd
            | Vpbroadcastq
    )
}

fn is_compressed(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Vcompressps
            | Vcompresspd
            | Vpcompressb
            | Vpcompressw
            | Vpcompressd
            | Vpcompressq
            | Vexpandps
            | Vexpandpd
            | Vpexpandb
            | Vpexpandw
            | Vpexpandd
            | Vpexpandq
    )
}

/// The classes without fault suppression. `vextract…` is left out of them: what it stores, it stores
/// lane by lane. `vgf2p8affine…`, `vcvtne2ps2bf16` and the four-step `v4f…`, `vp4d…` are taken in,
/// though the tables of XED have them in others: their lanes are no elements of the memory.
fn touches_all(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    match instruction.mnemonic() {
        // Permutations and shuffles.
        Valignd | Valignq | Vpalignr | Vpermb | Vpermw | Vpermd | Vpermq | Vpermps | Vpermpd
        | Vpermi2b | Vpermi2w | Vpermi2d | Vpermi2q | Vpermi2ps | Vpermi2pd | Vpermt2b
        | Vpermt2w | Vpermt2d | Vpermt2q | Vpermt2ps | Vpermt2pd | Vpermilps | Vpermilpd
        | Vpshufb | Vpshufd | Vpshufhw | Vpshuflw | Vshufps | Vshufpd | Vshuff32x4 | Vshuff64x2
        | Vshufi32x4 | Vshufi64x2 | Vmovddup | Vmovshdup | Vmovsldup => true,
        // Packing, unpacking, inserting.
        Vpacksswb | Vpackuswb | Vpackssdw | Vpackusdw | Vpunpckhbw | Vpunpckhwd | Vpunpckhdq
        | Vpunpckhqdq | Vpunpcklbw | Vpunpcklwd | Vpunpckldq | Vpunpcklqdq | Vunpckhps
        | Vunpckhpd | Vunpcklps | Vunpcklpd | Vinsertf32x4 | Vinsertf32x8 | Vinsertf64x2
        | Vinsertf64x4 | Vinserti32x4 | Vinserti32x8 | Vinserti64x2 | Vinserti64x4
        | Vcvtne2ps2bf16 => true,
        // Sums over neighbours, and comparisons of each with each.
        Vpmaddwd | Vpmaddubsw | Vdbpsadbw | Vpconflictd | Vpconflictq | Vpmultishiftqb
        | Vgf2p8affineqb | Vgf2p8affineinvqb | V4fmaddps | V4fmaddss | V4fnmaddps | V4fnmaddss
        | Vp4dpwssd | Vp4dpwssds => true,
        // Shifts, where the memory holds not the elements but the one count.
        Vpsllw | Vpslld | Vpsllq | Vpsrlw | Vpsrld | Vpsrlq | Vpsraw | Vpsrad | Vpsraq => {
            memory_operand(instruction) == Some(2)
        }
        _ => false,
    }
}

//! From instruction bytes to memory operands.
//!
//! `iced`'s table of used memory is right about nearly everything, stack pointer adjustments
//! included. We differ from it here: cache-line hints (`clflush`, `clwb`, `umonitor`) touch nothing;
//! a `rep` string has its element's size; an update splits into a read and a write unless it is
//! atomic, and `aadd` and `cmpccxadd` are atomic without a prefix; reads come before writes; areas
//! of unknown size get the least they can have; `clzero`, unknown to that table, is added.

use crate::address::{AddressExpr, Gpr, Segment};
use crate::lanes::Pattern;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    InstructionInfoOptions, MemorySize, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};
use raddle_model::AccessKind;

/// An instruction, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Its bytes.
    pub length: usize,
    /// Where execution goes next.
    pub flow: Flow,
    /// The memory it touches, reads before writes. An instruction's registers are not here.
    pub operands: Vec<Operand>,
    /// It has a `lock` prefix, or is an `xchg` with memory (or `aadd` and kin, `cmpccxadd`): its one
    /// operand is an [`AccessKind::AtomicUpdate`].
    pub atomic: bool,
    /// It is atomic for the fence's sake only: `lock or dword ptr [rsp], 0` and the like, which
    /// leave what is on the stack as it was.
    pub fence_only: bool,
    /// It is atomic and changes memory only if the old value was the expected one, which the zero
    /// flag tells afterwards: `cmpxchg`, `cmpxchg8b`, `cmpxchg16b`.
    pub compares: bool,
    /// It may put the stack pointer anywhere: on another stack, or above frames that are left without
    /// returning. Not what functions do to make and leave their own frames.
    pub moves_stack: bool,
}

/// How an instruction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// With the instruction behind it.
    Next,
    /// Always elsewhere, by an immediate, a register or memory.
    Jump,
    /// Perhaps elsewhere; `loop` and `jrcxz` included.
    ConditionalJump,
    /// In a function, the return address on the stack.
    Call,
    /// Where the stack says.
    Return,
    /// In the kernel: `syscall`, `sysenter`, `int 0x80`.
    Syscall,
    /// Traps, hypervisor calls, transactional memory, what only the kernel may do.
    Other,
}

/// One stretch of memory and what is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Read, written, or both at once.
    pub kind: AccessKind,
    /// Bytes of the access; of one element for [`Extent::Repeat`], [`Extent::Scan`] and
    /// [`Extent::Lanes`].
    pub size: u32,
    /// Where it is, or, of more than one element, where the first would be.
    pub address: AddressExpr,
    /// Whether it is more, or less, than `size` bytes.
    pub extent: Extent,
    /// On the stack for certain: an implicit push or pop, or the explicit base register `rsp`.
    pub stack: bool,
    /// Not written in the instruction: what `push`, `pop`, `call`, `ret`, `enter` and `leave` do to
    /// the stack besides.
    pub implicit: bool,
}

/// How much memory an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extent {
    /// `size` bytes.
    Once,
    /// `rep movs`, `stos`, `lods`, `ins`, `outs`: as many elements as `rcx` says (`ecx` where the
    /// address is narrow) before it runs; none when it is zero. Upwards, or downwards from the first
    /// element when the direction flag is set.
    Repeat,
    /// `repe`/`repne` `cmps`, `scas`: like `Repeat`, but it stops early; how far the counter went
    /// is known after it ran.
    Scan,
    /// Gathers, scatters, masked moves, bit strings, `xlat`, `clzero`: ask [`crate::lanes`].
    Lanes,
    /// State areas (`xsave`, `fxsave`, `fnsave`, AMX tiles): `size` is the whole where it is fixed,
    /// else the least that is touched.
    Bulk,
}

/// Bytes every `xsave` area has: the legacy region and the header. How much follows depends on
/// XCR0 and `edx:eax`.
const XSAVE_LEAST: u32 = 512 + 64;

/// Bytes of one row of an AMX tile with the only palette there is. How many rows there are, and
/// whether they are full, is in the tile configuration.
const TILE_ROW: u32 = 64;

/// Bytes of what `iced` has no size for: instructions of the kernel, and VIA's cryptography.
const UNKNOWN_LEAST: u32 = 1;

/// The largest access that is one access: a `zmm` register's. Anything larger is an area.
const LARGEST_ACCESS: u32 = 64;

/// Bytes of a cache line, as `clzero` means it.
pub(crate) const CACHE_LINE: u32 = 64;

/// Decodes the instruction at the start of `bytes`, which lies at address `ip`. `None` when the
/// bytes are no instruction or end within one.
pub fn decode(bytes: &[u8], ip: u64) -> Option<Decoded> {
    let instruction = instruction(bytes, ip)?;
    let atomic = is_atomic(&instruction);
    Some(Decoded {
        length: instruction.len(),
        flow: flow(&instruction),
        operands: operands(&instruction),
        atomic,
        fence_only: atomic && is_stack_fence(&instruction),
        compares: atomic
            && matches!(
                instruction.mnemonic(),
                Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b
            ),
        moves_stack: moves_stack(&instruction),
    })
}

/// Is the stack pointer an operand that is written, other than by making room, giving it back by a fixed
/// amount, aligning, or leaving a frame by its frame pointer?
fn moves_stack(instruction: &Instruction) -> bool {
    let is_stack_pointer = |operand: u32| {
        instruction.op_kind(operand) == OpKind::Register
            && instruction.op_register(operand).full_register() == Register::RSP
    };
    let written = match instruction.mnemonic() {
        // Both operands of these are written; of all others, the first at most.
        Mnemonic::Xchg | Mnemonic::Xadd => 2,
        Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Call | Mnemonic::Jmp => 0,
        _ => 1,
    };
    if !(0..written.min(instruction.op_count())).any(is_stack_pointer) {
        return false;
    }
    let is_fixed = instruction.op_count() == 2 && instruction.op_kind(1) != OpKind::Register;
    match instruction.mnemonic() {
        Mnemonic::Add => !is_fixed || instruction.op_kind(1) == OpKind::Memory,
        Mnemonic::Sub | Mnemonic::And | Mnemonic::Inc | Mnemonic::Dec => false,
        Mnemonic::Lea => {
            let frame = [Register::RSP, Register::RBP].contains(&instruction.memory_base());
            !frame || instruction.memory_index() != Register::None
        }
        Mnemonic::Mov => is_fixed || instruction.op_register(1).full_register() != Register::RBP,
        _ => true,
    }
}

/// The instruction at the start of `bytes`, 64-bit mode.
pub(crate) fn instruction(bytes: &[u8], ip: u64) -> Option<Instruction> {
    let instruction = Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// The memory an instruction touches, reads before writes.
pub(crate) fn operands(instruction: &Instruction) -> Vec<Operand> {
    if is_hint(instruction) {
        return Vec::new();
    }
    if instruction.mnemonic() == Mnemonic::Clzero {
        return vec![cache_line_zeroed(instruction)];
    }
    let pattern = Pattern::of(instruction);
    let atomic = is_atomic(instruction);
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
    let mut operands = Vec::with_capacity(2 * info.used_memory().len());
    for memory in info.used_memory() {
        let address = AddressExpr::of(memory);
        let (size, extent) = match &pattern {
            Some(pattern) => (pattern.element(), Extent::Lanes),
            None => size(instruction, memory),
        };
        let stack = is_stack(instruction, &address);
        for &kind in kinds(memory.access(), atomic) {
            let implicit = stack && is_implicit(instruction, kind);
            operands.push(Operand { kind, size, address, extent, stack, implicit });
        }
    }
    operands.sort_by_key(|operand| operand.kind == AccessKind::Write);
    operands
}

/// What an access of `iced`'s is to us. A conditional one counts: where it does not happen, a mask
/// or a count of zero is the reason, and the extent tells of those.
fn kinds(access: OpAccess, atomic: bool) -> &'static [AccessKind] {
    match access {
        OpAccess::Read | OpAccess::CondRead => &[AccessKind::Read],
        OpAccess::Write | OpAccess::CondWrite => &[AccessKind::Write],
        OpAccess::ReadWrite | OpAccess::ReadCondWrite if atomic => &[AccessKind::AtomicUpdate],
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => &[AccessKind::Read, AccessKind::Write],
        _ => &[],
    }
}

/// Size and extent of an operand that no mask or vector shapes.
fn size(instruction: &Instruction, memory: &UsedMemory) -> (u32, Extent) {
    if instruction.is_string_instruction() {
        let element = instruction.memory_size().size() as u32;
        return (element, string_extent(instruction));
    }
    match memory.memory_size() {
        MemorySize::Xsave | MemorySize::Xsave64 => (XSAVE_LEAST, Extent::Bulk),
        MemorySize::Tile => (TILE_ROW, Extent::Bulk),
        MemorySize::Unknown => (UNKNOWN_LEAST, Extent::Bulk),
        known => {
            let size = known.size() as u32;
            (size, if size > LARGEST_ACCESS { Extent::Bulk } else { Extent::Once })
        }
    }
}

/// How far a string instruction goes. Either prefix repeats one that does not compare.
fn string_extent(instruction: &Instruction) -> Extent {
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let compares = matches!(
        instruction.code(),
        Code::Cmpsb_m8_m8
            | Code::Cmpsw_m16_m16
            | Code::Cmpsd_m32_m32
            | Code::Cmpsq_m64_m64
            | Code::Scasb_AL_m8
            | Code::Scasw_AX_m16
            | Code::Scasd_EAX_m32
            | Code::Scasq_RAX_m64
    );
    match (repeated, compares) {
        (false, _) => Extent::Once,
        (true, false) => Extent::Repeat,
        (true, true) => Extent::Scan,
    }
}

/// `leave` and `enter` reach the stack through `rbp`; everyone else through `rsp`.
fn is_stack(instruction: &Instruction, address: &AddressExpr) -> bool {
    let by_frame = matches!(instruction.mnemonic(), Mnemonic::Leave | Mnemonic::Enter);
    address.segment.is_none() && (by_frame || address.base == Some(Gpr::RSP))
}

/// Is a stack access of this kind the instruction's own, rather than its memory operand's? `push
/// [rsp]` reads its operand and writes the stack besides; `pop [rsp]` the other way round.
fn is_implicit(instruction: &Instruction, kind: AccessKind) -> bool {
    let operand = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
    let pushes = instruction.stack_pointer_increment() < 0;
    instruction.is_stack_instruction() && (!operand || (kind == AccessKind::Write) == pushes)
}

/// Instructions that name a cache line and neither read nor write what is in it. Those not listed
/// (`prefetch`, `cldemote`, `invlpg`, `nop`, `lea`) `iced` knows to access nothing.
fn is_hint(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Clflush | Mnemonic::Clflushopt | Mnemonic::Clwb | Mnemonic::Umonitor
    )
}

/// `clzero` (AMD): the line that `rax` points into.
fn cache_line_zeroed(instruction: &Instruction) -> Operand {
    Operand {
        kind: AccessKind::Write,
        size: CACHE_LINE,
        address: AddressExpr {
            segment: Segment::of(instruction.segment_prefix()),
            base: Some(Gpr::RAX),
            index: None,
            scale: 1,
            displacement: 0,
            narrow: instruction.code() != Code::Clzeroq,
        },
        extent: Extent::Lanes,
        stack: false,
        implicit: false,
    }
}

/// No other access can come between its read and its write.
fn is_atomic(instruction: &Instruction) -> bool {
    if !(0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory) {
        return false;
    }
    instruction.has_lock_prefix()
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Xchg
                | Mnemonic::Aadd
                | Mnemonic::Aand
                | Mnemonic::Aor
                | Mnemonic::Axor
                | Mnemonic::Cmpbexadd
                | Mnemonic::Cmpbxadd
                | Mnemonic::Cmplexadd
                | Mnemonic::Cmplxadd
                | Mnemonic::Cmpnbexadd
                | Mnemonic::Cmpnbxadd
                | Mnemonic::Cmpnlexadd
                | Mnemonic::Cmpnlxadd
                | Mnemonic::Cmpnoxadd
                | Mnemonic::Cmpnpxadd
                | Mnemonic::Cmpnsxadd
                | Mnemonic::Cmpnzxadd
                | Mnemonic::Cmpoxadd
                | Mnemonic::Cmppxadd
                | Mnemonic::Cmpsxadd
                | Mnemonic::Cmpzxadd
        )
}

/// A locked operation on the stack that changes nothing: a fence cheaper than `mfence`.
fn is_stack_fence(instruction: &Instruction) -> bool {
    let on_stack = matches!(instruction.memory_base(), Register::RSP | Register::ESP)
        && instruction.memory_index() == Register::None
        && Segment::of(instruction.memory_segment()).is_none();
    let Ok(immediate) = instruction.try_immediate(1) else { return false };
    let bits = 8 * instruction.memory_size().size();
    match instruction.mnemonic() {
        Mnemonic::Or | Mnemonic::Add | Mnemonic::Sub | Mnemonic::Xor => on_stack && immediate == 0,
        // An immediate of the operand's own size is not extended: look at the operand's bits only.
        Mnemonic::And => on_stack && (!immediate).checked_shl(64 - bits as u32) == Some(0),
        _ => false,
    }
}

/// The vector of 32-bit Linux system calls.
const LINUX_SYSCALL_INTERRUPT: u8 = 0x80;

fn flow(instruction: &Instruction) -> Flow {
    match instruction.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => Flow::Jump,
        FlowControl::ConditionalBranch => Flow::ConditionalJump,
        FlowControl::Call | FlowControl::IndirectCall => match instruction.mnemonic() {
            Mnemonic::Call => Flow::Call,
            Mnemonic::Syscall | Mnemonic::Sysenter => Flow::Syscall,
            _ => Flow::Other,
        },
        FlowControl::Return => match instruction.mnemonic() {
            Mnemonic::Ret
            | Mnemonic::Retf
            | Mnemonic::Iret
            | Mnemonic::Iretd
            | Mnemonic::Iretq
            | Mnemonic::Uiret => Flow::Return,
            _ => Flow::Other,
        },
        FlowControl::Interrupt
            if instruction.mnemonic() == Mnemonic::Int
                && instruction.immediate8() == LINUX_SYSCALL_INTERRUPT =>
        {
            Flow::Syscall
        }
        _ => Flow::Other,
    }
}

//! What instructions do to memory, one line each: how GNU as writes it, its bytes as GNU as made
//! them (so that a decoder's mistake cannot hide in the assembler's), and the accesses expected.
//!
//! An access reads `kind size [address] extent stack` (or `implicit` for what `push` and kin do
//! besides); `narrow` marks a 32-bit address size.

mod common;

use common::{IP, hex};
use raddle_decode::{AddressExpr, Extent, Operand, Segment, decode};
use raddle_model::AccessKind;

#[test]
fn every_instruction_of_the_table() {
    let mut wrong = Vec::new();
    for &(text, bytes, expected) in TABLE {
        let bytes = hex(bytes);
        let found = match decode(&bytes, IP) {
            Some(decoded) if decoded.length != bytes.len() => {
                format!("length {}", decoded.length)
            }
            Some(decoded) => decoded.operands.iter().map(access).collect::<Vec<_>>().join(", "),
            None => "not decoded".to_string(),
        };
        if found != expected {
            wrong.push(format!("{text}\n  expected: {expected}\n  found:    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), TABLE.len(), wrong.join("\n"));
}

/// `atomic` goes with atomic updates, in every line of the table.
#[test]
fn atomic_means_one_atomic_update() {
    for &(text, bytes, expected) in TABLE {
        let decoded = decode(&hex(bytes), IP).expect(text);
        let updates = expected.matches("update").count();
        assert_eq!(decoded.atomic, updates == 1, "{text}");
        if decoded.atomic {
            assert_eq!(decoded.operands.len(), 1, "{text}");
        }
        assert!(!decoded.fence_only, "{text}");
    }
}

/// Every prefix of an instruction that is shorter than it is no instruction.
#[test]
fn cut_short_is_not_decoded() {
    for &(text, bytes, _) in TABLE {
        let bytes = hex(bytes);
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length], IP), None, "{text}, {length} bytes");
        }
    }
}

fn access(operand: &Operand) -> String {
    let kind = match operand.kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::AtomicUpdate => "update",
        other => panic!("{other:?} is not for the instruction alone to say"),
    };
    let extent = match operand.extent {
        Extent::Once => "",
        Extent::Repeat => " repeat",
        Extent::Scan => " scan",
        Extent::Lanes => " lanes",
        Extent::Bulk => " bulk",
    };
    let stack = match (operand.stack, operand.implicit) {
        (true, true) => " implicit",
        (true, false) => " stack",
        (false, false) => "",
        (false, true) => " implicit, but not on the stack",
    };
    format!("{kind} {} {}{extent}{stack}", operand.size, place(&operand.address))
}

fn place(address: &AddressExpr) -> String {
    const NAMES: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    let mut terms = Vec::new();
    if let Some(base) = address.base {
        terms.push(NAMES[usize::from(base.0)].to_string());
    }
    if let Some(index) = address.index {
        terms.push(format!("{}*{}", NAMES[usize::from(index.0)], address.scale));
    }
    let mut sum = terms.join("+");
    match address.displacement {
        0 if !sum.is_empty() => {}
        d if d < 0 => sum += &format!("-{:#x}", d.unsigned_abs()),
        d if sum.is_empty() => sum = format!("{d:#x}"),
        d => sum += &format!("+{d:#x}"),
    }
    let segment = match address.segment {
        None => "",
        Some(Segment::Fs) => "fs:",
        Some(Segment::Gs) => "gs:",
    };
    let narrow = if address.narrow { "narrow " } else { "" };
    format!("{narrow}{segment}[{sum}]")
}

#[rustfmt::skip]
const TABLE: &[(&str, &str, &str)] = &[
    // Plain loads and stores.
    ("mov rax, [rdi]", "48 8b 07", "read 8 [rdi]"),
    ("mov byte ptr [rdi+rcx*4-0x10], 1", "c6 44 8f f0 01", "write 1 [rdi+rcx*4-0x10]"),
    ("movzx eax, word ptr [r13+0]", "41 0f b7 45 00", "read 2 [r13]"),
    ("mov eax, [r12+r9*8+0x12345678]", "43 8b 84 cc 78 56 34 12", "read 4 [r12+r9*8+0x12345678]"),
    ("mov eax, [rip+0x100]", "8b 05 00 01 00 00", "read 4 [0x401106]"),
    ("cmp dword ptr [rip+0x10], 5", "83 3d 10 00 00 00 05", "read 4 [0x401017]"),
    ("mov rax, fs:[0x28]", "64 48 8b 04 25 28 00 00 00", "read 8 fs:[0x28]"),
    ("mov fs:[0xfffffffffffffff8], eax", "64 89 04 25 f8 ff ff ff", "write 4 fs:[-0x8]"),
    ("mov rax, gs:[rbx]", "65 48 8b 03", "read 8 gs:[rbx]"),
    ("movabs al, [0x1122334455667788]", "a0 88 77 66 55 44 33 22 11", "read 1 [0x1122334455667788]"),
    ("mov eax, [ebx+esi*2-4]", "67 8b 44 73 fc", "read 4 narrow [rbx+rsi*2-0x4]"),
    ("mov eax, [eip+0x100]", "67 8b 05 00 01 00 00", "read 4 narrow [0x401107]"),
    ("mov ds, word ptr [rax]", "8e 18", "read 2 [rax]"),
    ("mov eax, [rsp+8]", "8b 44 24 08", "read 4 [rsp+0x8] stack"),
    ("mov eax, [rbp-8]", "8b 45 f8", "read 4 [rbp-0x8]"),
    ("mov eax, fs:[rsp]", "64 8b 04 24", "read 4 fs:[rsp]"),
    ("cmove rax, [rdi]", "48 0f 44 07", "read 8 [rdi]"),
    ("sete byte ptr [rdi]", "0f 94 07", "write 1 [rdi]"),
    ("test byte ptr [rdi], 1", "f6 07 01", "read 1 [rdi]"),
    ("movnti [rdi], rax", "48 0f c3 07", "write 8 [rdi]"),
    ("movbe rax, [rdi]", "48 0f 38 f0 07", "read 8 [rdi]"),
    ("crc32 eax, byte ptr [rdi]", "f2 0f 38 f0 07", "read 1 [rdi]"),
    ("mulx rax, rbx, [rdi]", "c4 e2 e3 f6 07", "read 8 [rdi]"),
    // Read-modify-write, unlocked: two accesses of the same place.
    ("add [rdi], eax", "01 07", "read 4 [rdi], write 4 [rdi]"),
    ("neg byte ptr [rdi]", "f6 1f", "read 1 [rdi], write 1 [rdi]"),
    ("shl qword ptr [rdi], cl", "48 d3 27", "read 8 [rdi], write 8 [rdi]"),
    ("cmpxchg [rdi], ecx", "0f b1 0f", "read 4 [rdi], write 4 [rdi]"),
    ("xadd [rdi], ecx", "0f c1 0f", "read 4 [rdi], write 4 [rdi]"),
    ("cmpxchg16b [rdi]", "48 0f c7 0f", "read 16 [rdi], write 16 [rdi]"),
    ("bts dword ptr [rdi], 3", "0f ba 2f 03", "read 4 [rdi], write 4 [rdi]"),
    // Atomic: one access.
    ("lock add [rdi], eax", "f0 01 07", "update 4 [rdi]"),
    ("lock cmpxchg [rdi], rcx", "f0 48 0f b1 0f", "update 8 [rdi]"),
    ("lock cmpxchg8b [rdi]", "f0 0f c7 0f", "update 8 [rdi]"),
    ("lock cmpxchg16b [rdi]", "f0 48 0f c7 0f", "update 16 [rdi]"),
    ("lock xadd word ptr [rdi], cx", "66 f0 0f c1 0f", "update 2 [rdi]"),
    ("lock bts dword ptr [rdi], 3", "f0 0f ba 2f 03", "update 4 [rdi]"),
    ("lock dec byte ptr [rip]", "f0 fe 0d 00 00 00 00", "update 1 [0x401007]"),
    ("xchg [rdi], eax", "87 07", "update 4 [rdi]"),
    ("lock xchg [rdi], al", "f0 86 07", "update 1 [rdi]"),
    ("aadd [rdi], eax", "0f 38 fc 07", "update 4 [rdi]"),
    ("cmpbexadd [rdi], eax, ecx", "c4 e2 71 e6 07", "update 4 [rdi]"),
    // The stack.
    ("push rax", "50", "write 8 [rsp-0x8] implicit"),
    ("push 5", "6a 05", "write 8 [rsp-0x8] implicit"),
    ("push ax", "66 50", "write 2 [rsp-0x2] implicit"),
    ("push fs", "0f a0", "write 8 [rsp-0x8] implicit"),
    ("pushf", "9c", "write 8 [rsp-0x8] implicit"),
    ("push [rsp+8]", "ff 74 24 08", "read 8 [rsp+0x8] stack, write 8 [rsp-0x8] implicit"),
    ("push fs:[rax]", "64 ff 30", "read 8 fs:[rax], write 8 [rsp-0x8] implicit"),
    ("pop rax", "58", "read 8 [rsp] implicit"),
    ("pop [rdi]", "8f 07", "read 8 [rsp] implicit, write 8 [rdi]"),
    ("pop [rsp]", "8f 04 24", "read 8 [rsp] implicit, write 8 [rsp+0x8] stack"),
    ("pop [rsp-0x10]", "8f 44 24 f0", "read 8 [rsp] implicit, write 8 [rsp-0x8] stack"),
    ("pop word ptr [rsp]", "66 8f 04 24", "read 2 [rsp] implicit, write 2 [rsp+0x2] stack"),
    ("pop [esp]", "67 8f 04 24", "read 8 [rsp] implicit, write 8 narrow [rsp+0x8] stack"),
    ("call rax", "ff d0", "write 8 [rsp-0x8] implicit"),
    ("call [rsp+8]", "ff 54 24 08", "read 8 [rsp+0x8] stack, write 8 [rsp-0x8] implicit"),
    ("call [rip+0x100]", "ff 15 00 01 00 00", "read 8 [0x401106], write 8 [rsp-0x8] implicit"),
    ("jmp [rax*8+0x600000]", "ff 24 c5 00 00 60 00", "read 8 [rax*8+0x600000]"),
    ("ret", "c3", "read 8 [rsp] implicit"),
    ("ret 16", "c2 10 00", "read 8 [rsp] implicit"),
    ("leave", "c9", "read 8 [rbp] implicit"),
    ("enter 32, 0", "c8 20 00 00", "write 8 [rsp-0x8] implicit"),
    ("enter 32, 3", "c8 20 00 03", "read 8 [rbp-0x8] implicit, read 8 [rbp-0x10] implicit, write 8 [rsp-0x8] implicit, write 8 [rsp-0x10] implicit, write 8 [rsp-0x18] implicit, write 8 [rsp-0x20] implicit"),
    ("iretq", "48 cf", "read 8 [rsp] implicit, read 8 [rsp+0x8] implicit, read 8 [rsp+0x10] implicit, read 8 [rsp+0x18] implicit, read 8 [rsp+0x20] implicit"),
    // Strings.
    ("movsb", "a4", "read 1 [rsi], write 1 [rdi]"),
    ("movsq", "48 a5", "read 8 [rsi], write 8 [rdi]"),
    ("stosd", "ab", "write 4 [rdi]"),
    ("lodsw", "66 ad", "read 2 [rsi]"),
    ("cmpsb", "a6", "read 1 [rsi], read 1 [rdi]"),
    ("scasd", "af", "read 4 [rdi]"),
    ("rep movsb", "f3 a4", "read 1 [rsi] repeat, write 1 [rdi] repeat"),
    ("rep movsq", "f3 48 a5", "read 8 [rsi] repeat, write 8 [rdi] repeat"),
    ("rep stosq", "f3 48 ab", "write 8 [rdi] repeat"),
    ("rep lodsb", "f3 ac", "read 1 [rsi] repeat"),
    ("repne movsb", "f2 a4", "read 1 [rsi] repeat, write 1 [rdi] repeat"),
    ("rep movs byte ptr es:[rdi], byte ptr fs:[rsi]", "64 f3 a4", "read 1 fs:[rsi] repeat, write 1 [rdi] repeat"),
    ("rep stos byte ptr es:[edi], al", "67 f3 aa", "write 1 narrow [rdi] repeat"),
    ("repe cmpsb", "f3 a6", "read 1 [rsi] scan, read 1 [rdi] scan"),
    ("repne scasb", "f2 ae", "read 1 [rdi] scan"),
    ("repne scasw", "66 f2 af", "read 2 [rdi] scan"),
    // SSE, AVX and x87 sizes.
    ("movss xmm0, [rdi]", "f3 0f 10 07", "read 4 [rdi]"),
    ("movsd xmm0, [rdi]", "f2 0f 10 07", "read 8 [rdi]"),
    ("movsd [rdi], xmm0", "f2 0f 11 07", "write 8 [rdi]"),
    ("movhps [rdi], xmm0", "0f 17 07", "write 8 [rdi]"),
    ("movdqu xmm0, [rdi]", "f3 0f 6f 07", "read 16 [rdi]"),
    ("movaps [rdi], xmm0", "0f 29 07", "write 16 [rdi]"),
    ("cmpsd xmm0, [rdi], 1", "f2 0f c2 07 01", "read 8 [rdi]"),
    ("pinsrb xmm0, [rdi], 3", "66 0f 3a 20 07 03", "read 1 [rdi]"),
    ("pextrw [rdi], xmm0, 3", "66 0f 3a 15 07 03", "write 2 [rdi]"),
    ("pmovzxbq xmm0, [rdi]", "66 0f 38 32 07", "read 2 [rdi]"),
    ("punpcklbw mm0, [rdi]", "0f 60 07", "read 4 [rdi]"),
    ("punpcklbw xmm0, [rdi]", "66 0f 60 07", "read 16 [rdi]"),
    ("pcmpistri xmm0, [rdi], 0x1a", "66 0f 3a 63 07 1a", "read 16 [rdi]"),
    ("vmovdqu ymm0, [rdi]", "c5 fe 6f 07", "read 32 [rdi]"),
    ("vmovntdq [rdi], ymm0", "c5 fd e7 07", "write 32 [rdi]"),
    ("vbroadcastss ymm0, [rdi]", "c4 e2 7d 18 07", "read 4 [rdi]"),
    ("vbroadcasti128 ymm0, [rdi]", "c4 e2 7d 5a 07", "read 16 [rdi]"),
    ("vextracti128 [rdi], ymm0, 1", "c4 e3 7d 39 07 01", "write 16 [rdi]"),
    ("vfmadd213sd xmm0, xmm1, [rdi]", "c4 e2 f1 a9 07", "read 8 [rdi]"),
    ("ldmxcsr [rdi]", "0f ae 17", "read 4 [rdi]"),
    ("fld dword ptr [rdi]", "d9 07", "read 4 [rdi]"),
    ("fld tbyte ptr [rdi]", "db 2f", "read 10 [rdi]"),
    ("fstp tbyte ptr [rdi]", "db 3f", "write 10 [rdi]"),
    ("fistp word ptr [rdi]", "df 1f", "write 2 [rdi]"),
    ("fnstcw [rdi]", "d9 3f", "write 2 [rdi]"),
    ("fldenv [rdi]", "d9 27", "read 28 [rdi]"),
    ("fnsave [rdi]", "dd 37", "write 108 [rdi] bulk"),
    ("fxsave [rdi]", "0f ae 07", "write 512 [rdi] bulk"),
    ("fxrstor64 [rdi]", "48 0f ae 0f", "read 512 [rdi] bulk"),
    ("xsave [rdi]", "0f ae 27", "read 576 [rdi] bulk, write 576 [rdi] bulk"),
    ("xsavec64 [rdi]", "48 0f c7 27", "write 576 [rdi] bulk"),
    ("xrstor [rdi]", "0f ae 2f", "read 576 [rdi] bulk"),
    ("movdir64b rax, [rdi]", "66 0f 38 f8 07", "read 64 [rdi], write 64 [rax]"),
    ("movdir64b eax, [edi]", "67 66 0f 38 f8 07", "read 64 narrow [rdi], write 64 narrow [rax]"),
    ("tileloadd tmm1, [rdi+rcx*1]", "c4 e2 7b 4b 0c 0f", "read 64 [rdi] bulk"),
    // AVX-512 without a mask.
    ("vmovdqu64 zmm0, [rdi]", "62 f1 fe 48 6f 07", "read 64 [rdi]"),
    ("vmovaps [rdi], zmm17", "62 e1 7c 48 29 0f", "write 64 [rdi]"),
    ("vaddps zmm0, zmm1, [rdi+0x40]", "62 f1 74 48 58 47 01", "read 64 [rdi+0x40]"),
    ("vaddps zmm0, zmm1, dword ptr [rdi+4]{1to16}", "62 f1 74 58 58 47 01", "read 4 [rdi+0x4]"),
    ("vaddpd ymm0, ymm1, qword ptr [rdi]{1to4}", "62 f1 f5 38 58 07", "read 8 [rdi]"),
    ("vpmuldq zmm0, zmm1, qword ptr [rdi]{1to8}", "62 f2 f5 58 28 07", "read 8 [rdi]"),
    ("vdpbf16ps zmm0, zmm1, dword ptr [rdi]{1to16}", "62 f2 76 58 52 07", "read 4 [rdi]"),
    ("vpermd zmm0, zmm1, [rdi]", "62 f2 75 48 36 07", "read 64 [rdi]"),
    ("kmovq k1, [rdi]", "c4 e1 f8 90 0f", "read 8 [rdi]"),
    // Masks, vectors and bits decide.
    ("bt [rdi], eax", "0f a3 07", "read 4 [rdi] lanes"),
    ("bts [rdi], rax", "48 0f ab 07", "read 8 [rdi] lanes, write 8 [rdi] lanes"),
    ("lock btr word ptr [rdi], ax", "66 f0 0f b3 07", "update 2 [rdi] lanes"),
    ("xlatb", "d7", "read 1 [rbx] lanes"),
    ("clzero", "0f 01 fc", "write 64 [rax] lanes"),
    ("maskmovdqu xmm0, xmm1", "66 0f f7 c1", "write 1 [rdi] lanes"),
    ("maskmovq mm0, mm1", "0f f7 c1", "write 8 [rdi]"),
    ("vmaskmovps ymm0, ymm1, [rsi]", "c4 e2 75 2c 06", "read 4 [rsi] lanes"),
    ("vpmaskmovq [rsi], xmm1, xmm0", "c4 e2 f1 8e 06", "write 8 [rsi] lanes"),
    ("vpgatherdd ymm0, [rdi+ymm1*4+0x10], ymm2", "c4 e2 6d 90 44 8f 10", "read 4 [rdi+0x10] lanes"),
    ("vgatherqpd ymm0, [rdi+ymm1*8], ymm2", "c4 e2 ed 93 04 cf", "read 8 [rdi] lanes"),
    ("vpgatherdq zmm0{k1}, [rdi+ymm1*8]", "62 f2 fd 49 90 04 cf", "read 8 [rdi] lanes"),
    ("vpscatterdd [rdi+zmm1*4]{k1}, zmm0", "62 f2 7d 49 a0 04 8f", "write 4 [rdi] lanes"),
    ("vmovdqu8 zmm0{k1}{z}, [rdi]", "62 f1 7f c9 6f 07", "read 1 [rdi] lanes"),
    ("vmovdqu32 [rdi]{k1}, ymm0", "62 f1 7e 29 7f 07", "write 4 [rdi] lanes"),
    ("vaddpd zmm0{k1}, zmm1, [rdi]", "62 f1 f5 49 58 07", "read 8 [rdi] lanes"),
    ("vaddpd zmm0{k1}, zmm1, qword ptr [rdi]{1to8}", "62 f1 f5 59 58 07", "read 8 [rdi] lanes"),
    ("vaddss xmm0{k1}, xmm1, [rdi]", "62 f1 76 09 58 07", "read 4 [rdi] lanes"),
    ("vpdpbusd zmm0{k1}, zmm1, [rdi]", "62 f2 75 49 50 07", "read 4 [rdi] lanes"),
    ("vpmuludq zmm0{k1}, zmm1, [rdi]", "62 f1 f5 49 f4 07", "read 8 [rdi] lanes"),
    ("vbroadcastf32x4 zmm0{k1}, [rdi]", "62 f2 7d 49 1a 07", "read 4 [rdi] lanes"),
    ("vpmovqb [rdi]{k1}, zmm0", "62 f2 7e 49 32 07", "write 1 [rdi] lanes"),
    ("vpcompressd [rdi]{k1}, zmm0", "62 f2 7d 49 8b 07", "write 4 [rdi] lanes"),
    ("vexpandpd zmm0{k1}{z}, [rdi]", "62 f2 fd c9 88 07", "read 8 [rdi] lanes"),
    // Shuffles and their like read all of it, mask or not.
    ("vpermd zmm0{k1}, zmm1, [rdi]", "62 f2 75 49 36 07", "read 64 [rdi]"),
    ("vpermt2ps ymm0{k1}, ymm1, [rdi]", "62 f2 75 29 7f 07", "read 32 [rdi]"),
    ("vpermilps zmm0{k1}, [rdi], 1", "62 f3 7d 49 04 07 01", "read 64 [rdi]"),
    ("vpshufb zmm0{k1}, zmm1, [rdi]", "62 f2 75 49 00 07", "read 64 [rdi]"),
    ("vshufps zmm0{k1}, zmm1, dword ptr [rdi]{1to16}, 1", "62 f1 74 59 c6 07 01", "read 4 [rdi]"),
    ("valignq zmm0{k1}, zmm1, [rdi], 1", "62 f3 f5 49 03 07 01", "read 64 [rdi]"),
    ("vmovddup xmm0{k1}, [rdi]", "62 f1 ff 09 12 07", "read 8 [rdi]"),
    ("vpackssdw zmm0{k1}, zmm1, [rdi]", "62 f1 75 49 6b 07", "read 64 [rdi]"),
    ("vpunpcklbw xmm0{k1}, xmm1, [rdi]", "62 f1 75 09 60 07", "read 16 [rdi]"),
    ("vinserti32x4 zmm0{k1}, zmm1, [rdi], 1", "62 f3 75 49 38 07 01", "read 16 [rdi]"),
    ("vpmaddwd ymm0{k1}, ymm1, [rdi]", "62 f1 75 29 f5 07", "read 32 [rdi]"),
    ("vpconflictd zmm0{k1}, [rdi]", "62 f2 7d 49 c4 07", "read 64 [rdi]"),
    ("vpslld xmm0{k1}, xmm1, [rdi]", "62 f1 75 09 f2 07", "read 16 [rdi]"),
    ("vpslld xmm0{k1}, [rdi], 3", "62 f1 7d 09 72 37 03", "read 4 [rdi] lanes"),
    // An address, and no access.
    ("lea rax, [rdi+8]", "48 8d 47 08", ""),
    ("nop dword ptr [rax+rax]", "0f 1f 04 00", ""),
    ("prefetcht0 [rdi]", "0f 18 0f", ""),
    ("prefetchw [rdi]", "0f 0d 0f", ""),
    ("clflush [rdi]", "0f ae 3f", ""),
    ("clflushopt [rdi]", "66 0f ae 3f", ""),
    ("clwb [rdi]", "66 0f ae 37", ""),
    ("cldemote [rdi]", "0f 1c 07", ""),
    ("umonitor rdi", "f3 0f ae f7", ""),
    ("invlpg [rdi]", "0f 01 3f", ""),
    ("endbr64", "f3 0f 1e fa", ""),
    ("mfence", "0f ae f0", ""),
    ("pause", "f3 90", ""),
    ("xchg eax, ecx", "91", ""),
    ("bt ecx, eax", "0f a3 c1", ""),
    ("syscall", "0f 05", ""),
    ("vgatherpf0dps [rdi+zmm1*4]{k1}", "62 f2 7d 49 c6 0c 8f", ""),
];

//! Where instructions go, which of them are fences in disguise, and that no bytes upset us.

mod common;

use common::{IP, Machine, hex};
use raddle_decode::{Extent, Flow, decode, lanes};
use raddle_model::AccessKind;

#[test]
fn flow() {
    for (text, bytes, expected) in [
        ("nop", "90", Flow::Next),
        ("mov rax, [rdi]", "48 8b 07", Flow::Next),
        ("hlt", "f4", Flow::Next),
        ("jmp .", "eb fe", Flow::Jump),
        ("jmp rax", "ff e0", Flow::Jump),
        ("jmp [rdi]", "ff 27", Flow::Jump),
        ("je .", "74 fe", Flow::ConditionalJump),
        ("jrcxz .+2", "e3 00", Flow::ConditionalJump),
        ("loop .+2", "e2 00", Flow::ConditionalJump),
        ("call .+5", "e8 00 00 00 00", Flow::Call),
        ("call rax", "ff d0", Flow::Call),
        ("call [rdi]", "ff 17", Flow::Call),
        ("ret", "c3", Flow::Return),
        ("rep ret", "f3 c3", Flow::Return),
        ("ret 8", "c2 08 00", Flow::Return),
        ("retf", "cb", Flow::Return),
        ("iretq", "48 cf", Flow::Return),
        ("uiret", "f3 0f 01 ec", Flow::Return),
        ("syscall", "0f 05", Flow::Syscall),
        ("sysenter", "0f 34", Flow::Syscall),
        ("int 0x80", "cd 80", Flow::Syscall),
        ("int 0x81", "cd 81", Flow::Other),
        ("int3", "cc", Flow::Other),
        ("ud2", "0f 0b", Flow::Other),
        ("xbegin .+6", "c7 f8 00 00 00 00", Flow::Other),
        ("vmcall", "0f 01 c1", Flow::Other),
        ("sysretq", "48 0f 07", Flow::Other),
    ] {
        assert_eq!(decode(&hex(bytes), IP).expect(text).flow, expected, "{text}");
    }
}

#[test]
fn fences_on_the_stack() {
    for (text, bytes) in [
        ("lock or dword ptr [rsp], 0", "f0 83 0c 24 00"),
        ("lock or qword ptr [rsp], 0", "f0 48 83 0c 24 00"),
        ("lock or qword ptr [rsp-8], 0", "f0 48 83 4c 24 f8 00"),
        ("lock add dword ptr [rsp-0x44], 0", "f0 83 44 24 bc 00"),
        ("lock add byte ptr [rsp], 0", "f0 80 04 24 00"),
        ("lock sub dword ptr [rsp], 0", "f0 83 2c 24 00"),
        ("lock xor dword ptr [rsp], 0", "f0 83 34 24 00"),
        ("lock and dword ptr [rsp], -1", "f0 83 24 24 ff"),
        ("lock and dword ptr [rsp], 0xffffffff, long", "f0 81 24 24 ff ff ff ff"),
        ("lock and word ptr [rsp], -1", "66 f0 83 24 24 ff"),
        ("lock and qword ptr [rsp], -1", "f0 48 83 24 24 ff"),
        ("lock or dword ptr [esp], 0", "67 f0 83 0c 24 00"),
    ] {
        let decoded = decode(&hex(bytes), IP).expect(text);
        assert!(decoded.fence_only && decoded.atomic, "{text}");
        let [operand] = &decoded.operands[..] else { panic!("{text}") };
        assert_eq!((operand.kind, operand.stack), (AccessKind::AtomicUpdate, true), "{text}");
    }
}

#[test]
fn no_fences() {
    for (text, bytes) in [
        ("lock or dword ptr [rsp], 1", "f0 83 0c 24 01"),
        ("lock and dword ptr [rsp], 0", "f0 83 24 24 00"),
        ("lock and dword ptr [rsp], 0xfffffffe", "f0 83 24 24 fe"),
        ("lock or dword ptr [rdi], 0", "f0 83 0f 00"),
        ("lock or dword ptr [rsp+rax], 0", "f0 83 0c 04 00"),
        ("lock or dword ptr fs:[rsp], 0", "64 f0 83 0c 24 00"),
        ("lock or dword ptr [rsp], eax", "f0 09 04 24"),
        ("or dword ptr [rsp], 0", "83 0c 24 00"),
        ("xchg [rsp], eax", "87 04 24"),
        ("lock inc dword ptr [rsp]", "f0 ff 04 24"),
        ("mfence", "0f ae f0"),
    ] {
        assert!(!decode(&hex(bytes), IP).expect(text).fence_only, "{text}");
    }
}

#[test]
fn no_instructions() {
    // Empty; push es, gone since 64-bit; lock without memory to write; lock on a read.
    for bytes in [&[][..], &[0x06], &[0xf0, 0x01, 0xc8], &[0xf0, 0x8b, 0x07]] {
        assert_eq!(decode(bytes, IP), None, "{bytes:02x?}");
    }
}

/// What follows an instruction does not matter.
#[test]
fn only_the_first_instruction_counts() {
    let one = decode(&hex("48 8b 07"), IP);
    assert_eq!(decode(&hex("48 8b 07 f0 ff 07 06"), IP), one);
    assert_eq!(one.unwrap().length, 3);
}

/// Any bytes at all: an answer that makes sense, or none.
#[test]
fn any_bytes() {
    let machine = (1..8).fold(Machine::new(), |machine, k| machine.mask(k, 0x5555_aaaa_f00f_1111));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        // xorshift64: the same bytes in every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // Half of them begin like the vector instructions, which chance alone seldom hits.
    const BEGINNINGS: [&[u8]; 8] =
        [&[], &[], &[], &[], &[0x62, 0xf1], &[0x62, 0xf2], &[0xc4, 0xe2], &[0x0f]];
    let mut decoded_count = 0;
    for n in 0..200_000 {
        let mut bytes = BEGINNINGS[n % BEGINNINGS.len()].to_vec();
        bytes.extend(random().to_le_bytes());
        bytes.extend(random().to_le_bytes());
        // The test's machine has no gs.
        let Some(decoded) = decode(&bytes, IP).filter(|_| !bytes.contains(&0x65)) else { continue };
        decoded_count += 1;
        assert!((1..=15).contains(&decoded.length), "{bytes:02x?}");
        let writes = decoded.operands.iter().map(|operand| operand.kind == AccessKind::Write);
        assert!(writes.is_sorted(), "{bytes:02x?}");
        let updates =
            decoded.operands.iter().filter(|operand| operand.kind == AccessKind::AtomicUpdate);
        assert_eq!(updates.count(), usize::from(decoded.atomic), "{bytes:02x?}");
        for operand in &decoded.operands {
            assert!(operand.size > 0, "{bytes:02x?}");
            assert!([1, 2, 4, 8].contains(&operand.address.scale), "{bytes:02x?}");
            assert!(operand.size <= 64 || operand.extent == Extent::Bulk, "{bytes:02x?}");
        }
        let touched = lanes(&bytes, IP, &machine);
        let asked = decoded.operands.iter().any(|operand| operand.extent == Extent::Lanes);
        assert!(asked || touched.is_empty(), "{bytes:02x?}");
    }
    assert!(decoded_count > 100_000, "{decoded_count}");
}

#[test]
fn what_puts_the_stack_pointer_anywhere() {
    for (text, bytes, expected) in [
        ("mov rsp, rcx", "48 89 cc", true),
        ("mov rsp, [rdx + 0xa0]", "48 8b a2 a0 00 00 00", true),
        ("xchg rsp, rax", "48 94", true),
        ("pop rsp", "5c", true),
        ("add rsp, rcx", "48 01 cc", true),
        ("lea rsp, [rsp + rcx]", "48 8d 24 0c", true),
        ("lea rsp, [rdi + 8]", "48 8d 67 08", true),
        ("mov rsp, rbp", "48 89 ec", false),
        ("leave", "c9", false),
        ("lea rsp, [rbp - 0x28]", "48 8d 65 d8", false),
        ("add rsp, 8", "48 83 c4 08", false),
        ("sub rsp, rax", "48 29 c4", false),
        ("and rsp, -16", "48 83 e4 f0", false),
        ("push rsp", "54", false),
        ("mov rax, rsp", "48 89 e0", false),
        ("mov [rdi], rsp", "48 89 27", false),
        ("cmp rsp, rax", "48 39 c4", false),
        ("test rsp, rsp", "48 85 e4", false),
        ("call .+5", "e8 00 00 00 00", false),
        ("ret", "c3", false),
    ] {
        assert_eq!(decode(&hex(bytes), IP).expect(text).moves_stack, expected, "{text}");
    }
}

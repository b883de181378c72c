//! Machine code read in a straight line: which instructions are atomic, which touch a given
//! variable.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use std::ops::Range;

/// Addresses of the instructions that update memory atomically (`lock`-prefixed, `xchg`), fences on
/// the stack excepted.
pub(crate) fn atomic_instructions(code: &[u8], address: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let ip = address.wrapping_add(at as u64);
        let decoded = raddle_decode::decode(&code[at..], ip);
        if decoded.as_ref().is_some_and(|d| d.atomic && !d.fence_only) {
            found.push(ip);
        }
        at += decoded.map_or(1, |decoded| decoded.length.max(1));
    }
    found
}

/// Instructions that access one of these stretches of memory by a fixed address, each as its own
/// address and length. The stretches are sorted and do not overlap.
pub(crate) fn accesses<'a>(
    code: &'a [u8],
    address: u64,
    variables: &'a [Range<u64>],
) -> impl Iterator<Item = Range<u64>> + 'a {
    instructions(code, address).filter_map(move |instruction| {
        let target = fixed_target(&instruction)?;
        let after = variables.partition_point(|variable| variable.start <= target);
        let hit = after > 0 && variables[after - 1].contains(&target);
        let silent = matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
        (hit && !silent).then(|| instruction.ip()..instruction.next_ip())
    })
}

/// The address an instruction names outright: `[rip+x]`, or `[x]` and `[x+index*8]` where programs
/// are linked at a fixed address.
fn fixed_target(instruction: &Instruction) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    let fixed = instruction.memory_base() == Register::None
        && instruction.memory_displ_size() != 0
        && instruction.segment_prefix() == Register::None;
    fixed.then(|| instruction.memory_displacement64())
}

/// The instructions from here to the end of the code; what is none is skipped byte by byte.
pub(crate) fn instructions(code: &[u8], address: u64) -> impl Iterator<Item = Instruction> + '_ {
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    decoder.into_iter().filter(|instruction| !instruction.is_invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_means_lock_or_exchange_with_memory() {
        let code = [
            0xf0, 0x0f, 0xb1, 0x0f, // lock cmpxchg [rdi], ecx
            0x87, 0x07, // xchg [rdi], eax
            0x87, 0xc1, // xchg ecx, eax
            0x89, 0x07, // mov [rdi], eax
            0xf0, 0x83, 0x0c, 0x24, 0x00, // lock or dword [rsp], 0
        ];
        assert_eq!(atomic_instructions(&code, 0x1000), [0x1000, 0x1004]);
    }

    #[test]
    fn accesses_by_a_fixed_address_are_found() {
        let code = [
            0x8b, 0x05, 0x00, 0x01, 0x00, 0x00, // mov eax, [rip+0x100] -> 0x1106
            0x48, 0x8d, 0x05, 0xf9, 0x00, 0x00, 0x00, // lea rax, [rip+0xf9] -> 0x1106
            0x8b, 0x04, 0x25, 0x08, 0x11, 0x00, 0x00, // mov eax, [0x1108]
            0x8b, 0x07, // mov eax, [rdi]
        ];
        let variables = [0x1106..0x110a, 0x2000..0x2001];
        let hits: Vec<_> = accesses(&code, 0x1000, &variables).collect();
        assert_eq!(hits, [0x1000..0x1006, 0x100d..0x1014]);
    }
}

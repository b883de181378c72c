//! Where `main` is, from the code a program is entered by.
//!
//! The C library's start code passes `main` as the first argument to the function that will call it
//! (`__libc_start_main`). That is in every program, dynamic or static, stripped or not, and so a
//! better source than a symbol.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Register};

/// Instructions of start code before its call; glibc's has twelve.
const LONGEST: usize = 32;

/// The address of `main` in a program whose entry point is at `pc` and has this code. `None` where
/// the code is not what the C library's looks like.
pub fn main_of_entry(code: &[u8], pc: u64) -> Option<u64> {
    let mut found = None;
    for instruction in Decoder::with_ip(64, code, pc, DecoderOptions::NONE).iter().take(LONGEST) {
        if instruction.is_invalid() {
            return None;
        }
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => return found,
            _ => return None,
        }
        let is_argument = matches!(instruction.op0_register(), Register::RDI | Register::EDI);
        match instruction.code() {
            Code::Lea_r64_m if is_argument && instruction.is_ip_rel_memory_operand() => {
                found = Some(instruction.ip_rel_memory_address());
            }
            Code::Mov_rm64_imm32 | Code::Mov_r32_imm32 | Code::Mov_r64_imm64 if is_argument => {
                found = Some(instruction.immediate(1));
            }
            _ if is_argument && instruction.op_count() > 0 => found = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: [u8; 22] = [
        0xf3, 0x0f, 0x1e, 0xfa, // endbr64
        0x31, 0xed, // xor ebp, ebp
        0x49, 0x89, 0xd1, // mov r9, rdx
        0x5e, // pop rsi
        0x48, 0x89, 0xe2, // mov rdx, rsp
        0x48, 0x83, 0xe4, 0xf0, // and rsp, -16
        0x50, 0x54, // push rax; push rsp
        0x45, 0x31, 0xc0, // xor r8d, r8d
    ];
    const CALL: [u8; 7] = [0xff, 0x15, 0x10, 0, 0, 0, 0xf4];

    fn main_of(argument: &[u8]) -> Option<u64> {
        main_of_entry(&[&BEFORE, argument, &CALL].concat(), 0x1000)
    }

    #[test]
    fn main_is_the_first_argument_of_the_first_call() {
        // lea rdi, [rip+0x100]
        assert_eq!(main_of(&[0x48, 0x8d, 0x3d, 0, 1, 0, 0]), Some(0x1000 + 22 + 7 + 0x100));
        // mov rdi, 0x401136; mov edi, 0x401136
        assert_eq!(main_of(&[0x48, 0xc7, 0xc7, 0x36, 0x11, 0x40, 0]), Some(0x40_1136));
        assert_eq!(main_of(&[0xbf, 0x36, 0x11, 0x40, 0]), Some(0x40_1136));
    }

    #[test]
    fn other_start_code_is_not_guessed_at() {
        // musl: mov rdi, rsp, and the function called knows main.
        assert_eq!(main_of(&[0x48, 0x89, 0xe7]), None);
        // mov rdi, [rip+0x100]: known only when the program is linked.
        assert_eq!(main_of(&[0x48, 0x8b, 0x3d, 0, 1, 0, 0]), None);
        // A jump before any call; and nothing at all.
        assert_eq!(main_of(&[0x48, 0x8d, 0x3d, 0, 1, 0, 0, 0xeb, 0xfe]), None);
        assert_eq!(main_of_entry(&[], 0), None);
    }
}

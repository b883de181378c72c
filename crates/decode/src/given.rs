//! Instructions to which the processor itself gives something that differs from time to time: its clock,
//! chance, and which processor it is.

use crate::Gpr;
use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic};

/// What is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// `rdtsc`: the clock, in edx:eax.
    Time,
    /// `rdtscp`: the clock, and in ecx which processor this is.
    TimeAndProcessor,
    /// `rdrand`, `rdseed`: random bytes, so many, in this register.
    Random {
        /// Where.
        to: Gpr,
        /// Two, four or eight.
        size: u8,
    },
    /// `cpuid`: what kind of processor this is, and which one.
    Identity,
}

/// What the instruction is given, if anything.
pub fn given(bytes: &[u8], pc: u64) -> Option<Given> {
    // All of them have a two-byte opcode, and few others do.
    if !bytes.windows(2).any(|pair| matches!(pair, [0x0f, 0x31 | 0x01 | 0xa2 | 0xc7])) {
        return None;
    }
    let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).iter().next()?;
    match (instruction.code(), instruction.mnemonic()) {
        (Code::Rdtsc, _) => Some(Given::Time),
        (Code::Rdtscp, _) => Some(Given::TimeAndProcessor),
        (Code::Cpuid, _) => Some(Given::Identity),
        (_, Mnemonic::Rdrand | Mnemonic::Rdseed) => {
            let register = instruction.op0_register();
            let (to, size) = (Gpr(register.number() as u8), register.size() as u8);
            Some(Given::Random { to, size })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_chance_and_identity_are_recognised() {
        let cases: [(&[u8], Option<Given>); 9] = [
            (&[0x0f, 0x31], Some(Given::Time)),
            (&[0x0f, 0x01, 0xf9], Some(Given::TimeAndProcessor)),
            (&[0x0f, 0xa2], Some(Given::Identity)),
            // rdrand eax, rdseed r13, rdrand dx
            (&[0x0f, 0xc7, 0xf0], Some(Given::Random { to: Gpr(0), size: 4 })),
            (&[0x49, 0x0f, 0xc7, 0xfd], Some(Given::Random { to: Gpr(13), size: 8 })),
            (&[0x66, 0x0f, 0xc7, 0xf2], Some(Given::Random { to: Gpr(2), size: 2 })),
            // cmpxchg8b [rax], xgetbv, and a number that looks like rdtsc
            (&[0x0f, 0xc7, 0x08], None),
            (&[0x0f, 0x01, 0xd0], None),
            (&[0xb8, 0x0f, 0x31, 0x00, 0x00], None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(given(bytes, 0x1000), expected, "{bytes:x?}");
        }
    }
}

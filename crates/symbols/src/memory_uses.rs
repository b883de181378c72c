//! What the instructions of a stretch of code do with memory: of a line of source, which of its accesses a
//! finding can mean.

use crate::binary::Binary;
use raddle_decode::{Decoded, Extent, Flow, Operand, decode};
use raddle_model::AccessKind;

/// What an instruction does with memory. One that touches two stretches of it has one of these for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// The instruction, as offsets from start to end.
    pub code: (u64, u64),
    pub reads: bool,
    pub writes: bool,
    /// Bytes, where they are always the same. A function that is called may touch any number.
    pub size: Option<u64>,
    /// The offset in the module, where the instruction names it outright.
    pub target: Option<u64>,
}

impl MemoryUse {
    /// Does it read and write the same memory?
    pub fn is_update(&self) -> bool {
        self.reads && self.writes && self.size.is_some()
    }
}

/// The uses by the instructions from one offset to another. What calls and returns do to the stack besides
/// does not count.
pub(crate) fn find(binary: &Binary, (start, end): (u64, u64)) -> Vec<MemoryUse> {
    let range = binary.address(start)..binary.address(end);
    let Some(bytes) = binary.image.code_range(&range) else { return Vec::new() };
    let uses = of_code(bytes, range.start);
    let to_offsets = |found: MemoryUse| MemoryUse {
        code: (binary.offset(found.code.0), binary.offset(found.code.1)),
        target: found.target.map(|target| binary.offset(target)),
        ..found
    };
    uses.into_iter().map(to_offsets).collect()
}

/// The same of code at an address, with addresses.
fn of_code(bytes: &[u8], address: u64) -> Vec<MemoryUse> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let ip = address.wrapping_add(at as u64);
        let decoded = decode(&bytes[at..], ip);
        let length = decoded.as_ref().map_or(1, |decoded| decoded.length.max(1));
        if let Some(decoded) = decoded {
            of_instruction(&decoded, (ip, ip.wrapping_add(length as u64)), &mut found);
        }
        at += length;
    }
    found
}

fn of_instruction(decoded: &Decoded, code: (u64, u64), found: &mut Vec<MemoryUse>) {
    if decoded.flow == Flow::Call {
        found.push(MemoryUse { code, reads: true, writes: true, size: None, target: None });
    }
    for operand in decoded.operands.iter().filter(|operand| !operand.implicit) {
        let size = (operand.extent == Extent::Once).then_some(u64::from(operand.size));
        let target = fixed_target(operand);
        let updates = operand.kind == AccessKind::AtomicUpdate;
        let (reads, writes) = (updates || !operand.kind.writes(), operand.kind.writes());
        let is_same = |known: &MemoryUse| {
            known.code == code && (known.size, known.target) == (size, target) && size.is_some()
        };
        let same_address = |other: &&Operand| other.address == operand.address;
        let touched = decoded.operands.iter().filter(same_address).count();
        match found.last_mut().filter(|known| touched > 1 && is_same(known)) {
            Some(known) => {
                (known.reads, known.writes) = (known.reads || reads, known.writes || writes)
            }
            None => found.push(MemoryUse { code, reads, writes, size, target }),
        }
    }
}

/// The address that an operand names without registers.
fn fixed_target(operand: &Operand) -> Option<u64> {
    let address = &operand.address;
    let is_fixed = address.base.is_none() && address.index.is_none() && address.segment.is_none();
    is_fixed.then_some(address.displacement as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_writes_updates_and_calls() {
        let code = [
            0x48, 0x63, 0x40, 0x20, // movslq 0x20(%rax),%rax
            0x48, 0x01, 0x05, 0x00, 0x01, 0x00, 0x00, // add %rax,0x100(%rip)
            0x89, 0x07, // mov %eax,(%rdi)
            0xe8, 0x00, 0x00, 0x00, 0x00, // call
            0xa4, // movsb
            0x50, // push %rax
            0x01, 0xd0, // add %edx,%eax
        ];
        let found = of_code(&code, 0x1000);
        let facts: Vec<_> =
            found.iter().map(|u| (u.code.0, u.reads, u.writes, u.size, u.target)).collect();
        let expected = [
            (0x1000, true, false, Some(4), None),
            (0x1004, true, true, Some(8), Some(0x110b)),
            (0x100b, false, true, Some(4), None),
            (0x100d, true, true, None, None),
            (0x1012, true, false, Some(1), None),
            (0x1012, false, true, Some(1), None),
        ];
        assert_eq!(facts, expected);
        let updates: Vec<u64> = found.iter().filter(|u| u.is_update()).map(|u| u.code.0).collect();
        assert_eq!(updates, [0x1004]);
    }
}

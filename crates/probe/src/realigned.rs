//! Functions that align their stack anew, as compilers write them for local variables that want more than sixteen bytes.
//!
//! By how much that moves the stack pointer is known only when they run, so their callers' frames are a fixed way from neither the stack
//! pointer nor the frame pointer. They keep what the stack pointer was before the call in a word beside the frame pointer, and the
//! unwind table says so by an expression, `CFA = *(rbp + n)`. `framehop` reads no memory for expressions; it would go by the
//! frame pointer, find the right function, and lose its way one frame further.

use crate::stacks::UnwindTable;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow, X86_64,
};

const CFA_EXPRESSION: u8 = gimli::constants::DW_CFA_def_cfa_expression.0;
const BREG_RBP: u8 = gimli::constants::DW_OP_breg6.0;
const DEREF: u8 = gimli::constants::DW_OP_deref.0;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// A stretch of code in which the caller's stack pointer is kept so far from the frame pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realigned {
    pub start: u64,
    pub end: u64,
    pub kept_at: i64,
}

/// All of a module's, in the order of their addresses.
pub fn find(table: &UnwindTable) -> Vec<Realigned> {
    let (at, bytes) = &table.frames;
    // Most modules have none, and their tables need not be read.
    if !may_have_some(bytes) {
        return Vec::new();
    }
    let section = EhFrame::new(bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(*at);
    let mut found = Vec::new();
    let mut context = UnwindContext::new();
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(function) = partial.parse(EhFrame::cie_from_offset) else { continue };
        let Ok(mut rows) = function.rows(&section, &bases, &mut context) else { continue };
        while let Ok(Some(row)) = rows.next_row() {
            if let Some(kept_at) = kept_at(&section, row) {
                let (start, end) = (row.start_address(), row.end_address());
                found.push(Realigned { start, end, kept_at });
            }
        }
    }
    found.sort_by_key(|stretch| stretch.start);
    found
}

/// Where the caller's stack pointer is kept, if the table says that it is, and that the caller's frame pointer is where ours
/// points to.
fn kept_at(section: &EhFrame<Bytes<'_>>, row: &UnwindTableRow<usize>) -> Option<i64> {
    let bytes = |expression: &UnwindExpression<usize>| {
        expression.get(section).ok().map(|expression| expression.0.slice())
    };
    let CfaRule::Expression(cfa) = row.cfa() else { return None };
    let RegisterRule::Expression(saved) = row.register(X86_64::RBP) else { return None };
    if bytes(&saved)? != [BREG_RBP, 0] {
        return None;
    }
    match *bytes(cfa)? {
        [BREG_RBP, low, DEREF] => signed(&[low]),
        [BREG_RBP, low, high, DEREF] => signed(&[low, high]),
        _ => None,
    }
}

/// A signed number of the form that DWARF gives them, if it is all of the bytes.
fn signed(bytes: &[u8]) -> Option<i64> {
    let mut reader = EndianSlice::new(bytes, LittleEndian);
    let number = gimli::Reader::read_sleb128(&mut reader).ok()?;
    reader.is_empty().then_some(number)
}

fn may_have_some(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|six| {
        matches!(
            *six,
            [CFA_EXPRESSION, 3, BREG_RBP, _, DEREF, _] | [CFA_EXPRESSION, 4, BREG_RBP, _, _, DEREF]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function at 0x5000 of 0x100 bytes whose stack is aligned anew from its 0x10th on.
    fn table(expression: &[u8]) -> UnwindTable {
        let at = 0x1000_u64;
        let mut frames = Vec::new();
        let cie = [
            &[0, 0, 0, 0, 1][..], // id, version
            b"zR\0",
            &[1, 0x78, 16, 1, 0x1b], // alignments, return address, pointers from their place
            &[0x0c, 7, 8, 0x90, 1],  // CFA = rsp + 8, return address at CFA - 8
        ]
        .concat();
        add(&mut frames, &cie);
        let fde_at = frames.len() as u64;
        let begin_at = at + fde_at + 8;
        let fde = [
            &(fde_at as u32 + 4).to_le_bytes()[..],
            &((0x5000 - begin_at as i64) as i32).to_le_bytes(),
            &0x100_u32.to_le_bytes(),
            &[0],                       // nothing more
            &[0x40 | 0x10],             // 0x10 bytes on
            &[0x10, 6, 2, BREG_RBP, 0], // rbp is saved where it points to
            &[CFA_EXPRESSION, expression.len() as u8],
            expression,
        ]
        .concat();
        add(&mut frames, &fde);
        frames.extend([0; 4]);
        UnwindTable { header: (0, Vec::new()), frames: (at, frames) }
    }

    fn add(frames: &mut Vec<u8>, entry: &[u8]) {
        let padded = entry.len().next_multiple_of(4);
        frames.extend((padded as u32).to_le_bytes());
        frames.extend(entry);
        frames.resize(frames.len() + padded - entry.len(), 0);
    }

    #[test]
    fn a_kept_stack_pointer_is_found() {
        let found = Realigned { start: 0x5010, end: 0x5100, kept_at: -40 };
        assert_eq!(find(&table(&[BREG_RBP, 0x58, DEREF])), [found]);
        let found = Realigned { kept_at: -200, ..found };
        assert_eq!(find(&table(&[BREG_RBP, 0xb8, 0x7e, DEREF])), [found]);
    }

    #[test]
    fn other_expressions_are_left_to_others() {
        const PLUS: u8 = gimli::constants::DW_OP_plus_uconst.0;
        assert_eq!(find(&table(&[BREG_RBP, 0x58, DEREF, PLUS, 8])), []);
        assert_eq!(find(&table(&[BREG_RBP, 0x58])), []);
    }
}

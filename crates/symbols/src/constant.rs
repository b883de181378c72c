//! Memory of a module that the program never writes: what is mapped read-only, what the loader makes so
//! when it has relocated it, and the slots through which functions of other modules are called, which
//! only the loader writes, once, when a function is first called.

use crate::elf::Image;
use object::LittleEndian as LE;
use object::elf;
use object::read::elf::ProgramHeader;
use object::read::{Object, RelocationFlags};
use std::ops::Range;

/// Bytes of such a slot.
const SLOT: u64 = 8;

/// Addresses of memory that is constant once it can be used, in order.
pub(crate) fn ranges(image: &Image) -> Vec<Range<u64>> {
    let Ok(file) = image.file() else { return Vec::new() };
    let segments = file.elf_program_headers().iter().filter(|segment| {
        let kind = segment.p_type(LE);
        let read_only = !segment.p_flags(LE).contains(elf::PF_W);
        kind == elf::PT_GNU_RELRO || kind == elf::PT_LOAD && read_only
    });
    let mut ranges: Vec<Range<u64>> = segments
        .map(|segment| {
            let start = segment.p_vaddr(LE);
            start..start.saturating_add(segment.p_memsz(LE))
        })
        .collect();
    for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        if r_type == elf::R_X86_64_JUMP_SLOT {
            ranges.push(address..address.saturating_add(SLOT));
        }
    }
    ranges.sort_by_key(|range| range.start);
    joined(ranges)
}

/// Those that touch or overlap, as one.
fn joined(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        let ranges = vec![0..8, 8..16, 12..14, 20..24];
        assert_eq!(joined(ranges), [0..16, 20..24]);
    }
}

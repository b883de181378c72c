//! Names for the stubs of the procedure linkage table: `pthread_mutex_lock@plt`.
//!
//! A stub has no symbol. It jumps through a slot that a relocation fills in, and the relocation
//! names the function; so the stub is read, whatever shape the linker gave it.

use crate::binary::Binary;
use crate::code;
use iced_x86::Mnemonic;
use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{Rela, SectionHeader};

/// The name of the stub around this address.
pub(crate) fn stub_name(binary: &Binary, address: u64) -> Option<String> {
    let sections = &binary.image.layout.sections;
    let section = sections.iter().find(|section| {
        section.name.starts_with(".plt")
            && address >= section.address
            && address - section.address < section.size
    })?;
    let stub_size = if section.name == ".plt.got" { 8 } else { 16 };
    let start = address - (address - section.address) % stub_size;
    let bytes = binary.image.at_address(start)?;
    let jump = code::instructions(bytes, start)
        .take_while(|instruction| instruction.ip().wrapping_sub(start) < stub_size)
        .find(|i| i.mnemonic() == Mnemonic::Jmp && i.is_ip_rel_memory_operand())?;
    Some(format!("{}@plt", slot_name(binary, jump.ip_rel_memory_address())?))
}

fn slot_name(binary: &Binary, slot: u64) -> Option<String> {
    let image = &binary.image;
    let file = image.file().ok()?;
    let symbols = file.elf_dynamic_symbol_table();
    for section in file.elf_section_table().iter() {
        let Ok(Some((relocations, _))) = section.rela(LE, &image.bytes[..]) else { continue };
        let Some(relocation) = relocations.iter().find(|r| r.r_offset(LE) == slot) else {
            continue;
        };
        if relocation.r_type(LE, false) == elf::R_X86_64_IRELATIVE {
            // A call inside the module to one of its own indirect functions.
            let resolver = relocation.r_addend(LE) as u64;
            return Some(binary.symbols.named_at(resolver).first()?.name.to_string());
        }
        let symbol = symbols.symbol(relocation.symbol(LE, false)?).ok()?;
        let name = symbols.symbol_name(LE, symbol).ok()?;
        return Some(crate::demangle::display(&String::from_utf8_lossy(name)));
    }
    None
}

//! The implementations behind an indirect function (`STT_GNU_IFUNC`).
//!
//! The symbol `strlen` of the C library is a *resolver*: it runs once, looks at the processor, and
//! returns the address of `__strlen_avx2` or one of its brothers, which a stripped library does not
//! name. So the resolver's code is read: it follows its own branches, and every address of code it
//! loads into a register is an implementation it may return. Only if there is none, the functions
//! it calls are read too.

use crate::code;
use crate::elf::Image;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{Rela, SectionHeader, Sym};
use std::collections::{BTreeSet, HashMap};

/// Resolvers are short; one that is longer than this is something else.
const MAX_INSTRUCTIONS: usize = 2000;
/// Compilers align functions so; others must have a symbol to be believed.
const FUNCTION_ALIGNMENT: u64 = 16;

/// Finds implementations; knows the module's pointer tables once it has needed them.
pub(crate) struct Resolvers<'a> {
    image: &'a Image,
    /// Function starts known from symbols.
    starts: &'a BTreeSet<u64>,
    pointers: Option<HashMap<u64, u64>>,
}

impl<'a> Resolvers<'a> {
    pub fn new(image: &'a Image, starts: &'a BTreeSet<u64>) -> Self {
        Resolvers { image, starts, pointers: None }
    }

    /// The addresses the resolver at this address may return.
    pub fn implementations(&mut self, resolver: u64) -> BTreeSet<u64> {
        let (mut found, calls) = self.walk(resolver);
        if found.is_empty() {
            for call in calls {
                found.extend(self.walk(call).0);
            }
        }
        found.remove(&resolver);
        found
    }

    /// What the function at this address loads, and what it calls.
    fn walk(&mut self, entry: u64) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let (mut loaded, mut called) = (BTreeSet::new(), BTreeSet::new());
        let mut seen = BTreeSet::new();
        let mut todo = vec![entry];
        while let Some(start) = todo.pop() {
            let image = self.image;
            let Some(bytes) = image.at_address(start).filter(|_| image.layout.is_code(start))
            else {
                continue;
            };
            for instruction in code::instructions(bytes, start) {
                if !seen.insert(instruction.ip()) || seen.len() > MAX_INSTRUCTIONS {
                    break;
                }
                loaded.extend(self.loaded(&instruction).filter(|to| self.is_function(*to)));
                match instruction.flow_control() {
                    FlowControl::Next => continue,
                    FlowControl::ConditionalBranch => {
                        todo.push(instruction.near_branch_target());
                        continue;
                    }
                    FlowControl::Call => {
                        called.insert(instruction.near_branch_target());
                        continue;
                    }
                    FlowControl::IndirectCall => continue,
                    FlowControl::UnconditionalBranch => {
                        todo.push(instruction.near_branch_target());
                    }
                    FlowControl::Return
                    | FlowControl::IndirectBranch
                    | FlowControl::Interrupt
                    | FlowControl::XbeginXabortXend
                    | FlowControl::Exception => {}
                }
                break;
            }
        }
        (loaded, called)
    }

    /// The address an instruction puts into a register, by whichever way linkers make of it.
    fn loaded(&mut self, instruction: &Instruction) -> Option<u64> {
        if instruction.op_count() != 2 || instruction.op0_kind() != OpKind::Register {
            return None;
        }
        let fixed = instruction.is_ip_rel_memory_operand()
            || instruction.memory_base() == Register::None
                && instruction.memory_index() == Register::None;
        match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Lea, OpKind::Memory) if fixed => Some(instruction.memory_displacement64()),
            (
                Mnemonic::Mov,
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64,
            ) => Some(instruction.immediate(1)),
            // From the global offset table.
            (_, OpKind::Memory) if fixed && instruction.op0_register().is_gpr64() => {
                let image = self.image;
                let slot = instruction.memory_displacement64();
                let pointers = self.pointers.get_or_insert_with(|| pointers(image));
                pointers.get(&slot).copied().or_else(|| stored(image, slot))
            }
            _ => None,
        }
    }

    fn is_function(&self, address: u64) -> bool {
        let aligned = address.is_multiple_of(FUNCTION_ALIGNMENT);
        self.image.layout.is_code(address) && (aligned || self.starts.contains(&address))
    }
}

/// What the file holds at an address: compact relocations (`.relr.dyn`) leave their value there.
fn stored(image: &Image, address: u64) -> Option<u64> {
    Some(u64::from_le_bytes(*image.at_address(address)?.first_chunk()?))
}

/// Pointers that the loader will fill in with addresses of this module: where they are, and what
/// they will hold.
fn pointers(image: &Image) -> HashMap<u64, u64> {
    let mut found = HashMap::new();
    let Ok(file) = image.file() else { return found };
    let symbols = file.elf_dynamic_symbol_table();
    for section in file.elf_section_table().iter() {
        let Ok(Some((relocations, _))) = section.rela(LE, &image.bytes[..]) else { continue };
        for relocation in relocations {
            let addend = relocation.r_addend(LE);
            let value = match relocation.r_type(LE, false) {
                elf::R_X86_64_RELATIVE => addend as u64,
                elf::R_X86_64_GLOB_DAT | elf::R_X86_64_64 => {
                    let symbol = relocation.symbol(LE, false);
                    let symbol = symbol.and_then(|index| symbols.symbol(index).ok());
                    match symbol {
                        Some(symbol) if symbol.st_shndx(LE) != elf::SHN_UNDEF => {
                            symbol.st_value(LE).wrapping_add_signed(addend)
                        }
                        _ => continue,
                    }
                }
                _ => continue,
            };
            found.insert(relocation.r_offset(LE), value);
        }
    }
    found
}

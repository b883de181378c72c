//! Atomic accesses through pointers, in code that was not optimised: C's `atomic_load(&p->ready)` is
//! there a `mov` through a register that was loaded from a variable just before.
//!
//! Debug information tells which variables of a function are pointers to something atomic, and where
//! in the frame they are; the code tells which registers hold their values. The macros of gcc's
//! `<stdatomic.h>` keep the pointer in a variable of their own, so with gcc this finds every one.

use crate::code;
use crate::dwarf::{Entry, Slice, Unit, View};
use crate::elf::Image;
use crate::types::Types;
use gimli::{AttributeValue, Operation};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::ops::Range;

/// `rbp` in debug information.
const RBP: gimli::Register = gimli::Register(6);
/// From where `rbp` points, behind its own saved value, to the frame's canonical address.
const TO_CANONICAL: i64 = 16;

/// The instructions, as stretches of code.
pub(crate) fn accesses<'d>(image: &Image, dwarf: &'d gimli::Dwarf<Slice<'d>>) -> Vec<Range<u64>> {
    let view = View::new(dwarf);
    let mut search = Search { image, types: Types::new(&view), view: &view, found: Vec::new() };
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Some(unit) = Unit::new(dwarf, header, false) else { continue };
        if unit.is_c() && unit.has_tag(gimli::DW_TAG_atomic_type) {
            let root = view.entry(unit.die(unit.unit.header.root_offset()));
            for function in root.iter().flat_map(|root| view.children(root)) {
                search.function(&function);
            }
        }
    }
    search.found
}

struct Search<'s, 'd> {
    image: &'s Image,
    view: &'s View<'d>,
    types: Types<'s, 'd>,
    found: Vec<Range<u64>>,
}

impl<'d> Search<'_, 'd> {
    fn function(&mut self, function: &Entry<'d>) {
        if function.tag() != gimli::DW_TAG_subprogram {
            return;
        }
        let ranges = function.ranges();
        let base = match first_operation(function, gimli::DW_AT_frame_base) {
            Some(Operation::CallFrameCFA) => TO_CANONICAL,
            Some(Operation::Register { register: RBP }) => 0,
            _ => return,
        };
        let begins = ranges.first().and_then(|range| self.image.code_range(range));
        if begins.is_some_and(keeps_frame_pointer) {
            self.scope(function, &ranges, base);
        }
    }

    fn scope(&mut self, scope: &Entry<'d>, ranges: &[Range<u64>], base: i64) {
        for entry in self.view.children(scope) {
            match entry.tag() {
                gimli::DW_TAG_lexical_block => {
                    let inner = entry.ranges();
                    // A block without code of its own has that of what is around it.
                    let ranges = if inner.is_empty() { ranges } else { &inner };
                    self.scope(&entry, ranges, base);
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    self.variable(&entry, ranges, base);
                }
                _ => {}
            }
        }
    }

    fn variable(&mut self, variable: &Entry<'d>, ranges: &[Range<u64>], base: i64) {
        let Some(Operation::FrameOffset { offset }) =
            first_operation(variable, gimli::DW_AT_location)
        else {
            return;
        };
        let Some(pointer) = self.view.variable_type(variable.die) else { return };
        let Some(target) = self.types.pointed_to(pointer) else { return };
        let parts = self.types.atomic_parts(target);
        if parts.is_empty() {
            return;
        }
        for range in ranges {
            if let Some(code) = self.image.code_range(range) {
                self.found.extend(through(code, range.start, offset + base, &parts));
            }
        }
    }
}

/// The first operation of an expression.
fn first_operation<'d>(entry: &Entry<'d>, attribute: gimli::DwAt) -> Option<Operation<Slice<'d>>> {
    let AttributeValue::Exprloc(expression) = entry.value(attribute)? else { return None };
    expression.operations(entry.unit.unit.encoding()).next().ok().flatten()
}

/// Does the function begin by keeping `rsp` in `rbp`?
fn keeps_frame_pointer(code: &[u8]) -> bool {
    const ENDBR: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const PUSH_RBP: &[u8] = &[0x55];
    const MOV_RBP_RSP: [&[u8]; 2] = [&[0x48, 0x89, 0xe5], &[0x48, 0x8b, 0xec]];
    let code = code.strip_prefix(ENDBR).unwrap_or(code);
    let moved = |rest: &[u8]| MOV_RBP_RSP.iter().any(|mov| rest.starts_with(mov));
    code.strip_prefix(PUSH_RBP).is_some_and(moved)
}

/// Instructions that access `parts` of what the pointer at `rbp + at` points to.
fn through(code: &[u8], address: u64, at: i64, parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut holder = None;
    let mut factory = InstructionInfoFactory::new();
    for instruction in code::instructions(code, address) {
        if let Some(register) = holder
            && goes_through(&instruction, register, parts)
        {
            found.push(instruction.ip()..instruction.next_ip());
        }
        if is_load(&instruction, at) {
            holder = Some(instruction.op0_register());
            continue;
        }
        let written = |register: Register| {
            factory.info(&instruction).used_registers().iter().any(|used| {
                used.register().full_register() == register
                    && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
            })
        };
        // Elsewhere it may come from anywhere.
        let leaves = instruction.flow_control() != iced_x86::FlowControl::Next;
        if leaves || holder.is_some_and(written) {
            holder = None;
        }
    }
    found
}

/// Is the pointer loaded here?
fn is_load(instruction: &Instruction, at: i64) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_gpr64()
        && instruction.op1_kind() == OpKind::Memory
        && instruction.memory_base() == Register::RBP
        && instruction.memory_index() == Register::None
        && instruction.memory_displacement64() as i64 == at
}

fn goes_through(instruction: &Instruction, register: Register, parts: &[Range<u64>]) -> bool {
    let at = instruction.memory_displacement64();
    let silent = matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    !silent
        && instruction.memory_base() == register
        && instruction.memory_index() == Register::None
        && parts.iter().any(|part| part.contains(&at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `atomic_load_explicit(&ready, …)` as gcc writes it without optimisation.
    const LOAD: [u8; 19] = [
        0x48, 0x89, 0x45, 0xf8, // mov [rbp-8], rax
        0x8b, 0x08, // mov ecx, [rax]
        0x48, 0x8b, 0x45, 0xf8, // mov rax, [rbp-8]
        0x8b, 0x40, 0x04, // mov eax, [rax+4]
        0x89, 0x45, 0xf4, // mov [rbp-12], eax
        0x8b, 0x40, 0x04, // mov eax, [rax+4]
    ];

    #[test]
    fn only_what_goes_through_the_pointer_to_an_atomic_part() {
        let found = |at, part: std::ops::Range<u64>| {
            through(&LOAD, 0x1000, at, &Vec::from_iter([part]))
                .into_iter()
                .map(|range| (range.start, range.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(-8, 4..8), [(0x100a, 0x100d)]);
        assert_eq!(found(-8, 0..4), []);
        assert_eq!(found(-16, 4..8), []);
    }

    #[test]
    fn frames_are_recognised_by_their_beginning() {
        assert!(keeps_frame_pointer(&[0x55, 0x48, 0x89, 0xe5, 0x90]));
        assert!(keeps_frame_pointer(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5]));
        assert!(!keeps_frame_pointer(&[0x55, 0x53]));
    }
}

//! Loops that wait, for the module facts: around calls of functions that wait for a condition, and
//! loops that only read until something changes (see [`raddle_decode::loops`]).
//!
//! What a call goes to is known by name: a function of the module, directly or through a slot (as Rust
//! calls its standard library), a stub of the procedure linkage table, or a slot that the loader
//! fills. A function of the module that waits outside any loop is a wrapper, and its callers' loops are
//! looked for in turn.

use crate::binary::Binary;
use crate::code;
use crate::matching::Matcher;
use iced_x86::Mnemonic;
use object::LittleEndian as LE;
use object::read::elf::{Rela, SectionHeader};
use raddle_decode::{CallTarget, Callee, Loops, calls, loops};
use raddle_model::{Hook, Role};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Wrappers of wrappers of wrappers.
const DEPTH: usize = 3;

/// The loops of all code of a module; `entries` are its own hooked functions.
pub(crate) fn find(binary: &Binary, hooks: &[Hook], entries: &BTreeMap<u64, u32>) -> Vec<Loops> {
    let kind = |hook: u32| match hooks.get(hook as usize).map(|hook| &hook.role) {
        Some(Role::ConditionWait { .. }) => Callee::Wait,
        Some(Role::ConditionWrapper) => Callee::Wrapper,
        Some(Role::ThreadPause) => Callee::Pause,
        _ => Callee::Other,
    };
    let mut known: HashMap<u64, Callee> = HashMap::new();
    let matcher = Matcher::functions(hooks);
    let Slots { named, inside } = slots(binary);
    let slots: HashMap<u64, Callee> = named
        .into_iter()
        .filter_map(|(slot, name)| Some((slot, kind(matcher.symbol(&name)?))))
        .filter(|(_, callee)| *callee != Callee::Other)
        .collect();
    for (stub, slot) in stubs(binary) {
        known.extend(slots.get(&slot).map(|callee| (stub, *callee)));
    }
    for (address, hook) in entries {
        if kind(*hook) != Callee::Other {
            known.insert(*address, kind(*hook));
        }
    }
    let starts = function_starts(binary);
    let mut found = Vec::new();
    for _ in 0..=DEPTH {
        let callee = |target: CallTarget| match target {
            CallTarget::Code(address) => known.get(&address).copied().unwrap_or(Callee::Other),
            CallTarget::Slot(slot) => {
                let inside = || known.get(inside.get(&slot)?).copied();
                slots.get(&slot).copied().or_else(inside).unwrap_or(Callee::Other)
            }
        };
        found = binary.image.code().map(|(at, bytes)| loops(bytes, at, &starts, callee)).collect();
        let outside = found.iter().flat_map(|loops: &Loops| &loops.waits_outside);
        let wrappers: Vec<u64> = outside
            .filter_map(|call| starts.range(..=*call).next_back().copied())
            .filter(|start| !known.contains_key(start))
            .collect();
        if wrappers.is_empty() {
            break;
        }
        known.extend(wrappers.into_iter().map(|start| (start, Callee::Wrapper)));
    }
    found
}

/// Where functions begin: what has a symbol, and what is called.
fn function_starts(binary: &Binary) -> BTreeSet<u64> {
    let symbols = binary.symbols.iter().map(|symbol| symbol.address);
    let called =
        binary.image.code().flat_map(|(at, bytes)| calls(bytes, at)).filter_map(
            |call| match call {
                CallTarget::Code(address) => Some(address),
                CallTarget::Slot(_) => None,
            },
        );
    symbols.chain(called).filter(|address| binary.image.layout.is_code(*address)).collect()
}

/// What the loader fills slots with.
#[derive(Debug, Default)]
struct Slots {
    /// The address of a function of another module, by its name.
    named: Vec<(u64, String)>,
    /// The address of code of the module itself.
    inside: HashMap<u64, u64>,
}

fn slots(binary: &Binary) -> Slots {
    let mut found = Slots::default();
    let Ok(file) = binary.image.file() else { return found };
    let symbols = file.elf_dynamic_symbol_table();
    for section in file.elf_section_table().iter() {
        let Ok(Some((relocations, _))) = section.rela(LE, &binary.image.bytes[..]) else {
            continue;
        };
        for relocation in relocations {
            let slot = relocation.r_offset(LE);
            let name = relocation
                .symbol(LE, false)
                .and_then(|symbol| symbols.symbol(symbol).ok())
                .and_then(|symbol| symbols.symbol_name(LE, symbol).ok());
            let target = relocation.r_addend(LE) as u64;
            let relative = relocation.r_type(LE, false) == object::elf::R_X86_64_RELATIVE;
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                found.named.push((slot, String::from_utf8_lossy(name).into_owned()));
            } else if relative && binary.image.layout.is_code(target) {
                found.inside.insert(slot, target);
            }
        }
    }
    found
}

/// Stubs of the procedure linkage table, and the slot each jumps through. A stub may begin with a
/// landing mark (`endbr64`) or push first; it is known by every instruction before its jump.
fn stubs(binary: &Binary) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for section in &binary.image.layout.sections {
        if !section.name.starts_with(".plt") {
            continue;
        }
        let Some(bytes) = binary.image.at_address(section.address) else { continue };
        let bytes = &bytes[..bytes.len().min(section.size as usize)];
        let mut before = Vec::new();
        for instruction in code::instructions(bytes, section.address) {
            before.push(instruction.ip());
            if instruction.mnemonic() == Mnemonic::Jmp {
                if instruction.is_ip_rel_memory_operand() {
                    let slot = instruction.ip_rel_memory_address();
                    found.extend(before.iter().map(|at| (*at, slot)));
                }
                before.clear();
            }
        }
    }
    found
}

//! Module facts: what the probe must know of a module, from its symbols and debug information.
//!
//! Each part of the table has its own file: function entries are found here by name, behind
//! indirect functions by [`crate::ifunc`], inlined instances by [`crate::inlined`], atomic accesses
//! by [`crate::atomics`], loops that wait by [`crate::waiting`], memory that is never written by
//! [`crate::constant`].

use crate::atomic_pointers;
use crate::atomics;
use crate::binary::Binary;
use crate::constant;
use crate::debug_files::DebugSources;
use crate::demangle;
use crate::error::SymbolError;
use crate::ifunc::Resolvers;
use crate::inlined;
use crate::instances::{self, Name};
use crate::matching::{Glob, Matcher};
use crate::symtab::SymbolKind;
use crate::waiting;
use raddle_decode::ConditionAt;
use raddle_model::{Hook, Role};
use raddle_wire::facts::{LoopCondition, ModuleFacts, WaitExit};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct FactsRequest<'a> {
    /// The hook table; facts refer to it by index.
    pub hooks: &'a [Hook],
    /// File names or SONAMEs of modules that do the work of hooked functions (`*` stands for
    /// anything): they are guarded whatever they define.
    pub runtime: &'a [String],
    /// Names of functions (`*` stands for anything) that are a library's own, wherever they are linked in.
    pub linked: &'a [String],
}

/// The facts of the module in this file.
pub fn module_facts(path: &Path, request: &FactsRequest) -> Result<ModuleFacts, SymbolError> {
    module_facts_from(path, request, &DebugSources::default())
}

/// The same, with debug information from these sources.
pub fn module_facts_from(
    path: &Path,
    request: &FactsRequest,
    sources: &DebugSources,
) -> Result<ModuleFacts, SymbolError> {
    let binary = Binary::open(path, sources)?;
    let mut entries = entries(&binary, request.hooks);
    let half_seen = half_seen_libraries(&binary, request.hooks);
    let is_half_seen = |hook: u32| {
        request.hooks.get(hook as usize).is_some_and(|h| half_seen.contains(&*h.library))
    };
    entries.retain(|_, hook| !is_half_seen(*hook));
    let loops = waiting::find(&binary, request.hooks, &entries);
    let opaque = |hook: &u32| request.hooks.get(*hook as usize).is_some_and(|hook| hook.opaque);
    let runtime = is_runtime(path, binary.image.layout.soname.as_deref(), request.runtime);
    let mut facts = ModuleFacts {
        guarded: entries.values().any(opaque) || runtime,
        runtime,
        has_symbols: binary.has_symbols,
        hooks: entries.into_iter().map(|(at, hook)| (binary.offset(at), hook)).collect(),
        constant: constant::ranges(&binary.image)
            .into_iter()
            .map(|range| {
                let length = (range.end - range.start).try_into().unwrap_or(u32::MAX);
                (binary.offset(range.start), length)
            })
            .collect(),
        private: linked_code(&binary, request.linked),
        ..ModuleFacts::default()
    };
    for found in loops {
        facts.spin_reads.extend(found.spin_reads.iter().map(|at| binary.offset(*at)));
        facts.wait_exits.extend(found.exits.iter().map(|exit| WaitExit {
            offset: binary.offset(exit.at),
            condition: match exit.condition {
                ConditionAt::Unknown => LoopCondition::Unknown,
                ConditionAt::Address(address) => LoopCondition::Offset(binary.offset(address)),
                ConditionAt::Register(register, displacement) => {
                    LoopCondition::Register(register.0, displacement)
                }
            },
        }));
    }
    add_from_debug_information(&mut facts, &binary, request.hooks);
    facts.inlined.retain(|(_, hook)| !is_half_seen(*hook));
    Ok(facts)
}

/// The code of functions with these names, by offset and length, stretches that touch joined.
fn linked_code(binary: &Binary, names: &[String]) -> Vec<(u64, u32)> {
    let names: Vec<Glob> = names.iter().map(|name| Glob::new(name)).collect();
    let functions = binary.symbols.iter().filter(|symbol| {
        symbol.kind == SymbolKind::Function && names.iter().any(|name| name.matches(&symbol.name))
    });
    let mut code: Vec<Range<u64>> = Vec::new();
    for Range { start, end } in functions.map(|f| f.address..f.address.saturating_add(f.size)) {
        match code.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => code.push(start..end),
        }
    }
    let length = |range: &Range<u64>| (range.end - range.start).try_into().unwrap_or(u32::MAX);
    code.iter().map(|range| (binary.offset(range.start), length(range))).collect()
}

/// Is this module listed as doing the work of hooked functions?
pub(crate) fn is_runtime(path: &Path, soname: Option<&str>, runtime: &[String]) -> bool {
    let file_name = path.file_name().and_then(|name| name.to_str());
    let names = [file_name, soname];
    let listed = |name: &&str| runtime.iter().any(|pattern| Glob::new(pattern).matches(name));
    names.iter().flatten().any(listed)
}

/// Addresses at which hooked functions begin. An address has one hook, the latest that matches:
/// aliases are one function, and later hook files override earlier ones.
fn entries(binary: &Binary, hooks: &[Hook]) -> BTreeMap<u64, u32> {
    let matcher = Matcher::functions(hooks);
    let mut found = BTreeMap::new();
    if matcher.is_empty() {
        return found;
    }
    let layout = &binary.image.layout;
    let of_kind = |kind| binary.symbols.iter().filter(move |s| s.kind == kind);
    let resolvers: BTreeSet<u64> = of_kind(SymbolKind::Resolver).map(|s| s.address).collect();
    let functions: BTreeSet<u64> = of_kind(SymbolKind::Function).map(|s| s.address).collect();
    let mut claim = |address: u64, hook: u32| {
        // A resolver has the function's name and is not the function.
        if layout.is_code(address) && !resolvers.contains(&address) {
            let holder = found.entry(address).or_insert(hook);
            *holder = hook.max(*holder);
        }
    };
    for symbol in of_kind(SymbolKind::Function) {
        if !demangle::is_partial(&symbol.name)
            && let Some(hook) = matcher.symbol(&symbol.name)
        {
            claim(symbol.address, hook);
        }
    }
    let mut behind = Resolvers::new(&binary.image, &functions);
    for symbol in of_kind(SymbolKind::Resolver) {
        let Some(hook) = matcher.symbol(&symbol.name) else { continue };
        for address in behind.implementations(symbol.address) {
            claim(address, hook);
        }
    }
    found
}

/// Libraries whose work can be seen only in part here: some of it is inlined, and the module's own
/// code has no debug information to show it. A Rust release build has that of the standard library
/// only: its slow paths would take locks that nobody is ever seen to release.
fn half_seen_libraries<'a>(binary: &Binary, hooks: &'a [Hook]) -> BTreeSet<&'a str> {
    let own_code = binary.dwarf.as_ref().is_some_and(|s| describes_own_code(&s.borrow()));
    // What only says that something is no event takes nothing that it could fail to give back.
    let hides = |hook: &Hook| hook.role == Role::Function && hook.opaque;
    let works = |hook: &&Hook| !hook.inlined.is_empty() && !hides(hook);
    let inlined = hooks.iter().filter(|hook| !own_code && works(hook));
    inlined.map(|hook| &*hook.library).collect()
}

/// Is there a unit that was not compiled with the Rust standard library itself? That, and what it is
/// made of, carries the paths of its own build, `/rustc/COMMIT` and `/rust/deps`.
fn describes_own_code(dwarf: &gimli::Dwarf<crate::dwarf::Slice<'_>>) -> bool {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        if unit.comp_dir.is_some_and(|directory| !is_of_rust_std(directory.slice())) {
            return true;
        }
    }
    false
}

fn is_of_rust_std(directory: &[u8]) -> bool {
    directory.starts_with(b"/rustc/") || directory.starts_with(b"/rust/deps/")
}

/// The code of the Rust standard library's own units. Locks that it takes for itself are its own
/// business, and its code is optimised beyond what its debug information can follow: where two
/// guards are dropped by the same instructions, nothing says `unlock`, and a lock that every thread
/// takes at its start would never be seen released.
fn rust_std_code(dwarf: &gimli::Dwarf<crate::dwarf::Slice<'_>>) -> Vec<Range<u64>> {
    let mut code = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        if unit.comp_dir.is_some_and(|directory| is_of_rust_std(directory.slice()))
            && let Ok(mut ranges) = dwarf.unit_ranges(&unit)
        {
            while let Ok(Some(range)) = ranges.next() {
                code.push(range.begin..range.end);
            }
        }
    }
    code.sort_by_key(|range| range.start);
    code
}

/// What a function's name means for the facts.
#[derive(Debug, Clone, Copy)]
struct Mark {
    hook: Option<u32>,
    atomic: bool,
}

fn add_from_debug_information(facts: &mut ModuleFacts, binary: &Binary, hooks: &[Hook]) {
    let Some(sections) = &binary.dwarf else { return };
    let dwarf = sections.borrow();
    let matcher = Matcher::inlined(hooks);
    // C has no namespaces: without a pattern for it there is nothing to find.
    let c_matters = matcher.has_plain_names();
    let instances = instances::find(
        &dwarf,
        |language| c_matters || !crate::dwarf::is_c(language),
        |name| {
            let (hook, atomic) = match name {
                Name::Linker(name) => {
                    let atomic = atomics::may_be_operation(name)
                        && demangle::path(name).is_some_and(|path| atomics::is_operation(&path));
                    (matcher.symbol(name), atomic)
                }
                Name::Path(path) => (matcher.path(path), atomics::is_operation(path)),
            };
            (hook.is_some() || atomic).then_some(Mark { hook, atomic })
        },
    );
    let image = &binary.image;
    let of_std = rust_std_code(&dwarf);
    let is_of_std = |address: u64| {
        let after = of_std.partition_point(|range| range.start <= address);
        after.checked_sub(1).is_some_and(|last| of_std[last].contains(&address))
    };
    facts.inlined = inlined::atomic_instructions(image, &instances, |mark| mark.hook)
        .into_iter()
        .filter(|(address, _)| !is_of_std(*address))
        .map(|(address, hook)| (binary.offset(address), hook))
        .collect();
    let mut atomic = atomics::by_call_chain(image, &instances, |mark| mark.atomic);
    atomic.extend(atomics::by_type(image, &dwarf));
    atomic.extend(atomic_pointers::accesses(image, &dwarf));
    facts.atomic = atomics::merge(atomic)
        .into_iter()
        .map(|range| {
            let length = u32::try_from(range.end - range.start).unwrap_or(u32::MAX);
            (binary.offset(range.start), length)
        })
        .collect();
}

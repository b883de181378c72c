//! Atomic accesses that look like plain ones: a release store or acquire load is a `mov` on x86-64.
//!
//! Three rules find them with debug information (DESIGN, "Monitoring rules", rule 2): the code comes
//! from a function of `std::atomic` or `core::sync::atomic`; or the instruction names a global
//! variable of atomic type by its address; or it goes through a pointer to something atomic
//! ([`crate::atomic_pointers`]).

use crate::code;
use crate::demangle;
use crate::dwarf::{Slice, Unit, View};
use crate::elf::Image;
use crate::instances::Instance;
use crate::types::Types;
use std::collections::HashMap;
use std::ops::Range;

/// Could this linker name be an atomic operation? Cheap, to save demangling the others.
pub(crate) fn may_be_operation(linker_name: &str) -> bool {
    linker_name.contains("atomic")
}

/// Is the function of this path (as [`demangle::normalise`] writes it) an atomic operation?
pub(crate) fn is_operation(path: &str) -> bool {
    const CPP: [&str; 7] = [
        "std::atomic",
        "std::atomic_flag",
        "std::atomic_ref",
        "std::__atomic_base",
        "std::__atomic_float",
        "std::__atomic_ref",
        "std::__atomic_impl",
    ];
    const OPERATIONS: [&str; 8] =
        ["load", "store", "exchange", "swap", "test", "test_and_set", "clear", "wait"];
    const FAMILIES: [&str; 6] =
        ["compare_", "fetch_", "operator", "atomic_", "__cxx_atomic_", "wait_"];
    let name = demangle::last_component(path);
    let Some(scope) = path.strip_suffix(name).and_then(|scope| scope.strip_suffix("::")) else {
        return false;
    };
    // libc++ keeps its library in an inline namespace.
    let scope = scope.replacen("std::__1", "std", 1);
    let library = CPP.contains(&scope.as_str())
        || scope == "std" && name.starts_with("__cxx_atomic_")
        || scope.starts_with("core::sync::atomic")
        || scope.starts_with("std::sync::atomic")
        || scope.starts_with("boost::atomics::");
    let operation = OPERATIONS.contains(&name) || FAMILIES.iter().any(|f| name.starts_with(f));
    library && operation
}

/// The code of atomic operations, wherever it stands.
pub(crate) fn by_call_chain<M: Copy>(
    image: &Image,
    instances: &[Instance<M>],
    atomic: impl Fn(M) -> bool,
) -> Vec<Range<u64>> {
    let wanted = instances.iter().filter(|instance| atomic(instance.mark));
    let ranges = wanted.flat_map(|instance| instance.ranges.iter().cloned());
    ranges.filter(|range| image.layout.is_code(range.start)).collect()
}

/// Instructions that access global variables of atomic type.
pub(crate) fn by_type(image: &Image, dwarf: &gimli::Dwarf<Slice<'_>>) -> Vec<Range<u64>> {
    let mut variables = atomic_variables(dwarf);
    variables.retain(|variable| image.layout.is_data(variable.start));
    let variables = merge(variables);
    if variables.is_empty() {
        return Vec::new();
    }
    let accesses = |(address, bytes)| code::accesses(bytes, address, &variables);
    image.code().flat_map(accesses).collect()
}

/// Where global variables, or parts of them, are atomic by their type.
fn atomic_variables<'d>(dwarf: &'d gimli::Dwarf<Slice<'d>>) -> Vec<Range<u64>> {
    let view = View::new(dwarf);
    let types = Types::new(&view);
    let mut found = Vec::new();
    let mut parts_of_type = HashMap::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Some(unit) = Unit::new(dwarf, header, false) else { continue };
        if unit.is_c() && !unit.has_tag(gimli::DW_TAG_atomic_type) {
            continue;
        }
        for (address, die) in unit.variables() {
            let Some(entry) = view.variable_type(die) else { continue };
            let parts = parts_of_type.entry(entry.die).or_insert_with(|| types.atomic_parts(entry));
            let place = |part: &Range<u64>| {
                address.saturating_add(part.start)..address.saturating_add(part.end)
            };
            found.extend(parts.iter().map(place));
        }
    }
    found
}

/// Sorted, without overlaps; ranges that touch become one.
pub(crate) fn merge(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_atomic_types() {
        for path in [
            "std::atomic::load",
            "std::atomic::operator int",
            "std::__atomic_base::operator++",
            "std::__1::atomic::store",
            "std::atomic_flag::test_and_set",
            "core::sync::atomic::AtomicUsize::load",
            "core::sync::atomic::Atomic::fetch_add",
            "core::sync::atomic::atomic_store",
        ] {
            assert!(is_operation(path), "{path}");
        }
        for path in [
            "std::atomic::atomic",
            "core::sync::atomic::AtomicUsize::new",
            "core::sync::atomic::AtomicUsize::get_mut",
            "std::vector::load",
            "my::atomic::load",
            "load",
            "",
        ] {
            assert!(!is_operation(path), "{path}");
        }
    }

    #[test]
    fn merging() {
        assert_eq!(merge(vec![5..7, 1..3, 3..4, 6..9, 20..20]), [1..4, 5..9]);
    }
}

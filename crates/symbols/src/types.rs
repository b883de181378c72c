//! Types of variables: how large, what they are called, and what stands at an offset inside.
//!
//! The last is the interesting one: byte 104 of `struct node table[10]` is `table[3].next`.
//! Library types are shown from outside: a step through a member with a reserved name
//! (`_M_impl`, `__data`) or through Rust's cells and atomics says nothing to the reader.

use crate::dwarf::{Entry, View};
use crate::type_names::scope_prefix;
use std::ops::Range;

/// Types nest; one nested deeper than this refers to itself.
const MAX_DEPTH: usize = 64;
/// An array of structures with atomic members adds a stretch for each of its elements.
const MAX_PARTS: usize = 4096;
/// Types of members looked at for one variable; real structures have hundreds.
const MAX_VISITS: usize = 4096;

/// Where inside a variable something is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Inside {
    /// What to write behind the variable's name: `[3].next`.
    pub path: String,
    /// Bytes from the start of what the path names.
    pub rest: u64,
}

/// Answers about types. Every entry passed must be a type.
pub(crate) struct Types<'v, 'd> {
    view: &'v View<'d>,
}

impl<'v, 'd> Types<'v, 'd> {
    pub fn new(view: &'v View<'d>) -> Self {
        Types { view }
    }

    /// The type of a variable, member or other type.
    pub fn of(&self, entry: &Entry<'d>) -> Option<Entry<'d>> {
        self.view.follow(entry, gimli::DW_AT_type)
    }

    /// What objects of this type point to, if they are pointers.
    pub fn pointed_to(&self, mut entry: Entry<'d>) -> Option<Entry<'d>> {
        for _ in 0..MAX_DEPTH {
            if entry.tag() == gimli::DW_TAG_pointer_type {
                return self.of(&entry);
            }
            entry = self.of(&entry).filter(|_| is_wrapper(&entry))?;
        }
        None
    }

    /// Bytes an object of this type takes.
    pub fn size(&self, entry: &Entry<'d>) -> Option<u64> {
        self.size_within(entry, MAX_DEPTH)
    }

    fn size_within(&self, entry: &Entry<'d>, depth: usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        if let Some(size) = entry.number(gimli::DW_AT_byte_size) {
            return Some(size);
        }
        match entry.tag() {
            gimli::DW_TAG_array_type => {
                let element = self.size_within(&self.of(entry)?, depth)?;
                let counts = self.counts(entry);
                let known = counts.iter().copied().collect::<Option<Vec<u64>>>()?;
                known.iter().try_fold(element, |size, count| size.checked_mul(*count))
            }
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                Some(u64::from(entry.unit.unit.encoding().address_size))
            }
            _ if is_wrapper(entry) => self.size_within(&self.of(entry)?, depth),
            _ => None,
        }
    }

    /// The type behind typedefs and qualifiers.
    pub fn bare(&self, entry: Entry<'d>) -> Option<Entry<'d>> {
        let mut entry = entry;
        for _ in 0..MAX_DEPTH {
            if !is_wrapper(&entry) {
                return Some(entry);
            }
            entry = self.of(&entry)?;
        }
        None
    }

    /// What is at an offset inside an object of this type.
    pub fn inside(&self, entry: Entry<'d>, offset: u64) -> Inside {
        let mut inside = Inside { path: String::new(), rest: offset };
        let mut current = Some(entry);
        for _ in 0..MAX_DEPTH {
            let Some(bare) = current.take().and_then(|entry| self.bare(entry)) else { break };
            current = match bare.tag() {
                gimli::DW_TAG_array_type => self.step_into_array(&bare, &mut inside),
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => self.step_into_member(&bare, &mut inside),
                _ => None,
            };
        }
        inside
    }

    fn step_into_array(&self, array: &Entry<'d>, inside: &mut Inside) -> Option<Entry<'d>> {
        if array.has(gimli::DW_AT_GNU_vector) {
            return None;
        }
        let element = self.of(array)?;
        let size = self.size(&element).filter(|size| *size > 0)?;
        let counts = self.counts(array);
        let mut index = inside.rest / size;
        // The last dimension varies fastest.
        let mut indices = Vec::new();
        for count in counts.iter().skip(1).rev() {
            let count = count.filter(|count| *count > 0)?;
            indices.push(index % count);
            index /= count;
        }
        indices.push(index);
        if counts.first().copied().flatten().is_some_and(|count| index >= count) {
            return None;
        }
        inside.rest %= size;
        for index in indices.iter().rev() {
            inside.path.push_str(&format!("[{index}]"));
        }
        Some(element)
    }

    fn step_into_member(&self, structure: &Entry<'d>, inside: &mut Inside) -> Option<Entry<'d>> {
        let opaque = structure.unit.is_rust() && is_transparent(structure);
        for member in self.view.children(structure) {
            let Some((start, entry)) = self.member(&member) else { continue };
            let Some(rest) = inside.rest.checked_sub(start) else { continue };
            match self.size(&entry) {
                Some(size) if rest >= size => continue,
                // A flexible array at the end.
                None if entry.tag() != gimli::DW_TAG_array_type => continue,
                _ => {}
            }
            let name = member.name().filter(|_| member.tag() == gimli::DW_TAG_member);
            let name = match name.as_deref() {
                // Base classes and anonymous members have no name to write.
                None => None,
                Some(_) if opaque => None,
                Some(name) if structure.unit.is_rust() => Some(name.trim_start_matches("__")),
                Some(name) if is_reserved(name) => {
                    // The elements of std::array; not the bytes that give sem_t its size.
                    let bare = self.bare(self.of(&member)?)?;
                    let is_union = structure.tag() == gimli::DW_TAG_union_type;
                    if is_union || bare.tag() != gimli::DW_TAG_array_type {
                        return None;
                    }
                    None
                }
                Some(name) => Some(name),
            };
            if let Some(name) = name {
                inside.path.push('.');
                inside.path.push_str(name);
            }
            inside.rest = rest;
            return Some(entry);
        }
        None
    }

    /// Where a member or base class starts, and its type; none for what is no part of the object.
    fn member(&self, member: &Entry<'d>) -> Option<(u64, Entry<'d>)> {
        let part = matches!(member.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance);
        let bits = member.has(gimli::DW_AT_data_bit_offset) || member.has(gimli::DW_AT_bit_size);
        let shared = member.has(gimli::DW_AT_external) || member.has(gimli::DW_AT_declaration);
        if !part || bits || shared {
            return None;
        }
        let start = match member.value(gimli::DW_AT_data_member_location) {
            None => 0,
            Some(_) => member.number(gimli::DW_AT_data_member_location)?,
        };
        Some((start, self.of(member)?))
    }

    /// Elements in each dimension, where known.
    pub fn counts(&self, array: &Entry<'d>) -> Vec<Option<u64>> {
        let children = self.view.children(array);
        let dimensions = children.iter().filter(|d| d.tag() == gimli::DW_TAG_subrange_type);
        dimensions
            .map(|dimension| {
                let upper = dimension.number(gimli::DW_AT_upper_bound);
                let lower = dimension.number(gimli::DW_AT_lower_bound).unwrap_or(0);
                let from_bounds = upper.and_then(|upper| upper.checked_add(1)?.checked_sub(lower));
                dimension.number(gimli::DW_AT_count).or(from_bounds)
            })
            .collect()
    }

    /// The parts of an object that are atomic by their type: C's `_Atomic`, C++'s `std::atomic`,
    /// Rust's atomics.
    pub fn atomic_parts(&self, entry: Entry<'d>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut budget = MAX_VISITS;
        self.add_atomic_parts(entry, 0, &mut budget, &mut parts);
        parts
    }

    fn is_atomic(&self, entry: &Entry<'d>) -> bool {
        let rust = entry.unit.is_rust();
        let library = if rust { "core::sync::atomic::" } else { "std::" };
        match entry.tag() {
            gimli::DW_TAG_atomic_type => true,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                entry.name().is_some_and(|name| is_atomic_name(&name, rust))
                    && scope_prefix(self.view, entry).starts_with(library)
            }
            _ => false,
        }
    }

    fn add_atomic_parts(
        &self,
        entry: Entry<'d>,
        start: u64,
        budget: &mut usize,
        parts: &mut Vec<Range<u64>>,
    ) {
        let Some(left) = budget.checked_sub(1).filter(|_| parts.len() < MAX_PARTS) else { return };
        *budget = left;
        if self.is_atomic(&entry) {
            parts.extend(self.size(&entry).map(|size| start..start.saturating_add(size)));
            return;
        }
        match entry.tag() {
            gimli::DW_TAG_array_type => {
                let Some(element) = self.of(&entry) else { return };
                let size = self.size(&element).unwrap_or(0);
                let mut first = Vec::new();
                self.add_atomic_parts(element, 0, budget, &mut first);
                let count = self.counts(&entry).into_iter().flatten().fold(1, u64::saturating_mul);
                for index in 0..count.min(MAX_PARTS as u64) {
                    if first.is_empty() || parts.len() >= MAX_PARTS {
                        break;
                    }
                    let at = start.saturating_add(index.saturating_mul(size));
                    let moved =
                        |p: &Range<u64>| at.saturating_add(p.start)..at.saturating_add(p.end);
                    parts.extend(first.iter().map(moved));
                }
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                for member in self.view.children(&entry) {
                    if let Some((offset, entry)) = self.member(&member) {
                        self.add_atomic_parts(entry, start.saturating_add(offset), budget, parts);
                    }
                }
            }
            _ if is_wrapper(&entry) => {
                if let Some(entry) = self.of(&entry) {
                    self.add_atomic_parts(entry, start, budget, parts);
                }
            }
            _ => {}
        }
    }
}

/// Typedefs and qualifiers: the same object under another name.
fn is_wrapper(entry: &Entry) -> bool {
    matches!(
        entry.tag(),
        gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_packed_type
            | gimli::DW_TAG_immutable_type
            | gimli::DW_TAG_template_alias
    )
}

/// The names of atomic types, scope aside.
fn is_atomic_name(name: &str, rust: bool) -> bool {
    if rust {
        const KINDS: [&str; 13] = [
            "Bool", "I8", "I16", "I32", "I64", "I128", "Isize", "U8", "U16", "U32", "U64", "U128",
            "Usize",
        ];
        // `AtomicUsize`, and in newer libraries `Atomic<usize>`.
        let kind = name.strip_prefix("Atomic").unwrap_or("?");
        return KINDS.contains(&kind) || kind.starts_with('<') || kind.starts_with("Ptr<");
    }
    name.starts_with("atomic<") || name.starts_with("__atomic_base<") || name == "atomic_flag"
}

/// Rust's wrappers without a meaning of their own for a reader.
fn is_transparent(structure: &Entry) -> bool {
    let wrappers = ["UnsafeCell<", "SyncUnsafeCell<", "MaybeUninit<", "ManuallyDrop<", "Cell<"];
    structure.name().is_some_and(|name| {
        is_atomic_name(&name, true) || wrappers.iter().any(|wrapper| name.starts_with(wrapper))
    })
}

/// Names that belong to the implementation: `__data`, `_M_impl`.
fn is_reserved(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next() == Some('_') && letters.next().is_some_and(|c| c == '_' || c.is_uppercase())
}

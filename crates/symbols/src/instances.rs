//! Every place in the machine code that stands for a function of some name: its own code and, with
//! debug information, each inlined instance of it.
//!
//! One fast pass over all entries. A function's name may stand on its definition, on a declaration
//! inside its class that the definition refers to (`DW_AT_specification`), or on an abstract entry
//! that inlined instances refer to (`DW_AT_abstract_origin`), before or after the reference and in
//! another unit. So the pass only notes names that are wanted, references, and instances; who
//! belongs to whom is decided at the end, and only wanted instances are read again for their code.

use crate::demangle;
use crate::dwarf::{Die, Slice, Unit};
use gimli::{AttributeValue, DwLang, EntriesRaw, Reader, UnitOffset};
use std::collections::HashMap;
use std::ops::Range;

/// The name of a function, as debug information gives it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Name<'a> {
    /// As the linker knows it.
    Linker(&'a str),
    /// As [`demangle::normalise`] writes it.
    Path(&'a str),
}

/// One stretch of code (in pieces) that is a wanted function.
#[derive(Debug, Clone)]
pub(crate) struct Instance<M> {
    pub mark: M,
    /// Inlined into another function, or the function itself.
    pub inlined: bool,
    /// How deeply nested: of two instances around an instruction the deeper one is the inner.
    pub depth: isize,
    pub ranges: Vec<Range<u64>>,
}

/// All instances of the functions for which `wanted` answers, in units of languages for which
/// `relevant` holds.
pub(crate) fn find<'d, M: Copy>(
    dwarf: &'d gimli::Dwarf<Slice<'d>>,
    relevant: impl Fn(Option<DwLang>) -> bool,
    wanted: impl FnMut(Name<'_>) -> Option<M>,
) -> Vec<Instance<M>> {
    let mut pass = Pass::new(wanted);
    let mut units = Vec::new();
    for (dwarf, supplementary) in [(Some(dwarf), false), (dwarf.sup(), true)] {
        let Some(dwarf) = dwarf else { continue };
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(unit) = Unit::new(dwarf, header, supplementary) else { continue };
            // dwz's partial units have no language; they may hold anything.
            if unit.language.is_none() || relevant(unit.language) {
                // A unit that breaks off keeps what was found so far.
                let _ = pass.read(&unit, units.len());
                units.push(unit);
            }
        }
    }
    let mut found = Vec::new();
    for instance in &pass.instances {
        let Some(mark) = pass.mark(instance.function) else { continue };
        let unit = &units[instance.unit];
        let Ok(raw) = unit.unit.entry(instance.offset) else { continue };
        let ranges: Vec<_> = unit.ranges(&raw).into_iter().filter(|r| !r.is_empty()).collect();
        if !ranges.is_empty() {
            let Seen { inlined, depth, .. } = *instance;
            found.push(Instance { mark, inlined, depth, ranges });
        }
    }
    found
}

/// An instance, not yet known to be wanted.
struct Seen {
    function: Die,
    unit: usize,
    offset: UnitOffset,
    depth: isize,
    inlined: bool,
}

struct Pass<M, F> {
    wanted: F,
    marks: HashMap<Die, M>,
    links: HashMap<Die, Die>,
    instances: Vec<Seen>,
    /// Strings already judged, by where they are stored: most occur in many units.
    judged: HashMap<u64, Option<M>>,
}

#[derive(Default)]
struct Attributes<'d> {
    name: Option<Slice<'d>>,
    linker_name: Option<Slice<'d>>,
    refers_to: Option<Die>,
    has_code: bool,
}

impl<M: Copy, F: FnMut(Name<'_>) -> Option<M>> Pass<M, F> {
    fn new(wanted: F) -> Self {
        Pass {
            wanted,
            marks: HashMap::new(),
            links: HashMap::new(),
            instances: Vec::new(),
            judged: HashMap::new(),
        }
    }

    fn read<'d>(&mut self, unit: &Unit<'d>, index: usize) -> gimli::Result<()> {
        let mut entries = unit.unit.entries_raw(None)?;
        // Namespaces and classes around the current entry, each with its depth.
        let mut scopes: Vec<(isize, Option<Slice<'d>>)> = Vec::new();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(kind) = entries.read_abbreviation()? else { continue };
            while scopes.last().is_some_and(|(outer, _)| *outer >= depth) {
                scopes.pop();
            }
            match kind.tag() {
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type
                    if kind.has_children() =>
                {
                    scopes.push((depth, attributes(unit, &mut entries, kind.attributes())?.name));
                }
                gimli::DW_TAG_subprogram => {
                    let found = attributes(unit, &mut entries, kind.attributes())?;
                    let function = unit.die(offset);
                    if let Some(mark) = self.judge(&found, &scopes) {
                        self.marks.insert(function, mark);
                    }
                    if let Some(target) = found.refers_to {
                        self.links.insert(function, target);
                    }
                    if found.has_code {
                        let seen = Seen { function, unit: index, offset, depth, inlined: false };
                        self.instances.push(seen);
                    }
                }
                gimli::DW_TAG_inlined_subroutine => {
                    let found = attributes(unit, &mut entries, kind.attributes())?;
                    if let Some(function) = found.refers_to {
                        let seen = Seen { function, unit: index, offset, depth, inlined: true };
                        self.instances.push(seen);
                    }
                }
                _ => entries.skip_attributes(kind.attributes())?,
            }
        }
        Ok(())
    }

    fn judge(&mut self, found: &Attributes, scopes: &[(isize, Option<Slice>)]) -> Option<M> {
        if let Some(linker_name) = found.linker_name {
            let wanted = &mut self.wanted;
            return *self
                .judged
                .entry(linker_name.offset_id().0)
                .or_insert_with(|| wanted(Name::Linker(&linker_name.to_string_lossy())));
        }
        let mut path = String::new();
        for scope in scopes.iter().filter_map(|(_, name)| *name) {
            path.push_str(&scope.to_string_lossy());
            path.push_str("::");
        }
        path.push_str(&found.name?.to_string_lossy());
        (self.wanted)(Name::Path(&demangle::normalise(&path)))
    }

    fn mark(&self, mut function: Die) -> Option<M> {
        /// Instance, concrete function, abstract function, declaration.
        const HOPS: usize = 4;
        for _ in 0..HOPS {
            if let Some(mark) = self.marks.get(&function) {
                return Some(*mark);
            }
            function = *self.links.get(&function)?;
        }
        None
    }
}

fn attributes<'d>(
    unit: &Unit<'d>,
    entries: &mut EntriesRaw<'_, Slice<'d>>,
    specifications: &[gimli::AttributeSpecification],
) -> gimli::Result<Attributes<'d>> {
    let mut found = Attributes::default();
    for specification in specifications {
        let attribute = entries.read_attribute(*specification)?;
        match attribute.name() {
            gimli::DW_AT_name => found.name = unit.string(attribute.value()),
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                found.linker_name = unit.string(attribute.value());
            }
            gimli::DW_AT_specification | gimli::DW_AT_abstract_origin => {
                found.refers_to = unit.reference(&attribute.value());
            }
            gimli::DW_AT_low_pc => {
                // Code the linker threw away stays at address zero.
                found.has_code |= !matches!(attribute.value(), AttributeValue::Addr(0));
            }
            gimli::DW_AT_ranges => found.has_code = true,
            _ => {}
        }
    }
    Ok(found)
}

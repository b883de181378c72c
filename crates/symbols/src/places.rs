//! From what a person types to code: `--place worker`, `--place 'Queue::*'`, `--place queue.c:123`.
//!
//! A function is meant with all its code, inlined instances included; a line with every stretch of
//! code the line table gives it.

use crate::atomics::merge;
use crate::binary::Binary;
use crate::demangle;
use crate::dwarf::{Slice, Unit};
use crate::instances::{self, Name};
use crate::matching::Glob;
use crate::symtab::SymbolKind;
use std::ops::Range;
use std::path::Path;

/// Code (addresses) of the functions or the line that a pattern means.
pub(crate) fn find(binary: &Binary, pattern: &str) -> Vec<Range<u64>> {
    let mut found = match as_line(pattern) {
        Some((file, line)) => lines(binary, file, line),
        None => functions(binary, pattern),
    };
    found.retain(|range| binary.image.layout.is_code(range.start));
    merge(found)
}

fn as_line(pattern: &str) -> Option<(&Path, u64)> {
    let (file, line) = pattern.rsplit_once(':')?;
    (!file.is_empty() && !file.ends_with(':')).then_some((Path::new(file), line.parse().ok()?))
}

fn functions(binary: &Binary, pattern: &str) -> Vec<Range<u64>> {
    let path = Glob::new(&demangle::normalise(pattern));
    let wanted = Wanted { raw: Glob::new(pattern), path };
    let mut found: Vec<Range<u64>> = binary
        .symbols
        .iter()
        .filter(|symbol| symbol.kind == SymbolKind::Function && wanted.symbol(&symbol.name))
        .map(|symbol| symbol.address..symbol.address.saturating_add(symbol.size.max(1)))
        .collect();
    if let Some(sections) = &binary.dwarf {
        let dwarf = sections.borrow();
        let judge = |name: Name<'_>| match name {
            Name::Linker(name) => wanted.symbol(name).then_some(()),
            Name::Path(path) => wanted.path(path).then_some(()),
        };
        let instances = instances::find(&dwarf, |_| true, judge);
        found.extend(instances.into_iter().flat_map(|instance| instance.ranges));
    }
    found
}

struct Wanted {
    raw: Glob,
    path: Glob,
}

impl Wanted {
    fn symbol(&self, name: &str) -> bool {
        self.raw.matches(name) || demangle::path(name).is_some_and(|path| self.path(&path))
    }

    fn path(&self, path: &str) -> bool {
        let tail_matches = || {
            // The pattern may leave out leading components.
            path.match_indices("::").any(|(at, _)| self.path.matches(&path[at + 2..]))
        };
        self.path.matches(path) || tail_matches()
    }
}

fn lines(binary: &Binary, file: &Path, line: u64) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let Some(sections) = &binary.dwarf else { return found };
    let dwarf = sections.borrow();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if let Some(unit) = Unit::new(&dwarf, header, false) {
            // A table that breaks off keeps what was found so far.
            let _ = lines_of_unit(&unit, file, line, &mut found);
        }
    }
    found
}

fn lines_of_unit(
    unit: &Unit<'_>,
    file: &Path,
    line: u64,
    found: &mut Vec<Range<u64>>,
) -> gimli::Result<()> {
    let Some(program) = unit.unit.line_program.clone() else { return Ok(()) };
    let count = program.header().file_names().len() as u64;
    let meant: Vec<u64> = (0..=count)
        .filter(|index| unit.file(*index).is_some_and(|path| path.ends_with(file)))
        .collect();
    if meant.is_empty() {
        return Ok(());
    }
    let mut rows: gimli::LineRows<Slice<'_>, _> = program.rows();
    let mut open: Option<u64> = None;
    while let Some((_, row)) = rows.next_row()? {
        if let Some(start) = open.take() {
            found.push(start..row.address());
        }
        let here = meant.contains(&row.file_index()) && row.line().is_some_and(|n| n.get() == line);
        open = (here && !row.end_sequence()).then(|| row.address());
    }
    Ok(())
}

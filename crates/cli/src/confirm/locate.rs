//! From a finding of a report to the code that is watched.
//!
//! In the build that the finding was made in, that is two instructions. In another build, or where
//! another tool made the finding, it is what a programmer would call the same two places: the lines with
//! the same text in the same functions, or else the functions.

use crate::names::Names;
use crate::run::library::SourceFiles;
use raddle_model::finding::{FindingKind, TouchKind};
use raddle_report::Symbols;
use raddle_report::findings::html::Sources;
use raddle_report::findings::{Access, Finding, Frame, Location, Report};
use raddle_report::function_names::same_function;
use raddle_symbols::MemoryUse;
use raddle_wire::options::{CyclePart, PlaceFilter, WatchedPlace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Finds the code of findings in the program as it is now.
pub struct Locator<'a> {
    report: &'a Report,
    names: Names,
    sources: SourceFiles,
    /// Is the module the one the report speaks of? By its path.
    same: BTreeMap<String, bool>,
}

/// What became of a finding's code.
#[derive(Debug, PartialEq, Eq)]
pub enum Located {
    /// It is there.
    There(Code),
    /// It is no longer there.
    Gone,
    /// Its line is there, but not in this function.
    Elsewhere {
        /// `bank.c:31`.
        line: String,
        function: String,
    },
    /// It never could be watched: code that belongs to no file.
    Nowhere,
}

/// How an access is that is looked for among those of a line.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    writes: bool,
    /// Bytes; 0 where they are not known.
    size: u64,
    location: &'a Location,
}

/// The code of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// The accesses of a race.
    Race(Vec<WatchedPlace>),
    /// The requests of a cycle of locks.
    Cycle(Vec<CyclePart>),
}

impl<'a> Locator<'a> {
    /// For the findings of this report.
    pub fn new(report: &'a Report) -> Locator<'a> {
        let (names, sources) = (Names::new(), SourceFiles::default());
        Locator { report, names, sources, same: BTreeMap::new() }
    }

    /// Was the code of this finding built anew since the report was made?
    pub fn is_rebuilt(&mut self, finding: &Finding) -> bool {
        let modules: Vec<String> = finding
            .parties()
            .flat_map(|party| party.stack.first().into_iter().chain(party.frame()))
            .filter_map(|frame| frame.module.clone())
            .collect();
        modules.iter().any(|module| self.recorded(module).is_some() && !self.is_same(module))
    }

    /// The code of a finding.
    pub fn locate(&mut self, finding: &Finding) -> Located {
        match finding.kind {
            FindingKind::DataRace => self.race(finding),
            FindingKind::LockOrder => self.cycle(finding),
        }
    }

    fn race(&mut self, finding: &Finding) -> Located {
        let [first, second] = finding.accesses.as_slice() else { return Located::Nowhere };
        let known = |access: &Access| access.stack.first().is_some_and(|f| f.module.is_some());
        if !known(first) || !known(second) {
            return Located::Nowhere;
        }
        let first = self.side(first, (true, false), &finding.location);
        let second = self.side(second, (false, true), &finding.location);
        if first.is_empty() || second.is_empty() {
            return self.missing(finding);
        }
        Located::There(Code::Race(joined(first, second)))
    }

    /// Why there is no code for an access: its line has none, or has it in other functions.
    fn missing(&mut self, finding: &Finding) -> Located {
        for access in &finding.accesses {
            let Some(Frame {
                module: Some(module),
                function: Some(function),
                file: Some(file),
                line: Some(line),
                ..
            }) = access.stack.first()
            else {
                continue;
            };
            let place = format!("{file}:{line}");
            let has_line = !self.function_ranges(module, &place).is_empty();
            if has_line && self.line_ranges(module, &access.stack[0], file, *line).is_empty() {
                let name = file.rsplit('/').next().unwrap_or(file);
                return Located::Elsewhere {
                    line: format!("{name}:{line}"),
                    function: function.clone(),
                };
            }
        }
        Located::Gone
    }

    /// The requests of a cycle, each with where the lock was taken that the one before waits for. In another
    /// build they may be several instructions each: every combination is a part.
    fn cycle(&mut self, finding: &Finding) -> Located {
        let waits = &finding.waits;
        let mut parts = Vec::new();
        for (at, wait) in waits.iter().enumerate() {
            let before = &waits[(at + waits.len() - 1) % waits.len()];
            let held = wait.locks.iter().find(|held| held.address == before.wants.address);
            let Some(held) = held else { return Located::Nowhere };
            let (asks, took) = ((&wait.stack, wait.own_frame), (&held.taken_at, None));
            let known = |stack: &[Frame]| stack.first().is_some_and(|f| f.module.is_some());
            if !known(asks.0) || !known(took.0) {
                return Located::Nowhere;
            }
            let (asks, _) = self.places(asks.0, asks.1, (true, false));
            let (took, _) = self.places(took.0, took.1, (false, true));
            if asks.is_empty() || took.is_empty() {
                return Located::Gone;
            }
            let pairs = asks.iter().flat_map(|asks| took.iter().map(move |took| (asks, took)));
            parts.extend(
                pairs.map(|(asks, took)| CyclePart { asks: asks.clone(), took: took.clone() }),
            );
        }
        if parts.is_empty() { Located::Nowhere } else { Located::There(Code::Cycle(parts)) }
    }

    fn side(
        &mut self,
        access: &Access,
        sides: (bool, bool),
        location: &Location,
    ) -> Vec<WatchedPlace> {
        let (mut places, is_exact) = self.places(&access.stack, access.own_frame, sides);
        let writes = match access.kind {
            _ if is_exact => None,
            TouchKind::Read => Some(false),
            TouchKind::Write => Some(true),
            TouchKind::Update | TouchKind::Free => None,
        };
        let size = location.size.filter(|_| access.kind == TouchKind::Free);
        places.iter_mut().for_each(|place| (place.writes, place.size) = (writes, size));
        match writes {
            Some(writes) if access.stack.first().is_some_and(|frame| frame.line.is_some()) => {
                self.narrowed(places, Wanted { writes, size: access.size, location })
            }
            _ => places,
        }
    }

    /// Of the instructions of a line, those that a finding can mean. An instruction that reads and writes
    /// stands for both, so that it can meet itself. The whole line where none is like it: the access may
    /// be made in a way that cannot be seen in the code.
    fn narrowed(&mut self, places: Vec<WatchedPlace>, wanted: Wanted<'_>) -> Vec<WatchedPlace> {
        let mut uses: Vec<(usize, MemoryUse)> = Vec::new();
        for (at, place) in places.iter().enumerate() {
            let (module, code) =
                (Path::new(&place.code.module), (place.code.start, place.code.end));
            let found = self.names.symboliser().memory_uses(module, code).into_iter();
            let of_kind = found.filter(|u| if wanted.writes { u.writes } else { u.reads });
            uses.extend(of_kind.map(|found| (at, found)));
        }
        let names_it = |(at, found): &(usize, MemoryUse)| {
            let module = Path::new(&places[*at].code.module);
            let variable = found.target.and_then(|t| self.names.symboliser().variable(module, t));
            let name = wanted.location.name.as_deref();
            variable.zip(name).is_some_and(|(variable, name)| is_part(name, &variable.root))
        };
        prefer(&mut uses, names_it);
        let is_sized = |(_, found): &(usize, MemoryUse)| found.size == Some(wanted.size);
        if uses.iter().any(is_sized) {
            // A function that is called may touch as many bytes.
            uses.retain(|used| is_sized(used) || used.1.size.is_none());
        }
        if uses.is_empty() {
            return places;
        }
        let narrow = |(at, found): (usize, MemoryUse)| {
            let mut place = places[at].clone();
            (place.code.start, place.code.end) = found.code;
            place.writes = place.writes.filter(|_| !found.is_update());
            place
        };
        let mut narrowed: Vec<WatchedPlace> = uses.into_iter().map(narrow).collect();
        narrowed.dedup();
        narrowed
    }

    /// The code at which a stack ends, and whether it is the very instruction.
    fn places(
        &mut self,
        stack: &[Frame],
        own: Option<usize>,
        sides: (bool, bool),
    ) -> (Vec<WatchedPlace>, bool) {
        let Some(inner) = stack.first() else { return (Vec::new(), false) };
        // A place inside a library function belongs to every caller of it: this finding's is the first
        // outside.
        let own = own.and_then(|own| stack.get(own));
        let outside = own.filter(|own| {
            own.module.is_some() && (own.module != inner.module || own.offset != inner.offset)
        });
        let (inner_code, is_exact) = self.code(inner);
        let callers: Vec<Option<PlaceFilter>> = match outside {
            Some(own) => self.code(own).0.into_iter().map(Some).collect(),
            None => vec![None],
        };
        let mut places = Vec::new();
        for code in inner_code {
            for caller in &callers {
                let (code, caller) = (code.clone(), caller.clone());
                let (writes, size, nearby) = (None, None, false);
                places.push(WatchedPlace { sides, code, writes, caller, size, nearby });
            }
        }
        (places, is_exact)
    }

    /// The code of a frame, and whether it is the very instruction.
    fn code(&mut self, frame: &Frame) -> (Vec<PlaceFilter>, bool) {
        let Some(module) = frame.module.clone() else { return (Vec::new(), false) };
        let nameless = frame.function.is_none() && frame.line.is_none();
        if nameless || self.is_same(&module) || self.is_still_there(&module, frame) {
            let start = frame.offset.0;
            return (vec![PlaceFilter { module, start, end: start.saturating_add(1) }], true);
        }
        let ranges = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => self.line_ranges(&module, frame, file, line),
            _ => self.function_ranges(&module, frame.function.as_deref().unwrap_or_default()),
        };
        let code = |(start, end)| PlaceFilter { module: module.clone(), start, end };
        (ranges.into_iter().map(code).collect(), false)
    }

    /// A module without a build-id: are the names at the offset those it had?
    fn is_still_there(&mut self, module: &str, frame: &Frame) -> bool {
        let has_id = self.recorded(module).is_some()
            || self.names.symboliser().build_id(Path::new(module)).is_some();
        let text = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => self.sources.line(&self.path_of(file), line),
            _ => None,
        };
        let is_it = |known: &raddle_report::Frame| {
            known.function == frame.function && known.line == frame.line
        };
        !has_id
            && frame.offset.0 != 0
            && self.names.frames(module, frame.offset.0).iter().any(is_it)
            && (frame.text.is_none() || frame.text == text)
    }

    /// The code of the lines that read as the frame's did, in its function.
    fn line_ranges(
        &mut self,
        module: &str,
        frame: &Frame,
        file: &str,
        line: u32,
    ) -> Vec<(u64, u64)> {
        let lines = self.lines_like(frame, file, line);
        let path = Path::new(module);
        let mut ranges = Vec::new();
        for line in lines {
            let found = self.names.symboliser().function_ranges(path, &format!("{file}:{line}"));
            for range in found {
                if self.is_in_function(module, range.0, frame.function.as_deref()) {
                    ranges.push(range);
                }
            }
        }
        ranges
    }

    /// Is the code in this function, or in one inlined there?
    fn is_in_function(&mut self, module: &str, offset: u64, function: Option<&str>) -> bool {
        let Some(function) = function else { return true };
        let mut names = self.names.frames(module, offset).into_iter().filter_map(|f| f.function);
        names.any(|name| same_function(&name, function))
    }

    /// The numbers of the lines with the frame's text; of its own line where the text is not known
    /// or the file cannot be read.
    fn lines_like(&mut self, frame: &Frame, file: &str, line: u32) -> Vec<u32> {
        let path = self.path_of(file);
        let Some(wanted) = frame.text.as_deref().map(evened) else { return vec![line] };
        if self.sources.line(&path, 1).is_none() {
            return vec![line];
        }
        let mut lines = Vec::new();
        for number in 1.. {
            match self.sources.line(&path, number) {
                Some(text) if evened(&text) == wanted => lines.push(number),
                Some(_) => {}
                None => break,
            }
        }
        lines
    }

    fn function_ranges(&mut self, module: &str, function: &str) -> Vec<(u64, u64)> {
        self.names.symboliser().function_ranges(Path::new(module), function)
    }

    fn path_of(&self, file: &str) -> PathBuf {
        Path::new(&self.report.target.cwd).join(file)
    }

    /// The build-id that the report has for a module.
    fn recorded(&self, module: &str) -> Option<String> {
        let known = self.report.modules.iter().find(|known| known.path == module);
        known.and_then(|known| known.build_id.clone())
    }

    fn is_same(&mut self, module: &str) -> bool {
        if let Some(known) = self.same.get(module) {
            return *known;
        }
        let then = self.recorded(module);
        let now = self.names.symboliser().build_id(Path::new(module));
        let same = then.is_some() && then == now;
        self.same.insert(module.to_owned(), same);
        same
    }
}

/// Both sides as one list; what belongs to both stands in it once.
fn joined(first: Vec<WatchedPlace>, mut second: Vec<WatchedPlace>) -> Vec<WatchedPlace> {
    let mut all = Vec::new();
    for mut place in first {
        let is_same = |other: &WatchedPlace| {
            (&other.code, &other.caller, other.writes) == (&place.code, &place.caller, place.writes)
        };
        if let Some(at) = second.iter().position(is_same) {
            second.remove(at);
            place.sides = (true, true);
        }
        all.push(place);
    }
    all.extend(second);
    all
}

/// Keeps those that are so, if some are.
fn prefer<T>(all: &mut Vec<T>, mut is_so: impl FnMut(&T) -> bool) {
    let so: Vec<bool> = all.iter().map(&mut is_so).collect();
    if so.contains(&true) {
        let mut so = so.into_iter();
        all.retain(|_| so.next() == Some(true));
    }
}

/// Is it the variable, or an element or member of it: `table[3].next` of `table`?
fn is_part(name: &str, variable: &str) -> bool {
    let rest = name.strip_prefix(variable);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.', '+']))
}

/// A line with its blanks evened out: indentation changes without a change of meaning.
fn evened(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(sides: (bool, bool), start: u64, writes: Option<bool>) -> WatchedPlace {
        let code = PlaceFilter { module: "/w/bank".into(), start, end: start + 1 };
        WatchedPlace { sides, code, writes, caller: None, size: None, nearby: false }
    }

    #[test]
    fn one_place_for_both_sides_stands_once() {
        let (first, second, both) = ((true, false), (false, true), (true, true));
        let same = joined(vec![place(first, 1, None)], vec![place(second, 1, None)]);
        assert_eq!(same, [place(both, 1, None)]);
        let sides = vec![place(first, 1, Some(true)), place(second, 1, Some(false))];
        let apart = joined(vec![sides[0].clone()], vec![sides[1].clone()]);
        assert_eq!(apart, sides);
    }

    #[test]
    fn what_is_so_is_preferred_to_what_is_not() {
        let mut all = vec![1, 2, 3];
        prefer(&mut all, |n| *n > 3);
        assert_eq!(all, [1, 2, 3]);
        prefer(&mut all, |n| n % 2 == 1);
        assert_eq!(all, [1, 3]);
    }

    #[test]
    fn parts_of_a_variable_are_its() {
        assert!(is_part("table", "table") && is_part("table[3].next", "table"));
        assert!(!is_part("tables", "table") && !is_part("tab", "table"));
    }

    #[test]
    fn indentation_is_no_difference() {
        assert_eq!(evened("\tcounter  = 1; "), evened("    counter = 1;"));
        assert_ne!(evened("counter = 1;"), evened("counter = 2;"));
    }
}

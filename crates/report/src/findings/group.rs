//! One finding per distinct pair of places, seen from the program's own code.
//!
//! The detector tells pairs of instructions apart. A reader tells lines apart: copies that the
//! compiler made of one line, the load and the store of `n++`, and the places inside `memcpy` that one call of it
//! touches, are one bug. So findings are the same when both of their accesses stand at the same place of the
//! program's own code (a line; a function where no lines are known) and the memory is the same.

use super::fingerprint;
use super::party::Party;
use super::schema::{Finding, Frame};
use raddle_model::finding::{Certainty, TouchKind};
use std::collections::HashMap;

/// Makes one of those that are the same: the best and first of them stays, counts add up. The order
/// of first appearance is kept.
pub(super) fn grouped(findings: Vec<Finding>) -> Vec<Finding> {
    let mut groups: Vec<Finding> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    for finding in findings {
        match index.entry(key(&finding)) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(groups.len());
                groups.push(finding);
            }
            std::collections::hash_map::Entry::Occupied(known) => {
                let known = &mut groups[*known.get()];
                let count = known.count.saturating_add(finding.count);
                if standing(&finding) > standing(known) {
                    *known = finding;
                }
                known.count = count;
            }
        }
    }
    groups
}

/// Of those that are the same the surest is shown, and of these one that writes most: it says most.
fn standing(finding: &Finding) -> (Certainty, usize) {
    let writes = finding.accesses.iter().filter(|access| access.kind != TouchKind::Read);
    (finding.certainty, writes.count())
}

/// What makes a finding the same as another: kind of bug, the two places whichever came first, and the memory.
pub(super) fn key(finding: &Finding) -> String {
    let mut sides: Vec<String> = finding.parties().map(side).collect();
    sides.sort();
    format!("{:?}\n{}\n{}", finding.kind, sides.join("\n"), fingerprint::memory(finding))
}

fn side(party: Party<'_>) -> String {
    let place = party.frame().map(place).unwrap_or_default();
    format!("{}{place}", fingerprint::deed(party.deed))
}

/// A place as a reader sees it: the line, the function, or else the instruction.
fn place(frame: &Frame) -> String {
    let module = frame.module.as_deref().unwrap_or_default();
    match (&frame.file, frame.line, &frame.function) {
        (Some(file), Some(line), function) => {
            format!("{module} {} {file} {line}", function.as_deref().unwrap_or_default())
        }
        (_, _, Some(function)) => format!("{module} {function}"),
        _ => format!("{module} {:#x}", frame.offset.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;
    use crate::hex::Hex;

    fn finding() -> Finding {
        typed::bank().findings.remove(0)
    }

    #[test]
    fn copies_of_a_line_are_one_place() {
        let mut copy = finding();
        copy.accesses[0].stack[0].offset = Hex(0x999);
        copy.accesses.reverse();
        copy.count = 30;
        let groups = grouped(vec![finding(), copy]);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].count, finding().count + 30);
        assert_eq!(groups[0].accesses, finding().accesses);
    }

    #[test]
    fn the_best_certainty_wins_and_brings_its_instance() {
        let mut predicted = finding();
        predicted.certainty = Certainty::Predicted;
        predicted.accesses[0].size = 1;
        let groups = grouped(vec![predicted, finding()]);
        assert_eq!(groups.len(), 1);
        assert_eq!((groups[0].certainty, groups[0].accesses[0].size), (Certainty::Observed, 4));
    }

    #[test]
    fn another_line_other_memory_or_a_free_is_another_finding() {
        let mut line = finding();
        line.accesses[0].stack[0].line = Some(99);
        let mut memory = finding();
        memory.location.name = Some("something_else".into());
        let mut freed = finding();
        freed.accesses[0].kind = TouchKind::Free;
        assert_eq!(grouped(vec![finding(), line, memory, freed]).len(), 4);
    }

    #[test]
    fn the_load_and_the_store_of_a_line_are_one_place() {
        let with = |kinds: [TouchKind; 2]| {
            let mut finding = finding();
            for (access, kind) in finding.accesses.iter_mut().zip(kinds) {
                (access.kind, access.stack[0].offset) = (kind, Hex(kind as u64));
            }
            finding
        };
        let read = with([TouchKind::Read, TouchKind::Write]);
        let write = with([TouchKind::Write, TouchKind::Write]);
        let groups = grouped(vec![read, write.clone()]);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].accesses, write.accesses);
    }

    #[test]
    fn without_lines_a_function_is_a_place() {
        let at = |offset: u64, function: Option<&str>| {
            let mut finding = finding();
            let frame = &mut finding.accesses[0].stack[0];
            (frame.file, frame.line, frame.offset) = (None, None, Hex(offset));
            frame.function = function.map(String::from);
            finding
        };
        assert_eq!(grouped(vec![at(1, Some("crc")), at(2, Some("crc"))]).len(), 1);
        assert_eq!(grouped(vec![at(1, None), at(2, None)]).len(), 2);
    }

    #[test]
    fn a_library_call_is_one_place_however_deep_it_goes() {
        // memcpy of the C library, at two places of its own, called at one line of the program.
        let inside = |offset| {
            let mut finding = finding();
            let mut frame = finding.accesses[0].stack[0].clone();
            frame.module = Some("/lib/libc.so.6".into());
            frame.offset = Hex(offset);
            frame.file = None;
            finding.accesses[0].stack.insert(0, frame);
            finding.accesses[0].own_frame = Some(1);
            finding
        };
        assert_eq!(grouped(vec![inside(1), inside(2)]).len(), 1);
    }
}

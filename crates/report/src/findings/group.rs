//! One finding per distinct pair of places, seen from the program's own code.
//!
//! The detector tells pairs of instructions apart. A reader tells lines apart: copies that the
//! compiler made of one line, and the places inside `memcpy` that one call of it touches, are one
//! bug. So findings are the same when both of their accesses stand at the same place of the
//! program's own code and did the same kind of thing.

use super::party::{Deed, Party};
use super::schema::{Finding, Frame};
use raddle_model::finding::TouchKind;
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
                if finding.certainty > known.certainty {
                    *known = finding;
                }
                known.count = count;
            }
        }
    }
    groups
}

/// What makes a finding the same as another: kind of bug, and the two places whichever came first.
pub(super) fn key(finding: &Finding) -> String {
    let mut sides: Vec<String> = finding.parties().map(side).collect();
    sides.sort();
    format!("{:?}\n{}", finding.kind, sides.join("\n"))
}

fn side(party: Party<'_>) -> String {
    let kind = match party.deed {
        Deed::Access(access) => match access.kind {
            TouchKind::Read => "read",
            TouchKind::Write => "write",
            TouchKind::Update => "update",
            TouchKind::Free => "free",
        },
        Deed::Wait(_) => "wait",
    };
    format!("{kind} {}", party.frame().map(place).unwrap_or_default())
}

/// A place as a reader sees it: the line and column, or else the instruction.
fn place(frame: &Frame) -> String {
    let module = frame.module.as_deref().unwrap_or_default();
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => {
            let function = frame.function.as_deref().unwrap_or_default();
            format!("{module} {function} {file} {line} {}", frame.column.unwrap_or(0))
        }
        _ => format!("{module} {:#x}", frame.offset.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;
    use crate::hex::Hex;
    use raddle_model::finding::Certainty;

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
    fn another_line_or_kind_is_another_finding() {
        let mut line = finding();
        line.accesses[0].stack[0].line = Some(99);
        let mut kind = finding();
        kind.accesses[0].kind = TouchKind::Update;
        assert_eq!(grouped(vec![finding(), line, kind]).len(), 3);
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

//! A name for a finding that survives rebuilding the program: made of what a programmer would call
//! the same bug by. Functions, the variable or the function that allocated it, and the text of the lines; line
//! numbers and offsets move with every change above them, so an offset is used only where nothing else is known.
//! Not whether a side reads or writes: what is a load and a store of `x += 1` in one build is one instruction in
//! another, and which of a line's accesses meet is chance.

use super::party::{Deed, Party};
use super::runtime::own_frame;
use super::schema::{Failure, Finding, Frame, Report};
use crate::names::file_name;
use raddle_model::finding::TouchKind;

/// The fingerprint: sixteen hexadecimal digits.
pub(crate) fn fingerprint(finding: &Finding) -> String {
    let mut sides: Vec<String> = finding.parties().map(side).collect();
    // Which of the two came first is chance.
    sides.sort();
    let memory = memory(finding);
    format!("{:016x}", fnv1a(&format!("{:?}\n{}\n{memory}", finding.kind, sides.join("\n"))))
}

/// The same for the same failure of the same program.
pub(crate) fn fingerprint_of_failure(failure: &Failure, report: &Report) -> String {
    let program = report.target.argv.first().map(|path| file_name(path)).unwrap_or_default();
    format!("{:016x}", fnv1a(&format!("{}\n{program}\n{}", failure.kind(), failure.effect)))
}

fn side(party: Party<'_>) -> String {
    let place = party.frame().map(place).unwrap_or_default();
    let lock = match party.deed {
        Deed::Access(_) => String::new(),
        Deed::Wait(wanted) => wanted.name.as_deref().map(without_indices).unwrap_or_default(),
    };
    format!("{}{place}{lock}", deed(party.deed))
}

/// What is another bug at the same place: to free is not to touch.
pub(super) fn deed(deed: Deed<'_>) -> &'static str {
    match deed {
        Deed::Access(access) if access.kind == TouchKind::Free => "free ",
        Deed::Access(_) => "",
        Deed::Wait(_) => "wait ",
    }
}

fn place(frame: &Frame) -> String {
    let line = frame.text.as_deref().map(normalised).unwrap_or_default();
    match &frame.function {
        Some(function) => format!("{function} {line}"),
        None if !line.is_empty() => line,
        None => {
            let module = frame.module.as_deref().map(file_name).unwrap_or_default();
            format!("{module}+{:#x}", frame.offset.0)
        }
    }
}

/// The variable, whichever element of it; or who allocated the memory. Of a cycle each side names its lock; which
/// of them is the first is chance.
pub(super) fn memory(finding: &Finding) -> String {
    let location = &finding.location;
    if !finding.waits.is_empty() {
        return String::new();
    }
    if let Some(name) = &location.name {
        return without_indices(name);
    }
    let stack = location.allocated_at.as_deref().unwrap_or_default();
    let allocated = stack.get(own_frame(stack).unwrap_or(0));
    allocated.and_then(|frame| frame.function.clone()).unwrap_or_default()
}

/// `table[3].next` is `table[].next`, `buffer+0x10` is `buffer`.
fn without_indices(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut inside = false;
    for c in name.split("+0x").next().unwrap_or(name).chars() {
        if c == ']' {
            inside = false;
        }
        if !inside {
            text.push(c);
        }
        if c == '[' {
            inside = true;
        }
    }
    text
}

/// The line with its blanks evened out.
fn normalised(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// FNV-1a: the same in every build and on every machine, which the standard library's hash is not.
fn fnv1a(text: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
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
    fn it_never_changes() {
        // If this fails, every baseline and suppression by fingerprint out there is void.
        assert_eq!(fingerprint(&finding()), "df78355f7dd1dacb");
        assert_eq!(fnv1a("raddle"), 0x03c8_9e47_0d12_8127);
    }

    #[test]
    fn a_rebuild_moves_lines_and_offsets_only() {
        let mut rebuilt = finding();
        for access in &mut rebuilt.accesses {
            let frame = &mut access.stack[0];
            frame.offset = Hex(frame.offset.0 + 0x40);
            frame.line = frame.line.map(|line| line + 7);
            frame.text = frame.text.as_ref().map(|text| format!("\t{}  ", text.trim()));
        }
        rebuilt.accesses.reverse();
        rebuilt.count = 1;
        rebuilt.location.address = Hex(1);
        assert_eq!(fingerprint(&rebuilt), fingerprint(&finding()));
    }

    #[test]
    fn another_function_or_variable_or_a_free_is_another_bug() {
        let original = fingerprint(&finding());
        let changed = |change: &dyn Fn(&mut Finding)| {
            let mut finding = finding();
            change(&mut finding);
            fingerprint(&finding)
        };
        assert_ne!(original, changed(&|f| f.accesses[0].stack[0].function = Some("g".into())));
        assert_ne!(original, changed(&|f| f.accesses[0].kind = TouchKind::Free));
        assert_ne!(original, changed(&|f| f.location.name = Some("other".into())));
        assert_ne!(original, changed(&|f| f.accesses[0].stack[0].text = None));
        // Nothing but the offset is known.
        let nameless = |offset: u64| {
            changed(&|f| {
                let frame = &mut f.accesses[0].stack[0];
                (frame.function, frame.text, frame.offset) = (None, None, Hex(offset));
            })
        };
        assert_ne!(nameless(1), nameless(2));
    }

    #[test]
    fn other_instructions_for_the_same_lines_are_the_same_bug() {
        let mut optimised = finding();
        optimised.accesses[0].kind = TouchKind::Write;
        optimised.accesses[1].kind = TouchKind::Update;
        assert_eq!(fingerprint(&optimised), fingerprint(&finding()));
    }

    #[test]
    fn elements_are_alike() {
        assert_eq!(without_indices("table[3].next"), "table[].next");
        assert_eq!(without_indices("m[1][22]"), "m[][]");
        assert_eq!(without_indices("buffer+0x10"), "buffer");
    }
}

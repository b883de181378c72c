//! Helgrind's and DRD's text: `==PID==` in front of each line, stacks of `at` and `by`.

use super::{Candidate, Place, Side, Tool, between, number_after};

/// Does Valgrind introduce itself, or a race, here?
pub fn is_header(line: &str) -> bool {
    let Some(line) = said(line) else { return false };
    line.starts_with("Helgrind, ") || line.starts_with("drd, ") || access(line).is_some()
}

pub fn parse(text: &str) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    // Which stack the frames belong to: of the first side, the second, or nothing of ours.
    let mut side = 0;
    for line in text.lines().filter_map(said) {
        let line = line.trim_end();
        if let Some((tool, access)) = access(line) {
            candidates.push(Candidate { tool, access, other: None, variable: None });
            side = 1;
        } else if line.trim().is_empty() {
            // Helgrind puts a blank line between the two accesses.
            side = if side == 1 { 1 } else { 0 };
        } else if let Some(candidate) = candidates.last_mut() {
            let text = line.trim();
            if let Some(other) = text.strip_prefix("This conflicts with a previous ") {
                candidate.other = Some(conflicting(other));
                side = 2;
            } else if let Some(frame) = frame(text) {
                match (side, &mut candidate.other) {
                    (1, _) => candidate.access.stack.extend(frame),
                    (2, Some(other)) => other.stack.extend(frame),
                    _ => {}
                }
            } else if let Some(name) = variable(text) {
                candidate.variable = Some(name);
                side = 0;
            } else if !text.starts_with("Locks held") && !text.starts_with("at ") {
                side = if text.starts_with("(thread finished") { side } else { 0 };
            }
        }
    }
    candidates.retain(|candidate| !candidate.access.stack.is_empty());
    for candidate in &mut candidates {
        candidate.other.take_if(|other| other.stack.is_empty());
    }
    candidates
}

/// The line without `==PID==`; none if it is the program's own output.
fn said(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("==")?;
    let (pid, rest) = rest.split_once("==")?;
    pid.bytes().all(|b| b.is_ascii_digit()).then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// The first line of a race.
pub(super) fn access(line: &str) -> Option<(Tool, Side)> {
    let (tool, words, what) =
        if let Some(rest) = line.trim().strip_prefix("Possible data race during ") {
            (Tool::Helgrind, ["read", "write"], rest)
        } else {
            (Tool::Drd, ["load", "store"], line.trim().strip_prefix("Conflicting ")?)
        };
    let word = what.split(' ').next()?;
    let writes = words.iter().position(|known| *known == word)? == 1;
    let size = number_after(what, "size ");
    Some((tool, Side { writes, size, ..Side::default() }))
}

/// What follows `This conflicts with a previous`.
pub(super) fn conflicting(text: &str) -> Side {
    Side { writes: text.starts_with("write"), size: number_after(text, "size "), ..Side::default() }
}

/// The variable of a line like `Location 0x1 is 0 bytes inside global var "counter"`.
pub(super) fn variable(text: &str) -> Option<String> {
    let about = text.contains("inside global var") || text.contains("inside data symbol");
    let name = about.then(|| between(text, "\"", "\"")).flatten()?;
    Some(name.to_owned())
}

/// `at 0x10915E: worker (race.c:6)`; the inner none for a frame of Valgrind's own.
fn frame(text: &str) -> Option<Option<Place>> {
    let rest = text.strip_prefix("at 0x").or_else(|| text.strip_prefix("by 0x"))?;
    let (_, rest) = rest.split_once(": ")?;
    let (function, inside) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((function, inside)) => (function, inside),
        None => (rest, ""),
    };
    let mut place = Place::default();
    if function != "???" {
        place.function = Some(function.to_owned());
    }
    match inside.strip_prefix("in ") {
        Some(module) => place.module = Some(module.to_owned()),
        None => {
            if let Some((file, line)) = inside.rsplit_once(':') {
                place.file = Some(file.to_owned());
                place.line = line.parse().ok();
            }
        }
    }
    Some((!is_valgrinds(&place)).then_some(place))
}

/// A wrapper of Valgrind's own?
pub(super) fn is_valgrinds(place: &Place) -> bool {
    let module = place.module.as_deref().is_some_and(|module| module.contains("/vgpreload_"));
    let file = place.file.as_deref();
    module
        || file.is_some_and(|f| {
            f.ends_with("hg_intercepts.c") || f.ends_with("drd_pthread_intercepts.c")
        })
}

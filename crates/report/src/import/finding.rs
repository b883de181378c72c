//! Candidates as findings of a report of our own, so that everything that is done with findings can
//! be done with them. Only what holds for any build is taken over: functions, files and lines. What the
//! other tool calls threads and addresses were those of its own execution.

use super::{Candidate, Place, Side};
use crate::findings::{
    Access, Finding, Frame, Library, Location, LocationKind, Module, Outcome, Report, SCHEMA,
    Summary, Target, Tool, fingerprint, with_source,
};
use crate::hex::Hex;
use crate::world::NO_THREAD;
use raddle_model::finding::{Certainty, FindingKind, TouchKind};
use std::collections::BTreeSet;

/// A report of candidates. `module` gives the file of a module that the tool names, or of the
/// program where it names none, or one that is not here.
pub fn report(
    candidates: &[Candidate],
    tool: Tool,
    target: Target,
    module: &mut dyn FnMut(Option<&str>) -> String,
    library: &mut dyn Library,
) -> Report {
    let mut findings = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        // Where the other side is not known, another thread at the same place is the best guess.
        let other = candidate.other.as_ref().unwrap_or(&candidate.access);
        let accesses = [other, &candidate.access].map(|side| access(side, module, library));
        let mut finding = Finding {
            id: format!("R{}", at + 1),
            kind: FindingKind::DataRace,
            certainty: Certainty::Predicted,
            fingerprint: String::new(),
            count: 1,
            rules: Vec::new(),
            origin: Some(candidate.tool.to_string()),
            target: None,
            accesses: accesses.to_vec(),
            waits: Vec::new(),
            location: location(candidate.variable.clone()),
            confirmation: None,
            classification: None,
        };
        finding.fingerprint = fingerprint(&finding);
        findings.push(finding);
    }
    let frames = findings.iter().flat_map(|f| &f.accesses).flat_map(|access| &access.stack);
    let paths: BTreeSet<String> = frames.filter_map(|frame| frame.module.clone()).collect();
    let count = findings.len() as u64;
    Report {
        schema: SCHEMA.to_owned(),
        tool,
        target,
        // Without build-ids: the tool's build need not be the one that is there.
        modules: paths.into_iter().map(|path| Module { path, build_id: None }).collect(),
        threads: Vec::new(),
        outcome: Outcome::default(),
        summary: Summary { findings: count, predicted: count, ..Summary::default() },
        findings,
        failures: Vec::new(),
        more: serde_json::Map::new(),
    }
}

fn access(
    side: &Side,
    module: &mut dyn FnMut(Option<&str>) -> String,
    library: &mut dyn Library,
) -> Access {
    let mut stack: Vec<Frame> = side.stack.iter().map(|place| frame(place, module)).collect();
    let own_frame = with_source(&mut stack, library);
    Access {
        kind: if side.writes { TouchKind::Write } else { TouchKind::Read },
        size: side.size.unwrap_or(0),
        atomic: side.atomic,
        thread: NO_THREAD,
        process: None,
        locks: Vec::new(),
        stack,
        own_frame,
    }
}

fn frame(place: &Place, module: &mut dyn FnMut(Option<&str>) -> String) -> Frame {
    Frame {
        module: Some(module(place.module.as_deref())),
        offset: Hex(place.offset.unwrap_or(0)),
        function: place.function.clone(),
        file: place.file.clone(),
        line: place.line,
        column: None,
        inlined: false,
        text: None,
    }
}

fn location(name: Option<String>) -> Location {
    Location {
        kind: if name.is_some() { LocationKind::Global } else { LocationKind::Unknown },
        name,
        offset: None,
        allocated_at: None,
        allocated_by: None,
        thread: None,
        address: Hex(0),
        size: None,
        module: None,
    }
}

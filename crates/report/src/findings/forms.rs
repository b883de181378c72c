//! A report for other programs: what code-review pages, CI servers and editors read.
//!
//! - [`sarif`]: SARIF 2.1.0, as GitHub's code scanning and editors take it.
//! - [`junit`]: JUnit XML, as CI servers show it beside tests.
//! - [`github`]: the lines that make annotations in a GitHub workflow.

pub mod github;
pub mod junit;
pub mod sarif;
#[cfg(test)]
mod validated;

use super::entry::Entry;
use super::party::Party;
use super::schema::{Failure, Finding, Frame, Report};
use super::text::{failure, words};
use crate::hex::Hex;
use crate::names::tidy;
use std::path::Path;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    Error,
    Warning,
    Note,
}

fn weight(finding: &Finding) -> Weight {
    use super::schema::Verdict::{KWitnessHarmless, OutputDiffers, SingleOrdering, SpecViolated};
    use raddle_model::finding::Certainty;
    match (finding.classification.as_ref().map(|known| known.verdict), finding.certainty) {
        (Some(KWitnessHarmless), _) => Weight::Note,
        (Some(SpecViolated | OutputDiffers), _) | (_, Certainty::Observed) => Weight::Error,
        _ if finding.is_confirmed() => Weight::Error,
        (Some(SingleOrdering) | None, Certainty::Predicted) => Weight::Warning,
    }
}

/// An entry in one sentence.
fn said(entry: Entry<'_>, report: &Report) -> String {
    match entry {
        Entry::Finding(finding) => sentence(finding, report),
        Entry::Failure(failed) => {
            let waits = failure::waits(failed).map(|line| format!("; {}", line.trim()));
            let waits: String = waits.collect();
            let (head, again) = (failure::headline(failed), failure::command(failed));
            format!("{head}{waits}; `{again}` repeats it")
        }
    }
}

/// An entry in a few words.
fn title(entry: Entry<'_>, report: &Report) -> String {
    match entry {
        Entry::Finding(finding) => words::subject(finding, Path::new(&report.target.cwd)),
        Entry::Failure(failed) => failed.effect.clone(),
    }
}

/// Where a reader should look first.
fn looked_at(entry: Entry<'_>, report: &Report) -> Option<Frame> {
    match entry {
        Entry::Finding(finding) => main_frame(finding).cloned(),
        Entry::Failure(failed) => failed_frame(failed).cloned().or_else(|| program(report)),
    }
}

/// The program's own code where an execution failed.
fn failed_frame(failed: &Failure) -> Option<&Frame> {
    failed.stacks.iter().find_map(|stack| words::called_from(stack))
}

/// The program as a whole, for want of a place in it.
fn program(report: &Report) -> Option<Frame> {
    let executable = report.modules.first().map(|module| module.path.clone());
    let module = executable.or_else(|| report.target.argv.first().cloned())?;
    Some(Frame {
        module: Some(module),
        offset: Hex(0),
        function: None,
        file: None,
        line: None,
        column: None,
        inlined: false,
        text: None,
    })
}

/// A finding in one sentence: what, and who takes part.
fn sentence(finding: &Finding, report: &Report) -> String {
    let base = Path::new(&report.target.cwd);
    let side = |party: Party<'_>| {
        let at = party.frame().map(|frame| format!(" at {}", words::place(frame, base)));
        let said = words::said(report, party, base);
        format!("{said},{}", at.unwrap_or_default())
    };
    let sides: Vec<String> = finding.parties().rev().map(side).collect();
    let subject = words::subject(finding, base);
    format!("{subject} ({}): {}", words::verdict(finding), sides.join("; "))
}

/// The frame where a reader should look first: of the later access that has source.
fn main_frame(finding: &Finding) -> Option<&Frame> {
    let mut frames = finding.parties().rev().filter_map(|party| party.frame());
    let with_source = frames.clone().find(|frame| frame.file.is_some() && frame.line.is_some());
    with_source.or_else(|| frames.next())
}

/// The source file of a frame relative to the root of the repository where it lies below it; the
/// module's file where there is no source. Paths the compiler knew as relative are relative to
/// where the target ran, as far as anybody can tell.
fn file(frame: &Frame, report: &Report, root: &Path) -> Option<FilePath> {
    let known = frame.file.as_deref().or(frame.module.as_deref())?;
    let path = tidy(&Path::new(&report.target.cwd).join(known));
    Some(match path.strip_prefix(root) {
        Ok(below) => FilePath { path: below.display().to_string(), below_root: true },
        Err(_) => FilePath { path: path.display().to_string(), below_root: false },
    })
}

/// A file of a location.
struct FilePath {
    path: String,
    below_root: bool,
}

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

use super::party::Party;
use super::schema::{Finding, Frame, Report};
use super::text::words;
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

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
use super::runtime::{is_runtime, own_frame};
use super::schema::{Failure, Finding, Frame, Report};
use super::text::{failure, words};
use crate::hex::Hex;
use crate::names::tidy;
use std::path::Path;

/// The repository that paths are relative to.
#[derive(Clone, Copy)]
pub struct Repository<'a> {
    /// Its directory.
    pub root: &'a Path,
    /// Is there such a file or directory?
    pub has: &'a dyn Fn(&Path) -> bool,
}

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
        Entry::Finding(finding) => sentence(finding, report, &|_, text| text),
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

/// The program's own code where an execution failed. Where there is none on any stack, the C library's
/// way to abort is no place to look at.
fn failed_frame(failed: &Failure) -> Option<&Frame> {
    failed.stacks.iter().find_map(|stack| stack.get(own_frame(stack)?))
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

/// A finding in one sentence: what, and who takes part. `shown` makes what is written of its words, and of
/// the place where somebody who takes part stood, with their index.
fn sentence(
    finding: &Finding,
    report: &Report,
    shown: &dyn Fn(Option<usize>, String) -> String,
) -> String {
    let base = Path::new(&report.target.cwd);
    let side = |(at, party): (usize, Party<'_>)| {
        let place = party.frame().map(|frame| shown(Some(at), words::place(frame, base)));
        let said = shown(None, words::said(report, party, base));
        place.map_or_else(|| said.clone(), |place| format!("{said}, at {place}"))
    };
    let parties: Vec<Party<'_>> = finding.parties().collect();
    let sides: Vec<String> = parties.into_iter().enumerate().rev().map(side).collect();
    let subject = shown(None, words::subject(finding, base));
    format!("{subject} ({}): {}", words::verdict(finding), sides.join("; "))
}

/// The frame where a reader should look first: of the later access that has source, and the program's own
/// before a library's.
fn main_frame(finding: &Finding) -> Option<&Frame> {
    let frames = || finding.parties().rev().filter_map(|party| party.frame());
    let with_source = || frames().filter(|frame| frame.file.is_some() && frame.line.is_some());
    let own = with_source().find(|frame| !is_runtime(frame));
    own.or_else(|| with_source().next()).or_else(|| frames().next())
}

/// The source file of a frame; the module's file where there is no source.
fn file(frame: &Frame, report: &Report, repository: Repository<'_>) -> Option<FilePath> {
    let Repository { root, has } = repository;
    let known = Path::new(frame.file.as_deref().or(frame.module.as_deref())?);
    // A path that the compiler knew as relative is, as far as anybody can tell, relative to where the
    // target ran; if no file is there, it is from where somebody else built a library.
    let path = tidy(&Path::new(&report.target.cwd).join(known));
    // A report from another machine, with no repository to look into, is believed.
    let is_there = has(&path) || known.is_absolute() && !has(root);
    Some(match path.strip_prefix(root) {
        Ok(below) if is_there => FilePath::InRepository(below.display().to_string()),
        _ if known.is_relative() && !is_there => {
            FilePath::Somewhere(tidy(known).display().to_string())
        }
        _ => FilePath::Absolute(path.display().to_string()),
    })
}

/// A file of a location.
enum FilePath {
    /// Relative to the repository's root.
    InRepository(String),
    /// Outside.
    Absolute(String),
    /// Relative to a directory that nobody knows.
    Somewhere(String),
}

/// The column in characters from 1; the compiler counts bytes.
fn column(frame: &Frame) -> Option<usize> {
    let byte = (frame.column? as usize).checked_sub(1)?;
    match frame.text.as_deref().map(|text| text.split_at_checked(byte)) {
        Some(Some((before, _))) => Some(before.chars().count() + 1),
        Some(None) => None,
        None => Some(byte + 1),
    }
}

//! A report for people, in the manner of Miri and ThreadSanitizer: both accesses numbered, the one
//! that made the finding first, each with its thread, its locks, its line and its calls; then the
//! memory, where the threads come from, and why the two are held to be unordered.

//!
//! On a terminal the report fits the screen: the most important findings in full, as many as there
//! is room for and at least one, the others in a line each.

pub(super) mod failure;
mod finding;
#[cfg(test)]
mod golden;
mod lanes;
mod line;
mod snippet;
pub(super) mod words;

pub use lanes::write_timeline;
pub use words::fixed;

use super::entry::Entry;
use super::schema::{Finding, Outcome, Report};
use crate::names::file_name;
use crate::paint::{Paint, Tint};
use line::Line;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use words::{clean, number, place};

/// Findings that are shown in a line each, where there is no room for more.
const SHOWN_LINES: usize = 8;
/// The summary, where the report lies, what to type next, and the prompt.
const LAST_LINES: usize = 4;

/// How a report is written.
#[derive(Debug, Clone)]
pub struct Style {
    /// With colour?
    pub paint: Paint,
    /// Paths below are shown relative to it.
    pub base: PathBuf,
    /// Whole stacks, also where they are the runtime libraries' business.
    pub everything: bool,
    /// Columns of the screen; unlimited where nobody looks.
    pub width: Option<usize>,
    /// Rows of the screen; unlimited where nobody looks.
    pub height: Option<usize>,
}

impl Style {
    /// For a file: no colour, no limits.
    pub fn plain(base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        Style { paint: Paint::Plain, base, everything: false, width: None, height: None }
    }
}

/// Writes the findings and the failing executions.
pub fn write(report: &Report, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut room = style.height.filter(|_| !style.everything);
    let entries = report.entries();
    for (at, entry) in entries.iter().enumerate() {
        let lines = match entry {
            Entry::Finding(finding) => finding::lines(report, style, finding),
            Entry::Failure(failure) => failure::lines(style, failure),
        };
        let others = entries.len() - at - 1;
        // Behind this one there must be room for a line about each of the others, or at least for
        // one that counts them, and for the last lines of the report.
        let needed = lines.len() + 1 + others.min(SHOWN_LINES + 1) + LAST_LINES;
        match room {
            Some(rows) if at > 0 && needed > rows => return write_rest(&entries[at..], style, out),
            Some(rows) => room = Some(rows.saturating_sub(lines.len() + 1)),
            None => {}
        }
        for line in lines {
            writeln!(out, "{}", line.painted(style.paint))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What there is no room for, in a line each.
fn write_rest(rest: &[Entry<'_>], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for entry in rest.iter().take(SHOWN_LINES) {
        let said = match entry {
            Entry::Finding(finding) => news(finding, &style.base),
            Entry::Failure(failure) => failure::headline(failure),
        };
        let line = Line::source(0).tinted(Tint::Heading, entry.id()).text("  ").text(&said);
        let line = match style.width {
            Some(columns) => line.fitted(columns),
            None => vec![line],
        };
        for line in line {
            writeln!(out, "{}", line.painted(style.paint))?;
        }
    }
    let left = rest.len().saturating_sub(SHOWN_LINES);
    if left > 0 {
        writeln!(out, "and {}", number(left as u64, "more finding", "more findings"))?;
    }
    writeln!(out)
}

/// What to type next: the strongest step that this build of the command has (`known` tells) for the
/// most important finding or failing execution. Nothing when nothing was found.
pub fn next(report: &Report, run: Option<&str>, known: impl Fn(&str) -> bool) -> Option<String> {
    let first = *report.entries().first()?;
    let id = match run {
        Some(run) => format!("{run}/{}", first.id()),
        None => first.id().to_owned(),
    };
    let confirmed = match first {
        Entry::Finding(finding) => finding.is_confirmed(),
        Entry::Failure(_) => true,
    };
    let step = match () {
        () if confirmed && known("replay") => format!("raddle replay {id}"),
        () if !confirmed && known("confirm") => format!("raddle confirm {id}"),
        () => format!("raddle explain {id}"),
    };
    Some(clean(&format!("next: {step}")))
}

/// What was found, or what was looked at in vain, in a line; `file` is where the report lies.
pub fn summary(report: &Report, file: Option<&str>) -> String {
    let summary = &report.summary;
    let failed = match report.failures.len() as u64 {
        0 => None,
        n => Some(number(n, "failing execution", "failing executions")),
    };
    let found = match summary.findings {
        0 if summary.known > 0 => "no new data races".to_owned(),
        0 => "no data races".to_owned(),
        _ => format!("{} ({})", words::kinds(report), by_certainty(report)),
    };
    let mut text = match &failed {
        Some(failed) => format!("{failed} and {found}"),
        None => found,
    };
    text += &format!(" in {}", number(summary.threads, "thread", "threads"));
    if summary.processes > 1 {
        text += &format!(" of {} processes", summary.processes);
    }
    if summary.findings == 0 && failed.is_none() {
        text += &looked_at(report);
    }
    if summary.hidden > 0 {
        text += &format!("; {} left out by --only-in or --ignore", summary.hidden);
    }
    if summary.suppressed > 0 {
        text += &format!("; {} suppressed", summary.suppressed);
    }
    if summary.known > 0 {
        text += &format!("; {} known from the baseline", summary.known);
    }
    text += &ended(&report.outcome);
    if let Some(file) = file {
        text += &format!("; report in {file}");
    }
    clean(&text)
}

/// A line about a finding while the target runs.
pub fn news(finding: &Finding, base: &Path) -> String {
    let sides: Vec<String> = finding
        .parties()
        .rev()
        .filter_map(|party| {
            Some(format!("{} at {}", words::short_deed(party), place(party.frame()?, base)))
        })
        .collect();
    let certainty = words::standing(finding);
    let subject = words::subject(finding, base);
    clean(&format!("{subject} ({certainty}): {}", sides.join(", ")))
}

fn by_certainty(report: &Report) -> String {
    let count = |word: &&str| {
        report.findings.iter().filter(|finding| words::standing(finding) == *word).count()
    };
    let words = ["confirmed", "observed", "predicted"];
    let counts = words.iter().map(|word| (count(word), word));
    let said = counts.filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
    said.collect::<Vec<_>>().join(", ")
}

/// What a run without findings was a run of.
fn looked_at(report: &Report) -> String {
    let summary = &report.summary;
    let mut text = match (summary.accesses, summary.synchronisations, summary.locks) {
        (Some(accesses), Some(synchronisations), Some(locks)) => format!(
            "; looked at {}, {} and {}",
            number(accesses, "access", "accesses"),
            number(synchronisations, "synchronisation", "synchronisations"),
            number(locks, "lock", "locks"),
        ),
        // The target was killed before the detector could count.
        _ => String::new(),
    };
    if !summary.without_symbols.is_empty() {
        let names: Vec<&str> = summary.without_symbols.iter().map(|path| file_name(path)).collect();
        text += &format!("; without symbols: {}", names.join(", "));
    }
    text
}

/// An end that the reader should know of.
fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome { failure: Some(_), .. } => "; Raddle failed before the target's end".into(),
        Outcome { timed_out: true, .. } => "; the target was killed by --timeout".into(),
        Outcome { stopped: true, .. } => "; the target was stopped by --duration".into(),
        Outcome { signal: Some(signal), .. } => format!("; signal {signal} killed the target"),
        _ => String::new(),
    }
}

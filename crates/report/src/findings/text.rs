//! A report for people, in the manner of Miri and ThreadSanitizer: both accesses numbered, the one
//! that made the finding first, each with its thread, its locks, its line and its calls; then the
//! memory, where the threads come from, and why the two are held to be unordered.
//!
//! On a terminal the report fits the screen: the most important findings in full, as many as there
//! is room for, the others in a line each. The first is always shown; on a low screen it loses what
//! matters least ([`Detail`]), and the report says so.

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
use super::party::Party;
use super::schema::{Finding, Frame, Outcome, Report};
use crate::names::{file_name, first_few};
use crate::paint::{Paint, Tint};
use finding::Detail;
use line::Line;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use words::{clean, number, place};

/// Findings that are shown in a line each, where there is no room for more.
const SHOWN_LINES: usize = 8;
/// As many should have a line before the first finding is told at length.
const SOME_LINES: usize = 3;

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
    if let Some(rows) = &mut room {
        *rows = rows.saturating_sub(last_lines(report, style));
    }
    let entries = report.entries();
    for (at, entry) in entries.iter().enumerate() {
        let others = entries.len() - at - 1;
        let (lines, detail) = match room {
            // The first is shown whatever the room, in as much detail as leaves a line for the others.
            Some(rows) if at == 0 => in_room(report, style, entry, rows, others),
            _ => (whole(report, style, entry), Detail::Whole),
        };
        if let Some(rows) = &mut room {
            // Behind others there must be room for a line about each of the rest.
            let rest = others.min(SHOWN_LINES + 1);
            if at > 0 && lines.len() + 1 + rest > *rows {
                return write_rest(&entries[at..], style, *rows, out);
            }
            *rows = rows.saturating_sub(lines.len() + 1);
        }
        for line in lines {
            writeln!(out, "{}", line.painted(style.paint))?;
        }
        writeln!(out)?;
        if detail != Detail::Whole {
            return match others {
                0 => writeln!(out, "cut to fit the screen; --verbose shows all"),
                _ => write_rest(&entries[at + 1..], style, room.unwrap_or_default(), out),
            };
        }
    }
    Ok(())
}

fn whole(report: &Report, style: &Style, entry: &Entry<'_>) -> Vec<Line> {
    in_detail(report, style, entry, Detail::Whole)
}

fn in_detail(report: &Report, style: &Style, entry: &Entry<'_>, detail: Detail) -> Vec<Line> {
    match entry {
        Entry::Finding(finding) => finding::lines(report, style, finding, detail),
        Entry::Failure(failure) => failure::lines(style, failure, detail),
    }
}

/// An entry in as much detail as there are rows for. Behind it come a blank, and the others or a line
/// that says what was left out.
fn in_room(
    report: &Report,
    style: &Style,
    entry: &Entry<'_>,
    rows: usize,
    others: usize,
) -> (Vec<Line>, Detail) {
    let mut last = (Vec::new(), Detail::Whole);
    for detail in Detail::LADDER {
        // Who created the threads matters less than what else was found.
        let listed = others.min(if detail <= Detail::NoOrigins { SOME_LINES } else { 1 });
        let behind = match (listed, detail) {
            (0, Detail::Whole) => 1,
            (0, _) => 2,
            (listed, _) => 1 + listed + 1,
        };
        last = (in_detail(report, style, entry, detail), detail);
        if last.0.len() + behind <= rows {
            break;
        }
    }
    last
}

/// What there is no room for, in a line each while there are rows, the others counted.
fn write_rest(
    rest: &[Entry<'_>],
    style: &Style,
    rows: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    // The blank behind them, and the line that counts.
    let fitting = rows.saturating_sub(1);
    let shown = match rest.len() <= fitting.min(SHOWN_LINES) {
        true => rest.len(),
        false => fitting.saturating_sub(1).min(SHOWN_LINES),
    };
    for entry in &rest[..shown] {
        writeln!(out, "{}", row(entry, style).painted(style.paint))?;
    }
    let left = (rest.len() - shown) as u64;
    if left > 0 {
        let more = number(left, "more finding", "more findings");
        writeln!(out, "and {more}; --verbose shows all")?;
    }
    writeln!(out)
}

/// An entry in one row; where its paths leave no room for both places, without directories and functions.
fn row(entry: &Entry<'_>, style: &Style) -> Line {
    let line = |said: &str| Line::source(0).tinted(Tint::Heading, entry.id()).text("  ").text(said);
    let columns = style.width.unwrap_or(usize::MAX);
    let whole = match entry {
        Entry::Finding(finding) => line(&news(finding, &style.base)),
        Entry::Failure(failure) => line(&failure::headline(failure)),
    };
    let line = match entry {
        Entry::Finding(finding) if whole.width() > columns => line(&short_news(finding)),
        _ => whole,
    };
    line.fitted(columns).swap_remove(0)
}

/// Rows below the findings: the summary, what to type next, and the prompt.
fn last_lines(report: &Report, style: &Style) -> usize {
    // Where the report lies is not known here; this is as long as it usually is.
    let summary = format!("raddle: {}", summary(report, Some(".raddle/100/report.json")));
    let warnings = report.summary.warnings.len();
    let unused = usize::from(!report.summary.unused_suppressions.is_empty());
    let rows = summary.chars().count().div_ceil(style.width.unwrap_or(usize::MAX).max(1));
    rows + 2 + warnings + unused
}

/// What to type next: the strongest step that this build of the command has (`known` tells) for the
/// most important finding or failing execution. Nothing when nothing was found.
pub fn next(report: &Report, run: Option<&str>, known: impl Fn(&str) -> bool) -> Option<String> {
    let first = *report.entries().first()?;
    let id = match run {
        Some(run) => format!("{run}/{}", first.id()),
        None => first.id().to_owned(),
    };
    let (confirmed, tried) = match first {
        Entry::Finding(finding) => (finding.is_confirmed(), finding.confirmation.is_some()),
        Entry::Failure(_) => (true, true),
    };
    let step = match () {
        () if confirmed && known("replay") => format!("raddle replay {id}"),
        () if !tried && known("confirm") => format!("raddle confirm {id}"),
        () => format!("raddle explain {id}"),
    };
    Some(clean(&format!("next: {step}")))
}

/// What was found, or what was looked at in vain, in a line; `file` is where the report lies.
pub fn summary(report: &Report, file: Option<&str>) -> String {
    let summary = &report.summary;
    let failed = report.failures.len() as u64;
    let mut found = Vec::new();
    if failed > 0 {
        found.push(number(failed, "failing execution", "failing executions"));
    }
    match summary.findings {
        0 if summary.known > 0 => found.push("no new data races".to_owned()),
        0 => found.push("no data races".to_owned()),
        _ => found.extend(words::kinds(report)),
    }
    let mut text = words::list(&found);
    if summary.findings > 0 {
        text += &format!(" ({})", by_certainty(report));
    }
    text += &format!(" in {}", number(summary.threads, "thread", "threads"));
    if summary.processes > 1 {
        text += &format!(" of {} processes", summary.processes);
    }
    if summary.findings == 0 && failed == 0 {
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
    let said = |frame: &Frame| place(frame, base);
    pair(finding, &words::subject(finding, base), said)
}

/// The same, as short as it can be told: no directories, no functions.
fn short_news(finding: &Finding) -> String {
    pair(finding, &words::short_subject(finding), words::short_place)
}

/// Where a finding is, as short as it can be told: `bank.c:12 and bank.c:20`.
pub fn places(finding: &Finding) -> String {
    let places: Vec<String> =
        finding.parties().filter_map(|party| party.frame().map(words::short_place)).collect();
    clean(&places.join(" and "))
}

fn pair(finding: &Finding, subject: &str, place: impl Fn(&Frame) -> String) -> String {
    let side = |party: Party<'_>| {
        Some(format!("{} at {}", words::short_deed(party), place(party.frame()?)))
    };
    let sides: Vec<String> = finding.parties().rev().filter_map(side).collect();
    clean(&format!("{subject} ({}): {}", words::standing(finding), sides.join(", ")))
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
        text += &format!("; without symbols: {}", first_few(&names));
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

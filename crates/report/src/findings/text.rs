//! A report for people, in the manner of Miri and ThreadSanitizer: both accesses numbered, the one
//! that made the finding first, each with its thread, its locks, its line and its calls; then the
//! memory, where the threads come from, and why the two are held to be unordered.

#[cfg(test)]
mod golden;
mod snippet;
mod words;

use super::runtime::is_runtime;
use super::schema::{Access, Finding, Frame, Outcome, Report};
use crate::names::file_name;
use crate::paint::{Paint, Tint};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use words::{clean, number, place};

/// Calls shown of one stack, unless everything is asked for: what fits a screen with both accesses.
const SHOWN_CALLS: usize = 10;

/// How a report is written.
#[derive(Debug, Clone)]
pub struct Style {
    /// With colour?
    pub paint: Paint,
    /// Paths below are shown relative to it.
    pub base: PathBuf,
    /// Whole stacks, also where they are the runtime libraries' business.
    pub everything: bool,
}

/// Writes the findings.
pub fn write(report: &Report, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for finding in &report.findings {
        Writer { report, style, out }.finding(finding)?;
        writeln!(out)?;
    }
    Ok(())
}

/// What was found, or what was looked at in vain, in a line; `file` is where the report lies.
pub fn summary(report: &Report, file: Option<&str>) -> String {
    let summary = &report.summary;
    let races = |n| number(n, "data race", "data races");
    let mut text = match summary.findings {
        0 => "no data races".to_owned(),
        n => format!("{} ({})", races(n), by_certainty(summary.observed, summary.predicted)),
    };
    text += &format!(" in {}", number(summary.threads, "thread", "threads"));
    if summary.processes > 1 {
        text += &format!(" of {} processes", summary.processes);
    }
    if summary.findings == 0 {
        text += &looked_at(report);
    }
    if summary.hidden > 0 {
        text += &format!("; {} left out by --only-in or --ignore", summary.hidden);
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
        .accesses
        .iter()
        .rev()
        .filter_map(|access| {
            Some(format!("{} at {}", words::kind(access), place(access.frame()?, base)))
        })
        .collect();
    let certainty = words::certainty(finding.certainty);
    let subject = words::subject(finding, base);
    clean(&format!("{subject} ({certainty}): {}", sides.join(", ")))
}

fn by_certainty(observed: u64, predicted: u64) -> String {
    match (observed, predicted) {
        (observed, 0) => format!("{observed} observed"),
        (0, predicted) => format!("{predicted} predicted"),
        (observed, predicted) => format!("{observed} observed, {predicted} predicted"),
    }
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

/// Writes one finding.
struct Writer<'a> {
    report: &'a Report,
    style: &'a Style,
    out: &'a mut dyn Write,
}

impl Writer<'_> {
    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let Writer { style, .. } = self;
        let subject = clean(&words::subject(finding, &style.base));
        let id = style.paint.text(Tint::Heading, &finding.id);
        let subject = style.paint.text(Tint::Finding, subject);
        let certainty = words::certainty(finding.certainty);
        let seen = words::times(finding.count);
        writeln!(self.out, "{id}  {subject} ({certainty}, seen {seen})\n")?;

        for (at, access) in finding.accesses.iter().enumerate().rev() {
            self.access(at, access)?;
            writeln!(self.out)?;
        }
        self.memory(finding)?;
        self.threads(finding)?;
        let mut label = "why: ";
        for reason in words::reasons(finding) {
            self.line(2, Tint::Heading, label, &reason)?;
            label = "     ";
        }
        Ok(())
    }

    fn access(&mut self, at: usize, access: &Access) -> io::Result<()> {
        let Writer { report, style, .. } = self;
        let earlier = if at == 0 { "earlier " } else { "" };
        let what = format!("{earlier}{}", words::access(access));
        let what = style.paint.text(Tint::Write, clean(&what));
        let thread = words::thread(report, access.thread, access.process);
        let thread = style.paint.text(Tint::Thread, clean(&thread));
        let locks = clean(&words::locks(&access.locks, &style.base));
        writeln!(self.out, "  ({}) {what} by {thread}, holding {locks}", at + 1)?;
        self.stack(&access.stack)?;
        for taken in words::taken_at(&access.locks, &self.style.base) {
            self.line(6, Tint::Place, &taken, "")?;
        }
        Ok(())
    }

    fn memory(&mut self, finding: &Finding) -> io::Result<()> {
        let calls = finding.location.allocated_at.as_deref().unwrap_or_default();
        let mut shown = self.shown(calls);
        if !self.style.everything && shown.len() > 1 && is_runtime(&calls[shown[0]]) {
            // That `operator new` called `malloc` is no news.
            shown.remove(0);
        }
        let at = shown.first().map(|at| place(&calls[*at], &self.style.base));
        let memory = words::memory(finding, self.report, at, &self.style.base);
        self.line(2, Tint::Heading, "where: ", &memory)?;
        self.callers(calls, &shown)
    }

    fn threads(&mut self, finding: &Finding) -> io::Result<()> {
        let mut said = Vec::new();
        for access in finding.accesses.iter().rev() {
            let key = (access.process, access.thread);
            let thread = self.report.thread(access.thread, access.process);
            if let Some(thread) = thread.filter(|_| !said.contains(&key))
                && let Some(creator) = thread.creator
            {
                said.push(key);
                let name = words::thread(self.report, access.thread, access.process);
                let creator = words::thread(self.report, creator, access.process);
                let at = words::called_at(&thread.created_at, &self.style.base);
                let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
                self.line(2, Tint::Thread, &name, &format!(" was created by {creator}{at}"))?;
            }
        }
        Ok(())
    }

    /// A stack, with the source where it is known.
    fn stack(&mut self, stack: &[Frame]) -> io::Result<()> {
        let Some(innermost) = stack.first() else { return Ok(()) };
        let first = place(innermost, &self.style.base);
        writeln!(self.out, "      {}", clean(&first))?;
        self.source(innermost)?;
        self.callers(stack, &self.shown(stack))
    }

    /// Which frames of a stack are shown: the innermost and the program's own, unless everything is
    /// asked for. How a library goes about what it was called for, and who calls `main`, is the
    /// runtime's business.
    fn shown(&self, stack: &[Frame]) -> Vec<usize> {
        let all = self.style.everything || stack.iter().all(is_runtime);
        (0..stack.len()).filter(|at| all || *at == 0 || !is_runtime(&stack[*at])).collect()
    }

    /// The callers among the frames to be shown.
    fn callers(&mut self, stack: &[Frame], shown: &[usize]) -> io::Result<()> {
        let limit = if self.style.everything { usize::MAX } else { SHOWN_CALLS };
        for pair in shown.windows(2).take(limit) {
            let (callee, caller) = (pair[0], pair[1]);
            let inlined = stack[callee..caller].iter().all(|frame| frame.inlined);
            let relation = if inlined { "inlined into" } else { "called from" };
            let line = format!("{relation} {}", place(&stack[caller], &self.style.base));
            self.line(6, Tint::Place, &line, "")?;
            self.source(&stack[caller])?;
        }
        let left = shown.len().saturating_sub(1).saturating_sub(limit);
        if left > 0 {
            let more = number(left as u64, "more call", "more calls");
            self.line(6, Tint::Place, &format!("and {more}; --verbose shows them"), "")?;
        }
        Ok(())
    }

    fn source(&mut self, frame: &Frame) -> io::Result<()> {
        let Some(lines) = snippet::snippet(frame) else { return Ok(()) };
        let number = self.style.paint.text(Tint::Place, &lines.number);
        writeln!(self.out, "      {number} {}", clean(&lines.text))?;
        if let Some(underline) = lines.underline {
            let margin = self.style.paint.text(Tint::Place, &lines.margin);
            let underline = self.style.paint.text(Tint::Finding, underline);
            writeln!(self.out, "      {margin} {}{underline}", lines.indent)?;
        }
        Ok(())
    }

    fn line(&mut self, indent: usize, tint: Tint, tinted: &str, rest: &str) -> io::Result<()> {
        let tinted = self.style.paint.text(tint, clean(tinted));
        writeln!(self.out, "{:indent$}{tinted}{}", "", clean(rest))
    }
}

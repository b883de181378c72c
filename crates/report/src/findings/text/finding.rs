//! One finding as lines: both accesses, the memory, where the threads come from, and why the two
//! are held to be unordered.

use super::line::{Line, beside};
use super::words::{self, number, place};
use super::{Style, snippet};
use crate::findings::party::{Deed, Party};
use crate::findings::runtime::is_runtime;
use crate::findings::schema::{Finding, Frame, Report};
use crate::paint::Tint;

/// Calls shown of one stack, unless everything is asked for: what fits a screen with both accesses.
const SHOWN_CALLS: usize = 10;
/// Narrower columns would wrap most lines of source, and one access below the other reads better.
const NARROWEST_COLUMN: usize = 52;

/// The lines of a finding.
pub(super) fn lines(report: &Report, style: &Style, finding: &Finding) -> Vec<Line> {
    let mut lister = Lister { report, style, lines: Vec::new() };
    lister.finding(finding);
    let fit = |line: Line| match style.width {
        Some(columns) => line.fitted(columns),
        None => vec![line],
    };
    lister.lines.into_iter().flat_map(fit).collect()
}

struct Lister<'a> {
    report: &'a Report,
    style: &'a Style,
    lines: Vec<Line>,
}

impl Lister<'_> {
    fn finding(&mut self, finding: &Finding) {
        let Style { base, .. } = self.style;
        let head = Line::new(0)
            .hanging(4)
            .tinted(Tint::Heading, &finding.id)
            .text("  ")
            .tinted(Tint::Finding, &words::subject(finding, base))
            .text(&format!(" ({})", words::verdict(finding)));
        self.lines.push(head);
        self.lines.push(Line::default());

        let parties: Vec<Party<'_>> = finding.parties().collect();
        match (self.columns(), parties.as_slice()) {
            (Some(columns), [first, second]) => {
                let left = self.block(|lister| lister.party(0, *first));
                let right = self.block(|lister| lister.party(1, *second));
                self.lines.extend(beside(&left, &right, columns));
                self.lines.push(Line::default());
            }
            (_, parties) => {
                // Of accesses the one that made the finding comes first; a circle has no last.
                let last_first = finding.waits.is_empty();
                let mut order: Vec<usize> = (0..parties.len()).collect();
                if last_first {
                    order.reverse();
                }
                for at in order {
                    self.party(at, parties[at]);
                    self.lines.push(Line::default());
                }
            }
        }
        if finding.waits.is_empty() {
            self.memory(finding);
        }
        self.threads(finding);
        let mut label = "why: ";
        for reason in words::reasons(finding) {
            self.lines.push(Line::new(2).hanging(7).tinted(Tint::Heading, label).text(&reason));
            label = "     ";
        }
        for (label, effect) in words::later(finding) {
            self.lines.push(Line::new(2).hanging(9).tinted(Tint::Heading, label).text(&effect));
        }
    }

    /// Columns of each of two blocks side by side, where the width allows it.
    fn columns(&self) -> Option<usize> {
        let columns = self.style.width?.checked_sub(3)? / 2;
        (columns >= NARROWEST_COLUMN).then_some(columns)
    }

    /// What is listed meanwhile, by itself.
    fn block(&mut self, list: impl FnOnce(&mut Self)) -> Vec<Line> {
        let before = std::mem::take(&mut self.lines);
        list(self);
        std::mem::replace(&mut self.lines, before)
    }

    fn party(&mut self, at: usize, party: Party<'_>) {
        let Lister { report, style, .. } = self;
        let is_earlier = at == 0 && matches!(party.deed, Deed::Access(_));
        let earlier = if is_earlier { "earlier " } else { "" };
        let thread = words::thread(report, party.thread, party.process);
        let head = Line::new(2)
            .hanging(6)
            .text(&format!("({}) ", at + 1))
            .tinted(Tint::Write, &format!("{earlier}{}", words::deed(party)))
            .text(" by ")
            .tinted(Tint::Thread, &thread)
            .text(&words::holding(party, &style.base));
        self.lines.push(head);
        self.stack(party.stack);
        for taken in words::taken_at(party.locks, &self.style.base) {
            self.lines.push(Line::new(6).tinted(Tint::Place, &taken));
        }
    }

    fn memory(&mut self, finding: &Finding) {
        let calls = finding.location.allocated_at.as_deref().unwrap_or_default();
        let mut shown = self.shown(calls);
        if !self.style.everything && shown.len() > 1 && is_runtime(&calls[shown[0]]) {
            // That `operator new` called `malloc` is no news.
            shown.remove(0);
        }
        let at = shown.first().map(|at| place(&calls[*at], &self.style.base));
        let memory = words::memory(finding, self.report, at, &self.style.base);
        self.lines.push(Line::new(2).hanging(9).tinted(Tint::Heading, "where: ").text(&memory));
        self.callers(calls, &shown);
    }

    fn threads(&mut self, finding: &Finding) {
        let mut said = Vec::new();
        for party in finding.parties().rev() {
            let key = (party.process, party.thread);
            let thread = self.report.thread(party.thread, party.process);
            if let Some(thread) = thread.filter(|_| !said.contains(&key))
                && let Some(creator) = thread.creator
            {
                said.push(key);
                let name = words::thread(self.report, party.thread, party.process);
                let creator = words::thread(self.report, creator, party.process);
                let at = words::called_at(&thread.created_at, &self.style.base);
                let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
                let created = format!(" was created by {creator}{at}");
                self.lines.push(Line::new(2).tinted(Tint::Thread, &name).text(&created));
            }
        }
    }

    /// A stack, with the source where it is known.
    fn stack(&mut self, stack: &[Frame]) {
        let Some(innermost) = stack.first() else { return };
        self.lines.push(Line::new(6).text(&place(innermost, &self.style.base)));
        self.source(innermost);
        self.callers(stack, &self.shown(stack));
    }

    /// Which frames of a stack are shown: the innermost and the program's own, unless everything is
    /// asked for. How a library goes about what it was called for, and who calls `main`, is the
    /// runtime's business.
    fn shown(&self, stack: &[Frame]) -> Vec<usize> {
        let all = self.style.everything || stack.iter().all(is_runtime);
        (0..stack.len()).filter(|at| all || *at == 0 || !is_runtime(&stack[*at])).collect()
    }

    /// The callers among the frames to be shown.
    fn callers(&mut self, stack: &[Frame], shown: &[usize]) {
        let limit = if self.style.everything { usize::MAX } else { SHOWN_CALLS };
        for pair in shown.windows(2).take(limit) {
            let (callee, caller) = (pair[0], pair[1]);
            let inlined = stack[callee..caller].iter().all(|frame| frame.inlined);
            let relation = if inlined { "inlined into" } else { "called from" };
            let line = format!("{relation} {}", place(&stack[caller], &self.style.base));
            self.lines.push(Line::new(6).tinted(Tint::Place, &line));
            self.source(&stack[caller]);
        }
        let left = shown.len().saturating_sub(1).saturating_sub(limit);
        if left > 0 {
            let more = number(left as u64, "more call", "more calls");
            let more = format!("and {more}; --verbose shows them");
            self.lines.push(Line::new(6).tinted(Tint::Place, &more));
        }
    }

    fn source(&mut self, frame: &Frame) {
        let Some(source) = snippet::snippet(frame) else { return };
        let line = Line::source(6).tinted(Tint::Place, &source.number).text(" ");
        self.lines.push(line.text(&source.text));
        if let Some(underline) = source.underline {
            let margin = Line::source(6).tinted(Tint::Place, &source.margin).text(" ");
            self.lines.push(margin.text(&source.indent).tinted(Tint::Finding, &underline));
        }
    }
}

//! One finding as lines: both accesses, the memory, where the threads come from, and why the two
//! are held to be unordered.

use super::line::{Line, beside};
use super::words::{self, number, place};
use super::{Style, snippet};
use crate::findings::party::{Deed, Party};
use crate::findings::runtime::{is_recursion, is_runtime};
use crate::findings::schema::{Finding, Frame, Report};
use crate::paint::Tint;

/// Calls shown of one stack, unless everything is asked for: what fits a tall screen with both accesses.
const SHOWN_CALLS: usize = 10;
/// The same on a screen that is too low for more.
const FEW_CALLS: usize = 3;
/// What later stages learnt, in lines, on such a screen.
const FEW_EFFECTS: usize = 2;
/// Narrower columns would wrap most lines of source, and one access below the other reads better.
const NARROWEST_COLUMN: usize = 52;
/// Blanks before a line of source.
const SOURCE_INDENT: usize = 6;

/// How much is said of a finding. What a low screen has no room for goes in this order, so that both
/// accesses with their lines, and why they race, go last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// All that the style asks for.
    Whole,
    /// Not who created the threads.
    NoOrigins,
    /// Nor where locks were taken.
    NoAcquisitions,
    /// A few calls of each stack.
    FewCalls,
    /// Of each stack the access and the program's own line; one reason; places are cut, not wrapped.
    OneReason,
    /// What the memory is, only the headline says; only the headline wraps.
    Least,
}

impl Detail {
    /// From all to the least.
    pub const LADDER: [Detail; 6] = [
        Detail::Whole,
        Detail::NoOrigins,
        Detail::NoAcquisitions,
        Detail::FewCalls,
        Detail::OneReason,
        Detail::Least,
    ];

    /// Calls that are shown of a stack.
    pub fn calls(self) -> usize {
        match self {
            Detail::Whole | Detail::NoOrigins | Detail::NoAcquisitions => SHOWN_CALLS,
            Detail::FewCalls => FEW_CALLS,
            Detail::OneReason | Detail::Least => 0,
        }
    }
}

/// The lines of a finding.
pub(super) fn lines(
    report: &Report,
    style: &Style,
    finding: &Finding,
    detail: Detail,
) -> Vec<Line> {
    let mut lister = Lister { report, style, detail, room: style.width, lines: Vec::new() };
    lister.finding(finding);
    let fit = |(at, line): (usize, Line)| match style.width {
        Some(columns) if at > 0 && detail == Detail::Least => line.in_a_row().fitted(columns),
        Some(columns) => line.fitted(columns),
        None => vec![line],
    };
    lister.lines.into_iter().enumerate().flat_map(fit).collect()
}

struct Lister<'a> {
    report: &'a Report,
    style: &'a Style,
    detail: Detail,
    /// Columns for what is listed now.
    room: Option<usize>,
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
                let left = self.block(columns, |lister| lister.party(0, *first));
                let right = self.block(columns, |lister| lister.party(1, *second));
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
        if finding.waits.is_empty() && self.detail < Detail::Least {
            self.memory(finding);
        }
        if self.detail < Detail::NoOrigins {
            self.threads(finding);
        }
        let mut label = "why: ";
        let shown = if self.detail < Detail::OneReason { usize::MAX } else { 1 };
        for reason in words::reasons(finding).into_iter().take(shown) {
            let line = Line::new(2).hanging(7).tinted(Tint::Heading, label).text(&reason);
            self.push(line);
            label = "     ";
        }
        let shown = if self.detail < Detail::OneReason { usize::MAX } else { FEW_EFFECTS };
        for (label, effect) in words::later(finding).into_iter().take(shown) {
            self.lines.push(Line::new(2).hanging(9).tinted(Tint::Heading, label).text(&effect));
        }
    }

    /// A line that may be cut where there is little room.
    fn push(&mut self, line: Line) {
        let roomy = self.detail < Detail::OneReason;
        self.lines.push(if roomy { line } else { line.in_a_row() });
    }

    /// Columns of each of two blocks side by side, where the width allows it.
    fn columns(&self) -> Option<usize> {
        let columns = self.style.width?.checked_sub(3)? / 2;
        (columns >= NARROWEST_COLUMN).then_some(columns)
    }

    /// What is listed meanwhile, by itself and for a column of this width.
    fn block(&mut self, columns: usize, list: impl FnOnce(&mut Self)) -> Vec<Line> {
        let before = std::mem::take(&mut self.lines);
        let room = self.room.replace(columns);
        list(self);
        self.room = room;
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
            .text(&match self.detail < Detail::NoAcquisitions {
                true => words::holding(party, &style.base),
                false => words::holding_only(party),
            });
        self.lines.push(head);
        self.stack(party.stack);
        if self.detail >= Detail::NoAcquisitions {
            return;
        }
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
        let known = shown.first().map(|at| &calls[*at]).filter(|at| words::says_something(at));
        let at = known.map(|at| place(at, &self.style.base));
        let memory = words::memory(finding, self.report, at, &self.style.base);
        let line = Line::new(2).hanging(9).tinted(Tint::Heading, "where: ").text(&memory);
        self.push(line);
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
        self.push(Line::new(6).text(&place(innermost, &self.style.base)));
        if self.detail < Detail::OneReason || !is_runtime(innermost) {
            self.source(innermost);
        }
        self.callers(stack, &self.shown(stack));
    }

    /// Which frames of a stack are shown: the innermost and the program's own, unless everything is
    /// asked for. How a library goes about what it was called for, and who calls `main`, is the
    /// runtime's business.
    fn shown(&self, stack: &[Frame]) -> Vec<usize> {
        let all = self.style.everything || stack.iter().all(is_runtime);
        let is_shown = |frame: &Frame| !is_runtime(frame) || is_recursion(frame);
        (0..stack.len()).filter(|at| all || *at == 0 || is_shown(&stack[*at])).collect()
    }

    /// The callers among the frames to be shown.
    fn callers(&mut self, stack: &[Frame], shown: &[usize]) {
        // Whatever the room: the access is of interest for the program's own line that makes it.
        let own = shown.iter().position(|at| !is_runtime(&stack[*at])).unwrap_or(0);
        let limit = match self.style.everything {
            true => usize::MAX,
            false => self.detail.calls().max(own),
        };
        for pair in shown.windows(2).take(limit) {
            let (callee, caller) = (pair[0], pair[1]);
            let inlined = stack[callee..caller].iter().all(|frame| frame.inlined);
            let relation = if inlined { "inlined into" } else { "called from" };
            let line = match is_recursion(&stack[caller]) {
                true => "and so on: calls of a recursion are left out".to_owned(),
                false => format!("{relation} {}", place(&stack[caller], &self.style.base)),
            };
            self.push(Line::new(6).tinted(Tint::Place, &line));
            self.source(&stack[caller]);
        }
        let left = shown.len().saturating_sub(1).saturating_sub(limit);
        if left > 0 && self.detail < Detail::OneReason {
            let more = number(left as u64, "more call", "more calls");
            let more = format!("and {more}; --verbose shows them");
            self.lines.push(Line::new(6).tinted(Tint::Place, &more));
        }
    }

    fn source(&mut self, frame: &Frame) {
        let room = self.room.map(|columns| columns.saturating_sub(SOURCE_INDENT));
        let Some(source) = snippet::snippet(frame, room) else { return };
        let line = Line::source(SOURCE_INDENT).tinted(Tint::Place, &source.number).text(" ");
        self.lines.push(line.text(&source.text));
        if let Some(underline) = source.underline {
            let margin = Line::source(SOURCE_INDENT).tinted(Tint::Place, &source.margin).text(" ");
            self.lines.push(margin.text(&source.indent).tinted(Tint::Finding, &underline));
        }
    }
}

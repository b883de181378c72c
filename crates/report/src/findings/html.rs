//! A report as one self-contained page: no network, no files beside it, readable without scripts.
//! Scripts only filter and move about. Everything that comes from the target is escaped, and a
//! content security policy forbids what could get past that.

mod escape;
#[cfg(test)]
mod golden;
mod source;
mod timeline;

pub use source::Sources;

use super::entry::Entry;
use super::interleaving::Timeline;
use super::party::{Deed, Party};
use super::runtime::is_runtime;
use super::schema::{Failure, Finding, Frame, Report};
use super::text::{self, failure, words};
use crate::explain::{self, kind_name};
use escape::{escape, prose};
use std::fmt::Write;
use std::path::Path;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// The page. `sources` gives the lines around an access; what it does not have is shown as the
/// report has it.
pub fn page(report: &Report, sources: &mut dyn Sources) -> String {
    let mut page =
        Page { report, base: Path::new(&report.target.cwd), sources, out: String::new() };
    page.write();
    page.out
}

struct Page<'a> {
    report: &'a Report,
    base: &'a Path,
    sources: &'a mut dyn Sources,
    out: String,
}

/// Writes to the page, which cannot fail.
macro_rules! put {
    ($page:expr, $($text:tt)*) => {{ let _ = writeln!($page.out, $($text)*); }};
}

impl Page<'_> {
    fn write(&mut self) {
        let program = self.report.target.argv.join(" ");
        let title = escape(&format!("Raddle: {program}"));
        put!(self, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">");
        put!(self, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
        put!(
            self,
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
        );
        put!(self, "<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>");
        self.header(&program);
        self.filters();
        put!(self, "<main>");
        let report = self.report;
        let entries = report.entries();
        for entry in &entries {
            match entry {
                Entry::Finding(finding) => self.finding(finding),
                Entry::Failure(failed) => self.failure(failed),
            }
        }
        if entries.is_empty() {
            put!(self, "<p class=\"nothing\">Nothing was found.</p>");
        }
        put!(
            self,
            "<p class=\"nothing\" id=\"nothing-left\" hidden>No finding fits the filters.</p>"
        );
        put!(self, "</main>");
        self.footer();
        put!(self, "<script>\n{SCRIPT}</script>\n</body>\n</html>");
    }

    fn header(&mut self, program: &str) {
        let summary = escape(&text::summary(self.report, None));
        put!(self, "<header>\n<h1><span class=\"mark\">raddle</span> {}</h1>", escape(program));
        put!(self, "<p class=\"summary\">{summary}</p>");
        let entries = self.report.entries();
        if !entries.is_empty() {
            put!(self, "<ol class=\"contents\">");
            for entry in entries {
                let subject = match entry {
                    Entry::Finding(finding) => words::subject(finding, self.base),
                    Entry::Failure(failed) => failure::headline(failed),
                };
                put!(
                    self,
                    "<li data-for=\"{0}\"><a href=\"#{0}\"><b>{0}</b> {1}</a> {2}</li>",
                    escape(entry.id()),
                    escape(&subject),
                    badge(standing(entry))
                );
            }
            put!(self, "</ol>");
        }
        put!(self, "</header>");
    }

    fn filters(&mut self) {
        let mut standings: Vec<&str> = Vec::new();
        let mut kinds: Vec<String> = Vec::new();
        for entry in self.report.entries() {
            let standing = standing(entry);
            let kind = match entry {
                Entry::Finding(finding) => kind_name(finding.kind),
                Entry::Failure(failed) => failed.kind().to_owned(),
            };
            if !standings.contains(&standing) {
                standings.push(standing);
            }
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        put!(self, "<form class=\"filters\" role=\"search\">");
        put!(
            self,
            "<input type=\"search\" id=\"search\" placeholder=\"function, file, variable, thread ( / )\" \
             aria-label=\"search\">"
        );
        for (name, values) in [
            ("standing", standings.iter().map(|s| s.to_string()).collect::<Vec<_>>()),
            ("kind", kinds),
        ] {
            for value in values {
                let value = escape(&value);
                put!(
                    self,
                    "<label><input type=\"checkbox\" name=\"{name}\" value=\"{value}\" checked> \
                     {value}</label>"
                );
            }
        }
        put!(self, "<output id=\"count\" aria-live=\"polite\"></output>");
        put!(self, "<span class=\"keys\"><kbd>j</kbd> <kbd>k</kbd> next, previous</span></form>");
    }

    fn finding(&mut self, finding: &Finding) {
        let subject = words::subject(finding, self.base);
        let id = escape(&finding.id);
        put!(
            self,
            "<article id=\"{id}\" tabindex=\"-1\" data-standing=\"{}\" data-kind=\"{}\" \
             data-text=\"{}\">",
            words::standing(finding),
            escape(&kind_name(finding.kind)),
            escape(&self.searchable(finding, &subject)),
        );
        put!(
            self,
            "<h2><a href=\"#{id}\">{id}</a> {} {}</h2>",
            escape(&subject),
            badge(words::standing(finding))
        );
        let mut facts = vec![format!("seen {}", words::times(finding.count))];
        let harm = finding.classification.as_ref().map(|known| known.verdict.words().to_owned());
        facts.extend(harm);
        facts.push(format!("fingerprint {}", finding.fingerprint));
        put!(self, "<p class=\"facts\">{}</p>", escape(&facts.join(" · ")));

        put!(self, "<div class=\"sides\">");
        for (at, party) in finding.parties().enumerate() {
            self.party(at, party);
        }
        put!(self, "</div>");
        for timeline in Timeline::of(finding, self.report) {
            timeline::write(&mut self.out, &timeline, self.base);
        }
        self.why(finding);
        self.later(finding);
        put!(self, "</article>");
    }

    /// An execution that failed: what happened, who waited for whom, and what repeats it.
    fn failure(&mut self, failed: &Failure) {
        let (id, headline) = (escape(&failed.id), failure::headline(failed));
        let mut text = headline.clone();
        for line in failure::waits(failed) {
            text += " ";
            text += line.trim();
        }
        for frame in failed.stacks.iter().flatten() {
            text += " ";
            text += &words::place(frame, self.base);
        }
        put!(
            self,
            "<article id=\"{id}\" tabindex=\"-1\" data-standing=\"{FAILED}\" data-kind=\"{}\" \
             data-text=\"{}\">",
            failed.kind(),
            escape(&text.to_lowercase()),
        );
        put!(self, "<h2><a href=\"#{id}\">{id}</a> {} {}</h2>", escape(&headline), badge(FAILED));
        let waits: Vec<&str> = failure::waits(failed).collect();
        if !waits.is_empty() {
            put!(self, "<pre class=\"waits\">{}</pre>", escape(&waits.join("\n")));
        }
        for stack in &failed.stacks {
            if let Some(frame) = words::called_from(stack) {
                self.source(frame);
            }
            self.stack("calls", stack);
        }
        if let Some(topic) = explain::topic(failed.kind()) {
            put!(self, "<dl><dt>what</dt><dd>{}.</dd>", prose(topic.short));
            put!(self, "<dt>fix</dt><dd class=\"fix\">{}</dd></dl>", prose(topic.fix));
        }
        let command = escape(&failure::command(failed));
        put!(self, "<p class=\"command\"><code>{command}</code></p>\n</article>");
    }

    fn party(&mut self, at: usize, party: Party<'_>) {
        let thread = words::thread(self.report, party.thread, party.process);
        let is_access = matches!(party.deed, Deed::Access(_));
        let earlier = if at == 0 && is_access { "earlier " } else { "" };
        put!(self, "<section class=\"side\">");
        put!(
            self,
            "<h3><span class=\"number\">{}</span> {}<b class=\"{}\">{}</b> by <span \
             class=\"thread\">{}</span></h3>",
            at + 1,
            earlier,
            if matches!(words::short_deed(party).as_str(), "read" | "atomic read") {
                "read"
            } else {
                "write"
            },
            escape(&words::deed(party)),
            escape(&thread),
        );
        let holding = words::holding(party, self.base);
        put!(self, "<p class=\"locks\">{}</p>", escape(holding.trim_start_matches(", ")));
        if let Some(frame) = party.frame() {
            self.source(frame);
        }
        self.stack("calls", party.stack);
        put!(self, "</section>");
    }

    /// The lines around an access.
    fn source(&mut self, frame: &Frame) {
        put!(self, "<p class=\"place\">{}</p>", escape(&words::place(frame, self.base)));
        let lines = source::around(frame, self.report, self.sources);
        if lines.is_empty() {
            return;
        }
        let _ = write!(self.out, "<pre class=\"source\">");
        for line in lines {
            let class = if line.here { " class=\"here\"" } else { "" };
            let _ = write!(self.out, "<span{class}><i>{:>5}</i> ", line.number);
            let (before, marked, after) = line.parts();
            let _ = write!(self.out, "{}", escape(before));
            if !marked.is_empty() {
                let _ = write!(self.out, "<mark>{}</mark>", escape(marked));
            }
            // Each is a block of its own: a line end between them would show as an empty line.
            let _ = write!(self.out, "{}</span>", escape(after));
        }
        put!(self, "</pre>");
    }

    fn stack(&mut self, title: &str, stack: &[Frame]) {
        if stack.len() < 2 {
            return;
        }
        put!(self, "<details open><summary>{title}</summary><ol class=\"stack\" start=\"0\">");
        for frame in stack {
            let class = if is_runtime(frame) { "runtime" } else { "own" };
            let inlined = if frame.inlined { " <em>inlined</em>" } else { "" };
            let place = escape(&words::place(frame, self.base));
            put!(self, "<li class=\"{class}\">{place}{inlined}</li>");
        }
        put!(self, "</ol></details>");
    }

    fn why(&mut self, finding: &Finding) {
        let calls = finding.location.allocated_at.as_deref().unwrap_or_default();
        let at = words::called_at(calls, self.base);
        let memory = words::memory(finding, self.report, at, self.base);
        if finding.waits.is_empty() {
            put!(self, "<dl><dt>where</dt><dd>{}", escape(&memory));
            self.stack("allocated by", calls);
            put!(self, "</dd>");
        } else {
            put!(self, "<dl>");
        }
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
                let at = words::called_at(&thread.created_at, self.base);
                let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
                put!(
                    self,
                    "<dt>{}</dt><dd>created by {}{}</dd>",
                    escape(&name),
                    escape(&creator),
                    escape(&at)
                );
            }
        }
        put!(self, "<dt>why</dt>");
        for reason in words::reasons(finding) {
            put!(self, "<dd>{}</dd>", escape(&reason));
        }
        if let Some(topic) = explain::kind(finding.kind) {
            put!(self, "<dt>fix</dt><dd class=\"fix\">{}</dd>", prose(topic.fix));
        }
        put!(self, "</dl>");
    }

    /// What confirming and classifying brought, and how to see it again.
    fn later(&mut self, finding: &Finding) {
        let later = words::later(finding);
        if !later.is_empty() {
            put!(self, "<dl class=\"later\">");
            for (label, said) in later {
                put!(
                    self,
                    "<dt>{}</dt><dd>{}</dd>",
                    escape(label.trim_end_matches([':', ' '])),
                    escape(&said)
                );
            }
            put!(self, "</dl>");
        }
        if finding.is_confirmed() {
            put!(
                self,
                "<p class=\"command\"><code>raddle replay {}</code></p>",
                escape(&finding.id)
            );
        }
    }

    /// What the search looks into.
    fn searchable(&self, finding: &Finding, subject: &str) -> String {
        let mut text = subject.to_owned();
        for party in finding.parties() {
            for frame in party.stack {
                text += " ";
                text += &words::place(frame, self.base);
            }
            text += " ";
            text += &words::thread(self.report, party.thread, party.process);
        }
        text.to_lowercase()
    }

    fn footer(&mut self) {
        let Report { tool, target, summary, .. } = self.report;
        let facts =
            [format!("raddle {} ({})", tool.version, tool.detector), format!("in {}", target.cwd)];
        put!(self, "<footer><p>{}</p>", escape(&facts.join(" · ")));
        for warning in summary.warnings.iter().chain(&summary.unused_suppressions) {
            put!(self, "<p>{}</p>", escape(warning));
        }
        put!(self, "</footer>");
    }
}

/// The standing of what needs no detector's word: it happened.
const FAILED: &str = "failed";

fn standing(entry: Entry<'_>) -> &'static str {
    match entry {
        Entry::Finding(finding) => words::standing(finding),
        Entry::Failure(_) => FAILED,
    }
}

fn badge(standing: &str) -> String {
    format!("<span class=\"badge {standing}\">{standing}</span>")
}

//! JUnit XML: the run as a suite, each finding a failed test case of it; a run without findings is
//! one that passed. The form is that of the published JUnit.xsd, which most CI servers read.

use super::{main_frame, sentence};
use crate::explain;
use crate::findings::schema::{Finding, Report};
use crate::findings::text::{self, Style, words};
use std::fmt::Write;
use std::path::Path;

/// The document. `when` is the time of the run, as `2026-01-31T12:00:00`.
pub fn document(report: &Report, when: &str) -> String {
    let cwd = Path::new(&report.target.cwd);
    let suite = report.target.argv.first().map_or("raddle", String::as_str);
    let mut cases = String::new();
    for finding in &report.findings {
        let class = class(finding, suite);
        let name = format!("{} {}", finding.id, words::subject(finding, cwd));
        let kind = explain::kind_name(finding.kind);
        let _ = writeln!(
            cases,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"0\">\n      <failure \
             message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>",
            escape(&name),
            escape(&class),
            escape(&sentence(finding, report)),
            escape(&kind),
            escape(&whole(report, finding)),
        );
    }
    let failures = report.findings.len();
    if failures == 0 {
        let name = escape(&text::summary(report, None));
        let class = escape(suite);
        let _ = writeln!(cases, "    <testcase name=\"{name}\" classname=\"{class}\" time=\"0\"/>");
    }
    let (errors, trouble) = match &report.outcome.failure {
        Some(why) => (1, why.as_str()),
        None => (0, ""),
    };
    if errors > 0 {
        let _ = writeln!(
            cases,
            "    <testcase name=\"raddle\" classname=\"{}\" time=\"0\">\n      <error \
             message=\"{}\" type=\"raddle\"/>\n    </testcase>",
            escape(suite),
            escape(trouble)
        );
    }
    let tests = failures.max(1) + errors;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" \
         package=\"raddle\" id=\"0\" timestamp=\"{}\" hostname=\"localhost\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"{errors}\" time=\"0\">\n    <properties/>\n{cases}    \
         <system-out/>\n    <system-err>{}</system-err>\n  </testsuite>\n</testsuites>\n",
        escape(suite),
        escape(when),
        escape(&report.summary.warnings.join("\n")),
    )
}

fn class(finding: &Finding, suite: &str) -> String {
    let function = main_frame(finding).and_then(|frame| frame.function.clone());
    function.unwrap_or_else(|| suite.to_owned())
}

/// The finding as the terminal shows it.
fn whole(report: &Report, finding: &Finding) -> String {
    let only = Report { findings: vec![finding.clone()], ..report.clone() };
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = text::write(&only, &Style::plain(&report.target.cwd), &mut out);
    format!("\n{}", String::from_utf8_lossy(&out))
}

/// XML's five, and what XML cannot hold at all.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

//! JUnit XML: the run as a suite, each finding and each failing execution a failed test case of
//! it; a run without either is one that passed. The form is that of the published JUnit.xsd, which most CI servers read.

use super::{failed_frame, main_frame, said, title};
use crate::explain;
use crate::findings::entry::Entry;
use crate::findings::schema::Report;
use crate::findings::text::{self, Style};
use std::fmt::Write;

/// The document. `when` is the time of the run, as `2026-01-31T12:00:00`.
pub fn document(report: &Report, when: &str) -> String {
    let suite = report.target.argv.first().map_or("raddle", String::as_str);
    let mut cases = String::new();
    let entries = report.entries();
    for entry in &entries {
        let class = class(*entry, suite);
        let name = format!("{} {}", entry.id(), title(*entry, report));
        let kind = match entry {
            Entry::Finding(finding) => explain::kind_name(finding.kind),
            Entry::Failure(failed) => failed.kind().to_owned(),
        };
        let _ = writeln!(
            cases,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"0\">\n      <failure \
             message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>",
            escape(&name),
            escape(&class),
            escape(&said(*entry, report)),
            escape(&kind),
            escape(&whole(report, *entry)),
        );
    }
    let failures = entries.len();
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

fn class(entry: Entry<'_>, suite: &str) -> String {
    let frame = match entry {
        Entry::Finding(finding) => main_frame(finding),
        Entry::Failure(failed) => failed_frame(failed),
    };
    let function = frame.and_then(|frame| frame.function.clone());
    function.unwrap_or_else(|| suite.to_owned())
}

/// The entry as the terminal shows it.
fn whole(report: &Report, entry: Entry<'_>) -> String {
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = text::write(&report.only(entry), &Style::plain(&report.target.cwd), &mut out);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;

    #[test]
    fn failing_executions_are_failed_cases() {
        let mut report = typed::failing();
        report.findings.clear();
        report.failures[0].effect = "<a> & \"b\"".into();
        insta::assert_snapshot!(document(&report, "2026-01-31T12:00:00"), @r##"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites>
          <testsuite name="./bank" package="raddle" id="0" timestamp="2026-01-31T12:00:00" hostname="localhost" tests="2" failures="2" errors="0" time="0">
            <properties/>
            <testcase name="H1 &lt;a&gt; &amp; &quot;b&quot;" classname="./bank" time="0">
              <failure message="&lt;a&gt; &amp; &quot;b&quot; in 7 of 49 executions (random, seed 12); `raddle replay H1` repeats it" type="failing-execution">
        H1  &lt;a&gt; &amp; &quot;b&quot; in 7 of 49 executions (random, seed 12)

          again: raddle replay H1

        </failure>
            </testcase>
            <testcase name="H2 deadlock" classname="reader" time="0">
              <failure message="deadlock in 1 of 49 executions (lock-directed, seed 18446744073709551615); these threads wait for each other&apos;s locks; T2 waits for 0x4068, and holds 0x4040; T3 waits for 0x4040, and holds 0x4068; `raddle replay H2` repeats it" type="deadlock">
        H2  deadlock in 1 of 49 executions (lock-directed, seed 18446744073709551615)

          these threads wait for each other&apos;s locks
            T2 waits for 0x4068, and holds 0x4040
            T3 waits for 0x4040, and holds 0x4068
              at bank.c:20 in reader
              called from start_thread (libc.so.6+0x90)
          again: raddle replay H2

        </failure>
            </testcase>
            <system-out/>
            <system-err></system-err>
          </testsuite>
        </testsuites>
        "##);
    }
}

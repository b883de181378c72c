//! Workflow commands of GitHub Actions: a line each, which becomes an annotation at its place in
//! the change under review.

use super::{FilePath, Repository, Weight, column, file, looked_at, said, title, weight};
use crate::findings::entry::Entry;
use crate::findings::schema::Report;
use crate::findings::text::words::clean;
use std::fmt::Write;

/// The lines.
pub fn lines(report: &Report, repository: Repository<'_>) -> String {
    let mut out = String::new();
    for entry in report.entries() {
        let weight = match entry {
            Entry::Finding(finding) => weight(finding),
            Entry::Failure(_) => Weight::Error,
        };
        let command = match weight {
            Weight::Error => "error",
            Weight::Warning => "warning",
            Weight::Note => "notice",
        };
        let mut properties = Vec::new();
        if let Some(frame) = looked_at(entry, report)
            && let Some(known) = frame.file.as_ref().and_then(|_| file(&frame, report, repository))
        {
            let (FilePath::InRepository(path)
            | FilePath::Absolute(path)
            | FilePath::Somewhere(path)) = known;
            properties.push(format!("file={}", property(&path)));
            properties.extend(frame.line.map(|line| format!("line={line}")));
            properties.extend(column(&frame).map(|column| format!("col={column}")));
        }
        let title = format!("{} {}", entry.id(), title(entry, report));
        properties.push(format!("title={}", property(&title)));
        let message = data(&said(entry, report));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "::{command} {}::{message}", properties.join(","));
    }
    out
}

/// Text behind the second `::`. Names are the target's: what a log's reader would obey is shown instead.
fn data(text: &str) -> String {
    clean(text).replace('%', "%25")
}

/// Text of a property, where commas and colons mean something too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;

    #[test]
    fn annotations() {
        let mut report = typed::bank();
        report.threads[2].name = Some("100%\n\x1b[2J::error::evil".into());
        let lines = lines(&report, typed::repository());
        assert_eq!(lines.lines().count(), 3, "{lines}");
        insta::assert_snapshot!(lines, @r#"
        ::error file=bank.c,line=16,col=13,title=R1 data race on counter::data race on counter (observed, seen 12 times): write of 4 bytes by T3 '100%25\n\u{1b}[2J::error::evil', holding no locks, at bank.c:16 in worker; read of 4 bytes by T2, holding m (taken at bank.c:32 in reader), at bank.c:20 in reader
        ::warning file=bank.c,line=48,col=5,title=R2 data race on a heap block of 64 bytes from bank.c%3A56 in main::data race on a heap block of 64 bytes from bank.c:56 in main (predicted, seen once): free of 64 bytes by T1, holding no locks, at bank.c:48 in main; write of 8 bytes by T3 '100%25\n\u{1b}[2J::error::evil', holding m (shared side) and n, at bank.c:64 in fill
        ::error title=R3 data race on libc.so.6+0x4000::data race on libc.so.6+0x4000 (observed, seen once): write of 4 bytes by T3 '100%25\n\u{1b}[2J::error::evil', holding no locks, at libc.so.6+0x30; read of 4 bytes by T2, holding no locks, at libc.so.6+0x30
        "#);
    }

    #[test]
    fn columns_are_characters() {
        let mut report = typed::bank();
        report.findings.truncate(1);
        let frame = &mut report.findings[0].accesses[1].stack[0];
        (frame.text, frame.column) = (Some("größe += 1;".into()), Some(9));
        let lines = lines(&report, typed::repository());
        assert!(lines.starts_with("::error file=bank.c,line=16,col=7,"), "{lines}");
    }

    #[test]
    fn annotations_of_failing_executions() {
        let mut report = typed::failing();
        report.findings.clear();
        report.failures[0].effect = "50%,\n::error::evil".into();
        insta::assert_snapshot!(lines(&report, typed::repository()), @r##"
        ::error title=H1 50%25%2C\n%3A%3Aerror%3A%3Aevil::50%25,\n::error::evil in 7 of 49 executions (random, seed 12); `raddle replay H1` repeats it
        ::error file=bank.c,line=20,col=17,title=H2 deadlock::deadlock in 1 of 49 executions (lock-directed, seed 18446744073709551615); these threads wait for each other's locks; T2 waits for 0x4068, and holds 0x4040; T3 waits for 0x4040, and holds 0x4068; `raddle replay H2` repeats it
        "##);
    }
}

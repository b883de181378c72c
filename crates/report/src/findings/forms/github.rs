//! Workflow commands of GitHub Actions: a line each, which becomes an annotation at its place in
//! the change under review.

use super::{Weight, file, main_frame, sentence, weight};
use crate::findings::schema::Report;
use crate::findings::text::words;
use std::fmt::Write;
use std::path::Path;

/// The lines. `root` is the directory of the repository.
pub fn lines(report: &Report, root: &Path) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let command = match weight(finding) {
            Weight::Error => "error",
            Weight::Warning => "warning",
            Weight::Note => "notice",
        };
        let mut properties = Vec::new();
        if let Some(frame) = main_frame(finding)
            && let Some(known) = frame.file.as_ref().and_then(|_| file(frame, report, root))
        {
            properties.push(format!("file={}", property(&known.path)));
            properties.extend(frame.line.map(|line| format!("line={line}")));
            properties
                .extend(frame.column.filter(|c| *c > 0).map(|column| format!("col={column}")));
        }
        let subject = words::subject(finding, Path::new(&report.target.cwd));
        properties.push(format!("title={}", property(&format!("{} {subject}", finding.id))));
        let message = data(&sentence(finding, report));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "::{command} {}::{message}", properties.join(","));
    }
    out
}

/// Text behind the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
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
        report.threads[2].name = Some("100%\n::error::evil".into());
        let lines = lines(&report, Path::new("/w"));
        assert_eq!(lines.lines().count(), 3, "{lines}");
        insta::assert_snapshot!(lines, @r#"
        ::error file=bank.c,line=16,col=13,title=R1 data race on counter::data race on counter (observed, seen 12 times): write of 4 bytes by T3 '100%25%0A::error::evil', holding no locks, at bank.c:16 in worker; read of 4 bytes by T2, holding m (taken at bank.c:32 in reader), at bank.c:20 in reader
        ::warning file=bank.c,line=48,col=5,title=R2 data race on a heap block of 64 bytes from bank.c%3A56 in main::data race on a heap block of 64 bytes from bank.c:56 in main (predicted, seen once): free of 64 bytes by T1, holding no locks, at bank.c:48 in main; write of 8 bytes by T3 '100%25%0A::error::evil', holding m (shared side) and n, at bank.c:64 in fill
        ::error title=R3 data race on libc.so.6+0x4000::data race on libc.so.6+0x4000 (observed, seen once): write of 4 bytes by T3 '100%25%0A::error::evil', holding no locks, at libc.so.6+0x30; read of 4 bytes by T2, holding no locks, at libc.so.6+0x30
        "#);
    }
}

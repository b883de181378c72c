//! Suppressions for what a report found, ready to be given a reason.

use crate::findings::schema::Report;
use crate::findings::text;
use std::fmt::Write;
use std::path::Path;

/// Our own TOML: one entry per finding, by fingerprint, with what it is about as a comment.
pub fn generate(report: &Report) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let about = text::news(finding, Path::new(&report.target.cwd));
        // Writing to a string cannot fail; the text has no line ends left in it.
        let _ = write!(
            out,
            "# {about}\n[[suppress]]\nfingerprint = \"{}\"\nreason = \"not looked at yet\"\n\n",
            finding.fingerprint
        );
    }
    out
}

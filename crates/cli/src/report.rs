//! `raddle report`: the report of an earlier run again, in any form.

use crate::failure::Failure;
use crate::forms::{Form, Forms};
use crate::known::{self, Known};
use crate::runs::{self, Run};
use crate::terminal;
use clap::Args;
use raddle_report::findings::{Finding, text};
use std::io::Write;

/// Shows the report of a run again
///
/// Reads report.json of the latest run here, or of the run named, and writes it to standard output,
/// or in other forms to the files named.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Report {
    /// A run by its number, its directory, or the file of a report [default: the latest here]
    run: Option<String>,

    /// How it is written
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    #[command(flatten)]
    forms: Forms,

    #[command(flatten)]
    known: Known,

    /// Say one line only
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Show every finding in full, with whole call stacks, also inside runtime libraries
    #[arg(short, long)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  The latest run
      raddle report

  Run 4, with everything
      raddle report 4 --verbose

  A page to read in a browser, to send to somebody
      raddle report --html race.html

  Which variables race?
      raddle report --format json | jq -r '.findings[].location.name'

  Without what is known already
      raddle report --baseline raddle-baseline.json --suppressions known.toml

  For a code-review page and a CI server
      raddle report --sarif races.sarif --junit races.xml

The keys of the JSON form are described in docs/run.md, the other forms in docs/forms.md.";

impl Report {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        self.forms.check()?;
        let file = Run::find(self.run.as_deref())?;
        let mut report = runs::read(&file)?;
        let here = std::env::current_dir().unwrap_or_default();
        let filter = self.known.filter(&here)?;
        let known = report.summary.warnings.len();
        filter.sift(&mut report.findings, &report.modules, &mut report.summary);
        for warning in report.summary.warnings[known..].iter().filter(|_| !self.quiet) {
            eprintln!("raddle: warning: {warning}");
        }
        // What was confirmed or classified since the run leads. The sort is stable, and the names stay.
        report.findings.sort_by_key(Finding::importance);
        self.forms.write(&report)?;
        let stdout = std::io::stdout();
        let style = terminal::style(&stdout, &here, self.verbose);
        // Whoever asked for files and for nothing else has what they want.
        let text = self.format == Form::Text;
        if !text || !(self.quiet || self.forms.any()) {
            runs::write_rendering(&report, self.format, stdout.lock(), &style)?;
        }
        if text {
            let shown = file.display().to_string();
            let unused = known::unused(&report.summary.unused_suppressions, self.verbose);
            if let Some(unused) = unused.filter(|_| !self.quiet) {
                eprintln!("raddle: {unused}");
            }
            // Whoever has closed standard output has had enough.
            let _ = writeln!(std::io::stdout(), "raddle: {}", text::summary(&report, Some(&shown)));
            if !self.quiet
                && let Some(next) =
                    text::next(&report, Run::named(&file).as_deref(), crate::is_known)
            {
                let _ = writeln!(std::io::stdout(), "{next}");
            }
        }
        Ok(0)
    }
}

//! `raddle report`: the report of an earlier run again, in any form.

use crate::arguments::Format;
use crate::failure::Failure;
use crate::runs::{self, Run};
use crate::terminal;
use clap::Args;
use raddle_report::findings::text;
use std::io::Write;

/// Shows the report of a run again
///
/// Reads report.json of the latest run here, or of the run named, and writes it to standard output.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Report {
    /// A run by its number, its directory, or the file of a report [default: the latest here]
    run: Option<String>,

    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Show whole call stacks, also inside runtime libraries
    #[arg(short, long)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  The latest run
      raddle report

  Run 4, with everything
      raddle report 4 --verbose

  Which variables race?
      raddle report --format json | jq -r '.findings[].location.name'

The keys of the JSON form are described in docs/run.md.";

impl Report {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let file = Run::find(self.run.as_deref())?;
        let report = runs::read(&file)?;
        let stdout = std::io::stdout();
        let paint = terminal::paint(&stdout);
        runs::write_rendering(&report, self.format, stdout.lock(), paint, self.verbose)?;
        if self.format == Format::Text {
            let file = file.display().to_string();
            let summary = text::summary(&report, Some(&file));
            // Whoever has closed standard output has had enough.
            let _ = writeln!(std::io::stdout(), "raddle: {summary}");
        }
        Ok(0)
    }
}

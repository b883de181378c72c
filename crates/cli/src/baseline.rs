//! `raddle baseline`: what is known today, so that only what is new fails tomorrow.

use crate::failure::Failure;
use crate::known::read_baseline;
use crate::runs::{self, Run};
use clap::Args;
use std::path::PathBuf;

/// Writes down the findings of a run as known
///
/// `raddle run --baseline FILE` leaves out what the file knows, and fails only on what is new.
/// Findings are known by their fingerprints, which survive rebuilding the program and moving its
/// lines.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Baseline {
    /// Runs by number, directory or report file [default: the latest here]
    runs: Vec<String>,

    /// The file; what it knows already stays known
    #[arg(long, value_name = "FILE", default_value = "raddle-baseline.json")]
    file: PathBuf,

    /// Forget what the file knew: only what these runs found is known
    #[arg(long)]
    fresh: bool,
}

const EXAMPLES: &str = "\
Examples:
  Accept what there is, and fail on anything new from now on
      raddle run -- ./tests
      raddle baseline
      raddle run --baseline raddle-baseline.json -- ./tests

  Add what another run found
      raddle baseline 7";

impl Baseline {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let mut known = match self.file.exists() && !self.fresh {
            true => read_baseline(&self.file)?,
            false => raddle_report::findings::Baseline::default(),
        };
        let mut new = 0;
        let meant: Vec<Option<&str>> = match self.runs.as_slice() {
            [] => vec![None],
            some => some.iter().map(|run| Some(run.as_str())).collect(),
        };
        for run in meant {
            new += known.learn(&runs::read(&Run::find(run)?)?);
        }
        let name = self.file.display();
        let unfinished = self.file.with_extension("tmp");
        std::fs::write(&unfinished, known.to_json())
            .and_then(|()| std::fs::rename(&unfinished, &self.file))
            .map_err(Failure::during(format_args!("writing {name}")))?;
        let findings = if known.len() == 1 { "finding" } else { "findings" };
        println!("{name} knows {} {findings}, {new} of them new", known.len());
        Ok(0)
    }
}

//! What is known already and should stay quiet: suppressions and a baseline.

use crate::failure::Failure;
use crate::forms::today;
use clap::Args;
use raddle_report::findings::{Baseline, Suppressions};
use raddle_symbols::demangle;
use std::path::{Path, PathBuf};

/// Files of known findings.
#[derive(Debug, Args)]
pub struct Known {
    /// Leave out what this file suppresses: Raddle's TOML, or a file of ThreadSanitizer or Valgrind
    /// as it is; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Finding")]
    suppressions: Vec<PathBuf>,

    /// Leave out what this file of `raddle baseline` knows
    #[arg(long, value_name = "FILE", help_heading = "Finding")]
    baseline: Option<PathBuf>,
}

impl Known {
    /// The suppressions of all files.
    pub fn suppressions(&self) -> Result<Suppressions, Failure> {
        let mut all = Suppressions::new(today());
        for path in &self.suppressions {
            let name = path.display().to_string();
            let text = read(path, "suppressions")?;
            // Valgrind writes linker names; patterns with a star in them stay as they are.
            let demangled = |name: &str| demangle::display(name);
            all.read(&name, &text, &demangled).map_err(|error| {
                Failure::Other(format!("{name}:{}: {}", error.line, error.what))
            })?;
        }
        Ok(all)
    }

    /// The baseline.
    pub fn baseline(&self) -> Result<Baseline, Failure> {
        match &self.baseline {
            Some(path) => read_baseline(path),
            None => Ok(Baseline::default()),
        }
    }
}

/// Reads a baseline.
pub fn read_baseline(path: &Path) -> Result<Baseline, Failure> {
    Baseline::from_json(&read(path, "baseline")?).map_err(Failure::during(path.display()))
}

fn read(path: &Path, what: &str) -> Result<String, Failure> {
    let bytes = std::fs::read(path)
        .map_err(Failure::during(format_args!("reading the {what} {}", path.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! What is left out of a report: what nobody asked for, what somebody decided to live with, and what
//! was there before. The same words wherever a report is shown.

use crate::failure::Failure;
use crate::forms::today;
use clap::Args;
use raddle_report::findings::{Baseline, Filter, Selector, Suppressions};
use raddle_symbols::demangle;
use std::path::{Path, PathBuf};

/// What is left out.
#[derive(Debug, Args)]
pub struct Known {
    /// Report only findings with an access in this module (path or name), or in modules or source
    /// files below this directory; either access is enough; may be repeated
    #[arg(long, value_name = "MODULE|DIR", help_heading = "Finding")]
    only_in: Vec<String>,

    /// Leave out findings with an access there; either access is enough; may be repeated
    #[arg(long, value_name = "MODULE|DIR", help_heading = "Finding")]
    ignore: Vec<String>,

    /// Leave out what this file suppresses: Raddle's TOML, or a file of ThreadSanitizer or Valgrind
    /// as it is; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Finding")]
    suppressions: Vec<PathBuf>,

    /// Leave out what this file of `raddle baseline` knows
    #[arg(long, value_name = "FILE", help_heading = "Finding")]
    baseline: Option<PathBuf>,
}

/// Suppressions that are named as unused, without --verbose.
const SHOWN_UNUSED: usize = 3;

impl Known {
    /// For the findings of a report; paths begin in `base`.
    pub fn filter(&self, base: &Path) -> Result<Filter, Failure> {
        let select = |text: &String| Selector::new(text, base, std::fs::canonicalize(text).ok());
        Ok(Filter {
            only_in: self.only_in.iter().map(select).collect(),
            ignore: self.ignore.iter().map(select).collect(),
            suppressions: self.suppressions()?,
            baseline: match &self.baseline {
                Some(path) => read_baseline(path)?,
                None => Baseline::default(),
            },
        })
    }

    /// The suppressions of all files.
    fn suppressions(&self) -> Result<Suppressions, Failure> {
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
}

/// Suppressions that are of no use, in a line.
pub fn unused(unused: &[String], everything: bool) -> Option<String> {
    let shown = if everything { unused.len() } else { SHOWN_UNUSED };
    let mut text = unused.iter().take(shown).cloned().collect::<Vec<_>>().join(", ");
    if unused.len() > shown {
        text += &format!(" and {} more (--verbose)", unused.len() - shown);
    }
    (!unused.is_empty()).then(|| format!("suppressions that matched nothing: {text}"))
}

/// Reads a baseline.
pub fn read_baseline(path: &Path) -> Result<Baseline, Failure> {
    Baseline::from_json(&read(path, "baseline")?).map_err(Failure::during(path.display()))
}

fn read(path: &Path, what: &str) -> Result<String, Failure> {
    let bytes = std::fs::read(path)
        .map_err(Failure::reading(format_args!("reading the {what} {}", path.display()), path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! `raddle config`: which options are in force, and who says so.

use crate::Raddle;
use crate::failure::Failure;
use crate::settings::{self, Settings, shown, variable};
use clap::{Args, CommandFactory};
use raddle_report::nearest::did_you_mean;
use std::fmt::Write;

/// Prints the options in force and where they come from
///
/// An option that is typed wins over the environment, that over raddle.toml (the profile before the
/// rest, a command's own table before the general keys), and that over the default.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Config {
    /// Of this command only
    command: Option<String>,

    /// Also options that have no value, with the variable and the key of each
    #[arg(long)]
    all: bool,
}

const EXAMPLES: &str = "\
Examples:
  What would `raddle run` do here?
      raddle config run

  And in CI?
      raddle config run --profile ci

  Which options are there, and what are they called in the environment?
      raddle config --all";

impl Config {
    /// Runs the subcommand.
    pub fn run(self, settings: &Settings) -> Result<u8, Failure> {
        let command = Raddle::command();
        if let Some(name) = &self.command
            && command.find_subcommand(name).is_none()
        {
            let near = did_you_mean(name, command.get_subcommands().map(clap::Command::get_name));
            return Err(Failure::Other(format!("there is no command {name}{near}")));
        }
        let mut out = String::new();
        let _ = match settings.file() {
            Some((path, Some(profile))) => writeln!(out, "{}, profile {profile}", path.display()),
            Some((path, None)) => writeln!(out, "{}", path.display()),
            None => writeln!(out, "no {} here or above", settings::FILE),
        };
        for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = subcommand.get_name();
            if self.command.as_deref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            let mut rows = Vec::new();
            for option in settings::options(subcommand).filter(|option| !option.is_hide_set()) {
                let long = option.get_long().unwrap_or_default();
                let (value, origin) = match settings.of(name, option) {
                    Some(setting) => (shown(&setting.values), setting.origin),
                    None => {
                        let values: Vec<String> = option
                            .get_default_values()
                            .iter()
                            .map(|value| value.to_string_lossy().into_owned())
                            .collect();
                        (shown(&values), "default".to_owned())
                    }
                };
                let is_set = origin != "default";
                if self.all {
                    let value = if value.is_empty() { "-".to_owned() } else { value };
                    rows.push(vec![format!("  --{long}"), value, origin, variable(long)]);
                } else if is_set || !(value.is_empty() || value == "false") {
                    rows.push(vec![format!("  --{long}"), value, origin]);
                }
            }
            if !rows.is_empty() {
                let _ = write!(out, "\nraddle {name}\n{}", aligned(&rows));
            }
        }
        print!("{out}");
        Ok(0)
    }
}

/// Columns, each as wide as what is widest in it, but for the last.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_moves_the_whole_column() {
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        let long = row(["  --hooks", "/a/very/long/path/größe.toml", "raddle.toml:7"]);
        let rows = [row(["  --detector", "hybrid", "default"]), long];
        assert_eq!(
            aligned(&rows),
            "  --detector  hybrid                        default\n  --hooks     /a/very/long/path/größe.toml  raddle.toml:7\n"
        );
    }
}

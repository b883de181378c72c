//! `raddle.toml`:
//!
//! ```toml
//! suppressions = ["known.toml"]      # for every command that has the option
//!
//! [run]                              # for one command
//! timeout = "5m"
//!
//! [profile.ci]                       # --profile ci, or RADDLE_PROFILE=ci
//! detector = "hb"
//! [profile.ci.run]
//! error-exitcode = 1
//! ```

use super::options;
use crate::failure::Failure;
use clap::Command;
use raddle_report::nearest::did_you_mean;
use std::path::{Path, PathBuf};
use toml::Table;

/// A file that was read and found right.
#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    text: String,
    table: Table,
}

/// A value of a key.
pub struct Value<'a>(&'a toml::Value);

impl Value<'_> {
    /// As it would be typed; several for an array.
    pub fn texts(&self) -> Vec<String> {
        match self.0 {
            toml::Value::Array(all) => all.iter().map(text).collect(),
            one => vec![text(one)],
        }
    }
}

fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(truth) => truth.to_string(),
        // The check has refused tables and days; arrays in arrays are for the option to refuse.
        toml::Value::Datetime(day) => day.to_string(),
        toml::Value::Array(_) | toml::Value::Table(_) => String::new(),
    }
}

impl File {
    /// Reads a file and checks every key of it.
    pub fn read(path: &Path, command: &Command) -> Result<File, Failure> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(Failure::reading(format_args!("reading {name}"), path))?;
        let wrong = |error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = line_of(&text, at);
            Failure::Other(format!("{name}:{line}: {}", error.message().replace('\n', " ")))
        };
        let table: Table = toml::from_str(&text).map_err(wrong)?;
        let check = Check { command, text: &text };
        check
            .table("", &table, None)
            .map_err(|(line, what)| Failure::Other(format!("{name}:{line}: {what}")))?;
        Ok(File { path: path.to_owned(), text, table })
    }

    /// The line that sets a key of a table.
    pub fn line(&self, table: Option<&str>, key: &str) -> usize {
        line_of_key(&self.text, &joined(table.unwrap_or_default(), key))
    }

    /// The value of an option, and the table it stands in.
    pub fn value(
        &self,
        profile: Option<&str>,
        subcommand: &str,
        option: &str,
    ) -> Option<(Value<'_>, Option<String>)> {
        let profiles = profile.and_then(|name| {
            let table = self.table.get("profile")?.get(name)?.as_table()?;
            Some((table, format!("profile.{name}")))
        });
        let base = Some((&self.table, String::new()));
        for (table, name) in [profiles, base].into_iter().flatten() {
            let inner = table.get(subcommand).and_then(|inner| inner.as_table()?.get(option));
            let dot = if name.is_empty() { "" } else { "." };
            if let Some(value) = inner {
                return Some((Value(value), Some(format!("{name}{dot}{subcommand}"))));
            }
            if let Some(value) = table.get(option).filter(|value| !value.is_table()) {
                return Some((Value(value), (!name.is_empty()).then_some(name)));
            }
        }
        None
    }

    /// The profiles it has.
    pub fn profiles(&self) -> Vec<&str> {
        let profiles = self.table.get("profile").and_then(toml::Value::as_table);
        profiles.into_iter().flat_map(|table| table.keys().map(String::as_str)).collect()
    }
}

struct Check<'a> {
    command: &'a Command,
    text: &'a str,
}

impl Check<'_> {
    /// Every key of a table must be an option: of the subcommand, or of any. Tables are
    /// subcommands, and at the top `profile`.
    fn table(
        &self,
        path: &str,
        table: &Table,
        subcommand: Option<&Command>,
    ) -> Result<(), (usize, String)> {
        for (key, value) in table {
            let path_of_key = joined(path, key);
            let line = || line_of_key(self.text, &path_of_key);
            match value {
                toml::Value::Table(profiles) if path.is_empty() && key == "profile" => {
                    for (name, profile) in profiles {
                        let path = joined(&path_of_key, name);
                        let Some(profile) = profile.as_table() else {
                            let line = line_of_key(self.text, &path);
                            return Err((line, format!("{path} is a table of options")));
                        };
                        self.table(&path, profile, None)?;
                    }
                }
                toml::Value::Table(inner) if subcommand.is_none() => {
                    match self.command.find_subcommand(key) {
                        Some(found) => self.table(&path_of_key, inner, Some(found))?,
                        None => return Err((line(), self.unknown(key, None))),
                    }
                }
                value => {
                    let known = self.options(subcommand).any(|option| option == key.as_str());
                    if !known {
                        return Err((line(), self.unknown(key, subcommand)));
                    }
                    if value.is_table() || value.is_datetime() {
                        return Err((line(), format!("{key} is a value, as it would be typed")));
                    }
                }
            }
        }
        Ok(())
    }

    fn options(&self, subcommand: Option<&Command>) -> impl Iterator<Item = String> {
        let all: Vec<&Command> = match subcommand {
            Some(one) => vec![one],
            None => self.command.get_subcommands().collect(),
        };
        all.into_iter()
            .flat_map(|command| options(command).filter_map(|o| o.get_long().map(String::from)))
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn unknown(&self, key: &str, subcommand: Option<&Command>) -> String {
        let mut known: Vec<String> = self.options(subcommand).collect();
        if subcommand.is_none() {
            known.extend(self.command.get_subcommands().map(|c| c.get_name().to_owned()));
            known.push("profile".into());
        }
        let near = did_you_mean(key, known.iter().map(String::as_str));
        match subcommand {
            Some(command) => format!("raddle {} has no option {key}{near}", command.get_name()),
            None => format!("there is no option or command {key}{near}"),
        }
    }
}

/// `profile.ci.timeout`.
fn joined(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// Where a key stands, by its whole name: the parser tells only of the outermost ones. Keys on one line
/// inside braces are where their table is.
fn line_of_key(text: &str, wanted: &str) -> usize {
    let tidy = |key: &str| {
        key.split('.')
            .map(|part| part.trim().trim_matches(['"', '\'']))
            .collect::<Vec<_>>()
            .join(".")
    };
    let mut header = String::new();
    let mut best = 1;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let name = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => {
                header = tidy(name);
                header.clone()
            }
            None => match line.split_once('=') {
                Some((key, _)) if !line.starts_with('#') => joined(&header, &tidy(key)),
                _ => continue,
            },
        };
        if name == wanted {
            return at + 1;
        }
        if wanted.strip_prefix(&name).is_some_and(|rest| rest.starts_with('.')) {
            best = at + 1;
        }
    }
    best
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at.min(text.len())].matches('\n').count() + 1
}

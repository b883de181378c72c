//! Where the values of options come from: the command line, the environment, `raddle.toml`, and
//! last the option itself.
//!
//! There is one table of options: the command line's own, as clap has it. Every option `--some-name`
//! of it is also the variable `RADDLE_SOME_NAME` and the key `some-name` of `raddle.toml`; nothing
//! is listed twice, and an option that is added is at once all three. What environment and file say
//! becomes the option's default before the command line is read, so that values are checked by the
//! same code wherever they come from.

mod file;

use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use file::File;
use raddle_report::nearest::did_you_mean;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The file, looked for upwards.
pub const FILE: &str = "raddle.toml";

/// What is said where, strongest first.
#[derive(Debug, Default)]
pub struct Settings {
    variables: BTreeMap<String, String>,
    file: Option<File>,
    profile: Option<String>,
    /// Somebody named the file.
    is_named: bool,
}

/// The value of an option that was set outside the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// As many as the option takes.
    pub values: Vec<String>,
    /// Who says so: `RADDLE_TIMEOUT`, `raddle.toml:7 [profile.ci]`.
    pub origin: String,
}

/// Why there are no arguments.
pub enum Stop {
    /// Clap has something to say: help, or a mistake. With where a wrong value comes from.
    Clap(clap::Error, Option<String>),
    /// The settings are wrong.
    Settings(Failure),
}

impl Settings {
    /// Reads environment and file for a command line.
    pub fn read(
        command: &Command,
        arguments: &[OsString],
        variables: impl Iterator<Item = (OsString, OsString)>,
        cwd: &Path,
    ) -> Result<Settings, Failure> {
        let text = |text: OsString| text.into_string().ok();
        let variables: BTreeMap<String, String> = variables
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .filter(|(name, _)| name.starts_with("RADDLE_"))
            .collect();
        let given = |option: &str| {
            let variable = variables.get(&variable(option)).filter(|value| !value.is_empty());
            typed(arguments, option).or_else(|| variable.cloned())
        };
        let named = given("config");
        let is_named = named.is_some();
        let path = match named {
            Some(path) => Some(cwd.join(path)),
            None => cwd.ancestors().map(|above| above.join(FILE)).find(|path| path.is_file()),
        };
        let file = path.map(|path| File::read(&path, command)).transpose()?;
        let profile = given("profile");
        if let Some(profile) = &profile {
            let known = file.as_ref().map(File::profiles).unwrap_or_default();
            if !known.contains(&profile.as_str()) {
                return Err(Failure::Other(no_profile(profile, file.as_ref(), &known)));
            }
        }
        Ok(Settings { variables, file, profile, is_named })
    }

    /// Variables that look like ours and set nothing, each in a sentence.
    pub fn strangers(&self, command: &Command) -> Vec<String> {
        let mut known: Vec<String> = OTHER_VARIABLES.map(String::from).to_vec();
        for subcommand in std::iter::once(command).chain(command.get_subcommands()) {
            let options = subcommand.get_arguments().filter_map(Arg::get_long);
            known.extend(options.map(variable));
        }
        let strange = self.variables.keys().filter(|name| !known.contains(name));
        strange
            .map(|name| {
                let near = did_you_mean(name, known.iter().map(String::as_str));
                format!("{name} in the environment is no option{near}")
            })
            .collect()
    }

    /// What is set for an option of a subcommand.
    pub fn of(&self, subcommand: &str, option: &Arg) -> Option<Setting> {
        let name = option.get_long()?;
        let own = OWN.contains(&(subcommand, name));
        let set = self.variables.get(&variable(name)).filter(|value| !own && !value.is_empty());
        if let Some(value) = set {
            let values = match option.get_action() {
                ArgAction::Append => value.split(separator(option)).map(String::from).collect(),
                ArgAction::SetTrue => vec![truth(value).to_owned()],
                _ => vec![value.clone()],
            };
            return Some(Setting { values, origin: variable(name) });
        }
        let file = self.file.as_ref()?;
        let (value, table) = file.value(self.profile.as_deref(), subcommand, name)?;
        let is_its_own = |table: &String| table.rsplit('.').next() == Some(subcommand);
        if own && !table.as_ref().is_some_and(is_its_own) {
            return None;
        }
        let base = file.path.parent().unwrap_or(Path::new("/"));
        let values = value.texts().into_iter().map(|text| match names_a_path(option) {
            true => base.join(text).display().to_string(),
            false => text,
        });
        let line = file.line(table.as_deref(), name);
        let origin = match table {
            Some(table) => format!("{}:{line} [{table}]", file.path.display()),
            None => format!("{}:{line}", file.path.display()),
        };
        Some(Setting { values: values.collect(), origin })
    }

    /// The file in force and the profile.
    pub fn file(&self) -> Option<(&Path, Option<&str>)> {
        self.file.as_ref().map(|file| (file.path.as_path(), self.profile.as_deref()))
    }

    /// The same, if somebody asked for it: what was merely found here need not be what others find.
    pub fn asked_for(&self) -> Option<(&Path, Option<&str>)> {
        self.file().filter(|(_, profile)| self.is_named || profile.is_some())
    }

    /// The command line, with what is set as defaults.
    pub fn parse(&self, command: &Command, arguments: &[OsString]) -> Result<ArgMatches, Stop> {
        let mut dropped: Vec<(String, String)> = Vec::new();
        loop {
            let mut prepared = self.applied(command.clone(), &dropped);
            let matches = match prepared.try_get_matches_from_mut(arguments) {
                Ok(matches) => matches,
                Err(error) => {
                    let origin = self.blame(&prepared, &error, arguments);
                    return Err(Stop::Clap(error, origin));
                }
            };
            // What was typed beats what is set also where the two exclude each other.
            let beaten = self.beaten(&prepared, &matches, &dropped);
            if beaten.is_empty() {
                return Ok(matches);
            }
            dropped.extend(beaten);
        }
    }

    fn applied(&self, mut command: Command, dropped: &[(String, String)]) -> Command {
        let names: Vec<String> =
            command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
        for name in names {
            command = command.mut_subcommand(&name, |subcommand| {
                subcommand.mut_args(|option| {
                    let is_dropped =
                        dropped.iter().any(|(c, o)| *c == name && option.get_id() == o.as_str());
                    match self.of(&name, &option).filter(|_| !is_dropped) {
                        Some(setting) => option.default_values(
                            setting.values.into_iter().map(clap::builder::OsStr::from),
                        ),
                        None => option,
                    }
                })
            });
        }
        command
    }

    /// Settings that exclude, or are excluded by, something typed.
    fn beaten(
        &self,
        command: &Command,
        matches: &ArgMatches,
        dropped: &[(String, String)],
    ) -> Vec<(String, String)> {
        let Some((name, matches)) = matches.subcommand() else { return Vec::new() };
        let Some(subcommand) = command.find_subcommand(name) else { return Vec::new() };
        let mut beaten = Vec::new();
        let is_typed = |option: &Arg| {
            matches.try_contains_id(option.get_id().as_str()).is_ok()
                && matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        for typed in subcommand.get_arguments().filter(|option| is_typed(option)) {
            let others = subcommand.get_arguments().filter(|option| {
                option.get_id() != typed.get_id() && self.of(name, option).is_some()
            });
            for other in others {
                let excludes = |a: &Arg, b: &Arg| {
                    subcommand.get_arg_conflicts_with(a).iter().any(|c| c.get_id() == b.get_id())
                };
                let key = (name.to_owned(), other.get_id().to_string());
                if (excludes(typed, other) || excludes(other, typed)) && !dropped.contains(&key) {
                    beaten.push(key);
                }
            }
        }
        beaten
    }

    /// Where a value that clap does not like comes from, if it was not typed.
    fn blame(
        &self,
        command: &Command,
        error: &clap::Error,
        arguments: &[OsString],
    ) -> Option<String> {
        if !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
            return None;
        }
        let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
            return None;
        };
        let option = argument.split([' ', '=']).next()?.strip_prefix("--")?;
        if typed(arguments, option).is_some() {
            return None;
        }
        let typed = arguments.iter().skip(1).filter_map(|word| word.to_str());
        let subcommand = typed.into_iter().find_map(|word| command.find_subcommand(word))?;
        let option = subcommand.get_arguments().find(|arg| arg.get_long() == Some(option))?;
        self.of(subcommand.get_name(), option).map(|setting| setting.origin)
    }
}

/// Variables of ours that are no options: where things are kept, and what tests and `./dev` use.
const OTHER_VARIABLES: [&str; 8] = [
    "RADDLE_CACHE_DIR",
    "RADDLE_ENGINE_CACHE",
    "RADDLE_BIN",
    "RADDLE_TEST_FULL",
    "RADDLE_CORPUS",
    "RADDLE_CORPUS_RUNS",
    "RADDLE_HANG_PATIENCE",
    "RADDLE_REHEARSE_HANG",
];

/// Options for which only what is set for their very subcommand counts. Who has every `run` under a policy and a seed does not
/// mean that races are no longer directed when they are confirmed, nor that a replay is another execution.
const OWN: [(&str, &str); 3] = [("confirm", "policy"), ("replay", "policy"), ("replay", "seed")];

/// The variable of an option.
pub fn variable(option: &str) -> String {
    format!("RADDLE_{}", option.to_ascii_uppercase().replace('-', "_"))
}

/// Options that a file or the environment can set.
pub fn options(subcommand: &Command) -> impl Iterator<Item = &Arg> {
    let settable = |option: &&Arg| {
        let name = option.get_long();
        name.is_some_and(|name| !["help", "version", "config", "profile"].contains(&name))
    };
    subcommand.get_arguments().filter(settable)
}

/// The value typed for an option, before the target's own arguments.
fn typed(arguments: &[OsString], option: &str) -> Option<String> {
    let mut words = arguments.iter().take_while(|word| *word != OsStr::new("--"));
    let long = format!("--{option}");
    while let Some(word) = words.next() {
        let word = word.to_string_lossy();
        if word == long {
            return words.next().map(|value| value.to_string_lossy().into_owned());
        }
        if let Some(value) = word.strip_prefix(&long).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value.to_owned());
        }
    }
    None
}

/// Between several values of one variable: as in `PATH` where they are paths.
fn separator(option: &Arg) -> char {
    match option.get_value_delimiter() {
        Some(delimiter) => delimiter,
        None if names_a_path(option) => ':',
        None => ',',
    }
}

fn names_a_path(option: &Arg) -> bool {
    matches!(
        option.get_value_hint(),
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath | ValueHint::ExecutablePath
    )
}

/// A switch in the environment: anything but a no is a yes.
fn truth(value: &str) -> &'static str {
    match value.to_ascii_lowercase().as_str() {
        "0" | "no" | "off" | "false" => "false",
        _ => "true",
    }
}

fn no_profile(profile: &str, file: Option<&File>, known: &[&str]) -> String {
    let Some(file) = file else {
        return format!("there is no profile {profile}: no {FILE} was found here or above");
    };
    let known = match known {
        [] => "it has none".to_owned(),
        known => format!("it has {}", known.join(", ")),
    };
    format!("there is no [profile.{profile}] in {}; {known}", file.path.display())
}

/// A value as it is shown.
pub fn shown(values: &[String]) -> String {
    let quote = |value: &String| match value.contains(' ') || value.is_empty() {
        true => format!("'{value}'"),
        false => value.clone(),
    };
    values.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Where the working directory is.
pub fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

#[cfg(test)]
mod tests;

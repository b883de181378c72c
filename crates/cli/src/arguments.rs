//! Arguments that subcommands share: the words of the design mean the same everywhere.

use crate::scheduling::ScheduleArguments;
use clap::{Args, ValueEnum};
use raddle_model::ThreadId;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What is run, and how.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Kill the target after this long (30s, 5m, 1.5h, 200ms) and exit with 124
    #[arg(long, value_name = "T", value_parser = duration, help_heading = "Running")]
    pub timeout: Option<Duration>,

    /// Watch child processes and programs started by exec too, and wait for them
    #[arg(long, help_heading = "Running")]
    pub follow: bool,

    /// Switch address-space randomisation off, so that addresses repeat from run to run
    #[arg(long, help_heading = "Running")]
    pub fixed_layout: bool,

    /// Also hook the functions that this file describes; may be repeated, later files win
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    pub hooks: Vec<PathBuf>,

    /// Keep what the run leaves in this new or empty directory
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub schedule: ScheduleArguments,

    /// What runs beside the target: for measuring
    #[arg(long, hide = true, value_enum, default_value_t = Engine::Probe)]
    pub engine: Engine,

    /// The program and its arguments
    #[arg(last = true, required = true, value_names = ["PROGRAM", "ARGUMENTS"])]
    pub program: Vec<OsString>,
}

/// What runs beside the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The engine with the probe.
    Probe,
    /// The engine alone.
    Bare,
}

/// How much is said.
#[derive(Debug, Clone, Copy, Args)]
pub struct Verbosity {
    /// Say nothing but what was asked for and what went wrong
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say what is being done
    #[arg(short, long)]
    pub verbose: bool,
}

impl Verbosity {
    /// For those who asked.
    pub fn detail(&self, text: impl std::fmt::Display) {
        if self.verbose {
            eprintln!("raddle: {text}");
        }
    }

    /// For those who did not ask for silence.
    pub fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            eprintln!("raddle: {text}");
        }
    }
}

/// A form of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A thread as a person names it: `T2`, `2`, or the name the program gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadSelector {
    /// By number.
    Number(ThreadId),
    /// By name.
    Name(String),
}

impl ThreadSelector {
    /// Is this the thread?
    pub fn selects(&self, thread: ThreadId, name: Option<&str>) -> bool {
        match self {
            ThreadSelector::Number(number) => *number == thread,
            ThreadSelector::Name(wanted) => name == Some(wanted),
        }
    }
}

impl FromStr for ThreadSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix(['T', 't']).unwrap_or(text);
        match digits.parse() {
            Ok(0) => Err("threads are numbered from T1, the main thread".into()),
            Ok(number) => Ok(ThreadSelector::Number(ThreadId(number))),
            Err(_) if text.is_empty() => Err("expected T1, 1 or a thread's name".into()),
            Err(_) => Ok(ThreadSelector::Name(text.to_owned())),
        }
    }
}

/// A whole number; what is nearly one is answered with the one that was meant.
pub fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| {
        let digits = text.replace(['_', ',', ' ', '\''], "");
        let meant = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(|number| number.to_string()),
            None => Some(digits),
        };
        let meant = meant.filter(|number| number.parse::<T>().is_ok());
        let near = meant.map(|number| format!("; did you mean {number}?")).unwrap_or_default();
        match text.is_empty() || !text.bytes().all(|c| c.is_ascii_digit()) {
            true => format!("expected a whole number such as 7{near}"),
            false => "the number is too large".to_owned(),
        }
    })
}

/// `30`, `30s`, `1.5m`, `200ms`, `2h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 30s, 5m, 1.5h or 200ms".to_owned();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "s", "-1", "0", "1d", "1 s", "nan", "inf", "1e300h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(whole::<u64>("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole::<u64>("abc"), Err("expected a whole number such as 7".into()));
        let near =
            |number| Err(format!("expected a whole number such as 7; did you mean {number}?"));
        assert_eq!(whole::<u64>("1_000"), near("1000"));
        assert_eq!(whole::<u64>("0x10"), near("16"));
        assert_eq!(whole::<u8>("300"), Err("the number is too large".into()));
        assert!(whole::<u64>("").is_err() && whole::<u64>("-1").is_err());
    }

    #[test]
    fn threads() {
        let parse = |text: &str| text.parse::<ThreadSelector>();
        assert_eq!(parse("T2"), Ok(ThreadSelector::Number(ThreadId(2))));
        assert_eq!(parse("2"), Ok(ThreadSelector::Number(ThreadId(2))));
        assert_eq!(parse("Tx"), Ok(ThreadSelector::Name("Tx".into())));
        assert!(parse("T0").is_err() && parse("").is_err());
        let named = parse("worker").unwrap();
        assert!(named.selects(ThreadId(3), Some("worker")));
        assert!(!named.selects(ThreadId(3), None));
    }
}

//! The command: `raddle SUBCOMMAND … -- PROGRAM [ARGUMENTS]`, one file per subcommand.

mod arguments;
mod baseline;
mod cargo;
mod child;
mod complete;
mod config;
mod confirm;
mod detect;
mod doctor;
mod events;
mod explain;
mod failure;
mod forms;
mod gdb;
mod hunt;
mod interrupt;
mod kept;
mod known;
mod names;
mod near_file;
mod progress;
mod recording;
mod replay;
mod report;
mod run;
mod runs;
mod scheduling;
mod serving;
mod settings;
mod telling;
mod terminal;
mod trial;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use raddle_report::nearest::did_you_mean;
use settings::{Settings, Stop};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Finds concurrency bugs in the binary you already have.
///
/// Raddle runs an unmodified Linux x86-64 program under instrumentation and watches what its
/// threads do to memory and to each other. No recompiling, no source needed; with debug
/// information you get lines and variables, without you get offsets.
#[derive(Debug, Parser)]
#[command(name = "raddle", version, max_term_width = 100, subcommand_required = true)]
#[command(after_help = "\
Exit codes: the target's own (128 + n for a signal); 66 `run` found something; 124 --timeout;
125 Raddle failed, or was used wrongly; 126 the target cannot be run; 127 there is no such target.

Start here:
  raddle run -- ./program arguments     find data races in one run of it
  raddle explain R1                     what the first finding means, and how to fix it
  raddle confirm R1                     make it happen; later, is it fixed?
  raddle replay R1 --events             see it happen, thread beside thread
  raddle hunt -- ./program arguments    all of it, and other schedules until the time is up
  raddle report --html race.html        the report as a page
  raddle doctor                         can this machine do it?

Every option --some-name is also RADDLE_SOME_NAME in the environment and some-name in raddle.toml;
`raddle config` prints what is in force.")]
struct Raddle {
    /// Read this instead of the raddle.toml found here or above
    #[arg(long, value_name = "FILE", global = true, help_heading = "Configuration")]
    config: Option<PathBuf>,

    /// Use the options of [profile.NAME] in raddle.toml
    #[arg(long, value_name = "NAME", global = true, help_heading = "Configuration")]
    profile: Option<String>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Report(report::Report),
    Events(events::Events),
    Confirm(confirm::Confirm),
    Hunt(hunt::Hunt),
    Replay(replay::ReplayCommand),
    #[command(hide = true)]
    Trial(trial::Trial),
    #[command(hide = true)]
    AsChild(child::AsChild),
    Explain(explain::Explain),
    Baseline(baseline::Baseline),
    Config(config::Config),
    Doctor(doctor::Doctor),
    #[command(hide = true)]
    Cargo(cargo::Cargo),
    Completions(complete::Completions),
    Man(complete::Man),
}

/// Is there such a subcommand?
fn is_known(subcommand: &str) -> bool {
    Raddle::command().find_subcommand(subcommand).is_some()
}

fn main() -> ExitCode {
    let (raddle, settings) = match parse() {
        Ok(parsed) => parsed,
        Err(Stop::Settings(failure)) => return failure.report(),
        Err(Stop::Clap(error, origin)) => {
            // Nothing can be done about a closed standard error.
            let _ = error.print();
            if let Some(origin) = origin {
                eprintln!("raddle: that value comes from {origin}");
            }
            for tip in [program_tip(&error), command_tip(&error)].into_iter().flatten() {
                eprintln!("{tip}");
            }
            return match error.use_stderr() {
                // Not clap's 2, which would look like the target's.
                true => ExitCode::from(raddle_execute::EXIT_FAILED),
                false => ExitCode::SUCCESS,
            };
        }
    };
    let done = match raddle.command {
        Command::Run(run) => run.run(),
        Command::Report(report) => report.run(),
        Command::Events(events) => events.run(),
        Command::Confirm(confirm) => confirm.run(),
        Command::Hunt(hunt) => hunt.run(),
        Command::Replay(replay) => replay.run(),
        Command::Trial(trial) => trial.run(),
        Command::AsChild(child) => child.run(),
        Command::Explain(explain) => explain.run(),
        Command::Baseline(baseline) => baseline.run(),
        Command::Config(config) => config.run(&settings),
        Command::Doctor(doctor) => doctor.run(),
        Command::Cargo(cargo) => cargo.run(&settings),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    done.map(ExitCode::from).unwrap_or_else(Failure::report)
}

/// What to say when the program was typed without the dashes before it.
fn program_tip(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let ContextValue::String(wrong) = error.get(ContextKind::InvalidArg)? else { return None };
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let subcommand = typed.first().filter(|name| takes_a_program(name))?;
    let is_program = error.kind() == ErrorKind::UnknownArgument && !wrong.starts_with('-');
    is_program
        .then(|| format!("raddle: the program stands after dashes: raddle {subcommand} -- {wrong}"))
}

/// The command that was meant, where clap sees none that is similar enough.
fn command_tip(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let unknown = error.kind() == ErrorKind::InvalidSubcommand;
    let told = error.get(ContextKind::SuggestedSubcommand).is_some();
    let ContextValue::String(wrong) = error.get(ContextKind::InvalidSubcommand)? else {
        return None;
    };
    let command = Raddle::command();
    let names = command.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name());
    let near = did_you_mean(wrong, names);
    (unknown && !told && !near.is_empty())
        .then(|| format!("raddle: there is no command {wrong}{near}"))
}

/// Does this subcommand end with `-- PROGRAM`?
fn takes_a_program(subcommand: &str) -> bool {
    let command = Raddle::command();
    let found = command.find_subcommand(subcommand);
    found.is_some_and(|found| found.get_arguments().any(|argument| argument.is_last_set()))
}

/// The command line, with what environment and file say.
fn parse() -> Result<(Raddle, Settings), Stop> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command = Raddle::command();
    let settings = Settings::read(&command, &arguments, std::env::vars_os(), &settings::here())
        .map_err(Stop::Settings)?;
    // Those of our own processes have been told of by the first.
    if arguments.get(1).is_none_or(|subcommand| subcommand != "trial") {
        for stranger in settings.strangers(&command) {
            eprintln!("raddle: {stranger}");
        }
    }
    let matches =
        settings.parse(&command, &arguments).map_err(|stop| as_typed(stop, &arguments))?;
    let raddle = Raddle::from_arg_matches(&matches).map_err(|error| Stop::Clap(error, None))?;
    Ok((raddle, settings))
}

/// What clap has to say about `raddle cargo`, for those who typed `cargo raddle`.
fn as_typed(stop: Stop, arguments: &[OsString]) -> Stop {
    match (arguments.get(1), stop) {
        (Some(first), Stop::Clap(error, origin)) if first == "cargo" => {
            let typed = std::iter::once(&arguments[0]).chain(&arguments[2..]);
            let said = complete::cargo_raddle().try_get_matches_from(typed);
            Stop::Clap(said.err().unwrap_or(error), origin)
        }
        (_, stop) => stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_of_cargo_raddle_is_as_it_is_typed() {
        let said = |arguments: &[&str]| {
            let arguments: Vec<OsString> =
                ["raddle", "cargo"].iter().chain(arguments).map(OsString::from).collect();
            let error = Raddle::try_parse_from(&arguments).unwrap_err();
            match as_typed(Stop::Clap(error, None), &arguments) {
                Stop::Clap(error, _) => error.to_string(),
                Stop::Settings(_) => unreachable!(),
            }
        };
        assert!(
            said(&["--help"]).contains("Usage: cargo raddle [OPTIONS] <COMMAND>"),
            "{}",
            said(&["--help"])
        );
        let help = said(&["test", "--help"]);
        assert!(help.contains("Usage: cargo raddle test [OPTIONS]"), "{help}");
        let wrong = said(&["tset"]);
        assert!(wrong.contains("'tset'") && wrong.contains("cargo raddle"), "{wrong}");
    }

    #[test]
    fn the_options_are_consistent() {
        Raddle::command().debug_assert();
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_right_one() {
        let said = |arguments: &[&str]| {
            let arguments = ["raddle"].iter().chain(arguments);
            Raddle::try_parse_from(arguments).unwrap_err().to_string()
        };
        let only = said(&["events", "--only", "memry", "--", "x"]);
        assert!(only.contains("a similar value exists: 'memory'"), "{only}");
        let format = said(&["events", "--format", "jsn", "--", "x"]);
        assert!(format.contains("'json'"), "{format}");
        let option = said(&["events", "--cuont", "--", "x"]);
        assert!(option.contains("a similar argument exists: '--count'"), "{option}");
        let short = Raddle::try_parse_from(["raddle", "rnu", "--", "x"]).unwrap_err();
        let tip = command_tip(&short).unwrap();
        assert_eq!(tip, "raddle: there is no command rnu; did you mean run?");
        let command = said(&["event", "--", "x"]);
        assert!(command.contains("'events'"), "{command}");
        let target = said(&["events"]);
        assert!(target.contains("PROGRAM"), "{target}");
        let time = said(&["events", "--timeout", "soon", "--", "x"]);
        assert!(time.contains("such as 30s"), "{time}");
    }
}

//! The command: `raddle SUBCOMMAND … -- PROGRAM [ARGUMENTS]`, one file per subcommand.

mod arguments;
mod confirm;
mod events;
mod failure;
mod hunt;
mod names;
mod replay;
mod report;
mod run;
mod runs;
mod scheduling;
mod terminal;
mod trial;

use clap::{Parser, Subcommand};
use failure::Failure;
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
125 Raddle failed, or was used wrongly; 126 the target cannot be run; 127 there is no such target.")]
struct Raddle {
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
}

fn main() -> ExitCode {
    let raddle = match Raddle::try_parse() {
        Ok(raddle) => raddle,
        Err(error) => {
            // Nothing can be done about a closed standard error.
            let _ = error.print();
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
    };
    done.map(ExitCode::from).unwrap_or_else(Failure::report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

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
        let command = said(&["event", "--", "x"]);
        assert!(command.contains("'events'"), "{command}");
        let target = said(&["events"]);
        assert!(target.contains("PROGRAM"), "{target}");
        let time = said(&["events", "--timeout", "soon", "--", "x"]);
        assert!(time.contains("such as 30s"), "{time}");
    }
}

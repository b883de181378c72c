//! `cargo raddle test|run|bench`: what Cargo builds, under Raddle. Each test is an execution of its
//! own, so that threads of one cannot race with those of another; their reports are merged.

mod artifacts;
mod tests;

use crate::arguments::whole;
use crate::failure::Failure;
use crate::forms::Forms;
use crate::interrupt::Interrupt;
use crate::run::Run as RunCommand;
use crate::runs::Run;
use crate::scheduling::PolicyName;
use crate::settings::Settings;
use crate::telling::Telling;
use artifacts::{Executable, build};
use clap::{Args, Subcommand};
use raddle_report::findings::{Report, merge};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tests::{Ended, Running, Test};

/// The exit code of Cargo's own tests that fail.
const TESTS_FAILED: u8 = 101;
/// Findings, as for `raddle run`.
const FOUND: u8 = 66;

/// Builds with Cargo and runs under Raddle
///
/// Words before `--` go to Cargo (`-p`, `--release`, `--test NAME`, features), those after it to
/// the test harness (names, `--ignored`) or to the program. Options of `raddle run` come from the
/// environment (RADDLE_DETECTOR=hb) and from raddle.toml; --config and --profile are Raddle's own. What
/// they say of the report (RADDLE_JUNIT, quiet) is about the merged one.
/// Works on stable Rust.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Cargo {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  Every test of the workspace, each in a process of its own
      cargo raddle test

  The tests of one crate whose names contain `queue`
      cargo raddle test -p store -- queue

  The same executions every time
      cargo raddle test --seed 7

  The program, with arguments of its own
      cargo raddle run --release -- --port 8080";

#[derive(Debug, Subcommand)]
enum What {
    /// Runs each test in a process of its own and merges the reports
    Test(Words),
    /// Runs the benchmarks, each executable once
    Bench(Words),
    /// Runs the program
    Run(Words),
}

#[derive(Debug, Args)]
struct Words {
    #[command(flatten)]
    forms: Forms,

    #[command(flatten)]
    deciding: Deciding,

    /// For Cargo; after `--` for the test harness or the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<OsString>,
}

/// Who decides which thread runs, in every execution. How, in more detail, is set for `raddle run`.
#[derive(Debug, Clone, Copy, Args)]
struct Deciding {
    /// Let one thread run at a time, chosen by this policy [default: the kernel decides; random
    /// with --seed]
    #[arg(long, value_enum, help_heading = "Scheduling")]
    policy: Option<PolicyName>,

    /// What the policy draws its decisions from: the same seed is the same execution
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Scheduling")]
    seed: Option<u64>,
}

impl Deciding {
    /// As it is typed for `raddle run`.
    fn words(self) -> Vec<OsString> {
        let policy = self.policy.map(|policy| format!("--policy={}", policy.word()));
        let seed = self.seed.map(|seed| format!("--seed={seed}"));
        policy.into_iter().chain(seed).map(OsString::from).collect()
    }
}

impl Words {
    /// Those for Cargo, and those behind `--`. Clap keeps a `--` among the words or takes it away,
    /// depending on what stands before it; so it is looked for where it was typed.
    fn split(&self, typed: &[OsString]) -> (&[OsString], &[OsString]) {
        let Some(at) = typed.iter().position(|word| word == "--") else {
            return (&self.words, &[]);
        };
        let behind = typed.len() - at - 1;
        let (front, behind) = self.words.split_at(self.words.len().saturating_sub(behind));
        (front.strip_suffix(&["--".into()]).unwrap_or(front), behind)
    }
}

impl Cargo {
    /// Runs the subcommand.
    pub fn run(self, settings: &Settings) -> Result<u8, Failure> {
        let typed: Vec<OsString> = std::env::args_os().collect();
        let (What::Test(words) | What::Bench(words) | What::Run(words)) = &self.what;
        // What is set for `raddle run` of forms and words is about the one report, not each test's.
        let mut telling = RunCommand::telling_as_set(settings)?;
        telling.forms = words.forms.or(&telling.forms);
        telling.forms.check()?;
        match self.what {
            What::Test(words) => {
                let (cargo, harness) = words.split(&typed);
                let executables = build(&["test", "--no-run"], cargo)?;
                let harnesses = executables.iter().filter(|e| e.is_test);
                let tests = tests::list(harnesses, harness)?;
                report(tests, &telling, settings, &words.deciding.words())
            }
            What::Bench(words) => {
                let (cargo, harness) = words.split(&typed);
                let executables = build(&["bench", "--no-run"], cargo)?;
                let tests = executables.iter().filter(|e| e.is_test || e.is_bench);
                let whole = |executable: &Executable| {
                    let arguments = ["--bench".into()].iter().chain(harness).cloned().collect();
                    Test { executable: executable.clone(), name: String::new(), arguments }
                };
                let tests = tests.map(whole).collect();
                report(tests, &telling, settings, &words.deciding.words())
            }
            What::Run(words) => {
                let (cargo, arguments) = words.split(&typed);
                let typed = [words.forms.typed(), words.deciding.words()].concat();
                run(&build(&["build"], cargo)?, &typed, arguments, settings)
            }
        }
    }
}

/// The one program that was built, instead of this command.
fn run(
    executables: &[Executable],
    typed: &[OsString],
    arguments: &[OsString],
    settings: &Settings,
) -> Result<u8, Failure> {
    let programs: Vec<&Executable> = executables.iter().filter(|e| e.is_program).collect();
    let program = match programs.as_slice() {
        [one] => one,
        [] => return Err(Failure::Other("Cargo built no program here".into())),
        many => {
            let names: Vec<&str> = many.iter().map(|e| e.name.as_str()).collect();
            let names = names.join(", ");
            let why = format!("there are several programs: {names}; choose one with --bin NAME");
            return Err(Failure::Other(why));
        }
    };
    let mut raddle = raddle(settings)?;
    raddle.arg("run").args(typed).arg("--").arg(&program.path).args(arguments);
    let error = raddle.exec();
    Err(Failure::Other(format!("starting raddle run: {error}")))
}

/// This command, with the file and the profile that were asked for.
fn raddle(settings: &Settings) -> Result<Command, Failure> {
    let exe = std::env::current_exe().map_err(Failure::during("finding this command"))?;
    let mut raddle = Command::new(exe);
    if let Some((file, profile)) = settings.asked_for() {
        raddle.env("RADDLE_CONFIG", file);
        profile.map(|profile| raddle.env("RADDLE_PROFILE", profile));
    }
    Ok(raddle)
}

/// Runs tests and reports what they came to.
fn report(
    tests: Vec<Test>,
    telling: &Telling,
    settings: &Settings,
    deciding: &[OsString],
) -> Result<u8, Failure> {
    if tests.is_empty() {
        eprintln!("raddle: no tests");
        return Ok(0);
    }
    let place = Run::make(None)?;
    let output = telling.open().inspect_err(|_| place.give_up())?;
    let interrupt = Interrupt::watch();
    let quiet = telling.verbosity.quiet;
    let out = &place.path().join("tests");
    let running = Running { out, interrupt: &interrupt, settings, deciding, quiet };
    let ran = running.all(&tests).inspect_err(|_| place.give_up())?;
    let count = |wanted: fn(&Ended) -> bool| ran.iter().filter(|(ended, _)| wanted(ended)).count();
    let passed = count(|ended| matches!(ended, Ended::Passed));
    let failed = count(|ended| matches!(ended, Ended::Failed(_)));
    let broken = count(|ended| matches!(ended, Ended::Broken(_)));
    let raced = count(|ended| matches!(ended, Ended::Raced));
    let run = ran.len();
    let reports: Vec<Report> = ran.into_iter().filter_map(|(_, report)| report).collect();
    let merged = merge(reports);
    let tests_run = if run == 1 { "1 test".to_owned() } else { format!("{run} tests") };
    let mut tell = format!("{tests_run}: {passed} passed, {raced} with findings, {failed} failed");
    if broken > 0 {
        tell += &format!(", {broken} could not be watched");
    }
    if run < tests.len() {
        tell += &format!("; {} not run: interrupted", tests.len() - run);
    }
    let mut found = false;
    if let Some(merged) = &merged {
        found = merged.summary.findings > 0;
        if !quiet {
            eprintln!();
        }
        telling.tell(merged, &place, output)?;
    }
    eprintln!("raddle: {tell}");
    Ok(match () {
        () if broken > 0 => raddle_execute::EXIT_FAILED,
        () if found => FOUND,
        () if failed > 0 || run < tests.len() => TESTS_FAILED,
        () => 0,
    })
}

#[cfg(test)]
mod split {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        words: Words,
    }

    #[test]
    fn words_are_cargos_up_to_the_dashes() {
        let split = |typed: &[&str]| {
            let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
            let only = Only::try_parse_from(&typed).unwrap();
            let (cargo, behind) = only.words.split(&typed);
            (cargo.to_vec(), behind.to_vec())
        };
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(split(&["x"]), (vec![], vec![]));
        assert_eq!(split(&["x", "--lib"]), (words(&["--lib"]), vec![]));
        assert_eq!(split(&["x", "--", "a", "--b"]), (vec![], words(&["a", "--b"])));
        assert_eq!(split(&["x", "--lib", "--", "a"]), (words(&["--lib"]), words(&["a"])));
        assert_eq!(split(&["x", "-p", "y", "--"]), (words(&["-p", "y"]), vec![]));
        let both = split(&["x", "--html", "f", "--lib", "--", "--", "a"]);
        assert_eq!(both, (words(&["--lib"]), words(&["--", "a"])));
    }
}

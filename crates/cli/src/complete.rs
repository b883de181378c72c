//! `raddle completions` and `raddle man`: made from the same table of options as the command line.

use crate::Raddle;
use crate::cargo::Cargo;
use crate::failure::Failure;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use raddle_report::nearest::did_you_mean;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints completions for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
      raddle completions bash > ~/.local/share/bash-completion/completions/raddle
      raddle completions zsh > ~/.zfunc/_raddle
      raddle completions fish > ~/.config/fish/completions/raddle.fish")]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut offered(), "raddle", &mut text);
        print(&text)
    }
}

/// Prints the manual page, or writes those of all commands to a directory
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
      raddle man | man -l -
      raddle man --dir ~/.local/share/man/man1")]
pub struct Man {
    /// The page of this command
    command: Option<String>,

    /// Write raddle.1, cargo-raddle.1 and a page for each command to this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let pages = pages();
        if let Some(directory) = &self.dir {
            for (name, command) in &pages {
                write(directory, command, name)?;
            }
            return Ok(0);
        }
        let wanted = match self.command.as_deref() {
            None => "raddle".to_owned(),
            Some("cargo") => CARGO_PAGE.to_owned(),
            Some(command) => format!("raddle-{command}"),
        };
        match pages.iter().find(|(name, _)| *name == wanted) {
            Some((name, command)) => print(&page(command, name)),
            None => {
                let command = self.command.as_deref().unwrap_or_default();
                let names = pages.iter().filter_map(|(name, _)| name.strip_prefix("raddle-"));
                let near = did_you_mean(command, names);
                Err(Failure::Other(format!("there is no command {command}{near}")))
            }
        }
    }
}

/// The page of `cargo raddle`, named as those of Cargo's other commands are.
const CARGO_PAGE: &str = "cargo-raddle";

/// The command without what only our own processes call, and without Cargo's way to call it.
fn offered() -> clap::Command {
    let whole = Raddle::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set());
    clap::Command::new("raddle")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments())
        .subcommands(shown)
}

/// `cargo raddle` by itself, as its users type it.
pub fn cargo_raddle() -> clap::Command {
    let whole = Raddle::command();
    let command = clap::Command::new(CARGO_PAGE).bin_name("cargo raddle");
    Cargo::augment_args(command).args(whole.get_arguments()).subcommand_required(true)
}

/// Every page with its name.
fn pages() -> Vec<(String, clap::Command)> {
    let mut raddle = Raddle::command();
    raddle.build();
    let shown = raddle.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help");
    let shown = shown.map(|command| (format!("raddle-{}", command.get_name()), command.clone()));
    let mut pages: Vec<(String, clap::Command)> = shown.collect();
    pages.insert(0, ("raddle".into(), raddle));
    let mut cargo = cargo_raddle();
    cargo.build();
    pages.push((CARGO_PAGE.into(), cargo));
    pages
}

fn page(command: &clap::Command, name: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let after = command.get_after_long_help().or(command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let command = command.clone().name(name.to_owned()).version(env!("CARGO_PKG_VERSION"));
    let has_commands = command.get_subcommands().any(|c| !c.is_hide_set());
    let page = clap_mangen::Man::new(command);
    // Writing to memory cannot fail.
    let _ = page.render_title(&mut text);
    let _ = page.render_name_section(&mut text);
    text.extend(synopsis(&usage).bytes());
    let _ = page.render_description_section(&mut text);
    let _ = page.render_options_section(&mut text);
    if has_commands {
        let _ = page.render_subcommands_section(&mut text);
    }
    text.extend(sections(&after).bytes());
    let _ = page.render_version_section(&mut text);
    text
}

/// How it is typed, as `--help` says it: the generator's own synopsis knows no `--`.
fn synopsis(usage: &str) -> String {
    let usage = usage.strip_prefix("Usage:").unwrap_or(usage).trim();
    format!(".SH SYNOPSIS\n{}\n", literal(usage))
}

/// What stands below the options of `--help`, as sections of a page: a line `Examples:` begins one of that
/// name, and so do words before a colon that a manual has a name for; what has no head is notes.
fn sections(after: &str) -> String {
    let mut page = String::new();
    let mut before = "";
    let mut in_section = false;
    for line in after.lines() {
        let begins = before.is_empty();
        let (head, rest) = match line.split_once(':') {
            Some(("Exit codes", rest)) if begins => (Some("EXIT STATUS".to_owned()), rest.trim()),
            Some((head, "")) if begins && !head.starts_with(' ') => (Some(head.to_uppercase()), ""),
            _ if begins && !line.is_empty() && !line.starts_with(' ') => {
                (Some("NOTES".to_owned()), line)
            }
            _ => (None, line),
        };
        if let Some(head) = head {
            if in_section {
                page += ".fi\n";
            }
            page += &format!(".SH \"{head}\"\n.nf\n");
            in_section = true;
        }
        if !(rest.is_empty() && line != rest) {
            page += &(literal(rest) + "\n");
        }
        before = line;
    }
    if in_section { page + ".fi\n" } else { page }
}

/// A line that roff takes as it is.
fn literal(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

fn write(directory: &Path, command: &clap::Command, name: &str) -> Result<(), Failure> {
    let file = directory.join(format!("{name}.1"));
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&file, page(command, name)))
        .map_err(Failure::during(format_args!("writing {}", file.display())))
}

/// A reader that has had enough is no error.
fn print(text: &[u8]) -> Result<u8, Failure> {
    let _ = std::io::stdout().write_all(text);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_help_ends_with_has_its_sections() {
        let after = "Exit codes: 0, or\n1 if not.\n\nExamples:\n  One\n      raddle x\n\nMore is elsewhere.";
        assert_eq!(
            sections(after),
            ".SH \"EXIT STATUS\"\n.nf\n0, or\n1 if not.\n\n.fi\n.SH \"EXAMPLES\"\n.nf\n  One\n      raddle x\n\n.fi\n.SH \"NOTES\"\n.nf\nMore is elsewhere.\n.fi\n"
        );
        assert_eq!(literal(".x -y \\n"), "\\&.x \\-y \\en");
    }

    #[test]
    fn every_page_has_the_usual_sections() {
        for (name, command) in &pages() {
            let text = String::from_utf8(page(command, name)).unwrap();
            assert!(!text.contains("EXTRA"), "{text}");
            assert!(text.contains("EXAMPLES") || text.contains("START HERE"), "{text}");
        }
    }

    #[test]
    fn what_only_our_own_processes_call_is_not_offered() {
        let pages: Vec<String> = pages().into_iter().map(|(name, _)| name).collect();
        assert!(
            ["raddle", "raddle-run", CARGO_PAGE].iter().all(|name| pages.contains(&(*name).into()))
        );
        let mut completions = Vec::new();
        clap_complete::generate(Shell::Bash, &mut offered(), "raddle", &mut completions);
        let completions = String::from_utf8(completions).unwrap();
        assert!(completions.contains("raddle__subcmd__hunt"), "{completions}");
        for hidden in ["trial", "as-child", "cargo"] {
            assert!(!pages.contains(&format!("raddle-{hidden}")), "{pages:?}");
            assert!(!completions.contains(&format!(" {hidden} ")), "{hidden}: {completions}");
        }
    }

    #[test]
    fn a_synopsis_is_what_is_typed() {
        let line = |wanted: &str| {
            let pages = pages();
            let (name, command) = pages.iter().find(|(name, _)| name == wanted).unwrap();
            let text = String::from_utf8(page(command, name)).unwrap();
            let (_, rest) = text.split_once(".SH SYNOPSIS\n").unwrap();
            rest.lines().next().unwrap().to_owned()
        };
        assert_eq!(line("raddle-run"), "raddle run [OPTIONS] \\-\\- <PROGRAM> [ARGUMENTS]...");
        assert_eq!(line(CARGO_PAGE), "cargo raddle [OPTIONS] <COMMAND>");
    }
}

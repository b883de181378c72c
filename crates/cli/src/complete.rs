//! `raddle completions` and `raddle man`: made from the same table of options as the command line.

use crate::Raddle;
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
        clap_complete::generate(self.shell, &mut Raddle::command(), "raddle", &mut text);
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

    /// Write raddle.1 and a page for each command to this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let mut raddle = Raddle::command();
        raddle.build();
        if let Some(directory) = &self.dir {
            write(directory, &raddle, "raddle")?;
            for subcommand in raddle.get_subcommands().filter(|c| c.get_name() != "help") {
                write(directory, subcommand, &format!("raddle-{}", subcommand.get_name()))?;
            }
            return Ok(0);
        }
        match &self.command {
            None => print(&page(&raddle, "raddle")),
            Some(name) => match raddle.find_subcommand(name) {
                Some(subcommand) => print(&page(subcommand, &format!("raddle-{name}"))),
                None => {
                    let names = raddle.get_subcommands().map(clap::Command::get_name);
                    let near = did_you_mean(name, names);
                    Err(Failure::Other(format!("there is no command {name}{near}")))
                }
            },
        }
    }
}

fn page(command: &clap::Command, name: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let after = command.get_after_long_help().or(command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    let command = command.clone().name(name.to_owned()).version(env!("CARGO_PKG_VERSION"));
    let has_commands = command.get_subcommands().any(|c| !c.is_hide_set());
    let page = clap_mangen::Man::new(command);
    // Writing to memory cannot fail.
    let _ = page.render_title(&mut text);
    let _ = page.render_name_section(&mut text);
    let _ = page.render_synopsis_section(&mut text);
    let _ = page.render_description_section(&mut text);
    let _ = page.render_options_section(&mut text);
    if has_commands {
        let _ = page.render_subcommands_section(&mut text);
    }
    text.extend(sections(&after).bytes());
    let _ = page.render_version_section(&mut text);
    text
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
        let mut raddle = Raddle::command();
        raddle.build();
        for command in std::iter::once(&raddle).chain(raddle.get_subcommands()) {
            let text = String::from_utf8(page(command, command.get_name())).unwrap();
            assert!(!text.contains("EXTRA"), "{text}");
            let shown = !command.is_hide_set() && command.get_name() != "help";
            assert!(!shown || text.contains("EXAMPLES") || text.contains("START HERE"), "{text}");
        }
    }
}

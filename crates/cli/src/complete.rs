//! `raddle completions` and `raddle man`: made from the same table of options as the command line.

use crate::Raddle;
use crate::failure::Failure;
use crate::nearest::did_you_mean;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
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
    let command = command.clone().name(name.to_owned()).version(env!("CARGO_PKG_VERSION"));
    // Writing to memory cannot fail.
    let _ = clap_mangen::Man::new(command).render(&mut text);
    text
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

//! How a report is told once it is there: on standard error or in a file, in which form, and in how many
//! words. The same for one run and for the merged report of many.

use crate::arguments::Verbosity;
use crate::failure::Failure;
use crate::forms::{Form, Forms};
use crate::known;
use crate::runs::{Run, write_rendering};
use crate::terminal;
use clap::Args;
use raddle_report::Report;
use raddle_report::findings::text::{self, Style};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// How a report is told.
#[derive(Debug, Args)]
pub struct Telling {
    /// How the report is written
    #[arg(long, value_enum, default_value_t = Form::Text, help_heading = "Reporting")]
    format: Form,

    /// Write the report to this file instead of standard error (`-`: standard output)
    #[arg(long, value_name = "FILE", help_heading = "Reporting")]
    output: Option<PathBuf>,

    #[command(flatten)]
    pub forms: Forms,

    #[command(flatten)]
    pub verbosity: Verbosity,
}

impl Telling {
    /// The file that the report goes to instead of standard error, made before anything is run.
    pub fn open(&self) -> Result<Option<File>, Failure> {
        let create = |path: &PathBuf| {
            let file = match path == Path::new("-") {
                true => std::io::stdout().as_fd().try_clone_to_owned().map(File::from),
                false => File::create(path),
            };
            file.map_err(Failure::during(format_args!("writing {}", path.display())))
        };
        self.output.as_ref().map(create).transpose()
    }

    /// Somebody else tells: report.json is enough.
    pub fn leave_to_others(&mut self) {
        (self.format, self.output, self.forms) = (Form::Text, None, Forms::default());
    }

    /// Leaves the report in its run's directory and wherever else it belongs, and says what is in it.
    pub fn tell(&self, report: &Report, run: &Run, output: Option<File>) -> Result<(), Failure> {
        let written = run.write(report);
        for warning in &report.summary.warnings {
            self.verbosity.note(format_args!("warning: {warning}"));
        }
        let Verbosity { quiet, verbose } = self.verbosity;
        let base = Path::new(&report.target.cwd);
        let alone = output.is_none() && self.format != Form::Text && !quiet;
        match output {
            Some(file) => {
                let style = Style { everything: verbose, ..Style::plain(base) };
                write_rendering(report, self.format, file, &style)?;
            }
            None if quiet => {}
            None => {
                let stderr = std::io::stderr();
                let style = terminal::style(&stderr, base, verbose);
                write_rendering(report, self.format, stderr, &style)?;
            }
        }
        let forms = self.forms.write(report);
        if !alone {
            let unused = known::unused(&report.summary.unused_suppressions, verbose);
            if let Some(text) = unused {
                self.verbosity.note(text);
            }
            let file = written.as_ref().ok().map(|path| path.display().to_string());
            eprintln!("raddle: {}", text::summary(report, file.as_deref()));
            let named = written.as_ref().ok().and_then(|path| Run::named(path));
            let next = text::next(report, named.as_deref(), crate::is_known);
            if let Some(next) = next.filter(|_| !quiet) {
                eprintln!("{next}");
            }
        }
        forms?;
        written.map(|_| ())
    }
}

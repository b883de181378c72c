//! The forms of a report, and the files it is written to besides.

use crate::failure::Failure;
use crate::run::library::SourceFiles;
use clap::{Args, ValueEnum};
use raddle_report::Report;
use raddle_report::findings::forms::{Repository, github, junit, sarif};
use raddle_report::findings::html;
use raddle_report::findings::suppress::{Day, generate};
use raddle_report::findings::text::{self, Style};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people
    Text,
    /// For programs: raddle-report/1
    Json,
    /// For code-review pages and editors: SARIF 2.1.0
    Sarif,
    /// For CI servers: JUnit XML
    Junit,
    /// For GitHub workflows: annotation lines
    Github,
    /// For a browser: one self-contained page
    Html,
}

/// Files to write in other forms.
#[derive(Debug, Clone, Default, Args)]
pub struct Forms {
    /// Also write the report as a page for a browser
    #[arg(long, value_name = "FILE", help_heading = "Reporting")]
    html: Option<PathBuf>,

    /// Also write it as SARIF 2.1.0, for code-review pages and editors
    #[arg(long, value_name = "FILE", help_heading = "Reporting")]
    sarif: Option<PathBuf>,

    /// Also write it as JUnit XML, for CI servers
    #[arg(long, value_name = "FILE", help_heading = "Reporting")]
    junit: Option<PathBuf>,

    /// Also write a suppression for each finding, to be given a reason (`-` for standard output)
    #[arg(long, value_name = "FILE", help_heading = "Reporting")]
    gen_suppressions: Option<PathBuf>,
}

impl Forms {
    /// Is anything asked for?
    pub fn any(&self) -> bool {
        let Forms { html, sarif, junit, gen_suppressions } = self;
        [html, sarif, junit, gen_suppressions].iter().any(|file| file.is_some())
    }

    /// These, and where they ask for nothing those.
    pub fn or(&self, others: &Forms) -> Forms {
        let either = |one: &Option<PathBuf>, other: &Option<PathBuf>| {
            one.as_ref().or(other.as_ref()).cloned()
        };
        Forms {
            html: either(&self.html, &others.html),
            sarif: either(&self.sarif, &others.sarif),
            junit: either(&self.junit, &others.junit),
            gen_suppressions: either(&self.gen_suppressions, &others.gen_suppressions),
        }
    }

    /// As they would be typed.
    pub fn typed(&self) -> Vec<OsString> {
        let Forms { html, sarif, junit, gen_suppressions } = self;
        let options = [
            ("--html", html),
            ("--sarif", sarif),
            ("--junit", junit),
            ("--gen-suppressions", gen_suppressions),
        ];
        let asked = options.into_iter().filter_map(|(name, file)| Some((name, file.as_ref()?)));
        asked.flat_map(|(name, file)| [name.into(), file.into()]).collect()
    }

    /// Finds out early that there is no directory for a file: after a long run is too late.
    pub fn check(&self) -> Result<(), Failure> {
        let Forms { html, sarif, junit, gen_suppressions } = self;
        for file in [html, sarif, junit, gen_suppressions].into_iter().flatten() {
            let directory = file.parent().filter(|above| !above.as_os_str().is_empty());
            if let Some(directory) = directory.filter(|above| !above.is_dir()) {
                let what = format!("there is no directory {}", directory.display());
                return Err(Failure::Other(format!("writing {}: {what}", file.display())));
            }
        }
        Ok(())
    }

    /// Writes what was asked for.
    pub fn write(&self, report: &Report) -> Result<(), Failure> {
        for (file, form) in
            [(&self.html, Form::Html), (&self.sarif, Form::Sarif), (&self.junit, Form::Junit)]
        {
            if let Some(file) = file {
                write(file, &rendered(report, form))?;
            }
        }
        match &self.gen_suppressions {
            Some(file) => write(file, &generate(report)),
            None => Ok(()),
        }
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let written = match file == Path::new("-") {
        true => std::io::stdout().write_all(text.as_bytes()),
        false => std::fs::write(file, text),
    };
    written.map_err(Failure::during(format_args!("writing {}", file.display())))
}

/// A report in a form that has nothing to do with a screen.
pub fn rendered(report: &Report, form: Form) -> String {
    let root = repository(Path::new(&report.target.cwd));
    let repository = Repository { root: &root, has: &|path| path.exists() };
    match form {
        Form::Json => report.to_json(),
        Form::Sarif => {
            let log = sarif::log(report, repository);
            // Keys are strings and there are no maps of ours that could fail.
            serde_json::to_string_pretty(&log).unwrap_or_default() + "\n"
        }
        Form::Junit => junit::document(report, &now()),
        Form::Github => github::lines(report, repository),
        Form::Html => html::page(report, &mut SourceFiles::default()),
        Form::Text => {
            let mut out = Vec::new();
            // Writing to memory cannot fail.
            let _ = text::write(report, &Style::plain(&report.target.cwd), &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

/// The repository around a directory, or else the directory.
fn repository(directory: &Path) -> PathBuf {
    let root = directory.ancestors().find(|above| above.join(".git").exists());
    root.unwrap_or(directory).to_owned()
}

/// Seconds since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The day it is, by the clock of the world.
pub fn today() -> Day {
    Day::since_epoch(seconds())
}

/// `2026-01-31T12:00:00`.
fn now() -> String {
    let of_day = seconds() % 86_400;
    format!("{}T{:02}:{:02}:{:02}", today(), of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_comes_before_what_is_set() {
        let html = |file: &str| Forms { html: Some(file.into()), ..Forms::default() };
        let set = Forms { junit: Some("j.xml".into()), ..html("set.html") };
        assert_eq!(
            html("typed.html").or(&set).typed(),
            ["--html", "typed.html", "--junit", "j.xml"]
        );
        assert_eq!(Forms::default().or(&set).typed(), ["--html", "set.html", "--junit", "j.xml"]);
    }
}

//! Looking for races on behalf of another command: `raddle run` in a process of its own.

use crate::child;
use crate::failure::Failure;
use crate::runs::{self, Run};
use crate::scheduling::{ScheduleArguments, Time};
use raddle_execute::RunDirectory;
use raddle_report::Report;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Detection<'a> {
    /// The program and its arguments.
    pub program: &'a [OsString],
    /// Where, if not here.
    pub cwd: Option<&'a Path>,
    /// Hook files beside the shipped ones.
    pub hooks: &'a [PathBuf],
    /// Who decides, if not the kernel.
    pub schedule: Option<ScheduleArguments>,
    /// What the target sees of time.
    pub time: Time,
    /// How long it may take.
    pub timeout: Duration,
}

impl Detection<'_> {
    /// As the user would: with the target's streams and our news. Returns the report's file.
    pub fn openly(&self) -> Result<PathBuf, Failure> {
        let mut command = self.command(&[])?;
        self.check(command.status())?;
        Run::find(None)
    }

    /// Without a word, into this directory.
    pub fn quietly(&self, out: &Path) -> Result<Report, Failure> {
        let mut command = self.command(&["--quiet", "--out", &out.to_string_lossy()])?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.check(command.status())?;
        runs::read(&out.join(runs::REPORT))
    }

    /// Without a word and without a trace.
    pub fn aside(&self) -> Result<Report, Failure> {
        let directory = RunDirectory::temporary()?;
        self.quietly(&directory.path().join("run"))
    }

    fn command(&self, options: &[&str]) -> Result<Command, Failure> {
        let mut command = child::ours()?;
        command.args(["run", "--time", self.time.word(), "--timeout"]);
        command.arg(format!("{}ms", self.timeout.as_millis())).args(options);
        command.args(self.schedule.iter().flat_map(ScheduleArguments::words));
        for file in self.hooks {
            command.arg("--hooks").arg(file);
        }
        command.arg("--").args(self.program);
        if let Some(cwd) = self.cwd {
            command.current_dir(cwd);
        }
        Ok(command)
    }

    fn check(&self, status: std::io::Result<std::process::ExitStatus>) -> Result<(), Failure> {
        match status.map_err(Failure::during("looking for races"))?.code() {
            Some(125..=127) | None => {
                Err(Failure::Other("`raddle run` failed on this program".into()))
            }
            Some(_) => Ok(()),
        }
    }
}

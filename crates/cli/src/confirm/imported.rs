//! `--import`: what other tools reported, as findings of a run of our own.

use super::Confirm;
use crate::events::find_module;
use crate::failure::Failure;
use crate::run::library::Shelf;
use crate::runs::Run;
use crate::serving::Servers;
use crate::trial::{Ending, Plan, run_many};
use raddle_execute::{RunDirectory, target};
use raddle_report::findings::{Finding, Target, Tool};
use raddle_report::import::{self, Candidate, Place};
use raddle_wire::options::{PolicyChoice, ScheduleOptions};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

impl Confirm {
    /// Makes a run of what another tool wrote; returns its report's file, or nothing where the tool
    /// found no race.
    pub(super) fn import(&self, log: &Path) -> Result<Option<PathBuf>, Failure> {
        let context = || format!("importing {}", log.display());
        let elf = target::resolve(&self.program, None)?.elf;
        let elf = elf.canonicalize().unwrap_or(elf);
        let candidates = import::import(log).map_err(Failure::reading(context(), log))?;
        if candidates.is_empty() {
            return Ok(None);
        }
        let mut tools: Vec<String> = candidates.iter().map(|c| c.tool.to_string()).collect();
        tools.dedup();
        let tool = Tool {
            name: "raddle".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            detector: format!("imported from {}", tools.join(", ")),
        };
        let cwd = std::env::current_dir().map_err(Failure::during(context()))?;
        let target = Target {
            argv: self.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            cwd: cwd.to_string_lossy().into_owned(),
            hooks: Vec::new(),
        };
        // A build for ThreadSanitizer often has another name than the program itself.
        let mut module = |name: Option<&str>| {
            let found = name.and_then(|name| find_module(name, &elf));
            found.unwrap_or_else(|| elf.clone()).to_string_lossy().into_owned()
        };
        let shelf = &mut Shelf::new();
        let mut report = import::report(&candidates, tool, target, &mut module, shelf);
        report.outcome.exit = self.usual_exit(&cwd)?;
        self.complete(&candidates, &mut report.findings)?;
        let run = Run::make(None)?;
        run.write(&report).map(Some).inspect_err(|_| run.give_up())
    }

    /// How the program ends when nobody provokes anything.
    fn usual_exit(&self, cwd: &Path) -> Result<Option<i32>, Failure> {
        let scratch = RunDirectory::temporary()?;
        let plan = Plan {
            program: self.program.clone(),
            cwd: cwd.to_owned(),
            limit_ms: self.timeout.as_millis() as u64,
            hooks: self.hooks.clone(),
            record: false,
            schedule: ScheduleOptions {
                policy: PolicyChoice::Random,
                seed: self.seed,
                time: self.time.mode(),
                watch: Vec::new(),
                lock_points: false,
                early_time: false,
                process: None,
                cycle: Vec::new(),
            },
        };
        let mut exit = None;
        let one = Servers::none(self.verbosity);
        run_many(&[plan], &one, scratch.path(), &mut |_, result, _| {
            exit = result.and_then(|result| match result.end {
                Ending::Exit(code) => Some(code),
                Ending::Signal(_) | Ending::Hang | Ending::Deadlock | Ending::NoProgress => None,
            });
            true
        })?;
        Ok(exit)
    }

    /// DRD knows one access only: the detector of our own may know the other.
    fn complete(&self, candidates: &[Candidate], findings: &mut [Finding]) -> Result<(), Failure> {
        if candidates.iter().all(|candidate| candidate.other.is_some()) {
            return Ok(());
        }
        self.verbosity.note("looking for the other side of accesses that stand alone");
        let ours = self.detection(&self.program, None, &self.hooks).aside(self.seed)?;
        for (candidate, finding) in candidates.iter().zip(findings) {
            let alone = candidate.access.stack.first().filter(|_| candidate.other.is_none());
            let known = alone.and_then(|place| ours.findings.iter().find(|f| has(f, place)));
            if let Some(known) = known {
                finding.accesses.clone_from(&known.accesses);
                finding.location.clone_from(&known.location);
                finding.fingerprint.clone_from(&known.fingerprint);
            }
        }
        Ok(())
    }

    /// The words of the program, for a plan.
    pub(super) fn words(argv: &[String]) -> Vec<OsString> {
        argv.iter().map(OsString::from).collect()
    }
}

/// Is one access of the finding at this place?
fn has(finding: &Finding, place: &Place) -> bool {
    let name = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
    let file = place.file.as_deref().and_then(name);
    finding.accesses.iter().filter_map(|access| access.frame()).any(|frame| {
        file.is_some() && frame.line == place.line && frame.file.as_deref().and_then(name) == file
    })
}

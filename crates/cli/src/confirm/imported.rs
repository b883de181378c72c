//! `--import`: what other tools reported, as findings of a run of our own.

use super::Confirm;
use crate::events::find_module;
use crate::failure::Failure;
use crate::run::library::Shelf;
use crate::runs::Run;
use crate::serving::Servers;
use crate::trial::{Ending, Plan, run_many};
use raddle_execute::{RunDirectory, target};
use raddle_model::finding::TouchKind;
use raddle_report::findings::{Access, Finding, Frame, Target, Tool};
use raddle_report::function_names::same_function;
use raddle_report::import::{self, Candidate, Place, Side};
use raddle_symbols::demangle;
use raddle_wire::options::{PolicyChoice, ScheduleOptions};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

impl Confirm {
    /// Makes a run of what another tool wrote; returns its report's file, or nothing where the tool
    /// found no race.
    pub(super) fn import(&self, log: &Path) -> Result<Option<PathBuf>, Failure> {
        let context = || format!("importing {}", log.display());
        let elf = target::resolve(&self.program, None)?.elf;
        let elf = elf.canonicalize().unwrap_or(elf);
        let mut candidates = import::import(log).map_err(Failure::reading(context(), log))?;
        candidates.iter_mut().for_each(demangle_names);
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
                seed: self.first_seed(),
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
        let ours = self.detection(&self.program, None, &self.hooks).aside()?;
        for (candidate, finding) in candidates.iter().zip(findings) {
            let alone = Some(&candidate.access).filter(|_| candidate.other.is_none());
            let known = alone.and_then(|side| likest(&ours.findings, side));
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

/// Valgrind writes variables by their linker names, and functions with --demangle=no.
fn demangle_names(candidate: &mut Candidate) {
    let demangled = |name: &mut Option<String>| {
        if let Some(name) = name {
            *name = demangle::display(name);
        }
    };
    demangled(&mut candidate.variable);
    let sides = std::iter::once(&mut candidate.access).chain(&mut candidate.other);
    for place in sides.flat_map(|side| &mut side.stack) {
        demangled(&mut place.function);
    }
}

/// The finding with an access at the side's line: of several, one whose access is of its kind and size.
fn likest<'a>(findings: &'a [Finding], side: &Side) -> Option<&'a Finding> {
    let has = |finding: &&Finding, wanted: &dyn Fn(&Access) -> bool| {
        finding.accesses.iter().any(|access| is_at(access, side) && wanted(access))
    };
    let is_like = |access: &Access| {
        let kind = match access.kind {
            TouchKind::Read => !side.writes,
            TouchKind::Write | TouchKind::Free => side.writes,
            TouchKind::Update => true,
        };
        kind && side.size.is_none_or(|size| size == access.size)
    };
    let alike = findings.iter().find(|finding| has(finding, &is_like));
    alike.or_else(|| findings.iter().find(|finding| has(finding, &|_| true)))
}

/// Is the access at the side's line, in its function?
fn is_at(access: &Access, side: &Side) -> bool {
    let Some(place) = side.stack.first() else { return false };
    access.stack.first().into_iter().chain(access.frame()).any(|frame| is_place(frame, place))
}

fn is_place(frame: &Frame, place: &Place) -> bool {
    let is_function = match (&place.function, &frame.function) {
        (Some(one), Some(other)) => same_function(one, other),
        _ => true,
    };
    let name = file_name(&place.file);
    name.is_some() && frame.line == place.line && file_name(&frame.file) == name && is_function
}

fn file_name(path: &Option<String>) -> Option<&OsStr> {
    path.as_deref().and_then(|path| Path::new(path).file_name())
}

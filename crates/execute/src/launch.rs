//! Starting the target: the engine's library is itself an executable that loads the program named
//! in its environment, so a launch is one spawn, without a shell, a helper process or `ptrace`.
//!
//! The engine takes its options from one environment variable and has a small parser for them:
//! words are separated by blanks, a word may be quoted by one of three characters and knows no
//! escape, and the probe's own argument is parsed a second time. What cannot be said in that
//! syntax is refused in a sentence before anything runs.

use crate::engine::EngineFiles;
use crate::target::Target;
use crate::{EngineMode, ExecuteError, Execution, ProbeRequest};
use nix::sys::personality::{self, Persona};
use raddle_wire::options::{self, DetectorChoice, ProbeOptions};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Name of the probe's options in the run directory.
const OPTIONS_FILE: &str = "options.json";
/// All variables of the engine begin so; the user's own, if any, must not steer our engine.
const ENGINE_VARIABLES: &[u8] = b"DYNAMORIO_";
/// The engine's limit for one path (`MAXIMUM_PATH`), less the terminator.
const MAX_PATH: usize = 511;
/// So often a thread goes through a block before the engine makes a trace of it, for all threads. Each thread counts by itself, and each
/// time leaves the code cache to do so: with the engine's 50, of 512 threads that took a lock 40 times each none came so far, and
/// this was an eighth of what their accesses cost. Programs of few threads do not notice.
const TRACE_THRESHOLD: u32 = 20;
/// The engine's limit for all options (`MAX_OPTIONS_STRING`), less the terminator.
const MAX_OPTIONS: usize = 2047;
/// How far the log may run ahead of us: about a million events, a second of ours. Larger only
/// costs page cache; smaller makes the target wait whenever we are not scheduled.
const MAX_LAG: u64 = 32 << 20;

/// Makes the probe hang, so that it can be seen what comes of it; for tests.
const REHEARSE_HANG_VARIABLE: &str = "RADDLE_REHEARSE_HANG";

/// What a target is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// One execution, with our own streams.
    Alone,
    /// Many: it waits at `main`. It reads nothing, and what it writes is ours to read.
    Serving,
}

/// Starts the target.
pub(crate) fn launch(
    execution: &Execution,
    target: &Target,
    files: &EngineFiles,
    start: Start,
) -> Result<Child, ExecuteError> {
    let mut command = Command::new(&files.engine);
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(ENGINE_VARIABLES) {
            command.env_remove(name);
        }
    }
    let (name, rest) = target.arguments.split_first().ok_or_else(|| ExecuteError::Path {
        path: target.elf.clone(),
        why: "there is no name to run it under",
    })?;
    command
        .arg0(name)
        .args(rest)
        .env("DYNAMORIO_EXE_PATH", &target.elf)
        .env("DYNAMORIO_RUNUNDER", "1")
        // The engine reads configuration from here, and from the user's home otherwise.
        .env("DYNAMORIO_CONFIGDIR", &execution.directory)
        .env("DYNAMORIO_OPTIONS", engine_options(execution, files)?);
    if let Some(cwd) = &execution.cwd {
        command.current_dir(cwd);
    }
    let shadow = wants_shadow(execution, target)?;
    if let EngineMode::Probe(request) = &execution.engine {
        write_options(execution, request, shadow, start == Start::Serving)?;
    }
    if start == Start::Serving {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let layout = match execution.fixed_layout {
        // It has room for more threads where the kernel places nothing at random; without, it manages.
        false if shadow => Layout::set(true).unwrap_or(Layout(None)),
        fixed => Layout::set(fixed)?,
    };
    let spawned = command.spawn();
    layout.restore();
    spawned.map_err(ExecuteError::during(format!("starting {}", files.engine.display())))
}

/// Is the probe to keep shadow memory? Not beside that of a sanitizer.
fn wants_shadow(execution: &Execution, target: &Target) -> Result<bool, ExecuteError> {
    let EngineMode::Probe(request) = &execution.engine else { return Ok(false) };
    let wanted =
        matches!(request.detector, Some(DetectorChoice::Hybrid | DetectorChoice::HappensBefore));
    Ok(wanted && target.sanitizer()?.is_none())
}

/// The calling thread's address-space layout, while a child inherits it.
struct Layout(Option<Persona>);

impl Layout {
    fn set(fixed: bool) -> Result<Self, ExecuteError> {
        if !fixed {
            return Ok(Layout(None));
        }
        let before = personality::get().and_then(|now| {
            personality::set(now | Persona::ADDR_NO_RANDOMIZE)?;
            Ok(now)
        });
        let what = "fixing the address-space layout (containers may forbid it)";
        before.map(|before| Layout(Some(before))).map_err(ExecuteError::during(what))
    }

    fn restore(self) {
        if let Some(before) = self.0 {
            // It was just set the other way, so it can be set back.
            let _ = personality::set(before);
        }
    }
}

fn write_options(
    execution: &Execution,
    request: &ProbeRequest,
    shadow: bool,
    serve: bool,
) -> Result<(), ExecuteError> {
    let directory = &execution.directory;
    let environment = std::env::vars_os();
    let options = ProbeOptions {
        version: options::VERSION,
        environment: environment.map(|(name, _)| name.to_string_lossy().into_owned()).collect(),
        directory: utf8(directory)?.to_owned(),
        count: request.count,
        memory: request.memory,
        sync: request.sync,
        functions: request.functions,
        output: request.output,
        stacks: request.stacks,
        implicit_accesses: request.implicit_accesses,
        only_places: request.only_places.clone(),
        detector: request.detector,
        rules: request.rules,
        shadow,
        follow: execution.follow,
        command: std::process::id(),
        max_lag: MAX_LAG,
        private: request.hooks.private.clone(),
        hooks: request.hooks.hooks.clone(),
        schedule: request.schedule.clone(),
        silent: request.silent,
        debug: request.debug.clone(),
        serve,
        rehearse_hang: std::env::var_os(REHEARSE_HANG_VARIABLE).is_some(),
    };
    let file = directory.join(OPTIONS_FILE);
    let context = format!("writing {}", file.display());
    let text = serde_json::to_vec(&options).map_err(ExecuteError::during(context.clone()))?;
    std::fs::write(&file, text).map_err(ExecuteError::during(context))
}

/// The value of `DYNAMORIO_OPTIONS`.
fn engine_options(execution: &Execution, files: &EngineFiles) -> Result<String, ExecuteError> {
    let directory = &execution.directory;
    let mut options = vec!["-logdir".to_owned(), quoted(&[directory], utf8(directory)?)?];
    // Restartable sequences: the engine runs those it recognises twice and stops at those it does
    // not; refused, as by an older kernel, every program falls back on its own.
    options.push("-disable_rseq".to_owned());
    if !execution.follow {
        options.push("-no_follow_children".to_owned());
    }
    if let (EngineMode::Probe(_), Some(probe)) = (&execution.engine, &files.probe) {
        let file = directory.join(OPTIONS_FILE);
        for path in [probe, &file] {
            if utf8(path)?.contains(';') {
                return Err(unspeakable(path, "the engine cannot use a path with a semicolon"));
            }
        }
        // The engine takes this word apart at the semicolons, and parses the last part again.
        let client = format!("{};0;{}", utf8(probe)?, quoted(&[&file], utf8(&file)?)?);
        options.push(format!("-trace_threshold {TRACE_THRESHOLD}"));
        options.push("-code_api".to_owned());
        options.push("-client_lib".to_owned());
        options.push(quoted(&[probe, &file], &client)?);
    }
    let options = options.join(" ");
    if options.len() > MAX_OPTIONS {
        return Err(unspeakable(directory, "this path is too long for the engine's options"));
    }
    Ok(options)
}

/// `word` as one word for the engine's parser: quoted only when it must be.
fn quoted(paths: &[&PathBuf], word: &str) -> Result<String, ExecuteError> {
    let special = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\'' | '"' | '`');
    if !word.contains(special) {
        return Ok(word.to_owned());
    }
    match ['"', '\'', '`'].into_iter().find(|quote| !word.contains(*quote)) {
        Some(quote) => Ok(format!("{quote}{word}{quote}")),
        None => {
            let named = |p: &&PathBuf| p.to_string_lossy().contains(special);
            let path = paths.iter().copied().find(named).or(paths.first().copied());
            Err(unspeakable(
                path.map_or(Path::new(word), PathBuf::as_path),
                "the engine cannot use a path with this many blanks and kinds of quotes",
            ))
        }
    }
}

fn utf8(path: &Path) -> Result<&str, ExecuteError> {
    let text = path.as_os_str();
    if text.len() > MAX_PATH {
        return Err(unspeakable(path, "this path is too long for the engine"));
    }
    OsStr::to_str(text).ok_or_else(|| unspeakable(path, "this path is not UTF-8"))
}

fn unspeakable(path: &Path, why: &'static str) -> ExecuteError {
    ExecuteError::Path { path: path.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_wire::options::MemoryMode;

    fn request() -> ProbeRequest {
        ProbeRequest {
            hooks: raddle_hooks::merge(Vec::new()).unwrap(),
            count: false,
            memory: MemoryMode::Off,
            sync: true,
            functions: false,
            output: false,
            stacks: false,
            implicit_accesses: false,
            only_places: Vec::new(),
            detector: None,
            rules: raddle_wire::options::Rules::default(),
            schedule: None,
            silent: false,
            debug: None,
        }
    }

    fn options(directory: &str, probe: Option<&str>, follow: bool) -> Result<String, String> {
        let execution = Execution {
            program: Vec::new(),
            cwd: None,
            limit: None,
            stop_after: None,
            fixed_layout: false,
            follow,
            engine: probe.map_or(EngineMode::Bare, |_| EngineMode::Probe(request())),
            directory: directory.into(),
            keep_logs: false,
        };
        let files = EngineFiles { engine: "/e.so".into(), probe: probe.map(PathBuf::from) };
        engine_options(&execution, &files).map_err(|e| e.to_string())
    }

    #[test]
    fn options_say_what_was_asked() {
        assert_eq!(
            options("/run", None, false).unwrap(),
            "-logdir /run -disable_rseq -no_follow_children"
        );
        assert_eq!(
            options("/run", Some("/p.so"), true).unwrap(),
            "-logdir /run -disable_rseq -trace_threshold 20 -code_api -client_lib /p.so;0;/run/options.json"
        );
    }

    #[test]
    fn blanks_and_quotes_are_quoted_once_for_each_parse() {
        assert_eq!(
            options("/a b", Some("/p.so"), true).unwrap(),
            r#"-logdir "/a b" -disable_rseq -trace_threshold 20 -code_api -client_lib '/p.so;0;"/a b/options.json"'"#
        );
        assert_eq!(
            options("/it's", Some("/p q.so"), true).unwrap(),
            "-logdir \"/it's\" -disable_rseq -trace_threshold 20 -code_api \
             -client_lib `/p q.so;0;\"/it's/options.json\"`"
        );
    }

    #[test]
    fn what_the_syntax_cannot_say_is_refused() {
        let error = options("/it's \"a\" `b`", None, true).unwrap_err();
        assert!(error.contains("blanks and kinds of quotes"), "{error}");
        let error = options("/a;b", Some("/p.so"), true).unwrap_err();
        assert_eq!(error, "/a;b/options.json: the engine cannot use a path with a semicolon");
        let error = options(&format!("/{}", "x".repeat(MAX_PATH)), None, true).unwrap_err();
        assert!(error.ends_with("too long for the engine"), "{error}");
    }
}

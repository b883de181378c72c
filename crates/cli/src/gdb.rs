//! `raddle replay --gdb`: an execution once more, with a debugger.
//!
//! The probe stops the target, and the crate `raddle-gdb` serves what it finds. Here the two are brought
//! together, and whoever ends first takes the other along.

use crate::failure::Failure;
use crate::names::Names;
use crate::trial::{self, Ending, Hearing, Plan};
use raddle_execute::{Control, Observer, RunDirectory, target};
use raddle_gdb::{Connection, End, Farewell, Listener, Session};
use raddle_model::{Event, Place, StackId, ThreadId};
use raddle_wire::options::{DebugOptions, PlaceCount};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The socket's name in the run directory.
const SOCKET: &str = "gdb";
/// What the probe ends a target with that cannot go on.
const EXIT_STUCK: u8 = 66;
/// What the target died of that was not told how it died.
const SIGKILL: i32 = 9;

/// Executes a plan once, served to gdb at a port or at a socket. `None` if gdb has killed the target.
pub fn run(plan: &Plan, port: Option<u16>) -> Result<Option<(Ending, Control)>, Failure> {
    let directory = RunDirectory::temporary()?;
    let listener = match port {
        Some(port) => Listener::at_port(port),
        None => Listener::at_path(&directory.path().join(SOCKET)),
    };
    let program = target::resolve(&plan.program, Some(&plan.cwd))?.elf;
    // A person who thinks may take their time.
    let plan = Plan { limit_ms: u64::MAX, ..plan.clone() };
    let mut request = trial::request(&plan, Hearing::Threads)?;
    request.debug = Some(DebugOptions { starts: starts(&program) });
    let ending = raddle_gdb::Ending::default();
    let session = Session {
        listener: listener.map_err(Failure::during("waiting for gdb"))?,
        directory: directory.path().to_owned(),
        program: program.clone(),
        ending: ending.clone(),
        news: |sentence| eprintln!("raddle: {sentence}"),
    };
    let leash = Leash::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The target stands, and would not hear it. Where a signal cannot be taken, it does what it
        // always does.
        let _ = signal_hook::flag::register(signal, leash.pulled.clone());
    }
    let (ran, served) = std::thread::scope(|scope| {
        let serve = scope.spawn(|| {
            let served = session.run(|at| invite(at, &program), |line| leash.talks_by(line));
            if served.is_err() {
                // Nobody will let the target go on.
                leash.pull();
            }
            served
        });
        let mut watcher = Watcher { leash: &leash, process: None };
        let ran = trial::run_in(directory.path(), &plan, request, &mut watcher);
        ending.tell(match &ran {
            Ok((Ending::Exit(code), _)) => End::Exited(*code as u8),
            Ok((Ending::Signal(signal), _)) => End::Killed(*signal),
            Ok((Ending::Deadlock | Ending::NoProgress, _)) => End::Exited(EXIT_STUCK),
            Ok((Ending::Hang, _)) | Err(_) => End::Killed(SIGKILL),
        });
        (ran, serve.join())
    });
    let farewell = match served {
        Ok(served) => served.map_err(Failure::during("serving gdb"))?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let was_killed = farewell == Farewell::Killed || leash.is_pulled();
    Ok(Some(ran?).filter(|_| !was_killed))
}

/// Where the program begins for a person: its `main`, or, without names, its first instruction. The one
/// that Rust's compiler makes for the C library has no source; the one meant has.
fn starts(program: &Path) -> Vec<u64> {
    let mut names = Names::new();
    let names = names.symboliser();
    let mains: Vec<u64> = names.function_ranges(program, "main").iter().map(|r| r.0).collect();
    let has_source = |at: &u64| names.frames(program, *at).iter().any(|f| f.line.is_some());
    let written: Vec<u64> = mains.iter().copied().filter(has_source).collect();
    match (written.is_empty(), mains.is_empty()) {
        (false, _) => written,
        (true, false) => mains,
        (true, true) => names.entry(program).into_iter().collect(),
    }
}

/// Says what to type.
fn invite(listener: &Listener, program: &Path) {
    let (address, program) = (listener.address(), program.display().to_string());
    eprintln!("raddle: the target stands where the program begins; in another terminal, type");
    eprintln!(
        "  gdb -q -ex 'set sysroot /' -ex {} {}",
        quoted(&format!("target remote {address}")),
        quoted(&program)
    );
}

/// As one word of a shell's.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What holds the target when the session is to end before it.
#[derive(Debug, Default)]
struct Leash {
    pulled: Arc<AtomicBool>,
    line: Mutex<Option<Connection>>,
}

impl Leash {
    fn pull(&self) {
        self.pulled.store(true, Ordering::Relaxed);
    }

    fn is_pulled(&self) -> bool {
        self.pulled.load(Ordering::Relaxed)
    }

    fn talks_by(&self, line: Connection) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
    }

    fn hang_up(&self) {
        if let Some(line) = self.line.lock().unwrap_or_else(PoisonError::into_inner).take() {
            line.hang_up();
        }
    }
}

/// Hears of the target only who it is, and kills it when the leash is pulled: by a signal, or because
/// gdb cannot be served.
struct Watcher<'a> {
    leash: &'a Leash,
    process: Option<u32>,
}

impl Observer for Watcher<'_> {
    fn program(&mut self, process: u32) {
        self.process = Some(process);
    }

    fn idle(&mut self) {
        if self.leash.is_pulled() {
            self.leash.hang_up();
            if let Some(process) = self.process.take() {
                raddle_gdb::kill(process);
            }
        }
    }

    fn event(&mut self, _: u32, _: Event) {}
    fn stack(&mut self, _: u32, _: StackId, _: Vec<Place>) {}
    fn counts(&mut self, _: u32, _: ThreadId, _: Vec<PlaceCount>) {}
    fn event_counts(&mut self, _: u32, _: ThreadId, _: Vec<(String, Place, u64)>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("/usr/bin/bank-2.0"), "/usr/bin/bank-2.0");
        assert_eq!(quoted("target remote :99"), "'target remote :99'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}

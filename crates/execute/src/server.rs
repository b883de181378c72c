//! A target that serves: started once, it waits at `main` and makes a copy of itself for each
//! execution that is asked for (`raddle_wire::serve` says how). A copy costs a few milliseconds where
//! a start costs a tenth of a second.
//!
//! Where that cannot be done, or goes wrong, there is a sentence that says why; whoever asked starts
//! the target anew instead. A server that is dropped takes its copy with it.

mod channel;

use crate::control::Control;
use crate::facts::{FactsMaker, Question};
use crate::follow::{Followed, ProcessHandle};
use crate::hang::HangWatch;
use crate::judge::{Ended, LogEnd, judge};
use crate::launch::{self, Start};
use crate::supervise::descendants;
use crate::{
    EngineFiles, EngineMode, ExecuteError, Execution, Observer, Outcome, ProbeRequest, target,
};
use channel::Channel;
use raddle_model::{Event, Place, StackId, ThreadId};
use raddle_wire::log::{State, facts_file, log_file};
use raddle_wire::options::PlaceCount;
use raddle_wire::serve::Reply;
pub use raddle_wire::serve::Request;
use rustix::process::Signal;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The first and the longest pause between two looks at a copy's log: only a module that it loads by
/// itself makes it wait for us, and most end before the first.
const PAUSES: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(20)];
/// The pause while the target waits for us, or is on its way to `main`.
const EAGER_PAUSE: Duration = Duration::from_micros(500);
/// What a server may take to notice that its copy was killed: no time at all, and a thousand times
/// that on a machine that swaps.
const PATIENCE: Duration = Duration::from_secs(30);

/// A target that serves.
#[derive(Debug)]
pub struct Server {
    execution: Execution,
    child: Child,
    process: ProcessHandle,
    channel: Channel,
    facts: FactsMaker,
    /// What came of reading the modules that the target has at `main`.
    without_symbols: Vec<PathBuf>,
    warnings: Vec<String>,
    /// What the target wrote before `main`: so has every copy.
    before_main: Written,
}

/// What a target wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// To standard output.
    pub output: Vec<u8>,
    /// To standard error.
    pub errors: Vec<u8>,
}

/// An execution by a server.
#[derive(Debug)]
pub struct Served {
    /// What became of it.
    pub outcome: Outcome,
    /// What the target wrote.
    pub written: Written,
}

impl Server {
    /// Starts the target and waits until it stands at `main`. The sentence says why it cannot serve.
    pub fn start(execution: &Execution) -> Result<Server, String> {
        let EngineMode::Probe(request) = &execution.engine else {
            return Err("without the probe nobody serves".into());
        };
        let mut server = Server::launch(execution, request).map_err(|e| e.to_string())?;
        server.come_to_main()?;
        Ok(server)
    }

    fn launch(execution: &Execution, request: &ProbeRequest) -> Result<Server, ExecuteError> {
        let target = target::resolve(&execution.program, execution.cwd.as_deref())?;
        let files = EngineFiles::find(true)?;
        let pipes = channel::Pipes::make(&execution.directory)?;
        let directory = execution.directory.clone();
        let facts = FactsMaker::start(request.hooks.clone(), directory)
            .map_err(ExecuteError::during("starting a thread"))?;
        let mut child = launch::launch(execution, &target, &files, Start::Serving)?;
        let streams = (child.stdout.take(), child.stderr.take());
        let process = ProcessHandle::open(child.id());
        let channel = Channel::new(pipes, streams, ProcessHandle::open(child.id()))
            .inspect_err(|_| process.send(Signal::KILL))?;
        Ok(Server {
            execution: execution.clone(),
            process,
            child,
            channel,
            facts,
            without_symbols: Vec::new(),
            warnings: Vec::new(),
            before_main: Written::default(),
        })
    }

    fn come_to_main(&mut self) -> Result<(), String> {
        let started = Instant::now();
        let mut itself = Copy::of(self.child.id());
        loop {
            // Its last words are read after it is found to have ended.
            let is_over = self.channel.is_over();
            match self.channel.reply()? {
                Some(Reply::Ready) => break,
                Some(Reply::Cannot(why)) => return Err(why),
                Some(other) => return Err(format!("it said {other:?} before main")),
                None if is_over => return Err("it ends before main".into()),
                None => {}
            }
            if self.execution.limit.is_some_and(|limit| started.elapsed() > limit) {
                return Err("it does not come to main in time".into());
            }
            self.follow(&mut itself, &mut Deaf)?;
            if let Some(why) = itself.log.as_ref().and_then(|log| log.failure.clone()) {
                return Err(why);
            }
            self.channel.wait(EAGER_PAUSE);
        }
        self.before_main = self.channel.take_written();
        Ok(())
    }

    /// Executes the target once, from `main` on. The sentence says why the server is of no use any
    /// more; the execution then counts for nothing.
    pub fn execute(
        &mut self,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> Result<Served, String> {
        self.channel.ask(request)?;
        let started = Instant::now();
        let mut copy = Copy::of(0);
        let mut pause = PAUSES[0];
        let mut hangs = HangWatch::new();
        let status = loop {
            let is_over = self.channel.is_over();
            match self.channel.reply()? {
                Some(Reply::Started(pid)) => copy = Copy::of(pid),
                Some(Reply::Ended(status)) => break ExitStatus::from_raw(status),
                Some(Reply::Cannot(why)) => return Err(why),
                Some(Reply::Ready) => return Err("it came to main twice".into()),
                None if is_over => return Err("its server has ended".into()),
                None => {
                    let timed_out = self.execution.limit.filter(|l| started.elapsed() >= *l);
                    copy.keep_time(timed_out.is_some())?;
                    let left = self.execution.limit.map(|l| l.saturating_sub(started.elapsed()));
                    let most = if self.facts.busy() { EAGER_PAUSE } else { pause };
                    let waits = left.map_or(most, |left| left.min(most).max(EAGER_PAUSE));
                    if !self.channel.wait(waits) {
                        pause = (pause * 2).min(PAUSES[1]);
                        self.follow(&mut copy, observer)?;
                    }
                    copy.look_for_hangs(&mut hangs)?;
                }
            }
        };
        self.finish(copy, status, observer)
    }

    fn finish(
        &mut self,
        mut copy: Copy,
        status: ExitStatus,
        observer: &mut dyn Observer,
    ) -> Result<Served, String> {
        self.follow(&mut copy, observer)?;
        if let Some(log) = &mut copy.log {
            copy.forked |= !log.finish(observer).forked.is_empty();
        }
        self.clean_up(&copy);
        if copy.forked {
            return Err("it makes processes of its own".into());
        }
        let written = self.channel.take_written();
        let Written { output, errors } = self.before_main.clone();
        let written = Written {
            output: [output, written.output].concat(),
            errors: [errors, written.errors].concat(),
        };
        let ended = Ended {
            first: copy.pid,
            status,
            probed: true,
            timed_out: copy.killed.is_some(),
            stopped: false,
            stuck: None,
            hung: None,
            logs: copy.log.iter_mut().map(LogEnd::of).collect(),
            without_symbols: self.without_symbols.clone(),
            warnings: self.warnings.clone(),
            control: copy
                .log
                .as_mut()
                .map_or_else(Control::default, |log| std::mem::take(&mut log.control)),
        };
        let outcome = judge(ended).map_err(|e| e.to_string())?;
        Ok(Served { outcome, written })
    }

    /// Reads what a process has written to its log, and answers its questions.
    fn follow(&mut self, copy: &mut Copy, observer: &mut dyn Observer) -> Result<(), String> {
        let name = log_file(copy.pid, 0);
        if copy.log.is_none() && copy.pid != 0 {
            let place = self.execution.directory.join(&name);
            let opened = match File::options().read(true).write(true).open(place) {
                Ok(file) => Followed::open(&name, file, false),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            };
            copy.log = opened.map_err(|e| format!("{name}: {e}"))?;
        }
        let Some(log) = &mut copy.log else { return Ok(()) };
        let progress = log.look(observer);
        copy.forked |= !progress.forked.is_empty();
        for (request, path) in progress.questions {
            copy.questions = copy.questions.max(request);
            self.facts.ask(Question { log: 0, name: name.clone(), request, path });
        }
        for answer in self.facts.answers() {
            match answer.has_symbols {
                Ok(false) if !self.without_symbols.contains(&answer.question.path) => {
                    self.without_symbols.push(answer.question.path);
                }
                Ok(_) => {}
                Err(warning) => self.warnings.push(warning),
            }
            // A late answer to a copy that was killed concerns nobody.
            if answer.question.name == name {
                log.answered(answer.question.request);
            }
        }
        Ok(())
    }

    fn clean_up(&self, copy: &Copy) {
        let name = log_file(copy.pid, 0);
        // What cannot be removed now goes with the directory.
        let _ = std::fs::remove_file(self.execution.directory.join(&name));
        for request in 1..=copy.questions {
            let answer = facts_file(&name, request);
            let _ = std::fs::remove_file(self.execution.directory.join(answer));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let copies = descendants(self.child.id());
        for process in copies.into_iter().map(ProcessHandle::open) {
            process.send(Signal::KILL);
        }
        self.process.send(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A process with a log: a copy, or the server itself on its way to `main`.
#[derive(Debug)]
struct Copy {
    pid: u32,
    process: ProcessHandle,
    log: Option<Followed>,
    /// It has made processes of its own.
    forked: bool,
    /// Questions about modules that it has asked.
    questions: u32,
    /// When we killed it because it took too long.
    killed: Option<Instant>,
}

impl Copy {
    fn of(pid: u32) -> Copy {
        let process = ProcessHandle::open(pid);
        Copy { pid, process, log: None, forked: false, questions: 0, killed: None }
    }

    /// That it hangs in code of ours is an error.
    fn look_for_hangs(&mut self, hangs: &mut HangWatch) -> Result<(), String> {
        let Some(log) = self.log.as_mut().filter(|_| hangs.is_due()) else { return Ok(()) };
        let running = log.state() == State::Running;
        let found = if running { hangs.look(&[self.pid]) } else { hangs.look(&[]) };
        found.map_or(Ok(()), |hang| Err(hang.tell(&HashMap::new())))
    }

    /// Kills it when its time is up; that it goes on for long after that is an error.
    fn keep_time(&mut self, is_up: bool) -> Result<(), String> {
        match self.killed {
            Some(since) if since.elapsed() > PATIENCE => Err("a copy cannot be killed".into()),
            None if is_up => {
                self.killed = Some(Instant::now());
                for process in descendants(self.pid).into_iter().map(ProcessHandle::open) {
                    process.send(Signal::KILL);
                }
                self.process.send(Signal::KILL);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Hears nothing.
struct Deaf;

impl Observer for Deaf {
    fn event(&mut self, _: u32, _: Event) {}
    fn stack(&mut self, _: u32, _: StackId, _: Vec<Place>) {}
    fn counts(&mut self, _: u32, _: ThreadId, _: Vec<PlaceCount>) {}
    fn event_counts(&mut self, _: u32, _: ThreadId, _: Vec<(String, Place, u64)>) {}
}

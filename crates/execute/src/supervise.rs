//! The loop beside the running target: follow its logs, answer its questions, pass signals on,
//! keep the time, and in the end say whether the target ended or we did.

use crate::control::Control;
use crate::facts::{FactsMaker, Question};
use crate::follow::{Followed, ProcessHandle, Progress};
use crate::hang::{HangWatch, whereabouts};
use crate::judge::{ENDING_PATIENCE, Ended, LogEnd, judge};
use crate::signals::Signals;
use crate::{EngineMode, ExecuteError, Execution, Observer, Outcome};
use raddle_model::ThreadId;
use raddle_wire::log::{State, log_file};
use rustix::event::Timespec;
use rustix::process::Signal;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The pause between two looks while there is something to read: long enough for a batch.
const SHORTEST_PAUSE: Duration = Duration::from_micros(200);
/// The pause when nothing happens: one percent of a person's patience, nothing of a processor.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// The pause while the target waits for us, or is just starting.
const EAGER_PAUSE: Duration = Duration::from_micros(500);
/// The pause without a probe: only our own signals and the time limit are waited for.
const BARE_PAUSE: Duration = Duration::from_millis(100);
/// What a target that was asked to end may take for it: a server closes its connections.
const STOPPING_PATIENCE: Duration = Duration::from_secs(5);

/// Supervises the target to its end.
pub(crate) fn supervise(
    execution: &Execution,
    child: Child,
    signals: Signals,
    observer: &mut dyn Observer,
) -> Result<Outcome, ExecuteError> {
    let facts = match &execution.engine {
        EngineMode::Bare => None,
        EngineMode::Probe(request) => Some(
            FactsMaker::start(request.hooks.clone(), execution.directory.clone())
                .map_err(ExecuteError::during("starting a thread"))?,
        ),
    };
    let mut supervisor = Supervisor {
        first: ProcessHandle::open(child.id()),
        pid: child.id(),
        child,
        execution,
        signals,
        facts,
        reading: None,
        logs: Vec::new(),
        descendants: Vec::new(),
        without_symbols: Vec::new(),
        warnings: Vec::new(),
        started: Instant::now(),
        ending: None,
        timed_out: false,
        stopped: false,
        stuck: None,
        hangs: HangWatch::new(),
        hung: None,
    };
    let result = supervisor.run(observer);
    if result.is_err() {
        // Nothing we start may outlive our giving up on it.
        supervisor.kill_all();
        let _ = supervisor.child.wait();
    }
    result
}

struct Supervisor<'a> {
    execution: &'a Execution,
    child: Child,
    /// The first process and its number.
    first: ProcessHandle,
    pid: u32,
    signals: Signals,
    /// Absent without a probe.
    facts: Option<FactsMaker>,
    /// The module that is being read while the target waits, as the observer was told.
    reading: Option<PathBuf>,
    logs: Vec<Followed>,
    /// Processes made by followed ones.
    descendants: Vec<ProcessHandle>,
    without_symbols: Vec<PathBuf>,
    warnings: Vec<String>,
    started: Instant,
    /// Since when the first process has been ending without a sign of life.
    ending: Option<Instant>,
    timed_out: bool,
    /// It was asked to end.
    stopped: bool,
    /// It would not end: where its threads were.
    stuck: Option<String>,
    hangs: HangWatch,
    /// The process that hung in code of ours, and where.
    hung: Option<(u32, String)>,
}

impl Supervisor<'_> {
    fn run(&mut self, observer: &mut dyn Observer) -> Result<Outcome, ExecuteError> {
        let mut status = None;
        let mut pause = SHORTEST_PAUSE;
        loop {
            // The order matters: what a process wrote before it was found dead is read after.
            if status.is_none() {
                let waited = self.child.try_wait();
                status = waited.map_err(ExecuteError::during("waiting for the target"))?;
            }
            let others = self.others_alive();
            self.find_logs()?;
            let records = self.look(observer);
            if let Some(status) = status
                && !others
            {
                self.finish(observer);
                return judge(self.ended(status));
            }
            self.pass_signals_on();
            self.keep_time();
            self.look_for_hangs();
            pause = if records > 0 { SHORTEST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            observer.idle();
            self.pause(pause, status.is_some());
        }
    }

    /// Is a process other than the first still to be waited for?
    fn others_alive(&mut self) -> bool {
        self.descendants.retain(ProcessHandle::alive);
        !self.descendants.is_empty()
            || self.logs.iter().any(|log| log.pid() != self.pid && log.process.alive())
    }

    /// Opens logs that have appeared.
    fn find_logs(&mut self) -> Result<(), ExecuteError> {
        if self.facts.is_none() {
            return Ok(());
        }
        let directory = &self.execution.directory;
        let context = || format!("following the target in {}", directory.display());
        if !self.execution.follow {
            if self.logs.is_empty() {
                let name = log_file(self.pid, 0);
                self.open_log(&name).map_err(ExecuteError::during(context()))?;
            }
            return Ok(());
        }
        let mut found = Vec::new();
        for entry in directory.read_dir().map_err(ExecuteError::during(context()))? {
            let entry = entry.map_err(ExecuteError::during(context()))?;
            found.extend(entry.file_name().to_str().and_then(parse_log));
        }
        // A process that has become another program between two looks has two new logs: the
        // earlier one comes first, whatever order the directory has.
        found.sort_unstable();
        for (pid, incarnation) in found {
            let name = log_file(pid, incarnation);
            self.open_log(&name).map_err(ExecuteError::during(context()))?;
        }
        Ok(())
    }

    fn open_log(&mut self, name: &str) -> io::Result<()> {
        if self.logs.iter().any(|log| log.name == name) {
            return Ok(());
        }
        let path = self.execution.directory.join(name);
        let file = match File::options().read(true).write(true).open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        self.logs.extend(Followed::open(name, file, self.execution.keep_logs)?);
        Ok(())
    }

    /// Reads all logs and moves questions and answers; returns how many records there were.
    fn look(&mut self, observer: &mut dyn Observer) -> usize {
        let mut records = 0;
        for index in 0..self.logs.len() {
            let (earlier, rest) = self.logs.split_at_mut(index);
            if let Some(log) = rest.first_mut().filter(|log| log.is_new()) {
                // What the process was before is over.
                for before in earlier.iter_mut().filter(|before| before.pid() == log.pid()) {
                    before.finish(observer);
                }
            }
            let progress = self.logs[index].look(observer);
            if progress.records > 0 && self.logs[index].pid() == self.pid {
                self.ending = None;
            }
            records += progress.records;
            self.take_up(index, progress);
        }
        if let Some(facts) = &mut self.facts {
            for answer in facts.answers() {
                let path = answer.question.path;
                match answer.has_symbols {
                    Ok(false) if !self.without_symbols.contains(&path) => {
                        self.without_symbols.push(path);
                    }
                    Ok(_) => {}
                    Err(warning) => self.warnings.push(warning),
                }
                if let Some(log) = self.logs.get_mut(answer.question.log) {
                    log.answered(answer.question.request);
                }
                records += 1;
            }
            if facts.reading() != self.reading.as_deref() {
                self.reading = facts.reading().map(Path::to_owned);
                observer.reading(self.reading.as_deref());
            }
        }
        records
    }

    fn take_up(&mut self, log: usize, progress: Progress) {
        let name = &self.logs[log].name;
        if let Some(facts) = &mut self.facts {
            for (request, path) in progress.questions {
                facts.ask(Question { log, name: name.clone(), request, path });
            }
        }
        if self.execution.follow {
            self.descendants.extend(progress.forked.into_iter().map(ProcessHandle::open));
        }
    }

    fn finish(&mut self, observer: &mut dyn Observer) {
        for log in &mut self.logs {
            log.finish(observer);
        }
    }

    fn pass_signals_on(&mut self) {
        for signal in self.signals.take_pending() {
            if signal == Signal::KILL {
                self.kill_all();
            } else {
                self.first.send(signal);
            }
        }
    }

    fn keep_time(&mut self) {
        if let Some(limit) = self.execution.limit
            && self.started.elapsed() >= limit
        {
            self.timed_out = true;
            self.kill_all();
        }
        if let Some(limit) = self.execution.stop_after {
            let since = self.started.elapsed();
            if since >= limit.saturating_add(STOPPING_PATIENCE) {
                self.kill_all();
            } else if since >= limit && !self.stopped {
                self.stopped = true;
                self.first.send(Signal::TERM);
            }
        }
        let pid = self.pid;
        let Some(log) = self.logs.iter_mut().rfind(|log| log.pid() == pid) else { return };
        if log.state() == State::Ending {
            let since = *self.ending.get_or_insert_with(Instant::now);
            if since.elapsed() >= ENDING_PATIENCE {
                if self.stuck.is_none() {
                    self.stuck = Some(whereabouts(pid, &self.threads(pid)));
                }
                self.kill_all();
            }
        }
    }

    /// Kills everything if one of the processes hangs, and that is our doing.
    fn look_for_hangs(&mut self) {
        if self.hung.is_some() {
            return self.kill_all();
        }
        if self.facts.is_none() || !self.hangs.is_due() {
            return;
        }
        // What a process has become by `exec` need not run under the engine: its last log counts.
        let mut last: HashMap<u32, State> = HashMap::new();
        for log in &mut self.logs {
            last.insert(log.pid(), log.state());
        }
        let running: Vec<u32> =
            last.iter().filter(|(_, s)| **s == State::Running).map(|(pid, _)| *pid).collect();
        let Some(hang) = self.hangs.look(&running) else { return };
        let what = hang.tell(&self.threads(hang.process));
        self.hung = Some((hang.process, what));
        self.kill_all();
    }

    /// The threads of a process by the kernel's numbers. Under a policy the target sees others, and
    /// so do we.
    fn threads(&self, process: u32) -> HashMap<u32, ThreadId> {
        let is_free = match &self.execution.engine {
            EngineMode::Probe(request) => request.schedule.is_none(),
            EngineMode::Bare => false,
        };
        let log = self.logs.iter().rfind(|log| is_free && log.pid() == process);
        let threads = log.into_iter().flat_map(|log| &log.threads);
        threads.map(|(thread, os_id)| (*os_id, *thread)).collect()
    }

    /// Kills what we started and what came of it: a child left behind would keep the target's
    /// output open, and whoever reads it waiting.
    fn kill_all(&self) {
        let orphans: Vec<ProcessHandle> =
            descendants(self.pid).into_iter().map(ProcessHandle::open).collect();
        let logged = self.logs.iter().map(|log| &log.process);
        for process in
            [&self.first].into_iter().chain(&orphans).chain(&self.descendants).chain(logged)
        {
            process.send(Signal::KILL);
        }
    }

    fn pause(&self, pause: Duration, first_ended: bool) {
        let mut pause = match &self.facts {
            None => BARE_PAUSE,
            Some(facts) if facts.busy() || self.logs.is_empty() => pause.min(EAGER_PAUSE),
            Some(_) => pause,
        };
        if let Some(limit) = self.execution.limit {
            pause = pause.min(limit.saturating_sub(self.started.elapsed()).max(SHORTEST_PAUSE));
        }
        let time = Timespec {
            tv_sec: pause.as_secs().cast_signed(),
            tv_nsec: pause.subsec_nanos().into(),
        };
        if first_ended || self.first.wait(&time).is_none() {
            std::thread::sleep(pause.min(LONGEST_PAUSE));
        }
    }

    fn ended(&mut self, status: ExitStatus) -> Ended {
        Ended {
            first: self.pid,
            status,
            probed: self.facts.is_some(),
            timed_out: self.timed_out,
            stopped: self.stopped,
            stuck: self.stuck.take(),
            hung: self.hung.take(),
            logs: self.logs.iter_mut().map(LogEnd::of).collect(),
            without_symbols: std::mem::take(&mut self.without_symbols),
            warnings: std::mem::take(&mut self.warnings),
            control: self
                .logs
                .first_mut()
                .map_or_else(Control::default, |log| std::mem::take(&mut log.control)),
        }
    }
}

/// The children of a process, and theirs, as far as the kernel tells.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children: Vec<u32> = tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect();
    let below: Vec<u32> = children.iter().flat_map(|child| descendants(*child)).collect();
    [children, below].concat()
}

/// Process and incarnation of a name that [`log_file`] makes.
fn parse_log(name: &str) -> Option<(u32, u32)> {
    let (pid, incarnation) = name.strip_suffix(".log")?.split_once('.')?;
    let parsed = (pid.parse().ok()?, incarnation.parse().ok()?);
    (name == log_file(parsed.0, parsed.1)).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grandchildren_are_found() {
        let script = "sleep 60 & echo; wait";
        let mut shell = std::process::Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 1];
        io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
        let all = descendants(std::process::id());
        let sleep = descendants(shell.id());
        assert!(all.contains(&shell.id()) && sleep.len() == 1 && all.contains(&sleep[0]));
        ProcessHandle::open(sleep[0]).send(Signal::KILL);
        shell.wait().unwrap();
        assert!(descendants(shell.id()).is_empty());
    }

    #[test]
    fn logs_are_known_by_their_names() {
        assert_eq!(parse_log(&log_file(12, 0)), Some((12, 0)));
        assert_eq!(parse_log(&log_file(12, 34)), Some((12, 34)));
        for other in ["12.0.1.facts", "options.json", ".log", "12.log", "12..log", "+1.0.log"] {
            assert_eq!(parse_log(other), None, "{other}");
        }
    }
}

//! One gdb, from its connection to its end.

use crate::debuggee::{Debuggee, in_words, tid};
use crate::line::Line;
use crate::listener::{Connection, Listener};
use crate::mailbox::Mailbox;
use crate::{End, Ending, GdbError, signals};
use gdbstub::common::Signal;
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};
use gdbstub::target::ext::breakpoints::WatchKind;
use raddle_wire::debug::{Stop, Why};
use rustix::process::{Pid, Signal as Kill, kill_process};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The pauses between two looks at the target and at gdb: the first is not felt in a step.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// A session in the making.
#[derive(Debug)]
pub struct Session {
    /// Where gdb connects.
    pub listener: Listener,
    /// The run directory.
    pub directory: PathBuf,
    /// The program's file.
    pub program: PathBuf,
    /// Whether the target has ended.
    pub ending: Ending,
    /// Hears, in a sentence, why the target stands, where gdb does not say it.
    pub news: fn(&str),
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// The target ended.
    TargetEnded,
    /// gdb let the target go: it runs to its end by itself.
    Detached,
    /// gdb killed the target, or went away, which kills it too.
    Killed,
}

impl Session {
    /// Waits until the target stands and gdb has come, and serves it to the end. `ready` is called when
    /// gdb may come, `came` with the connection when it has.
    pub fn run(
        self,
        ready: impl FnOnce(&Listener),
        came: impl FnOnce(Connection),
    ) -> Result<Farewell, GdbError> {
        let Some((mailbox, stop)) = self.first_stop()? else { return Ok(Farewell::TargetEnded) };
        ready(&self.listener);
        let Some(connection) = self.connection()? else { return Ok(Farewell::TargetEnded) };
        came(connection.try_clone().map_err(GdbError::during("talking to gdb"))?);
        let pid = mailbox.pid;
        let mut debuggee = Debuggee::new(mailbox, self.program, self.ending.clone(), stop)?;
        debuggee.news = self.news;
        let stub = GdbStub::new(Line::new(connection));
        match stub.run_blocking::<Loop>(&mut debuggee) {
            Ok(DisconnectReason::TargetExited(_) | DisconnectReason::TargetTerminated(_)) => {
                Ok(Farewell::TargetEnded)
            }
            Ok(DisconnectReason::Disconnect) => {
                debuggee.let_go()?;
                Ok(Farewell::Detached)
            }
            // An error is gdb gone without a word, or damage on the line: nobody can end the target
            // any more but us.
            Ok(DisconnectReason::Kill) | Err(_) => {
                if self.ending.heard().is_none() {
                    kill(pid);
                }
                Ok(Farewell::Killed)
            }
        }
    }

    fn first_stop(&self) -> Result<Option<(Mailbox, Stop)>, GdbError> {
        self.wait(|| {
            let Some(mailbox) = Mailbox::open(&self.directory)? else { return Ok(None) };
            Ok(mailbox.stop()?.map(|stop| (mailbox, stop)))
        })
    }

    fn connection(&self) -> Result<Option<Connection>, GdbError> {
        self.wait(|| self.listener.accept().map_err(GdbError::during("waiting for gdb")))
    }

    /// Until there is something, or the target has ended.
    fn wait<T>(
        &self,
        mut look: impl FnMut() -> Result<Option<T>, GdbError>,
    ) -> Result<Option<T>, GdbError> {
        while self.ending.heard().is_none() {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            std::thread::sleep(LONGEST_PAUSE);
        }
        Ok(None)
    }
}

/// Ends a process that may have ended already.
pub fn kill(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, Kill::KILL);
    }
}

/// What `gdbstub` asks while the target runs.
enum Loop {}

impl BlockingEventLoop for Loop {
    type Target = Debuggee;
    type Connection = Line;
    type StopReason = MultiThreadStopReason<u64>;

    fn wait_for_stop_reason(
        target: &mut Debuggee,
        line: &mut Line,
    ) -> Result<Event<Self::StopReason>, WaitForStopReasonError<GdbError, io::Error>> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            // The end is looked for first: what stood before it has been told.
            let ended = target.ending.heard();
            if let Some(stop) = target.mailbox.stop().map_err(WaitForStopReasonError::Target)? {
                if matches!(stop.why, Why::Met { .. } | Why::Deadlock) {
                    (target.news)(&in_words(&stop));
                }
                target.stopped(stop);
                return Ok(Event::TargetStopped(reason(&target.stop)));
            }
            if let Some(end) = ended {
                return Ok(Event::TargetStopped(match end {
                    End::Exited(code) => MultiThreadStopReason::Exited(code),
                    End::Killed(signal) => {
                        MultiThreadStopReason::Terminated(signals::of_linux(signal))
                    }
                }));
            }
            if line.peek().map_err(WaitForStopReasonError::Connection)?.is_some() {
                let byte = line.read().map_err(WaitForStopReasonError::Connection)?;
                return Ok(Event::IncomingData(byte));
            }
            std::thread::sleep(pause);
            pause = (pause * 5 / 4).min(LONGEST_PAUSE);
        }
    }

    fn on_interrupt(target: &mut Debuggee) -> Result<Option<Self::StopReason>, GdbError> {
        // It stops when it next comes to us.
        target.mailbox.interrupt()?;
        Ok(None)
    }
}

fn reason(stop: &Stop) -> MultiThreadStopReason<u64> {
    let tid = tid(stop.thread);
    let signal = match stop.why {
        Why::Breakpoint => return MultiThreadStopReason::SwBreak(tid),
        Why::Changed { start: addr } => {
            return MultiThreadStopReason::Watch { tid, kind: WatchKind::Write, addr };
        }
        Why::Interrupted => Signal::SIGINT,
        Why::Signal(number) => signals::of_linux(number.cast_signed()),
        Why::Started | Why::Stepped | Why::Met { .. } | Why::Deadlock => Signal::SIGTRAP,
    };
    MultiThreadStopReason::SignalWithThread { tid, signal }
}

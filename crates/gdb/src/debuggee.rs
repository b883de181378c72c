//! The standing target as `gdbstub` wants it: threads, registers, memory, breakpoints, steps.

use crate::amd64::{Amd64, ThreadRegisters};
use crate::auxv::{self, Auxv as AuxiliaryVector};
use crate::mailbox::Mailbox;
use crate::memory::Memory;
use crate::{Ending, GdbError, libraries};
use gdbstub::common::{Pid, Signal, Tid};
use gdbstub::target::ext::auxv::{Auxv, AuxvOps};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume,
    MultiThreadResumeOps, MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps,
    MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint, SwBreakpointOps,
    WatchKind,
};
use gdbstub::target::ext::exec_file::{ExecFile, ExecFileOps};
use gdbstub::target::ext::libraries::{LibrariesSvr4, LibrariesSvr4Ops};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, outputln};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use raddle_model::ThreadId;
use raddle_wire::debug::{Resume, Stepping, Stop, StoppedThread, WatchedMemory, Why};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The target.
#[derive(Debug)]
pub struct Debuggee {
    pub(crate) mailbox: Mailbox,
    memory: Memory,
    auxv: AuxiliaryVector,
    program: PathBuf,
    pub(crate) ending: Ending,
    /// Hears why it stands.
    pub(crate) news: fn(&str),
    /// Why it stands, as of the last time it did.
    pub(crate) stop: Stop,
    breakpoints: BTreeSet<u64>,
    watched: BTreeSet<WatchedMemory>,
    step: Option<Stepping>,
    /// gdb wants only the stepped thread to run.
    alone: bool,
}

impl Debuggee {
    /// The target that stands, for this reason.
    pub(crate) fn new(
        mailbox: Mailbox,
        program: PathBuf,
        ending: Ending,
        stop: Stop,
    ) -> Result<Debuggee, GdbError> {
        let memory = Memory::open(mailbox.pid)?;
        let path = format!("/proc/{}/stat", mailbox.pid);
        let stat = std::fs::read_to_string(&path).map_err(GdbError::during(path))?;
        let stack = auxv::initial_stack(&stat).ok_or(GdbError::NoAuxv)?;
        Ok(Debuggee {
            auxv: AuxiliaryVector::read(&memory, stack).ok_or(GdbError::NoAuxv)?,
            mailbox,
            memory,
            program,
            ending,
            news: |_| {},
            stop,
            breakpoints: BTreeSet::new(),
            watched: BTreeSet::new(),
            step: None,
            alone: false,
        })
    }

    /// It stands again. While gdb lets one thread make a step alone, over a breakpoint that it has taken
    /// away, it does not bear to hear of another one.
    pub(crate) fn stopped(&mut self, stop: Stop) {
        let alone = self.step.filter(|step| step.alone).map(|step| step.thread);
        self.stop = stop;
        if let Some(thread) = alone.filter(|id| self.stop.threads.iter().any(|t| t.id == *id)) {
            self.stop.thread = thread;
        }
    }

    /// Lets it run to its end, with nobody to stop it.
    pub(crate) fn let_go(&self) -> Result<(), GdbError> {
        self.mailbox.resume(&Resume::default())
    }

    fn thread(&self, tid: Tid) -> Option<&StoppedThread> {
        self.stop.threads.iter().find(|thread| thread.id.0 as usize == tid.get())
    }
}

/// What gdb calls a thread: our number of it, so that `Thread 1.2` is T2.
pub fn tid(thread: ThreadId) -> Tid {
    Tid::new(thread.0.max(1) as usize).unwrap_or(Tid::MIN)
}

fn number(tid: Tid) -> ThreadId {
    ThreadId(u32::try_from(tid.get()).unwrap_or(0))
}

/// The part of `data` that was asked for.
fn part(data: &[u8], offset: u64, length: usize, buffer: &mut [u8]) -> usize {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(data.len());
    let count = (data.len() - from).min(length).min(buffer.len());
    buffer[..count].copy_from_slice(&data[from..from + count]);
    count
}

impl Target for Debuggee {
    type Arch = Amd64;
    type Error = GdbError;

    fn base_ops(&mut self) -> BaseOps<'_, Amd64, GdbError> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_auxv(&mut self) -> Option<AuxvOps<'_, Self>> {
        Some(self)
    }

    fn support_exec_file(&mut self) -> Option<ExecFileOps<'_, Self>> {
        Some(self)
    }

    fn support_libraries_svr4(&mut self) -> Option<LibrariesSvr4Ops<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Debuggee {
    fn read_registers(
        &mut self,
        registers: &mut ThreadRegisters,
        tid: Tid,
    ) -> TargetResult<(), Self> {
        let thread = self.thread(tid).ok_or(TargetError::NonFatal)?;
        registers.0 = thread.registers.clone();
        Ok(())
    }

    fn write_registers(&mut self, _: &ThreadRegisters, _: Tid) -> TargetResult<(), Self> {
        // A thread stands in the middle of our code, which puts back what it has saved; and another
        // value would make it another execution.
        Err(TargetError::NonFatal)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], _: Tid) -> TargetResult<usize, Self> {
        self.memory.read(start, data).map_err(|_| TargetError::NonFatal)
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], _: Tid) -> TargetResult<(), Self> {
        self.memory.write(start, data).map_err(|_| TargetError::NonFatal)
    }

    fn list_active_threads(&mut self, is_active: &mut dyn FnMut(Tid)) -> Result<(), GdbError> {
        // The first is what gdb looks at when it comes.
        let current = self.stop.thread;
        is_active(tid(current));
        let others = self.stop.threads.iter().filter(|thread| thread.id != current);
        others.for_each(|thread| is_active(tid(thread.id)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadResume for Debuggee {
    fn resume(&mut self) -> Result<(), GdbError> {
        let alone = self.alone;
        self.step = self.step.map(|step| Stepping { alone, ..step });
        self.mailbox.resume(&Resume {
            attached: true,
            breakpoints: self.breakpoints.iter().copied().collect(),
            watched: self.watched.iter().copied().collect(),
            step: self.step,
        })
    }

    fn clear_resume_actions(&mut self) -> Result<(), GdbError> {
        (self.step, self.alone) = (None, false);
        Ok(())
    }

    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> Result<(), GdbError> {
        // Threads run when it is their turn; signals come as they came.
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Debuggee {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), GdbError> {
        self.step = Some(Stepping { thread: number(tid), start: 0, end: 0, alone: false });
        Ok(())
    }
}

impl MultiThreadRangeStepping for Debuggee {
    fn set_resume_action_range_step(
        &mut self,
        tid: Tid,
        start: u64,
        end: u64,
    ) -> Result<(), GdbError> {
        self.step = Some(Stepping { thread: number(tid), start, end, alone: false });
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Debuggee {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), GdbError> {
        self.alone = true;
        Ok(())
    }
}

impl Breakpoints for Debuggee {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl HwWatchpoint for Debuggee {
    fn add_hw_watchpoint(
        &mut self,
        start: u64,
        length: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        // Reads leave nothing to be compared.
        let is_ours = kind == WatchKind::Write;
        self.watched.extend(is_ours.then_some(WatchedMemory { start, length }));
        Ok(is_ours)
    }

    fn remove_hw_watchpoint(
        &mut self,
        start: u64,
        length: u64,
        _: WatchKind,
    ) -> TargetResult<bool, Self> {
        Ok(self.watched.remove(&WatchedMemory { start, length }))
    }
}

impl SwBreakpoint for Debuggee {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.breakpoints.insert(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.breakpoints.remove(&address))
    }
}

impl Auxv for Debuggee {
    fn get_auxv(&self, offset: u64, length: usize, buffer: &mut [u8]) -> TargetResult<usize, Self> {
        Ok(part(&self.auxv.bytes(), offset, length, buffer))
    }
}

impl ExecFile for Debuggee {
    fn get_exec_file(
        &self,
        _: Option<Pid>,
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        Ok(part(self.program.as_os_str().as_bytes(), offset, length, buffer))
    }
}

impl LibrariesSvr4 for Debuggee {
    fn get_libraries_svr4(
        &self,
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let xml = libraries::xml(&libraries::read(&self.memory, &self.auxv));
        Ok(part(xml.as_bytes(), offset, length, buffer))
    }
}

impl ThreadExtraInfo for Debuggee {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, GdbError> {
        let about = self.thread(tid).map_or("gone", |thread| thread.about.as_str());
        let text = format!("{}: {about}", number(tid));
        Ok(part(text.as_bytes(), 0, text.len(), buffer))
    }
}

impl MonitorCmd for Debuggee {
    fn handle_monitor_cmd(
        &mut self,
        command: &[u8],
        mut out: ConsoleOutput<'_>,
    ) -> Result<(), GdbError> {
        match command {
            b"why" => outputln!(out, "{}", in_words(&self.stop)),
            _ => outputln!(out, "`monitor why` says why the target stands; there is nothing else."),
        }
        Ok(())
    }
}

/// Why the target stands, for people.
pub fn in_words(stop: &Stop) -> String {
    let thread = stop.thread;
    match stop.why {
        Why::Started => format!("{thread} is about to begin the program"),
        Why::Breakpoint => format!("{thread} is at a breakpoint"),
        Why::Stepped => format!("{thread} has made its step"),
        Why::Changed { start } => format!("{thread} has changed what is at {start:#x}"),
        Why::Met { with } => format!(
            "the two accesses meet: {thread} is about to make one of them, {with} to make the other, \
             and {thread} goes first"
        ),
        Why::Interrupted => format!("interrupted in {thread}"),
        Why::Signal(signal) => format!("signal {signal} is about to kill the target, in {thread}"),
        Why::Deadlock => "a deadlock: these threads will never go on".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_inside() {
        let mut buffer = [0; 4];
        assert_eq!(part(b"abcdef", 0, 100, &mut buffer), 4);
        assert_eq!(&buffer, b"abcd");
        assert_eq!(part(b"abcdef", 4, 100, &mut buffer), 2);
        assert_eq!(part(b"abcdef", 3, 1, &mut buffer), 1);
        assert_eq!(part(b"abcdef", 6, 4, &mut buffer), 0);
        assert_eq!(part(b"abcdef", u64::MAX, 4, &mut buffer), 0);
    }
}

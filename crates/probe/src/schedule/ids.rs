//! Process and thread ids, the same in every execution.
//!
//! The target sees numbers that the kernel gives nobody, in the order its threads are made. So what it
//! says is translated without doubt: a number of ours means one of its threads, any other is the
//! kernel's. That is done in the arguments and results of calls, where the kernel writes a new thread's id,
//! where it says who sent a signal (glibc's own handlers, of `pthread_cancel` and `setuid`, heed only what the
//! process sends itself), and in names of files under `/proc` and what some of them say ([`super::told`]); not in what directories list there, or in credentials that come
//! through a socket.

use super::Scheduler;
use crate::memory::{kernel, target};
use crate::thread::ThreadState;
use raddle_dynamorio::process::{self, SystemCall};
use raddle_model::ThreadId;
use raddle_wire::options::{ID_LIMIT, process_of};
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};

/// The longest name of a file that is looked at: longer ones name no thread.
const LONGEST_PATH: usize = 64;

/// `struct signalfd_siginfo`.
const SIGNAL_READ: usize = 128;
const IOPRIO_WHO_USER: u64 = 3;

/// The ids of the process that is controlled.
#[derive(Debug)]
pub struct Ids {
    /// What the target sees as its own; its parent's is the one before, its threads' follow.
    process: u32,
    /// The kernel's, also when this is a child of it.
    real: AtomicU32,
}

impl Ids {
    pub fn new(process: Option<u32>) -> Ids {
        let process = process.unwrap_or_else(|| process_of(0));
        Ids { process, real: AtomicU32::new(std::process::id()) }
    }

    /// This process is the one that is controlled now.
    pub fn restart(&self) {
        self.real.store(std::process::id(), Ordering::Relaxed);
    }

    /// What the target sees.
    pub fn shown(&self, thread: ThreadId) -> u32 {
        self.process + (thread.0 - ThreadId::MAIN.0)
    }

    fn real(&self) -> u32 {
        self.real.load(Ordering::Relaxed)
    }

    /// Is this the process that is controlled, or a child of it?
    fn is_here(&self) -> bool {
        self.real() == std::process::id()
    }

    /// The kernel's number for one of ours. `os_id` knows those of threads; it is not asked in a child, where who
    /// knows may have been at work when it was copied, and goes on for ever.
    pub fn meant(&self, shown: u32, os_id: impl FnOnce(ThreadId) -> Option<u32>) -> Option<u32> {
        if shown == self.process {
            return Some(self.real());
        }
        if !self.is_here() {
            return None;
        }
        if shown == self.process - 1 {
            return Some(kernel::parent());
        }
        os_id(ThreadId(shown.checked_sub(self.process)? + ThreadId::MAIN.0))
    }
}

impl Scheduler {
    /// The id of a thread as the target sees it, of which the kernel's is known.
    pub fn shown_id(&self, os_id: u32) -> u32 {
        if !self.is_on() {
            return os_id;
        }
        let state = self.lock();
        let entry = state.table.iter().find(|entry| entry.os_id == os_id);
        entry.map_or(os_id, |entry| self.ids.shown(entry.id))
    }

    /// The target means threads by our numbers, and the kernel knows its own.
    pub fn translate(&self, thread: &mut ThreadState, call: &mut SystemCall<'_>) {
        thread.changed_arguments.clear();
        for &index in arguments_with_ids(call) {
            let said = call.argument(index);
            if let Some(meant) = self.translated(said as i32) {
                change(thread, call, index, meant as i64 as u64);
            }
        }
        if let Some(index) = path_of(call)
            && let Some(path) = self.translated_path(call.argument(index))
        {
            let at = path.as_ptr() as u64;
            thread.changed_path = Some(path);
            change(thread, call, index, at);
        }
    }

    /// The call is over: its arguments are as the target left them.
    pub fn give_back(&self, thread: &mut ThreadState, call: &mut SystemCall<'_>) {
        for (index, said) in std::mem::take(&mut thread.changed_arguments) {
            call.set_argument(index, said);
        }
    }

    /// An id, or the negative of one for a group.
    fn translated(&self, said: i32) -> Option<i32> {
        if said.unsigned_abs() < ID_LIMIT {
            return None;
        }
        let os_id = |thread| self.lock().table.get(thread).map(|entry| entry.os_id);
        let meant = self.ids.meant(said.unsigned_abs(), os_id)?;
        Some(meant as i32 * said.signum())
    }

    /// `/proc/ID/…`, `/proc/self/task/ID/…`
    fn translated_path(&self, at: u64) -> Option<CString> {
        let path = target::string(at, LONGEST_PATH);
        let parts = path.strip_prefix("/proc/").filter(|_| path.len() < LONGEST_PATH)?.split('/');
        let mut changed = false;
        let part = |part: &str| match part.parse().ok().and_then(|id| self.translated(id)) {
            Some(meant) => {
                changed = true;
                meant.to_string()
            }
            None => part.to_owned(),
        };
        let parts: Vec<String> = parts.map(part).collect();
        changed.then(|| CString::new(format!("/proc/{}", parts.join("/"))).ok())?
    }

    /// What a call that asks for an id is told.
    pub(super) fn told_id(&self, thread: &ThreadState, number: i64) -> Option<i64> {
        let shown = match number {
            libc::SYS_getpid => self.ids.process,
            libc::SYS_gettid => self.ids.shown(thread.id),
            // Who has lost its parent has another.
            libc::SYS_getppid if kernel::parent() > 1 => self.ids.process - 1,
            _ => return None,
        };
        Some(i64::from(shown))
    }

    /// A `siginfo` of the target's says who sent a signal: the process itself goes by the number that it knows.
    pub fn show_sender(&self, about: u64) {
        // signal, error, code; then who sent it.
        self.show_sender_at(about + 8, about + 16);
    }

    /// The same of what is read from a `signalfd`: signal, error, code, who sent it.
    fn show_sender_read(&self, about: u64) {
        self.show_sender_at(about + 8, about + 12);
    }

    fn show_sender_at(&self, code_at: u64, id_at: u64) {
        let code = target::half(code_at).map(|code| code as i32);
        let has_sender =
            matches!(code, Some(libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE | libc::SI_MESGQ));
        if has_sender && target::half(id_at) == Some(self.ids.real()) {
            process::write(id_at, &self.ids.process.to_le_bytes());
        }
    }

    /// A call that tells who sent a signal has returned.
    pub(super) fn show_senders(&self, number: i64, [first, second]: [u64; 2], result: i64) {
        match number {
            libc::SYS_rt_sigtimedwait if result > 0 && second != 0 => self.show_sender(second),
            libc::SYS_read
                if result > 0 && self.lock().signal_descriptors.contains(&(first as i32)) =>
            {
                let all = second..second + result as u64;
                all.step_by(SIGNAL_READ).for_each(|about| self.show_sender_read(about));
            }
            libc::SYS_signalfd | libc::SYS_signalfd4 if result >= 0 => {
                self.lock().signal_descriptors.insert(result as i32);
            }
            libc::SYS_close => {
                self.lock().signal_descriptors.remove(&(first as i32));
            }
            _ => {}
        }
    }

    /// What a call returned that has given an id, to the process that is controlled or to a child of
    /// it that has not become another program.
    pub fn show_result(&self, call: &mut SystemCall<'_>) {
        let gives = matches!(
            i64::from(call.number),
            libc::SYS_getppid
                | libc::SYS_setsid
                | libc::SYS_getsid
                | libc::SYS_getpgid
                | libc::SYS_getpgrp
        );
        if gives && call.result() == i64::from(self.ids.real()) {
            call.change_result(i64::from(self.ids.process));
        }
    }
}

fn change(thread: &mut ThreadState, call: &mut SystemCall<'_>, index: u32, value: u64) {
    thread.changed_arguments.push((index, call.argument(index)));
    call.set_argument(index, value);
}

/// Which arguments of the call are ids.
fn arguments_with_ids(call: &SystemCall<'_>) -> &'static [u32] {
    match i64::from(call.number) {
        libc::SYS_kill
        | libc::SYS_tkill
        | libc::SYS_rt_sigqueueinfo
        | libc::SYS_sched_setparam
        | libc::SYS_sched_getparam
        | libc::SYS_sched_setscheduler
        | libc::SYS_sched_getscheduler
        | libc::SYS_sched_rr_get_interval
        | libc::SYS_sched_setattr
        | libc::SYS_sched_getattr
        | libc::SYS_sched_setaffinity
        | libc::SYS_sched_getaffinity
        | libc::SYS_getpgid
        | libc::SYS_getsid
        | libc::SYS_get_robust_list
        | libc::SYS_prlimit64
        | libc::SYS_pidfd_open
        | libc::SYS_process_vm_readv
        | libc::SYS_process_vm_writev
        | libc::SYS_migrate_pages
        | libc::SYS_move_pages
        | libc::SYS_wait4 => &[0],
        libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo | libc::SYS_setpgid | libc::SYS_kcmp => {
            &[0, 1]
        }
        // They may be about a user, too.
        libc::SYS_getpriority | libc::SYS_setpriority
            if call.argument(0) == libc::PRIO_USER as u64 =>
        {
            &[]
        }
        libc::SYS_ioprio_get | libc::SYS_ioprio_set if call.argument(0) == IOPRIO_WHO_USER => &[],
        libc::SYS_getpriority
        | libc::SYS_setpriority
        | libc::SYS_ioprio_get
        | libc::SYS_ioprio_set
        | libc::SYS_ptrace
        | libc::SYS_perf_event_open
        | libc::SYS_waitid => &[1],
        libc::SYS_fcntl if call.argument(1) == libc::F_SETOWN as u64 => &[2],
        _ => &[],
    }
}

/// Which argument names a file.
fn path_of(call: &SystemCall<'_>) -> Option<u32> {
    match i64::from(call.number) {
        libc::SYS_open
        | libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_access
        | libc::SYS_readlink
        | libc::SYS_execve => Some(0),
        libc::SYS_openat
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_readlinkat => Some(1),
        _ => None,
    }
}

//! System calls that mean something: making threads and processes, waiting on futexes, mapping
//! memory, writing.

use super::threads::{self, Birth};
use super::{hooks, modules, signals, transfers};
use crate::memory::target;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_dynamorio::process::{self, SystemCall};
use raddle_model::{Address, EventKind, Family, ThreadId};
use raddle_wire::log::State;
use raddle_wire::options::ProbeOptions;
use std::ffi::{CStr, CString};

/// From `asm/prctl.h`: the first thread's thread-local block.
const ARCH_SET_FS: u64 = 0x1002;

/// The calls that mean something in this execution, by number: asked several times for every call the target makes.
#[derive(Debug)]
pub struct Wanted([bool; NUMBERS]);

/// More than there are.
const NUMBERS: usize = 512;

impl Wanted {
    /// For what was asked.
    pub fn new(options: &ProbeOptions) -> Wanted {
        // A futex as such orders nothing, and a call that nobody looks at does not leave the code cache.
        let deaf_to_futexes = options.detector.is_some() && options.schedule.is_none();
        let wants = |family| options.wants(family);
        Wanted(std::array::from_fn(|number| is_wanted(wants, number as i64, deaf_to_futexes)))
    }

    /// Is this one?
    pub fn has(&self, number: i32) -> bool {
        usize::try_from(number).is_ok_and(|number| number < NUMBERS && self.0[number])
    }
}

fn is_wanted(wants: impl Fn(Family) -> bool, number: i64, deaf_to_futexes: bool) -> bool {
    if wants(Family::Sync) && transfers::is_one(number) {
        return true;
    }
    match number {
        libc::SYS_arch_prctl
        | libc::SYS_clone
        | libc::SYS_clone3
        | libc::SYS_fork
        | libc::SYS_vfork
        | libc::SYS_execve
        | libc::SYS_execveat
        | libc::SYS_rt_sigaction
        | libc::SYS_rt_sigreturn
        | libc::SYS_rt_sigprocmask
        | libc::SYS_kill
        | libc::SYS_rt_sigqueueinfo
        | libc::SYS_tgkill
        | libc::SYS_rt_tgsigqueueinfo
        | libc::SYS_signalfd
        | libc::SYS_signalfd4
        | libc::SYS_exit
        | libc::SYS_exit_group => true,
        libc::SYS_futex => wants(Family::Sync) && !deaf_to_futexes,
        libc::SYS_prctl => wants(Family::Thread),
        libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mremap
        | libc::SYS_mprotect
        | libc::SYS_pkey_mprotect => wants(Family::Memory),
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_sendfile
        | libc::SYS_copy_file_range
        | libc::SYS_splice => wants(Family::Output),
        _ => false,
    }
}

/// The call is about to be made.
pub fn before(probe: &Probe, thread: &mut ThreadState, call: &mut SystemCall<'_>) {
    let state = call.state();
    let [_, _, rdx, _, rsp, rbp, rsi, rdi, r8, r9, r10, ..] = state.general;
    let arguments = [rdi, rsi, rdx, r10, r8, r9];
    let argument = |i: u32| arguments[i as usize];
    let spot = modules::spot(probe, thread, state.pc.wrapping_sub(INSTRUCTION), rsp, rbp);
    thread.system_call = arguments;
    if let Some(analysis) = &probe.analysis {
        // It may wait here for long, or become two.
        analysis.look_back(thread);
    }
    if thread.log().is_some() {
        transfers::before(probe, thread, i64::from(call.number), arguments, spot);
    }
    match i64::from(call.number) {
        libc::SYS_clone | libc::SYS_clone3 => clone(probe, thread, call, spot),
        libc::SYS_execve | libc::SYS_execveat => {
            let index = u32::from(i64::from(call.number) == libc::SYS_execveat);
            let path = target::string(argument(index), 4096);
            if let Some(own) = own_path(&path) {
                call.set_argument(index, own.as_ptr() as u64);
            }
            thread.emit(probe, spot, EventKind::ProcessExec { path });
            signals::hand_down(probe, thread);
            if let Some(log) = thread.log() {
                log.set_state(State::Replaced);
            }
        }
        libc::SYS_exit_group => {
            if let Some(log) = thread.log() {
                probe.threads.set_exit_status(argument(0) as i32);
                log.set_state(State::Ending);
            }
        }
        libc::SYS_rt_sigaction => signals::set_action(probe, thread, argument(0), argument(1)),
        libc::SYS_rt_sigprocmask => {
            probe.monitor.masks.before_change(&probe.slots, argument(0), argument(1), argument(3));
        }
        libc::SYS_kill
        | libc::SYS_rt_sigqueueinfo
        | libc::SYS_tgkill
        | libc::SYS_rt_tgsigqueueinfo
            if argument(0) == u64::from(std::process::id()) =>
        {
            threads::await_masks(probe);
        }
        libc::SYS_signalfd | libc::SYS_signalfd4 => {
            let dispositions = &probe.monitor.dispositions;
            probe.monitor.masks.before_descriptor(dispositions, argument(1), argument(2));
        }
        libc::SYS_rt_sigreturn => {
            probe.monitor.masks.before_return(rsp);
            hooks::leave_handler(probe, thread, spot);
        }
        libc::SYS_exit => threads::await_births(probe),
        libc::SYS_futex => futex(probe, thread, arguments, spot),
        libc::SYS_arch_prctl if argument(0) == ARCH_SET_FS => {
            set_handle(probe, argument(1), thread.id)
        }
        // Inside pthread_setname_np it has been told already.
        libc::SYS_prctl if argument(0) == libc::PR_SET_NAME as u64 && !thread.is_opaque() => {
            let name = target::string(argument(1), 15);
            thread.emit(probe, spot, EventKind::ThreadName { name });
        }
        libc::SYS_munmap => {
            let (address, size) = (Address(argument(0)), argument(1));
            // What a hooked function unmaps by itself (stacks of threads that are gone, for one) is
            // its own, and was given back by the program before, or never was the program's.
            thread.emit(
                probe,
                spot,
                match thread.is_opaque() || thread.is_in_margin() {
                    true => EventKind::MemoryRenewed { address, size },
                    false => EventKind::Free { address, size },
                },
            );
        }
        libc::SYS_mremap => {
            let (address, size) = (Address(argument(0)), argument(1));
            thread.emit(probe, spot, EventKind::Free { address, size });
        }
        _ => {
            if let Some(event) = output(i64::from(call.number), arguments) {
                thread.emit(probe, spot, event);
            }
        }
    }
}

/// The call has returned.
pub fn after(probe: &Probe, thread: &mut ThreadState, call: &SystemCall<'_>) {
    let result = call.result();
    let arguments = thread.system_call;
    let [first, second, third, ..] = arguments;
    if thread.log().is_some() && transfers::is_one(i64::from(call.number)) {
        let number = i64::from(call.number);
        transfers::after(probe, thread, number, arguments, result, |thread| {
            spot(probe, thread, call)
        });
    }
    match i64::from(call.number) {
        libc::SYS_clone | libc::SYS_clone3 if makes_thread(first, call.number) => {
            if result < 0
                && let Some(child) = thread.last_child.take()
            {
                threads::withdraw_birth(probe, child);
            }
        }
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork if result > 0 => {
            let spot = spot(probe, thread, call);
            thread.emit(probe, spot, EventKind::ProcessForked { child: result as u32 });
        }
        // It returns only when it failed.
        libc::SYS_execve | libc::SYS_execveat => {
            signals::take_back(thread);
            if let Some(log) = thread.log() {
                log.set_state(State::Running);
            }
        }
        libc::SYS_futex if is_futex_wait(second) => {
            let spot = spot(probe, thread, call);
            let event = EventKind::FutexWaitEnd { address: Address(first), result };
            thread.emit(probe, spot, event);
        }
        libc::SYS_mmap | libc::SYS_mremap if !is_error(result) => {
            let spot = spot(probe, thread, call);
            let is_mmap = i64::from(call.number) == libc::SYS_mmap;
            let size = if is_mmap { second } else { third };
            let address = Address(result as u64);
            thread.emit(probe, spot, EventKind::Allocate { address, size });
            modules::unmark_pages(probe, result as u64, size);
            watch_windows(probe, result as u64, size);
        }
        libc::SYS_mprotect | libc::SYS_pkey_mprotect if third & libc::PROT_WRITE as u64 != 0 => {
            modules::unmark_pages(probe, first, second);
        }
        _ => {}
    }
}

/// The program has this memory now. Where there is no shadow for it, inserted code must take care.
fn watch_windows(probe: &Probe, start: u64, length: u64) {
    let windows = probe.analysis.as_ref().and_then(|analysis| analysis.windows(start, length));
    if let Some((bits, false)) = windows
        && probe.instrumentation.ask_for_windows(bits)
    {
        process::rebuild_everything();
    }
}

/// Is this how the kernel says no?
pub fn is_error(result: i64) -> bool {
    (-4095..0).contains(&result)
}

/// Bytes of `syscall`, which the program counter has already passed.
const INSTRUCTION: u64 = 2;

fn spot(probe: &Probe, thread: &mut ThreadState, call: &SystemCall<'_>) -> Spot {
    let state = call.state();
    let pc = state.pc.wrapping_sub(INSTRUCTION);
    modules::spot(probe, thread, pc, state.general[4], state.general[5])
}

/// What the program means by its own link: to the kernel that is the engine, which loaded it. The
/// string lives on, for the kernel to read.
fn own_path(path: &str) -> Option<&'static CStr> {
    let process = path.strip_prefix("/proc/")?.strip_suffix("/exe")?;
    let is_own =
        process == "self" || process == "thread-self" || process.parse() == Ok(std::process::id());
    let program = CString::new(process::program_path().filter(|_| is_own)?).ok()?;
    Some(Box::leak(program.into_boxed_c_str()))
}

/// The flags of a `clone` or `clone3`, whose first argument this is.
fn clone_flags(first: u64, number: i32) -> u64 {
    if i64::from(number) == libc::SYS_clone3 { target::word(first).unwrap_or(0) } else { first }
}

fn makes_thread(first: u64, number: i32) -> bool {
    clone_flags(first, number) & libc::CLONE_THREAD as u64 != 0
}

fn clone(probe: &Probe, thread: &mut ThreadState, call: &SystemCall<'_>, spot: Spot) {
    let first = call.argument(0);
    if !makes_thread(first, call.number) {
        return;
    }
    if probe.instrumentation.end_solo() {
        process::rebuild_everything();
    }
    let flags = clone_flags(first, call.number);
    let is_clone3 = i64::from(call.number) == libc::SYS_clone3;
    // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls
    let field = |i: u64| target::word(first + 8 * i).unwrap_or(0);
    let (parent_tid, tls) =
        if is_clone3 { (field(3), field(7)) } else { (call.argument(2), call.argument(4)) };
    let asks_id = flags & libc::CLONE_PARENT_SETTID as u64 != 0;
    let child: ThreadId = threads::next_id(probe);
    thread.last_child = Some(child);
    if flags & libc::CLONE_SETTLS as u64 != 0 {
        // The thread may be joined before its creator has told us the handle.
        set_handle(probe, tls, child);
    }
    thread.emit(probe, spot, EventKind::ThreadCreate { child });
    let id_at = if asks_id { parent_tid } else { 0 };
    let (bottom, size) = if is_clone3 { (field(5), field(6)) } else { (0, 0) };
    let stack = (bottom, size + thread_locals_above(bottom + size, tls));
    let hooked = hooks::is_making_thread(probe, thread);
    threads::announce_birth(probe, Birth { child, creator: thread.id, id_at, hooked, stack });
}

/// The C libraries put a thread's local variables and its descriptor at the top of the mapping that
/// is its stack: how many bytes lie there above the stack proper, if it is so. The thread's block
/// lies in the last page.
fn thread_locals_above(stack_end: u64, block: u64) -> u64 {
    /// More than any program has in variables of this kind; a block farther away is elsewhere.
    const MOST: u64 = 1 << 20;
    const PAGE: u64 = 4096;
    match block.checked_sub(stack_end) {
        Some(distance) if distance < MOST => (block | (PAGE - 1)) + 1 - stack_end,
        _ => 0,
    }
}

/// The C libraries' handle of a thread is the address of its thread-local block.
fn set_handle(probe: &Probe, block: u64, thread: ThreadId) {
    let mut handles = probe.monitor.handles.lock().unwrap_or_else(|e| e.into_inner());
    handles.insert(block, thread);
}

/// Does an operation on a futex wait?
pub fn is_futex_wait(operation: u64) -> bool {
    matches!(
        (operation & 0x7f) as i32,
        libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_LOCK_PI
            | libc::FUTEX_WAIT_REQUEUE_PI
    )
}

fn futex(probe: &Probe, thread: &mut ThreadState, arguments: [u64; 6], spot: Spot) {
    let [address, operation, value, ..] = arguments;
    let (address, value) = (Address(address), value as u32);
    if is_futex_wait(operation) {
        thread.emit(probe, spot, EventKind::FutexWait { address, expected: value });
        return;
    }
    let wakes = matches!(
        (operation & 0x7f) as i32,
        libc::FUTEX_WAKE
            | libc::FUTEX_WAKE_BITSET
            | libc::FUTEX_WAKE_OP
            | libc::FUTEX_REQUEUE
            | libc::FUTEX_CMP_REQUEUE
            | libc::FUTEX_CMP_REQUEUE_PI
            | libc::FUTEX_UNLOCK_PI
    );
    if wakes {
        thread.emit(probe, spot, EventKind::FutexWake { address, count: value });
    }
}

/// What a call of the write family is about to write.
fn output(number: i64, arguments: [u64; 6]) -> Option<EventKind> {
    let argument = |i: usize| arguments[i];
    let (descriptor, length) = match number {
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => (argument(0), argument(2)),
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            (argument(0), vector_length(argument(1), argument(2)))
        }
        libc::SYS_sendmsg => (argument(0), message_length(argument(1))),
        libc::SYS_sendmmsg => {
            // struct mmsghdr: a struct msghdr of 56 bytes and a length, 64 in all.
            let messages = (0..argument(2).min(1024)).map(|i| message_length(argument(1) + 64 * i));
            (argument(0), messages.sum())
        }
        libc::SYS_sendfile => (argument(0), argument(3)),
        libc::SYS_copy_file_range | libc::SYS_splice => (argument(2), argument(4)),
        _ => return None,
    };
    Some(EventKind::Output { descriptor: descriptor as i32, length })
}

/// Bytes in `count` structs iovec at an address.
fn vector_length(address: u64, count: u64) -> u64 {
    (0..count.min(1024)).filter_map(|i| target::word(address + 16 * i + 8)).sum()
}

/// Bytes in a struct msghdr: name, name length, vector, vector count.
fn message_length(address: u64) -> u64 {
    let field = |i: u64| target::word(address + i).unwrap_or(0);
    vector_length(field(16), field(24))
}

//! What comes from outside: kept, and given again when the execution is replayed.
//!
//! A call is *answered from outside* when what it returns depends on somebody else: other processes, the
//! terminal, the kernel's own moods. Its answer is written to the log as it comes, with what it wrote
//! to memory, and so is the end of every wait for somebody outside, with the scheduling point it
//! came at. A replay makes no such call: it gives the answer, and lets waits end where they ended. What is written to the
//! standard streams is written again; what was sent to a socket is not sent again, for nobody is
//! there who waits for it.
//!
//! Files are not kept: they are read again, and must say the same, by a digest. Pipes and the like that the target
//! has made for itself are inside, as long as it has made no process that could have them too:
//! what comes from them is the target's own doing and repeats itself.
//!
//! A thread's arrivals are a queue; what does not fit its front is a divergence, told once, and
//! from there on the outside is asked again.

use super::outputs::{self, Output};
use super::table::{Table, Wait, Woken};
use super::told::Told;
use super::{Scheduler, State};
use crate::memory::outside::{self, About, Mode};
use crate::memory::{kernel, target};
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::SystemCall;
use raddle_model::ThreadId;
use raddle_schedule::{Arrival, Came, Why, parse_input};
use raddle_wire::log::Record;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::MutexGuard;

/// Bytes of a line in one record: what fits a chunk of the log, and leaves room.
const PART: usize = 32 * 1024;
/// Nanoseconds that whoever reads what is written again may take for a piece of it.
const READER_TIME: u64 = 1_000_000_000;
/// The standard streams: what they are is the outside's doing.
const STREAMS: std::ops::RangeInclusive<u64> = 0..=2;

/// What comes from outside.
#[derive(Debug, Default)]
pub struct Inputs {
    /// What is to come, in a replay that has not gone another way.
    to_come: Option<BTreeMap<ThreadId, VecDeque<Came>>>,
    /// Signals that are to come then, to whom.
    signals: VecDeque<(ThreadId, Signal)>,
    /// The target has made processes.
    has_children: bool,
    /// Arrivals written, and those that are to be.
    written: u64,
    unwritten: Vec<Arrival>,
    /// Arrivals of a server on its way to `main`, which its copies have in common.
    common: Option<Vec<Arrival>>,
    /// Descriptors whose other ends are in this process, too.
    inside: BTreeSet<i32>,
    /// Descriptors of files in which we say what the kernel says otherwise, and which these are.
    told: BTreeMap<i32, (Told, PathBuf)>,
    /// Children of a replay, by the ids that they had.
    children: BTreeMap<i64, i64>,
}

/// A signal from outside.
#[derive(Debug, Clone, Copy)]
pub struct Signal {
    /// When it was taken.
    pub moment: u64,
    pub clock: u64,
    pub about: About,
}

impl Inputs {
    /// Of a replay, from a file; of a server.
    pub fn new(file: Option<&str>, serves: bool) -> Result<Inputs, String> {
        let mut inputs = Inputs { common: serves.then(Vec::new), ..Inputs::default() };
        let Some(file) = file else { return Ok(inputs) };
        let text = std::fs::read_to_string(file)
            .map_err(|e| format!("cannot read what came from outside, {file}: {e}"))?;
        let mut to_come: BTreeMap<ThreadId, VecDeque<Came>> = BTreeMap::new();
        for Arrival { thread, what } in parse_input(&text).map_err(|e| format!("{file}: {e}"))? {
            match what {
                Came::Signal { moment, clock, about } => {
                    let about = words(&about);
                    inputs.signals.push_back((thread, Signal { moment, clock, about }));
                }
                what => to_come.entry(thread).or_default().push_back(what),
            }
        }
        inputs.to_come = Some(to_come);
        Ok(inputs)
    }

    /// This process is a copy: it begins with what the server was given.
    pub fn restart(&mut self) {
        self.unwritten = self.common.take().unwrap_or_default();
        self.written = 0;
    }

    pub fn is_replaying(&self) -> bool {
        self.to_come.is_some()
    }

    /// What is done with signals from outside.
    pub fn signal_mode(&self) -> Mode {
        if self.is_replaying() { Mode::Dropped } else { Mode::Held }
    }

    /// May a process that the target has made send it signals?
    pub fn has_children(&self) -> bool {
        self.has_children
    }

    /// A signal is taken.
    pub fn add_signal(&mut self, thread: ThreadId, Signal { moment, clock, about }: Signal) {
        let about = about.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.add(thread, Came::Signal { moment, clock, about });
    }

    /// The next signal of a replay.
    pub fn next_signal(&self) -> Option<(ThreadId, Signal)> {
        self.signals.front().copied().filter(|_| self.is_replaying())
    }

    /// It has come.
    pub fn signal_came(&mut self) {
        self.signals.pop_front();
    }

    fn add(&mut self, thread: ThreadId, what: Came) {
        if self.is_replaying() {
            return;
        }
        let arrival = Arrival { thread, what };
        if let Some(common) = &mut self.common {
            common.push(arrival.clone());
        }
        self.unwritten.push(arrival);
    }

    /// Writes down what came.
    pub fn write(&mut self, thread: &mut ThreadState) {
        for arrival in std::mem::take(&mut self.unwritten) {
            let (line, number) = (arrival.to_string(), self.written);
            self.written += 1;
            let mut rest = line.as_str();
            while !rest.is_empty() {
                // A line is ASCII.
                let (part, after) = rest.split_at(rest.len().min(PART));
                thread.write(&Record::Input { number, text: part.to_owned() });
                rest = after;
            }
        }
    }

    /// Are both ends of what is behind the descriptor in this process?
    pub fn is_inside(&self, descriptor: i32) -> bool {
        self.inside.contains(&descriptor)
    }

    /// The descriptor stands for what we say in that file's stead.
    pub fn tell(&mut self, descriptor: i32, what: Told, path: PathBuf) {
        self.told.insert(descriptor, (what, path));
    }

    /// Which file we speak for by this descriptor, if we do.
    pub fn told(&self, descriptor: i32) -> Option<(Told, PathBuf)> {
        self.told.get(&descriptor).cloned()
    }

    fn next(&self, thread: ThreadId) -> Option<&Came> {
        self.to_come.as_ref()?.get(&thread)?.front()
    }

    fn take(&mut self, thread: ThreadId) -> Option<Came> {
        self.to_come.as_mut()?.get_mut(&thread)?.pop_front()
    }

    /// Has everything come that was kept? The recording may have been cut off, by a time limit.
    fn is_over(&self) -> bool {
        self.to_come.as_ref().is_some_and(|queues| queues.values().all(VecDeque::is_empty))
    }

    /// The wait of this thread is over at this point: why, and at what time.
    fn woken_at(&self, thread: ThreadId, now: u64) -> Option<(u64, Why)> {
        match self.next(thread) {
            Some(&Came::Woken { point, clock, why }) if point == now => Some((clock, why)),
            _ => None,
        }
    }

    /// A process is made, or has been: whatever is open may be its, too.
    fn share_all(&mut self) {
        self.inside.clear();
        self.has_children = true;
    }
}

fn words(bytes: &[u8]) -> About {
    let mut words = About::default();
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

/// A call under way whose answer is from outside.
#[derive(Debug)]
pub struct PendingInput {
    call: u32,
    outputs: Vec<Output>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Its answer is kept.
    Kept,
    /// It reads a file: a digest of that is kept.
    File,
    /// It reads a file again, with this result and this digest.
    Again(i64, u64),
}

/// What a call's answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// What is read from a descriptor.
    From(u64),
    /// How much of what is written a descriptor takes.
    To(u64),
    /// Something else outside.
    Other,
}

impl Source {
    fn of(call: &SystemCall<'_>, inputs: &Inputs) -> Option<Source> {
        let argument = |i| call.argument(i);
        let first = argument(0);
        let source = match i64::from(call.number) {
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_pread64
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_getdents64
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_connect
            | libc::SYS_getsockname
            | libc::SYS_getpeername
            | libc::SYS_getsockopt => Source::From(first),
            libc::SYS_ioctl
                if [libc::FIONREAD, libc::TIOCGWINSZ, libc::TCGETS].contains(&argument(1)) =>
            {
                Source::From(first)
            }
            // What the standard streams are. Of other descriptors, that is the target's own doing.
            libc::SYS_fstat | libc::SYS_lseek if STREAMS.contains(&first) => Source::From(first),
            libc::SYS_newfstatat | libc::SYS_statx
                if STREAMS.contains(&first) && target::string(argument(1), 1).is_empty() =>
            {
                Source::From(first)
            }
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg => Source::To(first),
            libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_flock
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_msgrcv
            | libc::SYS_msgsnd => Source::Other,
            libc::SYS_fcntl => match argument(1) as i32 {
                libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
                    Source::Other
                }
                _ => return None,
            },
            _ => return None,
        };
        match source {
            Source::From(fd) | Source::To(fd) if inputs.inside.contains(&(fd as i32)) => None,
            source => Some(source),
        }
    }

    /// Is what is read there the same whoever looks, and whenever?
    fn is_file(self) -> bool {
        let Source::From(descriptor) = self else { return false };
        let kind = kernel::mode_of(descriptor as i32).map(|mode| mode & libc::S_IFMT);
        // What the kernel says of itself looks like files, too.
        matches!(kind, Some(libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK))
            && !kernel::makes_up(descriptor as i32)
    }
}

fn arguments(call: &SystemCall<'_>) -> [u64; 6] {
    std::array::from_fn(|i| call.argument(i as u32))
}

/// What is done with a call in a replay.
#[derive(Debug, PartialEq, Eq)]
pub enum Replayed {
    /// It has been answered.
    Answered(i64),
    /// It is made, at once.
    Made,
    /// This is none of those calls, or no replay.
    Not,
}

/// A call comes: answers it if this is a replay and it was answered from outside.
pub fn answer(
    scheduler: &Scheduler,
    probe: &Probe,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
) -> Replayed {
    let source = {
        let state = scheduler.lock();
        match state.inputs.is_replaying() {
            true => Source::of(call, &state.inputs),
            false => None,
        }
    };
    let Some(source) = source else { return Replayed::Not };
    let step = scheduler.step_of(probe, thread, call);
    let mut state = scheduler.lock();
    while matches!(state.inputs.next(thread.id), Some(Came::Woken { .. })) {
        drop(state);
        scheduler.block(probe, thread, Wait::Recorded, None, step);
        state = scheduler.lock();
    }
    let outputs = outputs::of(call.number.into(), arguments(call));
    let number = call.number as u32;
    match state.inputs.take(thread.id) {
        Some(Came::Answer { call: was, result, pieces }) if was == number => {
            drop(state);
            act(call, source, result);
            if !outputs::restore(&outputs, &pieces) {
                let what = format!("{} asks for less than it did", name(call.number));
                diverge(scheduler, thread, &what);
            }
            Replayed::Answered(result)
        }
        Some(Came::Same { call: was, result, digest }) if was == number => {
            let kind = Kind::Again(result, digest);
            thread.input = Some(PendingInput { call: number, outputs, kind });
            Replayed::Made
        }
        other => {
            // There is nothing more because the recording ends here, or the execution goes another
            // way.
            let is_over = other.is_none() && state.inputs.is_over();
            drop(state);
            if is_over {
                leave_recording(scheduler);
            } else if scheduler.lock().inputs.is_replaying() {
                let what = format!("{} where it did something else then", name(call.number));
                diverge(scheduler, thread, &what);
            }
            Replayed::Not
        }
    }
}

/// What a call does beside its answer, and a replay has to do, too.
fn act(call: &SystemCall<'_>, source: Source, result: i64) {
    let [descriptor, second, third, ..] = arguments(call);
    let is_socket = || {
        let mode = kernel::mode_of(descriptor as i32);
        mode.is_some_and(|mode| mode & libc::S_IFMT == libc::S_IFSOCK)
    };
    match (i64::from(call.number), source) {
        (libc::SYS_write, Source::To(_)) if result > 0 && !is_socket() => {
            write_again(descriptor, &[(second, third)], result as u64);
        }
        (libc::SYS_writev, Source::To(_)) if result > 0 && !is_socket() => {
            let pieces = super::descriptors::vectors(second, third);
            write_again(descriptor, &pieces, result as u64);
        }
        // The number is taken, by something that is a socket, too.
        (libc::SYS_accept | libc::SYS_accept4, _) if result >= 0 => {
            let family = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0];
            let made = kernel::call(libc::SYS_socket, family);
            if made >= 0 && made != result {
                kernel::call(libc::SYS_dup2, [made as u64, result as u64, 0, 0, 0, 0]);
                kernel::call(libc::SYS_close, [made as u64, 0, 0, 0, 0, 0]);
            }
        }
        // A signal that was taken is not there any more.
        (libc::SYS_rt_sigtimedwait, _) if result > 0 => {
            let (no_time, size) = ([0u64; 2], call.argument(3));
            let time = no_time.as_ptr() as u64;
            kernel::call(libc::SYS_rt_sigtimedwait, [descriptor, 0, time, size, 0, 0]);
        }
        // So is a file lock, or it is still there.
        (libc::SYS_flock, _) if result == 0 => {
            let operation = second | libc::LOCK_NB as u64;
            kernel::call(libc::SYS_flock, [descriptor, operation, 0, 0, 0, 0]);
        }
        _ => {}
    }
}

/// Writes so many bytes of these pieces of memory to a descriptor, as far as somebody reads.
fn write_again(descriptor: u64, pieces: &[(u64, u64)], mut length: u64) {
    for &(start, size) in pieces {
        let (mut at, end) = (start, start + size.min(length));
        length -= size.min(length);
        while at < end {
            let wanted =
                kernel::Descriptor { fd: descriptor as i32, events: libc::POLLOUT, revents: 0 };
            if kernel::poll(&mut [wanted], READER_TIME) != Some(true) {
                return;
            }
            let size = (end - at).min(super::descriptors::PIECE);
            match kernel::call(libc::SYS_write, [descriptor, at, size, 0, 0, 0]) {
                written if written > 0 => at += written as u64,
                _ => return,
            }
        }
    }
}

/// A call comes and is no replay's: its answer is to be kept, if it is from outside.
pub fn expect(scheduler: &Scheduler, thread: &mut ThreadState, call: &SystemCall<'_>) {
    thread.input = None;
    let (source, told) = {
        let state = scheduler.lock();
        let told = state.inputs.told.contains_key(&(call.argument(0) as i32));
        // What comes behind a divergence repeats nothing.
        (if state.diverged { None } else { Source::of(call, &state.inputs) }, told)
    };
    let Some(source) = source else { return };
    let kind = if source.is_file() && !told { Kind::File } else { Kind::Kept };
    // Of what goes out, the result is enough.
    let outputs = outputs::of(call.number.into(), arguments(call));
    thread.input = Some(PendingInput { call: call.number as u32, outputs, kind });
}

/// The call under way is answered: by the kernel, or by us in its stead.
pub fn note(scheduler: &Scheduler, thread: &mut ThreadState, result: i64) {
    let Some(PendingInput { call, outputs, kind }) = thread.input.take() else { return };
    let what = match kind {
        Kind::Kept => Came::Answer { call, result, pieces: outputs::pieces(&outputs, result) },
        Kind::File => Came::Same { call, result, digest: outputs::digest(&outputs, result) },
        Kind::Again(was, digest) => {
            if (was, digest) != (result, outputs::digest(&outputs, result)) {
                let what = "reads a file that says something else than it did".to_owned();
                diverge(scheduler, thread, &what);
            }
            return;
        }
    };
    let mut state = scheduler.lock();
    state.inputs.add(thread.id, what);
    state.inputs.write(thread);
}

/// Descriptors come and go; processes are made.
pub fn descriptors_change(scheduler: &Scheduler, call: &SystemCall<'_>, arguments: [u64; 2]) {
    let result = call.result();
    if result < 0 {
        return;
    }
    let [first, second] = arguments;
    let pair = |at: u64| target::word(at).map(|word| [word as i32, (word >> 32) as i32]);
    let Inputs { inside, told, .. } = &mut scheduler.lock().inputs;
    match i64::from(call.number) {
        libc::SYS_pipe | libc::SYS_pipe2 => inside.extend(pair(first).into_iter().flatten()),
        libc::SYS_socketpair => inside.extend(pair(second).into_iter().flatten()),
        libc::SYS_eventfd
        | libc::SYS_eventfd2
        | libc::SYS_timerfd_create
        | libc::SYS_memfd_create => {
            inside.insert(result as i32);
        }
        libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => copy(inside, told, first, result),
        libc::SYS_fcntl if [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&(second as i32)) => {
            copy(inside, told, first, result);
        }
        libc::SYS_close => {
            inside.remove(&(first as i32));
            told.remove(&(first as i32));
        }
        libc::SYS_close_range => {
            inside.retain(|fd| !(first..=second).contains(&(*fd as u64)));
            told.retain(|fd, _| !(first..=second).contains(&(*fd as u64)));
        }
        _ => {}
    }
}

fn copy(inside: &mut BTreeSet<i32>, told: &mut BTreeMap<i32, (Told, PathBuf)>, from: u64, to: i64) {
    match inside.contains(&(from as i32)) {
        true => inside.insert(to as i32),
        false => inside.remove(&(to as i32)),
    };
    match told.get(&(from as i32)).cloned() {
        Some(what) => told.insert(to as i32, what),
        None => told.remove(&(to as i32)),
    };
}

/// A process has been made. Returns the id that the target is told.
pub fn process_made(
    scheduler: &Scheduler,
    thread: &mut ThreadState,
    call: &SystemCall<'_>,
) -> Option<i64> {
    let (number, result) = (call.number as u32, call.result());
    let mut state = scheduler.lock();
    state.inputs.share_all();
    if !state.inputs.is_replaying() {
        state.inputs.add(thread.id, Came::Answer { call: number, result, pieces: Vec::new() });
        state.inputs.write(thread);
        return None;
    }
    match state.inputs.take(thread.id) {
        Some(Came::Answer { call: was, result: told, .. }) if was == number => {
            state.inputs.children.insert(told, result);
            Some(told)
        }
        _ => {
            drop(state);
            diverge(scheduler, thread, "makes a process where it did something else then");
            None
        }
    }
}

/// A signal is sent to a process: in a replay, to the child that has the other's part, and to nobody who
/// merely has its number now.
pub fn redirect(scheduler: &Scheduler, call: &mut SystemCall<'_>) -> Option<i64> {
    let (to, state) = (call.argument(0) as i32, scheduler.lock());
    if !state.inputs.is_replaying() || to <= 0 || to == std::process::id() as i32 {
        return None;
    }
    let Some(child) = state.inputs.children.get(&i64::from(to)) else { return Some(0) };
    call.set_argument(0, *child as u64);
    None
}

/// The replay has gone another way. From here on the outside is asked again.
fn diverge(scheduler: &Scheduler, thread: &mut ThreadState, what: &str) {
    let id = thread.id;
    leave_recording(scheduler);
    let mut state = scheduler.lock();
    if !std::mem::replace(&mut state.diverged, true) {
        let what = format!("at scheduling point {}: {id} {what}", state.points);
        thread.write(&Record::Diverged { what });
    }
}

/// Nothing that is to come is known any more.
fn leave_recording(scheduler: &Scheduler) {
    let mut state = scheduler.lock();
    state.inputs.to_come = None;
    outside::set(Mode::Held);
    state.table.release_recorded();
}

impl Scheduler {
    /// A replay in which nobody can run, and what came from outside does not come any more.
    pub(super) fn nothing_comes<'a>(
        &'a self,
        thread: &mut ThreadState,
        state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let is_over = state.inputs.is_over();
        drop(state);
        match is_over {
            true => leave_recording(self),
            false => {
                diverge(self, thread, "and all others wait for what does not come; it did then")
            }
        }
        self.lock()
    }
}

impl State {
    /// Ends the waits that ended at this point; in a replay.
    pub fn wake_recorded(&mut self) {
        let State { table, inputs, clock, points, .. } = self;
        for entry in table.iter_mut() {
            let waits = match entry.wait {
                Wait::Recorded => true,
                Wait::Outside => entry.returned,
                _ => false,
            };
            let Some((time, why)) = inputs.woken_at(entry.id, *points).filter(|_| waits) else {
                continue;
            };
            inputs.take(entry.id);
            clock.pass_to(time);
            entry.returned = false;
            entry.wake(match why {
                Why::Came => Woken::Came(0),
                Why::Late => Woken::Late,
                Why::Interrupted => Woken::Interrupted,
            });
        }
    }

    /// Does a thread that is to go on at this point still make its call?
    pub fn awaits_return(&self) -> bool {
        let is_due = |id| self.inputs.woken_at(id, self.points).is_some();
        self.table.iter().any(|e| matches!(e.wait, Wait::Outside) && !e.returned && is_due(e.id))
    }

    /// Is it written when a wait ends, at this point?
    pub fn knows_time(&self) -> bool {
        let waits = |wait: &Wait| matches!(wait, Wait::Recorded | Wait::Outside);
        let due = |id| self.inputs.woken_at(id, self.points).is_some();
        self.table.iter().any(|e| waits(&e.wait) && due(e.id))
    }

    /// Writes down which waits for somebody outside are over.
    pub fn note_woken(&mut self, thread: &mut ThreadState) {
        let State { table, inputs, clock, points, .. } = self;
        note_woken(table, inputs, *points, clock.now());
        if !inputs.unwritten.is_empty() {
            inputs.write(thread);
        }
    }
}

fn note_woken(table: &mut Table, inputs: &mut Inputs, point: u64, clock: u64) {
    let over = |entry: &&mut super::table::Entry| {
        entry.waits_outside && matches!(entry.wait, Wait::Nothing)
    };
    for entry in table.iter_mut().filter(over) {
        entry.waits_outside = false;
        let why = match entry.woken {
            Woken::Came(_) => Why::Came,
            Woken::Late => Why::Late,
            Woken::Interrupted => Why::Interrupted,
        };
        inputs.add(entry.id, Came::Woken { point, clock, why });
    }
}

/// A call, for people.
fn name(number: i32) -> String {
    let name = match i64::from(number) {
        libc::SYS_read => "read",
        libc::SYS_readv => "readv",
        libc::SYS_pread64 => "pread",
        libc::SYS_recvfrom => "recvfrom",
        libc::SYS_recvmsg => "recvmsg",
        libc::SYS_accept | libc::SYS_accept4 => "accept",
        libc::SYS_connect => "connect",
        libc::SYS_write => "write",
        libc::SYS_writev => "writev",
        libc::SYS_sendto => "sendto",
        libc::SYS_sendmsg => "sendmsg",
        libc::SYS_poll | libc::SYS_ppoll => "poll",
        libc::SYS_select | libc::SYS_pselect6 => "select",
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => "epoll_wait",
        libc::SYS_wait4 => "wait4",
        _ => return format!("makes system call {number}"),
    };
    format!("makes a {name}")
}

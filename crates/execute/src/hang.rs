//! Does the target wait, or do we? A deadlock of our own, between locks of the probe or of the
//! engine, would look like a target that takes long; and a target may well take long: it waits for a
//! connection, for a person, for a lock that nobody gives back. So nothing is concluded from silence.
//!
//! What tells them apart is where a system call is made. The engine runs the target's code from its
//! cache, which no file backs, and so are the target's system calls made from there; only the
//! engine, the probe and their own copies of libraries run from the files they were loaded from. So
//! the kernel is asked, every few seconds, what each thread does, and a process is *standing* if all
//! its threads sleep in system calls, those of them made by us wait for a futex, and
//!
//! - one of these has no time-out: a lock of ours, which is never held while the target's code runs
//!   or waits, but by somebody who is at work (and then that one is not asleep, or asleep otherwise); or
//! - no thread is in a call of the target's: under a schedule all wait for a turn that nobody has.
//!   (The scheduler ends a target that is stuck, and polls for what comes from outside.)
//!
//! If the same threads have stood in the same places for long and none of them has run in between,
//! then we hang. Whatever is unclear is taken for work: a thread that is stopped or traced, one that waits for
//! a disk, one that makes a process in its own memory, a look that came late because this process
//! did not run either. A hang in which some thread goes on computing, or in which we spin, is not seen.

use raddle_model::ThreadId;
use raddle_symbols::Symboliser;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long all must stand. What is waited for here is released within microseconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Looks in that time.
const LOOKS: u32 = 12;
/// A look so much later than its time shows that we did not run: then neither may the target have.
const LATE: u32 = 3;
/// Seconds to take instead of [`PATIENCE`]; for tests.
const PATIENCE_VARIABLE: &str = "RADDLE_HANG_PATIENCE";

/// Bytes of a stack that are searched for callers, and how many are named.
const STACK_BYTES: usize = 4096;
const MOST_CALLERS: usize = 8;
/// Threads that are told of.
const MOST_THREADS: usize = 4;

/// Looks at processes now and then.
#[derive(Debug)]
pub(crate) struct HangWatch {
    patience: Duration,
    looked: Instant,
    standing: HashMap<u32, (Instant, Standing)>,
}

/// A hang of ours.
#[derive(Debug)]
pub(crate) struct Hang {
    pub process: u32,
    /// How long it has lasted.
    lasted: Duration,
    standing: Standing,
}

impl HangWatch {
    pub(crate) fn new() -> Self {
        let asked = std::env::var(PATIENCE_VARIABLE).ok().and_then(|text| text.parse().ok());
        HangWatch {
            patience: asked.map_or(PATIENCE, Duration::from_secs),
            looked: Instant::now(),
            standing: HashMap::new(),
        }
    }

    /// Is it time for another look?
    pub(crate) fn is_due(&self) -> bool {
        self.looked.elapsed() >= self.patience / LOOKS
    }

    /// Looks at the processes that run under the engine now.
    pub(crate) fn look(&mut self, processes: &[u32]) -> Option<Hang> {
        let now = Instant::now();
        if now - self.looked >= self.patience / LOOKS * LATE {
            self.standing.clear();
        }
        self.looked = now;
        self.standing.retain(|process, _| processes.contains(process));
        for &process in processes {
            let Some(found) = Standing::of(process) else {
                self.standing.remove(&process);
                continue;
            };
            let (since, before) =
                self.standing.entry(process).or_insert_with(|| (now, found.clone()));
            if *before != found {
                (*since, *before) = (now, found);
            } else if now - *since >= self.patience {
                return Some(Hang { process, lasted: now - *since, standing: found });
            }
        }
        None
    }
}

impl Hang {
    /// What is wrong, and where; the process must not have been killed yet.
    pub(crate) fn tell(&self, threads: &HashMap<u32, ThreadId>) -> String {
        let mut waits: Vec<&Wait> = self.standing.0.iter().collect();
        // Who waits for a lock of ours says most.
        waits.sort_by_key(|wait| wait.call.futex_wait() != Some(FutexWait::ForEver));
        let waits = waits.into_iter().map(|wait| (wait.thread, Some(&wait.call)));
        let seconds = self.lasted.as_secs();
        let places = places(self.process, waits, threads);
        format!("it hung in code of ours for {seconds} seconds and was killed: {places}")
    }
}

/// Where the threads of a process are that should have ended by now.
pub(crate) fn whereabouts(process: u32, threads: &HashMap<u32, ThreadId>) -> String {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let calls: Vec<(u32, Option<Call>)> = tasks
        .filter_map(|task| {
            let call = fs::read_to_string(task.path().join("syscall")).ok()?;
            Some((task.file_name().to_str()?.parse().ok()?, Call::parse(&call)))
        })
        .collect();
    places(process, calls.iter().map(|(thread, call)| (*thread, call.as_ref())), threads)
}

/// Where threads are in their calls, those without one being at work.
fn places<'c>(
    process: u32,
    calls: impl Iterator<Item = (u32, Option<&'c Call>)>,
    threads: &HashMap<u32, ThreadId>,
) -> String {
    let mut symboliser = Symboliser::default();
    let mut told = Vec::new();
    for (thread, call) in calls.take(MOST_THREADS) {
        let id = threads.get(&thread).map(|id| format!("{id}, ")).unwrap_or_default();
        let Some(call) = call else {
            told.push(format!("{id}thread {thread}, is at work"));
            continue;
        };
        let maps = Maps::of(process, thread).unwrap_or_default();
        let place = maps.name(call.pc, &mut symboliser);
        let callers = maps.return_addresses(process, thread, call.sp).into_iter();
        let callers: Vec<String> = callers
            .take(MOST_CALLERS)
            .map(|address| maps.name(address - 1, &mut symboliser))
            .collect();
        let callers = match callers.is_empty() {
            true => String::new(),
            false => format!("; on its stack are {}", callers.join(", ")),
        };
        told.push(format!("{id}thread {thread}, waits in {place}{callers}"));
    }
    told.join("; ")
}

/// The waits of ours in a process whose threads all sleep.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing(Vec<Wait>);

/// A thread that waits in code of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wait {
    thread: u32,
    call: Call,
    /// How often it has been taken from a processor, or left it.
    switches: u64,
}

impl Standing {
    /// `None` if somebody is at work, or if it cannot be known.
    fn of(process: u32) -> Option<Standing> {
        let directory = PathBuf::from(format!("/proc/{process}/task"));
        let mut calls = Vec::new();
        for entry in fs::read_dir(&directory).ok()? {
            let entry = entry.ok()?;
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            match sleeps(&status)? {
                Sleep::Over => continue,
                Sleep::Since(switches) => {
                    let thread = entry.file_name().to_str()?.parse().ok()?;
                    let call =
                        Call::parse(&fs::read_to_string(entry.path().join("syscall")).ok()?)?;
                    calls.push(Wait { thread, call, switches });
                }
            }
        }
        let maps = Maps::of(process, calls.first()?.thread)?;
        stands(calls, |pc| maps.find(pc).is_some())
    }
}

/// Do these calls make a process that stands? `is_ours` knows addresses of our own code.
fn stands(calls: Vec<Wait>, is_ours: impl Fn(u64) -> bool) -> Option<Standing> {
    let all = calls.len();
    if calls.iter().any(|wait| wait.call.shares_memory()) {
        return None;
    }
    let mut ours: Vec<Wait> = calls.into_iter().filter(|wait| is_ours(wait.call.pc)).collect();
    let waits: Option<Vec<FutexWait>> = ours.iter().map(|wait| wait.call.futex_wait()).collect();
    let for_a_lock = waits?.contains(&FutexWait::ForEver);
    ours.sort_unstable_by_key(|wait| wait.thread);
    let hangs = for_a_lock || ours.len() == all;
    (hangs && !ours.is_empty()).then_some(Standing(ours))
}

/// How a thread sleeps.
#[derive(Debug, PartialEq, Eq)]
enum Sleep {
    /// It has ended.
    Over,
    /// Since it was last switched, by this count.
    Since(u64),
}

/// From `/proc/…/status`; `None` if it does not sleep, or not so that a signal would wake it.
fn sleeps(status: &str) -> Option<Sleep> {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    match value("State:")?.chars().next()? {
        'S' => {}
        'Z' | 'X' => return Some(Sleep::Over),
        _ => return None,
    }
    // Somebody traces it, stopped or not.
    if value("TracerPid:")? != "0" {
        return None;
    }
    let counts = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
    let mut switches = 0u64;
    for count in counts {
        switches = switches.wrapping_add(value(count)?.parse().ok()?);
    }
    Some(Sleep::Since(switches))
}

/// A system call that a thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    number: u64,
    arguments: [u64; 6],
    sp: u64,
    pc: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum FutexWait {
    ForEver,
    Timed,
}

impl Call {
    const FUTEX: u64 = 202;
    /// clone, vfork, execve, clone3: the child may be at work in this process's memory.
    const SHARING: [u64; 4] = [56, 58, 59, 435];

    /// From `/proc/…/syscall`; `None` if it is in none.
    fn parse(text: &str) -> Option<Call> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut next = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = next()?;
        }
        Some(Call { number, arguments, sp: next()?, pc: next()? })
    }

    fn futex_wait(&self) -> Option<FutexWait> {
        /// `FUTEX_WAIT` and `FUTEX_WAIT_BITSET`; the flags for private ones and for the clock are above.
        const WAITS: [u64; 2] = [0, 9];
        const COMMAND: u64 = 0x7f;
        let [_, operation, _, time_out, ..] = self.arguments;
        let waits = self.number == Self::FUTEX && WAITS.contains(&(operation & COMMAND));
        waits.then_some(if time_out == 0 { FutexWait::ForEver } else { FutexWait::Timed })
    }

    fn shares_memory(&self) -> bool {
        Self::SHARING.contains(&self.number)
    }
}

/// The code of files in a process.
#[derive(Debug, Default)]
struct Maps(Vec<Map>);

#[derive(Debug, PartialEq, Eq)]
struct Map {
    start: u64,
    end: u64,
    /// Where the file's first byte is mapped, next below.
    base: u64,
    executable: bool,
    path: PathBuf,
}

impl Maps {
    /// As a thread has it: of a process whose first thread has ended, the process itself has none.
    fn of(process: u32, thread: u32) -> Option<Maps> {
        let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/maps")).ok()?;
        Some(Maps::parse(&text))
    }

    fn parse(text: &str) -> Maps {
        let mut maps: Vec<Map> = Vec::new();
        for line in text.lines() {
            let mut parts = line.splitn(6, ' ');
            let mut part = || parts.next().unwrap_or_default();
            let (range, access, offset) = (part(), part(), part());
            let (_device, _inode) = (part(), part());
            let path = part().trim_start();
            let hex = |text: &str| u64::from_str_radix(text, 16).ok();
            let Some((start, end)) = range.split_once('-').and_then(|(s, e)| hex(s).zip(hex(e)))
            else {
                continue;
            };
            // Shared memory without a name has one here.
            let is_file = path.starts_with('/')
                && !["/memfd:", "/dev/", "/SYSV"].iter().any(|other| path.starts_with(other));
            if !is_file {
                continue;
            }
            let before = maps.iter().rfind(|map| map.path == Path::new(path)).map(|map| map.base);
            let base = if hex(offset) == Some(0) { start } else { before.unwrap_or(start) };
            let executable = access.contains('x');
            maps.push(Map { start, end, base, executable, path: path.into() });
        }
        Maps(maps)
    }

    /// The file whose code is at an address.
    fn find(&self, address: u64) -> Option<&Map> {
        self.0.iter().find(|map| map.executable && (map.start..map.end).contains(&address))
    }

    fn name(&self, address: u64, symboliser: &mut Symboliser) -> String {
        let Some(map) = self.find(address) else { return format!("{address:#x}") };
        let offset = address - map.base;
        let file = map.path.file_name().unwrap_or_default().to_string_lossy();
        let frames = symboliser.frames(&map.path, offset);
        match frames.into_iter().next_back().and_then(|frame| frame.function) {
            Some(function) => format!("{function} ({file}+{offset:#x})"),
            None => format!("{file}+{offset:#x}"),
        }
    }

    /// What looks like return addresses on a stack, the innermost first: addresses behind a call.
    fn return_addresses(&self, process: u32, thread: u32, sp: u64) -> Vec<u64> {
        let memory = File::open(format!("/proc/{process}/task/{thread}/mem"));
        let Ok(memory) = memory else { return Vec::new() };
        let mut stack = vec![0; STACK_BYTES];
        let read = memory.read_at(&mut stack, sp).unwrap_or(0);
        stack.truncate(read);
        let words = stack.chunks_exact(8).filter_map(|word| word.try_into().ok());
        words
            .map(u64::from_le_bytes)
            .filter(|address| {
                let mut code = [0; CALL_BYTES];
                self.find(address.wrapping_sub(1)).is_some()
                    && memory.read_exact_at(&mut code, address - CALL_BYTES as u64).is_ok()
                    && ends_with_call(&code)
            })
            .collect()
    }
}

/// Bytes of the longest call that is recognised.
const CALL_BYTES: usize = 6;

/// Is the last instruction of this code a call?
fn ends_with_call(code: &[u8; CALL_BYTES]) -> bool {
    // `call rel32` has a length of five; `call r/m` has two, three or six with the usual operands.
    let indirect = |at: usize| code[at] == 0xff && code[at + 1] >> 3 & 7 == 2;
    code[1] == 0xe8 || indirect(0) || indirect(3) || indirect(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
71000000-7104f000 r--p 00000000 08:01 7        /opt/libdynamorio.so
7104f000-71142000 r-xp 0004f000 08:01 7        /opt/libdynamorio.so
71142000-71143000 rw-p 00142000 08:01 7        /opt/libdynamorio.so
72000000-72001000 rwxp 00000000 00:00 0
7f0000000000-7f0000001000 r-xp 00000000 00:01 3        /memfd:jit (deleted)
7f0000100000-7f0000101000 r-xp 00000000 08:01 9        /a b/libc.so.6 (deleted)
7ffff0000000-7ffff0001000 r-xp 00000000 00:00 0        [vdso]
";
    const CACHE: u64 = 0x7200_0010;
    const OURS: u64 = 0x7104_f010;

    /// A thread in a futex call.
    fn futex(thread: u32, operation: u64, time_out: u64, pc: u64) -> Wait {
        let arguments = [0x1000, operation, 2, time_out, 0, 0];
        Wait { thread, call: Call { number: Call::FUTEX, arguments, sp: 0x2000, pc }, switches: 1 }
    }

    fn other(thread: u32, number: u64, pc: u64) -> Wait {
        let mut wait = futex(thread, 0, 0, pc);
        wait.call.number = number;
        wait
    }

    fn threads(calls: &[Wait]) -> Option<Vec<u32>> {
        let maps = Maps::parse(MAPS);
        let standing = stands(calls.to_vec(), |pc| maps.find(pc).is_some())?;
        Some(standing.0.iter().map(|wait| wait.thread).collect())
    }

    #[test]
    fn only_code_of_files_is_ours() {
        let maps = Maps::parse(MAPS);
        let found = maps.find(OURS).unwrap();
        assert_eq!((found.base, found.path.to_str()), (0x7100_0000, Some("/opt/libdynamorio.so")));
        let found = maps.find(0x7f00_0010_0000).unwrap();
        assert_eq!(found.path.to_str(), Some("/a b/libc.so.6 (deleted)"));
        for other in [CACHE, 0x7100_0000, 0x7114_2000, 0x7f00_0000_0000, 0x7fff_f000_0000] {
            assert_eq!(maps.find(other), None, "{other:#x}");
        }
    }

    #[test]
    fn a_target_that_waits_does_not_stand() {
        const ACCEPT: u64 = 43;
        assert_eq!(threads(&[]), None);
        assert_eq!(threads(&[futex(1, 0x80, 0, CACHE), other(2, ACCEPT, CACHE)]), None);
        // Under a schedule the others wait for their turn.
        assert_eq!(threads(&[futex(1, 0x80, 0x3000, OURS), other(2, ACCEPT, CACHE)]), None);
    }

    #[test]
    fn locks_of_ours_and_a_lost_turn_stand() {
        const ACCEPT: u64 = 43;
        let locks = [futex(3, 0x89, 0, OURS), other(2, ACCEPT, CACHE), futex(1, 0, 0, OURS)];
        assert_eq!(threads(&locks), Some(vec![1, 3]));
        let lost = [futex(1, 0x80, 0x3000, OURS), futex(2, 0x80, 0x3000, OURS)];
        assert_eq!(threads(&lost), Some(vec![1, 2]));
    }

    #[test]
    fn who_may_be_at_work_is() {
        const NANOSLEEP: u64 = 230;
        const VFORK: u64 = 58;
        const WAKE: u64 = 1;
        let lock = || futex(1, 0x89, 0, OURS);
        assert_eq!(threads(&[lock(), other(2, NANOSLEEP, OURS)]), None);
        assert_eq!(threads(&[lock(), other(2, VFORK, CACHE)]), None);
        assert_eq!(threads(&[lock(), futex(2, WAKE, 0, OURS)]), None);
    }

    #[test]
    fn what_the_kernel_says_is_understood() {
        let status = |state: &str, tracer: u32| {
            format!(
                "Name:\tState: x\nState:\t{state}\nTracerPid:\t{tracer}\n\
                 voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n"
            )
        };
        assert_eq!(sleeps(&status("S (sleeping)", 0)), Some(Sleep::Since(10)));
        assert_eq!(sleeps(&status("Z (zombie)", 0)), Some(Sleep::Over));
        for (state, tracer) in [("R (running)", 0), ("D (disk sleep)", 0), ("T (stopped)", 0)] {
            assert_eq!(sleeps(&status(state, tracer)), None);
        }
        assert_eq!(sleeps(&status("S (sleeping)", 1)), None);
        let call = Call::parse("202 0x10 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x71\n").unwrap();
        assert_eq!((call.number, call.arguments[1], call.sp, call.pc), (202, 0x80, 0x7ffe, 0x71));
        assert_eq!(call.futex_wait(), Some(FutexWait::ForEver));
        for none in ["running\n", "-1 0x7ffe 0x71\n", ""] {
            assert_eq!(Call::parse(none), None);
        }
    }

    #[test]
    fn calls_are_recognised_by_their_bytes() {
        assert!(ends_with_call(&[0, 0xe8, 1, 2, 3, 4]));
        assert!(ends_with_call(&[0xff, 0x15, 1, 2, 3, 4]));
        assert!(ends_with_call(&[0, 0, 0, 0, 0xff, 0xd0]));
        assert!(ends_with_call(&[0, 0, 0, 0xff, 0x50, 8]));
        assert!(!ends_with_call(&[0x90; CALL_BYTES]));
    }
}

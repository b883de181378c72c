//! What the kernel says of the process and the machine in files that it makes up as they are read, under `/proc` and
//! `/sys`. Much of it differs from run to run: numbers, times, memory in use, and our own mappings among the target's.
//! The target is told the same every time.
//!
//! A file of that kind is replaced, where it is opened, by one in memory that says what is to be said, and said anew when
//! it is read from its beginning again. What such a file says is kept for a replay like everything that comes from outside.

use super::Scheduler;
use super::clock::{MONOTONIC_START, REAL_START};
use crate::memory::maps;
use crate::memory::{kernel, own};
use crate::probe::Probe;
use raddle_dynamorio::process::{self, SystemCall};
use raddle_schedule::told::{
    About, Line, PROCESSORS, machine_stat, memory, processors, stat, status, uuid,
};
use std::path::Path;

const SECOND: u64 = 1_000_000_000;
const PAGE: u64 = 4096;

/// What a file tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// What is mapped.
    Maps,
    /// The process or a thread, in numbers; in words; its memory in pages.
    Stat,
    Status,
    Statm,
    /// The machine.
    Uptime,
    LoadAverage,
    MachineStat,
    Processors,
    Memory,
    Online,
    Random,
}

impl Told {
    /// By the file's own name, in which the kernel has put its number for `self`.
    fn of(path: &str) -> Option<Told> {
        Some(match path {
            "/proc/uptime" => Told::Uptime,
            "/proc/loadavg" => Told::LoadAverage,
            "/proc/stat" => Told::MachineStat,
            "/proc/cpuinfo" => Told::Processors,
            "/proc/meminfo" => Told::Memory,
            "/proc/sys/kernel/random/uuid" => Told::Random,
            "/sys/devices/system/cpu/online"
            | "/sys/devices/system/cpu/possible"
            | "/sys/devices/system/cpu/present" => Told::Online,
            _ => {
                let mut parts = path.strip_prefix("/proc/")?.split('/');
                if parts.next()?.parse() != Ok(std::process::id()) {
                    return None;
                }
                let rest: Vec<&str> = parts.collect();
                let name = match rest.as_slice() {
                    [name] | ["task", _, name] => *name,
                    _ => return None,
                };
                match name {
                    "maps" => Told::Maps,
                    "stat" => Told::Stat,
                    "status" => Told::Status,
                    "statm" => Told::Statm,
                    _ => return None,
                }
            }
        })
    }
}

/// A file has been opened: if it is one of these, the descriptor stands for what is to be said from here on.
pub fn opened(scheduler: &Scheduler, probe: &Probe, descriptor: i32) {
    if !kernel::makes_up(descriptor) {
        return;
    }
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{descriptor}")) else { return };
    let Some(told) = path.to_str().and_then(Told::of) else { return };
    let flags =
        kernel::call(libc::SYS_fcntl, [descriptor as u64, libc::F_GETFD as u64, 0, 0, 0, 0]);
    let name = c"told".as_ptr() as u64;
    let file = kernel::call(libc::SYS_memfd_create, [name, libc::MFD_CLOEXEC as u64, 0, 0, 0, 0]);
    if file < 0 {
        return;
    }
    say(file as i32, &text(scheduler, probe, told, &path));
    let closes = if flags & i64::from(libc::FD_CLOEXEC) != 0 { libc::O_CLOEXEC } else { 0 };
    let placed = [file as u64, descriptor as u64, closes as u64, 0, 0, 0];
    let placed = kernel::call(libc::SYS_dup3, placed);
    kernel::call(libc::SYS_close, [file as u64, 0, 0, 0, 0, 0]);
    if placed >= 0 {
        scheduler.lock().inputs.tell(descriptor, told, path);
    }
}

/// A call is about to be made: if it reads such a file from its beginning, that is to be as it is now.
pub fn before(scheduler: &Scheduler, probe: &Probe, call: &SystemCall<'_>) {
    let from_the_beginning = match i64::from(call.number) {
        libc::SYS_lseek => call.argument(1) == 0 && call.argument(2) == libc::SEEK_SET as u64,
        libc::SYS_pread64 => call.argument(3) == 0,
        _ => false,
    };
    if !from_the_beginning {
        return;
    }
    let descriptor = call.argument(0) as i32;
    let Some((told, path)) = scheduler.lock().inputs.told(descriptor) else { return };
    say(descriptor, &text(scheduler, probe, told, &path));
}

/// Makes a file in memory say this, to be read from where it was.
fn say(file: i32, text: &str) {
    let (file, start, length) = (file as u64, text.as_ptr() as u64, text.len() as u64);
    kernel::call(libc::SYS_ftruncate, [file, 0, 0, 0, 0, 0]);
    kernel::call(libc::SYS_pwrite64, [file, start, length, 0, 0, 0]);
}

/// `sysinfo`: the machine in numbers.
pub fn machine(scheduler: &Scheduler, to: u64) -> i64 {
    let mut said = [0u8; 112];
    let at = said.as_mut_ptr() as u64;
    let result = kernel::call(libc::SYS_sysinfo, [at, 0, 0, 0, 0, 0]);
    if result < 0 {
        return result;
    }
    let uptime = scheduler.uptime() / SECOND;
    // struct sysinfo: uptime, three loads, total, free, shared and buffered memory, total and free swap, processes.
    let word = |i: usize| -> [u8; 8] { std::array::from_fn(|at| said[8 * i + at]) };
    let (total, swap) = (u64::from_le_bytes(word(4)), word(8));
    let words = [(0, uptime), (1, 0), (2, 0), (3, 0), (5, total / 2), (6, 0), (7, 0)];
    for (i, word) in words {
        said[8 * i..8 * i + 8].copy_from_slice(&word.to_le_bytes());
    }
    said[72..80].copy_from_slice(&swap);
    said[80..82].copy_from_slice(&1u16.to_le_bytes());
    if process::write(to, &said) { 0 } else { -i64::from(libc::EFAULT) }
}

impl Scheduler {
    /// Nanoseconds since the machine was started, by the target's clock.
    fn uptime(&self) -> u64 {
        let mut state = self.lock();
        match state.clock.is_virtual() {
            true => state.clock.look(libc::CLOCK_MONOTONIC),
            false => kernel::clock(libc::CLOCK_BOOTTIME),
        }
    }
}

fn text(scheduler: &Scheduler, probe: &Probe, told: Told, path: &Path) -> String {
    let real = || std::fs::read_to_string(path).unwrap_or_default();
    match told {
        Told::Maps => maps_of_target(probe).iter().map(Line::to_string).collect(),
        Told::Stat => stat(&real(), &about(scheduler, probe, path)),
        Told::Status => status(&real(), &about(scheduler, probe, path)),
        Told::Statm => {
            let size = about(scheduler, probe, path).size / PAGE;
            format!("{size} {} 0 0 0 {size} 0\n", size / 2)
        }
        Told::Uptime => {
            let hundredths = scheduler.uptime() / (SECOND / 100);
            let (seconds, rest) = (hundredths / 100, hundredths % 100);
            format!("{seconds}.{rest:02} 0.00\n")
        }
        Told::LoadAverage => {
            let last = scheduler.ids.shown(raddle_model::ThreadId::MAIN);
            format!("0.00 0.00 0.00 1/1 {last}\n")
        }
        Told::MachineStat => machine_stat((REAL_START - MONOTONIC_START) / SECOND),
        Told::Processors => processors(&real()),
        Told::Memory => memory(&real()),
        Told::Online => format!("0-{}\n", PROCESSORS - 1),
        Told::Random => {
            let mut state = scheduler.lock();
            uuid(state.random.draw(), state.random.draw())
        }
    }
}

/// The target's mappings without ours.
fn maps_of_target(probe: &Probe) -> Vec<Line> {
    let mut kept = Vec::new();
    for line in maps::mappings() {
        if line.name.starts_with(&probe.options.directory) {
            continue;
        }
        for part in own::without(line.bytes.clone()) {
            kept.extend(without_engine(part).into_iter().map(|bytes| line.part(bytes)));
        }
    }
    kept
}

/// What is left of a mapping without the engine's part. The kernel makes one of two neighbours that are alike.
fn without_engine(bytes: std::ops::Range<u64>) -> Vec<std::ops::Range<u64>> {
    let is_ours = |at: u64| process::is_ours(at);
    match (is_ours(bytes.start), is_ours(bytes.end - 1)) {
        (true, true) => Vec::new(),
        (false, false) => vec![bytes],
        (first, _) => {
            let pages = bytes.clone().step_by(PAGE as usize);
            let border = pages.into_iter().find(|at| is_ours(*at) != first).unwrap_or(bytes.end);
            vec![if first { border..bytes.end } else { bytes.start..border }]
        }
    }
}

fn about(scheduler: &Scheduler, probe: &Probe, path: &Path) -> About {
    let size = maps_of_target(probe).iter().map(|line| line.bytes.end - line.bytes.start).sum();
    let mut parts = path.iter().filter_map(|part| part.to_str()?.parse::<u32>().ok());
    let process = parts.next().unwrap_or(0);
    let shown = |os_id| scheduler.shown_id(os_id);
    let thread = shown(parts.next().unwrap_or(process));
    let state = scheduler.lock();
    let worked = if state.clock.is_virtual() { state.clock.worked() } else { 0 };
    let threads = state.table.len();
    drop(state);
    About { process: shown(process), thread, threads, worked, started: MONOTONIC_START, size }
}

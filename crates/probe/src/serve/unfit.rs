//! What keeps a target from being served: what a copy of it would not have, or would share with the
//! other copies.

use crate::probe::Probe;
use raddle_dynamorio::process::SystemCall;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// By a system call that it makes before `main`.
pub fn by_call(call: &SystemCall<'_>) -> Option<&'static str> {
    let argument = |i| call.argument(i);
    let is_writing = |flags: u64| flags & (libc::O_ACCMODE | libc::O_CREAT) as u64 != 0;
    match i64::from(call.number) {
        libc::SYS_clone | libc::SYS_clone3 => Some("it makes threads or processes before main"),
        libc::SYS_fork | libc::SYS_vfork => Some("it makes processes before main"),
        libc::SYS_alarm | libc::SYS_setitimer | libc::SYS_timer_create => {
            Some("it sets a timer before main")
        }
        libc::SYS_open if is_writing(argument(1)) => Some("it opens a file to write before main"),
        libc::SYS_openat if is_writing(argument(2)) => Some("it opens a file to write before main"),
        libc::SYS_mmap
            if argument(2) & libc::PROT_WRITE as u64 != 0
                && argument(3) & libc::MAP_SHARED as u64 != 0 =>
        {
            Some("it maps shared memory before main")
        }
        libc::SYS_shmat => Some("it maps shared memory before main"),
        libc::SYS_mlock | libc::SYS_mlock2 | libc::SYS_mlockall => {
            Some("it locks memory before main")
        }
        libc::SYS_io_setup | libc::SYS_io_uring_setup => {
            Some("it has the kernel do work for it before main")
        }
        _ => None,
    }
}

/// By the state in which it comes to `main`.
pub fn at_main(probe: &Probe, inherited: &BTreeSet<i32>) -> Option<&'static str> {
    if descriptors().difference(inherited).next().is_some() {
        return Some("it has files open before main");
    }
    let first = raddle_model::ThreadId::MAIN.0 + 1;
    if probe.monitor.next_thread.load(Ordering::Relaxed) != first {
        return Some("it makes threads before main");
    }
    probe.scheduler.is_none().then_some("nobody says who may run")
}

/// The descriptors that are open, but for the one by which they are listed. The engine's own are
/// above those that a program can have.
pub fn descriptors() -> BTreeSet<i32> {
    let Ok(list) = std::fs::read_dir("/proc/self/fd") else { return BTreeSet::new() };
    let numbers: BTreeSet<i32> =
        list.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers
        .into_iter()
        .filter(|number| {
            std::path::Path::new(&format!("/proc/self/fd/{number}")).read_link().is_ok()
        })
        .collect()
}

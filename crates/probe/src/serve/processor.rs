//! A copy stays on the processor where it begins: one of its threads runs at a time, and handing the
//! turn to one that sleeps on another processor takes several times as long. (Measured on two
//! processors: a third more executions in the same time.) The target cannot tell, because it is told
//! of two processors in any case; what it starts by `exec` or forks gets all of them back.

use crate::memory::kernel;
use raddle_dynamorio::process::SystemCall;
use std::sync::OnceLock;

/// Room for 8192 processors, more than the kernel can be built for.
type Set = [u64; 128];

/// The processors a process may use.
#[derive(Debug, Default)]
pub struct Processors(OnceLock<(Set, u64)>);

impl Processors {
    /// Stays where it is from here on.
    pub fn stay(&self) {
        let mut all: Set = [0; 128];
        let size = kernel::call(
            libc::SYS_sched_getaffinity,
            [0, size_of::<Set>() as u64, all.as_mut_ptr() as u64, 0, 0, 0],
        );
        let mut here = 0u32;
        let found = kernel::call(libc::SYS_getcpu, [&raw mut here as u64, 0, 0, 0, 0, 0]);
        if size <= 0 || found != 0 || here as usize >= 64 * all.len() {
            return;
        }
        let mut one: Set = [0; 128];
        one[here as usize / 64] = 1 << (here % 64);
        set(&one, size as u64);
        let _ = self.0.set((all, size as u64));
    }

    /// A system call comes: another program, or another process, is to have them all.
    pub fn call_comes(&self, call: &SystemCall<'_>) {
        let is_other = match i64::from(call.number) {
            libc::SYS_execve | libc::SYS_execveat | libc::SYS_fork | libc::SYS_vfork => true,
            libc::SYS_clone => call.argument(0) & libc::CLONE_THREAD as u64 == 0,
            _ => false,
        };
        if let Some((all, size)) = self.0.get().filter(|_| is_other) {
            set(all, *size);
        }
    }
}

fn set(processors: &Set, size: u64) {
    // Where the kernel refuses, it is merely slower.
    kernel::call(libc::SYS_sched_setaffinity, [0, size, processors.as_ptr() as u64, 0, 0, 0]);
}

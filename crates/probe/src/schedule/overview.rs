//! What each thread is about to do, in words, for somebody who looks at the standing target.

use super::Scheduler;
use super::table::{Entry, Wait};
use raddle_model::ThreadId;
use raddle_schedule::Step;

impl Scheduler {
    /// The threads: number, the kernel's id, and what each is about to do.
    pub fn overview(&self, running: Option<ThreadId>) -> Vec<(ThreadId, u32, String)> {
        if !self.is_on() {
            return Vec::new();
        }
        let state = self.lock();
        state.table.iter().map(|e| (e.id, e.os_id, about(e, Some(e.id) == running))).collect()
    }
}

fn about(entry: &Entry, running: bool) -> String {
    let mut text = match &entry.wait {
        Wait::Futex { addresses, .. } => match addresses.first() {
            Some(futex) => format!("waits for {:#x}", entry.wanted.map_or(futex.address, |w| w.0)),
            None => "waits".to_owned(),
        },
        Wait::Time => "sleeps".to_owned(),
        Wait::Descriptors(_) | Wait::Room { .. } => "waits for a descriptor".to_owned(),
        Wait::Retry => "waits for another process or a file lock".to_owned(),
        Wait::Signal => "waits for a signal".to_owned(),
        Wait::Outside => "in the kernel".to_owned(),
        Wait::Recorded => "waits for what came from outside".to_owned(),
        Wait::Nothing if running => "runs".to_owned(),
        Wait::Nothing => match (entry.step, entry.wanted) {
            (Step::Access(access), _) => {
                let what = if access.writes { "write" } else { "read" };
                format!("about to {what} {} bytes at {}", access.size, access.address)
            }
            (_, Some(lock)) => format!("asks for {lock}"),
            (Step::Start, _) => "about to begin".to_owned(),
            (Step::SystemCall { .. } | Step::Yield, _) => "about to make a system call".to_owned(),
            (Step::Atomic(_), _) => "about to make an atomic access".to_owned(),
            (Step::Branch(_), _) => "ready".to_owned(),
            (Step::Nested(_), _) => "about to ask for a lock".to_owned(),
        },
    };
    let held: Vec<String> = entry.held.iter().map(|held| held.lock.to_string()).collect();
    if !held.is_empty() {
        text.push_str(&format!(", holds {}", held.join(", ")));
    }
    text
}

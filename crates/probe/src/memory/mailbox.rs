//! The probe's side of `raddle_wire::debug`: telling the command that the target stands, and waiting
//! until it may go on.

use raddle_dynamorio::process::{self, SharedFile};
use raddle_wire::debug::{self as wire, BODY, HEADER, Resume, Stop, Turn, header};
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The pauses of somebody who waits for a person: the first is not felt when gdb steps, the last costs
/// nothing.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The file, mapped.
#[derive(Debug)]
pub struct Mailbox {
    memory: *mut u8,
    command: i32,
}

// SAFETY: the header is accessed through atomics only; the body belongs to whoever has the turn, and of
// the target's threads that is the one that has stopped.
unsafe impl Sync for Mailbox {}
// SAFETY: as above; nothing is bound to a thread.
unsafe impl Send for Mailbox {}

impl Mailbox {
    /// Makes the file in the run directory.
    pub fn create(directory: &str, command: u32) -> Result<Mailbox, String> {
        let path = format!("{directory}/{}", wire::FILE);
        let path = CString::new(path).map_err(|e| e.to_string())?;
        let file = SharedFile::create(&path).ok_or("cannot make the debugger's file")?;
        let length = HEADER + BODY;
        // SAFETY: a descriptor of ours.
        if unsafe { libc::ftruncate(file.descriptor(), length as i64) } != 0 {
            return Err(format!("the debugger's file: {}", std::io::Error::last_os_error()));
        }
        let memory = file.map(0, length).ok_or("cannot map the debugger's file")?;
        let mailbox = Mailbox { memory, command: command as i32 };
        mailbox.word(header::VERSION).store(wire::VERSION, Ordering::Relaxed);
        mailbox.word(header::PID).store(std::process::id(), Ordering::Relaxed);
        // SAFETY: the first eight bytes, which come last: a reader never sees half a header.
        let magic = unsafe { AtomicU64::from_ptr(memory.cast()) };
        magic.store(u64::from_le_bytes(*wire::MAGIC), Ordering::Release);
        Ok(mailbox)
    }

    /// Does the debugger want the target to stop?
    pub fn is_interrupted(&self) -> bool {
        self.word(header::INTERRUPT).load(Ordering::Acquire) != 0
    }

    /// Tells that the target stands, and waits. `None` when nobody will answer.
    pub fn stop(&self, stop: &Stop) -> Option<Resume> {
        let length = wire::encode(stop, self.body())?;
        self.word(header::LENGTH).store(length as u32, Ordering::Relaxed);
        self.word(header::INTERRUPT).store(0, Ordering::Relaxed);
        self.word(header::TURN).store(Turn::Command as u32, Ordering::Release);
        let answered = process::while_suspendable(|| self.await_answer());
        self.word(header::TURN).store(Turn::Target as u32, Ordering::Release);
        if !answered {
            return None;
        }
        let length = self.word(header::LENGTH).load(Ordering::Acquire) as usize;
        wire::decode(self.body().get(..length)?).ok()
    }

    fn await_answer(&self) -> bool {
        let mut pause = SHORTEST_PAUSE;
        while self.word(header::TURN).load(Ordering::Acquire) != Turn::Resumed as u32 {
            // SAFETY: signal 0 only asks whether the process exists.
            if unsafe { libc::kill(self.command, 0) } != 0 {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 5 / 4).min(LONGEST_PAUSE);
        }
        true
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: an aligned offset inside the mapped header; all access is atomic.
        unsafe { AtomicU32::from_ptr(self.memory.add(at).cast()) }
    }

    #[allow(clippy::mut_from_ref)] // The one thread that has stopped is the only one here.
    fn body(&self) -> &mut [u8] {
        // SAFETY: mapped behind the header; see above for who touches it.
        unsafe { std::slice::from_raw_parts_mut(self.memory.add(HEADER), BODY) }
    }
}

//! The event log: what the probe saw, in an append-only file that outlives the target however it
//! dies.
//!
//! The probe maps the file shared and writes into the mapping, so what was written is in the page
//! cache at once: a `SIGKILL` loses nothing. Threads never share a chunk, so there is no lock on
//! the way; the command follows by reading the file while the target runs.
//!
//! ```text
//! header (4096 bytes)   see the offsets in [`header`]
//! chunk 0 (64 KiB)      u32 used  u32 closed  u32 first thread  u32 0   then records
//! chunk 1 ...
//! record                u32 length, then a postcard-encoded [`Record`]
//! ```
//!
//! A chunk's `used` grows with release order after each whole record; `closed` is set when its
//! thread has taken another, or ended and left little space. A thread that begins goes on in a chunk that another has
//! left, if there is one, so that the log does not grow with threads that have nothing to say.

mod merger;
mod reader;

pub use merger::Merger;
pub use reader::LogReader;

use crate::options::PlaceCount;
use raddle_model::finding::Finding;
use raddle_model::{Address, Event, ModuleId, Place, StackId, ThreadId};
use serde::{Deserialize, Serialize};

/// First bytes of the file.
pub const MAGIC: &[u8; 8] = b"RADDLOG\0";
/// Bump on any change of layout, of [`Record`] or of the events in it.
pub const VERSION: u32 = 8;
/// Bytes before the first chunk.
pub const HEADER: u64 = 4096;
/// Bytes of a chunk: large enough that taking one (a mapping) is rare, small enough that a
/// thousand short-lived threads do not waste much.
pub const CHUNK: usize = 64 * 1024;
/// Bytes of a chunk before its first record.
pub const CHUNK_HEADER: usize = 16;
/// The longest record: it must fit a fresh chunk.
pub const MAX_RECORD: usize = CHUNK - CHUNK_HEADER - 4;

/// Byte offsets of the header's fields.
pub mod header {
    /// u32: [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// u32: the target's process id.
    pub const PID: usize = 12;
    /// u64: chunks handed out so far.
    pub const NEXT_CHUNK: usize = 16;
    /// u64: events numbered so far.
    pub const NEXT_ORDER: usize = 24;
    /// u64: chunks the command has read to the end.
    pub const CONSUMED: usize = 32;
    /// u32: a [`super::State`].
    pub const STATE: usize = 40;
    /// u32: requests for module facts so far.
    pub const REQUESTS: usize = 44;
    /// u32: requests answered so far, written by the command.
    pub const ANSWERS: usize = 48;
    /// u32: the command has stopped reading; nobody answers and nobody consumes.
    pub const ABANDONED: usize = 52;
    /// u64 each: how often anything was written to chunks whose number leaves this rest, counted after it is.
    pub const WRITTEN: usize = 64;
    /// How many of them.
    pub const RESTS: usize = 256;

    /// Where that of a chunk is.
    pub const fn written(chunk: u64) -> usize {
        WRITTEN + chunk as usize % RESTS * 8
    }
}

/// How far the probe got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The target runs, or was killed.
    Running = 0,
    /// The process is on its way out, in order; the log is complete but for what exit handlers do.
    Ending = 1,
    /// All done: the last record has been written.
    Ended = 2,
    /// The probe gave up; a [`Record::Failure`] says why.
    Failed = 3,
    /// The process became another program by `exec`.
    Replaced = 4,
}

impl State {
    fn from_u32(n: u32) -> Option<State> {
        [State::Running, State::Ending, State::Ended, State::Failed, State::Replaced]
            .into_iter()
            .find(|s| *s as u32 == n)
    }
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// Something happened.
    Event(Event),
    /// A stack, before the first event that refers to it by a thread's own order.
    Stack {
        /// Its id.
        id: StackId,
        /// Innermost first: the place of the event, then return addresses.
        frames: Vec<Place>,
    },
    /// The probe needs a module's facts and waits. The answer is the file
    /// [`facts_file`]`(log file name, request)`, complete before `ANSWERS` reaches `request`.
    NeedFacts {
        /// Number of the request, from 1.
        request: u32,
        /// The module.
        module: ModuleId,
        /// Its file.
        path: String,
    },
    /// A finding, when it is new and again when its count is final: the last record of a number
    /// holds.
    Finding {
        /// Which, from 0.
        number: u32,
        /// What it is.
        finding: Finding,
        /// The heap block that the memory belongs to.
        block: Option<HeapBlock>,
        /// The thread whose local variables may include it.
        thread_local: Option<ThreadLocal>,
    },
    /// What the detector looked at, once, at the end.
    Looked {
        /// Accesses that reached it.
        accesses: u64,
        /// Synchronisation events that reached it.
        synchronisations: u64,
        /// Distinct locks.
        locks: u64,
    },
    /// Accesses per place of one thread, in count mode; several records add up.
    Counts {
        /// Whose.
        thread: ThreadId,
        /// The places.
        places: Vec<PlaceCount>,
    },
    /// Events per name and place of one thread, in count mode; several records add up.
    EventCounts {
        /// Whose.
        thread: ThreadId,
        /// The event's name, its place, how often.
        counts: Vec<(String, Place, u64)>,
    },
    /// Decisions of the scheduler, in order.
    Schedule {
        /// How many segments came before.
        first: u64,
        /// Who ran (zero: nobody), for how many points, and a digest of what it did.
        segments: Vec<(ThreadId, u64, u32)>,
    },
    /// Something that came from outside, as its line of the file says; a long one in several records.
    Input {
        /// How many came before.
        number: u64,
        /// The line, or its next part.
        text: String,
    },
    /// What stands in the memory of a watched access, up to eight bytes, the first byte lowest.
    Value {
        /// The event of the access.
        order: u64,
        /// Once the access has been made; otherwise right before.
        after: bool,
        /// The value.
        value: u64,
    },
    /// Two threads stood at conflicting accesses of the watched pair at once.
    Meeting(Box<Meeting>),
    /// Nobody can go on: a deadlock. Every thread that waits.
    Stuck {
        /// The threads that wait for each other; all, when nobody can run.
        waits: Vec<Wait>,
        /// Others could still run.
        cycle: bool,
    },
    /// The target dies of a signal, under a policy.
    Crash {
        /// Where the thread stands that it struck.
        place: Place,
        /// By which calls.
        stack: StackId,
    },
    /// The target asked for something that it does not get under a policy.
    Refused {
        /// What, as a sentence.
        what: String,
    },
    /// A replayed execution went another way than its schedule.
    Diverged {
        /// Where and how.
        what: String,
    },
    /// The probe gave up.
    Failure {
        /// Why, and where.
        what: String,
    },
}

/// Two threads at conflicting accesses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meeting {
    /// The scheduling point, from 1.
    pub point: u64,
    /// Events from this number on came after it.
    pub order: u64,
    /// At the first place of the pair.
    pub first: MetAccess,
    /// At the second.
    pub second: MetAccess,
    /// Was it resolved in favour of the first?
    pub first_went: bool,
}

/// One side of a meeting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetAccess {
    /// Who.
    pub thread: ThreadId,
    /// The instruction.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
    /// First byte.
    pub address: Address,
    /// Bytes.
    pub size: u64,
    /// Can it change the memory?
    pub writes: bool,
    /// Indivisible, as far as known.
    pub atomic: bool,
    /// What stood there before either, up to eight bytes, the first byte lowest.
    pub value: Option<u64>,
}

/// A thread that waits in a deadlock, or does not get on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Who.
    pub thread: ThreadId,
    /// Where.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
    /// The lock it waits for, where a hook told.
    pub wants: Option<Address>,
    /// The futex it waits on.
    pub futex: Option<Address>,
    /// It does not wait, but goes round in circles.
    #[serde(default)]
    pub spins: bool,
    /// The locks it holds.
    pub holds: Vec<Address>,
}

/// A block of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapBlock {
    /// First byte.
    pub start: Address,
    /// Bytes.
    pub size: u64,
    /// Who allocated it.
    pub thread: ThreadId,
    /// Where.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
}

/// Memory below a thread's pointer, where its thread-local variables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLocal {
    /// The thread.
    pub thread: ThreadId,
    /// Bytes from the memory up to the thread's pointer.
    pub below: u64,
}

/// Name of a process's log in the run directory. A process that becomes another program by `exec`
/// keeps its id: `incarnation` counts the programs it has been, from 0.
pub fn log_file(pid: u32, incarnation: u32) -> String {
    format!("{pid}.{incarnation}.log")
}

/// Name of the answer to a request in the run directory, from the name of the log that asked.
pub fn facts_file(log: &str, request: u32) -> String {
    format!("{}.{request}.facts", log.trim_end_matches(".log"))
}

/// The header as the probe first writes it.
pub fn new_header(pid: u32) -> [u8; HEADER as usize] {
    let mut bytes = [0; HEADER as usize];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[header::VERSION..header::VERSION + 4].copy_from_slice(&VERSION.to_le_bytes());
    bytes[header::PID..header::PID + 4].copy_from_slice(&pid.to_le_bytes());
    bytes
}

/// Encodes `record` with its length before it; returns the bytes used, or `None` when `buffer` is
/// too small.
pub fn encode(record: &Record, buffer: &mut [u8]) -> Option<usize> {
    let (length, body) = buffer.split_at_mut_checked(4)?;
    let used = postcard::to_slice(record, body).ok()?.len();
    length.copy_from_slice(&(used as u32).to_le_bytes());
    Some(4 + used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_too_long_is_refused() {
        let record = Record::Failure { what: "x".repeat(100) };
        assert!(encode(&record, &mut [0; 50]).is_none());
    }
}

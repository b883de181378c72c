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

use crate::WireError;
use crate::options::PlaceCount;
use raddle_model::finding::Finding;
use raddle_model::{Address, Event, ModuleId, Place, StackId, ThreadId};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

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

/// Follows a log while it grows.
#[derive(Debug)]
pub struct LogReader {
    file: File,
    pid: u32,
    /// Chunks seen and not yet read to the end.
    open: Vec<OpenChunk>,
    /// Chunks seen.
    seen: u64,
    /// Chunks read to the end.
    done: u64,
    /// What of the file has been read and not yet been handed out by [`LogReader::take_finished`]: where, and how long.
    finished: Vec<(u64, u64)>,
    /// What `WRITTEN` was before the last look.
    written: Vec<u8>,
}

#[derive(Debug)]
struct OpenChunk {
    index: u64,
    read: usize,
    /// Whole pages up to here are among those finished.
    freed: usize,
}

/// So much of an open chunk is worth freeing. Without, two hundred threads that write a little now and then would keep two hundred
/// chunks in memory.
const WORTH_FREEING: usize = CHUNK / 4;
/// What is freed of a file begins and ends with a page; a chunk's first one has its header.
const PAGE: usize = 4096;

impl LogReader {
    /// Opens a log. `Ok(None)` when the probe has not finished its header yet.
    pub fn open(file: File) -> io::Result<Option<Self>> {
        let mut head = [0; 16];
        match file.read_exact_at(&mut head, 0) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        if head[..8] == [0; 8] {
            return Ok(None);
        }
        if &head[..8] != MAGIC {
            return Err(damaged(WireError::NotOurs("event log")));
        }
        let found = u32_of(&head[header::VERSION..]);
        if found != VERSION {
            return Err(damaged(WireError::Version {
                what: "event log",
                found,
                expected: VERSION,
            }));
        }
        let pid = u32_of(&head[header::PID..]);
        let (open, finished) = (Vec::new(), Vec::new());
        let written = vec![0; header::RESTS * 8];
        Ok(Some(LogReader { file, pid, open, seen: 0, done: 0, finished, written }))
    }

    /// The process that writes it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How far the probe got.
    pub fn state(&self) -> io::Result<State> {
        let n = self.read_u32(header::STATE as u64)?;
        State::from_u32(n)
            .ok_or_else(|| damaged(WireError::Damaged("event log", format!("state {n}"))))
    }

    /// Says that requests up to this one are answered.
    pub fn answer(&self, request: u32) -> io::Result<()> {
        self.file.write_all_at(&request.to_le_bytes(), header::ANSWERS as u64)
    }

    /// Says that nobody reads from now on, so that the target never waits for us.
    pub fn abandon(&self) -> io::Result<()> {
        self.file.write_all_at(&1u32.to_le_bytes(), header::ABANDONED as u64)
    }

    /// The file ranges (offset, length) that have been read since the last call: they hold
    /// nothing new, so a streaming command may free their space. Chunk by chunk, because a thread
    /// that sleeps keeps its own chunk open however long the others go on.
    pub fn take_finished(&mut self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.finished.drain(..)
    }

    /// The file, for freeing space behind the reader.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Hands every record written since the last call to `each`: in order within a thread, threads
    /// interleaved anyhow. Returns how many there were.
    ///
    /// Many threads have many chunks, and most of the time few of them write: one look at the header says where.
    /// What a thread writes right before it is killed, and has not counted, [`LogReader::poll_last`] finds.
    pub fn poll(&mut self, each: impl FnMut(Record)) -> io::Result<usize> {
        let mut written = vec![0; header::RESTS * 8];
        self.file.read_exact_at(&mut written, header::WRITTEN as u64)?;
        let before = std::mem::replace(&mut self.written, written);
        if self.written == before {
            return Ok(0);
        }
        let counted = |chunk: u64| header::written(chunk) - header::WRITTEN;
        let changed: Vec<bool> = (0..header::RESTS as u64)
            .map(|rest| counted(rest)..counted(rest) + 8)
            .map(|word| self.written[word.clone()] != before[word])
            .collect();
        self.read_chunks(|chunk| changed[chunk as usize % header::RESTS], each)
    }

    /// The same, whatever the log says of itself: when nothing more will be written.
    pub fn poll_last(&mut self, each: impl FnMut(Record)) -> io::Result<usize> {
        self.read_chunks(|_| true, each)
    }

    fn read_chunks(
        &mut self,
        wanted: impl Fn(u64) -> bool,
        mut each: impl FnMut(Record),
    ) -> io::Result<usize> {
        let next = self.read_u64(header::NEXT_CHUNK as u64)?;
        while self.seen < next {
            self.open.push(OpenChunk { index: self.seen, read: CHUNK_HEADER, freed: PAGE });
            self.seen += 1;
        }
        let mut count = 0;
        let done_before = self.done;
        let mut still_open = Vec::with_capacity(self.open.len());
        let mut bytes = Vec::new();
        for mut chunk in std::mem::take(&mut self.open) {
            if !wanted(chunk.index) {
                still_open.push(chunk);
                continue;
            }
            let base = HEADER + chunk.index * CHUNK as u64;
            let mut head = [0; 8];
            self.read_or_zero(&mut head, base)?;
            let closed = u32_of(&head[4..]) != 0;
            if closed {
                // A chunk found closed has no record after what its `used` is from now on.
                self.read_or_zero(&mut head, base)?;
            }
            let used = u32_of(&head) as usize;
            if used > CHUNK {
                return Err(damaged(WireError::Damaged("event log", format!("used {used}"))));
            }
            if used > chunk.read {
                bytes.resize(used - chunk.read, 0);
                self.file.read_exact_at(&mut bytes, base + chunk.read as u64)?;
                count += decode_all(&bytes, &mut each)?;
                chunk.read = used;
            }
            if closed {
                self.done += 1;
                self.finished.push((base, CHUNK as u64));
            } else {
                let until = chunk.read / PAGE * PAGE;
                if until >= chunk.freed + WORTH_FREEING {
                    let length = (until - chunk.freed) as u64;
                    self.finished.push((base + chunk.freed as u64, length));
                    chunk.freed = until;
                }
                still_open.push(chunk);
            }
        }
        self.open = still_open;
        // Also when a chunk was closed after its last record had been read: its thread may be
        // waiting for exactly this number to grow.
        if self.done != done_before {
            self.file.write_all_at(&self.done.to_le_bytes(), header::CONSUMED as u64)?;
        }
        Ok(count)
    }

    fn read_u32(&self, at: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// A chunk that has a number and no bytes yet reads as zero.
    fn read_or_zero(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        match self.file.read_exact_at(bytes, at) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                bytes.fill(0);
                Ok(())
            }
            other => other,
        }
    }

    fn read_u64(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

fn decode_all(mut bytes: &[u8], each: &mut impl FnMut(Record)) -> io::Result<usize> {
    let mut count = 0;
    while !bytes.is_empty() {
        let bad = |why: &str| damaged(WireError::Damaged("event log", why.to_owned()));
        let (length, rest) = bytes.split_at_checked(4).ok_or_else(|| bad("cut-off length"))?;
        let (body, rest) =
            rest.split_at_checked(u32_of(length) as usize).ok_or_else(|| bad("cut-off record"))?;
        let record = postcard::from_bytes(body).map_err(|e| bad(&e.to_string()))?;
        each(record);
        count += 1;
        bytes = rest;
    }
    Ok(count)
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn damaged(error: WireError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Puts the events of all threads back into their total order.
///
/// A thread numbers an event and then writes it, so the log of a running target has gaps for an
/// instant; an event is let through when all before it have come.
#[derive(Debug, Default)]
pub struct Merger {
    waiting: BinaryHeap<Reverse<ByOrder>>,
    next: u64,
}

#[derive(Debug)]
struct ByOrder(Event);

impl PartialEq for ByOrder {
    fn eq(&self, other: &Self) -> bool {
        self.0.order == other.0.order
    }
}
impl Eq for ByOrder {}
impl PartialOrd for ByOrder {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ByOrder {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.order.cmp(&other.0.order)
    }
}

impl Merger {
    /// Takes an event in.
    pub fn push(&mut self, event: Event) {
        self.waiting.push(Reverse(ByOrder(event)));
    }

    /// The next event of the total order, if it has come.
    pub fn pop(&mut self) -> Option<Event> {
        if self.waiting.peek()?.0.0.order != self.next {
            return None;
        }
        self.next += 1;
        self.waiting.pop().map(|e| e.0.0)
    }

    /// The next event that ever came: for the end of a log, where a killed target leaves gaps.
    pub fn pop_last(&mut self) -> Option<Event> {
        let event = self.waiting.pop()?.0.0;
        self.next = event.order + 1;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::EventKind;

    fn event(order: u64, thread: u32) -> Event {
        Event {
            order,
            thread: ThreadId(thread),
            place: Place { module: ModuleId(1), offset: 0x10 },
            stack: StackId::NONE,
            kind: EventKind::ThreadExit,
        }
    }

    /// A log as two threads would leave it: one chunk closed, one open.
    fn written() -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&new_header(42), 0).unwrap();
        for (index, closed) in [(0u64, 1u32), (1, 0)] {
            let mut chunk = vec![0; CHUNK];
            let mut used = CHUNK_HEADER;
            for order in [index, index + 2] {
                let record = Record::Event(event(order, index as u32 + 1));
                used += encode(&record, &mut chunk[used..]).unwrap();
            }
            chunk[..4].copy_from_slice(&(used as u32).to_le_bytes());
            chunk[4..8].copy_from_slice(&closed.to_le_bytes());
            file.write_all_at(&chunk, HEADER + index * CHUNK as u64).unwrap();
        }
        file.write_all_at(&2u64.to_le_bytes(), header::NEXT_CHUNK as u64).unwrap();
        for chunk in 0..2 {
            file.write_all_at(&2u64.to_le_bytes(), header::written(chunk) as u64).unwrap();
        }
        file
    }

    #[test]
    fn records_come_back_once_and_in_order() {
        let mut reader = LogReader::open(written()).unwrap().unwrap();
        assert_eq!((reader.pid(), reader.state().unwrap()), (42, State::Running));
        let mut merger = Merger::default();
        let take = |record, merger: &mut Merger| match record {
            Record::Event(e) => merger.push(e),
            other => panic!("{other:?}"),
        };
        assert_eq!(reader.poll(|r| take(r, &mut merger)).unwrap(), 4);
        assert_eq!(reader.poll(|r| take(r, &mut merger)).unwrap(), 0);
        let freed: Vec<_> = reader.take_finished().collect();
        assert_eq!(freed, [(HEADER, CHUNK as u64)]);
        assert_eq!(reader.take_finished().count(), 0);
        let orders: Vec<u64> = std::iter::from_fn(|| merger.pop()).map(|e| e.order).collect();
        assert_eq!(orders, [0, 1, 2, 3]);
    }

    #[test]
    fn a_chunk_closed_after_its_last_record_counts_as_consumed() {
        let file = written();
        let mut reader = LogReader::open(file.try_clone().unwrap()).unwrap().unwrap();
        reader.poll(|_| {}).unwrap();
        file.write_all_at(&1u32.to_le_bytes(), HEADER + CHUNK as u64 + 4).unwrap();
        file.write_all_at(&3u64.to_le_bytes(), header::written(1) as u64).unwrap();
        assert_eq!(reader.poll(|_| {}).unwrap(), 0);
        assert_eq!(reader.read_u64(header::CONSUMED as u64).unwrap(), 2);
    }

    #[test]
    fn what_was_read_of_a_chunk_that_is_still_written_is_finished_but_for_its_first_page() {
        let file = written();
        let mut reader = LogReader::open(file.try_clone().unwrap()).unwrap().unwrap();
        reader.poll(|_| {}).unwrap();
        reader.take_finished().for_each(drop);
        let base = HEADER + CHUNK as u64;
        let mut used = reader.read_u32(base).unwrap() as usize;
        let mut freed = Vec::new();
        let mut count = 2u64;
        while used < CHUNK - 2000 {
            let mut more = [0; 2000];
            let record = Record::Failure { what: "x".repeat(1000) };
            let length = encode(&record, &mut more).unwrap();
            file.write_all_at(&more[..length], base + used as u64).unwrap();
            used += length;
            count += 1;
            file.write_all_at(&(used as u32).to_le_bytes(), base).unwrap();
            file.write_all_at(&count.to_le_bytes(), header::written(1) as u64).unwrap();
            assert_eq!(reader.poll(|_| {}).unwrap(), 1);
            for (offset, length) in reader.take_finished() {
                assert!(offset + length <= base + used as u64);
                freed.push((offset - base, length));
            }
        }
        let page = PAGE as u64;
        assert_eq!(freed, [(page, 4 * page), (5 * page, 4 * page), (9 * page, 4 * page)]);
        // All of it in the end.
        file.write_all_at(&1u32.to_le_bytes(), base + 4).unwrap();
        reader.poll_last(|_| {}).unwrap();
        assert_eq!(reader.take_finished().collect::<Vec<_>>(), [(base, CHUNK as u64)]);
    }

    #[test]
    fn what_a_killed_writer_did_not_count_is_found_at_the_end() {
        let file = written();
        let mut reader = LogReader::open(file.try_clone().unwrap()).unwrap().unwrap();
        reader.poll(|_| {}).unwrap();
        let base = HEADER + CHUNK as u64;
        let mut more = [0; 100];
        let length = encode(&Record::Event(event(4, 2)), &mut more).unwrap();
        let used = reader.read_u32(base).unwrap();
        file.write_all_at(&more[..length], base + u64::from(used)).unwrap();
        file.write_all_at(&(used + length as u32).to_le_bytes(), base).unwrap();
        assert_eq!(reader.poll(|_| {}).unwrap(), 0);
        assert_eq!(reader.poll_last(|_| {}).unwrap(), 1);
    }

    #[test]
    fn a_gap_holds_events_back_until_the_end() {
        let mut merger = Merger::default();
        merger.push(event(2, 1));
        merger.push(event(0, 1));
        assert_eq!(merger.pop().unwrap().order, 0);
        assert!(merger.pop().is_none());
        assert_eq!(merger.pop_last().unwrap().order, 2);
    }

    #[test]
    fn foreign_and_unfinished_files_are_told_apart() {
        let empty = tempfile::tempfile().unwrap();
        assert!(LogReader::open(empty).unwrap().is_none());
        let foreign = tempfile::tempfile().unwrap();
        foreign.write_all_at(&[b'x'; 4096], 0).unwrap();
        assert!(LogReader::open(foreign).is_err());
    }

    #[test]
    fn a_record_too_long_is_refused() {
        let record = Record::Failure { what: "x".repeat(100) };
        assert!(encode(&record, &mut [0; 50]).is_none());
    }
}

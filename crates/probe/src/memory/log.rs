//! Writing the event log: the probe's side of `raddle_wire::log`.
//!
//! The file is mapped in windows; a thread owns a chunk of a window at a time and appends to it
//! without a lock. Everything shared between threads is an atomic of the header or behind the
//! window lock, which is taken once per window.

use raddle_dynamorio::process::SharedFile;
use raddle_model::ThreadId;
use raddle_wire::log::{self as wire, CHUNK, CHUNK_HEADER, HEADER, Record, State, header};
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Chunks mapped at once: 4 MiB, so that mapping (a few microseconds) is rare.
const WINDOW_CHUNKS: u64 = 64;

/// A log being written.
#[derive(Debug)]
pub struct Log {
    file: SharedFile,
    name: String,
    header: *mut u8,
    windows: boxcar::Vec<Window>,
    /// Where the first windows belong.
    places: Vec<Option<*mut u8>>,
    /// Where windows are to which nobody writes any more: the next ones take their places.
    over: Mutex<Vec<Place>>,
    /// Held while a window is made.
    growing: Mutex<()>,
    max_lag: u64,
    /// Chunks in threads' hands, or left by them: the reader cannot finish these.
    held: AtomicU64,
    /// Left by threads that ended, with much space in them.
    left: Mutex<Vec<Chunk>>,
    command: i32,
}

#[derive(Debug)]
struct Window {
    start: Place,
    /// How many of its chunks are closed.
    closed: AtomicU64,
}

/// Where a window is.
#[derive(Debug, Clone, Copy)]
struct Place(*mut u8);

// SAFETY: the header is accessed through atomics only; a window's chunks have one owner each.
unsafe impl Sync for Log {}
// SAFETY: as above; nothing is bound to a thread.
unsafe impl Send for Log {}
// SAFETY: an address; see `Log`.
unsafe impl Sync for Place {}
// SAFETY: an address; see `Log`.
unsafe impl Send for Place {}

impl Log {
    /// Creates the log of this process in `directory`, under the first free incarnation.
    ///
    /// In a copy of a process its log takes the place of that one's in memory: what the target maps
    /// then lies where it would if there had been no copying.
    pub fn create(
        directory: &str,
        pid: u32,
        max_lag: u64,
        command: u32,
        before: Option<&Log>,
    ) -> Result<Log, String> {
        for incarnation in 0..1000 {
            let name = wire::log_file(pid, incarnation);
            let path = CString::new(format!("{directory}/{name}")).map_err(|e| e.to_string())?;
            let Some(file) = SharedFile::create(&path) else { continue };
            grow(&file, HEADER)?;
            let place = before.map(|before| before.header);
            let header = map(&file, 0, HEADER as usize, place).ok_or("cannot map the log")?;
            // SAFETY: `HEADER` bytes are mapped; nobody else knows of them yet. The magic comes
            // last, so that a reader never sees half a header.
            unsafe {
                let bytes = wire::new_header(pid);
                std::ptr::copy_nonoverlapping(bytes[8..].as_ptr(), header.add(8), bytes.len() - 8);
                let magic = u64::from_le_bytes(*wire::MAGIC);
                AtomicU64::from_ptr(header.cast()).store(magic, Ordering::Release);
            }
            return Ok(Log {
                file,
                name,
                header,
                windows: boxcar::Vec::new(),
                places: before.map(Log::places).unwrap_or_default(),
                over: Mutex::default(),
                growing: Mutex::new(()),
                max_lag,
                held: AtomicU64::new(0),
                left: Mutex::default(),
                command: command as i32,
            });
        }
        Err(format!("cannot create a log in {directory}"))
    }

    /// Where its windows are. A place has been several windows': it is the first one's.
    fn places(&self) -> Vec<Option<*mut u8>> {
        let mut places = Vec::new();
        for (_, window) in self.windows.iter() {
            let place = Some(window.start.0);
            places.push(place.filter(|_| !places.contains(&place)));
        }
        places
    }

    /// Its file name, without the directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: an aligned offset inside the mapped header; all access is atomic.
        unsafe { AtomicU64::from_ptr(self.header.add(at).cast()) }
    }

    fn half(&self, at: usize) -> &AtomicU32 {
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.header.add(at).cast()) }
    }

    /// The next number of the total order.
    pub fn next_order(&self) -> u64 {
        self.word(header::NEXT_ORDER).fetch_add(1, Ordering::AcqRel)
    }

    /// The number that the next event will get.
    pub fn order(&self) -> u64 {
        self.word(header::NEXT_ORDER).load(Ordering::Acquire)
    }

    /// There is something for the reader to see in a chunk.
    fn note_written(&self, chunk: u64) {
        self.word(header::written(chunk)).fetch_add(1, Ordering::Release);
    }

    /// Tells the command how far we are.
    pub fn set_state(&self, state: State) {
        self.half(header::STATE).store(state as u32, Ordering::Release);
    }

    /// The next request's number.
    pub fn next_request(&self) -> u32 {
        self.half(header::REQUESTS).fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Waits until the command has answered the request. `false` when nobody will.
    pub fn await_answer(&self, request: u32) -> bool {
        let mut pause = Duration::from_micros(20);
        loop {
            if self.half(header::ANSWERS).load(Ordering::Acquire) >= request {
                return true;
            }
            if self.is_abandoned() {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    /// Has the command stopped reading?
    fn is_abandoned(&self) -> bool {
        // SAFETY: signal 0 only asks whether the process exists.
        self.half(header::ABANDONED).load(Ordering::Acquire) != 0
            || unsafe { libc::kill(self.command, 0) } != 0
    }

    /// The first chunk of a thread: perhaps one that another has begun. Only the first: the reader takes chunks in the order
    /// of their numbers, and is to see what a thread writes in the order in which it was written.
    fn first_chunk(&self, thread: ThreadId) -> Result<Chunk, String> {
        let left = self.left.lock().unwrap_or_else(|e| e.into_inner()).pop();
        left.map_or_else(|| self.take_chunk(thread), Ok)
    }

    /// A fresh chunk for a thread.
    fn take_chunk(&self, thread: ThreadId) -> Result<Chunk, String> {
        self.wait_for_reader();
        self.held.fetch_add(1, Ordering::AcqRel);
        let index = self.word(header::NEXT_CHUNK).fetch_add(1, Ordering::AcqRel);
        let window = self.window(index / WINDOW_CHUNKS)?;
        // SAFETY: the window has `WINDOW_CHUNKS` chunks, and this one was given to nobody else.
        let start = unsafe { window.add((index % WINDOW_CHUNKS) as usize * CHUNK) };
        let chunk = Chunk { index, start, used: CHUNK_HEADER };
        // SAFETY: bytes 8..12 of our own chunk.
        unsafe { AtomicU32::from_ptr(start.add(8).cast()) }.store(thread.0, Ordering::Relaxed);
        chunk.publish(self);
        Ok(chunk)
    }

    /// Holds the target back while the command is too far behind: the log would fill the disk.
    fn wait_for_reader(&self) {
        let lag = || {
            let taken = self.word(header::NEXT_CHUNK).load(Ordering::Acquire);
            let consumed = self.word(header::CONSUMED).load(Ordering::Acquire);
            let held = self.held.load(Ordering::Acquire);
            taken.saturating_sub(consumed).saturating_sub(held) * CHUNK as u64
        };
        while lag() > self.max_lag && !self.is_abandoned() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn window(&self, index: u64) -> Result<*mut u8, String> {
        loop {
            if let Some(window) = self.windows.get(index as usize) {
                return Ok(window.start.0);
            }
            let _growing = self.growing.lock().unwrap_or_else(|e| e.into_inner());
            if self.windows.count() as u64 > index {
                continue;
            }
            let next = self.windows.count() as u64;
            let length = WINDOW_CHUNKS * CHUNK as u64;
            let offset = HEADER + next * length;
            grow(&self.file, offset + length)?;
            let given = self.places.get(next as usize).copied().flatten();
            let place = given.or_else(|| self.over().pop().map(|over| over.0));
            let mapped = map(&self.file, offset, length as usize, place);
            let mapped = mapped.ok_or("cannot map the log")?;
            self.windows.push(Window { start: Place(mapped), closed: AtomicU64::new(0) });
        }
    }

    fn over(&self) -> MutexGuard<'_, Vec<Place>> {
        self.over.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Nobody writes to a chunk any more; if it was the last of its window, not to that either.
    fn chunk_is_over(&self, chunk: u64) {
        if let Some(window) = self.windows.get((chunk / WINDOW_CHUNKS) as usize)
            && window.closed.fetch_add(1, Ordering::AcqRel) + 1 == WINDOW_CHUNKS
        {
            self.over().push(window.start);
        }
    }
}

/// Maps a part of a file: somewhere, or in place of the same part of another log, or of a part that is over.
fn map(file: &SharedFile, offset: u64, length: usize, place: Option<*mut u8>) -> Option<*mut u8> {
    let at = match place {
        None => file.map(offset, length)?,
        Some(place) => {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            let from = (file.descriptor(), offset as i64);
            // SAFETY: what is replaced is a mapping of ours, as long, to which nobody writes any more.
            let at = unsafe { libc::mmap(place.cast(), length, access, flags, from.0, from.1) };
            (at.cast() == place).then_some(place)?
        }
    };
    // SAFETY: advice about our own mapping. Without it the kernel reads a hole of the file ahead: a
    // quarter of what a short execution took.
    unsafe { libc::madvise(at.cast(), length, libc::MADV_RANDOM) };
    Some(at)
}

fn grow(file: &SharedFile, length: u64) -> Result<(), String> {
    // SAFETY: a descriptor of ours.
    match unsafe { libc::ftruncate(file.descriptor(), length as i64) } {
        0 => Ok(()),
        _ => Err(format!("cannot grow the log: {}", std::io::Error::last_os_error())),
    }
}

/// A chunk in a thread's hands.
#[derive(Debug)]
struct Chunk {
    index: u64,
    start: *mut u8,
    used: usize,
}

impl Chunk {
    /// Shows the reader everything written so far.
    fn publish(&self, log: &Log) {
        // SAFETY: bytes 0..4 of our own chunk; the reader sees the records before the length.
        unsafe { AtomicU32::from_ptr(self.start.cast()) }
            .store(self.used as u32, Ordering::Release);
        log.note_written(self.index);
    }

    /// Tells the reader that nothing more will come.
    fn close(self, log: &Log) {
        log.held.fetch_sub(1, Ordering::AcqRel);
        // SAFETY: bytes 4..8 of our own chunk.
        unsafe { AtomicU32::from_ptr(self.start.add(4).cast()) }.store(1, Ordering::Release);
        log.note_written(self.index);
        log.chunk_is_over(self.index);
    }

    fn free(&mut self) -> &mut [u8] {
        // SAFETY: the rest of our own chunk, which only this thread touches.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(self.used), CHUNK - self.used) }
    }
}

/// A chunk with so much space in it is left to the next thread: programs that start many threads would have a chunk, a mapping and
/// pages for each that ever lived.
const WORTH_LEAVING: usize = CHUNK / 8;

/// A thread's pen.
#[derive(Debug)]
pub struct Writer {
    thread: ThreadId,
    /// It has had a chunk.
    begun: bool,
    chunk: Option<Chunk>,
}

// SAFETY: the chunk is used by one thread at a time, whoever holds the writer.
unsafe impl Send for Writer {}

impl Writer {
    /// A pen without a chunk yet.
    pub fn new(thread: ThreadId) -> Writer {
        Writer { thread, begun: false, chunk: None }
    }

    /// Appends a record. A record that fits no chunk is an error of ours.
    pub fn write(&mut self, log: &Log, record: &Record) -> Result<(), String> {
        // One that another has begun may be too full for it.
        for _ in 0..3 {
            if let Some(chunk) = &mut self.chunk
                && let Some(used) = wire::encode(record, chunk.free())
            {
                chunk.used += used;
                chunk.publish(log);
                return Ok(());
            }
            if let Some(full) = self.chunk.take() {
                full.close(log);
            }
            self.chunk = Some(match std::mem::replace(&mut self.begun, true) {
                false => log.first_chunk(self.thread)?,
                true => log.take_chunk(self.thread)?,
            });
        }
        Err("a record is longer than a chunk".to_owned())
    }

    /// Gives the chunk up: nothing more will be written by this thread.
    pub fn close(&mut self, log: &Log) {
        match self.chunk.take() {
            Some(chunk) if CHUNK - chunk.used >= WORTH_LEAVING => {
                log.left.lock().unwrap_or_else(|e| e.into_inner()).push(chunk);
            }
            Some(chunk) => chunk.close(log),
            None => {}
        }
    }

    /// Forgets the chunk without a word: after a fork it is the parent's.
    pub fn disown(&mut self) {
        self.chunk = None;
    }
}

//! Reading a log while it is written, and after its writer has died.

use super::{CHUNK, CHUNK_HEADER, HEADER, MAGIC, Record, State, VERSION, header};
use crate::WireError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

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

#[cfg(test)]
mod tests {
    use super::super::{Merger, encode, new_header};
    use super::*;
    use raddle_model::{Event, EventKind, ModuleId, Place, StackId, ThreadId};

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
    fn foreign_and_unfinished_files_are_told_apart() {
        let empty = tempfile::tempfile().unwrap();
        assert!(LogReader::open(empty).unwrap().is_none());
        let foreign = tempfile::tempfile().unwrap();
        foreign.write_all_at(&[b'x'; 4096], 0).unwrap();
        assert!(LogReader::open(foreign).is_err());
    }
}

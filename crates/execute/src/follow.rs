//! Following one process by its log: records become calls of the observer, in the order things
//! happened.

use crate::control::{Control, Crash, Stuck};
use crate::{Looked, Observer};
use raddle_model::{Event, EventKind, Place, StackId, ThreadId};
use raddle_wire::log::{LogReader, Merger, Record, State};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// A process that cannot be mistaken for a later one of the same number.
#[derive(Debug)]
pub(crate) struct ProcessHandle(Option<OwnedFd>);

impl ProcessHandle {
    /// The process of this number; ended, if there is none.
    pub(crate) fn open(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        ProcessHandle(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    pub(crate) fn alive(&self) -> bool {
        // Readable means ended. An interrupted or failed look is taken for "still alive".
        self.wait(&Timespec { tv_sec: 0, tv_nsec: 0 }).is_some_and(|ended| !ended)
    }

    /// Waits for its end, at most this long; true when it ended, `None` when there is no process.
    /// Signals of our own end the wait early.
    pub(crate) fn wait(&self, at_most: &Timespec) -> Option<bool> {
        let mut fds = [PollFd::new(self.0.as_ref()?, PollFlags::IN)];
        Some(matches!(poll(&mut fds, Some(at_most)), Ok(n) if n > 0))
    }

    /// What to poll for its end; `None` when there is no process.
    pub(crate) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn send(&self, signal: Signal) {
        if let Some(fd) = &self.0 {
            // It may have ended meanwhile, which is as good.
            let _ = pidfd_send_signal(fd, signal);
        }
    }
}

/// What one look at a log brought.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Records read.
    pub records: usize,
    /// Requests for module facts: number and file.
    pub questions: Vec<(u32, PathBuf)>,
    /// Child processes made.
    pub forked: Vec<u32>,
}

/// A process being followed.
#[derive(Debug)]
pub(crate) struct Followed {
    /// The log's file name, which names the answers to its questions too.
    pub name: String,
    /// The process.
    pub process: ProcessHandle,
    /// Why the probe gave up, if it did; or what is wrong with its log.
    pub failure: Option<String>,
    /// Events handed over.
    pub events: u64,
    /// Who did the last of them, and where.
    pub last: Option<(ThreadId, Place)>,
    /// The kernel's numbers of its threads that have not ended.
    pub threads: HashMap<ThreadId, u32>,
    /// What the scheduler did.
    pub control: Control,
    reader: LogReader,
    merger: Merger,
    stacks: HashSet<StackId>,
    /// The next event of the order, waiting for its stack.
    next: Option<Event>,
    announced: bool,
    abandoned: bool,
    keep: bool,
}

impl Followed {
    /// Opens a log; `None` when its writer has only just begun.
    pub(crate) fn open(name: &str, file: File, keep: bool) -> io::Result<Option<Self>> {
        Ok(LogReader::open(file)?.map(|reader| Followed {
            name: name.to_owned(),
            process: ProcessHandle::open(reader.pid()),
            failure: None,
            events: 0,
            last: None,
            threads: HashMap::new(),
            control: Control::default(),
            reader,
            merger: Merger::default(),
            stacks: HashSet::new(),
            next: None,
            announced: false,
            abandoned: false,
            keep,
        }))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.reader.pid()
    }

    /// Has nobody looked yet?
    pub(crate) fn is_new(&self) -> bool {
        !self.announced
    }

    /// How far the probe got; a log we cannot read is a failure.
    pub(crate) fn state(&mut self) -> State {
        if self.failure.is_some() {
            return State::Failed;
        }
        self.reader.state().unwrap_or_else(|e| {
            self.give_up(&e);
            State::Failed
        })
    }

    /// Says that a question has been answered.
    pub(crate) fn answered(&mut self, request: u32) {
        if let Err(e) = self.reader.answer(request) {
            self.give_up(&e);
        }
    }

    /// Hands on what has been written since the last look.
    pub(crate) fn look(&mut self, observer: &mut dyn Observer) -> Progress {
        self.look_once(observer, false)
    }

    /// `last`: nothing more will be written.
    fn look_once(&mut self, observer: &mut dyn Observer, last: bool) -> Progress {
        let mut progress = Progress::default();
        if self.abandoned {
            return progress;
        }
        let pid = self.reader.pid();
        if !self.announced {
            self.announced = true;
            observer.program(pid);
        }
        let mut delivery = Delivery {
            merger: &mut self.merger,
            stacks: &mut self.stacks,
            next: &mut self.next,
            events: &mut self.events,
            last: &mut self.last,
            threads: &mut self.threads,
            forked: &mut progress.forked,
        };
        let mut take = |record| match record {
            Record::Event(event) => {
                delivery.merger.push(event);
                delivery.deliver(pid, observer, Merger::pop);
            }
            Record::Stack { id, frames } => {
                delivery.stacks.insert(id);
                observer.stack(pid, id, frames);
                delivery.deliver(pid, observer, Merger::pop);
            }
            Record::NeedFacts { request, path, .. } => {
                progress.questions.push((request, path.into()));
            }
            Record::Counts { thread, places } => observer.counts(pid, thread, places),
            Record::EventCounts { thread, counts } => observer.event_counts(pid, thread, counts),
            Record::Finding { number, finding, block, thread_local } => {
                observer.finding(pid, number, finding, block, thread_local);
            }
            Record::Looked { accesses, synchronisations, locks } => {
                observer.looked(pid, Looked { accesses, synchronisations, locks });
            }
            Record::Schedule { first, segments } => self.control.decided(first, segments),
            Record::Input { number, text } => self.control.came(number, &text),
            Record::Value { order, after, value } => observer.value(pid, order, after, value),
            Record::Meeting(meeting) => self.control.met(*meeting),
            Record::Stuck { waits, cycle } => self.control.stuck = Some(Stuck { waits, cycle }),
            Record::Crash { place, stack } => {
                self.control.crash.get_or_insert(Crash { place, stack });
            }
            Record::Refused { what } => {
                self.control.refused.insert(what);
            }
            Record::Diverged { what } => self.control.divergence = Some(what),
            Record::Failure { what } => self.failure = Some(what),
        };
        let read = match last {
            true => self.reader.poll_last(&mut take),
            false => self.reader.poll(&mut take),
        };
        match read {
            Ok(records) => progress.records = records,
            Err(e) => self.give_up(&e),
        }
        self.free_space();
        if !observer.listening() {
            self.abandon();
        }
        progress
    }

    /// Hands on everything that is left, when nothing more will be written: gaps are where a
    /// killed thread had taken a number and not yet written its event.
    pub(crate) fn finish(&mut self, observer: &mut dyn Observer) -> Progress {
        let mut progress = Progress::default();
        loop {
            let more = self.look_once(observer, true);
            progress.forked.extend(more.forked);
            if more.records == 0 {
                break;
            }
            progress.records += more.records;
        }
        if !self.abandoned {
            let mut delivery = Delivery {
                merger: &mut self.merger,
                stacks: &mut self.stacks,
                next: &mut self.next,
                events: &mut self.events,
                last: &mut self.last,
                threads: &mut self.threads,
                forked: &mut progress.forked,
            };
            let pid = self.reader.pid();
            delivery.deliver_all(pid, observer);
            self.abandon();
        }
        progress
    }

    fn give_up(&mut self, error: &io::Error) {
        if self.failure.is_none() {
            self.failure = Some(error.to_string());
        }
        self.abandon();
    }

    fn abandon(&mut self) {
        self.abandoned = true;
        // A log that cannot be written has no reader waiting for this either.
        let _ = self.reader.abandon();
    }

    /// Gives the file system back what has been read.
    fn free_space(&mut self) {
        if self.keep {
            return;
        }
        let ranges: Vec<(u64, u64)> = self.reader.take_finished().collect();
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for (offset, length) in ranges {
            if fallocate(self.reader.file(), flags, offset, length).is_err() {
                // This file system cannot; the file then takes what it takes.
                self.keep = true;
                return;
            }
        }
    }
}

impl Drop for Followed {
    /// Whatever made us stop, the target must not wait for us.
    fn drop(&mut self) {
        self.abandon();
    }
}

/// The parts of [`Followed`] that deliver, borrowed apart from its reader.
struct Delivery<'a> {
    merger: &'a mut Merger,
    stacks: &'a mut HashSet<StackId>,
    next: &'a mut Option<Event>,
    events: &'a mut u64,
    last: &'a mut Option<(ThreadId, Place)>,
    threads: &'a mut HashMap<ThreadId, u32>,
    forked: &'a mut Vec<u32>,
}

impl Delivery<'_> {
    /// Delivers while the next event of the order is there and its stack is known.
    fn deliver(
        &mut self,
        pid: u32,
        observer: &mut dyn Observer,
        pop: impl Fn(&mut Merger) -> Option<Event>,
    ) {
        while let Some(event) = self.next.take().or_else(|| pop(self.merger)) {
            if event.stack != StackId::NONE && !self.stacks.contains(&event.stack) {
                *self.next = Some(event);
                return;
            }
            self.hand_over(pid, observer, event);
        }
    }

    /// Delivers everything, gaps and unknown stacks or not.
    fn deliver_all(&mut self, pid: u32, observer: &mut dyn Observer) {
        while let Some(event) = self.next.take().or_else(|| self.merger.pop_last()) {
            self.hand_over(pid, observer, event);
        }
    }

    fn hand_over(&mut self, pid: u32, observer: &mut dyn Observer, event: Event) {
        match event.kind {
            EventKind::ProcessForked { child } => self.forked.push(child),
            EventKind::ThreadStart { os_id, .. } => {
                self.threads.insert(event.thread, os_id);
            }
            EventKind::ThreadExit => {
                self.threads.remove(&event.thread);
            }
            _ => {}
        }
        *self.events += 1;
        *self.last = Some((event.thread, event.place));
        observer.event(pid, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::ModuleId;
    use raddle_wire::log::{CHUNK, CHUNK_HEADER, HEADER, encode, header, new_header};
    use raddle_wire::options::PlaceCount;
    use std::os::unix::fs::{FileExt, MetadataExt};

    /// Writes a log as the probe does: one chunk per thread.
    struct Writer {
        file: File,
        used: Vec<usize>,
    }

    impl Writer {
        fn new() -> Self {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&new_header(std::process::id()), 0).unwrap();
            Writer { file, used: Vec::new() }
        }

        fn write(&mut self, chunk: usize, record: &Record) {
            while self.used.len() <= chunk {
                self.used.push(CHUNK_HEADER);
                let end = HEADER + (self.used.len() * CHUNK) as u64;
                self.file.set_len(end).unwrap();
                let chunks = self.used.len() as u64;
                self.file.write_all_at(&chunks.to_le_bytes(), header::NEXT_CHUNK as u64).unwrap();
            }
            let mut bytes = vec![0; 4096];
            let length = encode(record, &mut bytes).unwrap();
            let base = HEADER + (chunk * CHUNK) as u64;
            self.file.write_all_at(&bytes[..length], base + self.used[chunk] as u64).unwrap();
            self.used[chunk] += length;
            self.file.write_all_at(&(self.used[chunk] as u32).to_le_bytes(), base).unwrap();
            self.count(chunk);
        }

        fn close(&self, chunk: usize) {
            let base = HEADER + (chunk * CHUNK) as u64;
            self.file.write_all_at(&1u32.to_le_bytes(), base + 4).unwrap();
            self.count(chunk);
        }

        /// Something was written to a chunk.
        fn count(&self, chunk: usize) {
            let at = header::written(chunk as u64) as u64;
            let mut word = [0; 8];
            self.file.read_exact_at(&mut word, at).unwrap();
            let more = u64::from_le_bytes(word) + 1;
            self.file.write_all_at(&more.to_le_bytes(), at).unwrap();
        }

        fn follow(&self, keep: bool) -> Followed {
            Followed::open("1.0.log", self.file.try_clone().unwrap(), keep).unwrap().unwrap()
        }
    }

    fn event(order: u64, stack: u32) -> Record {
        Record::Event(Event {
            order,
            thread: ThreadId(1),
            place: Place { module: ModuleId(1), offset: 0x10 },
            stack: StackId(stack),
            kind: EventKind::ThreadExit,
        })
    }

    #[derive(Default)]
    struct Heard {
        what: Vec<String>,
        deaf: bool,
    }

    impl Observer for Heard {
        fn event(&mut self, _: u32, event: Event) {
            self.what.push(format!("e{}", event.order));
        }
        fn stack(&mut self, _: u32, id: StackId, _: Vec<Place>) {
            self.what.push(format!("s{}", id.0));
        }
        fn counts(&mut self, _: u32, thread: ThreadId, places: Vec<PlaceCount>) {
            self.what.push(format!("c{thread}:{}", places.len()));
        }
        fn event_counts(&mut self, _: u32, thread: ThreadId, counts: Vec<(String, Place, u64)>) {
            self.what.push(format!("n{thread}:{}", counts.len()));
        }
        fn listening(&self) -> bool {
            !self.deaf
        }
    }

    #[test]
    fn events_wait_for_their_order_and_their_stack() {
        let mut writer = Writer::new();
        let mut heard = Heard::default();
        let mut log = writer.follow(true);
        writer.write(0, &event(0, 0));
        writer.write(0, &event(2, 5));
        assert_eq!(log.look(&mut heard).records, 2);
        assert_eq!(heard.what, ["e0"]);
        writer.write(1, &event(1, 5));
        log.look(&mut heard);
        assert_eq!(heard.what, ["e0"]);
        writer.write(1, &Record::Stack { id: StackId(5), frames: Vec::new() });
        log.look(&mut heard);
        assert_eq!(heard.what, ["e0", "s5", "e1", "e2"]);
    }

    #[test]
    fn the_end_delivers_over_gaps() {
        let mut writer = Writer::new();
        let mut heard = Heard::default();
        let mut log = writer.follow(true);
        writer.write(0, &event(3, 9));
        writer.write(0, &event(1, 0));
        writer.write(0, &Record::Counts { thread: ThreadId(2), places: Vec::new() });
        writer.write(0, &Record::EventCounts { thread: ThreadId(2), counts: Vec::new() });
        log.finish(&mut heard);
        assert_eq!(heard.what, ["cT2:0", "nT2:0", "e1", "e3"]);
        assert_eq!((log.events, log.last.unwrap().0), (2, ThreadId(1)));
    }

    #[test]
    fn questions_forks_and_failures_are_noticed() {
        let mut writer = Writer::new();
        let mut log = writer.follow(true);
        let need = |request, path: &str| Record::NeedFacts {
            request,
            module: ModuleId(1),
            path: path.into(),
        };
        writer.write(0, &need(1, "/bin/true"));
        let Record::Event(mut fork) = event(0, 0) else { unreachable!() };
        fork.kind = EventKind::ProcessForked { child: 77 };
        writer.write(0, &Record::Event(fork));
        let progress = log.look(&mut Heard::default());
        assert_eq!(progress.questions, [(1, PathBuf::from("/bin/true"))]);
        assert_eq!(progress.forked, [77]);
        assert_eq!(log.state(), State::Running);
        writer.write(0, &Record::Failure { what: "out of chunks".into() });
        log.look(&mut Heard::default());
        assert_eq!(log.state(), State::Failed);
        assert_eq!(log.failure.as_deref(), Some("out of chunks"));
    }

    #[test]
    fn space_is_freed_behind_the_reader() {
        let mut writer = Writer::new();
        let mut log = writer.follow(false);
        for order in 0..200 {
            writer.write(0, &event(order, 0));
        }
        writer.close(0);
        let before = writer.file.metadata().unwrap().blocks();
        log.look(&mut Heard::default());
        assert!(writer.file.metadata().unwrap().blocks() < before);
    }

    #[test]
    fn damage_and_deafness_let_the_target_go() {
        let abandoned = |writer: &Writer| {
            let mut flag = [0; 4];
            writer.file.read_exact_at(&mut flag, header::ABANDONED as u64).unwrap();
            flag[0] == 1
        };
        let mut writer = Writer::new();
        writer.write(0, &event(0, 0));
        let mut log = writer.follow(true);
        log.look(&mut Heard::default());
        assert!(!abandoned(&writer));
        log.look(&mut Heard { deaf: true, ..Heard::default() });
        assert!(abandoned(&writer));

        let mut writer = Writer::new();
        writer.write(0, &event(0, 0));
        writer.file.write_all_at(&[0xff; 8], HEADER + CHUNK_HEADER as u64).unwrap();
        let mut log = writer.follow(true);
        log.look(&mut Heard::default());
        assert!(log.failure.as_ref().unwrap().contains("damaged event log"));
        assert!(abandoned(&writer));
    }
}

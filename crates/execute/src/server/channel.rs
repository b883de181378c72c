//! What passes between the command and a server: requests and replies by named pipes, and what the
//! target writes.

use super::Written;
use crate::ExecuteError;
use crate::follow::ProcessHandle;
use raddle_wire::serve::{self, Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, mknodat, open};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

/// The named pipes, before there is a server.
#[derive(Debug)]
pub(super) struct Pipes {
    requests: File,
    replies: File,
}

impl Pipes {
    /// Makes them in a run directory. Both are open for reading and writing here, so that opening
    /// waits for nobody on either side; the server has one side of each, and so notices our end.
    pub(super) fn make(directory: &Path) -> Result<Pipes, ExecuteError> {
        let make = |name: &str| {
            let path = directory.join(name);
            let access = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, &path, FileType::Fifo, access, 0)?;
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
            io::Result::Ok(File::from(open(&path, flags, Mode::empty())?))
        };
        let context = || format!("making pipes in {}", directory.display());
        Ok(Pipes {
            requests: make(serve::REQUESTS).map_err(ExecuteError::during(context()))?,
            replies: make(serve::REPLIES).map_err(ExecuteError::during(context()))?,
        })
    }
}

/// Our ends of everything.
#[derive(Debug)]
pub(super) struct Channel {
    requests: File,
    replies: Stream,
    output: Stream,
    errors: Stream,
    process: ProcessHandle,
}

impl Channel {
    pub(super) fn new(
        pipes: Pipes,
        (output, errors): (Option<ChildStdout>, Option<ChildStderr>),
        process: ProcessHandle,
    ) -> Result<Channel, ExecuteError> {
        let stream = |end: Option<OwnedFd>| {
            let end = end.ok_or(io::ErrorKind::NotConnected)?;
            fcntl_setfl(&end, fcntl_getfl(&end)? | OFlags::NONBLOCK)?;
            io::Result::Ok(Stream::of(File::from(end)))
        };
        let context = "reading what the target writes";
        Ok(Channel {
            requests: pipes.requests,
            replies: Stream::of(pipes.replies),
            output: stream(output.map(Into::into)).map_err(ExecuteError::during(context))?,
            errors: stream(errors.map(Into::into)).map_err(ExecuteError::during(context))?,
            process,
        })
    }

    /// Asks for an execution.
    pub(super) fn ask(&mut self, request: &Request) -> Result<(), String> {
        let line = serve::line(request);
        self.requests.write_all(line.as_bytes()).map_err(|e| format!("it cannot be asked: {e}"))
    }

    /// The next reply that has come.
    pub(super) fn reply(&mut self) -> Result<Option<Reply>, String> {
        self.replies.fill();
        let Some(end) = self.replies.read.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line: Vec<u8> = self.replies.read.drain(..=end).collect();
        serve::parse(&String::from_utf8_lossy(&line)).map(Some)
    }

    /// Waits until something comes, at most so long; true when it did. What the target writes is
    /// taken in meanwhile.
    pub(super) fn wait(&mut self, at_most: Duration) -> bool {
        let time = Timespec {
            tv_sec: at_most.as_secs().cast_signed(),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let streams = [&self.replies, &self.output, &self.errors];
        let open = streams.into_iter().filter(|stream| !stream.ended);
        let mut all: Vec<PollFd<'_>> = open
            .map(|stream| PollFd::from_borrowed_fd(stream.file.as_fd(), PollFlags::IN))
            .collect();
        all.extend(self.process.as_fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let came = matches!(poll(&mut all, Some(&time)), Ok(n) if n > 0);
        self.output.fill();
        self.errors.fill();
        came
    }

    /// Has the server ended?
    pub(super) fn is_over(&self) -> bool {
        !self.process.alive()
    }

    /// What the target has written since the last time.
    pub(super) fn take_written(&mut self) -> Written {
        self.output.fill();
        self.errors.fill();
        Written {
            output: std::mem::take(&mut self.output.read),
            errors: std::mem::take(&mut self.errors.read),
        }
    }
}

/// The reading end of a pipe, and what has come.
#[derive(Debug)]
struct Stream {
    file: File,
    read: Vec<u8>,
    ended: bool,
}

impl Stream {
    fn of(file: File) -> Stream {
        Stream { file, read: Vec::new(), ended: false }
    }

    /// Takes in what is there, without waiting.
    fn fill(&mut self) {
        let mut buffer = [0; 16 << 10];
        while !self.ended {
            match self.file.read(&mut buffer) {
                Ok(0) => self.ended = true,
                Ok(count) => self.read.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = error.kind() != io::ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }
}

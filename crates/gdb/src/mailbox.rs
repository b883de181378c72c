//! The command's side of `raddle_wire::debug`.

use crate::GdbError;
use raddle_wire::WireError;
use raddle_wire::debug::{self as wire, BODY, HEADER, Resume, Stop, Turn, header};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file, open.
#[derive(Debug)]
pub struct Mailbox {
    file: File,
    /// The target's process id.
    pub pid: u32,
}

impl Mailbox {
    /// The file of this run directory, if the probe has made it.
    pub fn open(directory: &Path) -> Result<Option<Mailbox>, GdbError> {
        let path = directory.join(wire::FILE);
        let file = match File::options().read(true).write(true).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(GdbError::during(path.display().to_string()))?,
        };
        let mut magic = [0; 8];
        let read = file.read_exact_at(&mut magic, 0);
        if read.is_err() || &magic != wire::MAGIC {
            return Ok(None);
        }
        let mut mailbox = Mailbox { file, pid: 0 };
        let found = mailbox.word(header::VERSION)?;
        if found != wire::VERSION {
            let (what, expected) = ("debugger's", wire::VERSION);
            return Err(WireError::Version { what, found, expected }.into());
        }
        mailbox.pid = mailbox.word(header::PID)?;
        Ok(Some(mailbox))
    }

    /// Why the target stands, if it does.
    pub fn stop(&self) -> Result<Option<Stop>, GdbError> {
        if self.word(header::TURN)? != Turn::Command as u32 {
            return Ok(None);
        }
        let length = (self.word(header::LENGTH)? as usize).min(BODY);
        let mut body = vec![0; length];
        let read = self.file.read_exact_at(&mut body, HEADER as u64);
        read.map_err(GdbError::during("reading why the target stands"))?;
        Ok(Some(wire::decode(&body)?))
    }

    /// Lets the target, which stands, go on.
    pub fn resume(&self, resume: &Resume) -> Result<(), GdbError> {
        let mut body = vec![0; BODY];
        let length = wire::encode(resume, &mut body)
            .ok_or(WireError::Damaged("debugger's", "too many breakpoints".into()))?;
        let write = self.file.write_all_at(&body[..length], HEADER as u64);
        write.map_err(GdbError::during("letting the target go on"))?;
        self.set(header::LENGTH, length as u32)?;
        self.set(header::TURN, Turn::Resumed as u32)
    }

    /// Asks the target to stop.
    pub fn interrupt(&self) -> Result<(), GdbError> {
        self.set(header::INTERRUPT, 1)
    }

    fn word(&self, at: usize) -> Result<u32, GdbError> {
        let mut bytes = [0; 4];
        let read = self.file.read_exact_at(&mut bytes, at as u64);
        read.map_err(GdbError::during("reading the debugger's file"))?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn set(&self, at: usize, value: u32) -> Result<(), GdbError> {
        let write = self.file.write_all_at(&value.to_le_bytes(), at as u64);
        write.map_err(GdbError::during("writing the debugger's file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::ThreadId;
    use raddle_wire::debug::Why;

    #[test]
    fn messages_pass_both_ways() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Mailbox::open(directory.path()).unwrap().is_none());
        let path = directory.path().join(wire::FILE);
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        file.set_len((HEADER + BODY) as u64).unwrap();
        assert!(Mailbox::open(directory.path()).unwrap().is_none());
        let put =
            |at: usize, value: u32| file.write_all_at(&value.to_le_bytes(), at as u64).unwrap();
        put(header::VERSION, wire::VERSION);
        put(header::PID, 77);
        file.write_all_at(wire::MAGIC, 0).unwrap();
        let mailbox = Mailbox::open(directory.path()).unwrap().unwrap();
        assert_eq!(mailbox.pid, 77);
        assert_eq!(mailbox.stop().unwrap(), None);

        let stop = Stop { thread: ThreadId(1), why: Why::Started, threads: Vec::new() };
        let mut body = vec![0; BODY];
        let length = wire::encode(&stop, &mut body).unwrap();
        file.write_all_at(&body[..length], HEADER as u64).unwrap();
        put(header::LENGTH, length as u32);
        put(header::TURN, Turn::Command as u32);
        assert_eq!(mailbox.stop().unwrap(), Some(stop));

        let resume = Resume { attached: true, breakpoints: vec![0x1234], ..Resume::default() };
        mailbox.resume(&resume).unwrap();
        assert_eq!(mailbox.stop().unwrap(), None);
        let length = mailbox.word(header::LENGTH).unwrap() as usize;
        let mut body = vec![0; length];
        file.read_exact_at(&mut body, HEADER as u64).unwrap();
        assert_eq!(wire::decode::<Resume>(&body), Ok(resume));

        put(header::VERSION, wire::VERSION + 1);
        assert!(Mailbox::open(directory.path()).is_err());
    }
}

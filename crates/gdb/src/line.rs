//! The line to gdb with buffers: `gdbstub` reads and writes single bytes, and a register set is two
//! thousand of them.

use crate::listener::Connection;
use gdbstub::conn::{Connection as Conn, ConnectionExt};
use std::io::{self, Read, Write};

/// A buffered connection.
#[derive(Debug)]
pub struct Line {
    connection: Connection,
    /// What has come and was not taken, from `taken` on.
    come: Vec<u8>,
    taken: usize,
    /// What has not been sent.
    unsent: Vec<u8>,
}

impl Line {
    pub fn new(connection: Connection) -> Line {
        Line { connection, come: Vec::new(), taken: 0, unsent: Vec::new() }
    }

    /// Makes `come` something new; it must have been taken.
    fn receive(&mut self) -> io::Result<()> {
        self.come.resize(4096, 0);
        self.taken = self.come.len();
        let count = self.connection.read(&mut self.come)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.come.truncate(count);
        self.taken = 0;
        Ok(())
    }
}

impl Conn for Line {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.unsent.push(byte);
        Ok(())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsent.extend(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.connection.set_nonblocking(false)?;
            self.connection.write_all(&self.unsent)?;
            self.unsent.clear();
        }
        Ok(())
    }
}

impl ConnectionExt for Line {
    fn read(&mut self) -> io::Result<u8> {
        // Who waits for gdb has said everything.
        self.flush()?;
        if self.taken == self.come.len() {
            self.connection.set_nonblocking(false)?;
            self.receive()?;
        }
        self.taken += 1;
        Ok(self.come[self.taken - 1])
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        self.flush()?;
        if self.taken == self.come.len() {
            self.connection.set_nonblocking(true)?;
            match self.receive() {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                other => other?,
            }
        }
        Ok(self.come.get(self.taken).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_pass_both_ways_and_the_end_is_an_error() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut line = Line::new(Connection::Path(ours));
        assert_eq!(line.peek().unwrap(), None);
        Write::write_all(&mut theirs, b"ab").unwrap();
        assert_eq!(line.peek().unwrap(), Some(b'a'));
        assert_eq!(line.read().unwrap(), b'a');
        assert_eq!(line.read().unwrap(), b'b');
        line.write(b'+').unwrap();
        line.write_all(b"$OK").unwrap();
        assert_eq!(line.peek().unwrap(), None);
        let mut answer = [0; 4];
        Read::read_exact(&mut theirs, &mut answer).unwrap();
        assert_eq!(&answer, b"+$OK");
        drop(theirs);
        assert!(line.peek().is_err());
        assert!(line.read().is_err());
    }
}

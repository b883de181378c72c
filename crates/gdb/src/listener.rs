//! Where gdb connects: a socket in a directory of the user's own, or a port of this machine.

use crate::GdbError;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Waits for gdb.
#[derive(Debug)]
pub enum Listener {
    /// At a path: nobody else can connect.
    Path(UnixListener, PathBuf),
    /// At a port: everybody on this machine can.
    Port(TcpListener, u16),
}

/// A connection to gdb.
#[derive(Debug)]
pub enum Connection {
    /// By a path.
    Path(UnixStream),
    /// By a port.
    Port(TcpStream),
}

impl Listener {
    /// At a path that does not exist yet.
    pub fn at_path(path: &Path) -> Result<Listener, GdbError> {
        let what = || format!("listening at {}", path.display());
        let listener = UnixListener::bind(path).map_err(GdbError::during(what()))?;
        listener.set_nonblocking(true).map_err(GdbError::during(what()))?;
        Ok(Listener::Path(listener, path.to_owned()))
    }

    /// At a port; at any that is free, if zero.
    pub fn at_port(port: u16) -> Result<Listener, GdbError> {
        let what = || format!("listening at port {port}");
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(GdbError::during(what()))?;
        listener.set_nonblocking(true).map_err(GdbError::during(what()))?;
        let port = listener.local_addr().map_err(GdbError::during(what()))?.port();
        Ok(Listener::Port(listener, port))
    }

    /// What gdb's `target remote` takes.
    pub fn address(&self) -> String {
        match self {
            Listener::Path(_, path) => path.display().to_string(),
            Listener::Port(_, port) => format!(":{port}"),
        }
    }

    /// A connection, if one has come.
    pub fn accept(&self) -> io::Result<Option<Connection>> {
        let come = match self {
            Listener::Path(listener, _) => listener.accept().map(|(c, _)| Connection::Path(c)),
            Listener::Port(listener, _) => listener.accept().and_then(|(connection, _)| {
                connection.set_nodelay(true)?;
                Ok(Connection::Port(connection))
            }),
        };
        match come {
            Ok(connection) => Ok(Some(connection)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl Connection {
    /// Another handle of it.
    pub fn try_clone(&self) -> io::Result<Connection> {
        match self {
            Connection::Path(stream) => stream.try_clone().map(Connection::Path),
            Connection::Port(stream) => stream.try_clone().map(Connection::Port),
        }
    }

    /// Ends it, whoever waits for it.
    pub fn hang_up(&self) {
        // It may have ended already.
        let _ = match self {
            Connection::Path(stream) => stream.shutdown(std::net::Shutdown::Both),
            Connection::Port(stream) => stream.shutdown(std::net::Shutdown::Both),
        };
    }

    /// Whether reading waits.
    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Connection::Path(stream) => stream.set_nonblocking(nonblocking),
            Connection::Port(stream) => stream.set_nonblocking(nonblocking),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Path(stream) => stream.read(buffer),
            Connection::Port(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Connection::Path(stream) => stream.write(bytes),
            Connection::Port(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

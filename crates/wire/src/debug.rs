//! What passes between the command and the probe while a debugger is attached: one file in the run
//! directory, mapped by the probe and read and written by the command.
//!
//! ```text
//! header (4096 bytes)   see the offsets in [`header`]
//! body                  a postcard-encoded [`Stop`] or [`Resume`]
//! ```
//!
//! There are two messages. The target stops: the probe writes a [`Stop`], which says why and has the
//! registers of every thread, and gives [`header::TURN`] to the command. The debugger lets it go on: the
//! command writes a [`Resume`], which has all breakpoints and what is stepped, and gives the turn back.
//! Memory needs no message: the command reads and writes it through the kernel while the target stands.

use crate::WireError;
use raddle_model::ThreadId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The file's name in the run directory.
pub const FILE: &str = "debugger";
/// First bytes of the file.
pub const MAGIC: &[u8; 8] = b"RADDGDB\0";
/// Bump on any change of layout or messages.
pub const VERSION: u32 = 1;
/// Bytes before the body.
pub const HEADER: usize = 4096;
/// Bytes of the body: registers of ten thousand threads. The file has holes where nothing was written.
pub const BODY: usize = 8 << 20;

/// Byte offsets of the header's fields.
pub mod header {
    /// u32: [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// u32: the target's process id.
    pub const PID: usize = 12;
    /// u32: a [`super::Turn`].
    pub const TURN: usize = 16;
    /// u32: not zero while the debugger wants the target to stop.
    pub const INTERRUPT: usize = 20;
    /// u32: bytes of the message in the body.
    pub const LENGTH: usize = 24;
}

/// Who is to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The target runs.
    Target = 0,
    /// It has stopped; the body is a [`Stop`].
    Command = 1,
    /// It may go on; the body is a [`Resume`].
    Resumed = 2,
}

/// The target stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The thread that has stopped; the others stand where the scheduler keeps them.
    pub thread: ThreadId,
    /// Why.
    pub why: Why,
    /// All threads, by number.
    pub threads: Vec<StoppedThread>,
}

/// Why the target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// The program begins.
    Started,
    /// A breakpoint.
    Breakpoint,
    /// The step is done.
    Stepped,
    /// Watched memory has another content than before.
    Changed {
        /// Its first byte.
        start: u64,
    },
    /// The thread is about to make one of the two accesses; the other thread is about to make the other.
    Met {
        /// The other thread.
        with: ThreadId,
    },
    /// The debugger asked for it.
    Interrupted,
    /// This signal is about to kill the target.
    Signal(u32),
    /// Nobody can go on, or some wait for each other's locks.
    Deadlock,
}

/// A thread that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedThread {
    /// Who.
    pub id: ThreadId,
    /// The kernel's id of it.
    pub os_id: u32,
    /// What it is about to do or waits for, for people.
    pub about: String,
    /// Its registers.
    pub registers: Registers,
}

/// A thread's registers, as the target has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Registers {
    /// In hardware order: rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
    pub general: [u64; 16],
    /// The next instruction.
    pub pc: u64,
    /// The flags.
    pub flags: u64,
    /// Where thread-local storage is; zero if not known yet.
    pub fs_base: u64,
    /// xmm0 to xmm15.
    pub vectors: [u128; 16],
}

/// The target goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resume {
    /// A debugger is still there; if not, nothing stops the target any more.
    pub attached: bool,
    /// Where it stops.
    pub breakpoints: Vec<u64>,
    /// Memory whose changes stop it.
    pub watched: Vec<WatchedMemory>,
    /// A thread to be stepped.
    pub step: Option<Stepping>,
}

/// Memory that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WatchedMemory {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub length: u64,
}

/// How a thread is stepped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stepping {
    /// Whom.
    pub thread: ThreadId,
    /// It stops when it leaves these addresses, from start to end: none for a single instruction.
    pub start: u64,
    /// One past the last of them.
    pub end: u64,
    /// No other thread is to stop at a breakpoint meanwhile.
    pub alone: bool,
}

/// Encodes a message; `None` when it does not fit the body.
pub fn encode(message: &impl Serialize, body: &mut [u8]) -> Option<usize> {
    postcard::to_slice(message, body).ok().map(|used| used.len())
}

/// Decodes a message.
pub fn decode<M: DeserializeOwned>(body: &[u8]) -> Result<M, WireError> {
    postcard::from_bytes(body).map_err(|e| WireError::Damaged("debugger's", e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were() {
        let registers = Registers { pc: 0x1234, vectors: [u128::MAX; 16], ..Registers::default() };
        let thread = StoppedThread { id: ThreadId(2), os_id: 77, about: "waits".into(), registers };
        let why = Why::Met { with: ThreadId(3) };
        let stop = Stop { thread: ThreadId(2), why, threads: vec![thread] };
        let mut body = [0; 4096];
        let used = encode(&stop, &mut body).unwrap();
        assert_eq!(decode::<Stop>(&body[..used]), Ok(stop.clone()));
        assert!(decode::<Stop>(&body[..used / 2]).is_err());
        assert_eq!(encode(&stop, &mut body[..10]), None);
    }
}

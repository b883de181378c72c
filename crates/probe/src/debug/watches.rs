//! Watched memory: its content is compared before every instruction, whoever makes it, so the thread that
//! has changed it is the one that stops, right behind the instruction that did.

use raddle_dynamorio::process;
use raddle_wire::debug::WatchedMemory;

/// Memory and what was in it when the target went on.
#[derive(Debug)]
pub struct Watch {
    start: u64,
    content: Vec<u8>,
}

/// More is not read before every instruction.
const LONGEST: u64 = 4096;
/// Bytes compared at once.
const CHUNK: usize = 64;

impl Watch {
    pub fn new(memory: &WatchedMemory) -> Watch {
        Watch { start: memory.start, content: read(memory.start, memory.length.min(LONGEST)) }
    }

    /// The first byte, if the content is another now. Nothing is allocated: this runs before every
    /// instruction.
    pub fn changed(&self) -> Option<u64> {
        let mut buffer = [0; CHUNK];
        let mut at = self.start;
        for before in self.content.chunks(CHUNK) {
            let now = &mut buffer[..before.len()];
            if process::read(at, now) != before.len() || now != before {
                return Some(self.start);
            }
            at += CHUNK as u64;
        }
        None
    }
}

/// What can be read of it.
fn read(start: u64, length: u64) -> Vec<u8> {
    let mut content = vec![0; length as usize];
    let read = process::read(start, &mut content);
    content.truncate(read);
    content
}

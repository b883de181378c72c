//! The target's memory while it stands, through the kernel.

use crate::GdbError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Reads words; what parses the target's memory needs no more, and a test can be one.
pub trait Words {
    /// The eight bytes at an address.
    fn word(&self, address: u64) -> Option<u64>;

    /// Bytes before the first NUL, at most `limit`.
    fn text(&self, address: u64, limit: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < limit {
            // Aligned words: the last one may reach beyond the string, but not beyond its page.
            let at = address.checked_add(text.len() as u64)?;
            let (word, skip) = (self.word(at & !7)?, (at & 7) as usize);
            let bytes = word.to_le_bytes();
            match bytes[skip..].iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend(&bytes[skip..skip + end]);
                    break;
                }
                None => text.extend(&bytes[skip..]),
            }
        }
        text.truncate(limit);
        Some(text)
    }
}

/// The memory of a process.
#[derive(Debug)]
pub struct Memory {
    file: File,
}

impl Memory {
    /// Of this process, which must be ours to look at.
    pub fn open(pid: u32) -> Result<Memory, GdbError> {
        let path = format!("/proc/{pid}/mem");
        let file = File::options().read(true).write(true).open(&path);
        Ok(Memory { file: file.map_err(GdbError::during(path))? })
    }

    /// Reads what can be read; returns how much that is.
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, address)
    }

    /// Writes all of it.
    pub fn write(&self, address: u64, from: &[u8]) -> io::Result<()> {
        self.file.write_all_at(from, address)
    }
}

impl Words for Memory {
    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Words typed into a test.
    #[derive(Debug, Default)]
    pub struct Typed(pub BTreeMap<u64, u64>);

    impl Typed {
        pub fn put(&mut self, address: u64, words: &[u64]) {
            self.0.extend(words.iter().enumerate().map(|(i, w)| (address + 8 * i as u64, *w)));
        }

        pub fn put_text(&mut self, address: u64, text: &str) {
            for (i, chunk) in text.as_bytes().chunks(8).enumerate() {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                self.put(address + 8 * i as u64, &[u64::from_le_bytes(word)]);
            }
            self.0.entry(address + text.len() as u64 / 8 * 8).or_insert(0);
        }
    }

    impl Words for Typed {
        fn word(&self, address: u64) -> Option<u64> {
            self.0.get(&address).copied()
        }
    }

    #[test]
    fn text_ends_with_its_terminator_or_the_limit() {
        let mut memory = Typed::default();
        memory.put_text(0x1000, "/lib/libc.so.6");
        assert_eq!(memory.text(0x1000, 100).unwrap(), b"/lib/libc.so.6");
        assert_eq!(memory.text(0x1005, 100).unwrap(), b"libc.so.6");
        assert_eq!(memory.text(0x1000, 4).unwrap(), b"/lib");
        memory.put_text(0x2000, "12345678");
        assert_eq!(memory.text(0x2000, 100).unwrap(), b"12345678");
        assert_eq!(memory.text(0x3000, 100), None);
    }

    #[test]
    fn our_own_memory_can_be_read_and_written() {
        let memory = Memory::open(std::process::id()).unwrap();
        let value = Box::new(0x1122_3344_5566_7788_u64);
        let address = &raw const *value as u64;
        assert_eq!(memory.word(address), Some(*value));
        memory.write(address, &7_u64.to_le_bytes()).unwrap();
        assert_eq!(memory.word(address), Some(7));
        assert!(memory.read(8, &mut [0; 8]).is_err());
    }
}

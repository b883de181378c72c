//! Names kept in a directory between runs: reading a C library's debug information takes a tenth of
//! a second, and every run asks for the same few places of it.
//!
//! One file for each build of a module and what debug information was at hand (see [`crate::cache`]
//! for why nothing in it can be stale). A file that cannot be read is as good as none, and one that
//! cannot be written is done without.

use crate::cache::{identity, write_whole};
use crate::debug_files::DebugSources;
use crate::elf::Layout;
use crate::frames::Frame;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Bump when the same binary should give other names than before.
const VERSION: u32 = 1;
/// Places kept of one module: a few runs' tables (counting `true` asks for over two thousand of the
/// loader's). Reading these takes a few milliseconds, and must stay cheaper than reading debug
/// information.
const MAX_PLACES: usize = 8000;

/// The names of one module's places.
#[derive(Debug)]
pub(crate) struct KeptNames {
    file: PathBuf,
    known: BTreeMap<u64, Vec<Frame>>,
    /// Asked for in this run.
    asked: BTreeSet<u64>,
    changed: bool,
    /// Room has been made once; whoever asks for more than fits goes without.
    made_room: bool,
}

impl KeptNames {
    /// What is known of a module. `None` for one that cannot be told from another build of it, or
    /// whose debug information may come from the network today and not tomorrow.
    pub fn open(path: &Path, sources: &DebugSources, directory: &Path) -> Option<KeptNames> {
        let layout = Layout::read(path).ok()?;
        // Split debug information, which uses this section, is in files that may come and go.
        if layout.build_id.is_empty() || layout.section(".debug_addr").is_some() {
            return None;
        }
        let identity = identity(path, &layout, sources).ok().filter(|(_, certain)| *certain)?.0;
        let file = directory.join(format!("{identity}-{VERSION}.names"));
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let (known, asked) = (known.unwrap_or_default(), BTreeSet::new());
        Some(KeptNames { file, known, asked, changed: false, made_room: false })
    }

    /// The frames at an offset, if they are known.
    pub fn get(&mut self, offset: u64) -> Option<&Vec<Frame>> {
        self.asked.insert(offset);
        self.known.get(&offset)
    }

    /// Keeps the frames at an offset. When there is no more room, what this run has not asked for
    /// makes some.
    pub fn put(&mut self, offset: u64, frames: &[Frame]) {
        if self.known.len() >= MAX_PLACES && !self.made_room {
            self.made_room = true;
            self.known.retain(|offset, _| self.asked.contains(offset));
        }
        if self.known.len() < MAX_PLACES {
            self.known.insert(offset, frames.to_vec());
            self.changed = true;
        }
    }
}

impl Drop for KeptNames {
    fn drop(&mut self) {
        if self.changed
            && let Some(directory) = self.file.parent()
            && fs::create_dir_all(directory).is_ok()
            && let Ok(text) = serde_json::to_vec(&self.known)
        {
            let _ = write_whole(&self.file, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &Path) -> KeptNames {
        let own = std::env::current_exe().unwrap();
        KeptNames::open(&own, &DebugSources::default(), directory).expect("a build-id")
    }

    #[test]
    fn names_are_there_in_the_next_run() {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).put(7, &[Frame::default()]);
        assert_eq!(open(directory.path()).get(7).map(Vec::len), Some(1));
        assert!(open(directory.path()).get(8).is_none());
    }

    #[test]
    fn what_a_run_does_not_ask_for_makes_room() {
        let directory = tempfile::tempdir().unwrap();
        let mut first = open(directory.path());
        for offset in 0..MAX_PLACES as u64 {
            first.put(offset, &[Frame::default()]);
        }
        drop(first);
        let mut second = open(directory.path());
        assert!(second.get(3).is_some());
        second.put(1 << 40, &[Frame::default()]);
        drop(second);
        let mut third = open(directory.path());
        assert!(third.get(3).is_some() && third.get(1 << 40).is_some());
        assert!(third.get(4).is_none());
    }
}

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
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Bump when the same binary should give other names than before.
const VERSION: u32 = 1;
/// Places kept of one module: a few runs' tables. Reading these takes a few milliseconds, and must
/// stay cheaper than reading debug information.
const MAX_PLACES: usize = 2000;

/// The names of one module's places.
#[derive(Debug)]
pub(crate) struct KeptNames {
    file: PathBuf,
    known: BTreeMap<u64, Vec<Frame>>,
    changed: bool,
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
        Some(KeptNames { file, known: known.unwrap_or_default(), changed: false })
    }

    /// The frames at an offset, if they are known.
    pub fn get(&self, offset: u64) -> Option<&Vec<Frame>> {
        self.known.get(&offset)
    }

    /// Keeps the frames at an offset.
    pub fn put(&mut self, offset: u64, frames: &[Frame]) {
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

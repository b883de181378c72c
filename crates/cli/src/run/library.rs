//! Names and source lines for the report, from the symboliser and from the files on this machine.

use crate::names::Names;
use raddle_report::findings::html::Sources;
use raddle_report::findings::{Extent, Library};
use raddle_report::{Frame, Symbols};
use raddle_symbols::Variable;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Larger source files are not read: nobody wrote them by hand.
const LARGEST_SOURCE: u64 = 16 << 20;

/// Everything a report asks for.
pub struct Shelf {
    names: Names,
    files: SourceFiles,
}

impl Shelf {
    pub fn new() -> Self {
        Shelf { names: Names::new(), files: SourceFiles::default() }
    }
}

/// Source files, each read once.
#[derive(Debug, Default)]
pub struct SourceFiles {
    /// Their lines; empty where a file cannot be read.
    files: HashMap<PathBuf, Vec<String>>,
}

impl Sources for SourceFiles {
    fn line(&mut self, file: &Path, line: u32) -> Option<String> {
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), read(file).unwrap_or_default());
        }
        let lines = self.files.get(file)?;
        lines.get((line as usize).checked_sub(1)?).cloned()
    }
}

impl Symbols for Shelf {
    fn frames(&mut self, module: &str, offset: u64) -> Vec<Frame> {
        self.names.frames(module, offset)
    }

    fn variable(&mut self, module: &str, offset: u64) -> Option<String> {
        self.names.variable(module, offset)
    }
}

impl Library for Shelf {
    fn build_id(&mut self, module: &str) -> Option<String> {
        self.names.symboliser().build_id(Path::new(module))
    }

    fn extent(&mut self, module: &str, offset: u64) -> Option<Extent> {
        let variable = self.names.symboliser().variable(Path::new(module), offset)?;
        Some(Extent { within: variable.within, size: variable.size })
    }

    fn thread_local(&mut self, program: &str, below: u64) -> Option<(String, Extent)> {
        let variable = self.names.symboliser().thread_local(Path::new(program), below)?;
        let Variable { name, within, size, .. } = variable;
        Some((name, Extent { within, size }))
    }

    fn source_line(&mut self, file: &str, line: u32) -> Option<String> {
        self.files.line(Path::new(file), line)
    }
}

/// The lines of a source file. The path comes from the target's debug information: whatever else
/// it names (a pipe, a device) is not touched.
fn read(file: &Path) -> Option<Vec<String>> {
    let facts = std::fs::metadata(file).ok()?;
    if !facts.is_file() || facts.len() > LARGEST_SOURCE {
        return None;
    }
    let text = std::fs::read(file).ok()?;
    Some(String::from_utf8_lossy(&text).lines().map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_from_files_only() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.c");
        std::fs::write(&file, b"int x;\nint \xff;\n").unwrap();
        let mut shelf = Shelf::new();
        let file = file.to_str().unwrap();
        assert_eq!(shelf.source_line(file, 1).as_deref(), Some("int x;"));
        assert_eq!(shelf.source_line(file, 2).as_deref(), Some("int \u{fffd};"));
        assert_eq!(shelf.source_line(file, 3), None);
        assert_eq!(shelf.source_line(file, 0), None);
        assert_eq!(shelf.source_line("/dev/zero", 1), None);
        assert_eq!(shelf.source_line("/none/such.c", 1), None);
    }
}

//! Other tools' reports: pairs of places from the output of ThreadSanitizer, Helgrind and DRD, as
//! candidates that Raddle can try to confirm.
//!
//! [`import`] reads a file and tells the formats apart by what is in it: ThreadSanitizer's text,
//! Valgrind's text (`==PID==` in front of each line) and Valgrind's XML (`--xml=yes`). Races only:
//! what else these tools report is passed over. DRD does not know the other access, so its
//! candidates have one side.

mod finding;
mod tsan;
mod valgrind_text;
mod valgrind_xml;

pub use finding::report;

use std::fmt;
use std::path::Path;

/// A race that another tool suspects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Who says so.
    pub tool: Tool,
    /// The access it stopped at.
    pub access: Side,
    /// The access it conflicts with, where the tool knows.
    pub other: Option<Side>,
    /// The global variable, where the tool knows.
    pub variable: Option<String>,
}

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// gcc's or clang's.
    ThreadSanitizer,
    /// Valgrind's.
    Helgrind,
    /// Valgrind's.
    Drd,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tool::ThreadSanitizer => "ThreadSanitizer",
            Tool::Helgrind => "Helgrind",
            Tool::Drd => "DRD",
        })
    }
}

/// One access.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Side {
    /// Does it write?
    pub writes: bool,
    /// Is it atomic?
    pub atomic: bool,
    /// Bytes, where the tool says.
    pub size: Option<u64>,
    /// The access, then its callers. Frames of the tool's own are left out.
    pub stack: Vec<Place>,
}

/// A place as the tool names it; what it does not say is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The function.
    pub function: Option<String>,
    /// Its source file: a path from ThreadSanitizer and from XML, a mere name from Valgrind's text.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
    /// The module: a path from XML, a mere name from ThreadSanitizer.
    pub module: Option<String>,
    /// Offset in the module, from ThreadSanitizer only: Valgrind tells addresses.
    pub offset: Option<u64>,
}

/// Why nothing can be imported.
#[derive(Debug)]
pub enum ImportError {
    /// The file cannot be read.
    Read(std::io::Error),
    /// It is XML, but not well formed.
    Xml(String),
    /// It is no report of a tool we know.
    Unknown,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Read(error) => error.fmt(f),
            ImportError::Xml(why) => write!(f, "damaged XML: {why}"),
            ImportError::Unknown => f.write_str(
                "neither a report of ThreadSanitizer nor of Helgrind or DRD (text or --xml=yes)",
            ),
        }
    }
}

impl std::error::Error for ImportError {}

/// Reads the races that another tool wrote to a file. The same pair of places is one candidate,
/// however often it was reported.
pub fn import(path: &Path) -> Result<Vec<Candidate>, ImportError> {
    let bytes = std::fs::read(path).map_err(ImportError::Read)?;
    parse(&String::from_utf8_lossy(&bytes))
}

/// The same from text.
pub fn parse(text: &str) -> Result<Vec<Candidate>, ImportError> {
    let start = text.trim_start();
    let candidates = if start.starts_with("<?xml") || start.starts_with("<valgrindoutput") {
        valgrind_xml::parse(text)?
    } else if text.lines().any(|line| line.contains("ThreadSanitizer")) {
        tsan::parse(text)
    } else if text.lines().any(valgrind_text::is_header) {
        valgrind_text::parse(text)
    } else {
        return Err(ImportError::Unknown);
    };
    let mut distinct: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if !distinct.iter().any(|known| known.is_same(&candidate)) {
            distinct.push(candidate);
        }
    }
    Ok(distinct)
}

impl Candidate {
    /// The same places, whichever came first?
    fn is_same(&self, other: &Candidate) -> bool {
        let key = |side: &Side| (side.writes, side.stack.first().cloned());
        let [a, b] = [self, other]
            .map(|candidate| [Some(key(&candidate.access)), candidate.other.as_ref().map(key)]);
        a == b || (a[0] == b[1] && a[1] == b[0])
    }
}

/// The number behind a word: `size 4`.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// What stands between two marks.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inside, _)| inside)
}

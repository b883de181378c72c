//! `corpus/known.toml`: the verdicts that are known to be wrong, each with its reason. A test that fails
//! for a known reason does not fail the suite; one that is listed and passes does, so the list is true.

use super::program::corpus;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    #[serde(default)]
    pub known: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The programs that are wrong for this reason.
    pub programs: Vec<String>,
    /// Ways to build them in which they are, as the table shows them (`O2 static`); all if not said.
    #[serde(default)]
    pub ways: Vec<String>,
    /// Wrong in some runs only: that it passes says nothing.
    #[serde(default)]
    pub sometimes: bool,
    pub reason: String,
}

impl Known {
    pub fn read() -> Known {
        let path = corpus().join("known.toml");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let known: Known =
            toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for entry in &known.known {
            assert!(
                !entry.reason.trim().is_empty(),
                "{}: {:?} has no reason",
                path.display(),
                entry.programs
            );
        }
        known
    }

    pub fn entry(&self, program: &str, way: &str) -> Option<&Entry> {
        self.known.iter().find(|entry| {
            entry.programs.iter().any(|p| p == program)
                && (entry.ways.is_empty() || entry.ways.iter().any(|w| w == way))
        })
    }
}

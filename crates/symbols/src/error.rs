//! What can go wrong with a binary or the facts cache, each with the file it happened to.
//!
//! Missing or broken *debug information* is never an error: names are then fewer, that is all.

use std::path::{Path, PathBuf};

/// Why a binary could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is no ELF file, or one of another machine.
    #[error("{path} is not an x86-64 Linux binary: {reason}")]
    Foreign { path: PathBuf, reason: &'static str },
    /// The file says it is ELF and contradicts itself.
    #[error("{path} is damaged: {what}: {source}")]
    Damaged { path: PathBuf, what: &'static str, source: object::read::Error },
    /// The facts could not be stored.
    #[error("cannot write the facts cache {path}: {source}")]
    Cache { path: PathBuf, source: std::io::Error },
}

impl SymbolError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| SymbolError::Read { path: path.to_owned(), source }
    }

    pub(crate) fn damaged<'a>(
        path: &'a Path,
        what: &'static str,
    ) -> impl FnOnce(object::read::Error) -> Self + 'a {
        move |source| SymbolError::Damaged { path: path.to_owned(), what, source }
    }

    pub(crate) fn cache(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| SymbolError::Cache { path: path.to_owned(), source }
    }
}

//! Hook files: which functions synchronise, allocate or touch memory, and how.
//!
//! Raddle knows a library by what its hook file says (thesis 4.4): adding a library is adding a
//! file, not code. This crate turns such files (TOML, described for people in `docs/hooks.md`) into
//! [`Hook`]s, checks them so that whoever uses a hook need not, and merges them into the one
//! table of an execution. A file that is wrong gets one sentence with its place: [`HookError`].

mod error;
mod expression;
mod file;
mod names;
mod roles;
mod set;

pub use error::HookError;
pub use file::parse;
pub use set::{HookSet, merge};

use raddle_model::Hook;

/// One hook file, parsed and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFile {
    /// What the library is called in reports.
    pub library: String,
    /// One line about it.
    pub about: String,
    /// File names of the modules whose inner accesses are the library's own business while one of
    /// its opaque functions runs.
    pub runtime: Vec<String>,
    /// File names of the modules whose accesses a detector never looks at: they synchronise by
    /// means of their own.
    pub private: Vec<String>,
    /// Names of the library's functions, by which its code is known in a program that it was linked into; it is as
    /// private there.
    pub linked: Vec<String>,
    /// What its functions mean, in the order of the file. No function has two meanings.
    pub hooks: Vec<Hook>,
}

/// The files that come with Raddle, weakest first: `name` and text.
const SHIPPED: &[(&str, &str)] = &[
    ("pthread.toml", include_str!("../files/pthread.toml")),
    ("c11.toml", include_str!("../files/c11.toml")),
    ("libc-memory.toml", include_str!("../files/libc-memory.toml")),
    ("allocators.toml", include_str!("../files/allocators.toml")),
    ("libc-strings.toml", include_str!("../files/libc-strings.toml")),
    ("libc-formats.toml", include_str!("../files/libc-formats.toml")),
    ("libc-services.toml", include_str!("../files/libc-services.toml")),
    ("cxx.toml", include_str!("../files/cxx.toml")),
    ("annotations.toml", include_str!("../files/annotations.toml")),
    ("openmp.toml", include_str!("../files/openmp.toml")),
    ("libitm.toml", include_str!("../files/libitm.toml")),
    ("rust.toml", include_str!("../files/rust.toml")),
    ("parking_lot.toml", include_str!("../files/parking_lot.toml")),
];

/// The hook files that come with Raddle.
pub fn shipped() -> Vec<HookFile> {
    SHIPPED
        .iter()
        .map(|(name, text)| {
            // The tests parse every one of them.
            parse(text, name).unwrap_or_else(|error| unreachable!("a shipped hook file: {error}"))
        })
        .collect()
}

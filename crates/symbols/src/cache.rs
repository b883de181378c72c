//! Module facts kept in a directory, one file for each build of a module and hook table.
//!
//! The file name says everything the facts depend on: the build-id (the content's hash, where there
//! is none) and length, the hooks, which debug information was at hand, and the version of the
//! format. So nothing is ever stale; what is no longer asked for may be deleted at any time. Files
//! appear whole, by renaming; one that is damaged all the same is made again.

use crate::debug_files::DebugSources;
use crate::elf::Layout;
use crate::error::SymbolError;
use crate::facts::{FactsRequest, is_runtime, module_facts_from};
use raddle_wire::facts::{FactsView, VERSION};
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bump when the same binary and hooks should give other facts than before.
const CONTENT_VERSION: u32 = 13;

/// The file in the directory `cache` with the facts of the module `path`, made if it is not there.
/// `digest` stands for everything in the request.
pub fn cached_facts(
    path: &Path,
    request: &FactsRequest,
    digest: u64,
    cache: &Path,
) -> Result<PathBuf, SymbolError> {
    cached_facts_from(path, request, digest, cache, &DebugSources::default())
}

/// The same, with debug information from these sources.
pub fn cached_facts_from(
    path: &Path,
    request: &FactsRequest,
    digest: u64,
    cache: &Path,
    sources: &DebugSources,
) -> Result<PathBuf, SymbolError> {
    let file = cache.join(file_name(path, request, digest, sources)?);
    if fs::read(&file).is_ok_and(|bytes| FactsView::new(&bytes).is_ok()) {
        return Ok(file);
    }
    let facts = module_facts_from(path, request, sources)?;
    fs::create_dir_all(cache).map_err(SymbolError::cache(cache))?;
    write_whole(&file, &facts.encode()).map_err(SymbolError::cache(&file))?;
    Ok(file)
}

fn file_name(
    path: &Path,
    request: &FactsRequest,
    digest: u64,
    sources: &DebugSources,
) -> Result<String, SymbolError> {
    let layout = Layout::read(path)?;
    let (identity, _) = identity(path, &layout, sources)?;
    let place = if is_runtime(path, layout.soname.as_deref(), request.runtime) { "-r" } else { "" };
    Ok(format!("{identity}-{digest:016x}{place}-{VERSION}.{CONTENT_VERSION}.facts"))
}

/// A build of a module and the debug information at hand, as part of a file name; and whether the
/// same will be at hand next time.
pub(crate) fn identity(
    path: &Path,
    layout: &Layout,
    sources: &DebugSources,
) -> Result<(String, bool), SymbolError> {
    let identity = match layout.build_id_text() {
        Some(build_id) => build_id,
        None => format!("content-{:016x}", content_hash(path)?),
    };
    // A stripped copy has the build-id of the original, and a debug file may come or go.
    let mut certain = true;
    let debug = if layout.has_debug_information() {
        "inside".to_owned()
    } else if let Some(file) = sources.local(path, layout) {
        format!("beside-{:x}", fs::metadata(&file).map_or(0, |found| found.len()))
    } else if sources.may_ask_debuginfod() {
        certain = false;
        "asked".to_owned()
    } else {
        "none".to_owned()
    };
    let symbols = if layout.has_symbol_table() { "named" } else { "stripped" };
    let length = layout.length;
    Ok((format!("{identity}-{length:x}-{symbols}-{debug}"), certain))
}

/// Another version of Rust may hash differently: then the facts are made once more.
fn content_hash(path: &Path) -> Result<u64, SymbolError> {
    let bytes = fs::read(path).map_err(SymbolError::read(path))?;
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(&bytes);
    Ok(hasher.finish())
}

pub(crate) fn write_whole(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = file.with_extension(format!("{}-{number}.new", std::process::id()));
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, file));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

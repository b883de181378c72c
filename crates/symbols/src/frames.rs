//! The functions at an address: from debug information with those inlined there, or else from the
//! symbol table.

use crate::binary::Binary;
use crate::demangle;
use crate::dwarf::{self, Sections, Shared};
use crate::elf::Image;
use crate::plt;
use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

/// One function at a place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The function, demangled: `Counter::bump(int)`.
    pub function: Option<String>,
    /// The source file, as the compiler knew it.
    pub file: Option<PathBuf>,
    /// The line, from one.
    pub line: Option<u32>,
    /// The column, from one.
    pub column: Option<u32>,
    /// This function's code stands inside the next frame's function.
    pub inlined: bool,
}

/// Line and function tables of one module, filled in unit by unit as they are needed.
pub(crate) struct Lines {
    context: addr2line::Context<Shared>,
    packages: Vec<PathBuf>,
    /// Those of them that are there, opened when a unit is found to be split.
    opened: OnceCell<Vec<gimli::DwarfPackage<Shared>>>,
}

impl Lines {
    pub fn new(sections: &Sections, packages: &[PathBuf]) -> Option<Lines> {
        let context = addr2line::Context::from_dwarf(sections.share()).ok()?;
        Some(Lines { context, packages: packages.to_vec(), opened: OnceCell::new() })
    }

    fn frames(&self, address: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        let mut looked_up = self.context.find_frames(address);
        let frames = loop {
            match looked_up {
                LookupResult::Output(frames) => break frames,
                LookupResult::Load { load, continuation } => {
                    looked_up = continuation.resume(self.split_half_of(&load));
                }
            }
        };
        let Ok(mut frames) = frames else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let location = frame.location.as_ref();
            found.push(Frame {
                function: name.map(|name| demangle::display(&name)),
                file: location.and_then(|l| l.file).map(PathBuf::from),
                line: location.and_then(|l| l.line).filter(|line| *line != 0),
                column: location.and_then(|l| l.column).filter(|column| *column != 0),
                inlined: true,
            });
        }
        if let Some(outermost) = found.last_mut() {
            outermost.inlined = false;
        }
        found
    }

    /// The other half of a unit with split debug information: from a package beside the module, or
    /// from where the compiler put it.
    fn split_half_of(&self, load: &SplitDwarfLoad<Shared>) -> Option<Arc<gimli::Dwarf<Shared>>> {
        let open = |path: &PathBuf| dwarf::package(&Image::open(path).ok()?);
        let packages = self.opened.get_or_init(|| self.packages.iter().filter_map(open).collect());
        let find = |package: &gimli::DwarfPackage<Shared>| {
            package.find_cu(load.dwo_id, &load.parent).ok().flatten()
        };
        packages.iter().find_map(find).map(Arc::new).or_else(|| compiled_half_of(load))
    }
}

fn compiled_half_of(load: &SplitDwarfLoad<Shared>) -> Option<Arc<gimli::Dwarf<Shared>>> {
    let text = |part: &Shared| String::from_utf8_lossy(part.bytes()).into_owned();
    let mut path = load.comp_dir.as_ref().map(text).map(PathBuf::from).unwrap_or_default();
    path.push(load.path.as_ref().map(text)?);
    let image = Image::open(&path).ok()?;
    Some(Arc::new(dwarf::split_half(&image, &load.parent)))
}

/// The frames at an address, innermost first, at least one.
pub(crate) fn frames(binary: &Binary, lines: Option<&Lines>, address: u64) -> Vec<Frame> {
    let mut frames = lines.map(|lines| lines.frames(address)).unwrap_or_default();
    if frames.is_empty() {
        frames.push(Frame::default());
    }
    if let Some(outermost) = frames.last_mut() {
        outermost.function = match outermost.function.take() {
            Some(name) => Some(exported_name(binary, address, name)),
            // Assembly has lines and no functions; a file without debug information has neither.
            None => from_symbols(binary, address),
        };
    }
    frames
}

/// A C library calls its function `___pthread_mutex_lock` in its source and `pthread_mutex_lock` to
/// the world: of the names of one address the one people use.
fn exported_name(binary: &Binary, address: u64, name: String) -> String {
    if !name.starts_with('_') {
        return name;
    }
    let symbol = binary.symbols.code_at(address, &binary.image.layout);
    let names = symbol.map(|symbol| binary.symbols.named_at(symbol.address)).unwrap_or_default();
    match names.first() {
        Some(best) if names.iter().any(|symbol| *symbol.name == *name) => {
            demangle::display(&best.name)
        }
        _ => name,
    }
}

fn from_symbols(binary: &Binary, address: u64) -> Option<String> {
    let symbol = || binary.symbols.code_at(address, &binary.image.layout);
    plt::stub_name(binary, address).or_else(|| Some(demangle::display(&symbol()?.name)))
}

//! The symboliser: modules are opened when first asked about and kept.
//!
//! A module that cannot be read (deleted, the kernel's vdso) simply has no names.

use crate::binary::Binary;
use crate::debug_files::DebugSources;
use crate::elf::Layout;
use crate::frames::{self, Frame, Lines};
use crate::kept_names::KeptNames;
use crate::memory_uses::{self, MemoryUse};
use crate::places;
use crate::variables::{self, Variable, VariableIndex};
use object::Object;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How a symboliser works.
#[derive(Debug, Clone, Default)]
pub struct SymboliserOptions {
    /// Where debug information may come from.
    pub sources: DebugSources,
    /// Where names are kept between runs, if they are.
    pub cache: Option<PathBuf>,
}

/// Gives places their names.
#[derive(Default)]
pub struct Symboliser {
    options: SymboliserOptions,
    modules: HashMap<PathBuf, Option<Module>>,
    kept: HashMap<PathBuf, Option<KeptNames>>,
}

struct Module {
    binary: Binary,
    lines: OnceCell<Option<Lines>>,
    variables: OnceCell<VariableIndex>,
    thread_locals: OnceCell<VariableIndex>,
}

impl Symboliser {
    pub fn new(options: SymboliserOptions) -> Self {
        Symboliser { options, ..Symboliser::default() }
    }

    /// The functions at an offset, the innermost inlined one first. There is always one frame,
    /// though it may know nothing. For a return address ask for the byte before it, which belongs
    /// to the call.
    pub fn frames(&mut self, path: &Path, offset: u64) -> Vec<Frame> {
        if let Some(kept) = self.kept(path)
            && let Some(frames) = kept.get(offset)
        {
            return frames.clone();
        }
        let frames = self.read_frames(path, offset);
        if let Some(kept) = self.kept(path) {
            kept.put(offset, &frames);
        }
        frames
    }

    fn kept(&mut self, path: &Path) -> Option<&mut KeptNames> {
        let cache = self.options.cache.as_ref()?;
        if !self.kept.contains_key(path) {
            let opened = KeptNames::open(path, &self.options.sources, cache);
            self.kept.insert(path.to_owned(), opened);
        }
        self.kept.get_mut(path)?.as_mut()
    }

    fn read_frames(&mut self, path: &Path, offset: u64) -> Vec<Frame> {
        let Some(module) = self.module(path) else { return vec![Frame::default()] };
        let binary = &module.binary;
        let read = || Lines::new(binary.dwarf.as_ref()?, &binary.packages);
        let lines = module.lines.get_or_init(read);
        frames::frames(&module.binary, lines.as_ref(), module.binary.address(offset))
    }

    /// The global or static variable at an offset.
    pub fn variable(&mut self, path: &Path, offset: u64) -> Option<Variable> {
        let module = self.module(path)?;
        let binary = &module.binary;
        let index = module.variables.get_or_init(|| VariableIndex::new(binary));
        let address = binary.address(offset);
        index.find(binary, address).or_else(|| variables::from_symbols(binary, address))
    }

    /// The thread-local variable of a program so many bytes below a thread's pointer.
    pub fn thread_local(&mut self, path: &Path, below: u64) -> Option<Variable> {
        let module = self.module(path)?;
        let binary = &module.binary;
        let segment = binary.image.layout.thread_locals?;
        let offset = segment.below.checked_sub(below).filter(|offset| *offset < segment.size)?;
        let index = module.thread_locals.get_or_init(|| VariableIndex::thread_local(binary));
        let found = index.find(binary, offset);
        let found = found.or_else(|| variables::thread_local_symbol(binary, offset))?;
        Some(variables::without_macro(found))
    }

    /// The code a person means by a pattern, as offsets from start to end, sorted: functions by
    /// name (with `*`, with or without leading `path::`), inlined instances included, or a line
    /// (`queue.c:123`).
    pub fn function_ranges(&mut self, path: &Path, pattern: &str) -> Vec<(u64, u64)> {
        let Some(module) = self.module(path) else { return Vec::new() };
        let binary = &module.binary;
        let found = places::find(binary, pattern);
        found.iter().map(|r| (binary.offset(r.start), binary.offset(r.end))).collect()
    }

    /// What the instructions from one offset to another do with memory.
    pub fn memory_uses(&mut self, path: &Path, code: (u64, u64)) -> Vec<MemoryUse> {
        self.module(path).map(|module| memory_uses::find(&module.binary, code)).unwrap_or_default()
    }

    /// Where the program begins, as an offset: its own code, before `main`.
    pub fn entry(&mut self, path: &Path) -> Option<u64> {
        let binary = &self.module(path)?.binary;
        Some(binary.offset(binary.image.file().ok()?.entry()))
    }

    /// The module's build-id, in hexadecimal. Of a module that nothing else was asked of, its headers are read only.
    pub fn build_id(&mut self, path: &Path) -> Option<String> {
        match self.modules.get(path) {
            Some(opened) => opened.as_ref()?.binary.image.layout.build_id_text(),
            None => Layout::read(path).ok()?.build_id_text(),
        }
    }

    /// Does the module have names beyond its exports?
    pub fn has_symbols(&mut self, path: &Path) -> bool {
        self.module(path).is_some_and(|module| module.binary.has_symbols)
    }

    fn module(&mut self, path: &Path) -> Option<&Module> {
        if !self.modules.contains_key(path) {
            let opened = Binary::open(path, &self.options.sources).ok();
            let module = opened.map(|binary| Module {
                binary,
                lines: OnceCell::new(),
                variables: OnceCell::new(),
                thread_locals: OnceCell::new(),
            });
            self.modules.insert(path.to_owned(), module);
        }
        self.modules.get(path)?.as_ref()
    }
}

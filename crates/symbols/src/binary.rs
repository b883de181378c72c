//! A module as the rest of this crate sees it: its file, its debug file, its symbols, its DWARF.

use crate::debug_files::DebugSources;
use crate::dwarf::Sections;
use crate::elf::Image;
use crate::error::SymbolError;
use crate::mini_debug_info;
use crate::symtab::SymbolTable;
use std::path::{Path, PathBuf};

pub(crate) struct Binary {
    pub image: Image,
    pub symbols: SymbolTable,
    /// Debug information, wherever it was found.
    pub dwarf: Option<Sections>,
    /// Where split debug information may have been packed.
    pub packages: Vec<PathBuf>,
    /// Is there a symbol table or debug information beyond the exports?
    pub has_symbols: bool,
}

impl Binary {
    pub fn open(path: &Path, sources: &DebugSources) -> Result<Binary, SymbolError> {
        let image = Image::open(path)?;
        let inside = image.layout.has_debug_information();
        let separate = if inside { None } else { sources.find(path, &image.layout) };
        let separate = separate.or_else(|| mini_debug_info::unpack(&image));
        let symbols = SymbolTable::read(&image, separate.as_ref())?;
        let holder = separate.as_ref().unwrap_or(&image);
        let has_symbols = [Some(&image), separate.as_ref()]
            .into_iter()
            .flatten()
            .any(|file| file.layout.has_debug_information() || file.layout.has_symbol_table());
        let dwarf = holder
            .layout
            .has_debug_information()
            .then(|| Sections::load(holder, sources.find_alternative(holder).as_ref()));
        let packages = packages(&image, separate.as_ref());
        Ok(Binary { image, symbols, dwarf, packages, has_symbols })
    }

    /// The address of an offset from where the module is loaded.
    pub fn address(&self, offset: u64) -> u64 {
        offset.wrapping_add(self.image.layout.base)
    }

    /// The offset of an address.
    pub fn offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.image.layout.base)
    }
}

/// The names that packages of split debug information go by: the file's, links resolved or not, or
/// its debug file's, with another ending.
fn packages(image: &Image, separate: Option<&Image>) -> Vec<PathBuf> {
    let with_ending = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push(".dwp");
        PathBuf::from(name)
    };
    let mut found = vec![with_ending(&image.path)];
    found.extend(image.path.canonicalize().ok().map(|path| with_ending(&path)));
    if let Some(separate) = separate {
        found.push(with_ending(&separate.path));
        found.push(separate.path.with_extension("dwp"));
    }
    found
}

//! A module as the rest of this crate sees it: its file, its debug file, its symbols, its DWARF.

use crate::debug_files::DebugSources;
use crate::dwarf::Sections;
use crate::elf::Image;
use crate::error::SymbolError;
use crate::mini_debug_info;
use crate::symtab::SymbolTable;
use std::path::Path;

pub(crate) struct Binary {
    pub image: Image,
    pub symbols: SymbolTable,
    /// Debug information, wherever it was found.
    pub dwarf: Option<Sections>,
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
        Ok(Binary { image, symbols, dwarf, has_symbols })
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

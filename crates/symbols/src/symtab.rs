//! Names from symbol tables: `.symtab` of the file or its debug file, and `.dynsym`.
//!
//! The table is kept sorted by address, so that the function or variable around an address is one
//! binary search; among several names of one address the one a person would use comes first.

use crate::elf::{Image, Layout};
use crate::error::SymbolError;
use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, Sym};
use std::ops::Range;

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolKind {
    Function,
    /// A function that chooses the implementation when the module is loaded.
    Resolver,
    Data,
    /// Assembly labels and the like.
    Unknown,
}

/// One defined symbol.
#[derive(Debug, Clone)]
pub(crate) struct Symbol {
    pub address: u64,
    pub size: u64,
    pub kind: SymbolKind,
    /// The linker's name, without its version.
    pub name: Box<str>,
    /// How likely a person would use this of several names: the smaller the likelier.
    rank: u8,
}

/// All defined symbols of a module, by address.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolTable {
    symbols: Vec<Symbol>,
}

impl SymbolTable {
    /// The symbols of a module and of its debug file.
    pub fn read(image: &Image, debug: Option<&Image>) -> Result<SymbolTable, SymbolError> {
        let mut symbols = Vec::new();
        let file = image.file()?;
        collect(&mut symbols, &file, file.elf_symbol_table(), &image.layout);
        collect(&mut symbols, &file, file.elf_dynamic_symbol_table(), &image.layout);
        if let Some(file) = debug.and_then(|debug| debug.file().ok()) {
            collect(&mut symbols, &file, file.elf_symbol_table(), &image.layout);
        }
        symbols.sort_by(|a, b| {
            (a.address, a.rank, a.name.len(), &a.name).cmp(&(
                b.address,
                b.rank,
                b.name.len(),
                &b.name,
            ))
        });
        symbols.dedup_by(|a, b| a.address == b.address && a.name == b.name && a.kind == b.kind);
        Ok(SymbolTable { symbols })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter()
    }

    /// The function (or assembly label) whose code is at this address.
    pub fn code_at(&self, address: u64, layout: &Layout) -> Option<&Symbol> {
        if !layout.is_code(address) {
            return None;
        }
        self.around(address, |kind| kind != SymbolKind::Data)
    }

    /// The variable at this address.
    pub fn data_at(&self, address: u64) -> Option<&Symbol> {
        let symbol = self.around(address, |kind| kind == SymbolKind::Data)?;
        (symbol.size > 0).then_some(symbol)
    }

    /// All names of exactly this address.
    pub fn named_at(&self, address: u64) -> &[Symbol] {
        let start = self.symbols.partition_point(|s| s.address < address);
        let length = self.symbols[start..].partition_point(|s| s.address == address);
        &self.symbols[start..start + length]
    }

    /// The nearest symbol before the address that reaches it; one without a size reaches up to the
    /// next symbol.
    fn around(&self, address: u64, wanted: impl Fn(SymbolKind) -> bool) -> Option<&Symbol> {
        /// Symbols that end before the address are passed over, but not without limit: inside a
        /// large gap there is nothing to find.
        const TRIES: usize = 64;
        let mut before = self.symbols.partition_point(|s| s.address <= address);
        let mut nearest = true;
        for _ in 0..TRIES {
            let last = self.symbols[..before].last()?;
            let group = self.named_at(last.address);
            let mut candidates = group.iter().filter(|s| wanted(s.kind));
            if let Some(symbol) = candidates.find(|s| {
                s.range().contains(&address) || s.size == 0 && (nearest || s.address == address)
            }) {
                return Some(symbol);
            }
            nearest &= !group.iter().any(|s| wanted(s.kind));
            before -= group.len();
        }
        None
    }
}

impl Symbol {
    pub fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }
}

type Table<'data> = object::read::elf::SymbolTable<'data, elf::FileHeader64<LE>>;

fn collect(into: &mut Vec<Symbol>, file: &ElfFile64<'_, LE>, table: &Table<'_>, layout: &Layout) {
    into.reserve(table.len());
    for symbol in table.iter() {
        if symbol.st_shndx(LE) == elf::SHN_UNDEF {
            continue;
        }
        let Ok(name) = table.symbol_name(file.endian(), symbol) else { continue };
        let address = symbol.st_value(LE);
        let kind = match symbol.st_type() {
            elf::STT_FUNC => SymbolKind::Function,
            elf::STT_GNU_IFUNC => SymbolKind::Resolver,
            elf::STT_OBJECT => SymbolKind::Data,
            elf::STT_NOTYPE if layout.is_code(address) => SymbolKind::Unknown,
            _ => continue,
        };
        let name = String::from_utf8_lossy(name);
        let name = name.split_once('@').map_or(&*name, |(name, _version)| name);
        if name.is_empty() || matches!(kind, SymbolKind::Unknown) && name.starts_with(['.', '$']) {
            continue;
        }
        into.push(Symbol {
            address,
            size: symbol.st_size(LE),
            kind,
            rank: rank(symbol.st_bind(), kind, name),
            name: name.into(),
        });
    }
}

fn rank(binding: elf::SymbolBind, kind: SymbolKind, name: &str) -> u8 {
    let binding = match binding {
        elf::STB_GLOBAL => 0,
        elf::STB_WEAK => 1,
        _ => 2,
    };
    let underscores = name.bytes().take_while(|&b| b == b'_').count().min(3) as u8;
    let mangled = name.starts_with("_Z") || name.starts_with("_R");
    let unknown = u8::from(kind == SymbolKind::Unknown);
    unknown * 16 + if mangled { 0 } else { underscores * 4 } + binding
}

//! Which global or static variable an address belongs to, down to the array element and member.
//!
//! The index of a module's variables is made once; names, types and declarations are read for the
//! variables that are asked for. Without debug information the symbol table still knows most
//! variables by name and size.

use crate::binary::Binary;
use crate::demangle;
use crate::dwarf::{Die, Entry, Unit, View};
use crate::type_names::{scope_prefix, type_name};
use crate::types::Types;
use object::{Object, ObjectSymbol, SymbolKind};
use std::path::PathBuf;

/// A variable, or the part of it, that an address belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The whole path: `table[3].next`, `ns::config`, `buffer+0x10`.
    pub name: String,
    /// The variable alone: `table`.
    pub root: String,
    /// The variable's declared type: `struct node[10]`.
    pub type_name: Option<String>,
    /// Offset of the variable in its module.
    pub offset: u64,
    /// Bytes from the variable's start to what was asked for.
    pub within: u64,
    /// Bytes the variable takes.
    pub size: u64,
    /// Where it is declared.
    pub file: Option<PathBuf>,
    /// The line there.
    pub line: Option<u32>,
}

/// The variables of one module with debug information, by address.
#[derive(Debug, Default)]
pub(crate) struct VariableIndex {
    variables: Vec<(u64, Die)>,
}

impl VariableIndex {
    pub fn new(binary: &Binary) -> Self {
        let mut index = Self::read(binary, |unit| unit.variables());
        index.variables.retain(|(address, _)| binary.image.layout.is_data(*address));
        index
    }

    /// Those that each thread has its own instance of, by their offsets in the instance.
    pub fn thread_local(binary: &Binary) -> Self {
        Self::read(binary, |unit| unit.thread_locals())
    }

    fn read(binary: &Binary, of_unit: impl Fn(&Unit<'_>) -> Vec<(u64, Die)>) -> Self {
        let Some(sections) = &binary.dwarf else { return VariableIndex::default() };
        let dwarf = sections.borrow();
        let mut variables = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            variables.extend(Unit::new(&dwarf, header, false).iter().flat_map(&of_unit));
        }
        variables.sort_unstable();
        VariableIndex { variables }
    }

    /// The variable around an address.
    pub fn find(&self, binary: &Binary, address: u64) -> Option<Variable> {
        let dwarf = binary.dwarf.as_ref()?.borrow();
        let view = View::new(&dwarf);
        // Several entries may share an address (one for each unit that saw the definition), and
        // the nearest may end before ours while one before it does not.
        const TRIES: usize = 16;
        let before = self.variables.partition_point(|(start, _)| *start <= address);
        let candidates = self.variables[..before].iter().rev().take(TRIES);
        candidates.filter_map(|(start, die)| describe(binary, &view, *start, *die, address)).next()
    }
}

/// The variable of the symbol table around an address.
pub(crate) fn from_symbols(binary: &Binary, address: u64) -> Option<Variable> {
    let symbol = binary.symbols.data_at(address)?;
    let root = demangle::display(&symbol.name);
    let within = address - symbol.address;
    Some(Variable {
        name: format!("{root}{}", distance(within)),
        root,
        type_name: None,
        offset: binary.offset(symbol.address),
        within,
        size: symbol.size,
        file: None,
        line: None,
    })
}

/// The thread-local variable of the symbol table around an offset.
pub(crate) fn thread_local_symbol(binary: &Binary, offset: u64) -> Option<Variable> {
    let file = binary.image.file().ok()?;
    let mut symbols = file.symbols().chain(file.dynamic_symbols());
    let symbol = symbols.find(|symbol| {
        let end = symbol.address().saturating_add(symbol.size());
        symbol.kind() == SymbolKind::Tls && (symbol.address()..end).contains(&offset)
    })?;
    let root = demangle::display(symbol.name().ok()?);
    let within = offset - symbol.address();
    Some(Variable {
        name: format!("{root}{}", distance(within)),
        root,
        type_name: None,
        offset: symbol.address(),
        within,
        size: symbol.size(),
        file: None,
        line: None,
    })
}

/// Rust's `thread_local!` wraps the variable that a person named into two scopes, with a name of its
/// own inside.
pub(crate) fn without_macro(variable: Variable) -> Variable {
    let Some((named, _)) = variable.root.split_once("::{{constant}}::{{closure}}::") else {
        return variable;
    };
    let part = variable.name.strip_prefix(&variable.root).unwrap_or_default();
    Variable { name: format!("{named}{part}"), root: named.to_owned(), ..variable }
}

fn describe<'d>(
    binary: &Binary,
    view: &View<'d>,
    start: u64,
    die: Die,
    address: u64,
) -> Option<Variable> {
    let types = Types::new(view);
    let entry = view.variable_type(die);
    let within = address - start;
    // An array of unknown length has its size in the symbol table.
    let from_symbol = || {
        let named = binary.symbols.named_at(start).iter();
        named.map(|symbol| symbol.size).max()
    };
    let size = entry.as_ref().and_then(|entry| types.size(entry)).or_else(from_symbol)?;
    if within >= size {
        return None;
    }
    let chain = view.declarations(die);
    let root = name(view, &chain)?;
    let type_name = entry.as_ref().map(|entry| type_name(view, Some(entry)));
    let inside = entry.map(|entry| types.inside(entry, within)).unwrap_or_default();
    let declared = chain.iter().find(|entry| entry.has(gimli::DW_AT_decl_line));
    let line = declared.and_then(|entry| entry.number(gimli::DW_AT_decl_line));
    let file = declared.and_then(|entry| entry.unit.file(entry.number(gimli::DW_AT_decl_file)?));
    Some(Variable {
        name: format!("{root}{}{}", inside.path, distance(inside.rest)),
        root,
        type_name,
        offset: binary.offset(start),
        within,
        size,
        file,
        line: line.and_then(|line| u32::try_from(line).ok()),
    })
}

fn name<'d>(view: &View<'d>, chain: &[Entry<'d>]) -> Option<String> {
    let linker_name = chain.iter().find_map(|entry| entry.text(gimli::DW_AT_linkage_name));
    // `_ZZ` begins what is local to a function; its own name is enough, the line says the rest.
    if let Some(linker_name) = linker_name.filter(|name| !name.starts_with("_ZZ"))
        && demangle::path(&linker_name).is_some()
    {
        return Some(demangle::display(&linker_name));
    }
    let named = chain.iter().find(|entry| entry.name().is_some())?;
    Some(format!("{}{}", scope_prefix(view, named), named.name()?))
}

fn distance(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!("+{bytes:#x}") }
}

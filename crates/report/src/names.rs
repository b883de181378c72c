//! How places and addresses are called.

use crate::hex::Hex;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// What the symbols of modules tell. The command implements it over its symboliser; tests with a
/// table.
pub trait Symbols {
    /// The functions at an offset of a module, the innermost inlined one first; empty when
    /// nothing is known.
    fn frames(&mut self, module: &str, offset: u64) -> Vec<Frame>;

    /// The variable at an offset of a module, with the element or field: `table[3].next`.
    fn variable(&mut self, module: &str, offset: u64) -> Option<String>;
}

/// One function at a place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Frame {
    /// Its name, demangled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// It has no frame of its own: the compiler put it into the next one.
    pub inlined: bool,
}

/// What stands in a stack for calls of a recursion that were left out, in a function's place.
pub(crate) const RECURSION: &str = "[recursion: calls left out]";

/// A place with its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceName {
    /// The module's path; absent for code that belongs to no file.
    pub module: Option<Rc<str>>,
    /// Offset in the module, or the absolute address.
    pub offset: u64,
    /// The functions there, innermost first.
    pub frames: Vec<Frame>,
}

impl PlaceName {
    /// Calls of a recursion that were left out.
    pub(crate) fn recursion() -> PlaceName {
        let frame = Frame { function: Some(RECURSION.to_owned()), ..Frame::default() };
        PlaceName { module: None, offset: 0, frames: vec![frame] }
    }

    /// For people: `bank.c:31 in withdraw`, or as much of it as is known. Paths below `base` are
    /// shown relative to it.
    pub fn text(&self, base: &Path) -> String {
        let Some(inner) = self.frames.first() else {
            return self.bare();
        };
        let mut text = self.frame(inner, base);
        if let Some(outer) = self.frames.last().filter(|_| inner.inlined) {
            text += &format!(" (inlined: {})", self.frame(outer, base));
        }
        text
    }

    /// Likewise, without the function: for use inside other names.
    pub(crate) fn line(&self, base: &Path) -> String {
        let line = self.frames.first().and_then(|f| source(f.file.as_deref(), f.line, base));
        line.unwrap_or_else(|| match self.frames.first().and_then(|f| f.function.as_deref()) {
            Some(function) => function.to_owned(),
            None => self.bare(),
        })
    }

    /// The place as entries of a call stack, inlined functions being entries of their own.
    pub(crate) fn stack_frames(&self) -> impl Iterator<Item = StackFrame<'_>> {
        let none = self.frames.is_empty().then_some(&NO_FRAME);
        self.frames.iter().chain(none).map(|frame| StackFrame {
            module: self.module.as_deref(),
            offset: Hex(self.offset),
            frame,
        })
    }

    fn frame(&self, frame: &Frame, base: &Path) -> String {
        match (source(frame.file.as_deref(), frame.line, base), &frame.function) {
            (Some(source), Some(function)) => format!("{source} in {function}"),
            (Some(source), None) => source,
            (None, Some(function)) => format!("{function} ({})", self.bare()),
            (None, None) => self.bare(),
        }
    }

    fn bare(&self) -> String {
        match &self.module {
            // Not an instruction's doing: a thread's start, the process's end.
            None if self.offset == 0 => String::new(),
            Some(path) => format!("{}+{:#x}", file_name(path), self.offset),
            None => format!("{:#x}", self.offset),
        }
    }
}

impl Serialize for PlaceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(module) = &self.module {
            map.serialize_entry("module", &**module)?;
        }
        map.serialize_entry("offset", &Hex(self.offset))?;
        if let Some((inner, outer)) = self.frames.split_first() {
            if let Some(function) = &inner.function {
                map.serialize_entry("function", function)?;
            }
            if let Some(file) = &inner.file {
                map.serialize_entry("file", file)?;
            }
            if let Some(line) = inner.line {
                map.serialize_entry("line", &line)?;
            }
            if let Some(column) = inner.column {
                map.serialize_entry("column", &column)?;
            }
            map.serialize_entry("inlined", &inner.inlined)?;
            if !outer.is_empty() {
                map.serialize_entry("inlined_in", outer)?;
            }
        }
        map.end()
    }
}

/// One entry of a call stack in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct StackFrame<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    offset: Hex,
    #[serde(flatten)]
    frame: &'a Frame,
}

static NO_FRAME: Frame =
    Frame { function: None, file: None, line: None, column: None, inlined: false };

/// What lies at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressName {
    /// A global or static variable.
    Variable {
        /// With element or field.
        name: Rc<str>,
        /// Where it lives.
        module: Rc<str>,
    },
    /// Memory of a module that has no name.
    Module {
        /// The module's path.
        module: Rc<str>,
        /// Bytes from its load address.
        offset: u64,
    },
    /// A block of allocated memory.
    Block {
        /// Its first byte.
        start: u64,
        /// Its size as asked for.
        size: u64,
        /// Bytes from its start.
        offset: u64,
        /// Where it was allocated.
        allocated_at: Rc<PlaceName>,
    },
    /// Nothing is known: a stack, or memory older than our watch.
    Unknown,
}

impl AddressName {
    /// For people; `address` is shown when there is no better name.
    pub fn text(&self, address: u64, base: &Path) -> String {
        match self {
            AddressName::Variable { name, .. } => name.to_string(),
            AddressName::Module { module, offset } => {
                format!("{}+{offset:#x}", file_name(module))
            }
            AddressName::Block { size, offset, allocated_at, .. } => {
                // What the kernel or the engine made was made nowhere in the program.
                let line = allocated_at.line(base);
                let from = if line.is_empty() { String::new() } else { format!(" from {line}") };
                let bytes = if *size == 1 { "byte" } else { "bytes" };
                let block = format!("block of {size} {bytes}{from}");
                match offset {
                    0 => block,
                    offset => format!("{block}, byte {offset}"),
                }
            }
            AddressName::Unknown => format!("{address:#x}"),
        }
    }
}

impl Serialize for AddressName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            AddressName::Variable { name, module } => {
                map.serialize_entry("kind", "variable")?;
                map.serialize_entry("name", &**name)?;
                map.serialize_entry("module", &**module)?;
            }
            AddressName::Module { module, offset } => {
                map.serialize_entry("kind", "module")?;
                map.serialize_entry("module", &**module)?;
                map.serialize_entry("offset", &Hex(*offset))?;
            }
            AddressName::Block { start, size, offset, allocated_at } => {
                map.serialize_entry("kind", "block")?;
                map.serialize_entry("start", &Hex(*start))?;
                map.serialize_entry("size", size)?;
                map.serialize_entry("offset", &Hex(*offset))?;
                map.serialize_entry("allocated_at", &**allocated_at)?;
            }
            AddressName::Unknown => map.serialize_entry("kind", "unknown")?,
        }
        map.end()
    }
}

/// `bank.c:31`, as seen from `base`.
pub(crate) fn source(file: Option<&str>, line: Option<u32>, base: &Path) -> Option<String> {
    let file = seen_from(&tidy(Path::new(file?)), base);
    let file = file.display();
    Some(match line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_string(),
    })
}

/// Directories that one goes up to see a file: from `project/build/tests` to `project`.
const FARTHEST_UP: usize = 2;

/// A path relative to `base` where it lies below, or beside it in the same project: in a directory that is neither the
/// root of everything nor of all users.
fn seen_from(path: &Path, base: &Path) -> PathBuf {
    for (up, directory) in base.ancestors().take(FARTHEST_UP + 1).enumerate() {
        let is_project = directory.components().count() > 2;
        let Ok(below) = path.strip_prefix(directory) else { continue };
        // Caches of package managers, say.
        let is_hidden = below.to_string_lossy().starts_with('.');
        if up == 0 || is_project && !is_hidden {
            let up = std::iter::repeat_n(Path::new(".."), up);
            return up.chain([below]).collect();
        }
    }
    path.to_owned()
}

/// A path as a person would write it: `./elf/../misc/x.c` is `misc/x.c`. (By its text: the file is
/// on the machine that compiled it.)
pub(crate) fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        let last = tidied.components().next_back();
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(last, Some(Component::Normal(_))) => {
                tidied.pop();
            }
            other => tidied.push(other),
        }
    }
    tidied
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// The first few of many names, for one line.
pub fn first_few(names: &[impl AsRef<str>]) -> String {
    const FEW: usize = 4;
    let (shown, left) = names.split_at(if names.len() <= FEW + 1 { names.len() } else { FEW });
    let mut text = shown.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if !left.is_empty() {
        text += &format!(" and {} more", left.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, line: u32, inlined: bool) -> Frame {
        Frame {
            function: (!function.is_empty()).then(|| function.to_owned()),
            file: (!file.is_empty()).then(|| file.to_owned()),
            line: (line > 0).then_some(line),
            column: None,
            inlined,
        }
    }

    fn text(frames: &[Frame]) -> String {
        let place =
            PlaceName { module: Some("/w/bank".into()), offset: 0x1136, frames: frames.to_vec() };
        place.text(Path::new("/w"))
    }

    #[test]
    fn a_place_is_called_by_what_is_known() {
        assert_eq!(text(&[frame("withdraw", "/w/bank.c", 31, false)]), "bank.c:31 in withdraw");
        assert_eq!(text(&[frame("withdraw", "/v/bank.c", 31, false)]), "/v/bank.c:31 in withdraw");
        assert_eq!(text(&[frame("f", "./elf/../a/./b.c", 1, false)]), "a/b.c:1 in f");
        assert_eq!(text(&[frame("f", "../../b.c", 1, false)]), "../../b.c:1 in f");
        assert_eq!(text(&[frame("withdraw", "", 0, false)]), "withdraw (bank+0x1136)");
        assert_eq!(text(&[frame("", "", 0, false)]), "bank+0x1136");
        assert_eq!(text(&[]), "bank+0x1136");
        let inlined =
            [frame("load", "/usr/include/atomic.h", 9, true), frame("main", "/w/a.cc", 5, false)];
        assert_eq!(text(&inlined), "/usr/include/atomic.h:9 in load (inlined: a.cc:5 in main)");
        let jit = PlaceName { module: None, offset: 0x7f00, frames: Vec::new() };
        assert_eq!(jit.text(Path::new("/")), "0x7f00");
        let nowhere = PlaceName { module: None, offset: 0, frames: Vec::new() };
        assert_eq!(nowhere.text(Path::new("/")), "");
    }

    #[test]
    fn paths_are_as_seen_from_where_one_is() {
        let seen = |path: &str, base: &str| {
            seen_from(Path::new(path), Path::new(base)).display().to_string()
        };
        assert_eq!(seen("/home/me/bank/src/a.c", "/home/me/bank"), "src/a.c");
        assert_eq!(seen("/home/me/bank/src/a.c", "/home/me/bank/build"), "../src/a.c");
        assert_eq!(seen("/home/me/bank/a.c", "/home/me/bank/build/debug"), "../../a.c");
        assert_eq!(seen("/home/me/.cargo/x.rs", "/home/me/bank"), "/home/me/.cargo/x.rs");
        assert_eq!(seen("/usr/include/x.h", "/usr/src"), "/usr/include/x.h");
        assert_eq!(seen("nptl/x.c", "/home/me"), "nptl/x.c");
    }

    #[test]
    fn a_block_is_called_by_its_allocation() {
        let allocated_at = Rc::new(PlaceName {
            module: Some("/w/bank".into()),
            offset: 1,
            frames: vec![frame("main", "/w/bank.c", 20, false)],
        });
        let block = |offset| AddressName::Block {
            start: 0x1000,
            size: 64,
            offset,
            allocated_at: allocated_at.clone(),
        };
        let base = Path::new("/w");
        assert_eq!(block(0).text(0x1000, base), "block of 64 bytes from bank.c:20");
        assert_eq!(block(8).text(0x1008, base), "block of 64 bytes from bank.c:20, byte 8");
        assert_eq!(AddressName::Unknown.text(0x1008, base), "0x1008");
    }

    #[test]
    fn of_many_names_the_first_few_are_shown() {
        let names = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(first_few(&names[..2]), "a, b");
        assert_eq!(first_few(&names[..5]), "a, b, c, d, e", "one would not be shorter");
        assert_eq!(first_few(&names), "a, b, c, d and 2 more");
        assert_eq!(first_few(&names[..0]), "");
    }
}

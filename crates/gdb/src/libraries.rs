//! The list of libraries, as the program's own dynamic linker keeps it: program headers lead to the
//! dynamic section, that to the linker's list. A static program has none.

use crate::auxv::{AT_PHDR, AT_PHENT, AT_PHNUM, Auxv};
use crate::memory::Words;

const PT_DYNAMIC: u64 = 2;
const PT_PHDR: u64 = 6;
const DT_NULL: u64 = 0;
const DT_DEBUG: u64 = 21;
/// Headers, entries and libraries that are believed.
const MOST_HEADERS: u64 = 256;
const MOST_ENTRIES: u64 = 512;
const MOST_LIBRARIES: usize = 10_000;
const LONGEST_NAME: usize = 4096;

/// One of them: a `link_map`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Its file; empty for the program itself.
    pub name: String,
    /// Where the linker keeps it.
    pub map: u64,
    /// What is added to its addresses.
    pub bias: u64,
    /// Its dynamic section.
    pub dynamic: u64,
}

/// The libraries, in the linker's order, the program first.
pub fn read(memory: &impl Words, auxv: &Auxv) -> Vec<Library> {
    let mut libraries = Vec::new();
    let Some(mut map) = first_map(memory, auxv) else { return libraries };
    while map != 0 && libraries.len() < MOST_LIBRARIES {
        // struct link_map: l_addr, l_name, l_ld, l_next, …
        let word = |index: u64| memory.word(map.wrapping_add(8 * index));
        let (Some(bias), Some(name), Some(dynamic), Some(next)) =
            (word(0), word(1), word(2), word(3))
        else {
            break;
        };
        let name = memory.text(name, LONGEST_NAME).unwrap_or_default();
        let name = String::from_utf8_lossy(&name).into_owned();
        libraries.push(Library { name, map, bias, dynamic });
        map = next;
    }
    libraries
}

/// The list as gdb's `qXfer:libraries-svr4:read` has it.
pub fn xml(libraries: &[Library]) -> String {
    let mut xml = "<library-list-svr4 version=\"1.0\"".to_owned();
    if let Some(program) = libraries.first() {
        xml.push_str(&format!(" main-lm=\"{:#x}\"", program.map));
    }
    xml.push('>');
    for Library { name, map, bias, dynamic } in libraries.iter().skip(1) {
        let name = escaped(name);
        xml.push_str(&format!(
            "<library name=\"{name}\" lm=\"{map:#x}\" l_addr=\"{bias:#x}\" l_ld=\"{dynamic:#x}\" \
             lmid=\"0x0\"/>"
        ));
    }
    xml.push_str("</library-list-svr4>");
    xml
}

/// Where the linker's list begins.
fn first_map(memory: &impl Words, auxv: &Auxv) -> Option<u64> {
    let headers = auxv.get(AT_PHDR)?;
    let (size, count) = (auxv.get(AT_PHENT)?, auxv.get(AT_PHNUM)?.min(MOST_HEADERS));
    let (mut bias, mut dynamic) = (0, None);
    for index in 0..count {
        let header = headers.checked_add(index.checked_mul(size)?)?;
        // Elf64_Phdr: p_type and p_flags, p_offset, p_vaddr, …
        let address = memory.word(header + 16)?;
        match memory.word(header)? & 0xffff_ffff {
            PT_PHDR => bias = headers.wrapping_sub(address),
            PT_DYNAMIC => dynamic = Some(address),
            _ => {}
        }
    }
    let dynamic = dynamic?.wrapping_add(bias);
    for index in 0..MOST_ENTRIES {
        let entry = dynamic.checked_add(16 * index)?;
        match memory.word(entry)? {
            DT_NULL => return None,
            // struct r_debug: a version, then the first map.
            DT_DEBUG => return memory.word(memory.word(entry + 8)?.checked_add(8)?),
            _ => {}
        }
    }
    None
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::Typed;

    /// A program at 0x10000 with one library.
    fn target() -> (Typed, Auxv) {
        let mut memory = Typed::default();
        memory.put(0x7000, &[0, 0, 0, AT_PHDR, 0x10040, AT_PHENT, 56, AT_PHNUM, 2, 0]);
        let auxv = Auxv::read(&memory, 0x7000).unwrap();
        memory.put(0x10040, &[PT_PHDR | 4 << 32, 0x40, 0x40]);
        memory.put(0x10040 + 56, &[PT_DYNAMIC | 6 << 32, 0x2000, 0x3000]);
        memory.put(0x13000, &[1, 99, DT_DEBUG, 0x20000, DT_NULL, 0]);
        memory.put(0x20000, &[1, 0x30000]);
        memory.put(0x30000, &[0x10000, 0x40000, 0x13000, 0x31000]);
        memory.put(0x31000, &[0x50000, 0x40100, 0x51000, 0]);
        memory.put_text(0x40000, "");
        memory.put_text(0x40100, "/lib/a&b.so");
        (memory, auxv)
    }

    #[test]
    fn the_linkers_list_is_walked() {
        let (memory, auxv) = target();
        let libraries = read(&memory, &auxv);
        assert_eq!(libraries.len(), 2);
        assert_eq!(libraries[0].name, "");
        let library =
            Library { name: "/lib/a&b.so".into(), map: 0x31000, bias: 0x50000, dynamic: 0x51000 };
        assert_eq!(libraries[1], library);
    }

    #[test]
    fn gdb_gets_it_as_xml() {
        let (memory, auxv) = target();
        assert_eq!(
            xml(&read(&memory, &auxv)),
            "<library-list-svr4 version=\"1.0\" main-lm=\"0x30000\">\
             <library name=\"/lib/a&amp;b.so\" lm=\"0x31000\" l_addr=\"0x50000\" \
             l_ld=\"0x51000\" lmid=\"0x0\"/></library-list-svr4>"
        );
        assert_eq!(xml(&[]), "<library-list-svr4 version=\"1.0\"></library-list-svr4>");
    }

    #[test]
    fn damage_ends_the_list_and_nothing_else() {
        let (mut memory, auxv) = target();
        memory.0.remove(&0x31010);
        assert_eq!(read(&memory, &auxv).len(), 1);
        memory.0.remove(&0x20008);
        assert!(read(&memory, &auxv).is_empty());
        assert!(read(&memory, &Auxv::default()).is_empty());
    }

    #[test]
    fn a_list_without_an_end_is_left() {
        let (mut memory, auxv) = target();
        memory.put(0x31000, &[0x50000, 0x40100, 0x51000, 0x31000]);
        assert_eq!(read(&memory, &auxv).len(), MOST_LIBRARIES);
    }
}

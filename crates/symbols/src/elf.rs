//! One ELF file: where it will be loaded, what it is called, what its sections hold.
//!
//! Three kinds of numbers meet here. An *address* is what the file's own tables say (a "static
//! virtual memory address"); an *offset* is what the rest of Raddle uses, bytes from where the
//! module's first loadable segment was mapped; they differ by [`Layout::base`], which is zero for
//! shared objects and position-independent executables. File positions never leave this file.

use crate::error::SymbolError;
use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader, SectionHeader};
use object::read::{CompressedFileRange, Object, ObjectSection, ReadCache, ReadRef};
use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Modules are mapped from a page boundary.
const PAGE: u64 = 4096;

/// What the headers of a file say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Address of the first byte mapped: `address = offset + base`.
    pub base: u64,
    /// The GNU build-id, empty if there is none.
    pub build_id: Vec<u8>,
    pub soname: Option<String>,
    /// `.gnu_debuglink`: a file name and the checksum of that file.
    pub debug_link: Option<(PathBuf, u32)>,
    /// `.gnu_debugaltlink`: the file dwz moved common entries to, and its build-id.
    pub alternative_link: Option<(PathBuf, Vec<u8>)>,
    pub sections: Vec<Section>,
    /// Addresses of executable sections (segments, if the file has no section table).
    pub executable: Vec<Range<u64>>,
    /// What is loaded: addresses, and which bytes of the file appear at the first of them.
    loads: Vec<(Range<u64>, Range<usize>)>,
    /// The file's length.
    pub length: u64,
    /// Its thread-local variables.
    pub thread_locals: Option<ThreadLocals>,
}

/// The segment of thread-local variables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadLocals {
    pub size: u64,
    /// Bytes from its start up to the thread's pointer, if this is the program itself: the block
    /// ends there, but for what alignment asks.
    pub below: u64,
}

/// One section.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub name: String,
    pub address: u64,
    pub size: u64,
    pub kind: elf::SectionType,
    stored: Option<CompressedFileRange>,
}

impl Layout {
    /// Reads the headers only, however large the file.
    pub fn read(path: &Path) -> Result<Layout, SymbolError> {
        let file = File::open(path).map_err(SymbolError::read(path))?;
        Layout::parse(path, &ReadCache::new(file))
    }

    fn parse<'data, R: ReadRef<'data>>(path: &Path, data: R) -> Result<Layout, SymbolError> {
        refuse_foreign(path, data)?;
        let file = ElfFile64::<LE, R>::parse(data)
            .map_err(SymbolError::damaged(path, "its section table"))?;
        let mut layout = Layout {
            base: loads(&file).map(|s| s.p_vaddr(LE)).min().unwrap_or(0) & !(PAGE - 1),
            length: data.len().unwrap_or(0),
            build_id: file.build_id().ok().flatten().unwrap_or_default().to_vec(),
            debug_link: file.gnu_debuglink().ok().flatten().map(|(n, crc)| (bytes_path(n), crc)),
            alternative_link: (file.gnu_debugaltlink().ok().flatten())
                .map(|(n, id)| (bytes_path(n), id.to_vec())),
            soname: soname(&file),
            thread_locals: thread_locals(&file),
            loads: loads(&file).map(|s| (address_range(s), file_range(s))).collect(),
            ..Layout::default()
        };
        for section in file.sections() {
            let header = section.elf_section_header();
            layout.sections.push(Section {
                name: String::from_utf8_lossy(section.name_bytes().unwrap_or(b"?")).into_owned(),
                address: section.address(),
                size: section.size(),
                kind: header.sh_type(LE),
                stored: section.compressed_file_range().ok(),
            });
            if header.sh_flags(LE).contains(elf::SHF_EXECINSTR) && section.address() != 0 {
                layout
                    .executable
                    .push(section.address()..section.address().saturating_add(section.size()));
            }
        }
        if layout.executable.is_empty() {
            let code = loads(&file).filter(|segment| segment.p_flags(LE).contains(elf::PF_X));
            layout.executable = code.map(address_range).collect();
        }
        layout.executable.sort_by_key(|range| range.start);
        Ok(layout)
    }

    /// The section of this name, if the file really holds its bytes.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name && s.kind != elf::SHT_NOBITS && s.size > 0)
    }

    pub fn has_symbol_table(&self) -> bool {
        self.section(".symtab").is_some()
    }

    pub fn has_debug_information(&self) -> bool {
        self.section(".debug_info").is_some() || self.section(".zdebug_info").is_some()
    }

    /// Is this address inside code?
    pub fn is_code(&self, address: u64) -> bool {
        let after = self.executable.partition_point(|range| range.start <= address);
        after > 0 && self.executable[after - 1].contains(&address)
    }

    /// May a variable be at this address? Not where the file's own header is loaded: debug
    /// information leaves what the linker threw away at address zero.
    pub fn is_data(&self, address: u64) -> bool {
        const HEADER: u64 = 64;
        address >= self.base.saturating_add(HEADER)
            && self.loads.iter().any(|(memory, _)| memory.contains(&address))
    }

    /// The build-id as people write it.
    pub fn build_id_text(&self) -> Option<String> {
        (!self.build_id.is_empty()).then(|| hex(&self.build_id))
    }
}

/// A file in memory.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub path: PathBuf,
    pub bytes: Arc<[u8]>,
    pub layout: Layout,
}

impl Image {
    pub fn open(path: &Path) -> Result<Image, SymbolError> {
        Image::parse(path, std::fs::read(path).map_err(SymbolError::read(path))?)
    }

    /// A file that stands inside the one at `path`, or is it.
    pub fn parse(path: &Path, bytes: Vec<u8>) -> Result<Image, SymbolError> {
        let bytes: Arc<[u8]> = bytes.into();
        let layout = Layout::parse(path, &bytes[..])?;
        Ok(Image { path: path.to_owned(), bytes, layout })
    }

    /// The file again, as `object` sees it.
    pub fn file(&self) -> Result<ElfFile64<'_, LE>, SymbolError> {
        ElfFile64::parse(&self.bytes[..])
            .map_err(SymbolError::damaged(&self.path, "its section table"))
    }

    /// A section's bytes, uncompressed. A section that cannot be had is empty.
    pub fn section_data(&self, name: &str) -> Cow<'_, [u8]> {
        let stored = self.layout.section(name).and_then(|s| s.stored);
        let data = stored.and_then(|range| range.data(&self.bytes[..]).ok());
        data.and_then(|data| data.decompress().ok()).unwrap_or_default()
    }

    /// Where in the file an uncompressed section stands.
    pub fn section_range(&self, name: &str) -> Option<Range<usize>> {
        let stored = self.layout.section(name)?.stored?;
        if stored.format != object::CompressionFormat::None {
            return None;
        }
        let start = usize::try_from(stored.offset).ok()?;
        let end = start.checked_add(usize::try_from(stored.uncompressed_size).ok()?)?;
        (end <= self.bytes.len()).then_some(start..end)
    }

    /// The bytes from this address to the end of its segment.
    pub fn at_address(&self, address: u64) -> Option<&[u8]> {
        self.layout.loads.iter().find_map(|(memory, file)| {
            let skip = usize::try_from(address.checked_sub(memory.start)?).ok()?;
            self.bytes.get(file.clone())?.get(skip..).filter(|bytes| !bytes.is_empty())
        })
    }

    /// All code of the file, each piece with its address.
    pub fn code(&self) -> impl Iterator<Item = (u64, &[u8])> + '_ {
        self.layout.executable.iter().filter_map(|range| {
            let bytes = self.at_address(range.start)?;
            let length = ((range.end - range.start) as usize).min(bytes.len());
            Some((range.start, &bytes[..length]))
        })
    }

    /// The bytes of this stretch of code, none if any of it is not code of this file.
    pub fn code_range(&self, range: &Range<u64>) -> Option<&[u8]> {
        if range.is_empty() || !self.layout.is_code(range.start) {
            return None;
        }
        self.at_address(range.start)?.get(..(range.end - range.start) as usize)
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn refuse_foreign<'data, R: ReadRef<'data>>(path: &Path, data: R) -> Result<(), SymbolError> {
    const IDENT_AND_MACHINE: u64 = 20;
    let head = data.read_bytes_at(0, IDENT_AND_MACHINE).unwrap_or_default();
    let reason = match head {
        [0x7f, b'E', b'L', b'F', class, order, ..] => match (class, order, head[18], head[19]) {
            (2, 1, 62, 0) => return Ok(()),
            (1, ..) => "it is a 32-bit program",
            (_, 2, ..) => "it is big-endian",
            _ => "it is made for another machine",
        },
        _ => "it is no ELF file",
    };
    Err(SymbolError::Foreign { path: path.to_owned(), reason })
}

fn loads<'data, R: ReadRef<'data>>(
    file: &ElfFile64<'data, LE, R>,
) -> impl Iterator<Item = &'data elf::ProgramHeader64<LE>> + use<'data, R> {
    file.elf_program_headers().iter().filter(|segment| segment.p_type(LE) == elf::PT_LOAD)
}

fn file_range(segment: &elf::ProgramHeader64<LE>) -> Range<usize> {
    let start = segment.p_offset(LE) as usize;
    start..start.saturating_add(segment.p_filesz(LE) as usize)
}

fn thread_locals<'data, R: ReadRef<'data>>(file: &ElfFile64<'data, LE, R>) -> Option<ThreadLocals> {
    let mut segments = file.elf_program_headers().iter();
    let segment = segments.find(|segment| segment.p_type(LE) == elf::PT_TLS)?;
    let size = segment.p_memsz(LE);
    let alignment = segment.p_align(LE).max(1);
    let first = segment.p_vaddr(LE).wrapping_neg() & (alignment - 1);
    let below = size.saturating_sub(first).checked_next_multiple_of(alignment)? + first;
    Some(ThreadLocals { size, below })
}

fn address_range(segment: &elf::ProgramHeader64<LE>) -> Range<u64> {
    segment.p_vaddr(LE)..segment.p_vaddr(LE).saturating_add(segment.p_memsz(LE))
}

fn soname<'data, R: ReadRef<'data>>(file: &ElfFile64<'data, LE, R>) -> Option<String> {
    let sections = file.elf_section_table();
    let (dynamic, link) = sections.dynamic(LE, file.data()).ok()??;
    let strings = sections.strings(LE, file.data(), link).ok()?;
    let entry = dynamic.iter().find(|entry| entry.d_tag.get(LE) == elf::DT_SONAME)?;
    let name = strings.get(u32::try_from(entry.d_val.get(LE)).ok()?).ok()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

fn bytes_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

//! `.gnu_debugdata`: the symbol table that some distributions leave in stripped files, as a small
//! ELF file packed with xz ("MiniDebugInfo"). It has names of functions and nothing else.

use crate::elf::Image;
use std::io::{self, Write};

const SECTION: &str = ".gnu_debugdata";
/// A hundred times what a large program's table takes: more is damage, or malice.
const LARGEST: usize = 256 << 20;

/// The file inside, if there is one that can be read.
pub(crate) fn unpack(image: &Image) -> Option<Image> {
    if image.layout.has_symbol_table() {
        return None;
    }
    let packed = image.section_data(SECTION);
    if packed.is_empty() {
        return None;
    }
    let mut bytes = Limited(Vec::new());
    lzma_rs::xz_decompress(&mut &*packed, &mut bytes).ok()?;
    Image::parse(&image.path, bytes.0).ok()
}

/// Takes so much and no more.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > LARGEST - self.0.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

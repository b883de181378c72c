//! Is a program built with a sanitizer that lays claim to the address space?

use object::read::ReadCache;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol};
use std::fs::File;
use std::path::Path;

/// A sanitizer with shadow memory of its own, which is where it is and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sanitizer {
    Address,
    Memory,
    Thread,
}

impl Sanitizer {
    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "AddressSanitizer",
            Sanitizer::Memory => "MemorySanitizer",
            Sanitizer::Thread => "ThreadSanitizer",
        }
    }

    /// The option of compilers that builds it in.
    pub fn option(self) -> &'static str {
        match self {
            Sanitizer::Address => "-fsanitize=address",
            Sanitizer::Memory => "-fsanitize=memory",
            Sanitizer::Thread => "-fsanitize=thread",
        }
    }

    fn of_symbol(name: &[u8]) -> Option<Sanitizer> {
        match name {
            b"__asan_init" | b"__hwasan_init" => Some(Sanitizer::Address),
            b"__msan_init" => Some(Sanitizer::Memory),
            b"__tsan_init" => Some(Sanitizer::Thread),
            _ => None,
        }
    }
}

/// The sanitizer that a program was built with, by the function that its start calls: it comes from a
/// library, or is exported from the program itself. Nothing of a file that cannot be read: whoever runs
/// it will say so.
pub fn sanitizer(program: &Path) -> Option<Sanitizer> {
    let parts = ReadCache::new(File::open(program).ok()?);
    let file = ElfFile64::<LittleEndian, _>::parse(&parts).ok()?;
    let mut names = file.dynamic_symbols().filter_map(|symbol| symbol.name_bytes().ok());
    names.find_map(Sanitizer::of_symbol)
}

//! ELF, DWARF and demangling: places to names, binaries to module facts. The one symboliser.
//!
//! Two questions are answered here. *What must the probe know of this module?* —
//! [`module_facts`], kept in a directory by [`cached_facts`]. *What does a person call this place?*
//! — [`Symboliser`]. An *offset*, here as everywhere in Raddle, is the number of bytes from where
//! the module's first loadable segment was mapped. Missing or broken debug information is never an
//! error: there are fewer names then.

mod atomic_pointers;
mod atomics;
mod binary;
mod cache;
mod code;
mod constant;
mod debug_files;
pub mod demangle;
mod dwarf;
mod elf;
mod error;
mod facts;
mod frames;
mod ifunc;
mod inlined;
mod instances;
mod kept_names;
mod matching;
mod memory_uses;
mod mini_debug_info;
mod places;
mod plt;
mod sanitizer;
mod symboliser;
mod symtab;
mod type_names;
mod types;
mod variables;
mod waiting;

pub use cache::{cached_facts, cached_facts_from};
pub use debug_files::DebugSources;
pub use error::SymbolError;
pub use facts::{FactsRequest, module_facts, module_facts_from};
pub use frames::Frame;
pub use memory_uses::MemoryUse;
pub use sanitizer::{Sanitizer, sanitizer};
pub use symboliser::{Symboliser, SymboliserOptions};
pub use variables::Variable;

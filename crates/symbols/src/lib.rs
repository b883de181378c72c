//! ELF, DWARF and demangling: places to names, binaries to module facts. The one symboliser.

//! Names for threads, modules, places, addresses and stacks: small copyable numbers with one
//! meaning each, so that none can be passed where another is expected.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A thread of the target, numbered by Raddle from 1 in the order of start; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// The thread that runs `main`.
    pub const MAIN: ThreadId = ThreadId(1);
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// A module (executable, shared library) of one execution, numbered from 1 in the order of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModuleId(pub u32);

impl ModuleId {
    /// Code that belongs to no file: a JIT's, a signal trampoline.
    pub const NONE: ModuleId = ModuleId(0);
}

/// An instruction: module and offset from the module's load address, so that it means the same in
/// every execution. With [`ModuleId::NONE`] the offset is the absolute address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Which module.
    pub module: ModuleId,
    /// Bytes from its load address.
    pub offset: u64,
}

impl Place {
    /// In a call stack: frames of a recursion that were left out here.
    pub const RECURSION: Place = Place { module: ModuleId::NONE, offset: u64::MAX };
}

/// An address in the target's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A call stack, interned: equal stacks have equal ids within one execution. Zero is "no stack".
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StackId(pub u32);

impl StackId {
    /// No stack was taken.
    pub const NONE: StackId = StackId(0);
}

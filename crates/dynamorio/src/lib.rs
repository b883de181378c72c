//! The safe face of DynamoRIO: everything the probe needs of the engine, and the only crate with
//! FFI to it.
//!
//! - [`client`]: the events the engine calls us for, as one trait.
//! - [`block`]: looking at a basic block and inserting code into it.
//! - [`slots`]: thread-local words that inserted code reaches through a segment register.
//! - [`process`]: modules, memory, system calls, leaving.
//! - [`redirect`]: sending the application elsewhere.
//!
//! Types here wrap raw engine pointers that are valid only during the callback that handed them
//! out; lifetimes say so. Code that runs in the code cache is made of the few shapes
//! [`block::Point`] offers, so that register and flag discipline is kept in one place.

pub mod block;
pub mod client;
pub mod process;
pub mod redirect;
pub mod slots;

/// The engine's interface version that a client must export as `_USES_DR_VERSION_`.
pub const INTERFACE_VERSION: i32 = 1190;

/// C's `true` and `false` as the engine's headers have them.
pub(crate) const TRUE: dynamorio_sys::bool_ = 1;
pub(crate) const FALSE: dynamorio_sys::bool_ = 0;

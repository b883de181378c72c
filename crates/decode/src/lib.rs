//! What one machine instruction does to memory, and which loops wait for something. Pure: bytes in,
//! accesses out.
//!
//! [`decode`] says of any x86-64 instruction which memory it reads, writes or updates atomically,
//! as address expressions over the register values from *before* it runs, so that the probe can
//! turn them into checks when it builds a block. Where the registers decide which bytes are touched
//! (gathers, masked moves, bit strings), the operand is marked [`Extent::Lanes`] and [`lanes`]
//! answers when the values are known. `iced-x86` does the decoding; `operand` says where we differ
//! from what it reports.

mod address;
mod entry;
mod given;
mod lanes;
mod loops;
mod mask;
mod operand;

pub use address::{AddressExpr, Gpr, Registers, Segment};
pub use entry::main_of_entry;
pub use given::{Given, given};
pub use lanes::lanes;
pub use loops::{CallTarget, Callee, ConditionAt, Loops, WaitExit, calls, loops};
pub use operand::{Decoded, Extent, Flow, Operand, decode};

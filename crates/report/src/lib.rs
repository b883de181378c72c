//! Rendering: what the probe saw, as text for people and JSON for programs. Knows the model only;
//! the names of functions, lines and variables come through the [`Symbols`] trait.
//!
//! - [`names`]: how a place or an address is called.
//! - [`world`]: what of a process must be remembered to name things: its modules, threads, heap.
//! - [`events`]: an event stream, line by line.
//! - [`counts`]: how many of what, per thread and per place.
//! - [`explain`]: what the words of a report mean.
//! - [`function_names`]: whether two tools mean the same function.
//! - [`import`]: pairs of places from the reports of other tools.
//! - [`nearest`]: the right word nearest to a wrong one.
//! - [`findings`]: what is wrong with the program: `report.json` and the report on the terminal.

pub mod counts;
pub mod events;
pub mod explain;
pub mod findings;
pub mod function_names;
mod hex;
pub mod import;
pub mod names;
pub mod nearest;
pub mod paint;
mod per_thread;
pub mod world;

pub use findings::{Report, ReportError};
pub use hex::Hex;
pub use names::{AddressName, Frame, PlaceName, Symbols};
pub use paint::Paint;
pub use world::World;

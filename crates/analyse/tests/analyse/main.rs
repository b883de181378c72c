//! The analysers, driven by events typed or made up: no target, no engine.

mod annotations;
mod atomics;
mod conditions;
mod dsl;
mod fast;
mod handover;
mod helgrind;
mod hybrid;
mod lock_order;
mod locks;
mod memory;
mod oracle;
mod orders;
mod properties;
mod quick;
mod scripts;
mod spin;
mod window;

//! The probe: the half of Raddle that lives inside the target, as a client of the engine.
//!
//! The way data flows is the way modules are laid out:
//!
//! - [`instrument`]: blocks of the target's code get inline counters and lean calls;
//! - [`trampoline`]: what a lean call goes through;
//! - [`middle`]: what it need not go through for most accesses that a detector must see;
//! - [`monitor`]: hooked functions, system calls, threads and modules become events;
//! - [`schedule`]: who may run now, if that was asked for;
//! - [`debug`]: where a debugger stops the target, if there is one;
//! - [`analysis`]: a detector fed with the events, if one was asked for;
//! - [`serve`]: copies of the target at `main`, one for each execution, if that was asked for;
//! - [`stacks`], [`frames`]: the call stack of an event;
//! - [`memory`]: the shared log, the target's memory and environment.
//!
//! It knows the hook table and the module facts; it knows nothing of files, symbols or debug
//! information: those are the command's.

mod analysis;
mod debug;
mod frames;
mod instrument;
mod libc_free;
mod memory;
mod middle;
mod monitor;
mod probe;
mod realigned;
mod schedule;
mod serve;
mod stacks;
mod thread;
mod trampoline;

use std::ffi::{CStr, c_char, c_int};

#[global_allocator]
static ALLOCATOR: memory::blocks::Blocks = memory::blocks::Blocks;

/// The engine checks this against its own version before it calls us.
#[unsafe(no_mangle)]
pub static _USES_DR_VERSION_: c_int = raddle_dynamorio::INTERFACE_VERSION;

/// The engine's entry into a client: one argument, the path of the options file.
///
/// # Safety
/// Called by the engine once, with `argc` valid strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dr_client_main(_id: u32, argc: c_int, argv: *const *const c_char) {
    // SAFETY: the engine's promise; argument 0 is the client's own path.
    let options = (argc > 1).then(|| unsafe { CStr::from_ptr(*argv.add(1)) });
    match options.map(CStr::to_str) {
        Some(Ok(path)) => probe::start(path),
        _ => probe::fail("the probe was started without its options"),
    }
}

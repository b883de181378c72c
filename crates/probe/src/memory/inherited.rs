//! What the process ignored when it began. The engine catches every signal before it calls us, so
//! this is asked for when our library is loaded, which is before.

use super::kernel::{self, SignalAction};
use std::sync::atomic::{AtomicU64, Ordering};

static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Called by the loader.
// SAFETY: the section is a list of functions of this type.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = look;

/// The C library's own, which it ignores in whatever it starts: here by the command's doing.
const INTERNAL: [u32; 2] = [32, 33];

extern "C" fn look() {
    let is_ignored = |signal: &u32| {
        let action = kernel::signal_action(*signal, None);
        let ignores = action.is_some_and(|was| was.handler == libc::SIG_IGN as u64);
        ignores && !INTERNAL.contains(signal)
    };
    let signals = (1..=SignalAction::LAST).filter(is_ignored);
    IGNORED
        .store(signals.fold(0, |set, signal| set | SignalAction::bit(signal)), Ordering::Relaxed);
}

/// The signals ignored at the start: signal 1 is bit 0.
pub fn ignored() -> u64 {
    IGNORED.load(Ordering::Relaxed)
}

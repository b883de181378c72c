//! Ctrl-C in a plan of many executions: the first ends the plan with what was found so far, the
//! second ends us at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell makes of a program that died of SIGINT.
const EXIT_INTERRUPTED: i32 = 130;

/// Whether somebody wants us to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on.
    pub fn watch() -> Interrupt {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            // Where a signal cannot be taken, it does what it always does.
            let _ =
                flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, interrupt.0.clone())
                    .and_then(|_| flag::register(signal, interrupt.0.clone()));
        }
        interrupt
    }

    /// Has it come?
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

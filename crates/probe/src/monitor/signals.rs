//! Signals: that one was delivered, and where it struck.

use super::modules;
use crate::probe::Probe;
use crate::thread::ThreadState;
use raddle_dynamorio::process::MachineState;
use raddle_model::EventKind;

/// A signal is about to be delivered to the current thread.
pub fn delivered(probe: &Probe, thread: &mut ThreadState, number: i32, state: &MachineState) {
    let spot = modules::spot(probe, thread, state.pc, state.general[4], state.general[5]);
    thread.emit(probe, spot, EventKind::SignalDelivered { signal: number as u32 });
}

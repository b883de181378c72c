//! The registers of a thread that stands in our code.
//!
//! A thread gets there by one of three ways, and each has its registers elsewhere: a lean call
//! (the trampoline's frame), a clean call, or a system call (the engine has them).

use crate::instrument::Site;
use crate::memory::kept::Kept;
use crate::probe::Probe;
use crate::thread::ThreadState;
use crate::trampoline::{Frame, slot};
use raddle_dynamorio::process::MachineState;
use raddle_wire::debug::Registers;

/// How a thread got into our code, unless by a lean call.
#[derive(Debug, Clone, Copy, Default)]
pub enum At {
    /// Not known: it has not begun.
    #[default]
    Nowhere,
    /// By a clean call before this instruction.
    Call(u64),
    /// By a system call.
    SystemCall,
}

impl ThreadState {
    /// The current thread has come into our code, not by a lean call.
    pub fn stands(&mut self, at: At) {
        self.at = at;
        self.kept.leave();
    }
}

/// The current thread's.
pub fn of(probe: &Probe, thread: &ThreadState) -> Option<Registers> {
    if let Some(frame) = thread.kept.frame() {
        let site = probe.instrumentation.site(thread.slots.get(slot::NUMBER) as u32);
        // Where a hooked call returns to, the result's register is borrowed by then.
        let result = match site {
            Some(Site::Return { .. }) => thread.slots.get(slot::RESULT),
            _ => frame.rax,
        };
        return Some(of_frame(frame, &thread.kept, result, site.and_then(Site::pc)?));
    }
    let state = match thread.at {
        At::Nowhere => return None,
        At::Call(_) | At::SystemCall => MachineState::current(true),
    };
    let pc = if let At::Call(pc) = thread.at { pc } else { state.pc };
    Some(of_state(&state, pc, thread.kept.fs_base))
}

/// Those that the engine has.
pub fn of_state(state: &MachineState, pc: u64, fs_base: u64) -> Registers {
    let mut vectors = [0; 16];
    for (vector, bytes) in vectors.iter_mut().zip(&state.vectors) {
        *vector = bytes.first_chunk().map_or(0, |low| u128::from_le_bytes(*low));
    }
    Registers { general: state.general, pc, flags: state.flags, fs_base, vectors }
}

fn of_frame(frame: &Frame, kept: &Kept, rax: u64, pc: u64) -> Registers {
    Registers {
        general: [
            rax, frame.rcx, frame.rdx, frame.rbx, frame.rsp, frame.rbp, frame.rsi, frame.rdi,
            frame.r8, frame.r9, frame.r10, frame.r11, frame.r12, kept.r13, kept.r14, kept.r15,
        ],
        pc,
        flags: frame.flags,
        fs_base: kept.fs_base,
        vectors: frame.vectors,
    }
}

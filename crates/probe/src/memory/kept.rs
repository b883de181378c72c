//! Registers that a lean call leaves where they are, kept for a debugger.
//!
//! The trampoline saves what Rust may change without saving it again; r13 to r15 stay in their
//! registers and are somewhere on our stack by the time anybody wants them. Where there is a debugger,
//! the handler table leads through a few instructions that write them down first, and where the frame
//! with all the others is. Without one nothing is paid.

use crate::instrument::handlers::{COUNT, TABLE};
use crate::thread::ThreadState;
use crate::trampoline::Frame;
use std::mem::offset_of;

/// What is kept of the lean call under way.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Kept {
    /// Address of its [`Frame`]; zero when the thread is not in a lean call.
    frame: u64,
    /// The application's `fs` base, as of the last lean call.
    pub fs_base: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

impl Kept {
    /// The registers that the trampoline has saved, while the thread is in a lean call.
    pub fn frame(&self) -> Option<&Frame> {
        // SAFETY: written at the start of a lean call, whose frame stands until its handler returns;
        // whatever runs outside one has said so before it asks.
        unsafe { (self.frame as *const Frame).as_ref() }
    }

    /// The thread is in no lean call.
    pub fn leave(&mut self) {
        self.frame = 0;
    }
}

core::arch::global_asm!(
    r#"
 .p2align 4
.globl raddle_keep
.hidden raddle_keep
raddle_keep:
 mov qword ptr [rsi + {frame}], rdi
 mov qword ptr [rsi + {fs_base}], r12
 mov qword ptr [rsi + {r13}], r13
 mov qword ptr [rsi + {r14}], r14
 mov qword ptr [rsi + {r15}], r15
 lea rdx, [rip + {table}]
 jmp qword ptr [rdx + rax * 8]
"#,
    frame = const offset_of!(ThreadState, kept) + offset_of!(Kept, frame),
    fs_base = const offset_of!(ThreadState, kept) + offset_of!(Kept, fs_base),
    r13 = const offset_of!(ThreadState, kept) + offset_of!(Kept, r13),
    r14 = const offset_of!(ThreadState, kept) + offset_of!(Kept, r14),
    r15 = const offset_of!(ThreadState, kept) + offset_of!(Kept, r15),
    table = sym TABLE,
);

unsafe extern "C" {
    fn raddle_keep();
}

static KEEPING: [unsafe extern "C" fn(); COUNT] = [raddle_keep; COUNT];

/// Address of a handler table that keeps registers first.
pub fn table() -> u64 {
    KEEPING.as_ptr() as u64
}

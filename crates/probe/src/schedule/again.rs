//! System calls that are made again: of a signal whose handler was installed with `SA_RESTART`, a call that waited
//! knows nothing.
//!
//! The call is answered with `EINTR`, and the engine runs the handler. The code behind the call is where the
//! handler returns to: there the target is sent back to the call, as the kernel would have sent it.

use super::{Scheduler, signals};
use crate::probe::Probe;
use crate::thread::{self, ThreadState};
use crate::trampoline::slot;
use raddle_dynamorio::block::Point;
use raddle_dynamorio::client::Client;
use raddle_dynamorio::process::{self, MachineState, SystemCall};
use raddle_dynamorio::redirect::Context;

/// How the kernel says to itself that a call is to be made again; the target never sees it.
pub const ERESTARTSYS: i64 = 512;
const EINTR: i64 = libc::EINTR as i64;
/// `syscall`.
const INSTRUCTION: [u8; 2] = [0x0f, 0x05];

/// A call that is to be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// Where it returns to.
    pc: u64,
    sp: u64,
    number: i32,
}

/// The answer as the kernel has it for itself: was the call interrupted by a signal of which it is not to know?
pub fn judge(
    scheduler: &Scheduler,
    thread: &ThreadState,
    call: &SystemCall<'_>,
    result: i64,
) -> i64 {
    let again = result == -EINTR
        && is_made_again(i64::from(call.number))
        && signals::restarts(scheduler, thread);
    if again { -ERESTARTSYS } else { result }
}

/// What the target is told, for the moment.
pub fn told(thread: &mut ThreadState, call: &SystemCall<'_>, result: i64) -> i64 {
    if result != -ERESTARTSYS {
        return result;
    }
    let at = call.state();
    thread.again = Some(Again { pc: at.pc, sp: at.general[4], number: call.number });
    thread.slots.set(slot::AGAIN, 1);
    -EINTR
}

/// The target makes a call. If it has left the handler by another way than by returning, nothing is made again.
pub fn forget(thread: &mut ThreadState, call: &SystemCall<'_>) {
    if let Some(again) = thread.again
        && call.state().general[4] >= again.sp
    {
        thread.again = None;
        thread.slots.set(slot::AGAIN, 0);
    }
}

/// Does a block that begins here follow a system call?
pub fn follows_call(pc: u64) -> bool {
    let mut before = [0; 2];
    process::read(pc.wrapping_sub(2), &mut before) == 2 && before == INSTRUCTION
}

/// Inserts what looks whether the call before is to be made again.
pub fn insert(point: &mut Point<'_>, pc: u64) {
    point.clean_call_if(slot::AGAIN, make_again, pc);
}

extern "C" fn make_again(pc: u64) {
    let Some(thread) = thread::current(Probe::instance()) else { return };
    let Some(again) = thread.again else { return };
    let registers = MachineState::current(false);
    let is_here = (again.pc, again.sp) == (pc, registers.general[4]);
    if is_here && registers.general[0] as i64 == -EINTR {
        thread.again = None;
        thread.slots.set(slot::AGAIN, 0);
        let call = pc - INSTRUCTION.len() as u64;
        Context::at(call).with_accumulator(again.number as u64).go();
    }
}

/// signal(7): calls that are made again after a handler with `SA_RESTART`. A futex's waiters may be woken for
/// nothing, which comes to the same.
fn is_made_again(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_flock
            | libc::SYS_fcntl
    )
}

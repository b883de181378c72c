//! What the processor gives an instruction, the same in every execution: its clock, chance, and which
//! processor it is. The instruction is left to run, and what it gave is overwritten.

use super::Scheduler;
use crate::probe::Probe;
use crate::thread;
use crate::trampoline::slot;
use raddle_decode::{Given, Gpr, given};
use raddle_dynamorio::block::{Block, Point, Register};
use raddle_dynamorio::client::Client;
use raddle_dynamorio::process::MachineState;

const RAX: Register = Register(0);
const RCX: Register = Register(1);
const RDX: Register = Register(2);
const RBX: Register = Register(3);

/// The instructions of a block that are given something, with their addresses.
pub fn plan(block: &Block<'_>) -> Vec<(u64, Given)> {
    block.instructions().filter_map(|i| Some((i.pc, given(i.bytes, i.pc)?))).collect()
}

/// Inserts what belongs around such an instruction.
pub fn insert(scheduler: &Scheduler, point: &mut Point<'_>, given: Given) {
    let registers: &[(Register, u8)] = match given {
        Given::Time | Given::TimeAndProcessor if !scheduler.lock().clock.is_virtual() => return,
        Given::Time => &[(RAX, 4), (RDX, 4)],
        Given::TimeAndProcessor => &[(RAX, 4), (RDX, 4), (RCX, 4)],
        Given::Random { to: Gpr(number), size } => &[(Register(number), size)],
        Given::Identity => &[(RAX, 4), (RDX, 4), (RCX, 4), (RBX, 4)],
    };
    let callee = match given {
        Given::Time | Given::TimeAndProcessor => give_time,
        Given::Random { .. } => give_random,
        Given::Identity => give_identity,
    };
    point.clean_call_exact(callee, 0);
    for (&(register, size), from) in registers.iter().zip(slot::GIVEN) {
        point.overwrite_after(register, size, from);
    }
}

/// Lays out what the registers are overwritten with, in their order.
fn give(make: impl FnOnce(&Scheduler) -> [u64; 4]) {
    let probe = Probe::instance();
    let (Some(thread), Some(scheduler)) = (thread::current(probe), &probe.scheduler) else {
        return;
    };
    for (to, value) in slot::GIVEN.into_iter().zip(make(scheduler)) {
        thread.slots.set(to, value);
    }
}

/// A clock of one tick a nanosecond, on the first processor.
extern "C" fn give_time(_: u64) {
    give(|scheduler| {
        let now = scheduler.lock().clock.look(libc::CLOCK_MONOTONIC);
        [now & 0xffff_ffff, now >> 32, 0, 0]
    });
}

extern "C" fn give_random(_: u64) {
    give(|scheduler| [scheduler.lock().random.draw(), 0, 0, 0]);
}

/// What the processor says of itself but for which of all it is: the first.
extern "C" fn give_identity(_: u64) {
    let asked = MachineState::current(false);
    let (leaf, part) = (asked.general[0] as u32, asked.general[1] as u32);
    let mut said = std::arch::x86_64::__cpuid_count(leaf, part);
    match leaf {
        0x1 => said.ebx &= 0x00ff_ffff,
        0xb | 0x1f => said.edx = 0,
        0x8000_001e => {
            said.eax = 0;
            said.ebx &= !0xff;
            said.ecx &= !0xff;
        }
        _ => {}
    }
    give(|_| [said.eax, said.edx, said.ecx, said.ebx].map(u64::from));
}

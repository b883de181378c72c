//! Scheduling points in the target's code: before atomic instructions, before plain ones that debug
//! information shows to be atomic loads and stores, and after so many branches.
//!
//! Points are counted in the target's terms: a branch is a branch of its code and an atomic instruction is one,
//! whatever else is inserted. So the same seed means the same execution whoever watches. Both are
//! clean calls, because a thread may have to wait in them; code before each keeps them rare:
//! nothing is called while there is one thread only.

use super::{ALONE, Scheduler, again, given};
use crate::debug::At;
use crate::monitor::modules::{self, LoadedModule};
use crate::probe::Probe;
use crate::thread::{self, ThreadState};
use crate::trampoline::slot;
use raddle_decode::{Given, decode};
use raddle_dynamorio::block::{Block, Point};
use raddle_dynamorio::client::Client;
use raddle_dynamorio::process::MachineState;
use raddle_dynamorio::redirect::Context;
use raddle_schedule::Step;

/// Where threads may have to give way in a block.
#[derive(Debug, Default)]
pub struct BlockPoints {
    controlled: bool,
    atomics: Vec<u64>,
    given: Vec<(u64, Given)>,
    /// Where the block begins, if a system call comes before.
    after_call: Option<u64>,
}

impl BlockPoints {
    /// Looks at a block, of a module of which this is known.
    pub fn plan(block: &Block<'_>, module: Option<&LoadedModule>) -> BlockPoints {
        let facts = module.and_then(|module| Some((module, module.facts()?)));
        let is_meant =
            |pc: u64| facts.is_some_and(|(module, f)| f.is_atomic(module.place(pc).offset));
        let is_atomic = |pc: u64, bytes: &[u8]| {
            let Some(decoded) = decode(bytes, pc) else { return false };
            let touches = || decoded.operands.iter().any(|o| !o.implicit && !o.stack);
            (decoded.atomic && !decoded.fence_only) || (is_meant(pc) && touches())
        };
        let atomics = block.instructions().filter(|i| is_atomic(i.pc, i.bytes)).map(|i| i.pc);
        let atomics = atomics.collect();
        let after_call = Some(block.tag()).filter(|tag| again::follows_call(*tag));
        BlockPoints { controlled: true, atomics, given: given::plan(block), after_call }
    }

    /// Inserts what belongs before the instruction at this point.
    pub fn insert(&self, probe: &Probe, point: &mut Point<'_>, pc: u64) {
        if self.after_call == Some(pc) {
            again::insert(point, pc);
        }
        if self.controlled && point.is_branch() {
            point.reserve_flags();
            let done = point.new_label();
            point.count_down(slot::BUDGET, &done);
            point.clean_call_exact(at_branch, pc);
            point.place(done);
            point.release_flags();
        }
        if self.atomics.contains(&pc) {
            point.reserve_flags();
            let done = point.new_label();
            point.skip_if_zero(slot::CONTROLLED, &done);
            // A debugger wants to see the thread's registers while it stands there, and to be interrupted
            // they must be known.
            let interruptible = probe.scheduler.as_ref().is_some_and(Scheduler::is_interruptible);
            match interruptible || probe.debugger.is_some() {
                true => point.clean_call_exact(at_atomic_exactly, pc),
                false => point.clean_call(at_atomic, pc),
            }
            point.place(done);
            point.release_flags();
        }
        if let Some((_, given)) = self.given.iter().find(|(at, _)| *at == pc)
            && let Some(scheduler) = &probe.scheduler
        {
            given::insert(scheduler, point, *given);
        }
    }
}

extern "C" fn at_atomic(pc: u64) {
    at(pc, Step::Atomic);
}

extern "C" fn at_branch(pc: u64) {
    look(pc);
    at(pc, Step::Branch);
    take_signal(pc);
}

extern "C" fn at_atomic_exactly(pc: u64) {
    at(pc, Step::Atomic);
    take_signal(pc);
}

/// The thread has computed for a while: does it get on?
fn look(pc: u64) {
    let probe = Probe::instance();
    let (Some(thread), Some(scheduler)) = (thread::current(probe), &probe.scheduler) else {
        return;
    };
    let quanta = if thread.slots.get(slot::CONTROLLED) == 0 { ALONE } else { 1 };
    if scheduler.is_to_look(quanta) {
        scheduler.look(probe, thread, (pc, &MachineState::current(false)), quanta);
    }
}

fn at(pc: u64, step: fn(raddle_model::Place) -> Step) {
    let probe = Probe::instance();
    let Some(thread) = thread::current(probe) else { return };
    let Some(scheduler) = &probe.scheduler else { return };
    thread.stands(At::Call(pc));
    let place = modules::spot(probe, thread, pc, 0, 0).place;
    let step = step(place);
    // An atomic instruction does not renew the budget, or a loop of few would never be a spin.
    if matches!(step, Step::Branch(_)) && scheduler.is_alone(probe, thread) {
        if let Some(debugger) = &probe.debugger {
            debugger.listen(probe, thread);
        }
        return;
    }
    if matches!(step, Step::Branch(_)) {
        scheduler.has_computed();
    }
    give_way(scheduler, probe, thread, step);
}

/// A timer or a thread has sent this thread a signal while it was in our code. The engine delivers it when it
/// next leaves the code cache, which a loop of its own may never do: so it leaves now, and comes back to where
/// it was. Only where the call saw the target's own registers.
fn take_signal(pc: u64) {
    let probe = Probe::instance();
    let (Some(thread), Some(scheduler)) = (thread::current(probe), &probe.scheduler) else {
        return;
    };
    if scheduler.take_signalled(thread.id) {
        Context::at(pc).go();
    }
}

fn give_way(scheduler: &super::Scheduler, probe: &Probe, thread: &mut ThreadState, step: Step) {
    if scheduler.controls_many(thread) {
        scheduler.give_way(probe, thread, step);
    } else {
        thread.slots.set(slot::CONTROLLED, 0);
    }
}

//! What hooked functions do that the fast detector can be told without an event: the short stretches of memory that most of them
//! touch, the locks that most critical sections take and release, and the blocks of the heap that most programs are made of.
//!
//! An event is for everybody who may want to know of it: it has a place and a stack, goes to the log or a scheduler, and
//! is matched several times on its way to the detector. Where nobody but the detector wants to know (`Monitor::only_detects`), and it can
//! follow what happens without its lock, it is told at once. Each function here says whether that could be done; if not, nothing was
//! done that harms, and [`ThreadState::emit`] must be told.

use super::accesses::{describe, describe_as};
use super::{Analysis, Engine, Touching};
use crate::memory::shadow::Shadow;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_analyse::fast::cell::{LINE, lines};
use raddle_analyse::fast::{FastHybrid, Planes, Side, Simply};
use raddle_analyse::touch::Kind;
use raddle_model::lockset::HeldLock;
use raddle_model::{AccessKind, Address, LockMode};
use raddle_wire::log::HeapBlock;

/// A function that touches so many lines at once is not quick in any case.
const FEW_LINES: u64 = 4 * LINE;

/// What a lock guards begins behind it, as a rule: so many bytes from where it begins.
const BEHIND: u64 = size_of::<libc::pthread_mutex_t>() as u64;

impl Analysis {
    /// A hooked function touches memory: a few lines, in a simple way, as most calls do.
    pub fn touch(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        touching: Touching,
    ) -> bool {
        let Engine::Fast(fast) = &self.work().engine else { return false };
        let side = match touching.kind {
            AccessKind::Read => Side::Read,
            AccessKind::Write => Side::Write,
            _ => return false,
        };
        let (start, end) = (touching.address, touching.address.saturating_add(touching.length));
        let is_ours = is_for(probe, thread)
            && !probe.instrumentation.is_solo()
            && end - start <= FEW_LINES
            && fast.planes().covers(start, end);
        if !is_ours {
            return false;
        }
        if side == Side::Read && fast.planes().is_constant((start, end)) {
            return true;
        }
        lines(start, end)
            .all(|part| self.touch_line(fast, probe, thread, spot, (side, part), touching))
    }

    /// The same for what lies in one line.
    fn touch_line(
        &self,
        fast: &FastHybrid<Shadow>,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        (side, part): (Side, (u64, u64)),
        touching: Touching,
    ) -> bool {
        if thread.middle.as_ref().is_some_and(|middle| middle.is_full()) {
            self.look_back(thread);
        }
        let Some(standing) = thread.standing.take() else { return false };
        let stamped = !standing.is_undecided() && {
            thread.find_stack(spot.sp);
            let (stack, stack_end) = thread.stack_region;
            let on_own_stack = (stack..stack_end).contains(&part.0);
            let describe = || describe(fast, probe, thread, spot, touching);
            match fast.stamp_simply(&standing, side, part, on_own_stack, describe) {
                Simply::Known => true,
                Simply::Not => false,
                Simply::Stamped => {
                    if let Some(middle) = &mut thread.middle {
                        middle.note_for_later(side, part);
                    }
                    true
                }
            }
        };
        thread.standing = Some(standing);
        stamped
    }

    /// A lock was taken.
    pub fn take(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        (lock, mode): (Address, LockMode),
    ) -> bool {
        if !is_for(probe, thread) {
            return false;
        }
        if let (Engine::Fast(fast), Some(standing)) = (&self.work().engine, &thread.standing) {
            fast.planes().will_read(standing.slot(), lock.0.wrapping_add(BEHIND));
        }
        // Its place may have to be found by what is known of the stack.
        let stack = probe.stacks.capture(probe, thread, spot);
        let taken = HeldLock { lock, mode, place: spot.place, stack, life: 0 };
        self.follow(thread, |fast, thread| {
            let (Some(standing), Some(middle)) = (&thread.standing, &thread.middle) else {
                return false;
            };
            fast.take(standing, thread.id, taken, &middle.journal)
        })
    }

    /// A lock is about to be released.
    pub fn give(&self, probe: &Probe, thread: &mut ThreadState, lock: Address) -> bool {
        is_for(probe, thread)
            && self.follow(thread, |fast, thread| {
                let (Some(standing), Some(middle)) = (&thread.standing, &thread.middle) else {
                    return false;
                };
                fast.give(standing, thread.id, lock, &middle.journal)
            })
    }

    /// A block of the heap comes into being.
    pub fn allocate(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        (start, size): (Address, u64),
    ) -> bool {
        let work = self.work();
        let Engine::Fast(fast) = &work.engine else { return false };
        if !is_for(probe, thread) {
            return false;
        }
        self.look_back(thread);
        let bytes = (start.0, start.0.saturating_add(size));
        let is_simple =
            |thread: &ThreadState| Some(fast.allocate_simply(thread.standing.as_ref()?, bytes));
        if is_simple(thread) != Some(true) {
            return false;
        }
        let stack = probe.stacks.capture(probe, thread, spot);
        let (thread, place) = (thread.id, spot.place);
        work.heap.allocate(HeapBlock { start, size, thread, place, stack });
        true
    }

    /// A block of the heap is about to be given back.
    pub fn free(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        spot: Spot,
        start: Address,
    ) -> bool {
        let work = self.work();
        let Engine::Fast(fast) = &work.engine else { return false };
        if !is_for(probe, thread) {
            return false;
        }
        self.look_back(thread);
        let size = work.heap.size_of(start);
        let Some(standing) = thread.standing.take() else { return false };
        let (id, bytes) = (thread.id, (start.0, start.0.saturating_add(size)));
        let is_simple = fast.free_simply((id, &standing), bytes, || {
            let node = probe.stacks.frames(probe, thread, spot);
            describe_as(fast, probe, thread, (spot, node), (Kind::Free, size))
        });
        thread.standing = Some(standing);
        if is_simple {
            work.heap.free(start);
        }
        is_simple
    }

    /// Does something of which the thread stands elsewhere afterwards, if it can be done.
    fn follow(
        &self,
        thread: &mut ThreadState,
        act: impl FnOnce(&FastHybrid<Shadow>, &ThreadState) -> bool,
    ) -> bool {
        let Engine::Fast(fast) = &self.work().engine else { return false };
        self.look_back(thread);
        let done = act(fast, thread);
        if done {
            thread.counted.synchronisations += 1;
            self.load_standing(thread);
        }
        done
    }
}

/// Is what this thread does for a detector alone, and not in a process that nobody follows?
fn is_for(probe: &Probe, thread: &ThreadState) -> bool {
    probe.monitor.only_detects && thread.log().is_some()
}

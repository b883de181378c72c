//! The turn: asking the policy, handing it on, waiting for it.
//!
//! A thread without the turn waits on a word of its own: waking it wakes nobody else, and nobody
//! spins (both were measured; spinning before the wait was disastrous on two processors).

use super::stuck::Why;
use super::table::{Wait, Woken};
use super::{ALONE, QUANTUM, Scheduler, State, streams};
use crate::memory::kernel::{self, Descriptor};
use crate::probe::Probe;
use crate::thread::ThreadState;
use crate::trampoline::slot;
use raddle_dynamorio::process;
use raddle_model::ThreadId;
use raddle_schedule::{Decision, Point, Segment, Step, Who};
use raddle_wire::log::Record;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Segments written at once.
pub const BATCH: usize = 256;
/// Points after which those who wait by trying try again, while others run.
const RETRY_POINTS: u64 = 64;
/// Nanoseconds after which they do when nobody else can run.
const RETRY_TIME: u64 = 500_000;
/// Nanoseconds of a look at the outside when only descriptors are waited for.
const OUTSIDE_TIME: u64 = 20_000_000;
/// Nanoseconds by which sleepers may come early in an execution, all in all: a second is what a thread may
/// well have to wait for a processor; a program that gives up after longer is not to be blamed.
const LONGEST_HURRY: u64 = 1_000_000_000;

/// A thread's own word to wait on.
#[derive(Debug, Default)]
pub struct Turn {
    word: AtomicU32,
    /// A signal came while it waited.
    pub poked: AtomicBool,
}

impl Turn {
    /// Until it is this thread's turn.
    pub fn wait(&self, forks: &Forks) {
        if self.word.swap(0, Ordering::Acquire) != 0 {
            return;
        }
        process::while_suspendable(|| {
            while self.word.swap(0, Ordering::Acquire) == 0 {
                let before = forks.now();
                let is_poked = kernel::futex_wait(&self.word, 0);
                if is_poked && before.is_some_and(|before| forks.now() == Some(before)) {
                    self.poked.store(true, Ordering::Release);
                }
            }
        });
    }

    fn give(&self) {
        self.word.store(1, Ordering::Release);
        kernel::futex_wake(&self.word);
    }
}

/// Processes that threads make. The engine holds all threads meanwhile, by a signal of its own: who waits is not to
/// take that for one of the target's.
#[derive(Debug, Default)]
pub struct Forks {
    begun: AtomicU32,
    done: AtomicU32,
}

impl Forks {
    /// A thread is about to make one.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    /// It has made it, or could not.
    pub fn end(&self) {
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    /// How many there were so far; none while one is being made.
    fn now(&self) -> Option<u32> {
        let done = self.done.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == done).then_some(done)
    }
}

impl Scheduler {
    /// A scheduling point of the current thread, which is about to do `step`.
    pub(super) fn give_way(&self, probe: &Probe, thread: &mut ThreadState, step: Step) {
        let mut state = self.lock();
        let Some(entry) = state.entry(thread.id) else { return };
        entry.step = step;
        let turn = entry.turn.clone();
        let (mut state, next) = self.choose(probe, thread, state);
        if state.segments.len() >= BATCH {
            state.write(thread);
        }
        if next != thread.id {
            state = self.before_waiting(probe, thread, state);
            self.hand_to(state, next);
            self.await_turn(probe, thread, &turn);
        } else {
            drop(state);
        }
        self.after_choice(probe, thread);
    }

    /// Until it is this thread's turn. It may be asked, meanwhile, to look who can run next.
    pub(super) fn await_turn(&self, probe: &Probe, thread: &mut ThreadState, turn: &Turn) {
        loop {
            turn.wait(&self.forks);
            let mut state = self.lock();
            if state.driver.take_if(|driver| *driver == thread.id).is_none() {
                return;
            }
            let (state, next) = self.choose(probe, thread, state);
            if next == thread.id {
                return;
            }
            self.hand_to(state, next);
        }
    }

    /// The thread with the turn leaves for the kernel, and others may run. If nobody can at once, somebody
    /// who waits looks for who can next, for this one must go and cannot: time is to pass, and signals are to be
    /// sent, while it is away.
    pub(super) fn leave(&self, probe: &Probe, thread: &mut ThreadState) {
        let state = self.lock();
        if !state.table.runnable().is_empty() {
            let (state, next) = self.choose(probe, thread, state);
            let state = self.before_waiting(probe, thread, state);
            return self.hand_to(state, next);
        }
        let mut state = self.before_waiting(probe, thread, state);
        match state.table.who_waits_here() {
            Some(driver) => {
                state.driver = Some(driver);
                self.hand_to(state, driver);
            }
            None => {
                // From here on they are the kernel's to deliver: nobody is there to do it.
                state.send_before_leaving(probe, thread);
                // Nobody is left for whom time could pass but the one who leaves.
                if let Some(due) = state.timers.next() {
                    state.clock.pass_to(due);
                    state.fire_timers(probe);
                }
                state.unowned = true;
            }
        }
    }

    /// A debugger is to know where the thread waits.
    pub(super) fn before_waiting<'a>(
        &'a self,
        probe: &Probe,
        thread: &mut ThreadState,
        state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let Some(debugger) = &probe.debugger else { return state };
        drop(state);
        debugger.parks(probe, thread);
        self.lock()
    }

    /// The thread has the turn: a debugger may want to stop it before it does anything.
    fn after_choice(&self, probe: &Probe, thread: &mut ThreadState) {
        let Some(debugger) = &probe.debugger else { return };
        let met = self.lock().met.take().filter(|(chosen, _)| *chosen == thread.id);
        match met {
            Some((_, with)) => debugger.met(probe, thread, with),
            None => debugger.listen(probe, thread),
        }
    }

    /// Waits, while others run; returns why it stopped waiting.
    pub(super) fn block(
        &self,
        probe: &Probe,
        thread: &mut ThreadState,
        wait: Wait,
        deadline: Option<u64>,
        step: Step,
    ) -> Woken {
        let mut state = self.lock();
        if let Some(entry) = state.entry(thread.id)
            && entry.pending != 0
        {
            entry.interrupted_by = std::mem::take(&mut entry.pending);
            return Woken::Interrupted;
        }
        let is_outside = wait.is_outside();
        let is_recorded = is_outside && state.inputs.is_replaying();
        if let Some(entry) = state.entry(thread.id) {
            let (recorded, live) = ((Wait::Recorded, None), (wait, deadline));
            (entry.wait, entry.deadline) = if is_recorded { recorded } else { live };
            entry.waits_outside = is_outside && !is_recorded;
            entry.woken = Woken::Came(0);
            // What interrupted an earlier wait has nothing to do with this one.
            entry.turn.poked.store(false, Ordering::Release);
        }
        drop(state);
        self.give_way(probe, thread, step);
        self.lock().entry(thread.id).map_or(Woken::Came(0), |entry| entry.woken)
    }

    /// Gives the turn away for good, to whoever may have it.
    pub(super) fn hand_to(&self, state: MutexGuard<'_, State>, next: ThreadId) {
        let turn = state.table.get(next).map(|e| e.turn.clone());
        drop(state);
        if let Some(turn) = turn {
            turn.give();
        }
    }

    /// Asks the policy until somebody runs.
    pub(super) fn choose<'a>(
        &'a self,
        probe: &Probe,
        thread: &mut ThreadState,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, ThreadId) {
        loop {
            let replays = state.inputs.is_replaying();
            if replays {
                state.send_recorded(probe);
                state = self.await_return(state);
                state.wake_recorded();
                state.send_recorded(probe);
            } else {
                state.send_held(probe);
            }
            state.fire_timers(probe);
            let now = state.clock.now();
            state.table.wake_by_time(now);
            if !replays {
                state.wake_by_outside();
                state.note_woken(thread);
            }
            let runnable = state.table.runnable();
            if runnable.is_empty() {
                state = self.idle(probe, thread, state);
                continue;
            }
            if state.table.len() == 1 {
                state.current = Some(runnable[0].thread);
                state.lone += 1;
                return (state, runnable[0].thread);
            }
            let deadline = state.next_deadline();
            if state.is_hopeless(deadline) && !self.awaits_signals(&mut state) {
                state = self.stuck(probe, thread, state, Why::NoProgress);
            }
            if let Some(deadline) =
                deadline.filter(|_| state.clock.is_virtual() && state.stands_still())
            {
                state = self.pass_time(state, deadline);
                continue;
            }
            let can_wait = deadline.is_some() || state.table.awaits_recorded();
            let sleeper = deadline.filter(|d| self.may_hurry(&state, *d));
            let sleeper = sleeper.and_then(|d| state.table.due_at(d));
            let point = Point { current: state.current, runnable: &runnable, can_wait, sleeper };
            let decision = state.policy.choose(&point);
            state.points += 1;
            state.clock.tick();
            let chosen = match decision {
                Decision::Run(thread) => runnable.iter().find(|c| c.thread == thread).copied(),
                Decision::Wait => None,
            };
            state.record(decision, chosen.map(|c| c.next).as_ref());
            if let Some(divergence) = state.policy.divergence()
                && !state.diverged
            {
                thread.write(&Record::Diverged { what: divergence.to_string() });
                state.diverged = true;
            }
            match chosen {
                Some(chosen) => {
                    self.note_meetings(thread, &mut state, &runnable, chosen.thread);
                    state.current = Some(chosen.thread);
                    return (state, chosen.thread);
                }
                // In a replay it may be written until when: the wait of one of those who waited outside.
                None if state.knows_time() => {}
                None => {
                    if let Some(deadline) = state.next_deadline() {
                        state.hurried += deadline.saturating_sub(state.clock.now());
                        state = self.pass_time(state, deadline);
                    }
                }
            }
        }
    }

    /// In a replay, whoever is to go on now may still be in the kernel.
    fn await_return<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while state.awaits_return() {
            drop(state);
            process::while_suspendable(|| kernel::poll(&mut [], RETRY_TIME));
            state = self.lock();
        }
        state
    }

    /// Is it plausible that time passes until then though somebody could run? A busy machine keeps a
    /// thread waiting for a while, but not for ever.
    fn may_hurry(&self, state: &State, deadline: u64) -> bool {
        let until = deadline.saturating_sub(state.clock.now());
        self.early_time && state.clock.is_virtual() && state.hurried + until <= LONGEST_HURRY
    }

    /// Nobody can run: time passes, or somebody outside acts, or it is a deadlock.
    fn idle<'a>(
        &'a self,
        probe: &Probe,
        thread: &mut ThreadState,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        if let Some(debugger) = probe.debugger.as_ref().filter(|d| d.is_interrupted()) {
            drop(state);
            debugger.listen(probe, thread);
            state = self.lock();
        }
        if state.table.give_up_room() {
            return state;
        }
        if state.await_signal() {
            return state;
        }
        let waits_for = |wanted: fn(&Wait) -> bool| state.table.iter().any(|e| wanted(&e.wait));
        if state.inputs.is_replaying()
            && state.next_deadline().is_none()
            && waits_for(|w| matches!(w, Wait::Recorded))
        {
            return self.nothing_comes(thread, state);
        }
        let deadline = state.next_deadline();
        // Who waits for a signal, as threads do that handle them all, does not hold time up.
        let tries = waits_for(|w| matches!(w, Wait::Retry | Wait::Outside))
            || (deadline.is_none() && waits_for(|w| matches!(w, Wait::Signal)));
        // In a replay it would have been sent by now.
        let may_come = deadline.is_none() && !state.inputs.is_replaying();
        let tries = tries || (may_come && self.awaits_signals(&mut state));
        // What is read from within is written by who runs, or by a timer: time need not be real for it.
        let is_inside = |fd| state.inputs.is_inside(fd);
        let descriptors = state.table.iter().any(|e| match &e.wait {
            Wait::Descriptors(list) => {
                list.is_empty() || !list.iter().all(|one| is_inside(one.fd)) || deadline.is_none()
            }
            _ => false,
        });
        if !tries && !descriptors {
            return match deadline {
                Some(deadline) => self.pass_time(state, deadline),
                None => self.stuck(probe, thread, state, Why::NobodyCanRun),
            };
        }
        // Who acts outside acts in real time, and so does our clock meanwhile.
        let most = if tries { RETRY_TIME } else { OUTSIDE_TIME };
        let now = state.clock.now();
        let slice = deadline.map_or(most, |d| d.saturating_sub(now).min(most));
        let mut all: Vec<Descriptor> = state.table.iter().flat_map(|e| e.wait.list()).collect();
        drop(state);
        let before = kernel::clock(libc::CLOCK_MONOTONIC);
        process::while_suspendable(|| kernel::poll(&mut all, slice));
        let passed = kernel::clock(libc::CLOCK_MONOTONIC).saturating_sub(before);
        state = self.lock();
        if deadline.is_some() {
            state.clock.pass_to(now.saturating_add(passed.min(slice)));
        }
        for entry in state.table.iter_mut() {
            match entry.wait {
                Wait::Retry | Wait::Signal => entry.wake(Woken::Came(0)),
                Wait::Nothing | Wait::Outside | Wait::Recorded => {}
                Wait::Futex { .. } | Wait::Time | Wait::Descriptors(_) | Wait::Room { .. } => {
                    if entry.turn.poked.swap(false, Ordering::AcqRel) {
                        entry.wake(Woken::Interrupted);
                    }
                }
            }
        }
        state
    }

    /// Until the deadline; in real time if that is what the target sees.
    fn pass_time<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        deadline: u64,
    ) -> MutexGuard<'a, State> {
        if state.clock.is_virtual() {
            state.clock.pass_to(deadline);
            return state;
        }
        let left = deadline.saturating_sub(state.clock.now());
        drop(state);
        process::while_suspendable(|| kernel::poll(&mut [], left.min(OUTSIDE_TIME)));
        self.lock()
    }

    /// From now on, threads may be interrupted in what they compute.
    pub(super) fn be_interruptible(&self) {
        if !self.interruptible.swap(true, Ordering::Relaxed) {
            process::rebuild_everything();
        }
    }

    /// May a timer interrupt what a thread computes?
    pub(super) fn is_interruptible(&self) -> bool {
        self.interruptible.load(Ordering::Relaxed)
    }

    /// Has the thread been sent a signal, while it did not wait, that its handler has not taken yet?
    pub(super) fn take_signalled(&self, thread: ThreadId) -> bool {
        let mut state = self.lock();
        state.entry(thread).is_some_and(|entry| std::mem::take(&mut entry.signalled))
    }

    /// A thread has computed for a while. Who waits for a timer by computing would wait long if that
    /// were as quick as a point.
    pub(super) fn has_computed(&self) {
        let mut state = self.lock();
        if state.timers.interrupt() {
            state.clock.work();
        }
    }

    /// Lets the thread run on without points while it is alone.
    pub(super) fn is_alone(&self, probe: &Probe, thread: &mut ThreadState) -> bool {
        let mut state = self.lock();
        let alone = !self.is_on() || state.table.len() <= 1;
        let is_hopeless = alone && self.is_on() && state.is_hopeless(state.next_deadline());
        if is_hopeless && !self.awaits_signals(&mut state) {
            state = self.stuck(probe, thread, state, Why::NoProgress);
        }
        if alone && state.timers.interrupt() {
            state.clock.work();
            state.fire_timers(probe);
        }
        if alone && self.is_on() {
            state.take_alone(probe, thread);
        }
        let budget = match alone {
            // Who debugs may interrupt it, and so may a timer.
            true if probe.debugger.is_some() || state.timers.interrupt() => QUANTUM,
            true => ALONE * QUANTUM,
            false => state.quantum(),
        };
        thread.slots.set(slot::BUDGET, budget);
        if alone {
            thread.slots.set(slot::CONTROLLED, 0);
        }
        alone
    }
}

impl Wait {
    /// Does its end depend on somebody else than the target?
    pub fn is_outside(&self) -> bool {
        match self {
            Wait::Descriptors(_)
            | Wait::Room { .. }
            | Wait::Retry
            | Wait::Signal
            | Wait::Outside
            | Wait::Recorded => true,
            Wait::Nothing | Wait::Futex { .. } | Wait::Time => false,
        }
    }

    fn list(&self) -> Vec<Descriptor> {
        match self {
            Wait::Descriptors(list) => list.clone(),
            _ => Vec::new(),
        }
    }
}

impl State {
    /// When somebody stops waiting, or a timer goes off.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.table.next_deadline().into_iter().chain(self.timers.next()).min()
    }

    /// Lets those go whose descriptors are ready, and, now and then, those who try.
    fn wake_by_outside(&mut self) {
        let (now, tries) = (self.points, self.points.is_multiple_of(RETRY_POINTS));
        for entry in self.table.iter_mut() {
            let ready = match &mut entry.wait {
                Wait::Descriptors(list) => kernel::poll(list, 0) == Some(true),
                Wait::Room { reader, until } => {
                    until.is_some_and(|until| until <= now) || streams::has_room(*reader)
                }
                Wait::Retry | Wait::Signal => tries,
                _ => false,
            };
            if ready {
                entry.wake(Woken::Came(0));
            }
        }
    }

    fn record(&mut self, decision: Decision, step: Option<&Step>) {
        let ended = self.recorder.decided(decision, step);
        self.segments.extend(ended.map(row));
    }

    /// Writes the segments that are over.
    pub fn write(&mut self, thread: &mut ThreadState) {
        if self.segments.is_empty() {
            return;
        }
        let segments = std::mem::take(&mut self.segments);
        let first = self.written;
        self.written += segments.len() as u64;
        for (batch, rows) in segments.chunks(BATCH).enumerate() {
            let first = first + (batch * BATCH) as u64;
            thread.write(&Record::Schedule { first, segments: rows.to_vec() });
        }
    }

    /// Writes all segments, the one under way included.
    pub fn write_all(&mut self, thread: &mut ThreadState) {
        self.inputs.write(thread);
        let last = self.recorder.close();
        self.segments.extend(last.map(row));
        self.write(thread);
    }
}

fn row(segment: Segment) -> (ThreadId, u64, u32) {
    let who = match segment.who {
        Who::Thread(thread) => thread,
        Who::Nobody => ThreadId(0),
    };
    (who, segment.points, segment.digest)
}

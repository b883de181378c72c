//! The threads and what each waits for.

use super::progress::Seen;
use super::turn::Turn;
use crate::memory::kernel::Descriptor;
use crate::stacks::Spot;
use raddle_model::{Address, StackId, ThreadId};
use raddle_schedule::{Candidate, Step};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A thread.
#[derive(Debug)]
pub struct Entry {
    pub id: ThreadId,
    pub os_id: u32,
    pub turn: Arc<Turn>,
    /// What it does first when it runs.
    pub step: Step,
    pub wait: Wait,
    /// When it stops waiting, by our clock.
    pub deadline: Option<u64>,
    /// The futex in memory shared with others that it looks at again and again, and when it came; taken by who wakes it.
    pub shared: Option<(Futex, u64)>,
    /// Why it stopped waiting.
    pub woken: Woken,
    /// Where to write zero when it ends, and whom to wake.
    pub clear_id: u64,
    /// Its list of robust locks.
    pub robust: u64,
    /// Signals it does not want now.
    pub mask: u64,
    /// What it does not want otherwise, while it waits for signals with another mask.
    pub other_mask: Option<u64>,
    /// The signal that ended its last wait, if one did.
    pub interrupted_by: u32,
    /// A signal that was sent to it while it did not wait, and whose handler has not run yet; zero if none. It will
    /// not wait before.
    pub pending: u32,
    /// It waits for somebody outside, or did and has not been seen to go on.
    pub waits_outside: bool,
    /// In a replay: the call that it makes without the turn has returned.
    pub returned: bool,
    /// A timer has sent it a signal that it has not been seen to take.
    pub signalled: bool,
    /// How it was when it was looked at, to know if it gets on.
    pub seen: Seen,
    /// It is on its way out.
    pub leaving: bool,
    /// Where it is, when that was looked at, and by which calls it got there.
    pub spot: Option<Spot>,
    pub stack: StackId,
    /// Locks it holds and the one it asks for, as hooks tell.
    pub held: Vec<Held>,
    pub wanted: Option<Address>,
    /// Where it asks.
    pub asks_at: Option<Spot>,
}

/// A lock in a thread's hands.
#[derive(Debug, Clone, Copy)]
pub struct Held {
    pub lock: Address,
    /// Parts of the circle looked for that take their lock here, a bit each.
    pub parts: u64,
}

/// What a thread waits for.
#[derive(Debug, Clone)]
pub enum Wait {
    /// Nothing: it can run.
    Nothing,
    /// A wake of a futex. `arrival` orders those who wait.
    Futex { addresses: Vec<Futex>, arrival: u64 },
    /// Its deadline only.
    Time,
    /// One of these to be ready.
    Descriptors(Vec<Descriptor>),
    /// Room in a connection with another thread, which reads by this descriptor; of who would rather not wait,
    /// until this point at most, and not when nobody else can run.
    Room { reader: i32, until: Option<u64> },
    /// Something that is found out by trying again.
    Retry,
    /// A signal that it takes by asking for it, and finds out about by trying again.
    Signal,
    /// The kernel: it makes a call that we do not know how to wait for, without the turn.
    Outside,
    /// In a replay: the point at which it ended somebody's wait outside.
    Recorded,
}

/// A futex that is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Futex {
    pub address: u64,
    pub bits: u32,
}

/// Why a thread stopped waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// What it waited for came; of several futexes, this one.
    Came(usize),
    /// Its deadline came.
    Late,
    /// A signal came.
    Interrupted,
}

impl Entry {
    pub fn new(id: ThreadId, os_id: u32, clear_id: u64, mask: u64) -> Entry {
        Entry {
            id,
            os_id,
            turn: Arc::default(),
            step: Step::Start,
            wait: Wait::Nothing,
            deadline: None,
            shared: None,
            woken: Woken::Came(0),
            clear_id,
            robust: 0,
            mask,
            other_mask: None,
            interrupted_by: 0,
            pending: 0,
            waits_outside: false,
            signalled: false,
            returned: false,
            seen: Seen::default(),
            leaving: false,
            spot: None,
            stack: StackId::NONE,
            held: Vec::new(),
            wanted: None,
            asks_at: None,
        }
    }

    pub fn wake(&mut self, why: Woken) {
        self.wait = Wait::Nothing;
        self.deadline = None;
        self.woken = why;
    }

    fn futex(&self, address: u64, bits: u32) -> Option<(u64, usize)> {
        let Wait::Futex { addresses, arrival } = &self.wait else { return None };
        let is_it = |f: &Futex| f.address == address && f.bits & bits != 0;
        Some((*arrival, addresses.iter().position(is_it)?))
    }
}

/// All threads, by their numbers.
#[derive(Debug, Default)]
pub struct Table {
    entries: BTreeMap<ThreadId, Entry>,
    arrivals: u64,
}

impl Table {
    /// Nobody else can run: lets those go who would rather not wait for room. Were there any?
    pub fn give_up_room(&mut self) -> bool {
        let mut any = false;
        for entry in self.iter_mut() {
            if matches!(entry.wait, Wait::Room { until: Some(_), .. }) {
                entry.wake(Woken::Came(0));
                any = true;
            }
        }
        any
    }

    pub fn add(&mut self, entry: Entry) {
        self.entries.insert(entry.id, entry);
    }

    pub fn remove(&mut self, id: ThreadId) -> Option<Entry> {
        self.entries.remove(&id)
    }

    pub fn get(&self, id: ThreadId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub fn get_mut(&mut self, id: ThreadId) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.values_mut()
    }

    /// Who holds a lock.
    pub fn owner(&self, lock: Address) -> Option<&Entry> {
        self.iter().find(|e| e.held.iter().any(|held| held.lock == lock))
    }

    /// The thread with this id of the kernel's, if it is on its way out.
    pub fn leaving(&self, os_id: u32) -> Option<ThreadId> {
        self.iter().find(|e| e.os_id == os_id && e.leaving).map(|e| e.id)
    }

    /// Those who can run, by number.
    pub fn runnable(&self) -> Vec<Candidate> {
        let can_run = self.iter().filter(|e| matches!(e.wait, Wait::Nothing));
        can_run.map(|e| Candidate { thread: e.id, next: e.step }).collect()
    }

    /// The next number of those who come to wait.
    pub fn arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// When the first of those who wait stops waiting.
    pub fn next_deadline(&self) -> Option<u64> {
        let waiting = self.iter().filter(|e| !matches!(e.wait, Wait::Nothing));
        waiting.filter_map(|e| e.deadline).min()
    }

    /// Who stops waiting then.
    pub fn due_at(&self, deadline: u64) -> Option<ThreadId> {
        let is_due = |e: &&Entry| e.deadline == Some(deadline) && !matches!(e.wait, Wait::Nothing);
        self.iter().find(is_due).map(|e| e.id)
    }

    /// Somebody who stands in a wait of ours.
    pub fn who_waits_here(&self) -> Option<ThreadId> {
        let is_here = |e: &&Entry| !matches!(e.wait, Wait::Nothing | Wait::Outside);
        self.iter().find(is_here).map(|e| e.id)
    }

    /// In a replay: does somebody wait for what was recorded?
    pub fn awaits_recorded(&self) -> bool {
        self.iter().any(|e| matches!(e.wait, Wait::Recorded))
    }

    /// In a replay that is none any more: those who waited for what was recorded look for themselves.
    pub fn release_recorded(&mut self) {
        for entry in self.iter_mut() {
            let is_back = matches!(entry.wait, Wait::Outside) && entry.returned;
            if is_back || matches!(entry.wait, Wait::Recorded) {
                entry.returned = false;
                entry.wake(Woken::Came(0));
            }
        }
    }

    /// Lets those go whose time has come.
    pub fn wake_by_time(&mut self, now: u64) {
        for entry in self.iter_mut() {
            if !matches!(entry.wait, Wait::Nothing) && entry.deadline.is_some_and(|d| d <= now) {
                entry.wake(Woken::Late);
            }
        }
    }

    /// Wakes up to `count` of those who wait on a futex, the longest-waiting first.
    pub fn wake_futex(&mut self, address: u64, count: u64, bits: u32) -> u64 {
        let mut woken = 0;
        while woken < count {
            let Some((id, index)) = self.first_on(address, bits) else { break };
            if let Some(entry) = self.get_mut(id) {
                entry.wake(Woken::Came(index));
            }
            woken += 1;
        }
        woken
    }

    /// The same of those who wait on one that is shared with others. In a replay it is written when they go on.
    pub fn wake_shared(&mut self, key: u64, count: u64, bits: u32) -> u64 {
        let mut woken = 0;
        while woken < count {
            let waiting = self.entries.values_mut().filter_map(|entry| {
                let (futex, arrival) = entry.shared?;
                (futex.address == key && futex.bits & bits != 0).then_some((arrival, entry))
            });
            let Some((_, entry)) = waiting.min_by_key(|(arrival, _)| *arrival) else { break };
            entry.shared = None;
            if matches!(entry.wait, Wait::Retry) {
                entry.wake(Woken::Came(0));
            }
            woken += 1;
        }
        woken
    }

    /// The longest-waiting on a futex, and which of its futexes that is.
    pub fn first_on(&self, address: u64, bits: u32) -> Option<(ThreadId, usize)> {
        let waiting = self.iter().filter_map(|e| Some((e.futex(address, bits)?, e.id)));
        waiting.min().map(|((_, index), id)| (id, index))
    }

    /// Lets up to `count` of those who wait on a futex wait on another.
    pub fn requeue(&mut self, from: u64, to: u64, count: u64) -> u64 {
        let mut moved = 0;
        while moved < count {
            let Some((id, index)) = self.first_on(from, u32::MAX) else { break };
            if let Some(Wait::Futex { addresses, .. }) = self.get_mut(id).map(|e| &mut e.wait) {
                addresses[index].address = to;
            }
            moved += 1;
        }
        moved
    }
}

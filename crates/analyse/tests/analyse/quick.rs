//! Locks, channels and blocks of the heap that threads follow by themselves: when they may, when they must not, and that nothing is lost when
//! they really run.

use crate::fast::{START, SmallPlanes, access, comes_or_goes_simply, detector_with};
use raddle_analyse::Options;
use raddle_analyse::fast::{FastHybrid, Journal, Outcome, Standing};
use raddle_model::{
    AccessKind, Address, Event, EventKind, LockMode, ModuleId, Place, StackId, SyncObject, ThreadId,
};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::scope;

/// A detector, and threads that tell it what they do.
struct World(FastHybrid<SmallPlanes>);

/// One of them.
struct Actor<'a> {
    world: &'a World,
    thread: ThreadId,
    standing: Arc<Standing>,
    journal: Journal,
}

impl World {
    fn new(ticks: usize) -> World {
        World(detector_with(Options::default(), false, (0x1000, ticks)))
    }

    /// Thread 1, which is there from the beginning.
    fn first(&self) -> Actor<'_> {
        self.actor(1, EventKind::ThreadStart { creator: None, os_id: 1 })
    }

    fn actor(&self, number: u32, start: EventKind) -> Actor<'_> {
        let (thread, journal) = (ThreadId(number), Journal::default());
        self.0.event(&event(thread, 0, start), &journal);
        Actor { world: self, thread, standing: self.0.standing(thread), journal }
    }
}

impl<'a> Actor<'a> {
    fn creates(&mut self, number: u32) -> Actor<'a> {
        self.does(EventKind::ThreadCreate { child: ThreadId(number) });
        let start = EventKind::ThreadStart { creator: Some(self.thread), os_id: number };
        self.world.actor(number, start)
    }

    /// True if it went the quick way.
    fn does(&mut self, kind: EventKind) -> bool {
        let event = event(self.thread, 0, kind);
        let quick = comes_or_goes_simply(&self.world.0, &self.standing, &event)
            || self.world.0.quickly(&self.standing, &event, &self.journal);
        if !quick {
            self.world.0.event(&event, &self.journal);
        }
        quick
    }

    fn takes(&mut self, lock: u64) -> bool {
        self.does(EventKind::LockAcquired { lock: Address(lock), mode: LockMode::Exclusive })
    }

    fn shares(&mut self, lock: u64) -> bool {
        self.does(EventKind::LockAcquired { lock: Address(lock), mode: LockMode::Shared })
    }

    fn gives(&mut self, lock: u64) -> bool {
        self.does(EventKind::LockReleased { lock: Address(lock), mode: None })
    }

    fn sends(&mut self) -> bool {
        self.does(EventKind::Release { object: CHANNEL })
    }

    fn receives(&mut self) -> bool {
        self.does(EventKind::Acquire { object: CHANNEL })
    }

    fn allocates(&mut self, at: u64, size: u64) -> bool {
        self.does(EventKind::Allocate { address: Address(at), size })
    }

    fn frees(&mut self, at: u64, size: u64) -> bool {
        self.does(EventKind::Free { address: Address(at), size })
    }

    fn touches(&mut self, kind: AccessKind, at: u64) {
        let place = 1 + at * 2 + u64::from(kind == AccessKind::Write);
        let size = 8;
        let touch =
            event(self.thread, place, EventKind::Access { kind, address: Address(at), size });
        let side = match kind {
            AccessKind::Read => raddle_analyse::fast::Side::Read,
            _ => raddle_analyse::fast::Side::Write,
        };
        self.journal.note(side, (at, at + u64::from(size)));
        let who = (&*self.standing, &mut self.journal);
        let outcome = access(&self.world.0, who, &touch, kind, Address(at), size);
        assert_eq!(outcome, Outcome::Done);
    }

    fn writes(&mut self, at: u64) {
        self.touches(AccessKind::Write, at);
    }

    fn reads(&mut self, at: u64) {
        self.touches(AccessKind::Read, at);
    }
}

fn event(thread: ThreadId, place: u64, kind: EventKind) -> Event {
    let place = Place { module: ModuleId::NONE, offset: place };
    Event { order: 0, thread, place, stack: StackId::NONE, kind }
}

const LOCK: u64 = 0x9000;
const OTHER: u64 = 0x9100;
const CHANNEL: SyncObject = SyncObject::Channel(1);

#[test]
fn a_lock_that_was_released_is_followed_quickly() {
    let world = World::new(64);
    let mut one = world.first();
    assert!(!one.takes(LOCK) && !one.gives(LOCK), "it is new");
    // Who takes it in this way is known when it has been taken once since it is known.
    assert!(!one.takes(LOCK) && one.gives(LOCK));
    assert!(one.takes(LOCK) && one.gives(LOCK));
    let mut two = one.creates(2);
    assert!(two.takes(LOCK) && two.gives(LOCK));
}

#[test]
fn locks_within_locks_go_the_long_way() {
    let world = World::new(64);
    let mut one = world.first();
    for lock in [LOCK, OTHER, LOCK, OTHER] {
        one.takes(lock);
        one.gives(lock);
    }
    assert!(one.takes(LOCK) && !one.takes(OTHER) && !one.gives(OTHER) && one.gives(LOCK));
}

#[test]
fn readers_of_one_lock_go_beside_each_other() {
    let world = World::new(64);
    let mut one = world.first();
    let mut two = one.creates(2);
    for _ in 0..2 {
        one.shares(LOCK);
        one.gives(LOCK);
    }
    assert!(one.shares(LOCK) && two.shares(LOCK) && one.gives(LOCK) && two.gives(LOCK));
    assert!(one.shares(LOCK));
    assert!(!two.takes(LOCK), "somebody is in the way");
    assert!(!one.gives(LOCK), "it was taken away");
}

#[test]
fn what_is_sent_and_received_is_followed_quickly() {
    let world = World::new(64);
    let mut one = world.first();
    let mut two = one.creates(2);
    one.takes(OTHER);
    one.gives(OTHER);
    two.takes(OTHER);
    two.gives(OTHER);
    assert!(two.receives(), "there is nothing");
    assert!(!one.sends(), "it is new");
    one.writes(START);
    assert!(one.sends() && two.receives());
    two.writes(START);
    assert_eq!(world.0.found(), 0, "it was received");
    // What the sender does next is not.
    one.writes(START + 8);
    two.writes(START + 8);
    assert_eq!(world.0.found(), 1);
    one.takes(LOCK);
    assert!(!one.sends(), "what it was handed under the lock may have to be decided");
}

/// The detector knows what threads have sent and received by themselves when it next has to do with them.
#[test]
fn what_was_received_quickly_is_passed_on_the_long_way() {
    let world = World::new(2048);
    let mut one = world.first();
    let (mut two, mut three) = (one.creates(2), one.creates(3));
    one.sends();
    two.receives();
    one.writes(START);
    assert!(one.sends() && two.receives());
    two.does(EventKind::SemaphorePost { semaphore: Address(OTHER) });
    three.does(EventKind::SemaphoreAcquired { semaphore: Address(OTHER) });
    three.writes(START);
    assert_eq!(world.0.found(), 0);
    // So often, and then it is found out what is settled.
    let quick = (0..1000).take_while(|_| one.sends()).count();
    assert!((100..1000).contains(&quick), "{quick}");
}

/// A section that reads what another wrote comes after it; one that counts does not.
#[test]
fn what_is_handed_over_goes_the_long_way() {
    let world = World::new(64);
    let mut one = world.first();
    let mut two = one.creates(2);
    for who in [&mut one, &mut two] {
        for _ in 0..2 {
            who.takes(LOCK);
            who.gives(LOCK);
        }
    }
    assert!(one.takes(LOCK));
    one.writes(START);
    one.writes(START + 8);
    assert!(one.gives(LOCK) && two.takes(LOCK));
    two.reads(START);
    two.writes(START);
    assert!(two.gives(LOCK), "both count");
    assert!(two.takes(LOCK));
    two.reads(START + 8);
    assert!(!two.gives(LOCK), "one has handed it over");
    assert!(two.takes(LOCK));
    two.reads(START + 8);
    assert!(two.gives(LOCK), "that is known by now");
}

/// What the quick way publishes is there for who goes the long way, and the other way round.
#[test]
fn both_ways_tell_each_other() {
    for quick_first in [true, false] {
        let world = World::new(256);
        let mut one = world.first();
        let mut two = one.creates(2);
        for who in [&mut one, &mut two] {
            for _ in 0..2 {
                who.takes(LOCK);
                who.gives(LOCK);
            }
        }
        let (first, second) = (&mut one, &mut two);
        first.writes(START);
        let between = |who: &mut Actor<'_>, quick: bool| {
            if !quick {
                // Whoever holds another lock is not quick.
                who.takes(OTHER);
            }
            assert_eq!(who.takes(LOCK), quick);
            assert_eq!(who.gives(LOCK), quick);
            if !quick {
                who.gives(OTHER);
            }
        };
        between(first, quick_first);
        between(second, !quick_first);
        second.writes(START);
        world.0.end();
        let found = world.0.findings(0);
        // The order of the lock only: a prediction, not seen.
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].certainty, raddle_model::finding::Certainty::Predicted);
    }
}

#[test]
fn blocks_that_are_memory_alone_come_and_go_quickly() {
    let world = World::new(64);
    let mut one = world.first();
    let mut two = one.creates(2);
    for round in 0..3 {
        assert!(one.allocates(START, 100 - round));
        one.writes(START);
        one.writes(START + 88);
        assert!(one.frees(START, 100 - round), "round {round}");
    }
    assert!(!one.allocates(START, 1 << 20), "there is no shadow for all of it");
    assert_eq!(world.0.found(), 0);
    // It was given back: whoever touches it after that without having heard of it races.
    two.writes(START + 8);
    assert_eq!(world.0.found(), 1);
    assert!(one.allocates(START, 64), "it is new again");
    one.writes(START + 8);
    assert_eq!(world.0.found(), 1);
}

#[test]
fn who_gives_back_what_another_uses_goes_the_long_way() {
    let world = World::new(64);
    let mut one = world.first();
    let mut two = one.creates(2);
    assert!(one.allocates(START, 32) && one.allocates(START + 32, 32));
    two.writes(START + 8);
    two.reads(START + 32);
    assert!(!one.frees(START, 32));
    assert_eq!(world.0.found(), 1);
    assert!(!one.frees(START + 32, 32), "to read it is to use it");
    assert_eq!(world.0.found(), 2);
}

#[test]
fn blocks_in_which_a_lock_lies_go_the_long_way() {
    let world = World::new(64);
    let mut one = world.first();
    let lock = START + 64;
    assert!(one.allocates(START, 256));
    for _ in 0..3 {
        one.takes(lock);
        one.gives(lock);
    }
    assert!(one.takes(lock), "it is known");
    assert!(!one.frees(START, 256));
    assert!(!one.takes(lock), "it was another one");
    one.gives(lock);
    assert!(!one.allocates(START, 256), "and is one no more");
    assert!(!one.takes(lock));
    one.gives(lock);
    assert!(one.allocates(START + 128, 64), "beside it there is memory alone");
}

/// A neighbour in the same granule keeps what is known of it.
#[test]
fn a_block_that_ends_within_a_granule_leaves_the_rest_alone() {
    let world = World::new(64);
    let mut one = world.first();
    let mut two = one.creates(2);
    let write = |who: &mut Actor<'_>, address: u64| {
        let (kind, size) = (AccessKind::Write, 2);
        let touch = EventKind::Access { kind, address: Address(address), size };
        let touch = event(who.thread, address, touch);
        let ends = (&*who.standing, &mut who.journal);
        assert_eq!(access(&world.0, ends, &touch, kind, Address(address), size), Outcome::Done);
    };
    write(&mut one, START + 14);
    assert!(one.allocates(START, 12));
    assert!(!one.frees(START, 12), "what it did there may have to be kept");
    write(&mut two, START + 14);
    assert_eq!(world.0.found(), 1);
}

#[test]
fn where_blocks_share_granules_those_that_do_go_the_long_way() {
    let world = World::new(64);
    let mut one = world.first();
    assert!(one.allocates(START, 12) && one.frees(START, 12));
    assert!(!one.allocates(START + 12, 4), "it begins where another may have ended");
    assert!(!one.allocates(START, 12));
    assert!(one.allocates(START + 64, 16) && one.frees(START + 64, 16));
}

/// Threads that really run, with locks that really exclude: data under a lock never races, and data under none
/// does, while others allocate, post semaphores and take locks within locks.
#[test]
fn nothing_is_lost_when_threads_run() {
    const THREADS: u32 = 4;
    const ROUNDS: usize = 400;
    const LOCKS: usize = 8;
    for racy in [false, true] {
        let world = World::new(1 << 15);
        let mut first = world.first();
        let mut actors: Vec<Actor<'_>> = (2..2 + THREADS).map(|n| first.creates(n)).collect();
        let real: [Mutex<()>; LOCKS] = Default::default();
        let start = Barrier::new(THREADS as usize);
        scope(|scope| {
            for (number, actor) in actors.iter_mut().enumerate() {
                let (real, start) = (&real, &start);
                scope.spawn(move || {
                    start.wait();
                    for round in 0..ROUNDS {
                        let which = (round * 7 + number * 3) % LOCKS;
                        let held = real[which].lock().expect("nobody panics");
                        actor.takes(LOCK + which as u64 * 64);
                        let data = START + which as u64 * 64;
                        actor.reads(data);
                        actor.writes(data);
                        actor.gives(LOCK + which as u64 * 64);
                        drop(held);
                        match round % 16 {
                            3 => {
                                let semaphore = Address(0x8000 + number as u64);
                                actor.does(EventKind::SemaphorePost { semaphore });
                            }
                            7 => {
                                let (mine, size) =
                                    (START + 0x800 + number as u64 * 64, 40 + which as u64);
                                actor.allocates(mine, size);
                                actor.writes(mine + 8);
                                actor.frees(mine, size);
                            }
                            11 => {
                                // In the order of their addresses.
                                let (a, b) = (which.min(LOCKS - 2), LOCKS - 1);
                                let outer = real[a].lock().expect("nobody panics");
                                actor.takes(LOCK + a as u64 * 64);
                                let inner = real[b].lock().expect("nobody panics");
                                actor.takes(LOCK + b as u64 * 64);
                                actor.writes(START + b as u64 * 64);
                                actor.gives(LOCK + b as u64 * 64);
                                drop(inner);
                                actor.gives(LOCK + a as u64 * 64);
                                drop(outer);
                            }
                            _ => {}
                        }
                    }
                    if racy {
                        actor.writes(START + 0xf00);
                    }
                });
            }
        });
        world.0.end();
        let found = world.0.findings(0);
        assert_eq!(!found.is_empty(), racy, "{found:?}");
        assert!(found.iter().all(|f| f.address == Address(START + 0xf00)), "{found:?}");
    }
}

//! Random executions that could have happened: a small world in which threads take only locks that
//! are free, join only threads that can end, leave only barriers that are full.

use crate::dsl::events;
use crate::dsl::*;
use proptest::prelude::*;
use raddle_model::{AccessKind, Address, Event, EventKind, LockMode, ModuleId, Place, SyncObject};

/// The memory that scripts access: 16 bytes, of which the first 10 are a heap block.
pub const MEMORY: std::ops::Range<u64> = 0x1000..0x1010;
const BLOCK: u64 = 10;
/// Threads of a round of the barrier.
const ROUND: u64 = 2;
const THREADS: usize = 7;

/// What accesses a script may hold.
#[derive(Clone, Copy, PartialEq)]
pub enum Accesses {
    /// Reads and writes.
    Plain,
    /// All kinds.
    All,
}

/// How places are chosen.
#[derive(Clone, Copy, PartialEq)]
pub enum Places {
    /// Each event its own, its order; but a lock is always taken at the same, as programs do, so that it is
    /// known how.
    Distinct,
    /// From a few.
    Few,
}

/// Choices that [`world`] makes an execution of: thread, deed, and two details.
pub fn choices() -> impl Strategy<Value = Vec<(u8, u8, u8, u8)>> {
    prop::collection::vec(any::<(u8, u8, u8, u8)>(), 0..200)
}

#[derive(Clone, Default)]
struct Actor {
    started: bool,
    ended: bool,
    held: Vec<(u64, LockMode)>,
    waiting: bool,
    /// The round of the barrier it stands in.
    round: Option<u64>,
    creator: u32,
}

/// Makes an execution of choices; what is impossible is left out.
pub fn world(choices: &[(u8, u8, u8, u8)], accesses: Accesses, places: Places) -> Vec<Event> {
    let child = Actor { creator: 1, ..Actor::default() };
    let mut actors = vec![Actor { started: true, ..Actor::default() }, child.clone(), child];
    let mut steps = vec![t(1).begins(), t(1).creates(2), t(1).creates(3)];
    let barrier = Address(BAR);
    steps.push(t(1).does(EventKind::BarrierCreated { barrier, count: ROUND }));
    let (mut value, mut entered, mut once) = (0u32, 0u64, 0u8);
    for &(who, deed, detail, place) in choices {
        let index = who as usize % actors.len();
        let n = index as u32 + 1;
        if actors[index].ended {
            continue;
        }
        let free = |lock: u64, mode: LockMode| {
            actors.iter().enumerate().all(|(other, actor)| {
                let shared = |held: &LockMode| *held == LockMode::Shared && mode == *held;
                actor
                    .held
                    .iter()
                    .all(|(l, held)| *l != lock || shared(held) || (other == index && lock == N))
            })
        };
        let mutex_free = free(M, LockMode::Exclusive);
        let may_take = [
            (M, LockMode::Exclusive),
            (N, LockMode::Exclusive),
            (RW, LockMode::Exclusive),
            (RW, LockMode::Shared),
        ]
        .map(|(lock, mode)| free(lock, mode).then_some((lock, mode)));
        let threads = actors.len();
        let actor = &mut actors[index];
        if !actor.started {
            actor.started = true;
            steps.push(t(n).starts(actor.creator));
            continue;
        }
        if actor.waiting {
            if mutex_free {
                actor.waiting = false;
                actor.held.push((M, LockMode::Exclusive));
                let woken = detail % 4 != 0;
                steps.push(if woken { t(n).wakes(CV, M) } else { t(n).times_out(CV, M) });
            }
            continue;
        }
        if let Some(round) = actor.round {
            if entered >= (round + 1) * ROUND {
                actor.round = None;
                steps.push(t(n).leaves(BAR));
            }
            continue;
        }
        let step = match deed % 44 {
            0..=13 => {
                let sizes = [1, 2, 4, 8];
                let size = sizes[detail as usize % 4];
                let room = MEMORY.end - MEMORY.start - u64::from(size);
                let at = MEMORY.start + u64::from(detail / 4) % (room + 1);
                let kind = match (deed % 44, accesses) {
                    (0, Accesses::All) => AccessKind::AtomicUpdate,
                    (1, Accesses::All) => AccessKind::AtomicRead,
                    (2, Accesses::All) => AccessKind::AtomicWrite,
                    (0..=7, _) => AccessKind::Read,
                    _ => AccessKind::Write,
                };
                t(n).accesses(kind, at).sized(size)
            }
            14 if threads < THREADS => {
                actors.push(Actor { creator: n, ..Actor::default() });
                t(n).creates(threads as u32 + 1)
            }
            15 => {
                let other = detail as usize % threads;
                let can_end = {
                    let o = &actors[other];
                    o.started && o.held.is_empty() && !o.waiting && o.round.is_none()
                };
                if other == index || other == 0 || !can_end || actors[other].ended {
                    continue;
                }
                actors[other].ended = true;
                let joined = Some(raddle_model::ThreadId(other as u32 + 1));
                steps.push(t(other as u32 + 1).exits());
                if detail & 0x40 != 0 {
                    continue;
                }
                t(n).does(EventKind::ThreadJoined { joined, handle: 0 })
            }
            16..=24 => match may_take[detail as usize % 4] {
                Some((lock, mode)) => {
                    actor.held.push((lock, mode));
                    t(n).takes(lock, mode)
                }
                None => continue,
            },
            25..=32 if !actor.held.is_empty() => {
                let (lock, mode) = actor.held.remove(detail as usize % actor.held.len());
                let mode = (detail & 0x80 == 0).then_some(mode);
                t(n).does(EventKind::LockReleased { lock: Address(lock), mode })
            }
            33 => t(n).signals(CV),
            34 => match actor.held.iter().position(|(lock, _)| *lock == M) {
                Some(at) => {
                    actor.held.remove(at);
                    actor.waiting = true;
                    t(n).waits(CV, M)
                }
                None => continue,
            },
            35 => {
                actor.round = Some(entered / ROUND);
                entered += 1;
                t(n).enters(BAR)
            }
            36 => {
                value += 1;
                t(n).posts(SEM)
            }
            37 if value > 0 => {
                value -= 1;
                t(n).gets(SEM)
            }
            38 => {
                let address = Address(ONCE);
                once = (once + 1).min(3);
                match once {
                    1 => t(n).does(EventKind::OnceBegin { once: address }),
                    2 => t(n).does(EventKind::OnceEnd { once: address, done: true }),
                    _ => t(n).does(EventKind::OncePassed { once: address }),
                }
            }
            39 if detail % 2 == 0 => t(n).allocates(MEMORY.start, BLOCK),
            39 => {
                let address = Address(MEMORY.start);
                t(n).does(EventKind::Free { address, size: BLOCK })
            }
            40 | 41 => t(n).releases(SyncObject::Channel(1 + u32::from(detail % 2))),
            42 | 43 => t(n).acquires(SyncObject::Channel(1 + u32::from(detail % 2))),
            _ => continue,
        };
        steps.push(step.at(u64::from(place % 8)));
    }
    let mut events = events(&steps);
    if places == Places::Distinct {
        for event in &mut events {
            let offset = match event.kind {
                EventKind::LockAcquired { lock, .. } => lock.0,
                _ => event.order,
            };
            event.place = Place { module: ModuleId(1), offset };
        }
    }
    events
}

/// An execution as text, for the messages of failing tests.
pub fn show(events: &[Event]) -> String {
    let lines = events.iter().map(|e| format!("{} {} {:?}\n", e.order, e.thread, e.kind));
    lines.collect()
}

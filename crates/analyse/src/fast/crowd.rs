//! The crowd: threads for which there are no planes of their own.
//!
//! There is address space for a few slots only. All but the last belong to one chain each; the last one is shared by
//! every chain beyond them, the *members* of the crowd. Three things keep what they do apart:
//!
//! - *Ticks*. A tick of the crowd's slot belongs to exactly one member. Ticks are handed out in aligned *runs*, each of which
//!   stands for as many ticks of its member's chain, so whose a tick is can be looked up by its upper bits
//!   ([`Crowd::owner`]), without a lock, also by hand-written code.
//! - *Places*. A cell of the crowd's planes that was taken by one member is written by nobody else: to take an empty cell
//!   is one atomic exchange. Members who touch the granule after that write to an entry of their own in its *room*, a row of
//!   cells beside the planes with one for each member ([`crate::fast::Planes::room`]). So every place has one writer,
//!   as with planes of its own, and nothing that one member did is ever overwritten by another: stamp first, then look,
//!   holds as it does for everybody else.
//!   What is a thread's own older access, and not stood for by its newest, is kept behind the lock, as in
//!   [`crate::fast::special`]; there are no planes for it.
//!   Of a room it is known whether all in it was done under locks that are alike: who holds them, too, need not look.
//! - *Knowledge*. What a thread knows of the others in the weak order is one tick for each member
//!   ([`crate::fast::Standing::knows`]), not one for the slot.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// So many chains have room in the crowd. With more threads alive at once, some share a chain.
pub const MEMBERS: usize = 2048;
/// What is in a room was not all done under locks that are alike.
pub const MIXED: u32 = u32::MAX - 2;
/// Ticks of a run, as a power of two.
pub const RUN_BITS: u32 = 8;
/// More runs than this are many: the lock sets held in them take a MiB.
const MANY_RUNS: usize = 1024;
/// One more than the last run. Inserted code compares 24 bits of a tick, and those must tell members apart.
const RUNS: u32 = 1 << 16;

/// What everybody may know of the crowd at any time.
#[derive(Debug)]
pub struct Crowd {
    slot: usize,
    /// By run, whose it is.
    owners: Box<[AtomicU32]>,
    members: AtomicUsize,
}

impl Crowd {
    /// With nobody in it; the last of so many slots.
    pub fn new(slots: usize) -> Crowd {
        Crowd {
            slot: slots.saturating_sub(1),
            owners: (0..RUNS).map(|_| AtomicU32::new(0)).collect(),
            members: AtomicUsize::new(0),
        }
    }

    /// Its slot. Chains with smaller numbers have planes of their own.
    #[inline]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Whose tick it is: a member's number, counted from one. Zero if it is nobody's, or forgotten.
    #[inline]
    pub fn owner(&self, tick: u32) -> u32 {
        self.owners
            .get((tick >> RUN_BITS) as usize)
            .map_or(0, |owner| owner.load(Ordering::Acquire))
    }

    /// The same as a table by `tick >> 8`, for hand-written code.
    pub fn owners(&self) -> &[AtomicU32] {
        &self.owners
    }

    /// How many members there have been at once.
    #[inline]
    pub fn members(&self) -> usize {
        self.members.load(Ordering::Acquire)
    }
}

/// Which ticks of the crowd's slot are which of its members' chains. Behind the detector's lock.
#[derive(Debug)]
pub struct Runs {
    /// By run.
    runs: Vec<Option<Run>>,
    /// By member, its runs, in the order of time.
    members: Vec<Vec<(u64, u32)>>,
    /// Not to be handed out: when all was forgotten, somebody stood in it.
    taken: Vec<u32>,
    /// How often all was forgotten.
    age: u64,
    last: u32,
    /// More than this are many.
    many: usize,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    member: usize,
    /// Which of the chain's: its ticks without their lowest bits.
    of: u64,
}

impl Default for Runs {
    fn default() -> Runs {
        // Tick zero is none, so the first run is left out.
        let runs = vec![None];
        let (members, taken) = (Vec::new(), Vec::new());
        Runs { runs, members, taken, age: 0, last: RUNS - 1, many: MANY_RUNS }
    }
}

impl Runs {
    /// Forgets after so many runs: for tests.
    #[cfg(test)]
    fn up_to(last: u32) -> Runs {
        Runs { last, ..Runs::default() }
    }

    /// The tick that stands for a member's newest. Nothing if there are no more: then all must be forgotten.
    pub fn tick(&mut self, crowd: &Crowd, member: usize, tick: u64) -> Option<u32> {
        if self.members.len() <= member {
            self.members.resize_with(member + 1, Vec::new);
            crowd.members.fetch_max(member + 1, Ordering::AcqRel);
        }
        let of = tick >> RUN_BITS;
        let run = match self.members[member].last() {
            Some((last, run)) if *last == of => *run,
            _ => self.begin(crowd, Run { member, of })?,
        };
        Some(run << RUN_BITS | low(tick))
    }

    fn begin(&mut self, crowd: &Crowd, run: Run) -> Option<u32> {
        // As in ticks, no byte may be 0xff (see `cell`).
        let fits = |number: &u32| {
            number & 0xff != 0xff && number >> 8 != 0xff && !self.taken.contains(number)
        };
        let number = (self.runs.len() as u32..=self.last).find(fits)?;
        self.runs.resize(number as usize, None);
        self.runs.push(Some(run));
        self.members[run.member].push((run.of, number));
        crowd.owners[number as usize].store(run.member as u32 + 1, Ordering::Release);
        Some(number)
    }

    /// Forgets all. Whoever stands in a run goes on in it until it begins its next tick, and what it does until then is
    /// nobody's.
    pub fn forget(&mut self, crowd: &Crowd) {
        crowd.owners.iter().for_each(|owner| owner.store(0, Ordering::Release));
        let stand_in = self.members.iter().filter_map(|runs| runs.last().map(|(_, run)| *run));
        self.taken = stand_in.collect();
        self.members.iter_mut().for_each(Vec::clear);
        self.runs.truncate(1);
        self.age += 1;
    }

    /// Have so many been handed out that it is worth while to forget them, if nobody needs them?
    pub fn are_many(&self) -> bool {
        self.runs.len() > self.many
    }

    /// From how many on: for tests.
    pub fn are_many_from(&mut self, many: usize) {
        self.many = many;
    }

    /// Changes when all is forgotten.
    pub fn age(&self) -> u64 {
        self.age
    }

    /// The last tick that stands for this one of a member, or for an earlier one; zero if there is none.
    pub fn limit(&self, member: usize, tick: u64) -> u32 {
        let Some(runs) = self.members.get(member) else { return 0 };
        let until = runs.partition_point(|(of, _)| *of <= tick >> RUN_BITS);
        match runs[..until].last() {
            Some((of, run)) if *of == tick >> RUN_BITS => run << RUN_BITS | low(tick),
            Some((_, run)) => run << RUN_BITS | low(u64::MAX),
            None => 0,
        }
    }

    /// Which tick of which member this one stands for; nothing if that is forgotten.
    pub fn when(&self, tick: u32) -> Option<(usize, u64)> {
        let run = self.runs.get((tick >> RUN_BITS) as usize).copied().flatten()?;
        Some((run.member, run.of << RUN_BITS | u64::from(low(tick.into()))))
    }
}

fn low(tick: u64) -> u32 {
    tick as u32 & ((1 << RUN_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tick_is_one_members() {
        let (crowd, mut runs) = (Crowd::new(3), Runs::default());
        let mut seen = std::collections::BTreeMap::new();
        for tick in (1..3000u64).step_by(7) {
            for member in [0, 1, 5] {
                let stands = runs.tick(&crowd, member, tick + member as u64).unwrap();
                assert_eq!(seen.insert(stands, member), None);
                assert_eq!(runs.when(stands), Some((member, tick + member as u64)));
                assert_eq!(crowd.owner(stands), member as u32 + 1);
            }
        }
        assert_eq!((crowd.owner(0), crowd.members()), (0, 6));
    }

    #[test]
    fn a_limit_separates_what_is_known_from_what_is_not() {
        let (crowd, mut runs) = (Crowd::new(3), Runs::default());
        let ticks: Vec<(u64, u32)> = (1..2000)
            .step_by(3)
            .map(|tick| {
                runs.tick(&crowd, 1, tick);
                (tick, runs.tick(&crowd, 0, tick).unwrap())
            })
            .collect();
        for known in [0, 1, 255, 256, 700, 1999, u64::MAX] {
            let limit = runs.limit(0, known);
            assert!(ticks.iter().all(|(tick, stands)| (*tick <= known) == (*stands <= limit)));
        }
        assert_eq!(runs.limit(7, 10), 0);
    }

    #[test]
    fn what_is_forgotten_is_nobodys_and_those_who_stand_are_not_disturbed() {
        let (crowd, mut runs) = (Crowd::new(3), Runs::up_to(4));
        let stands = runs.tick(&crowd, 0, 5).unwrap();
        for block in 0..3 {
            assert!(runs.tick(&crowd, 1, block << RUN_BITS).is_some());
        }
        assert_eq!(runs.tick(&crowd, 1, 3 << RUN_BITS), None);
        runs.forget(&crowd);
        assert_eq!((crowd.owner(stands), runs.when(stands), runs.age()), (0, None, 1));
        for member in 1..3 {
            let next = runs.tick(&crowd, member, 9).unwrap();
            assert_ne!(next >> RUN_BITS, stands >> RUN_BITS);
        }
    }

    #[test]
    fn no_byte_of_a_tick_is_all_ones() {
        let (crowd, mut runs) = (Crowd::new(3), Runs::default());
        while let Some(tick) = runs.tick(&crowd, 0, (runs.runs.len() as u64) << RUN_BITS) {
            assert!(tick >> 8 & 0xff != 0xff && tick >> 16 & 0xff != 0xff && tick >> 24 == 0);
        }
        assert!(runs.runs.len() > 0xfe00);
    }
}

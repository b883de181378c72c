//! Which ticks of a thread belong to one critical section.
//!
//! Two sections of one lock do not overlap. So whoever has seen, under the lock, what a section wrote comes after
//! all of that section, and not only after the write. Most sections lie in one tick, and their end is that of
//! the write's tick; those with other locks, signals or posts within have several, and are kept here.

use raddle_model::clock::Stamp;
use raddle_model::{Address, LockMode};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Sections kept of a thread. What is handed over is mostly taken soon.
const KEPT: usize = 32;

/// The critical sections of a thread.
#[derive(Debug, Default)]
pub(super) struct Sections {
    /// Those it is in, and since when.
    open: SmallVec<[(Held, Stamp); 2]>,
    /// Those of several ticks that it has left, with their first and last ones.
    left: VecDeque<(Held, Stamp, u64)>,
}

/// A lock and how it is held.
type Held = (Address, LockMode);

impl Sections {
    /// A section begins in the tick `now`.
    pub(super) fn begin(&mut self, held: Held, now: Stamp) {
        self.open.retain(|((lock, _), _)| *lock != held.0);
        self.open.push((held, now));
    }

    /// The section of a lock ends with the tick `now`.
    pub(super) fn end(&mut self, lock: Address, now: Stamp) {
        if let Some(at) = self.open.iter().position(|((of, _), _)| *of == lock) {
            let (held, from) = self.open.swap_remove(at);
            self.keep(held, from, now);
        }
    }

    /// All sections end so.
    pub(super) fn end_all(&mut self, now: Stamp) {
        for (held, from) in std::mem::take(&mut self.open) {
            self.keep(held, from, now);
        }
    }

    fn keep(&mut self, held: Held, from: Stamp, now: Stamp) {
        if from.chain != now.chain || from.tick == now.tick {
            return;
        }
        if self.left.len() == KEPT {
            self.left.pop_front();
        }
        self.left.push_back((held, from, now.tick));
    }

    /// The last tick of the section that `stamp` lies in, of those whose lock `excludes` somebody.
    pub(super) fn end_of(&self, stamp: Stamp, excludes: impl Fn(Held) -> bool) -> Stamp {
        let around = self.left.iter().filter(|(held, from, to)| {
            from.chain == stamp.chain && (from.tick..=*to).contains(&stamp.tick) && excludes(*held)
        });
        let end = around.map(|(.., to)| *to).max().unwrap_or(stamp.tick);
        Stamp { tick: end, ..stamp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::clock::Chain;

    const LOCK: Held = (Address(8), LockMode::Exclusive);
    const INNER: Held = (Address(16), LockMode::Exclusive);

    fn at(tick: u64) -> Stamp {
        Stamp { chain: Chain(1), tick }
    }

    #[test]
    fn a_section_ends_where_its_lock_is_released() {
        let mut sections = Sections::default();
        sections.begin(LOCK, at(3));
        sections.begin(INNER, at(4));
        sections.end(INNER.0, at(4));
        sections.end(LOCK.0, at(6));
        let end = |tick, wanted: Held| sections.end_of(at(tick), |held| held == wanted).tick;
        assert_eq!([2, 3, 5, 6, 7].map(|tick| end(tick, LOCK)), [2, 6, 6, 6, 7]);
        assert_eq!(end(4, INNER), 4);
    }

    #[test]
    fn the_newest_are_kept() {
        let mut sections = Sections::default();
        for n in 0..=KEPT as u64 {
            sections.begin(LOCK, at(10 * n));
            sections.end_all(at(10 * n + 5));
        }
        let end = |tick| sections.end_of(at(tick), |_| true).tick;
        assert_eq!((end(1), end(11)), (1, 15));
    }
}

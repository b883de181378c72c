//! What critical sections have read and later ones overwrite: an element of a list that one thread walks, and that another
//! takes out of it and uses.
//!
//! Both hold the lock when they do so. Had the second come first, the first would not have met the element: what it did *in that
//! section* comes before what the second does after its own. What it did before its section it would have done in
//! either case; so this is no edge of the weak order, which would bring all of that along. Instead it is
//! remembered of a section which others have *withdrawn* what it had read, and an access of it races with nothing that
//! comes, in the weak order, after one of them. (A true dependence is an edge: [`crate::handover`].)
//!
//! Only links are withdrawn: memory in which the second leaves zero behind, or the address of something else
//! ([`crate::handover::Values`]). A value that is changed leads nobody astray. And nothing is withdrawn from who both reads and writes,
//! which is what two do who count. What the link itself is accessed by is not ordered by this: whoever looks for the element looks
//! there in either case. What else a link decided is not known: a section that looks at one by the way, which the other changes,
//! is ordered all the same. That misses predicted races, and no observed ones.

use crate::order::{after, bytes};
use raddle_model::clock::Stamp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;

/// Sections whose reads others have withdrawn, by each of their ticks. Of very many, the oldest are forgotten.
#[derive(Debug, Default)]
pub struct Withdrawn(Recent<Stamp, Withdrawers>);

/// The first section of each chain that overwrote a link, and the word that this is in.
type Withdrawers = SmallVec<[(Stamp, u64); 2]>;

/// So many of each section.
const WITHDRAWERS: usize = 8;

impl Withdrawn {
    /// A section has overwritten a link at this address, which another had read.
    pub fn add(&mut self, read: Stamp, by: Stamp, link: u64) {
        let (known, word) = (self.0.entry(read), link / bytes::WORD);
        let is_new = known.iter().all(|(one, of)| one.chain != by.chain || *of != word);
        if known.len() < WITHDRAWERS && is_new {
            known.push((by, word));
        }
    }

    /// The sections that have overwritten what this one had read, and not merely at this address.
    pub fn by(&self, read: Stamp, address: u64) -> impl Iterator<Item = Stamp> {
        let elsewhere = self.0.get(read).flatten();
        elsewhere.filter(move |(_, word)| *word != address / bytes::WORD).map(|(by, _)| *by)
    }
}

/// Ticks of a section on either side of the one in which it read something. It has several if it takes other locks besides.
const AROUND: usize = 16;

/// The ticks of the section that has this one: those around it that are `under` its lock, too.
pub fn section(read: Stamp, under: impl Fn(Stamp) -> bool) -> impl Iterator<Item = Stamp> {
    let is_under = move |tick: &u64| under(Stamp { tick: *tick, ..read });
    let later = std::iter::successors(Some(after(read.tick)), |tick| Some(after(*tick)));
    let earlier = (1..read.tick).rev();
    let mut ticks: SmallVec<[u64; 4]> = SmallVec::from_iter([read.tick]);
    ticks.extend(later.take(AROUND).take_while(&is_under));
    ticks.extend(earlier.take(AROUND).take_while(&is_under));
    ticks.into_iter().map(move |tick| Stamp { tick, ..read })
}

/// A table that does not grow for ever.
#[derive(Debug)]
pub struct Recent<K, V> {
    young: FxHashMap<K, V>,
    /// Those that were young before there were [`MANY`].
    old: FxHashMap<K, V>,
}

/// So many are kept, and perhaps as many again.
const MANY: usize = 1 << 14;

impl<K, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent { young: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl<K: Copy + Hash + Eq, V: Default> Recent<K, V> {
    /// The newest entry of this key, perhaps a new one.
    pub fn entry(&mut self, key: K) -> &mut V {
        if self.young.len() >= MANY {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.entry(key).or_default()
    }

    /// What is known by this key.
    pub fn get(&self, key: K) -> impl Iterator<Item = &V> {
        [&self.young, &self.old].into_iter().filter_map(move |age| age.get(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::clock::Chain;

    fn stamp(chain: u32, tick: u64) -> Stamp {
        Stamp { chain: Chain(chain), tick }
    }

    #[test]
    fn the_first_of_each_chain_has_withdrawn() {
        let mut withdrawn = Withdrawn::default();
        for (by, link) in [(stamp(2, 5), 64), (stamp(2, 9), 64), (stamp(3, 7), 72)] {
            withdrawn.add(stamp(1, 4), by, link);
        }
        assert!(withdrawn.by(stamp(1, 4), 80).eq([stamp(2, 5), stamp(3, 7)]));
        assert!(withdrawn.by(stamp(1, 4), 67).eq([stamp(3, 7)]), "of the link itself");
        assert_eq!(withdrawn.by(stamp(1, 5), 80).count(), 0);
    }

    #[test]
    fn a_section_reaches_as_far_as_its_lock_is_held() {
        let under = |stamp: Stamp| (10..=0x100).contains(&stamp.tick) && stamp.tick != 20;
        let ticks = |tick| {
            let mut all: Vec<u64> = section(stamp(1, tick), under).map(|one| one.tick).collect();
            all.sort();
            all
        };
        assert_eq!(ticks(12), (10..20).collect::<Vec<_>>());
        assert_eq!(ticks(21).first(), Some(&21));
        assert_eq!(ticks(0xfe)[AROUND..], [0xfe, 0x100], "0xff is no tick");
    }

    #[test]
    fn of_very_many_the_oldest_are_forgotten() {
        let mut recent: Recent<usize, usize> = Recent::default();
        for n in 0..5 * MANY {
            *recent.entry(n) = n;
            assert!(recent.get(n).eq([&n]));
            let before = n.saturating_sub(MANY - 1);
            assert!(recent.get(before).eq([&before]));
        }
        assert_eq!(recent.get(0).count(), 0);
        assert!(recent.young.len() + recent.old.len() <= 2 * MANY);
    }
}

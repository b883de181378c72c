//! What synchronisation objects hold, for many threads at once.
//!
//! Taking and releasing a lock is what synchronised programs do most, and two threads that take different locks
//! have nothing to tell each other; nor have those who write to and read from different channels. So each object lies behind a
//! [`Latch`] of its own, in lines of its own, and whoever knows all else that it takes may follow an object without stopping the
//! world ([`Objects`]; `fast` does). Where an object lies is found without any lock: threads that go by different objects write
//! nothing in common. Objects come and go only through a [`Register`], which one thread at a time has.
//!
//! They are found by a table of words with open addressing: a word has the upper half of the key's hash and the number of
//! the object's place. Who finds a word takes the latch of the place, and looks whether it is still the object's. Who
//! finds none believes it only if no word was moved meanwhile, as happens when objects go.

use super::Lock;
use crate::latch::{Latch, Patience};
use raddle_model::Address;
use rustc_hash::FxBuildHasher;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// The first table has so many words, as a power of two. Each further one has twice as many.
const FIRST_BITS: u32 = 6;
/// More tables than memory has room for.
const TABLES: usize = 26;
/// Places of the first chunk. Each further one has twice as many.
const FIRST_PLACES: usize = 64;
const CHUNKS: usize = 26;

/// The objects, for whoever follows one of them.
#[derive(Debug)]
pub struct Objects<K, V> {
    /// The last one in use has all objects; those before it had all when it came.
    tables: [OnceLock<Box<[AtomicU64]>>; TABLES],
    table: AtomicUsize,
    /// Grows before words of the table in use are moved, and again afterwards.
    moves: AtomicU64,
    places: [Chunk<K, V>; CHUNKS],
}

/// Places that come together.
type Chunk<K, V> = OnceLock<Box<[Place<K, V>]>>;

/// Where an object lies, or none. In lines of its own: threads write here by turns.
#[derive(Debug)]
#[repr(align(64))]
struct Place<K, V>(Latch<Kept<K, V>>);

/// What lies there. The object itself comes first, behind the latch.
#[derive(Debug)]
#[repr(C)]
struct Kept<K, V> {
    value: V,
    key: Option<K>,
}

impl<K, V: Default> Default for Kept<K, V> {
    fn default() -> Kept<K, V> {
        Kept { value: V::default(), key: None }
    }
}

/// A lock fills two lines.
const _: () = assert!(size_of::<Place<Address, Lock>>() == 128);

impl<K, V> Default for Objects<K, V> {
    fn default() -> Objects<K, V> {
        let objects = Objects {
            tables: [const { OnceLock::new() }; TABLES],
            table: AtomicUsize::new(0),
            moves: AtomicU64::new(0),
            places: [const { OnceLock::new() }; CHUNKS],
        };
        objects.tables[0].get_or_init(|| words(FIRST_BITS));
        objects
    }
}

fn words(bits: u32) -> Box<[AtomicU64]> {
    (0..1usize << bits).map(|_| AtomicU64::new(EMPTY)).collect()
}

const EMPTY: u64 = 0;

/// The word of the object with this hash at a place.
fn word(hash: u64, place: u32) -> u64 {
    hash >> 32 << 32 | (u64::from(place) + 1)
}

/// If a word may be that of an object with this hash: its place.
fn place_in(word: u64, hash: u64) -> Option<u32> {
    (word ^ hash >> 32 << 32).checked_sub(1).and_then(|place| u32::try_from(place).ok())
}

/// Where the word of an object with this hash belongs, in a table of so many. (Multiplied once more: the hash's upper half
/// is in the words themselves, and may be all that can be said of them.)
fn home(hash: u64, words: usize) -> usize {
    ((hash >> 32).wrapping_mul(0x9E37_79B9) >> (u32::BITS - words.trailing_zeros())) as usize
        & (words - 1)
}

impl<K: Copy + Hash + Eq, V> Objects<K, V> {
    /// Does something with an object, if it is known.
    pub fn with<R>(&self, object: K, act: impl FnOnce(&mut V) -> R) -> Option<R> {
        let hash = FxBuildHasher.hash_one(object);
        let mut patience = Patience::default();
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let table = self.table();
            let mut at = home(hash, table.len());
            loop {
                let word = table[at].load(Ordering::Acquire);
                if word == EMPTY {
                    break;
                }
                if let Some(place) = place_in(word, hash) {
                    let mut held = self.place(place).0.hold();
                    if held.key == Some(object) {
                        return Some(act(&mut held.value));
                    }
                }
                at = (at + 1) & (table.len() - 1);
            }
            fence(Ordering::Acquire);
            if moves.is_multiple_of(2) && self.moves.load(Ordering::Relaxed) == moves {
                return None;
            }
            patience.wait();
        }
    }

    fn table(&self) -> &[AtomicU64] {
        // The number of a table is told when it is there.
        self.tables[self.table.load(Ordering::Acquire)].get().map_or(&[], |words| words)
    }

    fn place(&self, number: u32) -> &Place<K, V> {
        let (chunk, at) = chunk_of(number);
        let Some(place) = self.places[chunk].get().and_then(|places| places.get(at)) else {
            unreachable!("a place has its number when it is there");
        };
        place
    }
}

/// In which chunk a place is, and where.
fn chunk_of(number: u32) -> (usize, usize) {
    let from_one = number as usize / FIRST_PLACES + 1;
    let chunk = from_one.ilog2() as usize;
    (chunk, number as usize - FIRST_PLACES * ((1 << chunk) - 1))
}

/// All objects of a kind.
#[derive(Debug)]
pub struct Register<K, V> {
    objects: Arc<Objects<K, V>>,
    /// Which there are, to find those in a stretch of memory.
    index: BTreeSet<K>,
    /// Places that are free again; and how many have ever been used.
    free: Vec<u32>,
    used: u32,
}

impl<K, V> Default for Register<K, V> {
    fn default() -> Register<K, V> {
        Register { objects: Arc::default(), index: BTreeSet::new(), free: Vec::new(), used: 0 }
    }
}

impl<K: Copy + Hash + Ord, V: Default> Register<K, V> {
    /// For those who follow objects by themselves.
    pub fn objects(&self) -> &Arc<Objects<K, V>> {
        &self.objects
    }

    /// Is it known?
    pub fn contains(&self, object: K) -> bool {
        self.with(object, |_| ()).is_some()
    }

    /// See [`Objects::with`].
    pub fn with<R>(&self, object: K, act: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.objects.with(object, act)
    }

    /// The same; from now on it is known.
    pub fn entry<R>(&mut self, object: K, act: impl FnOnce(&mut V) -> R) -> R {
        let mut act = Some(act);
        let mut once = |value: &mut V| act.take().map(|act| act(value));
        if let Some(done) = self.objects.with(object, &mut once).flatten() {
            return done;
        }
        let place = self.free_place();
        let mut held = self.objects.place(place).0.hold();
        held.key = Some(object);
        let done = once(&mut held.value);
        drop(held);
        self.index.insert(object);
        self.publish(object, place);
        match done {
            Some(done) => done,
            None => unreachable!("what is not known was not acted on"),
        }
    }

    /// Forgets an object.
    pub fn remove(&mut self, object: K) {
        if !self.index.remove(&object) {
            return;
        }
        let hash = FxBuildHasher.hash_one(object);
        let table = self.objects.table();
        let next = |at: usize| (at + 1) & (table.len() - 1);
        let mut at = home(hash, table.len());
        let place = loop {
            let word = table[at].load(Ordering::Relaxed);
            assert!(word != EMPTY, "what is known has a word");
            if let Some(place) = place_in(word, hash) {
                let mut held = self.objects.place(place).0.hold();
                if held.key == Some(object) {
                    *held = Kept::default();
                    break place;
                }
            }
            at = next(at);
        };
        self.free.push(place);
        // What was put behind its home because this place was taken moves up (Knuth 6.4, algorithm R).
        self.objects.moves.fetch_add(1, Ordering::AcqRel);
        let mut gap = at;
        loop {
            at = next(at);
            let word = table[at].load(Ordering::Relaxed);
            if word == EMPTY {
                break;
            }
            let distance = |from: usize| at.wrapping_sub(from) & (table.len() - 1);
            // The upper half of the hash is in the word.
            if distance(home(word, table.len())) >= distance(gap) {
                table[gap].store(word, Ordering::Release);
                gap = at;
            }
        }
        table[gap].store(EMPTY, Ordering::Release);
        self.objects.moves.fetch_add(1, Ordering::Release);
    }

    /// Those from one to before another.
    pub fn within(&self, Range { start, end }: Range<K>) -> impl Iterator<Item = K> + '_ {
        self.index.range(start..end.max(start)).copied()
    }

    /// Forgets them.
    pub fn forget(&mut self, objects: Range<K>) {
        let gone: Vec<K> = self.within(objects).collect();
        gone.into_iter().for_each(|object| self.remove(object));
    }

    fn free_place(&mut self) -> u32 {
        if let Some(place) = self.free.pop() {
            return place;
        }
        let (chunk, _) = chunk_of(self.used);
        self.objects.places[chunk].get_or_init(|| {
            let places = FIRST_PLACES << chunk;
            (0..places).map(|_| Place(Latch::default())).collect()
        });
        self.used += 1;
        self.used - 1
    }

    /// From now on it is found.
    fn publish(&mut self, object: K, place: u32) {
        let mut table = self.objects.table();
        // Less than half full: a word is found within a line, as a rule.
        if 2 * self.index.len() > table.len() {
            let number = self.objects.table.load(Ordering::Relaxed) + 1;
            let grown = words(FIRST_BITS + number as u32);
            let moved = table.iter().map(|word| word.load(Ordering::Relaxed));
            moved.filter(|word| *word != EMPTY).for_each(|word| put(&grown, word));
            table = self.objects.tables[number].get_or_init(|| grown);
            self.objects.table.store(number, Ordering::Release);
        }
        put(table, word(FxBuildHasher.hash_one(object), place));
    }
}

/// Puts a word where it is looked for.
fn put(table: &[AtomicU64], word: u64) {
    let mut at = home(word, table.len());
    while table[at].load(Ordering::Relaxed) != EMPTY {
        at = (at + 1) & (table.len() - 1);
    }
    table[at].store(word, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::thread::scope;

    #[test]
    fn what_lies_in_a_stretch_is_forgotten() {
        let mut all: Register<u64, u64> = Register::default();
        for at in [10, 20, 30] {
            all.entry(at, |_| ());
        }
        for elsewhere in [0..10, 31..60, 25..25] {
            all.forget(elsewhere);
        }
        assert!([10, 20, 30].into_iter().all(|at| all.contains(at)));
        all.forget(10..30);
        assert!(!all.contains(10) && !all.contains(20) && all.contains(30));
        all.remove(30);
        assert!(!all.contains(30) && all.index.is_empty());
    }

    /// Objects that come and go, beside a map that everybody trusts.
    #[test]
    fn what_is_known_is_found_and_nothing_else() {
        let (mut all, mut known) = (Register::<u64, u64>::default(), HashMap::new());
        let mut state = 1u64;
        for round in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Side by side in larger things, as locks are; and of all a few hundred at a time.
            let object = 0x5000_0000 + (state >> 33) % 700 * 48;
            if state >> 60 < 5 {
                all.remove(object);
                known.remove(&object);
            } else if state >> 60 < 10 {
                all.entry(object, |value| *value += round);
                *known.entry(object).or_insert(0) += round;
            } else {
                assert_eq!(all.with(object, |value| *value), known.get(&object).copied());
            }
        }
        assert_eq!(all.index.len(), known.len());
        assert!(all.used as usize <= 700, "places are used again: {}", all.used);
    }

    #[test]
    fn words_stand_near_their_homes() {
        let mut all: Register<u64, u64> = Register::default();
        (0..100_000).for_each(|n| all.entry(0x5000_0000 + n * 48, |_| ()));
        let table = all.objects.table();
        let far = |(at, word): (usize, &AtomicU64)| {
            let word = word.load(Ordering::Relaxed);
            (word != EMPTY).then(|| at.wrapping_sub(home(word, table.len())) & (table.len() - 1))
        };
        let distances: Vec<usize> = table.iter().enumerate().filter_map(far).collect();
        assert_eq!(distances.len(), 100_000);
        let sum: usize = distances.iter().sum();
        assert!(sum < 200_000, "on average {}", sum as f64 / 100_000.0);
    }

    #[test]
    fn hashes_of_one_word_are_told_apart_by_their_keys() {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        struct Alike(u8);
        impl Hash for Alike {
            fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
                hasher.write_u8(7);
            }
        }
        let mut all: Register<Alike, u8> = Register::default();
        (0..20).for_each(|n| all.entry(Alike(n), |value| *value = n));
        (0..20).step_by(3).for_each(|n| all.remove(Alike(n)));
        for n in 0..20 {
            assert_eq!(all.with(Alike(n), |value| *value), (n % 3 != 0).then_some(n));
        }
    }

    /// Threads that follow objects which stay find them at every moment, whatever else comes and goes; and those that are not
    /// there are never found.
    #[test]
    fn objects_are_found_while_others_come_and_go() {
        const STAY: u64 = 50;
        const ROUNDS: u64 = 20_000;
        let mut all: Register<u64, u64> = Register::default();
        (0..STAY).for_each(|n| all.entry(n * 48, |_| ()));
        let objects = Arc::clone(all.objects());
        let over = AtomicUsize::new(0);
        scope(|threads| {
            for first in 0..2 {
                let (objects, over) = (&objects, &over);
                threads.spawn(move || {
                    for n in (first..).step_by(7) {
                        if over.load(Ordering::Relaxed) != 0 {
                            break;
                        }
                        let here = objects.with(n % STAY * 48, |value| *value += 1);
                        assert!(here.is_some());
                        assert_eq!(objects.with(n % STAY * 48 + 8, |_| ()), None);
                    }
                });
            }
            for n in 0..ROUNDS {
                let passing = (STAY + n % 300) * 48;
                match n / 300 % 2 {
                    0 => all.entry(passing, |value| *value = n),
                    _ => all.remove(passing),
                }
            }
            over.store(1, Ordering::Relaxed);
        });
    }
}

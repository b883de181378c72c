//! Something about each thread of a process, of which there may be hundreds of thousands in its life: a server that starts
//! one for each request. Nearly all of them are alike (nameless, created at one place), so a thread costs a number of
//! four bytes, and what is different is kept once.

use raddle_model::ThreadId;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// So many threads have their numbers side by side. Threads are numbered one after the other.
const PAGE: u32 = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct PerThread<V> {
    /// By thread, which of the values it is, counted from one; zero if there is none.
    pages: BTreeMap<u32, Box<[u32; PAGE as usize]>>,
    values: Vec<V>,
    numbers: HashMap<V, u32>,
    known: usize,
}

impl<V> Default for PerThread<V> {
    fn default() -> Self {
        PerThread { pages: BTreeMap::new(), values: Vec::new(), numbers: HashMap::new(), known: 0 }
    }
}

impl<V: Clone + Eq + Hash> PerThread<V> {
    /// What is known of a thread.
    pub fn get(&self, thread: ThreadId) -> Option<&V> {
        let number = self.pages.get(&(thread.0 / PAGE))?[(thread.0 % PAGE) as usize];
        self.value(number)
    }

    /// From now on this is known of it.
    pub fn insert(&mut self, thread: ThreadId, value: V) {
        let number = match self.numbers.get(&value) {
            Some(number) => *number,
            None => {
                self.values.push(value.clone());
                let number = self.values.len() as u32;
                self.numbers.insert(value, number);
                number
            }
        };
        let page =
            self.pages.entry(thread.0 / PAGE).or_insert_with(|| Box::new([0; PAGE as usize]));
        let before = std::mem::replace(&mut page[(thread.0 % PAGE) as usize], number);
        self.known += usize::from(before == 0);
    }

    /// Of how many threads something is known.
    pub fn len(&self) -> usize {
        self.known
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = (ThreadId, &V)> {
        self.pages.iter().flat_map(move |(page, numbers)| {
            let value = move |(at, number): (usize, &u32)| {
                Some((ThreadId(page * PAGE + at as u32), self.value(*number)?))
            };
            numbers.iter().enumerate().filter_map(value)
        })
    }

    fn value(&self, number: u32) -> Option<&V> {
        self.values.get((number as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_equals_are_kept_once() {
        let mut known = PerThread::default();
        for thread in (1..=100_000).rev() {
            known.insert(ThreadId(thread), "worker");
        }
        known.insert(ThreadId(u32::MAX), "worker");
        known.insert(ThreadId(300), "main");
        assert_eq!(
            (known.get(ThreadId(300)), known.get(ThreadId(299))),
            (Some(&"main"), Some(&"worker"))
        );
        assert_eq!((known.get(ThreadId(0)), known.get(ThreadId(100_001))), (None, None));
        assert_eq!((known.len(), known.values.len()), (100_001, 2));
        let threads: Vec<u32> = known.iter().map(|(thread, _)| thread.0).collect();
        assert!(threads.is_sorted() && threads.len() == known.len());
        assert_eq!((threads[0], threads[100_000]), (1, u32::MAX));
    }
}

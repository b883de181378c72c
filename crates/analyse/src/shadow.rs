//! Shadow memory: what is known of each byte, kept per stretch of bytes of which the same is known.
//!
//! An access cuts stretches at its ends, so that neighbours never share what is known of them, and
//! neighbours that have come to know the same are joined again; a stretch of which nothing is known
//! (the default) costs nothing. A block copied or cleared at once stays one stretch, whatever its
//! size.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value for each byte of the address space.
#[derive(Debug)]
pub struct Shadow<T> {
    /// By first byte: one past the last, and the value. Stretches do not overlap or touch an equal
    /// neighbour.
    stretches: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Shadow<T> {
    fn default() -> Shadow<T> {
        Shadow { stretches: BTreeMap::new() }
    }
}

impl<T: Clone + Default + PartialEq> Shadow<T> {
    /// Changes the value of each of these bytes; `change` is called once for each stretch of them.
    pub fn update(&mut self, bytes: Range<u64>, mut change: impl FnMut(Range<u64>, &mut T)) {
        if bytes.is_empty() {
            return;
        }
        self.cut(bytes.start);
        self.cut(bytes.end);
        let pieces = self.pieces(bytes.clone());
        for piece in &pieces {
            let stretch =
                self.stretches.entry(piece.start).or_insert_with(|| (piece.end, T::default()));
            change(piece.clone(), &mut stretch.1);
        }
        for piece in &pieces {
            if self.stretches.get(&piece.start).is_some_and(|(_, value)| *value == T::default()) {
                self.stretches.remove(&piece.start);
            }
            self.sew(piece.start);
        }
        self.sew(bytes.end);
    }

    /// Forgets these bytes.
    pub fn clear(&mut self, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        self.cut(bytes.start);
        self.cut(bytes.end);
        let starts: Vec<u64> = self.stretches.range(bytes).map(|(start, _)| *start).collect();
        for start in starts {
            self.stretches.remove(&start);
        }
    }

    /// What is known of a byte.
    pub fn get(&self, byte: u64) -> T {
        match self.stretches.range(..=byte).next_back() {
            Some((_, (end, value))) if byte < *end => value.clone(),
            _ => T::default(),
        }
    }

    /// How many stretches are kept.
    pub fn len(&self) -> usize {
        self.stretches.len()
    }

    /// Is nothing known of any byte?
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The stretches of `bytes`, which has been cut out, and the gaps between them.
    fn pieces(&self, bytes: Range<u64>) -> Vec<Range<u64>> {
        let mut pieces = Vec::new();
        let mut at = bytes.start;
        for (start, (end, _)) in self.stretches.range(bytes.clone()) {
            if at < *start {
                pieces.push(at..*start);
            }
            pieces.push(*start..*end);
            at = *end;
        }
        if at < bytes.end {
            pieces.push(at..bytes.end);
        }
        pieces
    }

    /// Makes `at` a border between stretches.
    fn cut(&mut self, at: u64) {
        let Some((_, (end, value))) = self.stretches.range_mut(..at).next_back() else { return };
        if at < *end {
            let rest = (*end, value.clone());
            *end = at;
            self.stretches.insert(at, rest);
        }
    }

    /// Joins the stretches on both sides of the border `at`, if they are equal.
    fn sew(&mut self, at: u64) {
        let Some((right_end, right)) = self.stretches.get(&at) else { return };
        let right_end = *right_end;
        let Some((&left_start, (left_end, left))) = self.stretches.range(..at).next_back() else {
            return;
        };
        if *left_end != at || left != right {
            return;
        }
        self.stretches.remove(&at);
        if let Some((end, _)) = self.stretches.get_mut(&left_start) {
            *end = right_end;
        }
    }
}

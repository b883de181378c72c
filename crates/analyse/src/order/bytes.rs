//! Some bytes of memory, by the words they lie in: what critical sections touch is mostly whole words, and each would be eight
//! bytes to remember and to look for.

use rustc_hash::FxHashMap;
use std::ops::Range;

/// Bytes of a word.
pub const WORD: u64 = 8;

/// Some bytes of a word, a bit for each.
pub type Part = u8;

/// A word, by number, and some of its bytes.
pub type Piece = (u64, Part);

/// A set of bytes.
#[derive(Debug, Default)]
pub struct ByteSet(FxHashMap<u64, Part>);

impl ByteSet {
    /// Adds all of a stretch.
    pub fn add(&mut self, bytes: Range<u64>) {
        for (word, part) in words(bytes) {
            *self.0.entry(word).or_default() |= part;
        }
    }

    /// Those of a word.
    pub fn part(&self, word: u64) -> Part {
        self.0.get(&word).copied().unwrap_or_default()
    }

    /// All of them, word by word.
    pub fn words(&self) -> impl Iterator<Item = Piece> {
        self.0.iter().map(|(word, part)| (*word, *part))
    }

    /// How many words have some.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A stretch, word by word.
#[inline]
pub fn words(Range { start, end }: Range<u64>) -> impl Iterator<Item = Piece> {
    let last = if start < end { end.div_ceil(WORD) } else { start / WORD };
    (start / WORD..last).map(move |word| {
        let (from, to) = (start.max(word * WORD) % WORD, (end - word * WORD).min(WORD));
        (word, (Part::MAX << from) & (Part::MAX >> (WORD - to)))
    })
}

/// Each of some bytes of a word, by its address.
pub fn each((word, part): Piece) -> impl Iterator<Item = u64> {
    (0..WORD).filter(move |at| part >> at & 1 == 1).map(move |at| word * WORD + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_comes_back_byte_by_byte() {
        for start in 96..105 {
            for end in start..start + 20 {
                let all: Vec<u64> = words(start..end).flat_map(each).collect();
                assert_eq!(all, (start..end).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn bytes_are_added_to_those_of_their_word() {
        let mut set = ByteSet::default();
        set.add(8..10);
        set.add(15..17);
        assert_eq!((set.part(1), set.part(2), set.part(3)), (0b1000_0011, 1, 0));
        assert_eq!((set.len(), set.words().flat_map(each).count()), (2, 4));
    }
}

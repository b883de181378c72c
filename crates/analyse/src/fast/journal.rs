//! What a thread touched last.
//!
//! Which signal a waiter was waiting for is told by what critical sections read and write
//! ([`crate::order`]'s conditions), and plain accesses are no events here. But every access that is
//! new to its segment is stamped, and a critical section begins a segment; so a thread notes what it
//! stamps, in a ring, and at a signal or a wait the detector looks back to where the section began.

use super::Side;
use super::cell::{Bytes, GRANULE, LINE, WHOLE};
use std::ops::Range;

/// Accesses that a ring holds. A section that makes more is not told apart by them.
pub const LENGTH: usize = 256;

/// The newest accesses of a thread. Written by its thread only, in the probe also by assembly.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Journal {
    /// How many were ever noted.
    pub count: u64,
    /// How often a read met a write of another thread that only a lock of both kept from racing with it:
    /// something may have been handed over ([`crate::handover`]). The read's note is marked ([`Noted::has_met`]). Counted by the
    /// assembly, too; what else sees such a read, and does not know its note, tells [`super::Standing`].
    pub handed: u64,
    /// Where the thread's stack is: what it writes there says nothing to others.
    pub stack: (u64, u64),
    pub ring: [Noted; LENGTH],
}

/// An access, as it is noted.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Noted {
    /// The first granule's address; its lowest bit is set for a read, the next for one that has met a write ([`MET`]).
    pub at: u64,
    /// The bytes from there on.
    pub bytes: u64,
}

/// In [`Noted::at`]: see [`Journal::handed`].
pub const MET: u64 = 2;

impl Default for Journal {
    fn default() -> Journal {
        Journal { count: 0, handed: 0, stack: (0, 0), ring: [Noted::default(); LENGTH] }
    }
}

impl Noted {
    /// Which side.
    pub fn side(self) -> Side {
        if self.at & 1 == 0 { Side::Write } else { Side::Read }
    }

    /// Is it a read that met a write of another thread, as far as its note was looked at?
    pub fn has_met(self) -> bool {
        self.at & MET != 0
    }

    /// The number of the line that it lies in, if it lies in one.
    pub fn line(self) -> Option<u64> {
        let (line, ahead) = (self.at / LINE, self.at % LINE / GRANULE * GRANULE);
        (self.bytes.leading_zeros() as u64 >= ahead).then_some(line)
    }

    /// The granules touched, and which of their bytes.
    pub fn granules(self) -> impl Iterator<Item = (u64, Bytes)> {
        let mut left = self.bytes;
        std::iter::from_fn(move || {
            let n = (left != 0).then(|| u64::from(left.trailing_zeros()) / GRANULE)?;
            let bytes = (left >> (n * GRANULE)) as Bytes & WHOLE;
            left &= !(u64::from(WHOLE) << (n * GRANULE));
            Some((self.at / GRANULE + n, bytes))
        })
    }

    /// The bytes, counted from the first granule of another note on: those of them that it could have.
    pub fn bytes_beside(self, other: Noted) -> u64 {
        let from = |noted: Noted| noted.at & !(GRANULE - 1);
        let shift = |by: u64| u32::try_from(by).ok().filter(|by| *by < u64::BITS);
        match from(self).checked_sub(from(other)) {
            Some(ahead) => shift(ahead).map_or(0, |ahead| self.bytes << ahead),
            None => shift(from(other) - from(self)).map_or(0, |behind| self.bytes >> behind),
        }
    }
}

impl Journal {
    /// One more access; of a long one, the part that fits.
    pub fn note(&mut self, side: Side, (start, end): (u64, u64)) {
        let first = start & !(GRANULE - 1);
        let length = end.saturating_sub(start).min(u64::from(u64::BITS) - (start - first));
        let bytes = u64::MAX.checked_shr(u64::BITS - length as u32).unwrap_or(0) << (start - first);
        let at = first | u64::from(side == Side::Read);
        self.ring[self.count as usize % LENGTH] = Noted { at, bytes };
        self.count += 1;
    }

    /// The same for one in one line, noted from the line's beginning on.
    pub fn note_in_line(&mut self, side: Side, (start, end): (u64, u64)) {
        let line = start & !(LINE - 1);
        let length = end.saturating_sub(start).min(LINE - (start - line));
        let bytes = u64::MAX.checked_shr(u64::BITS - length as u32).unwrap_or(0) << (start - line);
        let at = line | u64::from(side == Side::Read);
        self.ring[self.count as usize % LENGTH] = Noted { at, bytes };
        self.count += 1;
    }

    /// The read of this number has met a write of another thread: see [`Journal::handed`].
    pub fn meet(&mut self, number: u64) {
        self.ring[number as usize % LENGTH].at |= MET;
        self.handed += 1;
    }

    /// Is everything from number `from` on still there?
    pub fn is_whole(&self, from: u64) -> bool {
        from >= self.count.saturating_sub(LENGTH as u64)
    }

    /// What was noted from number `from` on, with its number.
    pub fn noted(&self, from: u64) -> impl Iterator<Item = (u64, Noted)> {
        let oldest = self.count.saturating_sub(LENGTH as u64);
        let noted = |number: u64| (number, self.ring[number as usize % LENGTH]);
        (from.max(oldest)..self.count).map(noted)
    }

    /// What was touched from number `from` up to `to`, as runs of bytes: `touched` is called with the
    /// side and each. False if some of it is no longer there.
    pub fn between(&self, from: u64, to: u64, mut touched: impl FnMut(Side, Range<u64>)) -> bool {
        for (_, noted) in self.noted(from).take_while(|(number, _)| *number < to) {
            let side = noted.side();
            if side == Side::Write && (self.stack.0..self.stack.1).contains(&noted.at) {
                continue;
            }
            for (granule, bytes) in noted.granules() {
                let first = granule * GRANULE + u64::from(bytes.trailing_zeros());
                let last = granule * GRANULE + u64::from(bytes.ilog2());
                touched(side, first..last + 1);
            }
        }
        self.is_whole(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(journal: &Journal, from: u64) -> (bool, Vec<(Side, Range<u64>)>) {
        let mut all = Vec::new();
        let whole = journal.between(from, journal.count, |side, bytes| all.push((side, bytes)));
        (whole, all)
    }

    #[test]
    fn what_was_touched_comes_back_granule_by_granule() {
        let mut journal = Journal::default();
        journal.note(Side::Read, (0x1003, 0x1009));
        journal.note(Side::Write, (0x2000, 0x2001));
        let read = [0x1003..0x1008, 0x1008..0x1009].map(|r| (Side::Read, r));
        let written = (Side::Write, 0x2000..0x2001);
        assert_eq!(touched(&journal, 1), (true, vec![written.clone()]));
        assert_eq!(touched(&journal, 0).1, [&read[..], &[written]].concat());
    }

    #[test]
    fn notes_are_laid_beside_each_other() {
        let mut journal = Journal::default();
        journal.note(Side::Read, (0x1008, 0x1010));
        journal.note_in_line(Side::Write, (0x100c, 0x1018));
        journal.note(Side::Write, (0x2000, 0x2008));
        let [read, written, elsewhere] = [0, 1, 2].map(|n: usize| journal.ring[n]);
        assert_eq!((read.bytes, written.bytes_beside(read)), (0xff, 0xfff0));
        assert_eq!(read.bytes_beside(written), 0xff00);
        assert_eq!((elsewhere.bytes_beside(read), read.bytes_beside(elsewhere)), (0, 0));
        assert!(written.granules().eq([(0x1008 / GRANULE, 0xf0), (0x1010 / GRANULE, 0xff)]));
    }

    #[test]
    fn of_a_long_access_the_part_that_fits() {
        let mut journal = Journal::default();
        journal.note(Side::Write, (0x1002, 0x9000));
        let (_, parts) = touched(&journal, 0);
        assert_eq!((parts[0].1.start, parts.last().unwrap().1.end), (0x1002, 0x1040));
        journal.note(Side::Write, (0x1002, 0x1002));
        assert_eq!(touched(&journal, 1).1, []);
    }

    #[test]
    fn the_oldest_are_forgotten_and_that_is_said() {
        let mut journal = Journal::default();
        for n in 0..LENGTH as u64 + 1 {
            journal.note(Side::Read, (4 * n, 4 * n + 4));
        }
        let (whole, all) = touched(&journal, 0);
        assert_eq!((whole, all.len(), all[0].1.start), (false, LENGTH, 4));
        assert!(touched(&journal, 1).0);
    }

    #[test]
    fn what_a_thread_writes_to_its_stack_is_nobody_elses_business() {
        let mut journal = Journal { stack: (0x1000, 0x2000), ..Journal::default() };
        journal.note(Side::Write, (0x1ff8, 0x2000));
        journal.note(Side::Read, (0x1ff8, 0x1ffc));
        assert_eq!(touched(&journal, 0).1, [(Side::Read, 0x1ff8..0x1ffc)]);
    }
}

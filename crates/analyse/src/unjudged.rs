//! What the program asks not to be judged: accesses between annotations that say so, memory whose
//! races it declares harmless, everything while detection is switched off.
//!
//! Unjudged accesses are not remembered either, so they race with nothing, then or later. Their
//! synchronisation still counts, unless that is what the thread asked to be ignored.

use raddle_model::{AccessKind, Event, EventKind, Ignored, ThreadId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Unjudged {
    /// Disjoint stretches of memory: first byte, and one past the last.
    benign: BTreeMap<u64, u64>,
    /// How often each thread has asked, and not taken it back.
    asked: HashMap<(ThreadId, Ignored), u32>,
    /// Detection is switched off for all.
    off: bool,
}

impl Unjudged {
    /// Follows one event.
    pub fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::BenignRace { address, size } => {
                self.add(address.0..address.0.saturating_add(*size));
            }
            EventKind::IgnoreBegin { what } => {
                *self.asked.entry((event.thread, *what)).or_default() += 1;
            }
            EventKind::IgnoreEnd { what } => {
                if let Some(times) = self.asked.get_mut(&(event.thread, *what)) {
                    *times -= 1;
                    if *times == 0 {
                        self.asked.remove(&(event.thread, *what));
                    }
                }
            }
            EventKind::DetectionSwitched { on } => self.off = !on,
            EventKind::ThreadExit => self.asked.retain(|(thread, _), _| *thread != event.thread),
            _ => {}
        }
    }

    /// Is an access of this kind by this thread, now, not to be judged?
    pub fn access(&self, thread: ThreadId, kind: AccessKind) -> bool {
        let asked = |what| self.asked.contains_key(&(thread, what));
        self.off
            || !self.asked.is_empty()
                && match kind {
                    AccessKind::Read | AccessKind::AtomicRead | AccessKind::SpinRead => {
                        asked(Ignored::Reads)
                    }
                    AccessKind::Write | AccessKind::AtomicWrite => asked(Ignored::Writes),
                    AccessKind::AtomicUpdate => asked(Ignored::Reads) && asked(Ignored::Writes),
                }
    }

    /// Is what this thread does to be no synchronisation?
    pub fn synchronisation(&self, thread: ThreadId) -> bool {
        !self.asked.is_empty() && self.asked.contains_key(&(thread, Ignored::Synchronisation))
    }

    /// Does nobody ask for anything to be left out but races on certain memory?
    pub fn is_calm(&self) -> bool {
        !self.off && self.asked.is_empty()
    }

    /// Are races on this byte declared harmless?
    pub fn is_benign(&self, byte: u64) -> bool {
        let before = self.benign.range(..=byte).next_back();
        before.is_some_and(|(_, end)| byte < *end)
    }

    /// What of these stretches is to be judged.
    pub fn judged(&self, stretches: Vec<Range<u64>>) -> Vec<Range<u64>> {
        if self.benign.is_empty() {
            return stretches;
        }
        let mut judged = Vec::new();
        for stretch in stretches {
            let mut from = stretch.start;
            for benign in self.overlapping(&stretch) {
                if from < benign.start {
                    judged.push(from..benign.start);
                }
                from = from.max(benign.end);
            }
            if from < stretch.end {
                judged.push(from..stretch.end);
            }
        }
        judged
    }

    /// Memory comes or goes: what was said of it no longer holds.
    pub fn forget(&mut self, bytes: &Range<u64>) {
        for benign in self.overlapping(bytes) {
            self.benign.remove(&benign.start);
            if benign.start < bytes.start {
                self.benign.insert(benign.start, bytes.start);
            }
            if bytes.end < benign.end {
                self.benign.insert(bytes.end, benign.end);
            }
        }
    }

    fn add(&mut self, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        let (mut start, mut end) = (bytes.start, bytes.end);
        for benign in self.overlapping(&bytes) {
            (start, end) = (start.min(benign.start), end.max(benign.end));
            self.benign.remove(&benign.start);
        }
        self.benign.insert(start, end);
    }

    /// Benign stretches that share a byte with these, in order.
    fn overlapping(&self, bytes: &Range<u64>) -> Vec<Range<u64>> {
        if bytes.is_empty() || self.benign.is_empty() {
            return Vec::new();
        }
        let before = self.benign.range(..bytes.start).next_back();
        let inside = self.benign.range(bytes.clone());
        before
            .into_iter()
            .chain(inside)
            .map(|(start, end)| *start..*end)
            .filter(|benign| benign.end > bytes.start)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set of bytes.
        #[test]
        fn benign_stretches_are_a_set_of_bytes(
            steps in prop::collection::vec((any::<bool>(), 0_u64..60, 0_u64..12), 1..30),
            asked in (0_u64..60, 0_u64..20),
        ) {
            let mut unjudged = Unjudged::default();
            let mut bytes = BTreeSet::new();
            for (add, start, length) in steps {
                let range = start..start + length;
                match add {
                    true => {
                        unjudged.add(range.clone());
                        bytes.extend(range);
                    }
                    false => {
                        unjudged.forget(&range);
                        bytes.retain(|byte| !range.contains(byte));
                    }
                }
            }
            let stretch = asked.0..asked.0 + asked.1;
            let judged: Vec<u64> =
                unjudged.judged(vec![stretch.clone()]).into_iter().flatten().collect();
            let expected: Vec<u64> = stretch.filter(|byte| !bytes.contains(byte)).collect();
            prop_assert_eq!(judged, expected);
        }
    }
}

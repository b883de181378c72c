//! Feeding a detector: the events of all threads, one at a time, in one order.
//!
//! The detector is the plain one, behind a lock: exact, and slow on programs that touch much shared
//! memory. An access that repeats one of the same segment (same instruction, same address, no
//! synchronisation of this thread in between) tells it nothing new and is left out before the lock:
//! whatever races with the second races with the first.

use crate::thread::ThreadState;
use raddle_analyse::{Analyser, ConditionRule, Detector, DetectorKind, MsmLength, Options};
use raddle_model::{Address, Event, EventKind, Family};
use raddle_wire::log::{HeapBlock, Record};
use raddle_wire::options::{DetectorChoice, Rules};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// A detector at work.
#[derive(Debug)]
pub struct Analysis {
    choice: DetectorChoice,
    rules: Rules,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    detector: Detector,
    next_order: u64,
    /// Findings the command has been told of.
    reported: usize,
    heap: BTreeMap<u64, HeapBlock>,
    accesses: u64,
    synchronisations: u64,
    locks: FxHashSet<Address>,
}

impl State {
    fn new(choice: DetectorChoice, rules: Rules) -> State {
        let kind = match choice {
            DetectorChoice::Hybrid => DetectorKind::Hybrid,
            DetectorChoice::HappensBefore => DetectorKind::HappensBefore,
            DetectorChoice::HelgrindShort => DetectorKind::HelgrindPlus(MsmLength::Short),
            DetectorChoice::HelgrindLong => DetectorKind::HelgrindPlus(MsmLength::Long),
        };
        State {
            detector: kind.detector(Options {
                conditions: match rules.precise_conditions {
                    true => ConditionRule::WriteRead,
                    false => ConditionRule::AllSignallers,
                },
                lock_touched: rules.lock_touched,
                ..Options::default()
            }),
            next_order: 0,
            reported: 0,
            heap: BTreeMap::new(),
            accesses: 0,
            synchronisations: 0,
            locks: FxHashSet::default(),
        }
    }

    fn block_of(&self, address: Address) -> Option<HeapBlock> {
        let (_, block) = self.heap.range(..=address.0).next_back()?;
        (address.0 - block.start.0 < block.size).then_some(*block)
    }

    fn record(&self, number: usize) -> Record {
        let finding = self.detector.findings()[number].clone();
        let block = self.block_of(finding.address);
        Record::Finding { number: number as u32, finding, block }
    }

    /// Keeps the heap and the tallies.
    fn note(&mut self, event: &Event) {
        match event.kind {
            EventKind::Access { .. } | EventKind::Range { .. } => self.accesses += 1,
            EventKind::Allocate { address, size } => {
                let block = HeapBlock {
                    start: address,
                    size,
                    thread: event.thread,
                    place: event.place,
                    stack: event.stack,
                };
                self.heap.insert(address.0, block);
            }
            EventKind::LockAcquired { lock, .. } => {
                self.synchronisations += 1;
                self.locks.insert(lock);
            }
            _ if event.kind.family() == Family::Sync => self.synchronisations += 1,
            _ => {}
        }
    }
}

impl Analysis {
    /// A detector of this kind.
    pub fn new(choice: DetectorChoice, rules: Rules) -> Analysis {
        Analysis { choice, rules, state: Mutex::new(State::new(choice, rules)) }
    }

    /// Begins anew, in a forked child.
    pub fn restart(&self) {
        *self.lock() = State::new(self.choice, self.rules);
    }

    /// One more event; new findings are reported at once.
    pub fn event(&self, thread: &mut ThreadState, event: &mut Event) {
        let mut state = self.lock();
        event.order = state.next_order;
        state.next_order += 1;
        state.note(event);
        state.detector.event(event);
        let found = state.detector.findings().len();
        let news: Vec<Record> = (state.reported..found).map(|n| state.record(n)).collect();
        state.reported = found;
        if let EventKind::Free { address, .. } = event.kind {
            state.heap.remove(&address.0);
        }
        drop(state);
        news.iter().for_each(|record| thread.write(record));
    }

    /// Reports the final counts.
    pub fn finish(&self, last: &mut ThreadState) {
        let state = self.lock();
        for number in 0..state.reported {
            last.write(&state.record(number));
        }
        last.write(&Record::Looked {
            accesses: state.accesses,
            synchronisations: state.synchronisations,
            locks: state.locks.len() as u64,
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A thread's memory of accesses made since its last synchronisation: a table in which a newer
/// access takes the place of an older one.
#[derive(Debug, Default)]
pub struct Recent {
    /// Address, and segment and site; allocated when first used.
    rows: Vec<(u64, u64)>,
    segment: u32,
}

const RECENT_ROWS: usize = 1 << 14;

impl Recent {
    /// The thread synchronised: what it did before may be ordered now.
    pub fn next_segment(&mut self) {
        self.segment = self.segment.wrapping_add(1);
        if self.segment == 0 {
            self.rows.clear();
        }
    }

    /// Was this access made before in this segment? Remembers it if not.
    pub fn is_repeated(&mut self, site: u32, address: Address) -> bool {
        if self.rows.is_empty() {
            self.rows.resize(RECENT_ROWS, (u64::MAX, 0));
            self.segment = self.segment.max(1);
        }
        let row = (address.0, u64::from(self.segment) << 32 | u64::from(site));
        let hash = (address.0 ^ u64::from(site) << 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &mut self.rows[(hash >> 50) as usize % RECENT_ROWS];
        let repeated = *slot == row;
        *slot = row;
        repeated
    }
}

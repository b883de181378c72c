//! The detectors a user can choose from, behind one enum.

use crate::execution::Execution;
use crate::handover::Values;
use crate::helgrind::{HelgrindPlus, MsmLength};
use crate::hybrid::{History, Hybrid};
use crate::order::{ConditionRule, Orders};
use raddle_model::Event;
use raddle_model::finding::Finding;
use std::ops::Range;

/// Watches an execution, event by event, in the order of [`Event::order`].
pub trait Analyser {
    /// One more event.
    fn event(&mut self, event: &Event);

    /// There is code that spins on these bytes, though it may not have run: what their writer does next
    /// is told from what the write announces, even if nobody waits for it yet.
    fn spun_on(&mut self, bytes: Range<u64>);

    /// There are no more events.
    fn end(&mut self) {}

    /// What was found so far. Findings are only added and their counts only grow; a predicted one
    /// may become observed.
    fn findings(&self) -> &[Finding];
}

/// Which detector (`--detector`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DetectorKind {
    /// `hybrid`: observed and predicted races.
    #[default]
    Hybrid,
    /// `hb`: observed races only.
    HappensBefore,
    /// `helgrind+ --states short|long`: the state machines of `seeds/000…`.
    HelgrindPlus(MsmLength),
}

/// What the detectors have in common to choose.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whom a waiter comes after (`--condvars`).
    pub conditions: ConditionRule,
    /// Atomics rule 1 of the design: memory touched by an atomic instruction is a synchronisation
    /// variable, so plain reads of it acquire, and are no race with atomic updates.
    pub lock_touched: bool,
    /// Work handed over under a lock is ordered ([`crate::handover`]), where races are predicted.
    pub handovers: bool,
    /// What memory holds, which decides some of it.
    pub values: Values,
    /// What [`Hybrid`] remembers of a location.
    pub history: History,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            conditions: ConditionRule::default(),
            lock_touched: true,
            handovers: true,
            values: Values::default(),
            history: History::default(),
        }
    }
}

/// A detector at work.
#[derive(Debug)]
pub enum Detector {
    /// Compares pairs of accesses: `hybrid` and `hb`.
    Pairs(Hybrid),
    /// Keeps a state per location: `helgrind+`.
    States(HelgrindPlus),
}

impl DetectorKind {
    /// A new one of this kind.
    pub fn detector(self, options: Options) -> Detector {
        let orders = Orders::new(options.conditions, options.lock_touched);
        let execution = Execution::new(orders, options.lock_touched);
        // A cycle is predicted: no deadlock was observed, or there would be no more to say.
        let execution = match self {
            DetectorKind::HappensBefore => execution,
            DetectorKind::Hybrid | DetectorKind::HelgrindPlus(_) => execution.with_lock_order(),
        };
        match self {
            DetectorKind::Hybrid => {
                let execution = match options.handovers {
                    true => execution.with_handovers(options.values),
                    false => execution,
                };
                Detector::Pairs(Hybrid::new(execution, options.history, false))
            }
            DetectorKind::HappensBefore => {
                Detector::Pairs(Hybrid::new(execution, options.history, true))
            }
            DetectorKind::HelgrindPlus(length) => {
                Detector::States(HelgrindPlus::new(execution, length))
            }
        }
    }
}

impl Analyser for Detector {
    fn event(&mut self, event: &Event) {
        match self {
            Detector::Pairs(hybrid) => hybrid.event(event),
            Detector::States(helgrind) => helgrind.event(event),
        }
    }

    fn spun_on(&mut self, bytes: Range<u64>) {
        match self {
            Detector::Pairs(hybrid) => hybrid.spun_on(bytes),
            Detector::States(helgrind) => helgrind.spun_on(bytes),
        }
    }

    fn end(&mut self) {
        match self {
            Detector::Pairs(hybrid) => hybrid.end(),
            Detector::States(helgrind) => helgrind.end(),
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Detector::Pairs(hybrid) => hybrid.findings(),
            Detector::States(helgrind) => helgrind.findings(),
        }
    }
}

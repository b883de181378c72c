//! One order for what many threads wrote.

use raddle_model::Event;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Puts the events of all threads back into their total order.
///
/// A thread numbers an event and then writes it, so the log of a running target has gaps for an
/// instant; an event is let through when all before it have come.
#[derive(Debug, Default)]
pub struct Merger {
    waiting: BinaryHeap<Reverse<ByOrder>>,
    next: u64,
}

#[derive(Debug)]
struct ByOrder(Event);

impl PartialEq for ByOrder {
    fn eq(&self, other: &Self) -> bool {
        self.0.order == other.0.order
    }
}
impl Eq for ByOrder {}
impl PartialOrd for ByOrder {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ByOrder {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.order.cmp(&other.0.order)
    }
}

impl Merger {
    /// Takes an event in.
    pub fn push(&mut self, event: Event) {
        self.waiting.push(Reverse(ByOrder(event)));
    }

    /// The next event of the total order, if it has come.
    pub fn pop(&mut self) -> Option<Event> {
        if self.waiting.peek()?.0.0.order != self.next {
            return None;
        }
        self.next += 1;
        self.waiting.pop().map(|e| e.0.0)
    }

    /// The next event that ever came: for the end of a log, where a killed target leaves gaps.
    pub fn pop_last(&mut self) -> Option<Event> {
        let event = self.waiting.pop()?.0.0;
        self.next = event.order + 1;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::{EventKind, ModuleId, Place, StackId, ThreadId};

    fn event(order: u64) -> Event {
        Event {
            order,
            thread: ThreadId(1),
            place: Place { module: ModuleId(1), offset: 0x10 },
            stack: StackId::NONE,
            kind: EventKind::ThreadExit,
        }
    }

    #[test]
    fn a_gap_holds_events_back_until_the_end() {
        let mut merger = Merger::default();
        merger.push(event(2));
        merger.push(event(0));
        assert_eq!(merger.pop().unwrap().order, 0);
        assert!(merger.pop().is_none());
        assert_eq!(merger.pop_last().unwrap().order, 2);
    }
}

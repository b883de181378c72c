//! What "confirmed" rests on: two threads that stand at conflicting accesses of the watched pair at
//! once.

use crate::{Access, Candidate, Side, Step};
use raddle_model::ThreadId;

/// Two threads at conflicting accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meeting {
    /// At the first place of the pair; of one place, the lower number.
    pub first: (ThreadId, Access),
    /// At the second.
    pub second: (ThreadId, Access),
}

/// Every meeting among those who can run. The two accesses must be the pair's: two threads at the
/// first place alone do not confirm it.
pub fn meetings(runnable: &[Candidate]) -> impl Iterator<Item = Meeting> + '_ {
    let standing = runnable.iter().enumerate().filter_map(|(i, c)| match c.next {
        Step::Access(access) => Some((i, c.thread, access)),
        _ => None,
    });
    standing.flat_map(move |(i, thread, access)| {
        runnable[i + 1..].iter().filter_map(move |other| match other.next {
            Step::Access(next) => meet((thread, access), (other.thread, next)),
            _ => None,
        })
    })
}

fn meet(a: (ThreadId, Access), b: (ThreadId, Access)) -> Option<Meeting> {
    if !a.1.conflicts(&b.1) {
        return None;
    }
    match (a.1.side, b.1.side) {
        (Side::First, Side::Second) | (Side::Both, Side::Both) => {
            Some(Meeting { first: a, second: b })
        }
        (Side::Second, Side::First) => Some(Meeting { first: b, second: a }),
        _ => None,
    }
}

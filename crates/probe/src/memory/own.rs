//! Mappings that we have made in the target for ourselves, beside what the engine gives us: they are no
//! memory of its.

use raddle_schedule::told::{minus, whole_pages};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

static OWN: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());
/// Somebody will ask.
static WANTED: AtomicBool = AtomicBool::new(false);

/// From here on it is noted what is ours. Only where threads run one at a time: a process that is copied while
/// somebody makes a note would wait for the end of that for ever.
pub fn note() {
    WANTED.store(true, Ordering::Relaxed);
}

fn own() -> MutexGuard<'static, Vec<Range<u64>>> {
    OWN.lock().unwrap_or_else(|e| e.into_inner())
}

/// This is ours from here on.
pub fn add(start: u64, length: usize) {
    if WANTED.load(Ordering::Relaxed) {
        own().push(whole_pages(start, length as u64));
    }
}

/// The mapping that begins here is given back.
pub fn remove(start: u64) {
    if WANTED.load(Ordering::Relaxed) {
        own().retain(|ours| ours.start != start);
    }
}

/// What is left of a region without what is ours.
pub fn without(region: Range<u64>) -> Vec<Range<u64>> {
    let mut left = vec![region];
    for ours in own().iter() {
        left = left.into_iter().flat_map(|part| minus(part, ours)).collect();
    }
    left
}

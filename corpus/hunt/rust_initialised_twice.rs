// Whoever finds it not initialised does it.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

static DONE: AtomicBool = AtomicBool::new(false);
static TIMES: AtomicU32 = AtomicU32::new(0);

fn initialise() {
    if !DONE.load(Ordering::Acquire) {
        TIMES.fetch_add(1, Ordering::Relaxed);
        DONE.store(true, Ordering::Release);
    }
}

fn main() {
    thread::scope(|scope| {
        scope.spawn(initialise);
        scope.spawn(|| {
            work(LATE);
            initialise();
        });
    });
    assert_eq!(TIMES.load(Ordering::Relaxed), 1);
}

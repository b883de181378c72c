// An atomic counter, increased by a load and a store.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

static COUNT: AtomicU32 = AtomicU32::new(0);

fn increase() {
    let seen = COUNT.load(Ordering::SeqCst);
    COUNT.store(seen + 1, Ordering::SeqCst);
}

fn main() {
    thread::scope(|scope| {
        scope.spawn(increase);
        scope.spawn(|| {
            work(LATE);
            increase();
        });
    });
    assert_eq!(COUNT.load(Ordering::SeqCst), 2);
}

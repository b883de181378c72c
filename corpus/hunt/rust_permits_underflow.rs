// A permit is looked for and then taken: the last one is taken twice.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::thread;

static PERMITS: AtomicI32 = AtomicI32::new(1);

fn with_permit() {
    if PERMITS.load(SeqCst) > 0 {
        let before = PERMITS.fetch_sub(1, SeqCst);
        assert!(before > 0, "a permit that is not there");
        PERMITS.fetch_add(1, SeqCst);
    }
}

fn main() {
    thread::scope(|scope| {
        scope.spawn(with_permit);
        scope.spawn(|| {
            work(LATE);
            with_permit();
        });
    });
}

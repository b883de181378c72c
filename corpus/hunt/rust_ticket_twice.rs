// A ticket lock that hands out tickets by a load and a store: two get the same and are inside together.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

static NEXT: AtomicU32 = AtomicU32::new(0);
static SERVING: AtomicU32 = AtomicU32::new(0);
static INSIDE: AtomicU32 = AtomicU32::new(0);

fn enter() {
    let mine = NEXT.load(SeqCst);
    NEXT.store(mine + 1, SeqCst);
    while SERVING.load(SeqCst) < mine {
        thread::yield_now();
    }
    assert_eq!(INSIDE.fetch_add(1, SeqCst), 0);
    INSIDE.fetch_sub(1, SeqCst);
    SERVING.fetch_add(1, SeqCst);
}

fn main() {
    thread::scope(|scope| {
        scope.spawn(enter);
        scope.spawn(|| {
            work(LATE);
            enter();
        });
    });
}

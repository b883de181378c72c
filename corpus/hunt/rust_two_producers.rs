// A ring for one producer, used by two: both write the same slot.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;

static SLOTS: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];
static TAIL: AtomicUsize = AtomicUsize::new(0);

fn produce(item: u32) {
    let at = TAIL.load(SeqCst);
    SLOTS[at].store(item, SeqCst);
    TAIL.store(at + 1, SeqCst);
}

fn main() {
    thread::scope(|scope| {
        scope.spawn(|| produce(3));
        scope.spawn(|| {
            work(LATE);
            produce(4);
        });
    });
    let sum: u32 = SLOTS.iter().map(|slot| slot.load(SeqCst)).sum();
    assert_eq!(sum, 7);
}

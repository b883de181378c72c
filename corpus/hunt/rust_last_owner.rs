// Whoever is the last owner cleans up; two who look before either lets go are both not the last.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

static CLEANED: AtomicBool = AtomicBool::new(false);

fn let_go(shared: Arc<u32>) {
    if Arc::strong_count(&shared) == 1 {
        CLEANED.store(true, Ordering::SeqCst);
    }
    drop(shared);
}

fn main() {
    let one = Arc::new(7);
    let other = Arc::clone(&one);
    thread::scope(|scope| {
        scope.spawn(|| let_go(one));
        scope.spawn(|| {
            work(LATE);
            let_go(other);
        });
    });
    assert!(CLEANED.load(Ordering::SeqCst));
}

// Not empty when looked at, empty when popped.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

static QUEUE: Mutex<VecDeque<u32>> = Mutex::new(VecDeque::new());

fn consume() -> u32 {
    if QUEUE.lock().unwrap().is_empty() {
        return 0;
    }
    let item = QUEUE.lock().unwrap().pop_front();
    item.expect("it was not empty")
}

fn main() {
    QUEUE.lock().unwrap().push_back(1);
    let sum: u32 = thread::scope(|scope| {
        let one = scope.spawn(consume);
        let other = scope.spawn(|| {
            work(LATE);
            consume()
        });
        one.join().unwrap() + other.join().unwrap()
    });
    assert_eq!(sum, 1);
}

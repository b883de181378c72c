// The guard is gone before the value is written back.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::Mutex;
use std::thread;

static BALANCE: Mutex<i64> = Mutex::new(0);

fn deposit(amount: i64) {
    let seen = *BALANCE.lock().unwrap();
    *BALANCE.lock().unwrap() = seen + amount;
}

fn main() {
    thread::scope(|scope| {
        scope.spawn(|| deposit(5));
        scope.spawn(|| {
            work(LATE);
            deposit(7);
        });
    });
    assert_eq!(*BALANCE.lock().unwrap(), 12);
}

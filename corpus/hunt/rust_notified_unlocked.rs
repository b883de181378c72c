// The flag is outside the mutex, and so is its setting: the notification may come before the wait.
// fails: deadlock
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

static LOCK: Mutex<()> = Mutex::new(());
static CHANGED: Condvar = Condvar::new();
static READY: AtomicBool = AtomicBool::new(false);

fn main() {
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = LOCK.lock().unwrap();
            while !READY.load(Ordering::SeqCst) {
                held = CHANGED.wait(held).unwrap();
            }
        });
        scope.spawn(|| {
            work(4 * LATE);
            READY.store(true, Ordering::SeqCst);
            CHANGED.notify_one();
        });
    });
}

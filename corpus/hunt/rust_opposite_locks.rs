// Two mutexes in opposite orders.
// fails: deadlock
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::sync::Mutex;
use std::thread;

static NAMES: Mutex<u32> = Mutex::new(0);
static SIZES: Mutex<u32> = Mutex::new(0);

fn main() {
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut names = NAMES.lock().unwrap();
            *names += *SIZES.lock().unwrap();
        });
        scope.spawn(|| {
            work(LATE);
            let mut sizes = SIZES.lock().unwrap();
            *sizes += *NAMES.lock().unwrap();
        });
    });
}

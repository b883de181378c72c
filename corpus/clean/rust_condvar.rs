// Condvar with wait_while; what is handed over is outside the mutex.
// clean
use std::cell::UnsafeCell;
use std::sync::{Condvar, Mutex};
use std::thread;

struct Message(UnsafeCell<u32>);
unsafe impl Sync for Message {}

static READY: Mutex<bool> = Mutex::new(false);
static CHANGED: Condvar = Condvar::new();
static MESSAGE: Message = Message(UnsafeCell::new(0));

fn main() {
    thread::scope(|scope| {
        scope.spawn(|| {
            unsafe { *MESSAGE.0.get() = 41 };
            *READY.lock().unwrap() = true;
            CHANGED.notify_one();
        });
        scope.spawn(|| {
            drop(CHANGED.wait_while(READY.lock().unwrap(), |ready| !*ready).unwrap());
            unsafe { *MESSAGE.0.get() += 1 };
        });
    });
    println!("{}", unsafe { *MESSAGE.0.get() });
}

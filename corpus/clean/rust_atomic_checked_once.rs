// An acquire load that is not in a loop, and relaxed loads and stores of a statistic: plain moves all.
// clean
// needs: debug-info
// undecidable: without debug information these are plain moves, like those of a racy twin
#[path = "../support/steps.rs"]
mod steps;

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

struct Message(UnsafeCell<u32>);
unsafe impl Sync for Message {}

static READY: AtomicBool = AtomicBool::new(false);
static LAST: AtomicU32 = AtomicU32::new(0);
static MESSAGE: Message = Message(UnsafeCell::new(0));

fn main() {
    thread::scope(|scope| {
        scope.spawn(|| {
            unsafe { *MESSAGE.0.get() = 41 }; // suspected: MESSAGE
            LAST.store(1, Ordering::Relaxed); // suspected: LAST
            READY.store(true, Ordering::Release); // suspected: READY
            steps::done(1);
        });
        scope.spawn(|| {
            steps::wait(1);
            LAST.store(2, Ordering::Relaxed); // suspected: LAST
            if READY.load(Ordering::Acquire) { // suspected: READY
                unsafe { *MESSAGE.0.get() += 1 }; // suspected: MESSAGE
            }
        });
    });
    println!("{}", unsafe { *MESSAGE.0.get() });
}

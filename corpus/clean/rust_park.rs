// park and unpark hand the message over; the flag guards against a spurious wake-up.
// clean
// needs: debug-info
// undecidable: without debug information the plain loads and stores of atomics look like those of plain variables
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

struct Message(UnsafeCell<u32>);
unsafe impl Sync for Message {}

static READY: AtomicBool = AtomicBool::new(false);
static MESSAGE: Message = Message(UnsafeCell::new(0));

fn main() {
    let consumer = thread::spawn(|| {
        while !READY.load(Ordering::Acquire) {
            thread::park();
        }
        unsafe { *MESSAGE.0.get() += 1 };
    });
    unsafe { *MESSAGE.0.get() = 41 };
    READY.store(true, Ordering::Release);
    consumer.thread().unpark();
    consumer.join().unwrap();
    println!("{}", unsafe { *MESSAGE.0.get() });
}

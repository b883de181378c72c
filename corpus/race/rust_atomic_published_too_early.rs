// The flag is stored before the message.
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

struct Message(UnsafeCell<u32>);
unsafe impl Sync for Message {}

static READY: AtomicBool = AtomicBool::new(false);
static MESSAGE: Message = Message(UnsafeCell::new(0));

fn main() {
    thread::scope(|scope| {
        scope.spawn(|| {
            READY.store(true, Ordering::Release);
            unsafe { *MESSAGE.0.get() = 41 }; // race: MESSAGE
        });
        scope.spawn(|| {
            while !READY.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            unsafe { *MESSAGE.0.get() += 1 }; // race: MESSAGE
        });
    });
    println!("{}", unsafe { *MESSAGE.0.get() } > 0);
}

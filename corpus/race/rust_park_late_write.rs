// Unparked first, written later.
use std::cell::UnsafeCell;
use std::thread;

struct Message(UnsafeCell<u32>);
unsafe impl Sync for Message {}

static MESSAGE: Message = Message(UnsafeCell::new(0));

fn main() {
    let consumer = thread::spawn(|| {
        thread::park();
        unsafe { *MESSAGE.0.get() += 1 }; // race: MESSAGE
    });
    consumer.thread().unpark();
    unsafe { *MESSAGE.0.get() = 41 }; // race: MESSAGE
    consumer.join().unwrap();
    println!("{}", unsafe { *MESSAGE.0.get() } > 0);
}

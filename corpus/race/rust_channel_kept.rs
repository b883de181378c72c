// The sender keeps a raw pointer to what it sent.
use std::sync::mpsc;
use std::thread;

struct Kept(*mut u32);
unsafe impl Send for Kept {}

fn main() {
    let (sender, receiver) = mpsc::channel::<Kept>();
    let block = Box::into_raw(Box::new(1u32));
    let consumer = thread::spawn(move || {
        let received = receiver.recv().unwrap();
        unsafe { *received.0 += 1 }; // race: heap block
    });
    sender.send(Kept(block)).unwrap();
    unsafe { *block = 10 }; // race: heap block
    consumer.join().unwrap();
    println!("{}", unsafe { *block } > 0);
}

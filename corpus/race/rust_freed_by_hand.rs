// A box is freed by one thread and read by the other afterwards.
#[path = "../support/steps.rs"]
mod steps;

use std::thread;

struct Shared(*mut [u64; 8]);
unsafe impl Send for Shared {}

fn read(block: Shared) -> u64 {
    steps::wait(1);
    unsafe { (&raw const (*block.0)[3]).read_volatile() } // race: heap block
}

fn release(block: Shared) {
    unsafe { drop(Box::from_raw(block.0)) }; // race: heap block
    steps::done(1);
}

fn main() {
    let block = Box::into_raw(Box::new([1u64; 8]));
    let (for_reader, for_owner) = (Shared(block), Shared(block));
    let reader = thread::spawn(move || read(for_reader));
    let owner = thread::spawn(move || release(for_owner));
    owner.join().unwrap();
    let _ = reader.join().unwrap();
    println!("done");
}

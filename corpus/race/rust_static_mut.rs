// `static mut` incremented by two threads: what `unsafe` was for. Both threads are
// there before either goes on, or what the standard library does with its own atomics at a thread's end and start might
// order the two.
#[path = "../support/steps.rs"]
mod steps;

use std::thread;

static mut COUNTER: u32 = 0;

fn count() {
    steps::wait(1);
    unsafe {
        COUNTER += 1; // race: COUNTER
    }
}

fn main() {
    let first = thread::spawn(count);
    let second = thread::spawn(count);
    steps::done(1);
    first.join().unwrap();
    second.join().unwrap();
    println!("{}", unsafe { std::ptr::read_volatile(&raw const COUNTER) } > 0);
}

// `static mut` incremented by two threads: what `unsafe` was for.
use std::thread;

static mut COUNTER: u32 = 0;

fn count() {
    unsafe {
        COUNTER += 1; // race: COUNTER
    }
}

fn main() {
    let first = thread::spawn(count);
    let second = thread::spawn(count);
    first.join().unwrap();
    second.join().unwrap();
    println!("{}", unsafe { std::ptr::read_volatile(&raw const COUNTER) } > 0);
}

// The value of a static Mutex is written through a raw pointer that forgot the lock. Both threads are
// there before either goes on, or what the standard library does with its own atomics at a thread's end and start might
// order the two.
#[path = "../support/steps.rs"]
mod steps;

use std::sync::Mutex;
use std::thread;

struct Shared(*mut u32);
unsafe impl Send for Shared {}

static GUARDED: Mutex<u32> = Mutex::new(0);

fn main() {
    let pointer = {
        let mut held = GUARDED.lock().unwrap();
        Shared(&raw mut *held)
    };
    let careful = thread::spawn(|| {
        steps::wait(1);
        *GUARDED.lock().unwrap() += 1; // race: GUARDED
    });
    let careless = thread::spawn(move || {
        let pointer = pointer;
        steps::wait(1);
        unsafe { *pointer.0 += 1 }; // race: GUARDED
    });
    steps::done(1);
    careful.join().unwrap();
    careless.join().unwrap();
    println!("{}", *GUARDED.lock().unwrap() > 0);
}

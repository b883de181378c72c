// The destructor of a thread-local variable changes what the main thread reads meanwhile.
#[path = "../support/steps.rs"]
mod steps;

use std::cell::UnsafeCell;
use std::thread;

struct Shared(UnsafeCell<u32>);
unsafe impl Sync for Shared {}
static SHARED: Shared = Shared(UnsafeCell::new(0));

struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        steps::wait(1);
        change();
    }
}

thread_local! {
    static LAST: Last = const { Last };
}

#[inline(never)]
fn change() {
    unsafe { *SHARED.0.get() += 1 } // race: SHARED
}

fn main() {
    let thread = thread::spawn(|| LAST.with(|_| ()));
    let seen = unsafe { *std::hint::black_box(SHARED.0.get()) }; // race: SHARED
    steps::done(1);
    thread.join().unwrap();
    println!("{seen}");
}

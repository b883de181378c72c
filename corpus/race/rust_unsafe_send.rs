// An Rc made Send by hand: its counter is not atomic. Both threads are
// there before either goes on, or what the standard library does with its own atomics at a thread's end and start might
// order the two.
#[path = "../support/steps.rs"]
mod steps;

use std::rc::Rc;
use std::thread;

struct Sent(Rc<u32>);
unsafe impl Send for Sent {}

#[inline(never)]
fn copy_and_drop(rc: &Rc<u32>) -> u32 {
    let copy = std::hint::black_box(Rc::clone(rc)); // race: heap counter
    let value = *copy;
    drop(copy); // race: heap counter
    std::hint::black_box(value)
}

fn main() {
    let rc = Rc::new(7);
    let (one, other) = (Sent(Rc::clone(&rc)), Sent(Rc::clone(&rc)));
    std::mem::forget(rc);
    let first = thread::spawn(move || {
        let one = one;
        steps::wait(1);
        for _ in 0..3 {
            copy_and_drop(&one.0);
        }
        std::mem::forget(one);
    });
    let second = thread::spawn(move || {
        let other = other;
        steps::wait(1);
        for _ in 0..3 {
            copy_and_drop(&other.0);
        }
        std::mem::forget(other);
    });
    steps::done(1);
    first.join().unwrap();
    second.join().unwrap();
    println!("done");
}

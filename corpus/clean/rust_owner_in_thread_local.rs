// The last owner of an Arc is a thread-local variable, whose destructor runs when its thread's function has ended: what
// the counter orders, it orders there, too.
// clean
#[path = "../support/steps.rs"]
mod steps;

use std::cell::RefCell;
use std::sync::{Arc, mpsc};
use std::thread;

struct Owner(Option<Arc<[u64; 8]>>);

impl Drop for Owner {
    fn drop(&mut self) {
        // Until the other owner is gone.
        if self.0.is_some() {
            steps::wait(1);
        }
    }
}

thread_local! {
    static OWNER: RefCell<Owner> = const { RefCell::new(Owner(None)) };
}

fn main() {
    let shared = Arc::new([7; 8]);
    let copy = Arc::clone(&shared);
    let (ready, is_ready) = mpsc::channel();
    let thread = thread::spawn(move || {
        OWNER.with(|owner| owner.borrow_mut().0 = Some(copy));
        ready.send(()).unwrap();
    });
    is_ready.recv().unwrap();
    println!("{}", shared.iter().sum::<u64>());
    drop(shared);
    steps::done(1);
    thread.join().unwrap();
}

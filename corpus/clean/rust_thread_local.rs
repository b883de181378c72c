// thread_local! gives each thread its own, with a destructor.
// clean
use std::cell::RefCell;
use std::thread;

thread_local! {
    static LOG: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

fn work() -> usize {
    LOG.with(|log| log.borrow_mut().extend([1, 2, 3]));
    LOG.with(|log| log.borrow().len())
}

fn main() {
    let first = thread::spawn(work);
    let second = thread::spawn(work);
    println!("{}", first.join().unwrap() + second.join().unwrap());
}

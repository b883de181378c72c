// Once, OnceLock and LazyLock: initialised by whoever comes first.
// clean
use std::sync::{LazyLock, Once, OnceLock};
use std::thread;

static ONCE: Once = Once::new();
static mut PREPARED: u32 = 0;
static LOCK: OnceLock<Vec<u32>> = OnceLock::new();
static LAZY: LazyLock<Vec<u32>> = LazyLock::new(|| vec![3; 4]);

fn work() -> u32 {
    ONCE.call_once(|| unsafe { PREPARED = 1 });
    let prepared = unsafe { PREPARED };
    prepared + LOCK.get_or_init(|| vec![2; 4])[1] + LAZY[2]
}

fn main() {
    let first = thread::spawn(work);
    let second = thread::spawn(work);
    println!("{}", first.join().unwrap() + second.join().unwrap());
}

// Interior mutability under a read lock: two readers write at once. Both threads are
// there before either goes on, or what the standard library does with its own atomics at a thread's end and start might
// order the two.
// needs: debug-info
// undecidable: without debug information the inlined read lock is an atomic update like any other, which orders
#[path = "../support/steps.rs"]
mod steps;

use std::cell::UnsafeCell;
use std::sync::RwLock;
use std::thread;

struct Hits(UnsafeCell<u32>);
unsafe impl Sync for Hits {}

static CACHE: RwLock<()> = RwLock::new(());
static HITS: Hits = Hits(UnsafeCell::new(0));

fn look_up() {
    steps::wait(1);
    let _held = CACHE.read().unwrap();
    unsafe { *HITS.0.get() += 1 }; // race: HITS
}

fn main() {
    thread::scope(|scope| {
        scope.spawn(look_up);
        scope.spawn(look_up);
        steps::done(1);
    });
    println!("{}", unsafe { *HITS.0.get() } > 0);
}

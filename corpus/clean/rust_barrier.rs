// std::sync::Barrier between the phases of two threads that exchange their cells.
// clean
use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::thread;

struct Cells([UnsafeCell<u32>; 2]);
unsafe impl Sync for Cells {}

fn main() {
    let cells = Cells([UnsafeCell::new(0), UnsafeCell::new(0)]);
    let barrier = Barrier::new(2);
    let (cells, barrier) = (&cells, &barrier);
    let work = move |me: usize| {
        let mut sum = 0;
        for phase in 0..10 {
            unsafe { *cells.0[me].get() = phase };
            barrier.wait();
            sum += unsafe { *cells.0[1 - me].get() };
            barrier.wait();
        }
        sum
    };
    let total: u32 = thread::scope(|scope| {
        let threads = [scope.spawn(move || work(0)), scope.spawn(move || work(1))];
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{total}");
}

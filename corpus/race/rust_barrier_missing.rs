// The same with one barrier a phase, and the cells in the heap.
use std::cell::UnsafeCell;
use std::sync::{Arc, Barrier};
use std::thread;

struct Cells([UnsafeCell<u32>; 2]);
unsafe impl Sync for Cells {}
unsafe impl Send for Cells {}

fn work(cells: &Cells, barrier: &Barrier, me: usize) -> u32 {
    let mut sum = 0;
    for phase in 0..5 {
        unsafe { *cells.0[me].get() = phase }; // race: heap cells
        barrier.wait();
        sum += unsafe { *cells.0[1 - me].get() }; // race: heap cells
    }
    sum
}

fn main() {
    let cells = Arc::new(Cells([UnsafeCell::new(0), UnsafeCell::new(0)]));
    let barrier = Arc::new(Barrier::new(2));
    let threads: Vec<_> = (0..2)
        .map(|me| {
            let (cells, barrier) = (Arc::clone(&cells), Arc::clone(&barrier));
            thread::spawn(move || work(&cells, &barrier, me))
        })
        .collect();
    let total: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{}", total > 0);
}

// The last Arc drops the value that all threads have read.
// clean
use std::sync::Arc;
use std::thread;

struct Table(Vec<u32>);

impl Drop for Table {
    fn drop(&mut self) {
        self.0[0] = 0;
    }
}

fn main() {
    let table = Arc::new(Table(vec![1; 16]));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let table = Arc::clone(&table);
            thread::spawn(move || table.0.iter().sum::<u32>())
        })
        .collect();
    drop(table);
    let sum: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{sum}");
}

// std::sync::RwLock: readers and a writer.
// clean
use std::sync::RwLock;
use std::thread;

static TABLE: RwLock<[u32; 4]> = RwLock::new([0; 4]);

fn main() {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..10).map(|_| TABLE.read().unwrap()[1]).sum::<u32>());
        }
        scope.spawn(|| (0..10).for_each(|i| TABLE.write().unwrap()[1] = i));
    });
    println!("{:?}", TABLE.read().unwrap());
}

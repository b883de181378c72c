// Scoped threads borrow from the stack of main: disjoint parts while they run, all of it afterwards.
// clean
use std::thread;

fn main() {
    let mut values = [1u32; 64];
    for round in 0..3 {
        let (left, right) = values.split_at_mut(32);
        thread::scope(|scope| {
            scope.spawn(|| left.iter_mut().for_each(|value| *value += round));
            scope.spawn(|| right.iter_mut().for_each(|value| *value *= 2));
        });
        values.rotate_left(1);
    }
    println!("{}", values.iter().sum::<u32>());
}

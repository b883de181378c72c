// Two scoped threads, each with a raw pointer to a part of main's array; the parts overlap by one element. They begin
// together: the scope counts its threads, and one that has ended before the other is spawned comes before it.
use std::sync::Barrier;
use std::thread;

struct Part(*mut u32, usize);
unsafe impl Send for Part {}

fn fill(part: Part) {
    for i in 0..part.1 {
        unsafe { part.0.add(i).write_volatile(i as u32) }; // race: stack values
    }
}

fn main() {
    let mut values = [0u32; 8];
    let start = values.as_mut_ptr();
    let left = Part(start, 5);
    let right = Part(unsafe { start.add(4) }, 4);
    let begin = &Barrier::new(2);
    thread::scope(|scope| {
        for part in [left, right] {
            scope.spawn(move || {
                begin.wait();
                fill(part);
            });
        }
    });
    println!("{}", values.iter().sum::<u32>() > 0);
}

// Boxes sent through an mpsc channel belong to the receiver; a bounded and an unbounded one.
// clean
// needs: debug-info
// undecidable: without debug information the plain loads and stores of the library's atomics look like those of plain
// variables
use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel::<Box<[u32; 4]>>();
    let (answers, answered) = mpsc::sync_channel::<Box<u32>>(1);
    let producer = thread::spawn(move || {
        for i in 0..20 {
            sender.send(Box::new([i; 4])).unwrap();
        }
        drop(sender);
        answered.iter().map(|answer| *answer).sum::<u32>()
    });
    for mut item in receiver {
        item[0] += 1;
        answers.send(Box::new(item[0])).unwrap();
    }
    drop(answers);
    println!("{}", producer.join().unwrap());
}

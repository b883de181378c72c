// std::sync::Mutex in an Arc, the ordinary way, with a lock that is tried too.
// clean
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let counter = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                for _ in 0..20 {
                    *counter.lock().unwrap() += 1;
                    if let Ok(mut held) = counter.try_lock() {
                        *held += 1;
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    println!("{}", *counter.lock().unwrap() >= 40);
}

// exit: 101
// variants: |-O
use std::sync::{Arc, Mutex, mpsc};
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let shared = Arc::new(Mutex::new(0));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..4)
        .map(|i| {
            let (shared, send) = (shared.clone(), send.clone());
            std::thread::spawn(move || {
                send.send(i).unwrap();
                if i == 2 {
                    let _guard = shared.lock();
                    panic!("thread {i}");
                }
                match shared.lock() {
                    Ok(mut n) => *n += 1,
                    Err(poisoned) => *poisoned.into_inner() += 1,
                }
            })
        })
        .collect();
    drop(send);
    let failed = threads.into_iter().filter_map(|t| t.join().err()).count();
    println!("{failed} {} {}", receive.iter().sum::<i32>(), shared.is_poisoned());
    let caught = std::panic::catch_unwind(|| panic!("caught")).is_err();
    println!("{caught}");
    panic!("at last");
}

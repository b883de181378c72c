// Rust's mutex, condition, channels, park and sleep; a hash map's random keys.
use std::collections::HashMap;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::thread;
use std::time::Duration;

fn main() {
    let shared = Arc::new((Mutex::new((0u32, 0u32)), Condvar::new()));
    let adders: Vec<_> = (0..3u32)
        .map(|who| {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..20 {
                    let mut held = shared.0.lock().unwrap();
                    held.0 += 1;
                    held.1 = held.1.wrapping_mul(31).wrapping_add(who);
                    shared.1.notify_one();
                }
            })
        })
        .collect();
    let mut held = shared.0.lock().unwrap();
    while held.0 < 60 {
        held = shared.1.wait_timeout(held, Duration::from_millis(5)).unwrap().0;
    }
    println!("{:x}", held.1);
    drop(held);
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    let (send, receive) = channel();
    let (full, slow) = sync_channel(2);
    thread::scope(|scope| {
        for who in 0..3u32 {
            let (send, full) = (send.clone(), full.clone());
            scope.spawn(move || {
                for k in 0..8 {
                    send.send(who * 100 + k).unwrap();
                    full.send(who).unwrap();
                    thread::sleep(Duration::from_millis(u64::from(who)));
                }
            });
        }
        drop((send, full));
        scope.spawn(move || println!("{:?}", slow.iter().collect::<Vec<u32>>()));
        println!("{:?}", receive.iter().collect::<Vec<u32>>());
    });
    let parked = thread::spawn(|| thread::park_timeout(Duration::from_secs(3600)));
    parked.join().unwrap();
    let lock = RwLock::new(0u32);
    thread::scope(|scope| {
        for who in 0..3 {
            let lock = &lock;
            scope.spawn(move || {
                for _ in 0..5 {
                    let seen = *lock.read().unwrap();
                    *lock.write().unwrap() = seen.wrapping_mul(3) + who;
                }
            });
        }
    });
    let map: HashMap<u32, u32> = (0..10).map(|i| (i, i)).collect();
    println!("{} {:?}", lock.read().unwrap(), map.keys().collect::<Vec<_>>());
}

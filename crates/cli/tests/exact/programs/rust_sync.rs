// Locks of Rust's standard library, inlined: each is an atomic instruction that debug information
// knows. A lock that is not got is not an event then.
//
// watch: sync
// build: rustc -C opt-level=3 -C debuginfo=2 --edition 2021
// build: rustc -C opt-level=3 -C debuginfo=1 --edition 2021

use std::sync::{Condvar, Mutex, RwLock};

static MUTEX: Mutex<u32> = Mutex::new(0);
static GATE: RwLock<u32> = RwLock::new(0);
static READY: Condvar = Condvar::new();

fn main() {
    *MUTEX.lock().unwrap() += 1; // expect: lock-acquired MUTEX; lock-released MUTEX
    let held = MUTEX.lock().unwrap(); // expect: lock-acquired MUTEX
    assert!(MUTEX.try_lock().is_err()); // expect: lock-requested MUTEX; lock-failed MUTEX
    drop(held); // expect: lock-released MUTEX
    drop(MUTEX.try_lock().unwrap()); // expect: lock-requested MUTEX; lock-acquired MUTEX; lock-released MUTEX
    *GATE.write().unwrap() += 1; // expect: lock-acquired GATE; lock-released GATE either
    let one = GATE.read().unwrap(); // expect: lock-acquired GATE shared
    let two = GATE.read().unwrap(); // expect: lock-acquired GATE shared
    drop(one); // expect: lock-released GATE either
    drop(two); // expect: lock-released GATE either
    READY.notify_one(); // expect: condition-signal READY
    READY.notify_all(); // expect: condition-signal READY all
}

// The same locks where nothing is inlined: taking one is a call, which also tells that it is wanted.
//
// watch: sync thread
// build: rustc -C opt-level=0 -C debuginfo=2 --edition 2021

use std::sync::{Condvar, Mutex, RwLock};

static MUTEX: Mutex<bool> = Mutex::new(false);
static GATE: RwLock<u32> = RwLock::new(0);
static READY: Condvar = Condvar::new();

// expect: thread-start
fn main() {
    let mut go = MUTEX.lock().unwrap(); // expect: lock-requested MUTEX; lock-acquired MUTEX
    let child = std::thread::spawn(other); // expect: thread-create T2; thread-created T2
    while !*go { // expect: condition-wait-begin READY MUTEX
        go = READY.wait(go).unwrap(); // expect: condition-wait-end READY MUTEX woken
    }
    drop(go); // expect: lock-released MUTEX
    child.join().unwrap(); // expect: thread-joined T2
    *GATE.write().unwrap() += 1; // expect: lock-requested GATE; lock-acquired GATE; lock-released GATE either
    drop(GATE.read().unwrap()); // expect: lock-requested GATE shared; lock-acquired GATE shared; lock-released GATE either
}
// expect: thread-exit

// expect T2: thread-start by T1
fn other() {
    let mut go = MUTEX.lock().unwrap(); // expect T2: lock-requested MUTEX; lock-acquired MUTEX
    *go = true;
    READY.notify_one(); // expect T2: condition-signal READY
} // expect T2: lock-released MUTEX; thread-exit

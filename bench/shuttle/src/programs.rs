//! Four programs with a bug each that one unlucky order shows, written once for both explorers. Every access
//! is under a lock or atomic: none is a data race, so no race detector has anything to go by.

use crate::imported::{Arc, AtomicUsize, Condvar, Mutex, Ordering, spawn};

pub const ALL: [(&str, fn()); 4] = [
    ("lost_update", lost_update),
    ("transfer_deadlock", transfer_deadlock),
    ("missed_signal", missed_signal),
    ("published_too_early", published_too_early),
];

/// Reads and writes under the lock, but lets go of it in between.
fn lost_update() {
    let account = Arc::new(Mutex::new(100));
    let clerks: Vec<_> = (0..2)
        .map(|_| {
            let account = Arc::clone(&account);
            spawn(move || {
                let balance = *account.lock().unwrap();
                *account.lock().unwrap() = balance + 10;
            })
        })
        .collect();
    for clerk in clerks {
        clerk.join().unwrap();
    }
    assert_eq!(*account.lock().unwrap(), 120);
}

/// Two transfers between the same accounts, each locking its source first.
fn transfer_deadlock() {
    let accounts = Arc::new([Mutex::new(100), Mutex::new(100)]);
    let clerks: Vec<_> = [(0, 1), (1, 0)]
        .map(|(from, to)| {
            let accounts = Arc::clone(&accounts);
            spawn(move || {
                let mut source = accounts[from].lock().unwrap();
                let mut target = accounts[to].lock().unwrap();
                *source -= 10;
                *target += 10;
            })
        })
        .into_iter()
        .collect();
    for clerk in clerks {
        clerk.join().unwrap();
    }
}

/// Looks, lets go, and only then waits: a signal in between is lost, and nobody sends another.
fn missed_signal() {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let sender = {
        let shared = Arc::clone(&shared);
        spawn(move || {
            *shared.0.lock().unwrap() = true;
            shared.1.notify_one();
        })
    };
    let (ready, signal) = &*shared;
    let seen = *ready.lock().unwrap();
    if !seen {
        let guard = ready.lock().unwrap();
        drop(signal.wait(guard).unwrap());
    }
    sender.join().unwrap();
}

/// Says that the second half is there before it is.
fn published_too_early() {
    let (ready, halves) =
        (Arc::new(AtomicUsize::new(0)), Arc::new([const { AtomicUsize::new(0) }; 2]));
    let writer = {
        let (ready, halves) = (Arc::clone(&ready), Arc::clone(&halves));
        spawn(move || {
            halves[0].store(1, Ordering::SeqCst);
            ready.store(1, Ordering::SeqCst);
            halves[1].store(1, Ordering::SeqCst);
        })
    };
    if ready.load(Ordering::SeqCst) == 1 {
        assert_eq!(halves[1].load(Ordering::SeqCst), 1);
    }
    writer.join().unwrap();
}

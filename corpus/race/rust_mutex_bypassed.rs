// The value of a static Mutex is written through a raw pointer that forgot the lock.
use std::sync::Mutex;
use std::thread;

struct Shared(*mut u32);
unsafe impl Send for Shared {}

static GUARDED: Mutex<u32> = Mutex::new(0);

fn main() {
    let pointer = {
        let mut held = GUARDED.lock().unwrap();
        Shared(&raw mut *held)
    };
    let careful = thread::spawn(|| {
        *GUARDED.lock().unwrap() += 1; // race: GUARDED
    });
    let careless = thread::spawn(move || {
        let pointer = pointer;
        unsafe { *pointer.0 += 1 }; // race: GUARDED
    });
    careful.join().unwrap();
    careless.join().unwrap();
    println!("{}", *GUARDED.lock().unwrap() > 0);
}

// What Once prepared is changed outside of it.
use std::sync::Once;
use std::thread;

static ONCE: Once = Once::new();
static mut SETTING: u32 = 0;

fn work() {
    ONCE.call_once(|| unsafe { SETTING = 1 });
    unsafe { SETTING += 1 }; // race: SETTING
}

fn main() {
    let first = thread::spawn(work);
    let second = thread::spawn(work);
    first.join().unwrap();
    second.join().unwrap();
    println!("{}", unsafe { SETTING } > 1);
}

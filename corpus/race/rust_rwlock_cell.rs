// Interior mutability under a read lock: two readers write at once.
use std::cell::UnsafeCell;
use std::sync::RwLock;
use std::thread;

struct Hits(UnsafeCell<u32>);
unsafe impl Sync for Hits {}

static CACHE: RwLock<()> = RwLock::new(());
static HITS: Hits = Hits(UnsafeCell::new(0));

fn look_up() {
    let _held = CACHE.read().unwrap();
    unsafe { *HITS.0.get() += 1 }; // race: HITS
}

fn main() {
    thread::scope(|scope| {
        scope.spawn(look_up);
        scope.spawn(look_up);
    });
    println!("{}", unsafe { *HITS.0.get() } > 0);
}

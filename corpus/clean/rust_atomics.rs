// Atomics of several kinds: a counter, a flag with release and acquire, a compare-exchange, a fence.
// clean
// needs: debug-info
// undecidable: without debug information the plain loads and stores of atomics look like those of plain variables
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::thread;

struct Messages(UnsafeCell<[u32; 2]>);
unsafe impl Sync for Messages {}

static COUNTER: AtomicU32 = AtomicU32::new(0);
static READY: AtomicBool = AtomicBool::new(false);
static FENCED: AtomicBool = AtomicBool::new(false);
static TURN: AtomicU32 = AtomicU32::new(0);
static MESSAGES: Messages = Messages(UnsafeCell::new([0; 2]));

fn main() {
    thread::scope(|scope| {
        scope.spawn(|| {
            COUNTER.fetch_add(1, Ordering::Relaxed);
            unsafe { (*MESSAGES.0.get())[0] = 1 };
            READY.store(true, Ordering::Release);
            unsafe { (*MESSAGES.0.get())[1] = 1 };
            fence(Ordering::Release);
            FENCED.store(true, Ordering::Relaxed);
            let _ = TURN.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed);
        });
        scope.spawn(|| {
            COUNTER.fetch_add(1, Ordering::Relaxed);
            while !READY.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            unsafe { (*MESSAGES.0.get())[0] += 1 };
            while !FENCED.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            fence(Ordering::Acquire);
            unsafe { (*MESSAGES.0.get())[1] += 1 };
            let _ = TURN.compare_exchange(0, 2, Ordering::AcqRel, Ordering::Relaxed);
        });
    });
    println!("{}", COUNTER.load(Ordering::Relaxed));
}

// What stagger.h is, for Rust.
pub const LATE: u32 = 300_000;

pub fn work(steps: u32) {
    for i in 0..steps {
        std::hint::black_box(i);
    }
}

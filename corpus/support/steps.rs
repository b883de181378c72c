// The same as steps.h, for Rust: an order of events that no detector knows of. Read the program as if
// these calls were not there.
#![allow(dead_code)]

#[repr(C)]
struct Limit {
    soft: u64,
    hard: u64,
}

#[repr(C)]
struct Moment {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn getrlimit(resource: i32, limit: *mut Limit) -> i32;
    fn setrlimit(resource: i32, limit: *const Limit) -> i32;
    fn nanosleep(time: *const Moment, left: *mut Moment) -> i32;
}

const FILE_SIZE: i32 = 1;
const BASE: u64 = 1 << 40;

fn limit() -> Limit {
    let mut limit = Limit { soft: 0, hard: 0 };
    assert_eq!(unsafe { getrlimit(FILE_SIZE, &mut limit) }, 0);
    limit
}

pub fn done(step: u64) {
    let limit = Limit { soft: BASE + step, ..limit() };
    assert_eq!(unsafe { setrlimit(FILE_SIZE, &limit) }, 0);
}

pub fn wait(step: u64) {
    loop {
        let soft = limit().soft;
        if soft != u64::MAX && soft >= BASE + step {
            return;
        }
        unsafe { nanosleep(&Moment { seconds: 0, nanoseconds: 1_000_000 }, std::ptr::null_mut()) };
    }
}

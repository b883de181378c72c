// Missing under the read lock, inserted under the write lock without a second look.
// fails: panic
#[path = "../support/stagger.rs"]
mod stagger;
use stagger::{LATE, work};
use std::collections::HashMap;
use std::sync::{LazyLock, RwLock};
use std::thread;

static USERS: LazyLock<RwLock<HashMap<&str, u32>>> = LazyLock::new(RwLock::default);

fn register(name: &'static str, id: u32) {
    let is_free = !USERS.read().unwrap().contains_key(name);
    if is_free {
        let before = USERS.write().unwrap().insert(name, id);
        assert!(before.is_none(), "somebody was registered, and is lost");
    }
}

fn main() {
    LazyLock::force(&USERS);
    thread::scope(|scope| {
        scope.spawn(|| register("ada", 1));
        scope.spawn(|| {
            work(LATE);
            register("ada", 2);
        });
    });
}

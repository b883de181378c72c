//! Runs a program of `programs.rs`: on the standard library once (`explored PROGRAM`), or, with the feature
//! `shuttle`, under Shuttle until it fails (`explored PROGRAM random|pct SEED EXECUTIONS`); then it prints how many
//! executions that took, 0 for none that failed.

mod programs;

#[cfg(not(feature = "shuttle"))]
mod imported {
    pub use std::sync::atomic::{AtomicUsize, Ordering};
    pub use std::sync::{Arc, Condvar, Mutex};
    pub use std::thread::spawn;
}

#[cfg(feature = "shuttle")]
mod imported {
    pub use shuttle::sync::atomic::{AtomicUsize, Ordering};
    pub use shuttle::sync::{Arc, Condvar, Mutex};
    pub use shuttle::thread::spawn;
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let named = words.first().map(String::as_str);
    match programs::ALL.iter().find(|(name, _)| Some(*name) == named) {
        Some((_, program)) => run(*program, &words[1..]),
        None => {
            let names: Vec<&str> = programs::ALL.iter().map(|(name, _)| *name).collect();
            eprintln!("usage: explored {}", names.join("|"));
            std::process::exit(2);
        }
    }
}

#[cfg(not(feature = "shuttle"))]
fn run(program: fn(), _: &[String]) {
    program();
}

#[cfg(feature = "shuttle")]
fn run(program: fn(), words: &[String]) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
    use std::sync::atomic::AtomicUsize;
    /// Preemptions of PCT beyond the first, as its authors use.
    const DEPTH: usize = 3;
    static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);
    let [policy, seed, most] = words else {
        panic!("usage: explored PROGRAM random|pct SEED EXECUTIONS")
    };
    let (seed, most) = (seed.parse().unwrap(), most.parse().unwrap());
    let scheduler: Box<dyn Scheduler + Send> = match policy.as_str() {
        "pct" => Box::new(PctScheduler::new_from_seed(seed, DEPTH, most)),
        _ => Box::new(RandomScheduler::new_from_seed(seed, most)),
    };
    std::panic::set_hook(Box::new(|_| {}));
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let runner = shuttle::Runner::new(scheduler, shuttle::Config::default());
        runner.run(move || {
            EXECUTIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            program();
        })
    }));
    let count =
        if failed.is_err() { EXECUTIONS.load(std::sync::atomic::Ordering::Relaxed) } else { 0 };
    println!("{count}");
}

//! `cargo raddle` on a small crate with one racy and one clean test.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

const LIBRARY: &str = r#"
pub struct Cell(std::cell::UnsafeCell<u64>);
unsafe impl Sync for Cell {}
impl Cell {
    pub const fn new() -> Self { Cell(std::cell::UnsafeCell::new(0)) }
    #[inline(never)]
    pub fn bump(&self) { unsafe { *self.0.get() += 1 } }
}

#[cfg(test)]
mod tests {
    use super::*;
    static SHARED: Cell = Cell::new();
    static GUARDED: std::sync::Mutex<u64> = std::sync::Mutex::new(0);

    #[test]
    fn racy() {
        // Both are there before either goes on, so that no end of one comes before the other.
        let both = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 { scope.spawn(|| { both.wait(); SHARED.bump() }); }
        });
    }

    #[test]
    fn clean() {
        std::thread::scope(|scope| {
            for _ in 0..2 { scope.spawn(|| *GUARDED.lock().unwrap() += 1); }
        });
        assert_eq!(*GUARDED.lock().unwrap(), 2);
    }

    #[test]
    fn failing() { assert_eq!(1 + 1, 3, "arithmetic"); }

    #[test]
    #[ignore]
    fn ignored() { panic!("never run") }
}
"#;

fn package() -> Option<Scratch> {
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        scratch.put(
            "Cargo.toml",
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
        );
        std::fs::create_dir(scratch.path("src")).unwrap();
        std::fs::write(scratch.path("src/lib.rs"), LIBRARY).unwrap();
        let main =
            "fn main() { println!(\"{:?}\", std::env::args().nth(1)); std::process::exit(4) }";
        std::fs::write(scratch.path("src/main.rs"), main).unwrap();
        scratch
    })
}

/// Two benchmarks without a harness: one races, one does not.
const RACY_BENCH: &str = r#"
static SHARED: small::Cell = small::Cell::new();
fn main() {
    assert!(std::env::args().any(|word| word == "--bench"));
    let both = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 { scope.spawn(|| { both.wait(); SHARED.bump() }); }
    });
}
"#;
const CLEAN_BENCH: &str = r#"
fn main() {
    let cell = small::Cell::new();
    for _ in 0..100 { cell.bump(); }
}
"#;

#[test]
fn each_benchmark_once_and_one_report() {
    let Some(scratch) = package() else { return };
    std::fs::create_dir(scratch.path("benches")).unwrap();
    let mut manifest = std::fs::read_to_string(scratch.path("Cargo.toml")).unwrap();
    for (name, text) in [("racy", RACY_BENCH), ("clean", CLEAN_BENCH)] {
        std::fs::write(scratch.path(&format!("benches/{name}.rs")), text).unwrap();
        manifest += &format!("[[bench]]\nname = \"{name}\"\nharness = false\n");
    }
    manifest += "[profile.bench]\ndebug = true\n";
    std::fs::write(scratch.path("Cargo.toml"), manifest).unwrap();
    let ran = cargo(&scratch, &["bench", "--html", "bench.html", "--benches"]);
    ran.exits(66);
    let line = |sign: &str, name: &str| {
        ran.stderr.lines().any(|line| line.starts_with(sign) && line.contains(name))
    };
    assert!(line("RACE", "racy") && line("PASS", "clean"), "{ran:?}");
    let page = std::fs::read_to_string(scratch.path("bench.html")).unwrap();
    assert!(page.contains("bump") && page.contains("src/lib.rs"), "{page}");
    cargo(&scratch, &["bench", "--bench", "clean"]).exits(0);
}

/// `cargo raddle …`, found by Cargo as it finds any other subcommand.
fn cargo(scratch: &Scratch, arguments: &[&str]) -> Ran {
    cargo_with(scratch, &[], arguments)
}

/// The same with variables in the environment.
fn cargo_with(scratch: &Scratch, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let beside: PathBuf = raddle().parent().unwrap().into();
    let mut path = vec![beside];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut command = Command::new("cargo");
    command.arg("raddle").args(arguments).current_dir(scratch.path("."));
    command.env("PATH", std::env::join_paths(path).unwrap());
    command.env("CARGO_TARGET_DIR", scratch.path("target")).env_remove("CARGO");
    // Reading debug information for a backtrace is a long way under a detector.
    command.env("RUST_BACKTRACE", "0").envs(variables.iter().copied());
    Ran::new(command.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn what_is_set_of_reports_is_about_the_merged_one() {
    let Some(scratch) = package() else { return };
    let settings = "[run]\nquiet = true\nformat = 'json'\n[profile.ci.run]\noutput = 'all.json'\n";
    scratch.put("raddle.toml", settings);
    let set = [("RADDLE_JUNIT", "all.xml"), ("RADDLE_HTML", "set.html")];
    let arguments = ["test", "--profile", "ci", "--html", "typed.html", "--lib"];
    let ran = cargo_with(&scratch, &set, &arguments);
    ran.exits(66);
    let whole = std::fs::read_to_string(scratch.path(".raddle/1/report.json")).unwrap();
    assert_eq!(std::fs::read_to_string(scratch.path("all.json")).unwrap(), whole);
    let junit = std::fs::read_to_string(scratch.path("all.xml")).unwrap();
    let page = std::fs::read_to_string(scratch.path("typed.html")).unwrap();
    assert!(junit.contains("bump") && page.contains("bump"), "{junit}");
    assert!(!scratch.path("set.html").exists());
    // Quiet: what went wrong is told, what passed is not, nor is the report.
    assert!(ran.stderr.contains("RACE") && ran.stderr.contains("FAIL"), "{ran:?}");
    assert!(!ran.stderr.contains("PASS") && !ran.stderr.contains("R1  data race"), "{ran:?}");
    let wrong = cargo_with(&scratch, &[("RADDLE_FORMAT", "jsn")], &["test", "--lib"]);
    assert!(wrong.exits(125).stderr.contains("RADDLE_FORMAT: invalid value 'jsn'"), "{wrong:?}");
}

#[test]
fn each_test_by_itself_and_one_report() {
    let Some(scratch) = package() else { return };
    let ran = cargo(&scratch, &["test", "--lib"]);
    ran.exits(66);
    let line = |sign: &str, name: &str| {
        ran.stderr.lines().any(|line| line.starts_with(sign) && line.contains(name))
    };
    assert!(line("PASS", "small tests::clean"), "{ran:?}");
    assert!(line("RACE", "small tests::racy: "), "{ran:?}");
    assert!(line("FAIL", "small tests::failing"), "{ran:?}");
    assert!(ran.stderr.contains("arithmetic") && !ran.stderr.contains("never run"), "{ran:?}");
    assert!(ran.stderr.contains("3 tests: 1 passed, 1 with findings, 1 failed"), "{ran:?}");
    let file = std::fs::read_to_string(scratch.path(".raddle/1/report.json")).unwrap();
    let json: Value = serde_json::from_str(&file).unwrap();
    let ours = |finding: &Value| {
        let text = finding.to_string();
        text.contains("bump") && text.contains("src/lib.rs")
    };
    let found = json["findings"].as_array().unwrap().iter().find(|finding| ours(finding));
    let id = found.unwrap_or_else(|| panic!("{json:#}"))["id"].as_str().unwrap();
    assert!(
        ran.stderr.contains("seen in: ") && ran.stderr.contains("--exact tests::racy"),
        "{ran:?}"
    );
    // It is the racy test that is executed again, not the first.
    let mut confirm = Command::new(raddle());
    confirm.args(["confirm", id, "--trials", "5"]).current_dir(scratch.path("."));
    let confirmed = Ran::new(confirm.env("RUST_BACKTRACE", "0").output().unwrap());
    assert!(confirmed.exits(66).stdout.contains("confirmed"), "{confirmed:?}");

    cargo(&scratch, &["test", "--lib", "--", "clean"]).exits(0);
    let schedule = |file| std::fs::read_to_string(scratch.path(file)).unwrap();
    cargo(&scratch, &["test", "--policy", "pct", "--seed", "7", "--lib", "--", "clean"]).exits(0);
    let decided = schedule(".raddle/3/tests/1/schedule");
    assert!(decided.contains("\nseed 7\npolicy pct 3 "), "{decided}");
    cargo(&scratch, &["run", "--seed", "7"]).exits(4);
    assert!(schedule(".raddle/4/schedule").contains("\nseed 7\npolicy random\n"));
    cargo(&scratch, &["test", "--lib", "--", "failing"]).exits(101);
    let none = cargo(&scratch, &["test", "--lib", "--", "no-such-test"]);
    assert!(none.exits(0).stderr.ends_with("raddle: no tests\n"), "{none:?}");
    let run = cargo(&scratch, &["run", "--", "hello"]);
    assert_eq!(run.exits(4).stdout, "Some(\"hello\")\n");
    let wrong = cargo(&scratch, &["test", "--lbi"]);
    assert!(wrong.exits(125).stderr.contains("cargo test --no-run ended with code"), "{wrong:?}");
}

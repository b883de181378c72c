//! The guide, as it is written: `docs/guide.md` on `corpus/demo/bank.c`, from the first run to the fixed bug.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

fn command(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let mut command = Command::new(raddle());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    Ran::new(command.output().unwrap())
}

fn from_root(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The bank with what the guide says in place of what is wrong.
fn fixed(bank: &str) -> String {
    let guide = from_root("docs/guide.md");
    let code = guide.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let (fees, upkeep) = code.split_once("\n\n").unwrap();
    let begins = bank.find("static void charge_upkeep").unwrap();
    let ends = begins + bank[begins..].find("\n}\n").unwrap() + 3;
    let bank = format!("{}{upkeep}{}", &bank[..begins], &bank[ends..]);
    let old = fees.replace("_Atomic ", "");
    assert!(bank.contains(&old), "{old}");
    bank.replace(&old, fees)
}

#[test]
fn from_the_first_run_to_the_fixed_bug() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let bank = from_root("corpus/demo/bank.c");
    scratch.compile("bank", &bank, &["-O1"]);
    let ran = command(&scratch, &["run", "--", "./bank"]);
    assert!(ran.exits(66).stdout.contains("the books balance"), "{ran:?}");
    assert!(ran.stderr.ends_with("\nnext: raddle confirm R1\n"), "{ran:?}");
    let explained = command(&scratch, &["explain", "R1"]);
    assert!(explained.exits(0).stdout.contains("What to do:"), "{explained:?}");
    let confirmed = command(&scratch, &["confirm", "R1"]);
    assert!(confirmed.exits(66).stdout.contains("): confirmed, "), "{confirmed:?}");
    command(&scratch, &["replay", "R1", "--events"]).exits(0);

    scratch.compile("bank", &fixed(&bank), &["-O1"]);
    let confirmed = command(&scratch, &["confirm", "R1"]);
    assert!(confirmed.exits(0).stdout.contains("fixed, as far as that shows"), "{confirmed:?}");
    let ran = command(&scratch, &["run", "--", "./bank"]);
    assert!(ran.exits(0).stderr.starts_with("raddle: no data races in 4 threads"), "{ran:?}");
}

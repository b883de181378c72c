//! `raddle confirm RUN` after the program was built anew: the same pair is found again, and the
//! question is whether it is fixed.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

const BANK: &str = r#"
#include <pthread.h>
BEFORE
volatile int counter;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *guarded(void *unused) {
    pthread_mutex_lock(&m);
    counter = 1;
    pthread_mutex_unlock(&m);
    return unused;
}
static void *bare(void *unused) {
    TAKE
    counter = 7;
    GIVE
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, guarded, NULL);
    pthread_create(&b, NULL, bare, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return m.__data.__kind;
}
"#;

fn build(scratch: &Scratch, before: &str, around: [&str; 2], optimised: &str) {
    let source = BANK.replace("BEFORE", before).replace("TAKE", around[0]);
    scratch.compile("bank", &source.replace("GIVE", around[1]), &[optimised]);
}

fn command(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let mut command = Command::new(raddle());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    Ran::new(command.output().unwrap())
}

fn rebuilt(scratch: &Scratch) -> (Value, Value) {
    let text = std::fs::read_to_string(scratch.path("out/report.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let confirmation = report["findings"][0]["confirmation"].clone();
    (confirmation["confirmed"].clone(), confirmation["rebuilt"].clone())
}

#[test]
fn is_it_fixed() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    build(&scratch, "", ["", ""], "-O1");
    command(&scratch, &["run", "--quiet", "--out", "out", "--", "./bank"]).exits(66);
    command(&scratch, &["confirm", "out/R1"]).exits(66);
    assert_eq!(rebuilt(&scratch), (true.into(), Value::Null));

    // Lines are added above, and the compiler makes other code of them: nothing is where it was.
    let moved = "int before[100];\n\nint more(int x) { return before[x % 100] + x; }\n";
    build(&scratch, moved, ["", ""], "-O0");
    let ran = command(&scratch, &["confirm", "out"]);
    assert!(
        ran.exits(66).stdout.contains("it still happens in the new build: not fixed"),
        "{ran:?}"
    );
    let (confirmed, now) = rebuilt(&scratch);
    assert_eq!(
        (confirmed, &now["found"], &now["fixed"]),
        (true.into(), &true.into(), &false.into())
    );
    command(&scratch, &["replay", "out/R1"]).exits(0);

    // Fixed with a lock: both places are there, and can no longer meet.
    let lock = ["pthread_mutex_lock(&m);", "pthread_mutex_unlock(&m);"];
    build(&scratch, moved, lock, "-O1");
    let ran = command(&scratch, &["confirm", "out"]);
    assert!(ran.exits(0).stdout.contains("fixed, as far as that shows"), "{ran:?}");
    let (confirmed, now) = rebuilt(&scratch);
    assert_eq!(
        (confirmed, &now["found"], &now["fixed"]),
        (false.into(), &true.into(), &true.into())
    );
    let report = command(&scratch, &["report", "out"]).stdout;
    assert!(report.contains("  fixed: it did not happen in the new build, "), "{report}");

    // The code itself is gone.
    build(&scratch, moved, ["if (0) {", "}"], "-O1");
    let ran = command(&scratch, &["confirm", "out"]);
    assert!(ran.exits(0).stdout.contains("its code is no longer there"), "{ran:?}");
}

//! The command at a real pseudo-terminal: colours, columns, progress, and Ctrl-C.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use support::Scratch;
use terminal::{Shown, at_terminal};

/// Two threads write `counter`; the program takes as long as its argument says, in tenths of a
/// second of real time.
const RACY: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
volatile int counter;
static void *writer(void *unused) {
    counter = 1;
    return unused;
}
int main(int n, char **words) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, writer, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    struct timespec tenth = { 0, 100000000 };
    for (int i = 0; n > 1 && i < atoi(words[1]); i++) nanosleep(&tenth, NULL);
    return 0;
}
"#;

fn program() -> Option<Scratch> {
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        scratch.compile("bank", RACY, &[]);
        scratch
    })
}

fn shown(scratch: &Scratch, columns: u32, interrupt: &str, arguments: &[&str]) -> Option<Shown> {
    at_terminal(&scratch.path("."), columns, interrupt, arguments, &[])
}

const COLOUR: &str = "\x1b[1;31m";

#[test]
fn colours_and_columns_are_for_terminals() {
    let Some(scratch) = program() else { return };
    let Some(wide) = shown(&scratch, 160, "", &["run", "--", "./bank"]) else { return };
    assert_eq!(wide.code, 66, "{wide:?}");
    assert!(wide.screen.contains(COLOUR) && wide.screen.contains(" │ "), "{wide:?}");
    let narrow = shown(&scratch, 80, "", &["report"]).unwrap();
    assert!(narrow.screen.contains(COLOUR) && !narrow.screen.contains(" │ "), "{narrow:?}");
    let plain = [("NO_COLOR", "1")];
    let plain = at_terminal(&scratch.path("."), 80, "", &["report"], &plain).unwrap();
    assert!(!plain.screen.contains('\x1b'), "{plain:?}");
    let too_wide = plain.screen.lines().map(|line| line.trim_end().chars().count());
    assert!(too_wide.max().unwrap() <= 80, "{plain:?}");
}

#[test]
fn what_takes_long_says_how_far_it_is() {
    let Some(scratch) = program() else { return };
    let Some(run) = shown(&scratch, 120, "", &["run", "--quiet", "--", "./bank", "15"]) else {
        return;
    };
    assert_eq!(run.code, 66, "{run:?}");
    let arguments = ["confirm", "--time", "real", "--trials", "6", "--rates", "--jobs", "1"];
    let confirm = shown(&scratch, 120, "", &arguments).unwrap();
    assert_eq!(confirm.code, 66, "{confirm:?}");
    assert!(confirm.screen.contains(" of 6 trials, "), "{confirm:?}");
    assert!(confirm.screen.contains("R1 (counter): confirmed, 6 of 6 "), "{confirm:?}");
    let replay = shown(&scratch, 120, "", &["replay", "R1", "--events"]).unwrap();
    assert!(replay.screen.contains("\x1b[1;31m▶ "), "{replay:?}");
}

#[test]
fn a_long_run_shows_that_it_is_alive_unless_the_terminal_is_the_targets() {
    let Some(scratch) = program() else { return };
    let arguments = ["run", "--", "./bank", "40"];
    let elsewhere = [("STDOUT", "output")];
    let Some(run) = at_terminal(&scratch.path("."), 120, "", &arguments, &elsewhere) else {
        return;
    };
    assert_eq!(run.code, 66, "{run:?}");
    assert!(run.screen.contains("raddle: watching bank: 1 finding ("), "{run:?}");
    // It is wiped away before the report.
    let (_, report) = run.screen.rsplit_once("watching bank").unwrap();
    let (wiped, _) = report.split_once("data race on counter").unwrap();
    assert!(wiped.contains("\x1b[2K") || wiped.contains("\x1b[J"), "{run:?}");
    let shared = shown(&scratch, 120, "", &arguments).unwrap();
    assert_eq!(shared.code, 66, "{shared:?}");
    assert!(!shared.screen.contains("watching bank"), "{shared:?}");
}

#[test]
fn ctrl_c_ends_with_what_was_found_so_far() {
    let Some(scratch) = program() else { return };
    // A run: the target dies of it, and the report is written.
    let run = shown(&scratch, 120, "data race on counter", &["run", "--", "./bank", "6000"]);
    let Some(run) = run else { return };
    assert_eq!(run.code, 66, "{run:?}");
    assert!(run.screen.contains("report in .raddle/1/report.json"), "{run:?}");
    // A plan of many executions: what the first have shown is kept.
    shown(&scratch, 120, "", &["run", "--quiet", "--", "./bank", "15"]).unwrap();
    let arguments =
        ["confirm", "2", "--time", "real", "--trials", "1000", "--rates", "--jobs", "1"];
    let confirm = shown(&scratch, 120, " of 1000 trials, ", &arguments).unwrap();
    assert_eq!(confirm.code, 66, "{confirm:?}");
    assert!(confirm.screen.contains("interrupted; what was found so far"), "{confirm:?}");
    let report = std::fs::read_to_string(scratch.path(".raddle/2/report.json")).unwrap();
    assert!(report.contains("\"confirmed\": true"), "{report}");
}

#[test]
fn a_report_fits_the_screen_with_what_to_type_next() {
    let Some(scratch) = program() else { return };
    let Some(run) = shown(&scratch, 80, "", &["run", "--quiet", "--", "./bank"]) else { return };
    assert_eq!(run.code, 66, "{run:?}");
    let report = shown(&scratch, 80, "", &["report"]).unwrap();
    // The prompt needs a row, too.
    assert!(report.screen.lines().count() < terminal::ROWS, "{report:?}");
    assert!(report.screen.trim_end().ends_with("next: raddle confirm R1"), "{report:?}");
}

#[test]
fn who_is_interrupted_does_not_hear_that_it_is_fixed() {
    let Some(scratch) = program() else { return };
    let Some(run) = shown(&scratch, 120, "", &["run", "--quiet", "--", "./bank", "15"]) else {
        return;
    };
    assert_eq!(run.code, 66, "{run:?}");
    // Another build, in which one thread ends before the next begins: the line is there, to be tried.
    let (each, one) = ("for (int i = 0; i < 2; i++) ", "pthread_join(threads[i], NULL);");
    let created = "pthread_create(&threads[i], NULL, writer, NULL);";
    let fixed = RACY.replace(&format!("{each}{one}"), "");
    let fixed = fixed.replace(created, &format!("{{ {created} {one} }}"));
    scratch.compile("bank", &fixed, &["-O1"]);
    let arguments = ["confirm", "--time", "real", "--trials", "1000", "--jobs", "1"];
    let confirm = shown(&scratch, 120, " of 1000 trials, ", &arguments).unwrap();
    assert!(!confirm.screen.contains("fixed, as far as"), "{confirm:?}");
    assert!(confirm.screen.contains("whether it is fixed is not known"), "{confirm:?}");
    let report = std::fs::read_to_string(scratch.path(".raddle/1/report.json")).unwrap();
    assert!(!report.contains("\"rebuilt\": {"), "{report}");
}

#[test]
fn a_hunt_that_is_interrupted_says_so_and_leaves_no_progress_behind() {
    let Some(scratch) = program() else { return };
    let arguments =
        ["hunt", "--time", "real", "--budget", "10m", "--jobs", "1", "--", "./bank", "15"];
    let Some(hunt) = shown(&scratch, 120, " executions explored, ", &arguments) else { return };
    let (before, after) = hunt.screen.split_once("interrupted after ").unwrap();
    assert!(after.contains(" executions; what was found so far is in .raddle/"), "{hunt:?}");
    assert!(after.trim_end().ends_with("next: raddle replay R1"), "{hunt:?}");
    // Behind the last sign of life the line is cleared, and nothing draws it again.
    let (_, last) = before.rsplit_once("kinds of failure").unwrap();
    assert!(last.contains("\x1b[2K") || last.contains("\x1b[J"), "{hunt:?}");
}

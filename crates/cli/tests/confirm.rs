//! `raddle confirm` and `raddle replay`: the paper's two figures as programs.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

fn command(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let mut command = Command::new(raddle());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    Ran::new(command.output().unwrap())
}

fn report(scratch: &Scratch) -> Value {
    let text = std::fs::read_to_string(scratch.path("out/report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn finding<'a>(report: &'a Value, variable: &str) -> &'a Value {
    let mut findings = report["findings"].as_array().unwrap().iter();
    findings.find(|f| f["location"]["name"] == variable).unwrap_or_else(|| panic!("{report:#}"))
}

fn program(source: &str) -> Option<Scratch> {
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        scratch.compile("figure", source, &["-O0", "-Wl,-z,now"]);
        scratch
    })
}

/// Looks for races under one seed after the other until the program ends well and what was found
/// is as wanted.
///
/// As the paper's first phase looks for them: what critical sections read of each other is left aside, or
/// what cannot happen would not be found to begin with.
fn detect(scratch: &Scratch, wanted: impl Fn(&Value) -> bool) -> bool {
    (1..20).any(|seed| {
        let _ = std::fs::remove_dir_all(scratch.path("out"));
        let seed = seed.to_string();
        let run = ["run", "--quiet", "--condvars", "plain", "--seed", &seed, "--out", "out"];
        command(scratch, &[&run[..], &["--", "./figure"]].concat());
        let report = report(scratch);
        report["outcome"]["exit"] == 0 && wanted(&report)
    })
}

/// Figure 1 of the paper: the pair on z races; that on x cannot, because y tells thread 2 when x is
/// set.
const FIGURE_1: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
volatile int x, y, z;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *thread1(void *unused) {
    x = 1;
    pthread_mutex_lock(&lock);
    y = 1;
    pthread_mutex_unlock(&lock);
    if (z == 1) { fputs("ERROR1\n", stderr); exit(3); }
    return unused;
}
static void *thread2(void *unused) {
    z = 1;
    pthread_mutex_lock(&lock);
    if (y == 1) {
        if (x != 1) { fputs("ERROR2\n", stderr); exit(4); }
    }
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, thread1, NULL);
    pthread_create(&b, NULL, thread2, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
"#;

#[test]
fn figure_1_the_pair_on_z_is_confirmed_and_the_pair_on_x_never() {
    let Some(scratch) = program(FIGURE_1) else { return };
    assert!(detect(&scratch, |report| report["findings"].as_array().unwrap().len() == 2));
    let ran = command(&scratch, &["confirm", "out", "--trials", "1000", "--rates"]);
    ran.exits(66);
    let report = report(&scratch);
    let z = &finding(&report, "z")["confirmation"];
    assert_eq!((&z["confirmed"], &z["hits"]), (&true.into(), &1000.into()), "{z:#}");
    let effects = z["effects"].as_array().unwrap();
    assert!(effects.iter().any(|e| e["effect"] == "exit code 3"), "{z:#}");
    assert!(effects.iter().any(|e| e["effect"] == "nothing"), "{z:#}");
    let x = &finding(&report, "x")["confirmation"];
    assert_eq!((&x["confirmed"], &x["hits"]), (&false.into(), &0.into()), "{x:#}");
    // Wilson's interval of 1,000 and of none of 1,000.
    assert_eq!(z["interval"], json!({"low": 0.9962, "high": 1.0}), "{z:#}");
    assert_eq!(x["interval"], json!({"low": 0.0, "high": 0.0038}), "{x:#}");
    assert_eq!(x["failed"], 0, "{x:#}");

    let id = finding(&report, "z")["id"].as_str().unwrap().to_owned();
    for order in ["1", "2"] {
        let name = format!("out/{id}");
        for _ in 0..5 {
            let replay = command(&scratch, &["replay", &name, "--order", order]);
            assert!(replay.exits(0).stderr.contains("repeated"), "{replay:?}");
        }
    }
    let shown = command(&scratch, &["replay", &format!("out/{id}"), "--events", "--order", "2"]);
    let rows: Vec<(&str, &str)> =
        shown.exits(0).stderr.lines().filter_map(|line| line.split_once(" │")).collect();
    // Each thread in its column, with source and values; the write went first, so the read saw it.
    let at = |left: bool, wanted: &str| {
        rows.iter().position(|row| if left { row.0 } else { row.1 }.contains(wanted))
    };
    let (read, write) = (at(true, "▶ read 4 bytes, z"), at(false, "▶ write 4 bytes, z, 0 → 1"));
    let (read, write) = match (read, write) {
        (Some(read), Some(write)) => (read, write),
        // Which access the detector saw first is chance.
        _ => (
            at(false, "▶ read 4 bytes, z").unwrap_or_else(|| panic!("{shown:?}")),
            at(true, "▶ write 4 bytes, z, 0 → 1").unwrap_or_else(|| panic!("{shown:?}")),
        ),
    };
    let saw = if write < read { "sees 1" } else { "sees 0" };
    assert!(shown.stderr.contains(saw), "{shown:?}");
    assert!(shown.stderr.contains("if (z == 1)") && shown.stderr.contains("z = 1;"), "{shown:?}");

    // The page shows both orders as they were recorded, and says what is not.
    let html = scratch.path("page.html");
    let page = ["report", "out", "--html", html.to_str().unwrap()];
    command(&scratch, &page).exits(0);
    let html = std::fs::read_to_string(html).unwrap();
    assert_eq!(html.matches("(replayed, seed ").count(), 2, "{html}");
    for part in ["0 → 1", "sees 1", "sees 0", "then: exit code 3", "1000 of 1000 ("] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(
        html.contains("not recorded: <code>raddle confirm"),
        "x was never made to happen: {html}"
    );
}

/// A lock of the program's own, which only a hook file knows.
const OWN_LOCK: &str = r#"
#include <pthread.h>
volatile int taken, value;
__attribute__((noinline)) void own_lock(volatile int *l) {
    while (__atomic_exchange_n(l, 1, __ATOMIC_ACQUIRE)) ;
}
__attribute__((noinline)) void own_unlock(volatile int *l) {
    __atomic_store_n(l, 0, __ATOMIC_RELEASE);
}
static void *thread1(void *unused) {
    own_lock(&taken);
    value = 1;
    own_unlock(&taken);
    return unused;
}
static void *thread2(void *unused) {
    value = 2;
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, thread1, NULL);
    pthread_create(&b, NULL, thread2, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
"#;

const HOOKS: &str = r#"
[library]
name = "own"

[[hook]]
functions = ["own_lock"]
role = "lock.acquire"
object = "arg1"

[[hook]]
functions = ["own_unlock"]
role = "lock.release"
object = "arg1"
"#;

#[test]
fn hook_files_reach_every_execution() {
    let Some(scratch) = program(OWN_LOCK) else { return };
    scratch.put("own.toml", HOOKS);
    let shown = |arguments: &[&str]| {
        command(&scratch, arguments);
        command(&scratch, &["replay", "out/R1", "--events"]).exits(0).stderr.clone()
    };
    command(&scratch, &["run", "--quiet", "--out", "out", "--", "./figure"]).exits(66);
    let without = shown(&["confirm", "out/R1"]);
    assert!(!without.contains("takes taken"), "{without}");
    let with = shown(&["confirm", "out/R1", "--hooks", "own.toml"]);
    assert!(with.contains("takes taken [holds taken]"), "{with}");
    // The run's own hook files are remembered with it.
    std::fs::remove_dir_all(scratch.path("out")).unwrap();
    let run = ["run", "--quiet", "--hooks", "own.toml", "--out", "out", "--", "./figure"];
    command(&scratch, &run).exits(66);
    let remembered = shown(&["confirm", "out/R1"]);
    assert!(remembered.contains("takes taken [holds taken]"), "{remembered}");
    scratch.put("wrong.toml", "[library]\nname = 1\n");
    for arguments in [
        ["confirm", "out", "--hooks", "wrong.toml"].as_slice(),
        &["replay", "out/R1", "--hooks", "wrong.toml"],
        &["hunt", "--hooks", "wrong.toml", "--", "./figure"],
    ] {
        let wrong = command(&scratch, arguments);
        assert!(wrong.exits(125).stderr.starts_with("raddle: wrong.toml:"), "{wrong:?}");
    }
}

/// Figure 2: the error needs thread 1's last statement to come before thread 2's first. Its
/// read and the write are DISTANCE statements apart.
const FIGURE_2: &str = r#"
#include <pthread.h>
#include <stdlib.h>
volatile int x;
volatile long filler;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *thread1(void *unused) {
    pthread_mutex_lock(&lock);
    for (long i = 0; i < DISTANCE; i++) filler++;
    pthread_mutex_unlock(&lock);
    if (x == 0) exit(3);
    return unused;
}
static void *thread2(void *unused) {
    x = 1;
    pthread_mutex_lock(&lock);
    filler++;
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&b, NULL, thread2, NULL);
    pthread_create(&a, NULL, thread1, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
"#;

fn figure_2(distance: &str) {
    let Some(scratch) = program(&FIGURE_2.replace("DISTANCE", distance)) else { return };
    const TRIALS: u64 = 30;
    assert!(detect(&scratch, |report| report["findings"][0]["location"]["name"] == "x"));
    let trials = TRIALS.to_string();
    command(&scratch, &["confirm", "out", "--trials", &trials, "--rates"]).exits(66);
    let report = report(&scratch);
    let confirmation = &finding(&report, "x")["confirmation"];
    assert_eq!(confirmation["hits"], TRIALS, "{confirmation:#}");
    let effects = confirmation["effects"].as_array().unwrap().iter();
    let errors = effects.filter(|e| e["effect"] == "exit code 3");
    let errors: u64 = errors.map(|e| e["count"].as_u64().unwrap()).sum();
    // Of thirty fair coins, outside this in one of thirty thousand.
    assert!((4..=26).contains(&errors), "{confirmation:#}");
}

#[test]
fn figure_2_the_race_is_created_every_time_at_distance_10() {
    figure_2("10");
}

#[test]
fn figure_2_the_race_is_created_every_time_at_distance_1000() {
    figure_2("1000");
}

#[test]
fn figure_2_the_race_is_created_every_time_at_distance_100000() {
    figure_2("100000");
}

#[test]
fn what_cannot_be_confirmed_or_replayed_gets_a_sentence() {
    let Some(scratch) = program(FIGURE_1) else { return };
    command(&scratch, &["run", "--quiet", "--seed", "1", "--out", "out", "--", "./figure"]);
    let wrong = command(&scratch, &["confirm", "out", "--only", "R9"]);
    assert!(wrong.exits(125).stderr.contains("there is no finding R9; there are R1"), "{wrong:?}");
    let early = command(&scratch, &["replay", "out/R1"]);
    assert!(early.exits(125).stderr.contains("was not confirmed"), "{early:?}");
    let one = command(&scratch, &["confirm", "out/R9"]);
    assert!(one.exits(125).stderr.contains("there is no R9 in out/report.json"), "{one:?}");
}

#[test]
fn races_are_looked_for_under_the_policy_asked_for() {
    let Some(scratch) = program(FIGURE_1) else { return };
    let looking = ["confirm", "--policy", "pct", "--seed", "3", "--trials", "1", "--", "./figure"];
    let schedules = ["1", "2"].map(|run| {
        command(&scratch, &looking);
        std::fs::read_to_string(scratch.path(&format!(".raddle/{run}/schedule"))).unwrap()
    });
    assert!(schedules[0].contains("\nseed 3\npolicy pct 3 1000\n"), "{}", schedules[0]);
    assert_eq!(schedules[0], schedules[1]);
}

/// Executions of the paper's second figure, of which every one is directed and met.
fn directed() -> Option<Scratch> {
    let scratch = program(&FIGURE_2.replace("DISTANCE", "1000"))?;
    assert!(detect(&scratch, |report| report["findings"][0]["location"]["name"] == "x"));
    Some(scratch)
}

#[test]
fn a_policy_asked_for_tells_how_often_it_happens_and_takes_nothing_back() {
    let Some(scratch) = directed() else { return };
    let confirm = |arguments: &[&str]| {
        let common = ["confirm", "out", "--rates", "--trials", "12"];
        command(&scratch, &[&common, arguments].concat())
    };
    let known = || finding(&report(&scratch), "x")["confirmation"].clone();
    // In turn, the two are never there at once: there is no chance in it.
    let in_turn = confirm(&["--policy", "round-robin"]);
    let said = "not confirmed in 12 trials under round-robin";
    assert!(in_turn.exits(0).stdout.contains(said), "{in_turn:?}");
    assert_eq!((&known()["policy"], &known()["hits"]), (&json!("round-robin"), &json!(0)));
    let text = command(&scratch, &["report", "out"]).stdout;
    assert!(text.contains("did not happen in 12 executions under round-robin"), "{text}");

    confirm(&[]).exits(66);
    let directed = known();
    assert_eq!((&directed["hits"], &directed["policy"]), (&json!(12), &Value::Null));
    assert_eq!(directed["under"][0]["policy"], "round-robin", "{directed:#}");

    let kept = || std::fs::read_to_string(scratch.path("out/R1.1.schedule")).unwrap();
    let before = kept();
    let pct = confirm(&["--policy", "pct", "--depth", "2"]);
    assert!(pct.stdout.contains(" under pct of depth 2"), "{pct:?}");
    assert!(pct.stdout.contains("it was confirmed before, and stays so"), "{pct:?}");
    let (after, rows) = (known(), known()["under"].as_array().unwrap().len());
    assert_eq!((&after["hits"], &after["confirmed"], rows), (&json!(12), &json!(true), 2));
    assert_eq!((kept(), &after["orders"]), (before, &directed["orders"]));
    // The same seeds are the same executions, and one row tells of them.
    confirm(&["--policy", "pct", "--depth", "2"]);
    assert_eq!(known()["under"], after["under"]);
    let text = command(&scratch, &["report", "out"]).stdout;
    assert!(text.contains("under pct of depth 2, it happened in "), "{text}");
    command(&scratch, &["replay", "out/R1"]).exits(0);
}

#[test]
fn another_execution_is_made_of_a_replay_and_said_to_be() {
    let Some(scratch) = directed() else { return };
    command(&scratch, &["confirm", "out", "--trials", "20"]).exits(66);
    let known = finding(&report(&scratch), "x")["confirmation"].clone();
    for order in known["orders"].as_array().unwrap() {
        let (number, seed) = (order["order"].to_string(), order["seed"].as_str().unwrap());
        let own = ["replay", "out/R1", "--order", &number, "--seed", seed];
        let own = command(&scratch, &own);
        assert!(own.exits(0).stderr.contains("it was the same execution"), "{own:?}");
    }
    let seed = command(&scratch, &["replay", "out/R1", "--seed", "4711", "--events"]);
    let tells = |what| seed.stderr.contains(what);
    assert!(tells("R1 under race-directed, seed 4711: another execution"), "{seed:?}");
    seed.exits(0);
    assert!(tells("the two accesses met") && tells("▶"), "{seed:?}");
    let in_turn = command(&scratch, &["replay", "out/R1", "--policy", "round-robin"]);
    assert!(in_turn.exits(1).stderr.contains("the two accesses did not meet"), "{in_turn:?}");
    // What is repeated stays what it was.
    command(&scratch, &["replay", "out/R1"]).exits(0);
}

#[test]
fn no_execution_begins_when_the_time_is_up() {
    let Some(scratch) = directed() else { return };
    let within = |time, trials| {
        let confirm = ["confirm", "out", "--rates", "--jobs", "1", "--trials", trials];
        command(&scratch, &[&confirm[..], &["--within", time]].concat())
    };
    let trials = || finding(&report(&scratch), "x")["confirmation"]["trials"].clone();
    within("10m", "8").exits(66);
    assert_eq!(trials(), 8);
    // The time is up before the first execution, or it was the last.
    let late = within("1ms", "1000000");
    match late.stderr.contains("no time to try R1") {
        true => assert_eq!((late.exits(0).stdout.as_str(), trials()), ("", json!(8)), "{late:?}"),
        false => assert_eq!(trials(), 1, "{late:?}"),
    }
}

//! The command in everyday use: other forms, suppressions, a baseline, configuration, help.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

/// Two threads write `counter`, nothing keeps them apart; EXTRA stands before.
const RACY: &str = r#"
#include <pthread.h>
EXTRA
volatile int counter;
static void *writer(void *unused) {
    counter = 1;
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, writer, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 3;
}
"#;

fn compiled() -> Option<Scratch> {
    support::has_probe().then(|| {
        let scratch = Scratch::new();
        scratch.compile("bank", &RACY.replace("EXTRA", ""), &["-Wl,-z,now"]);
        scratch
    })
}

fn raddle_in(scratch: &Scratch, arguments: &[&str]) -> Ran {
    raddle_with(scratch, arguments, &[])
}

fn raddle_with(scratch: &Scratch, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(raddle());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    command.envs(variables.iter().copied());
    Ran::new(command.output().unwrap())
}

fn run(scratch: &Scratch, options: &[&str]) -> Ran {
    raddle_in(scratch, &[&["run"], options, &["--", "./bank"]].concat())
}

#[test]
fn every_form_of_the_same_finding() {
    let Some(scratch) = compiled() else { return };
    std::fs::create_dir(scratch.path(".git")).unwrap();
    run(&scratch, &["--sarif", "r.sarif", "--junit", "r.xml", "--html", "r.html"]).exits(66);
    let read = |name: &str| std::fs::read_to_string(scratch.path(name)).unwrap();
    let sarif: Value = serde_json::from_str(&read("r.sarif")).unwrap();
    let location = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "bank.c");
    assert_eq!(location["region"]["startLine"], 6);
    assert!(read("r.xml").contains("failures=\"1\""));
    assert!(read("r.html").contains("counter <mark>=</mark> 1;"), "{}", read("r.html"));
    let again = raddle_in(&scratch, &["report", "--format", "sarif"]);
    assert_eq!(again.exits(0).stdout, read("r.sarif"));
    let github = raddle_in(&scratch, &["report", "--format", "github"]).stdout;
    assert!(github.starts_with("::error file=bank.c,line=6,"), "{github}");
    let quiet = raddle_in(&scratch, &["report", "--html", "again.html"]);
    assert_eq!(quiet.exits(0).stdout.lines().count(), 2, "{quiet:?}");
    assert_eq!(read("again.html"), read("r.html"));
    let wrong = raddle_in(&scratch, &["report", "--html", "/none/x.html"]);
    assert!(wrong.exits(125).stderr.starts_with("raddle: writing /none/x.html: "), "{wrong:?}");
}

#[test]
fn suppressions_of_every_format() {
    let Some(scratch) = compiled() else { return };
    for (name, text) in [
        ("tsan.supp", "# ours\nrace:writer\nrace:gone\n"),
        (
            "valgrind.supp",
            "{\n  ours\n  Helgrind:Race\n  fun:writer\n}\n{\n gone\n Helgrind:Race\n fun:x\n}\n",
        ),
        (
            "own.toml",
            "[[suppress]]\nvariable = 'counter'\nreason = 'a test'\n[[suppress]]\nfunction = 'gone'\nreason = 'x'\n",
        ),
    ] {
        scratch.put(name, text);
        let ran = run(&scratch, &["--suppressions", name]);
        // Nothing was found, so the target's own code is passed on.
        ran.exits(3);
        assert!(ran.stderr.contains("; 1 suppressed; "), "{ran:?}");
        assert!(ran.stderr.contains("matched nothing: ") && ran.stderr.contains("gone"), "{ran:?}");
    }
    let ran = run(&scratch, &["--quiet", "--gen-suppressions", "made.toml"]);
    ran.exits(66);
    run(&scratch, &["--suppressions", "made.toml"]).exits(3);
    scratch.put("wrong.supp", "race:x\nrcae:y\n");
    let ran = run(&scratch, &["--suppressions", "wrong.supp"]);
    assert_eq!(
        ran.exits(125).stderr,
        "raddle: wrong.supp:2: there is no type 'rcae'; did you mean race?\n"
    );
}

#[test]
fn suppressions_that_valgrind_makes_of_optimised_cplusplus() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let source = "#include <thread>\nstatic int x;\nstatic void f(int n) { x += n; }\n\
                  int main() { std::thread a(f, 1), b(f, 2); a.join(); b.join(); }\n";
    scratch.put("m.cpp", source);
    let in_scratch = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null()).output()
    };
    let made = in_scratch("g++", &["-g", "-O1", "-pthread", "m.cpp", "-o", "m"]);
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: there is no g++; `./dev setup` installs it");
        return;
    }
    raddle_in(&scratch, &["run", "--quiet", "--", "./m"]).exits(66);
    for tool in ["--tool=helgrind", "--tool=drd"] {
        let Ok(ran) = in_scratch("valgrind", &[tool, "--gen-suppressions=all", "./m"]) else {
            eprintln!("skipped: there is no valgrind; `./dev setup` installs it");
            return;
        };
        let log = String::from_utf8_lossy(&ran.stderr).into_owned();
        let entries: Vec<&str> = log.lines().filter(|line| !line.starts_with("==")).collect();
        scratch.put("made.supp", entries.join("\n"));
        let ran = raddle_in(&scratch, &["run", "--suppressions", "made.supp", "--", "./m"]);
        assert!(ran.exits(0).stderr.contains(" suppressed"), "{tool}: {ran:?}\n{log}");
    }
}

#[test]
fn a_report_leaves_out_what_a_run_would() {
    let Some(scratch) = compiled() else { return };
    run(&scratch, &["--quiet"]).exits(66);
    let report = |options: &[&str]| raddle_in(&scratch, &[&["report"], options].concat());
    assert!(report(&[]).exits(0).stdout.contains("R1  data race on counter"));
    scratch.put("tsan.supp", "race:writer\nrace:gone\n");
    let suppressed = report(&["--suppressions", "tsan.supp", "--sarif", "r.sarif"]);
    assert!(suppressed.exits(0).stdout.contains("no data races"), "{suppressed:?}");
    assert!(suppressed.stdout.contains("; 1 suppressed"), "{suppressed:?}");
    assert!(suppressed.stderr.contains("matched nothing: tsan.supp:2 race:gone"), "{suppressed:?}");
    let sarif: Value =
        serde_json::from_slice(&std::fs::read(scratch.path("r.sarif")).unwrap()).unwrap();
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 0);
    raddle_in(&scratch, &["baseline"]).exits(0);
    let known = report(&["--baseline", "raddle-baseline.json"]);
    assert!(known.exits(0).stdout.contains("no new data races"), "{known:?}");
    let hidden = report(&["--ignore", "bank"]);
    assert!(hidden.exits(0).stdout.contains("1 left out by --only-in or --ignore"), "{hidden:?}");
    let wrong = report(&["--suppressions", "none.supp"]);
    assert!(wrong.exits(125).stderr.contains("reading the suppressions none.supp"), "{wrong:?}");
    // The run itself is as it was.
    assert!(report(&[]).exits(0).stdout.contains("R1  data race on counter"));
}

#[test]
fn a_baseline_survives_a_rebuild_and_fails_on_what_is_new() {
    let Some(scratch) = compiled() else { return };
    run(&scratch, &["--quiet"]).exits(66);
    let said = raddle_in(&scratch, &["baseline"]);
    assert_eq!(said.exits(0).stdout, "raddle-baseline.json knows 1 finding, 1 of them new\n");
    // The lines move, the addresses too.
    let moved = RACY.replace("EXTRA", "int before[100];\n\n\nint more(void) { return 7; }\n");
    scratch.compile("bank", &moved, &["-Wl,-z,now", "-O2"]);
    let ran = run(&scratch, &["--baseline", "raddle-baseline.json"]);
    ran.exits(3);
    assert!(ran.stderr.contains("no new data races") && ran.stderr.contains("1 known"), "{ran:?}");
    // Something new.
    let new = moved.replace("counter", "other");
    scratch.compile("bank", &new, &["-Wl,-z,now"]);
    run(&scratch, &["--quiet", "--baseline", "raddle-baseline.json"]).exits(66);
    let said = raddle_in(&scratch, &["baseline"]);
    assert_eq!(said.exits(0).stdout, "raddle-baseline.json knows 2 findings, 1 of them new\n");
    run(&scratch, &["--quiet", "--baseline", "raddle-baseline.json"]).exits(3);
}

#[test]
fn configuration_reaches_the_run() {
    let Some(scratch) = compiled() else { return };
    scratch.put(
        "raddle.toml",
        "[run]\nerror-exitcode = 7\nquiet = true\n[profile.ci]\nformat = 'json'\n",
    );
    let ran = run(&scratch, &[]);
    ran.exits(7);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    let all = ["run", "--", "./bank"];
    raddle_with(&scratch, &all, &[("RADDLE_ERROR_EXITCODE", "8")]).exits(8);
    run(&scratch, &["--error-exitcode", "9"]).exits(9);
    let said = raddle_in(&scratch, &["config", "run", "--profile", "ci"]).stdout;
    assert!(said.contains("raddle.toml, profile ci\n"), "{said}");
    let line = |option: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(option)).unwrap();
        line.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(line("--error-exitcode ")[1], "7");
    assert!(line("--error-exitcode ")[2].ends_with("raddle.toml:2"), "{said}");
    assert_eq!(line("--error-exitcode ")[3], "[run]");
    assert_eq!(
        line("--format ")[1..],
        ["json".to_owned(), line("--format ")[2].clone(), "[profile.ci]".into()]
    );
    assert_eq!(line("--detector ")[1..], ["hybrid", "default"]);
    let wrong = raddle_with(&scratch, &all, &[("RADDLE_TIMEOUT", "soon")]);
    assert!(
        wrong.exits(125).stderr.ends_with("that value comes from RADDLE_TIMEOUT\n"),
        "{wrong:?}"
    );
}

#[test]
fn help_in_words() {
    let Some(scratch) = compiled() else { return };
    run(&scratch, &["--quiet"]).exits(66);
    let explained = raddle_in(&scratch, &["explain", "R1"]).stdout;
    for part in ["R1  data race on counter", "\nWhat to do:\n", "no-common-lock: ", "observed: "] {
        assert!(explained.contains(part), "{part} in {explained}");
    }
    assert_eq!(raddle_in(&scratch, &["explain", "1/r1"]).stdout, explained);
    let said = |what: &str| raddle_in(&scratch, &["explain", what]).exits(125).stderr.clone();
    assert_eq!(said("R9"), "raddle: there is no R9 in .raddle/1/report.json; it has R1\n");
    assert_eq!(
        said("data-rac"),
        "raddle: there is nothing called data-rac in a report; did you mean data-race?\n"
    );
    let doctor = raddle_in(&scratch, &["doctor"]);
    assert!(doctor.exits(0).stdout.contains("/bin/true was watched"), "{doctor:?}");
}

#[test]
fn a_baseline_survives_another_optimisation() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    // One instruction of -O2, two of -O0: other kinds of access meet.
    let adding =
        RACY.replace("EXTRA", "").replace("volatile ", "").replace("counter = 1", "counter += 1");
    scratch.compile("bank", &adding, &["-O2"]);
    run(&scratch, &["--quiet"]).exits(66);
    raddle_in(&scratch, &["baseline"]).exits(0);
    for level in ["-O0", "-O1", "-O2"] {
        scratch.compile("bank", &adding, &[level]);
        run(&scratch, &["--quiet", "--baseline", "raddle-baseline.json"]).exits(3);
    }
}

#[test]
fn what_is_typed_wrongly_is_named_with_the_nearest_right_thing() {
    let Some(scratch) = compiled() else { return };
    let stray = run(&scratch, &["--only-in", "bnak"]);
    let said =
        "--only-in bnak: no module of the program is there, and no finding; did you mean bank?";
    assert!(stray.exits(3).stderr.contains(said), "{stray:?}");
    assert!(!run(&scratch, &["--only-in", "bank"]).exits(66).stderr.contains("--only-in"));
    let seed = run(&scratch, &["--seed", "1_000"]);
    assert!(
        seed.exits(125).stderr.contains("expected a whole number such as 7; did you mean 1000?"),
        "{seed:?}"
    );
    scratch.put("known.toml", "[[suppress]]\nfunctoin = 'f'\nreason = 'x'\n");
    let key = run(&scratch, &["--suppressions", "known.toml"]);
    let said = "raddle: known.toml:2: there is no key functoin; did you mean function?\n";
    assert_eq!(key.exits(125).stderr, said);
    scratch.put("raddle.toml", "\n[run]\ntimeout = 'soon'\n");
    let value = run(&scratch, &[]);
    assert!(value.exits(125).stderr.contains("raddle.toml:3 [run]"), "{value:?}");
}

#[test]
fn manual_pages_and_completions() {
    let scratch = Scratch::new();
    raddle_in(&scratch, &["man", "--dir", "man1"]).exits(0);
    let page = std::fs::read_to_string(scratch.path("man1/raddle-run.1")).unwrap();
    assert!(page.contains(".TH raddle-run 1") && page.contains("detector"), "{page}");
    assert!(page.contains(".SH \"EXAMPLES\"") && !page.contains("EXTRA"), "{page}");
    let page = std::fs::read_to_string(scratch.path("man1/raddle.1")).unwrap();
    assert!(page.contains(".SH \"EXIT STATUS\""), "{page}");
    let written = |name: &str| scratch.path("man1").join(name).exists();
    assert!(written("cargo-raddle.1"));
    assert!(
        !["cargo", "trial", "as-child"].iter().any(|name| written(&format!("raddle-{name}.1")))
    );
    for shell in ["bash", "zsh", "fish"] {
        let text = raddle_in(&scratch, &["completions", shell]).exits(0).stdout.clone();
        assert!(text.contains("error-exitcode"), "{shell}: {text}");
    }
    let bash = raddle_in(&scratch, &["completions", "bash"]).stdout;
    let file = scratch.put("raddle.bash", &bash);
    assert!(Command::new("bash").arg("-n").arg(file).status().unwrap().success());
}

//! Reports of the peers, made by the peers in the test itself, read as candidates.

#![allow(clippy::unwrap_used)]

use raddle_report::import::{Candidate, Tool, import};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Two threads, a write at line 6 and a read at line 10 of `counter`, kept apart by nothing but
/// time. A third place, locked, that must not come up.
const RACY: &str = r#"#include <pthread.h>
#include <unistd.h>
volatile int counter, locked;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *writer(void *unused) {
    counter = 1; // line 6
    return unused;
}
static void *reader(void *unused) {
    int seen = counter; // line 10
    pthread_mutex_lock(&m);
    locked = seen;
    pthread_mutex_unlock(&m);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, writer, NULL);
    pthread_create(&b, NULL, reader, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
"#;

struct Scratch(tempfile::TempDir);

impl Scratch {
    /// The program, compiled; none where there is no such compiler or option.
    fn new(flags: &[&str]) -> Option<Self> {
        let scratch = Scratch(tempfile::tempdir().unwrap());
        std::fs::write(scratch.path("race.c"), RACY).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-O1", "-pthread", "race.c", "-o", "race"]).args(flags);
        let compiled = gcc.current_dir(scratch.0.path()).stderr(Stdio::null()).status();
        let compiled = compiled.is_ok_and(|status| status.success());
        if !compiled {
            eprintln!("skipped: gcc {flags:?} does not work here");
        }
        compiled.then_some(scratch)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs with standard error in a file; none where there is no such program.
    fn run(&self, program: &str, arguments: &[&str]) -> Option<PathBuf> {
        let log = self.path("log");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        match command.status() {
            Ok(_) => Some(log),
            Err(_) => {
                eprintln!("skipped: there is no {program}");
                None
            }
        }
    }
}

/// The lines of race.c that a candidate is about, by reading and writing.
fn lines(candidate: &Candidate) -> Vec<(bool, Option<u32>)> {
    let sides = [Some(&candidate.access), candidate.other.as_ref()].into_iter().flatten();
    let mut lines: Vec<_> = sides
        .map(|side| {
            let top = &side.stack[0];
            assert!(top.file.as_deref().unwrap().ends_with("race.c"), "{top:?}");
            (side.writes, top.line)
        })
        .collect();
    lines.sort();
    lines
}

fn is_the_race(candidates: &[Candidate], tool: Tool) {
    assert_eq!(candidates.len(), 1, "{candidates:#?}");
    let candidate = &candidates[0];
    assert_eq!(candidate.tool, tool);
    assert_eq!(lines(candidate), [(false, Some(10)), (true, Some(6))]);
    assert_eq!(candidate.access.size, Some(4));
    assert_eq!(candidate.variable.as_deref(), Some("counter"));
    let functions: Vec<_> = candidate.access.stack.iter().map(|p| p.function.clone()).collect();
    assert!(["reader", "writer"].contains(&functions[0].as_deref().unwrap()), "{functions:?}");
}

#[test]
fn threadsanitizer() {
    let Some(scratch) = Scratch::new(&["-fsanitize=thread"]) else { return };
    // Its shadow cannot live with as much randomness as newer kernels have.
    let Some(log) = scratch.run("setarch", &["-R", "./race"]) else { return };
    let candidates = import(&log).unwrap();
    is_the_race(&candidates, Tool::ThreadSanitizer);
    let top = &candidates[0].access.stack[0];
    assert_eq!(top.module.as_deref(), Some("race"));
    assert!(top.offset.is_some_and(|offset| offset > 0x1000), "{top:?}");
}

#[test]
fn helgrind_as_text_and_as_xml() {
    let Some(scratch) = Scratch::new(&[]) else { return };
    let Some(log) = scratch.run("valgrind", &["--tool=helgrind", "./race"]) else { return };
    let text = import(&log).unwrap();
    is_the_race(&text, Tool::Helgrind);
    let no_wrapper = |c: &Candidate| {
        c.access.stack.iter().all(|p| !p.module.as_deref().unwrap_or("").contains("vgpreload"))
    };
    assert!(text.iter().all(no_wrapper), "{text:#?}");
    let file = format!("--xml-file={}", scratch.path("h.xml").display());
    scratch.run("valgrind", &["--tool=helgrind", "--xml=yes", &file, "./race"]).unwrap();
    let xml = import(&scratch.path("h.xml")).unwrap();
    is_the_race(&xml, Tool::Helgrind);
    assert!(Path::new(xml[0].access.stack[0].module.as_deref().unwrap()).ends_with("race"));
    assert!(xml.iter().all(no_wrapper), "{xml:#?}");
}

#[test]
fn drd_as_text_and_as_xml() {
    let Some(scratch) = Scratch::new(&[]) else { return };
    let Some(log) = scratch.run("valgrind", &["--tool=drd", "./race"]) else { return };
    let file = format!("--xml-file={}", scratch.path("d.xml").display());
    let text = import(&log).unwrap();
    scratch.run("valgrind", &["--tool=drd", "--xml=yes", &file, "./race"]).unwrap();
    let xml = import(&scratch.path("d.xml")).unwrap();
    for candidates in [text, xml] {
        assert_eq!(candidates.len(), 1, "{candidates:#?}");
        assert_eq!((candidates[0].tool, &candidates[0].other), (Tool::Drd, &None));
        let lines = lines(&candidates[0]);
        // Whichever came second.
        assert!([[(false, Some(10))], [(true, Some(6))]].contains(&[lines[0]]), "{lines:?}");
    }
}

#[test]
fn what_is_no_report_gets_a_sentence() {
    let scratch = Scratch(tempfile::tempdir().unwrap());
    let said = |text: &str| {
        let file = scratch.path("log");
        std::fs::write(&file, text).unwrap();
        import(&file).unwrap_err().to_string()
    };
    assert!(said("hello").starts_with("neither a report of ThreadSanitizer nor"));
    assert!(said("<?xml version='1.0'?><valgrindoutput>").starts_with("damaged XML: "));
    assert!(said("<?xml version='1.0'?><html/>").starts_with("neither"));
    assert!(import(&scratch.path("none")).unwrap_err().to_string().contains("No such file"));
    // A run without races.
    std::fs::write(scratch.path("log"), "==1== Helgrind, a thread error detector\n").unwrap();
    assert_eq!(import(&scratch.path("log")).unwrap(), []);
}

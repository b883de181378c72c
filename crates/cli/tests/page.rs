//! The page of a report in a browser: it loads without errors, its filters and keys work, and
//! nothing of the target's is obeyed. Skipped where there is no Chromium.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Scratch, raddle};

/// A report with three findings and names that would like to be obeyed.
const REPORT: &str = include_str!("page/report.json");

fn chromium() -> Option<PathBuf> {
    let found = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: there is no Chromium");
    }
    found
}

/// The page, with a script behind its own that tries something and writes what came of it.
fn page(scratch: &Scratch, attempt: &str) -> String {
    let report = scratch.put("report.json", REPORT);
    let file = scratch.path("page.html");
    let made = Command::new(raddle()).arg("report").arg(&report).arg("--html").arg(&file).output();
    assert!(made.unwrap().status.success());
    let html = std::fs::read_to_string(&file).unwrap();
    // Errors are caught from the first script on.
    let watch = "<script>window.wrong = []; addEventListener('error', (e) => wrong.push(e.message)); \
                 addEventListener('securitypolicyviolation', (e) => wrong.push(e.violatedDirective));\
                 </script>";
    let html = html.replacen("<body>", &format!("<body>{watch}"), 1);
    let attempt = format!(
        "<script>document.title = (() => {{ {attempt} }})() + ' wrong=' + wrong.join('|');</script></body>"
    );
    html.replacen("</body>", &attempt, 1)
}

/// The title that the attempt left.
fn tried(chromium: &Path, scratch: &Scratch, attempt: &str) -> String {
    let file = scratch.put("tried.html", page(scratch, attempt));
    let output = browser(chromium, scratch).arg("--dump-dom").arg(file).output().unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, rest) = dom.split_once("<title>").unwrap_or_else(|| panic!("{output:?}"));
    rest.split("</title>").next().unwrap().to_owned()
}

fn browser(chromium: &Path, scratch: &Scratch) -> Command {
    let mut command = Command::new(chromium);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    command.arg(format!("--user-data-dir={}", scratch.path("profile").display()));
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

#[test]
fn it_loads_filters_and_moves() {
    let Some(chromium) = chromium() else { return };
    let scratch = Scratch::new();
    let said = tried(
        &chromium,
        &scratch,
        "const shown = () => [...document.querySelectorAll('article')].filter((a) => !a.hidden).map((a) => a.id).join(',');
         const search = document.getElementById('search');
         const input = () => search.dispatchEvent(new Event('input', { bubbles: true }));
         const key = (k) => document.dispatchEvent(new KeyboardEvent('keydown', { key: k }));
         const said = [document.documentElement.dataset.ready, shown()];
         search.value = 'FILL bank.c'; input(); said.push(shown() + '/' + document.getElementById('count').value);
         search.value = 'nothing at all'; input(); said.push(shown() + (document.getElementById('nothing-left').hidden ? 'hidden' : 'told'));
         search.value = ''; input();
         const box = document.querySelector('input[value=predicted]'); box.checked = false; input(); said.push(shown());
         box.checked = true; input();
         key('j'); said.push(document.activeElement.id); key('j'); said.push(document.activeElement.id);
         key('k'); said.push(document.activeElement.id);
         return said.join(' ');",
    );
    // Observed ones lead, whatever their names.
    assert_eq!(said, "yes R1,R3,R2 R2/1 of 3 told R1,R3 R1 R3 R1 wrong=");
}

#[test]
fn what_the_target_says_is_not_obeyed() {
    let Some(chromium) = chromium() else { return };
    let scratch = Scratch::new();
    let said = tried(
        &chromium,
        &scratch,
        "return [document.images.length, document.scripts.length, !!window.evil, \
         document.body.textContent.includes('<img src=x onerror=')].join(' ');",
    );
    assert_eq!(said, "0 3 false true wrong=");
}

#[test]
fn a_picture_can_be_taken_of_it() {
    let Some(chromium) = chromium() else { return };
    let scratch = Scratch::new();
    let file = scratch.put("page.html", page(&scratch, "return ''"));
    let mut sizes = Vec::new();
    for (name, more) in
        [("light.png", None), ("dark.png", Some("--blink-settings=preferredColorScheme=0"))]
    {
        let picture = scratch.path(name);
        let mut command = browser(&chromium, &scratch);
        command.args(more).arg("--window-size=1280,900");
        command.arg(format!("--screenshot={}", picture.display())).arg(&file);
        let output = command.output().unwrap();
        let bytes = std::fs::read(&picture).unwrap_or_else(|_| panic!("{output:?}"));
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000, "{}", bytes.len());
        if let Some(keep) = std::env::var_os("RADDLE_KEEP_PICTURES") {
            std::fs::copy(&picture, Path::new(&keep).join(name)).unwrap();
        }
        sizes.push(bytes);
    }
    assert_ne!(sizes[0], sizes[1], "dark looks like light");
}

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
    of(scratch, REPORT, attempt)
}

/// The same of another report.
fn of(scratch: &Scratch, report: &str, attempt: &str) -> String {
    let report = scratch.put("report.json", report);
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
    said(chromium, scratch, page(scratch, attempt))
}

/// The title of a page when it is loaded.
fn said(chromium: &Path, scratch: &Scratch, page: String) -> String {
    let file = scratch.put("tried.html", page);
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

/// A frame as wide as a telephone shows what a whole window may not be made narrow enough for.
#[test]
fn it_fits_a_telephone_and_the_access_is_in_sight() {
    let Some(chromium) = chromium() else { return };
    let scratch = Scratch::new();
    let long = format!("\\t{}(counter);", "a_long_name_without_blanks_".repeat(12));
    let column = long.find("counter").unwrap(); // The tab is two bytes here.
    let report = REPORT
        .replace("\\tprintf(\\\"%d\\\\n\\\", counter);", &long)
        .replace("\"column\": 17,", &format!("\"column\": {column},"))
        .replace("\"main\"", &format!("\"{}\"", "of_a_template<".repeat(30)));
    assert!(report.contains(&long));
    let attempt = "const fits = document.documentElement.scrollWidth <= innerWidth && innerWidth === 390; \
         const box = (e) => e.getBoundingClientRect(); \
         const hidden = [...document.querySelectorAll('mark')].filter((m) => \
             box(m).right > box(m.closest('pre')).right || box(m).width === 0); \
         return fits + ' ' + (document.querySelectorAll('mark').length > 0) + ' ' + hidden.length;";
    let page = of(&scratch, &report, attempt);
    let inner = page.replace('&', "&amp;").replace('"', "&quot;");
    let outer = format!(
        "<title></title><iframe width=390 height=800 frameborder=0 srcdoc=\"{inner}\"></iframe>\
         <script>onload = () => document.title = frames[0].document.title</script>"
    );
    assert_eq!(said(&chromium, &scratch, outer), "true true 0 wrong=");
}

/// Colour is not all that marks the racing lines and the accesses: printers leave it out.
#[test]
fn marks_do_not_depend_on_colour() {
    let Some(chromium) = chromium() else { return };
    let scratch = Scratch::new();
    let told = tried(
        &chromium,
        &scratch,
        "const style = (s) => getComputedStyle(document.querySelector(s)); \
         const rules = [...document.styleSheets[0].cssRules].filter((r) => r.media && r.media.mediaText === 'print'); \
         return [style('mark').fontWeight, style('mark').textDecorationLine, style('.here').borderLeftStyle, \
         rules.length, rules[0].cssText.includes('print-color-adjust: exact')].join(' ');",
    );
    assert_eq!(told, "700 underline solid 1 true wrong=");
}

#[test]
fn what_is_typed_is_code() {
    let Some(chromium) = chromium() else { return };
    let scratch = Scratch::new();
    let told = tried(
        &chromium,
        &scratch,
        "const fix = [...document.querySelectorAll('.fix')]; \
         return fix.some((f) => f.querySelector('code')) + ' ' + fix.some((f) => f.textContent.includes('`'));",
    );
    assert_eq!(told, "true false wrong=");
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

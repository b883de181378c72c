//! Suppressions: findings that somebody decided to live with.
//!
//! Three formats, told apart by what is in the file: ThreadSanitizer's ([`tsan`]), Valgrind's
//! ([`valgrind`]), both as they are, and our own TOML ([`own`]), which knows more: variables,
//! fingerprints, a reason, and a day from which it no longer counts.

mod generate;
mod own;
pub mod pattern;
mod tsan;
mod valgrind;

pub use generate::generate;

use super::schema::{Finding, Frame};
use crate::names::file_name;
use pattern::Pattern;
use std::fmt;

/// A day, as `2026-12-31`; days compare by being earlier or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    /// The year.
    pub year: u16,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
}

impl Day {
    /// The day so many seconds after 1970 began.
    pub fn since_epoch(seconds: u64) -> Day {
        // Civil from days, after Howard Hinnant's "chrono-compatible low-level date algorithms".
        let days = seconds / 86_400 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year + era * 400 + u64::from(month <= 2);
        Day { year: year as u16, month: month as u8, day: day as u8 }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// What is wrong with a file of suppressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionError {
    /// Line, from 1.
    pub line: usize,
    /// In a sentence.
    pub what: String,
}

impl fmt::Display for SuppressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for SuppressionError {}

/// One suppression.
#[derive(Debug, Clone)]
pub struct Suppression {
    /// What it matches.
    rule: Rule,
    /// Its file and line, and what stands there.
    pub origin: String,
    /// From this day on it no longer counts.
    expires: Option<Day>,
}

#[derive(Debug, Clone)]
enum Rule {
    Tsan(tsan::Rule),
    Valgrind(valgrind::Rule),
    Own(own::Rule),
}

/// An entry as a format's reader gives it.
struct Entry {
    line: usize,
    /// What stands there, for people.
    text: String,
    rule: Rule,
    expires: Option<Day>,
}

/// All suppressions of a run.
#[derive(Debug, Clone, Default)]
pub struct Suppressions {
    all: Vec<Suppression>,
    /// Those from this day on are expired.
    today: Option<Day>,
}

impl Suppressions {
    /// None yet; those that expired before `today` will not count.
    pub fn new(today: Day) -> Self {
        Suppressions { all: Vec::new(), today: Some(today) }
    }

    /// Adds those of a file. Linker names in it are given to `demangle`.
    pub fn read(
        &mut self,
        file: &str,
        text: &str,
        demangle: &dyn Fn(&str) -> String,
    ) -> Result<(), SuppressionError> {
        let meaningful = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let first = text.lines().map(str::trim).find(meaningful).unwrap_or_default();
        let read = if first == "{" {
            valgrind::read(text, demangle)?
        } else if file.ends_with(".toml") || first.starts_with('[') {
            own::read(text)?
        } else {
            tsan::read(text)?
        };
        self.all.extend(read.into_iter().map(|Entry { line, text, rule, expires }| Suppression {
            rule,
            origin: format!("{file}:{line} {text}"),
            expires,
        }));
        Ok(())
    }

    /// The index of the first that matches, in the order of the files.
    pub fn matching(&self, finding: &Finding) -> Option<usize> {
        self.all.iter().position(|suppression| {
            !self.is_expired(suppression)
                && match &suppression.rule {
                    Rule::Tsan(rule) => rule.matches(finding),
                    Rule::Valgrind(rule) => rule.matches(finding),
                    Rule::Own(rule) => rule.matches(finding),
                }
        })
    }

    /// What should be said of those that are not among the `used`.
    pub fn unused(&self, used: &[usize]) -> Vec<String> {
        let rest = self.all.iter().enumerate().filter(|(at, _)| !used.contains(at));
        rest.map(|(_, suppression)| match suppression.expires {
            Some(day) if self.is_expired(suppression) => {
                format!("{} (expired {day})", suppression.origin)
            }
            _ => suppression.origin.clone(),
        })
        .collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn is_expired(&self, suppression: &Suppression) -> bool {
        matches!((suppression.expires, self.today), (Some(day), Some(today)) if day <= today)
    }
}

/// Every frame of every stack of those who take part.
fn frames(finding: &Finding) -> impl Iterator<Item = &Frame> {
    finding.parties().flat_map(|party| party.stack)
}

/// Does a name fit, with or without its parameters?
fn fits_function(pattern: &Pattern, frame: &Frame) -> bool {
    frame.function.as_deref().is_some_and(|name| {
        pattern.fits(name) || pattern.fits(name.split('(').next().unwrap_or(name))
    })
}

/// Does a path fit, whole or by its last part?
fn fits_path(pattern: &Pattern, path: Option<&str>) -> bool {
    path.is_some_and(|path| pattern.fits(path) || pattern.fits(file_name(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;

    fn day(year: u16, month: u8, day: u8) -> Day {
        Day { year, month, day }
    }

    fn read(file: &str, text: &str) -> Suppressions {
        let mut all = Suppressions::new(day(2026, 6, 1));
        all.read(file, text, &|name| name.replace("_Zmangled", "worker")).unwrap();
        all
    }

    /// Which of R1 (counter: reader and worker), R2 (heap: fill and main), R3 (libc) match.
    fn matched(file: &str, text: &str) -> Vec<String> {
        let all = read(file, text);
        let matching = typed::bank().findings.into_iter().filter(|f| all.matching(f).is_some());
        matching.map(|finding| finding.id).collect()
    }

    #[test]
    fn days() {
        assert_eq!(Day::since_epoch(0), day(1970, 1, 1));
        assert_eq!(Day::since_epoch(951_782_400), day(2000, 2, 29));
        assert_eq!(Day::since_epoch(1_767_225_599).to_string(), "2025-12-31");
    }

    #[test]
    fn threadsanitizers_format() {
        let one = |line: &str| matched("tsan.supp", line);
        assert_eq!(one("# comment\n\nrace:worker"), ["R1"]);
        assert_eq!(one("race:work"), ["R1"]);
        assert_eq!(one("race:^orker"), [""; 0]);
        assert_eq!(one("race:^work$"), [""; 0]);
        assert_eq!(one("race:^w*r$"), ["R1"]);
        assert_eq!(one("race:bank.c"), ["R1", "R2"]);
        assert_eq!(one("race:counter"), ["R1"]);
        assert_eq!(one("race:libc.so"), ["R1", "R2", "R3"]);
        assert_eq!(one("race_top:libc.so"), ["R2", "R3"]);
        assert_eq!(one("race_top:fill"), [""; 0]);
        assert_eq!(one("called_from_lib:libc.so.6"), ["R2", "R3"]);
        // For other kinds of findings.
        assert_eq!(one("deadlock:worker\nthread:worker\nmutex:x\nsignal:y"), [""; 0]);
    }

    #[test]
    fn valgrinds_format() {
        let entry = |kind: &str, frames: &str| {
            matched("x.supp", &format!("# made by hand\n{{\n  a name\n  {kind}\n{frames}\n}}\n"))
        };
        assert_eq!(entry("Helgrind:Race", "  fun:worker"), ["R1"]);
        assert_eq!(entry("drd:ConflictingAccess", "  fun:w?rk*"), ["R1"]);
        assert_eq!(entry("Helgrind:Race", "  fun:fill"), [""; 0]);
        assert_eq!(entry("Helgrind:Race", "  obj:*libc*\n  fun:fill"), ["R2"]);
        assert_eq!(entry("Helgrind:Race", "  ...\n  fun:fill"), ["R2"]);
        assert_eq!(entry("Helgrind:Race", "  src:bank.c:16"), ["R1"]);
        assert_eq!(entry("Helgrind:Race", "  src:bank.c:17"), [""; 0]);
        assert_eq!(entry("Helgrind:Race", "  fun:_Zmangled"), ["R1"]);
        // As Helgrind itself writes it: what lies below the thread's function is its own.
        let own = "  fun:worker\n  obj:/usr/libexec/valgrind/vgpreload_helgrind-amd64-linux.so\n  \
                   fun:start_thread\n  fun:clone";
        assert_eq!(entry("Helgrind:Race", own), ["R1"]);
        assert_eq!(entry("Memcheck:Leak", "  fun:worker"), [""; 0]);
        assert_eq!(entry("Memcheck,Helgrind:Race", "  fun:worker"), ["R1"]);
        assert_eq!(entry("Helgrind:LockOrder", "  fun:worker"), [""; 0]);
    }

    #[test]
    fn our_own_format() {
        let one = |keys: &str| matched("s.toml", &format!("[[suppress]]\nreason = \"x\"\n{keys}"));
        assert_eq!(one("function = 'work*'"), ["R1"]);
        assert_eq!(one("function = 'work'"), [""; 0]);
        assert_eq!(one("file = '/w/*'"), ["R1", "R2"]);
        assert_eq!(one("file = 'bank.c'"), ["R1", "R2"]);
        assert_eq!(one("file = 'bank.c'\nvariable = 'counter'"), ["R1"]);
        assert_eq!(one("variable = 'other'\nfile = 'bank.c'"), [""; 0]);
        assert_eq!(one("module = 'libc.so.*'"), ["R1", "R2", "R3"]);
        assert_eq!(one("fingerprint = 'df78355f7dd1dacb'"), ["R1"]);
        assert_eq!(one("kind = 'data-race'"), ["R1", "R2", "R3"]);
        assert_eq!(one("kind = 'deadlock'"), [""; 0]);
        assert_eq!(one("function = 'worker'\nexpires = 2026-06-02"), ["R1"]);
        assert_eq!(one("function = 'worker'\nexpires = 2026-06-01"), [""; 0]);
    }

    #[test]
    fn what_matched_nothing_is_named() {
        let text = "race:worker\n# old\nrace:gone";
        let all = read("t.supp", text);
        let used: Vec<usize> =
            typed::bank().findings.iter().filter_map(|f| all.matching(f)).collect();
        assert_eq!(all.unused(&used), ["t.supp:3 race:gone"]);
        let expired = read("s.toml", "[[suppress]]\nfunction='f'\nreason='x'\nexpires=2020-01-01");
        assert_eq!(expired.unused(&[]), ["s.toml:1 function = f (expired 2020-01-01)"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said = |file: &str, text: &str| {
            let mut all = Suppressions::default();
            all.read(file, text, &|name| name.to_owned()).unwrap_err().to_string()
        };
        assert_eq!(
            said("t", "race:x\nrcae:y"),
            "line 2: there is no type 'rcae'; did you mean race?"
        );
        assert_eq!(said("t", "race:x\nhello"), "line 2: expected TYPE:PATTERN, as race:function");
        assert_eq!(
            said("v", "{\n name\n Helgrind:Race\n fnu:x\n}"),
            "line 4: expected fun:, obj:, src: or ..., not 'fnu:x'"
        );
        assert_eq!(
            said("v", "{\n name\n Helgrind:Race\n fun:x\n"),
            "line 1: this entry has no closing }"
        );
        assert_eq!(said("v", "{\n name\n}"), "line 3: this entry has no TOOL:KIND line");
        let toml = |keys: &str| said("s.toml", &format!("\n[[suppress]]\n{keys}"));
        assert_eq!(toml("function = 'f'"), "line 2: a suppression needs a reason");
        assert_eq!(
            toml("reason = 'x'"),
            "line 2: a suppression needs one of function, file, module, variable, fingerprint, kind"
        );
        assert_eq!(
            toml("functoin = 'f'\nreason = 'x'"),
            "line 3: there is no key functoin; did you mean function?"
        );
        assert_eq!(
            toml("kind = 'data-rcae'\nreason = 'x'"),
            "line 2: there is no kind of finding called data-rcae; did you mean data-race?"
        );
        assert_eq!(
            said("s.toml", "\n[[supress]]"),
            "line 2: there is no key supress; did you mean suppress?"
        );
        let late = toml("function = 'f'\nreason = 'x'\nexpires = 'soon'");
        assert!(late.starts_with("line 5: "), "{late}");
    }

    #[test]
    fn what_is_generated_matches_what_it_was_made_for() {
        let report = typed::bank();
        let text = generate(&report);
        let all = read("made.toml", &text);
        assert_eq!(all.len(), 3);
        for (at, finding) in report.findings.iter().enumerate() {
            assert_eq!(all.matching(finding), Some(at), "{text}");
        }
        insta::assert_snapshot!(text, @r#"
        # data race on counter (observed): write at bank.c:16 in worker, read at bank.c:20 in reader
        [[suppress]]
        fingerprint = "df78355f7dd1dacb"
        reason = "not looked at yet"

        # data race on a heap block of 64 bytes from bank.c:56 in main (predicted): free at bank.c:48 in main, write at bank.c:64 in fill
        [[suppress]]
        fingerprint = "71c69214cb704a29"
        reason = "not looked at yet"

        # data race on libc.so.6+0x4000 (observed): write at libc.so.6+0x30, read at libc.so.6+0x30
        [[suppress]]
        fingerprint = "ffb2f597b99ead16"
        reason = "not looked at yet"
        "#);
    }
}

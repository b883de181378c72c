//! Reading a program: its directives and what it expects of itself.

use std::path::{Path, PathBuf};

/// A program with its expectations.
#[derive(Debug)]
pub struct Program {
    pub source: PathBuf,
    pub text: String,
    pub builds: Vec<String>,
    pub watch: Vec<String>,
    pub hooks: Vec<String>,
    pub options: Vec<String>,
    pub needs: Vec<String>,
    pub also: Vec<String>,
    pub environment: Vec<String>,
    pub exits: i32,
    pub expected: Vec<Expected>,
}

/// One event that must happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub who: Who,
    /// The line it must be at, if the expectation stands behind code.
    pub line: Option<u64>,
    pub text: String,
}

/// A process, in the order of appearance, and a thread of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    pub process: u64,
    pub thread: u64,
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.process {
            1 => write!(f, "T{}", self.thread),
            process => write!(f, "P{process}.T{}", self.thread),
        }
    }
}

impl Program {
    pub fn read(source: &Path) -> Program {
        let text =
            std::fs::read_to_string(source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
        Program::parse(source, text)
    }

    pub fn parse(source: &Path, text: String) -> Program {
        let mut program = Program {
            source: source.to_owned(),
            text: String::new(),
            builds: Vec::new(),
            watch: Vec::new(),
            hooks: Vec::new(),
            options: Vec::new(),
            needs: Vec::new(),
            also: Vec::new(),
            environment: Vec::new(),
            exits: 0,
            expected: Vec::new(),
        };
        for (line, number) in text.lines().zip(1..) {
            program.take_line(line, number);
        }
        program.text = text;
        assert!(!program.builds.is_empty(), "{}: no `// build:` line", source.display());
        assert!(!program.watch.is_empty(), "{}: no `// watch:` line", source.display());
        program
    }

    fn take_line(&mut self, line: &str, number: u64) {
        let Some((code, comment)) = line.split_once("//") else { return };
        let Some((key, value)) = comment.split_once(':') else { return };
        let words = || value.split_whitespace().map(str::to_owned);
        let alone = code.trim().is_empty();
        match key.trim() {
            "build" if alone => self.builds.push(value.trim().to_owned()),
            "watch" if alone => self.watch.extend(words()),
            "hooks" if alone => self.hooks.extend(words()),
            "options" if alone => self.options.extend(words()),
            "needs" if alone => self.needs.extend(words()),
            "also" if alone => self.also.extend(words()),
            "environment" if alone => self.environment.extend(words()),
            "exits" if alone => self.exits = value.trim().parse().unwrap(),
            key => {
                let Some(who) = key.strip_prefix("expect") else { return };
                let who = parse_who(who)
                    .unwrap_or_else(|| panic!("{}:{number}: {line}", self.source.display()));
                let line = (!alone).then_some(number);
                let texts = value.split(';').map(str::trim).filter(|text| !text.is_empty());
                self.expected.extend(texts.map(|text| {
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    Expected { who, line, text }
                }));
            }
        }
    }
}

/// ``, `T2`, `P2.T1`.
fn parse_who(text: &str) -> Option<Who> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Who { process: 1, thread: 1 });
    }
    let (process, thread) = text.split_once('.').unwrap_or(("P1", text));
    Some(Who {
        process: process.strip_prefix('P')?.parse().ok()?,
        thread: thread.strip_prefix('T')?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read_with_their_line_and_thread() {
        let text = "// build: gcc\n// watch: memory sync\n\
                    x = 1;  // expect: write 4 x;  read   4 y\n\
                    \t// expect T2: lock-acquired m\n\
                    // expect P2.T1: thread-exit\n";
        let program = Program::parse(Path::new("x.c"), text.to_owned());
        assert_eq!(program.watch, ["memory", "sync"]);
        let seen: Vec<_> =
            program.expected.iter().map(|e| (e.who.to_string(), e.line, e.text.as_str())).collect();
        let t = |who: &str, line, text| (who.to_owned(), line, text);
        assert_eq!(
            seen,
            [
                t("T1", Some(3), "write 4 x"),
                t("T1", Some(3), "read 4 y"),
                t("T2", None, "lock-acquired m"),
                t("P2.T1", None, "thread-exit"),
            ]
        );
    }
}

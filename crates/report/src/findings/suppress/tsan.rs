//! ThreadSanitizer's suppressions: `race:function`, one a line, `#` for comments. A pattern is
//! compared with function, source file and module of every frame, and with the global variable.

use super::pattern::Pattern;
use super::{Entry, Rule as Any, SuppressionError, fits_function, frames};
use crate::explain::kind_name;
use crate::findings::schema::{Finding, Frame};
use crate::nearest::did_you_mean;

/// The types, as typed. Those of `OTHERS` are about what Raddle does not look for.
const OTHERS: [&str; 3] = ["thread", "mutex", "signal"];
const TYPES: [&str; 7] =
    ["race", "race_top", "called_from_lib", "deadlock", "thread", "mutex", "signal"];

/// One line.
#[derive(Debug, Clone)]
pub struct Rule {
    kind: String,
    pattern: Pattern,
}

pub fn read(text: &str) -> Result<Vec<Entry>, SuppressionError> {
    let mut rules = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let error = |what: String| SuppressionError { line: at + 1, what };
        let (kind, pattern) = line
            .split_once(':')
            .ok_or_else(|| error("expected TYPE:PATTERN, as race:function".into()))?;
        if !TYPES.contains(&kind) {
            let near = did_you_mean(kind, TYPES);
            return Err(error(format!("there is no type '{kind}'{near}")));
        }
        if OTHERS.contains(&kind) {
            continue;
        }
        let rule = Rule { kind: kind.to_owned(), pattern: Pattern::template(pattern) };
        rules.push(Entry {
            line: at + 1,
            text: line.to_owned(),
            rule: Any::Tsan(rule),
            expires: None,
        });
    }
    Ok(rules)
}

impl Rule {
    pub fn matches(&self, finding: &Finding) -> bool {
        let kind = kind_name(finding.kind);
        let tops = || finding.parties().filter_map(|party| party.stack.first());
        match self.kind.as_str() {
            "race" => {
                let location = &finding.location;
                let global = location.name.iter().any(|name| self.pattern.fits(name));
                kind == "data-race" && (global || frames(finding).any(|frame| self.fits(frame)))
            }
            "race_top" => kind == "data-race" && tops().any(|frame| self.fits(frame)),
            // What a library does with memory through functions it calls is left alone.
            "called_from_lib" => tops()
                .filter_map(|frame| frame.module.as_deref())
                .any(|module| self.pattern.fits(module)),
            _ => {
                matches!(kind.as_str(), "deadlock" | "lock-order")
                    && frames(finding).any(|frame| self.fits(frame))
            }
        }
    }

    fn fits(&self, frame: &Frame) -> bool {
        let path = |path: &Option<String>| path.iter().any(|path| self.pattern.fits(path));
        fits_function(&self.pattern, frame) || path(&frame.file) || path(&frame.module)
    }
}

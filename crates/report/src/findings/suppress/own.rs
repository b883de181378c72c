//! Our own suppressions, TOML:
//!
//! ```toml
//! [[suppress]]
//! function = "Logger::*"
//! variable = "level"
//! reason = "the level may be a little late; #812"
//! expires = 2026-12-31
//! ```
//!
//! All keys that are given must fit: `function`, `file` and `module` each some frame of either
//! stack, `variable` the memory, `fingerprint` and `kind` the finding.

use super::pattern::Pattern;
use super::{Day, Entry as Line, Rule as Any, SuppressionError, fits_function, fits_path, frames};
use crate::explain::kind_name;
use crate::findings::schema::Finding;
use crate::nearest::did_you_mean;
use serde::Deserialize;
use toml::Spanned;

/// What a file may hold, for those who mistype it.
const KEYS: [&str; 9] = [
    "suppress",
    "function",
    "file",
    "module",
    "variable",
    "fingerprint",
    "kind",
    "reason",
    "expires",
];
/// Kinds of findings, those of later analysers included: a file may be older than the command, or younger.
const KINDS: [&str; 6] =
    ["data-race", "lock-order", "deadlock", "atomicity", "contract", "missed-signal"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    suppress: Vec<Spanned<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    function: Option<String>,
    file: Option<String>,
    module: Option<String>,
    variable: Option<String>,
    fingerprint: Option<String>,
    kind: Option<String>,
    reason: Option<String>,
    expires: Option<toml::value::Datetime>,
}

/// One entry.
#[derive(Debug, Clone)]
pub struct Rule {
    function: Option<Pattern>,
    file: Option<Pattern>,
    module: Option<Pattern>,
    variable: Option<Pattern>,
    fingerprint: Option<String>,
    kind: Option<String>,
}

pub fn read(text: &str) -> Result<Vec<Line>, SuppressionError> {
    let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| SuppressionError {
        line: error.span().map_or(1, |span| line(span.start)),
        what: mistake(error.message()),
    })?;
    let mut rules = Vec::new();
    for entry in file.suppress {
        let at = line(entry.span().start);
        let entry = entry.into_inner();
        let error = |what: &str| SuppressionError { line: at, what: what.to_owned() };
        let keys = [
            ("function", &entry.function),
            ("file", &entry.file),
            ("module", &entry.module),
            ("variable", &entry.variable),
            ("fingerprint", &entry.fingerprint),
            ("kind", &entry.kind),
        ];
        let given =
            keys.iter().filter_map(|(key, value)| Some(format!("{key} = {}", (*value).as_ref()?)));
        let said = given.collect::<Vec<_>>().join(", ");
        if said.is_empty() {
            return Err(error(
                "a suppression needs one of function, file, module, variable, fingerprint, kind",
            ));
        }
        if entry.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
            return Err(error("a suppression needs a reason"));
        }
        if let Some(kind) = entry.kind.as_deref().filter(|kind| !KINDS.contains(kind)) {
            let near = did_you_mean(kind, KINDS);
            return Err(error(&format!("there is no kind of finding called {kind}{near}")));
        }
        let expires = match entry.expires.map(|when| when.date) {
            Some(Some(date)) => Some(Day { year: date.year, month: date.month, day: date.day }),
            Some(None) => return Err(error("expires is a day, as 2026-12-31")),
            None => None,
        };
        let pattern = |text: &Option<String>| text.as_deref().map(Pattern::glob);
        let rule = Rule {
            function: pattern(&entry.function),
            file: pattern(&entry.file),
            module: pattern(&entry.module),
            variable: pattern(&entry.variable),
            fingerprint: entry.fingerprint,
            kind: entry.kind,
        };
        rules.push(Line { line: at, text: said, rule: Any::Own(rule), expires });
    }
    Ok(rules)
}

/// What the parser did not like; an unknown key with the right one nearest to it.
fn mistake(message: &str) -> String {
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    match unknown {
        Some((key, _)) => match did_you_mean(key, KEYS) {
            near if near.is_empty() => message.to_owned(),
            near => format!("there is no key {key}{near}"),
        },
        None => message.replace('\n', " "),
    }
}

impl Rule {
    pub fn matches(&self, finding: &Finding) -> bool {
        let Rule { function, file, module, variable, fingerprint, kind } = self;
        let any = |pattern: &Option<Pattern>, fits: &dyn Fn(&Pattern) -> bool| {
            pattern.as_ref().is_none_or(fits)
        };
        any(function, &|pattern| frames(finding).any(|frame| fits_function(pattern, frame)))
            && any(file, &|pattern| {
                frames(finding).any(|frame| fits_path(pattern, frame.file.as_deref()))
            })
            && any(module, &|pattern| {
                frames(finding).any(|frame| fits_path(pattern, frame.module.as_deref()))
            })
            && any(variable, &|pattern| finding.location.name.iter().any(|name| pattern.fits(name)))
            && fingerprint.as_ref().is_none_or(|wanted| *wanted == finding.fingerprint)
            && kind.as_ref().is_none_or(|wanted| *wanted == kind_name(finding.kind))
    }
}

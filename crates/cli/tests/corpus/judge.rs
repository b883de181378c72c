//! Comparing a report with what the program expects: each finding must be one of the program's races or
//! one of its allowed suspicions, and each of its races must be found, with the right certainty.

use super::program::{Certainty, Marked, Program, Variable};
use serde_json::Value;

/// Which detector ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detector {
    Hybrid,
    /// Observed findings only.
    HappensBefore,
}

/// What was wrong with a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub kind: WrongKind,
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongKind {
    FalseAlarm,
    Missed,
    WrongPlace,
    WrongCertainty,
    DidNotRun,
}

impl WrongKind {
    pub fn name(self) -> &'static str {
        match self {
            WrongKind::FalseAlarm => "false alarm",
            WrongKind::Missed => "missed",
            WrongKind::WrongPlace => "wrong place",
            WrongKind::WrongCertainty => "wrong certainty",
            WrongKind::DidNotRun => "did not run",
        }
    }
}

fn wrong(kind: WrongKind, what: impl Into<String>) -> Wrong {
    Wrong { kind, what: what.into() }
}

/// What a report must be compared with.
pub struct Judge<'a> {
    pub program: &'a Program,
    /// Has the binary debug information? Without it, lines are unknown and only variables are compared.
    pub debug: bool,
    pub detector: Detector,
}

impl Judge<'_> {
    /// Everything that is wrong with this report; nothing if the verdict is right.
    pub fn judge(&self, report: &Value) -> Vec<Wrong> {
        let outcome = &report["outcome"];
        if outcome["exit"] != 0 || !outcome["failure"].is_null() {
            return vec![wrong(WrongKind::DidNotRun, outcome.to_string())];
        }
        let empty = Vec::new();
        let findings = report["findings"].as_array().unwrap_or(&empty);
        let found: Vec<Found> = findings.iter().map(|f| self.found(f)).collect();
        let mut wrongs: Vec<Wrong> = found.iter().filter_map(|f| self.out_of_place(f)).collect();
        for (variable, marked) in &self.program.races {
            wrongs.extend(self.not_as_expected(variable, marked, &found));
        }
        wrongs
    }

    /// A finding that belongs to no race and no suspicion of the program.
    fn out_of_place(&self, found: &Found) -> Option<Wrong> {
        let races = &self.program.races;
        if races.iter().any(|(v, m)| self.is_about(found, v) && self.is_at(found, m)) {
            return None;
        }
        let excused = |(variable, marked): (&Variable, &Marked)| {
            let too_sure = marked.certainty == Certainty::Predicted && found.observed;
            self.is_about(found, variable) && self.is_at(found, marked) && !too_sure
        };
        if self.suspicions_count() && self.program.suspected.iter().any(excused) {
            return None;
        }
        let near = races
            .iter()
            .any(|(v, m)| self.is_about(found, v) || (self.debug && self.is_at(found, m)));
        let kind = if near { WrongKind::WrongPlace } else { WrongKind::FalseAlarm };
        Some(wrong(kind, found.describe()))
    }

    /// Suspicions of a program that needs debug information are about builds without it.
    fn suspicions_count(&self) -> bool {
        !(self.program.needs("debug-info") && self.debug)
    }

    fn not_as_expected(
        &self,
        variable: &Variable,
        marked: &Marked,
        found: &[Found],
    ) -> Option<Wrong> {
        let here = found.iter().filter(|f| self.is_about(f, variable) && self.is_at(f, marked));
        let certainties: Vec<bool> = here.map(|f| f.observed).collect();
        let observed = certainties.contains(&true);
        match (self.detector, marked.certainty) {
            (Detector::HappensBefore, Certainty::Either) => None,
            (Detector::HappensBefore, Certainty::Predicted) => observed.then(|| {
                wrong(
                    WrongKind::WrongCertainty,
                    format!("{variable} is observed, in the lock order"),
                )
            }),
            _ if certainties.is_empty() => Some(wrong(WrongKind::Missed, variable.to_string())),
            (_, Certainty::Unsaid) if !observed => {
                Some(wrong(WrongKind::WrongCertainty, format!("{variable} is only predicted")))
            }
            (_, Certainty::Predicted) if observed => Some(wrong(
                WrongKind::WrongCertainty,
                format!("{variable} is observed, in the lock order"),
            )),
            _ => None,
        }
    }

    fn is_at(&self, found: &Found, marked: &Marked) -> bool {
        let marked_line =
            |line: &Option<u64>| line.is_some_and(|line| marked.lines.contains(&line));
        !self.debug || found.lines.iter().all(marked_line)
    }

    fn is_about(&self, found: &Found, variable: &Variable) -> bool {
        let kind = found.kind.as_str();
        match variable {
            Variable::Global(name) if self.debug => {
                kind == "global" && is_part_of(&found.name, name)
            }
            Variable::Global(name) => match kind {
                "global" => first_word(&found.name) == first_word(name),
                // A symbol that the linker dropped, or that is not there without debug information.
                kind => kind == "module",
            },
            Variable::Heap(_) => {
                let here = self.program.blocks.get(variable);
                let right_block =
                    |lines: &Vec<u64>| found.allocated.iter().any(|l| lines.contains(l));
                kind == "heap" && (!self.debug || here.is_none_or(right_block))
            }
            Variable::Stack(_) => kind != "global" && kind != "heap",
            // Where a thread's variables live depends on the C library: any name will do.
            Variable::ThreadLocal(_) => true,
        }
    }

    fn found(&self, finding: &Value) -> Found {
        let location = &finding["location"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let empty = Vec::new();
        let accesses = finding["accesses"].as_array().unwrap_or(&empty);
        Found {
            observed: finding["certainty"] == "observed",
            kind: text(&location["kind"]),
            name: plain_name(&text(&location["name"])),
            allocated: self.own_lines(&location["allocated_at"]),
            lines: accesses.iter().map(|a| self.own_lines(&a["stack"]).first().copied()).collect(),
            shown: accesses.iter().map(shown).collect::<Vec<_>>().join(" and "),
        }
    }

    /// The lines of a stack's frames in the program's own source, the innermost first.
    fn own_lines(&self, stack: &Value) -> Vec<u64> {
        let name = self.program.source.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let own = |frame: &&Value| {
            frame["file"].as_str().is_some_and(|file| file.rsplit('/').next() == Some(name))
        };
        let frames = stack.as_array().map(Vec::as_slice).unwrap_or_default();
        frames.iter().filter(own).filter_map(|frame| frame["line"].as_u64()).collect()
    }
}

/// A finding, as far as it is compared.
struct Found {
    observed: bool,
    kind: String,
    name: String,
    allocated: Vec<u64>,
    lines: Vec<Option<u64>>,
    shown: String,
}

impl Found {
    fn describe(&self) -> String {
        let certainty = if self.observed { "observed" } else { "predicted" };
        format!("{certainty}, {} {}: {}", self.kind, self.name, self.shown)
    }
}

/// `write at work:12`, with the first frame that has a line.
fn shown(access: &Value) -> String {
    let frames = access["stack"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = access["own_frame"].as_u64().and_then(|index| frames.get(index as usize));
    let frame = own.or(frames.first()).unwrap_or(&Value::Null);
    let function = frame["function"].as_str().unwrap_or("?");
    let line = frame["line"].as_u64().map_or(String::new(), |line| format!(":{line}"));
    format!("{} at {function}{line}", access["kind"].as_str().unwrap_or("?"))
}

/// `table[3].next` as `table[].next`; without path (`module::NAME`) and the hash of a Rust symbol, and
/// without the number that gcc gives to a static local.
fn plain_name(name: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for letter in name.chars() {
        inside = match letter {
            '[' => true,
            ']' => false,
            _ => inside,
        };
        if !inside || letter == '[' {
            plain.push(letter);
        }
    }
    let is_hash = |part: &&str| part.len() == 17 && part.starts_with('h');
    let last = plain.rsplit("::").find(|part| !is_hash(part)).unwrap_or("").to_owned();
    match last.rsplit_once('.') {
        Some((start, number)) if number.chars().all(|c| c.is_ascii_digit()) => start.to_owned(),
        _ => last,
    }
}

/// Is it the variable, or something inside it?
fn is_part_of(found: &str, expected: &str) -> bool {
    found
        .strip_prefix(expected)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '+', ' ']))
}

fn first_word(name: &str) -> &str {
    name.split(['.', '[', '+', ' ']).next().unwrap_or("")
}

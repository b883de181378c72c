//! `report.json`, schema `raddle-report/1`, as types: what `docs/run.md` describes, written by
//! `raddle run` and read by everything else. Keys may be added; none changes its meaning.

mod confirmation;
mod failure;

pub use confirmation::{
    Confirmation, Effect, Harm, Interleaving, Lane, Order, Rebuilt, Step, StepKind, Under, Values,
};
pub use failure::Failure;

use super::party::Wait;
use crate::hex::Hex;
use raddle_model::finding::{Certainty, FindingKind, Rule, TouchKind};
use raddle_model::{LockMode, ThreadId};
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const SCHEMA: &str = "raddle-report/1";

/// Everything that is known of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// What was run.
    pub target: Target,
    /// The executable and its libraries, in the order of loading.
    pub modules: Vec<Module>,
    /// The threads, by number. Of a program that had more than a thousand, those that findings speak of, and who
    /// created them.
    pub threads: Vec<Thread>,
    /// How the target ended.
    pub outcome: Outcome,
    /// What was found and what was looked at, in numbers.
    pub summary: Summary,
    /// The findings, the most important first.
    pub findings: Vec<Finding>,
    /// Executions that failed, by name; absent until somebody looked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// What later stages have added beside the findings.
    #[serde(flatten)]
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// Who wrote a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `raddle`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The detector, by the word of `--detector`.
    pub detector: String,
}

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Program and arguments, as typed.
    pub argv: Vec<String>,
    /// Where.
    pub cwd: String,
    /// The hook files it was run with beside the shipped ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
}

/// An executable or shared library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its file.
    pub path: String,
    /// Its build-id, where it has one.
    pub build_id: Option<String>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its number: `T3` is 3.
    pub id: ThreadId,
    /// Its process, where several were watched: numbers begin anew in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The name the program gave it last.
    pub name: Option<String>,
    /// Who created it.
    pub creator: Option<ThreadId>,
    /// By which calls, innermost first.
    pub created_at: Vec<Frame>,
}

/// How the target ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its exit code, if it exited.
    pub exit: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// It was killed for `--timeout`.
    pub timed_out: bool,
    /// It was ended by `--duration`.
    #[serde(default)]
    pub stopped: bool,
    /// Why Raddle could not watch it to its end, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A run in numbers. What a killed target could not tell is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Findings in the report.
    pub findings: u64,
    /// Of them observed.
    pub observed: u64,
    /// Of them predicted.
    pub predicted: u64,
    /// Left out by `--only-in` and `--ignore`.
    pub hidden: u64,
    /// Left out by `--suppressions`.
    #[serde(default)]
    pub suppressed: u64,
    /// Left out by `--baseline`.
    #[serde(default)]
    pub known: u64,
    /// Suppressions that matched nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused_suppressions: Vec<String>,
    /// Processes watched.
    pub processes: u64,
    /// Threads watched.
    pub threads: u64,
    /// Accesses the detector looked at.
    pub accesses: Option<u64>,
    /// Synchronisation events it looked at.
    pub synchronisations: Option<u64>,
    /// Distinct locks.
    pub locks: Option<u64>,
    /// Modules that have no names beyond their exports.
    pub without_symbols: Vec<String>,
    /// What the user should know and what did not stop us.
    pub warnings: Vec<String>,
}

/// Something wrong with the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name in this run: `R1`.
    pub id: String,
    /// What sort of bug.
    pub kind: FindingKind,
    /// How sure.
    pub certainty: Certainty,
    /// The same for the same bug in another run or build.
    pub fingerprint: String,
    /// How often it was seen.
    pub count: u64,
    /// The rules that decided.
    pub rules: Vec<Rule>,
    /// The other tool that reported it, where it was not found by ourselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What collided, the earlier first.
    pub accesses: Vec<Access>,
    /// Of a cycle of locks: who waits, each for what the next one holds; the last for what the first
    /// does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// The memory concerned.
    pub location: Location,
    /// What was run when it was found, where the report merges executions of several programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// What came of trying to make it happen; absent until somebody tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// What it does to the program; absent until somebody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
}

impl Report {
    /// What was run when a finding of this report was made.
    pub fn target_of<'a>(&'a self, finding: &'a Finding) -> &'a Target {
        finding.target.as_ref().unwrap_or(&self.target)
    }
}

impl Finding {
    /// Was it made to happen?
    pub fn is_confirmed(&self) -> bool {
        self.confirmation.as_ref().is_some_and(|confirmation| confirmation.confirmed)
    }

    /// The worst it did to the program when it was made to happen; none if it was not.
    pub fn harm(&self) -> Option<Harm> {
        let confirmation = self.confirmation.as_ref();
        confirmation.filter(|known| known.confirmed).map(Confirmation::harm)
    }

    /// The order of reports, the most important first: what the program's own code has a part in;
    /// confirmed, those before others that made the program fail, then those that changed its output;
    /// observed, predicted; harmful, unknown, harmless.
    pub fn importance(&self) -> impl Ord + use<> {
        let nobodys = self.parties().all(|party| party.own_frame().is_none());
        let harm = match self.classification.as_ref().map(|known| known.verdict) {
            Some(Verdict::SpecViolated) => 0,
            Some(Verdict::OutputDiffers) => 1,
            None => 2,
            Some(Verdict::SingleOrdering) => 3,
            Some(Verdict::KWitnessHarmless) => 4,
        };
        let seen = self.harm().map_or((true, Harm::Nothing), |harm| (false, harm));
        (nobodys, seen, std::cmp::Reverse(self.certainty), harm)
    }
}

/// What a finding does to the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classification {
    /// In a word.
    pub verdict: Verdict,
    /// What the verdict rests on, in words.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// What both orders of a race came to, in the classes of Portend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// One order crashes, hangs or fails an assertion.
    SpecViolated,
    /// The orders write different output.
    OutputDiffers,
    /// k executions in either order showed no difference.
    KWitnessHarmless,
    /// The other order could not be made to happen.
    SingleOrdering,
}

impl Verdict {
    /// In plain words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::SpecViolated => "harmful: one order breaks the program",
            Verdict::OutputDiffers => "output differs between the orders",
            Verdict::KWitnessHarmless => "no difference between the orders was seen",
            Verdict::SingleOrdering => "only one order could be made to happen",
        }
    }
}

/// One side of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// What it did.
    pub kind: TouchKind,
    /// Bytes it touched.
    pub size: u64,
    /// Indivisible, as far as known.
    pub atomic: bool,
    /// Who.
    pub thread: ThreadId,
    /// In which process, where several were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Holding which locks.
    pub locks: Vec<Lock>,
    /// The access, then its callers.
    pub stack: Vec<Frame>,
    /// Index in `stack` of the first frame outside runtime libraries; absent when there is none.
    #[serde(default)]
    pub own_frame: Option<usize>,
}

impl Access {
    /// The frame that stands for the access: the first of the program's own, or else the innermost.
    pub fn frame(&self) -> Option<&Frame> {
        self.stack.get(self.own_frame.unwrap_or(0))
    }
}

/// A lock that was held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Where it is.
    pub address: Hex,
    /// The variable it is, or is part of.
    pub name: Option<String>,
    /// Which side was held.
    pub mode: Side,
    /// By which calls it was taken.
    pub taken_at: Vec<Frame>,
}

/// The side of a lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// One owner.
    Exclusive,
    /// Many owners.
    Shared,
}

impl From<LockMode> for Side {
    fn from(mode: LockMode) -> Side {
        match mode {
            LockMode::Exclusive => Side::Exclusive,
            LockMode::Shared => Side::Shared,
        }
    }
}

/// One entry of a call stack; inlined functions are entries of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The module's file; absent for code that belongs to none.
    pub module: Option<String>,
    /// Offset in the module, or else the address.
    pub offset: Hex,
    /// The function, demangled.
    pub function: Option<String>,
    /// Its source file, as the compiler knew it.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
    /// The column there.
    pub column: Option<u32>,
    /// The compiler put this function into the next one.
    pub inlined: bool,
    /// The text of the line, where the frame stands for an access and its source could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The memory that two accesses share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// What it is.
    pub kind: LocationKind,
    /// The variable, with element or member: `table[3].next`.
    pub name: Option<String>,
    /// Bytes from the start of the variable or heap block; of the module, if nothing else is known.
    pub offset: Option<Hex>,
    /// By which calls the heap block was allocated, innermost first.
    pub allocated_at: Option<Vec<Frame>>,
    /// Who allocated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_by: Option<ThreadId>,
    /// The first byte concerned.
    pub address: Hex,
    /// Bytes of the whole variable or heap block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The module it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The thread whose variable it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
}

/// What a location is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocationKind {
    /// A global or static variable.
    Global,
    /// One thread's own instance of a variable.
    ThreadLocal,
    /// A block of the heap.
    Heap,
    /// Memory of a module that has no name.
    Module,
    /// Nothing is known: a stack, or mapped memory.
    Unknown,
}

/// Why a report cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportError {
    /// It is no report, or a damaged one.
    Damaged(String),
    /// It has another schema.
    Schema(String),
}

impl std::fmt::Display for ReportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReportError::Damaged(why) => write!(f, "not a report of Raddle, or damaged: {why}"),
            ReportError::Schema(found) => {
                write!(f, "its schema is {found}, and this version of Raddle reads {SCHEMA}")
            }
        }
    }
}

impl std::error::Error for ReportError {}

impl Report {
    /// As a file: JSON for programs, one key a line for people who look into it.
    pub fn to_json(&self) -> String {
        // Strings as keys, no maps of ours that could fail: what is left is memory.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Back from a file.
    pub fn from_json(text: &str) -> Result<Report, ReportError> {
        /// The schema is looked at first: what follows may look different in another.
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let damaged = |error: serde_json::Error| ReportError::Damaged(error.to_string());
        let head: Head = serde_json::from_str(text).map_err(damaged)?;
        if head.schema != SCHEMA {
            return Err(ReportError::Schema(head.schema));
        }
        serde_json::from_str(text).map_err(damaged)
    }

    /// A thread by its number.
    pub fn thread(&self, id: ThreadId, process: Option<u32>) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.id == id && thread.process == process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;

    #[test]
    fn a_report_survives_its_file() {
        let report = typed::bank();
        assert_eq!(Report::from_json(&report.to_json()), Ok(report));
    }

    #[test]
    fn what_failed_comes_before_what_merely_differed() {
        let effects = [
            None,
            Some("nothing"),
            Some("other output"),
            Some("exit code 3"),
            Some("deadlock"),
            Some("failed assertion"),
        ];
        let race = typed::bank().findings.remove(0);
        let mut findings: Vec<Finding> = effects
            .iter()
            .map(|effect| {
                let one = |effect: &&str| Effect {
                    order: 1,
                    effect: (*effect).into(),
                    count: 1,
                    ..Effect::default()
                };
                let confirmation = effects_of(effect.iter().map(one).collect());
                Finding { id: format!("{effect:?}"), confirmation, ..race.clone() }
            })
            .collect();
        findings[0].confirmation = None;
        // An order that does nothing does not excuse the other.
        let nothing =
            Effect { order: 2, effect: Harm::NOTHING.into(), count: 9, ..Effect::default() };
        findings[4].confirmation.as_mut().unwrap().effects.insert(0, nothing);
        findings.sort_by_key(Finding::importance);
        let ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
        let said = |word: &str| format!("Some(\"{word}\")");
        let mut wanted = ["exit code 3", "deadlock", "failed assertion", "other output", "nothing"]
            .map(said)
            .to_vec();
        wanted.push("None".into());
        assert_eq!(ids, wanted);
    }

    fn effects_of(effects: Vec<Effect>) -> Option<Confirmation> {
        Some(Confirmation { confirmed: true, effects, ..Confirmation::default() })
    }

    #[test]
    fn failures_are_read_as_they_were_first_written() {
        let mut json: serde_json::Value = serde_json::from_str(&typed::bank().to_json()).unwrap();
        assert_eq!(json.get("failures"), None);
        json["failures"] = serde_json::json!([{
            "id": "H1", "effect": "abort", "end": {"signal": 6}, "deadlock": null,
            "policy": "pct (depth 2)", "seed": "7", "count": 1, "executions": 9, "new": true,
        }]);
        json["hunt"] = serde_json::json!({"detections": 3, "effect": null});
        let report = Report::from_json(&json.to_string()).unwrap();
        let failure = &report.failures[0];
        assert_eq!(
            (failure.kept(), failure.kind(), failure.executions),
            ("H1", "failing-execution", 9)
        );
        let again: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(again, json);
    }

    #[test]
    fn the_keys_are_those_of_the_design() {
        let json: serde_json::Value = serde_json::from_str(&typed::bank().to_json()).unwrap();
        let keys = |path: &str| -> Vec<String> {
            let object = json.pointer(path).unwrap_or_else(|| panic!("no {path}"));
            object.as_object().unwrap().keys().cloned().collect()
        };
        let has = |path: &str, wanted: &[&str]| {
            let keys = keys(path);
            for key in wanted {
                assert!(keys.iter().any(|k| k == key), "{key} in {path}: {keys:?}");
            }
        };
        has(
            "",
            &["schema", "tool", "target", "modules", "threads", "outcome", "summary", "findings"],
        );
        has("/target", &["argv", "cwd"]);
        has("/modules/0", &["path", "build_id"]);
        has("/threads/1", &["id", "name", "creator", "created_at"]);
        has("/outcome", &["exit", "signal", "timed_out"]);
        has(
            "/findings/0",
            &["id", "kind", "certainty", "fingerprint", "count", "rules", "accesses", "location"],
        );
        has(
            "/findings/0/accesses/0",
            &["kind", "size", "atomic", "thread", "locks", "stack", "own_frame"],
        );
        has("/findings/0/accesses/0/locks/0", &["address", "name", "mode", "taken_at"]);
        has(
            "/findings/0/accesses/0/stack/0",
            &["module", "offset", "function", "file", "line", "column", "inlined"],
        );
        has("/findings/0/location", &["kind", "name", "offset", "allocated_at"]);
        assert_eq!(json["schema"], "raddle-report/1");
        assert_eq!(json["findings"][0]["kind"], "data-race");
        assert_eq!(json["findings"][0]["certainty"], "observed");
        assert_eq!(json["findings"][0]["accesses"][0]["locks"][0]["mode"], "exclusive");
        assert_eq!(json["findings"][0]["accesses"][0]["stack"][0]["offset"], "0x114");
    }

    #[test]
    fn what_is_no_report_gets_a_sentence() {
        let said = |text: &str| Report::from_json(text).unwrap_err().to_string();
        assert_eq!(
            said("{\"schema\": \"raddle-report/2\"}"),
            "its schema is raddle-report/2, and this version of Raddle reads raddle-report/1"
        );
        assert!(said("{").contains("line 1 column 1"), "{}", said("{"));
        assert!(said("{\"schema\": \"raddle-report/1\"}").contains("missing field"));
        let wrong = typed::bank().to_json().replace("\"0x114\"", "276");
        assert!(said(&wrong).contains("expected a string at line"), "{}", said(&wrong));
    }
}

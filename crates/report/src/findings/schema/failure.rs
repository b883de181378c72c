//! What `raddle hunt` adds to a report: executions that ended otherwise than the program does by itself.

use super::Frame;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A way to fail, and the execution that shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its name in this run: `H1`.
    pub id: String,
    /// What happened, in words: `failed assertion`, `deadlock`, `no progress`, `killed by
    /// signal 11`.
    pub effect: String,
    /// How the target ended: `{"exit": 3}`, `{"signal": 11}`, `"hang"`, `"deadlock"`,
    /// `"no-progress"`.
    #[serde(default)]
    pub end: Value,
    /// Who waited for what, a line each, if it was a deadlock or there was no progress.
    #[serde(default)]
    pub deadlock: Option<String>,
    /// The policy it was found with.
    #[serde(default)]
    pub policy: String,
    /// And the seed.
    #[serde(default)]
    pub seed: String,
    /// Executions that failed like this.
    #[serde(default)]
    pub count: u64,
    /// Of so many.
    #[serde(default)]
    pub executions: u64,
    /// The execution's name in the run directory: `NAME.plan` and `NAME.schedule` repeat it. Its own, where
    /// nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Where the threads concerned stood, each innermost first, as far as known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Vec<Frame>>,
    /// What else the stage has to say.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Failure {
    /// What an execution that does not end at all is called, and what explains it.
    pub const DEADLOCK: &str = "deadlock";
    /// What one in which threads only spin is called.
    pub const NO_PROGRESS: &str = "no progress";
    /// What explains all others.
    pub const FAILING: &str = "failing-execution";

    /// The kind of bug, a word of `raddle explain`.
    pub fn kind(&self) -> &'static str {
        match self.effect.as_str() {
            Failure::NO_PROGRESS => Failure::FAILING,
            _ if self.deadlock.is_some() => Failure::DEADLOCK,
            Failure::DEADLOCK => Failure::DEADLOCK,
            _ => Failure::FAILING,
        }
    }

    /// The name of the files that repeat it.
    pub fn kept(&self) -> &str {
        self.kept.as_deref().unwrap_or(&self.id)
    }
}

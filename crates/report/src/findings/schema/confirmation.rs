//! What `raddle confirm` adds to a finding: whether it could be made to happen, how often, what it
//! did in each order, and the interleaving around it.

use super::Frame;
use crate::findings::Interval;
use raddle_model::ThreadId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What came of trying to make a finding happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    /// It happened.
    pub confirmed: bool,
    /// The two accesses met, but one may be atomic.
    #[serde(default)]
    pub adjacent: bool,
    /// The seed that makes it happen again.
    #[serde(default)]
    pub seed: Option<String>,
    /// The policy of the executions, where one was asked for; else race-directed, or lock-directed for a cycle of
    /// locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Executions tried.
    #[serde(default)]
    pub trials: u64,
    /// Of them those where it happened.
    #[serde(default)]
    pub hits: u64,
    /// How often it happens, by that: between which proportions of executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Of them those that Raddle itself failed in.
    #[serde(default)]
    pub failed: u64,
    /// What it did to the program.
    #[serde(default)]
    pub effects: Vec<Effect>,
    /// The orders in which it happened.
    #[serde(default)]
    pub orders: Vec<Order>,
    /// How often it happens under other policies, each asked for after it was confirmed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under: Vec<Under>,
    /// The program was rebuilt after the finding was made; this is about the new build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<Rebuilt>,
    /// What else the stage has to say.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// How often a finding happens under a policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Under {
    /// The policy.
    pub policy: String,
    /// Executions tried.
    pub trials: u64,
    /// Of them those where it happened.
    pub hits: u64,
    /// Between which proportions of executions it happens, by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

/// What a finding that was made to happen did to the program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// Which access went first: 1 the first of the finding, 2 the second.
    pub order: u8,
    /// In words.
    pub effect: String,
    /// In how many executions.
    pub count: u64,
    /// Where the threads concerned stood in the first of them, each innermost first: the one that crashed,
    /// or those that did not get on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Vec<Frame>>,
}

/// What an effect means, the worst first. The words of [`Effect::effect`] are judged here and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// The program failed: a crash, a failed assertion, a deadlock, a hang, another exit code.
    Failure,
    /// It ended as usual and wrote something else.
    OtherOutput,
    /// Nothing that could be seen.
    Nothing,
}

impl Harm {
    /// The effect when nothing else than usual happened.
    pub const NOTHING: &str = "nothing";
    /// The effect when only what the program wrote differed.
    pub const OTHER_OUTPUT: &str = "other output";

    /// What an effect in words means.
    pub fn of(effect: &str) -> Harm {
        match effect {
            Harm::NOTHING => Harm::Nothing,
            Harm::OTHER_OUTPUT => Harm::OtherOutput,
            _ => Harm::Failure,
        }
    }
}

impl Confirmation {
    /// The worst that was seen.
    pub fn harm(&self) -> Harm {
        let harms = self.effects.iter().map(|effect| Harm::of(&effect.effect));
        harms.min().unwrap_or(Harm::Nothing)
    }

    /// Adds how often it happens under a policy; what was known of that one before is replaced.
    pub fn add_under(&mut self, rate: Under) {
        self.under.retain(|known| known.policy != rate.policy);
        self.under.push(rate);
    }
}

/// An execution in which it happened, in one of the two orders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which access went first: 1 the first of the finding, 2 the second.
    pub order: u8,
    /// The seed it was found with.
    pub seed: String,
    /// The execution's name in the run directory: `NAME.plan` and `NAME.schedule` repeat it.
    pub kept: String,
    /// How the target ended.
    pub end: Value,
    /// The two accesses as they met.
    #[serde(default)]
    pub accesses: Value,
    /// What the two threads did around it, from a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaving: Option<Interleaving>,
}

/// The answer to "is it fixed?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// The code of both accesses is still there.
    pub found: bool,
    /// The detector still reports it.
    pub reported: bool,
    /// It neither happened nor is reported.
    pub fixed: bool,
}

/// What the two threads of a race did around it, or those of a deadlock before it, in the order in which
/// it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interleaving {
    /// The thread of the finding's first access, and that of its second; of a deadlock, each before the one
    /// it waits for.
    pub lanes: Vec<Lane>,
    /// The earliest first.
    pub steps: Vec<Step>,
}

/// A thread of an interleaving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Which.
    pub thread: ThreadId,
    /// As the program calls it.
    pub name: Option<String>,
}

/// Something a thread did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Index of the thread among the lanes.
    pub lane: usize,
    /// What sort of thing.
    pub kind: StepKind,
    /// In words.
    pub what: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Frame>,
    /// The locks its thread holds then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// What stood in memory, for accesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

/// What sort of thing a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// The thread began.
    Start,
    /// It took a lock, and holds it.
    Take,
    /// It gave a lock back.
    Release,
    /// It did something else that can order threads.
    Sync,
    /// An access at one of the two places, at another time.
    Access,
    /// One of the two racing accesses.
    Race,
    /// It asks for a lock and waits for ever.
    Wait,
    /// The thread ended.
    End,
}

/// What stood in the memory of an access, as hexadecimal numbers of its size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values {
    /// Bytes, at most eight.
    pub size: u64,
    /// Can the access change it?
    pub writes: bool,
    /// Right before.
    pub before: Option<String>,
    /// Right after.
    pub after: Option<String>,
}

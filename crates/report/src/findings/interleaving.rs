//! The interleaving around a race: what its two threads did, as two lanes with time going down; and that
//! before a deadlock, with a lane for each who waits. One
//! model for the terminal ([`super::text`]) and for the page ([`super::html`]).
//!
//! After `raddle confirm` it comes from a replay ([`record`]): who held which lock when, and what stood in
//! memory before and after each access. Before that, it is put together from what a
//! report has, where only the order of the two accesses means something between the lanes.

mod record;

pub use super::schema::{Interleaving, Lane, Step, StepKind, Values};
pub use record::{Met, Recorder, Waiting};

use super::schema::{Access, Effect, Finding, Order, Report};
use super::text::words;

/// An interleaving as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// What it shows, and where it comes from.
    pub caption: String,
    /// The threads.
    pub lanes: Vec<String>,
    /// The earliest first.
    pub steps: Vec<Step>,
    /// The edge that is not there; of a deadlock, the circle.
    pub missing: String,
    /// What the program did then.
    pub then: Option<String>,
}

impl Timeline {
    /// The timelines of a race: one for each order that was recorded, or else what the report itself
    /// can tell. Of a cycle of locks, the one that was recorded, if it was.
    pub fn of(finding: &Finding, report: &Report) -> Vec<Timeline> {
        let orders = finding.confirmation.iter().flat_map(|known| &known.orders);
        let recorded: Vec<Timeline> = orders
            .filter_map(|order| Timeline::recorded(finding, order, order.interleaving.as_ref()?))
            .collect();
        match recorded.is_empty() {
            true => Timeline::assembled(finding, report).into_iter().collect(),
            false => recorded,
        }
    }

    /// What a replay has shown of one order.
    pub fn recorded(
        finding: &Finding,
        order: &Order,
        interleaving: &Interleaving,
    ) -> Option<Timeline> {
        let lanes: Vec<String> = interleaving.lanes.iter().map(lane).collect();
        let who = interleaving.lanes.get(usize::from(order.order != 1));
        let who = who.map(|lane| lane.thread.to_string()).unwrap_or_default();
        let (what, missing) = match finding.accesses.as_slice() {
            [first, second] => {
                let earlier = words::kind(if order.order == 1 { first } else { second });
                let what = format!("order {}: the {earlier} of {who} first", order.order);
                (what, missing(&interleaving.steps, &lanes))
            }
            _ if finding.waits.is_empty() => return None,
            _ => {
                let circle =
                    "each waits for what the next one holds, the last for what the first holds";
                let what = "how they come to wait for each other".to_owned();
                (what, format!("{circle}: nobody can go on"))
            }
        };
        let caption = format!("{what} (replayed, seed {}); time goes down", order.seed);
        let effects = finding.confirmation.iter().flat_map(|known| &known.effects);
        let effects: Vec<String> =
            effects.filter(|effect| effect.order == order.order).map(effect_words).collect();
        let then = (!effects.is_empty()).then(|| effects.join(", "));
        Some(Timeline { caption, lanes, steps: interleaving.steps.clone(), missing, then })
    }

    fn assembled(finding: &Finding, report: &Report) -> Option<Timeline> {
        let [first, second] = finding.accesses.as_slice() else { return None };
        let mut steps = Vec::new();
        for (lane, access) in [first, second].into_iter().enumerate() {
            let thread = report.thread(access.thread, access.process);
            if let Some(thread) = thread.filter(|thread| thread.creator.is_some()) {
                let creator = thread.creator.map(|id| words::thread(report, id, access.process));
                let what = format!("starts, created by {}", creator.unwrap_or_default());
                let at = words::called_from(&thread.created_at).cloned();
                steps.push(Step { lane, kind: StepKind::Start, what, at, ..Step::default() });
            }
        }
        for (lane, access) in [first, second].into_iter().enumerate() {
            let mut holds = Vec::new();
            for lock in &access.locks {
                holds.push(words::held(lock));
                let what = format!("takes {}", words::held(lock));
                let at = words::called_from(&lock.taken_at).cloned();
                let holds = holds.clone();
                steps.push(Step { lane, kind: StepKind::Take, what, at, holds, values: None });
            }
            let (kind, what) = (StepKind::Race, words::access(access));
            let at = access.frame().cloned();
            steps.push(Step { lane, kind, what, at, holds, values: None });
        }
        let lane = |access: &Access| words::thread(report, access.thread, access.process);
        let lanes = vec![lane(first), lane(second)];
        let id = words::clean(&finding.id);
        let recorded = match finding.is_confirmed() {
            true => "its replay was not recorded".to_owned(),
            false => format!("not recorded: `raddle confirm {id}` makes it happen and does"),
        };
        Some(Timeline {
            caption: format!(
                "put together from the report; between the lanes, only the order of the two accesses means \
                 something ({recorded})"
            ),
            missing: missing(&steps, &lanes),
            lanes,
            steps,
            then: None,
        })
    }
}

fn lane(lane: &Lane) -> String {
    match &lane.name {
        Some(name) => format!("{} '{name}'", lane.thread),
        None => lane.thread.to_string(),
    }
}

/// `nothing (12 times)`.
fn effect_words(effect: &Effect) -> String {
    format!("{} ({})", effect.effect, words::times(effect.count))
}

/// Which edge is not there: what each held at its access, and that it is no common lock.
fn missing(steps: &[Step], lanes: &[String]) -> String {
    let holds = |lane: usize| {
        let race = steps.iter().find(|step| step.lane == lane && step.kind == StepKind::Race);
        let held = race.map(|step| words::list(&step.holds)).filter(|held| !held.is_empty());
        let thread = lanes.get(lane).map(String::as_str).unwrap_or_default();
        format!("{thread} holds {}", held.unwrap_or_else(|| "no lock".into()))
    };
    format!("{}, {}: nothing makes one wait for the other", holds(0), holds(1))
}

impl Values {
    /// For people: `0 → 1`, `sees 0`.
    pub fn words(&self) -> Option<String> {
        let number = |text: &Option<String>| {
            let digits = text.as_deref()?.strip_prefix("0x")?;
            let value = u64::from_str_radix(digits, 16).ok()?;
            Some(plain(value, self.size))
        };
        let (before, after) = (number(&self.before), number(&self.after));
        match (self.writes, before, after) {
            (false, Some(before), _) => Some(format!("sees {before}")),
            (true, Some(before), Some(after)) => Some(format!("{before} → {after}")),
            (true, None, Some(after)) => Some(format!("writes {after}")),
            (true, Some(before), None) => Some(format!("over {before}")),
            _ => None,
        }
    }
}

/// Small numbers as a person would write them, also below zero; what looks like an address or a
/// pattern of bits in hexadecimal.
fn plain(value: u64, size: u64) -> String {
    const SMALL: u64 = 1_000_000;
    let unused = 64u32.saturating_sub((size.clamp(1, 8) * 8) as u32);
    let signed = ((value << unused) as i64) >> unused;
    match signed.unsigned_abs() <= SMALL {
        true => signed.to_string(),
        false => format!("{value:#x}"),
    }
}

impl Default for Step {
    fn default() -> Self {
        Step {
            lane: 0,
            kind: StepKind::Sync,
            what: String::new(),
            at: None,
            holds: Vec::new(),
            values: None,
        }
    }
}

//! The sentences of a report.

use crate::findings::Rate;
use crate::findings::access::TRANSACTION;
use crate::findings::party::{Deed, Party, Wanted};
use crate::findings::runtime::own_frame;
use crate::findings::schema::{
    Access, Confirmation, Effect, Finding, Frame, Location, LocationKind, Lock, Rebuilt, Report,
    Side, Under,
};
use crate::hex::Hex;
use crate::names::{file_name, source};
use crate::world::NO_THREAD;
use raddle_model::ThreadId;
use raddle_model::finding::{Certainty, FindingKind, Rule, TouchKind};
use std::path::Path;

/// What a finding is about: `data race on counter`.
pub(in crate::findings) fn subject(finding: &Finding, base: &Path) -> String {
    let kind = match finding.kind {
        FindingKind::DataRace => "data race",
        FindingKind::LockOrder => return cycle(finding),
    };
    let location = &finding.location;
    let on = match (location.kind, &location.name, location.size) {
        (LocationKind::ThreadLocal, Some(name), _) => {
            let of = location.thread.map(|thread| format!(" of {thread}")).unwrap_or_default();
            format!("{name} (thread-local{of})")
        }
        (_, Some(name), _) => name.clone(),
        (LocationKind::Heap, _, size) => {
            let calls = location.allocated_at.as_deref().unwrap_or_default();
            let from = called_at(calls, base).map(|at| format!(" from {at}")).unwrap_or_default();
            format!(
                "a heap block{}{from}",
                size.map(|n| format!(" of {}", bytes(n))).unwrap_or_default()
            )
        }
        (LocationKind::Module, ..) => {
            let module = location.module.as_deref().map(file_name).unwrap_or_default();
            format!("{module}+{:#x}", location.offset.map_or(0, |offset| offset.0))
        }
        _ if location.address.0 == 0 => "memory without a name".to_owned(),
        _ => format!("{:#x}", location.address.0),
    };
    format!("{kind} on {on}")
}

/// The same in as few words as can be: `race on a heap block of 64 bytes`.
pub(in crate::findings) fn short_subject(finding: &Finding) -> String {
    let Location { kind, name, size, .. } = &finding.location;
    match (finding.kind, kind, name, size) {
        (FindingKind::DataRace, LocationKind::Heap, None, Some(size)) => {
            format!("race on a heap block of {}", bytes(*size))
        }
        _ => subject(finding, Path::new("")).replacen("data race", "race", 1),
    }
}

/// `lock-order cycle of m and n`.
fn cycle(finding: &Finding) -> String {
    let mut names: Vec<String> = finding.waits.iter().map(|w| wanted_name(&w.wants)).collect();
    names.dedup();
    format!("lock-order cycle of {}", list(&names))
}

/// `a`, `a and b`, `a, b and c`.
pub(in crate::findings) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `2 data races`, `1 lock-order cycle`: what there is any of.
pub(in crate::findings) fn kinds(report: &Report) -> Vec<String> {
    let count = |kind| report.findings.iter().filter(|f| f.kind == kind).count() as u64;
    let kinds = [
        (count(FindingKind::DataRace), "data race", "data races"),
        (count(FindingKind::LockOrder), "lock-order cycle", "lock-order cycles"),
    ];
    let there = kinds.iter().filter(|(n, ..)| *n > 0);
    there.map(|(n, one, many)| number(*n, one, many)).collect()
}

/// `observed` or `predicted`.
pub(in crate::findings) fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Observed => "observed",
        Certainty::Predicted => "predicted",
    }
}

/// How sure, in one word: `confirmed`, `observed`, `predicted`.
pub(in crate::findings) fn standing(finding: &Finding) -> &'static str {
    if finding.is_confirmed() { "confirmed" } else { certainty(finding.certainty) }
}

/// How sure, how often, how harmful: `observed, seen 12 times`.
pub(in crate::findings) fn verdict(finding: &Finding) -> String {
    let harm = finding.classification.as_ref().map(|known| format!(", {}", known.verdict.words()));
    let seen = times(finding.count);
    format!("{}, seen {seen}{}", standing(finding), harm.unwrap_or_default())
}

/// What later stages learnt, each with its label.
pub(in crate::findings) fn later(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    said.extend(finding.target.as_ref().map(|target| ("seen in: ", target.argv.join(" "))));
    if let Some(confirmation) = &finding.confirmation {
        let Confirmation { trials, hits, adjacent, .. } = *confirmation;
        let tried = number(trials, "execution", "executions");
        let rate = Rate { hits, trials };
        let seed = confirmation.seed.as_ref().map(|seed| format!("; seed {seed}"));
        let seed = seed.unwrap_or_default();
        let policy = confirmation.policy.as_ref().map(|policy| format!(" under {policy}"));
        let under = policy.as_deref().unwrap_or_default();
        said.push(match (confirmation.confirmed, adjacent) {
            (true, _) => ("made: ", format!("happened in {rate} executions{under}{seed}")),
            (false, true) => (
                "made: ",
                format!("both stood there in {rate} executions{under}, one perhaps atomic{seed}"),
            ),
            (false, false) if trials == 0 => ("made: ", "not tried: its code is gone".into()),
            (false, false) if policy.is_some() => {
                ("made: ", format!("did not happen in {tried}{under}"))
            }
            (false, false) => ("made: ", format!("could not be made to happen in {tried}")),
        });
        said.extend(confirmation.under.iter().map(|rate| {
            let Under { policy, trials, hits, .. } = rate;
            let rate = Rate { hits: *hits, trials: *trials };
            ("made: ", format!("under {policy}, it happened in {rate} executions"))
        }));
        said.extend(fixed(confirmation).map(|fixed| ("fixed: ", fixed)));
        said.extend(confirmation.effects.iter().map(|effect| ("does: ", does(finding, effect))));
    }
    if let Some(classification) = &finding.classification {
        said.extend(classification.evidence.iter().map(|shown| ("shown: ", shown.clone())));
    }
    said
}

/// What a race did in an order: `exit code 3, with (2) the write first, 12 times`; where, if it crashed.
fn does(finding: &Finding, effect: &Effect) -> String {
    let first = finding.accesses.get(usize::from(effect.order != 1));
    let first = first.map(|first| format!(", with ({}) the {} first", effect.order, kind(first)));
    let first = first.unwrap_or_default();
    format!("{}{}{first}, {}", effect.effect, stood(effect), times(effect.count))
}

/// Where the program crashed: ` in reader (bank.c:20)`.
fn stood(effect: &Effect) -> String {
    let [stack] = effect.stacks.as_slice() else { return String::new() };
    let Some(frame) = stack.get(own_frame(stack).unwrap_or(0)) else { return String::new() };
    let source = match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!(" ({}:{line})", file_name(file)),
        _ => String::new(),
    };
    frame.function.as_ref().map_or_else(String::new, |name| format!(" in {name}{source}"))
}

/// Is it fixed in the program as it is built now? None if that is the build it was found in.
pub fn fixed(confirmation: &Confirmation) -> Option<String> {
    let Rebuilt { found, reported, fixed } = *confirmation.rebuilt.as_ref()?;
    let said = match (fixed, confirmation.hits > 0, found) {
        (true, _, true) => {
            "it did not happen in the new build, and the detector does not report it: fixed, as far \
             as that shows"
        }
        (true, _, false) => {
            "its code is no longer there, and the detector does not report it: fixed, as far as \
             that shows"
        }
        (false, true, _) if reported => "it still happens in the new build: not fixed",
        (false, true, _) => {
            "it still happens in the new build, though the detector did not report it: not fixed"
        }
        (false, false, _) => {
            "it did not happen in the new build, but the detector still reports it: not fixed, as \
             far as that shows"
        }
    };
    Some(said.to_owned())
}

/// `once`, `12 times`.
pub(in crate::findings) fn times(n: u64) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

/// `write`, `atomic read`.
pub(in crate::findings) fn kind(access: &Access) -> String {
    let kind = match access.kind {
        TouchKind::Read => "read",
        TouchKind::Write => "write",
        TouchKind::Update => "update",
        TouchKind::Free => "free",
    };
    if access.atomic { format!("atomic {kind}") } else { kind.to_owned() }
}

/// `write of 4 bytes`.
pub(in crate::findings) fn access(access: &Access) -> String {
    match access.size {
        0 => kind(access),
        size => format!("{} of {}", kind(access), bytes(size)),
    }
}

/// What somebody who takes part does: `write of 4 bytes`, `request for m`.
pub(in crate::findings) fn deed(party: Party<'_>) -> String {
    match party.deed {
        Deed::Access(touch) => access(touch),
        Deed::Wait(wanted) => {
            let side = if wanted.mode == Side::Shared { " (shared side)" } else { "" };
            format!("request for {}{side}", wanted_name(wanted))
        }
    }
}

/// The same in a word or two.
pub(in crate::findings) fn short_deed(party: Party<'_>) -> String {
    match party.deed {
        Deed::Access(touch) => kind(touch),
        Deed::Wait(_) => deed(party),
    }
}

/// `write of 4 bytes by T3, holding no locks`.
pub(in crate::findings) fn said(report: &Report, party: Party<'_>, base: &Path) -> String {
    let thread = thread(report, party.thread, party.process);
    format!("{} by {thread}{}", deed(party), holding(party, base))
}

/// `, holding no locks`; nothing where the locks are not known.
pub(in crate::findings) fn holding(party: Party<'_>, base: &Path) -> String {
    match party.of_another_tool && party.locks.is_empty() {
        true => String::new(),
        false => format!(", holding {}", locks(party.locks, base)),
    }
}

/// The same, without where the locks were taken.
pub(in crate::findings) fn holding_only(party: Party<'_>) -> String {
    match party.locks {
        [] => holding(party, Path::new("")),
        some => format!(", holding {}", list(&some.iter().map(held).collect::<Vec<_>>())),
    }
}

/// `T3 'worker'`.
pub(in crate::findings) fn thread(report: &Report, id: ThreadId, process: Option<u32>) -> String {
    // Other tools' threads are not ours.
    if id == NO_THREAD {
        return "a thread".into();
    }
    let name = report.thread(id, process).and_then(|thread| thread.name.as_deref());
    let mut text = match name {
        Some(name) => format!("{id} '{name}'"),
        None => id.to_string(),
    };
    if let Some(process) = process {
        text += &format!(" of process {process}");
    }
    text
}

/// `no locks`, `m (taken at bank.c:9 in main)`, `m and n (shared side)`.
pub(in crate::findings) fn locks(locks: &[Lock], base: &Path) -> String {
    match locks {
        [] => "no locks".into(),
        [one] => lock(one, taken(one, base)),
        many => list(&many.iter().map(held).collect::<Vec<_>>()),
    }
}

/// Where each of several locks was taken; for one, [`locks`] says it.
pub(in crate::findings) fn taken_at(locks: &[Lock], base: &Path) -> Vec<String> {
    let many = if locks.len() > 1 { locks } else { &[] };
    let line = |held| Some(format!("{} was {}", lock_name(held), taken(held, base)?));
    many.iter().filter_map(line).collect()
}

/// A lock and the side that was held: `m`, `m (shared side)`.
pub(in crate::findings) fn held(held: &Lock) -> String {
    lock(held, None)
}

/// Bytes of a line that the access at a column is: the word or operator there; empty where the
/// column is unknown.
pub(in crate::findings) fn marked(text: &str, column: Option<u32>) -> std::ops::Range<usize> {
    // Columns are bytes from 1; one inside a character or behind the line is no use.
    let start = column.and_then(|column| (column as usize).checked_sub(1));
    match start.and_then(|start| Some((start, text.split_at_checked(start)?.1))) {
        Some((start, rest)) if !rest.trim().is_empty() => {
            let length = super::snippet::token(rest);
            start..start + rest.chars().take(length).map(char::len_utf8).sum::<usize>()
        }
        _ => 0..0,
    }
}

fn lock(held: &Lock, taken: Option<String>) -> String {
    let side = (held.mode == Side::Shared).then(|| "shared side".to_owned());
    let facts: Vec<String> = side.into_iter().chain(taken).collect();
    match facts.as_slice() {
        [] => lock_name(held),
        facts => format!("{} ({})", lock_name(held), facts.join(", ")),
    }
}

fn lock_name(held: &Lock) -> String {
    match held.name.as_deref() {
        Some(TRANSACTION) => "a transaction".to_owned(),
        name => named(name, held.address),
    }
}

fn wanted_name(wanted: &Wanted) -> String {
    named(wanted.name.as_deref(), wanted.address)
}

fn named(name: Option<&str>, address: Hex) -> String {
    name.map_or_else(|| format!("the lock at {:#x}", address.0), String::from)
}

fn taken(held: &Lock, base: &Path) -> Option<String> {
    called_at(&held.taken_at, base).map(|at| format!("taken at {at}"))
}

/// The memory in a sentence; `at` is where it was allocated.
pub(in crate::findings) fn memory(
    finding: &Finding,
    report: &Report,
    at: Option<String>,
    base: &Path,
) -> String {
    let location = &finding.location;
    let address = location.address.0;
    let offset = location.offset.map_or(0, |offset| offset.0);
    let module = location.module.as_deref().map(|path| path_text(path, base)).unwrap_or_default();
    let inside = |what: String| match offset {
        0 => what,
        offset => format!("byte {offset} of {what}"),
    };
    match location.kind {
        // Other tools' addresses are not ours.
        _ if address == 0 => match &location.name {
            Some(name) => format!("global variable {name}"),
            None => "memory that the other tool does not name".into(),
        },
        LocationKind::Global | LocationKind::ThreadLocal => {
            let name = location.name.as_deref().unwrap_or_default();
            // A name with an element or a member is a part of the variable.
            let extent = match location.size {
                Some(size) if name.contains(['.', '[', '+']) => {
                    format!("at {address:#x}, byte {offset} of {size}")
                }
                Some(size) => format!("{} at {:#x}", bytes(size), address.saturating_sub(offset)),
                None => format!("at {address:#x}"),
            };
            let process = finding.accesses.first().and_then(|access| access.process);
            match location.thread.map(|owner| thread(report, owner, process)) {
                Some(owner) => {
                    format!("{owner}'s own thread-local variable {name} of {module}, {extent}")
                }
                None => format!("global variable {name} of {module}, {extent}"),
            }
        }
        LocationKind::Heap => {
            let size = location.size.map(|size| format!(" of {}", bytes(size))).unwrap_or_default();
            let process = finding.accesses.first().and_then(|access| access.process);
            let by = location.allocated_by.map(|by| thread(report, by, process));
            let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
            let at = at.map(|at| format!(" at {at}"));
            inside(format!("a heap block{size}, allocated{by}{}", at.unwrap_or_default()))
        }
        LocationKind::Module => {
            format!("{address:#x}, which is {module}+{offset:#x} and has no name")
        }
        LocationKind::Unknown => {
            format!(
                "{address:#x}, neither a global variable nor a heap block: a stack, or mapped memory"
            )
        }
    }
}

/// Why the accesses are held to be unordered, each rule in plain words and by its name.
pub(in crate::findings) fn reasons(finding: &Finding) -> Vec<String> {
    let unlocked = finding.accesses.iter().all(|access| access.locks.is_empty());
    let words = |rule: &Rule| match rule {
        Rule::NoCommonLock if unlocked => "neither access held a lock",
        Rule::NoCommonLock => "no lock was held by both",
        Rule::SharedSidesOnly => {
            "both held the same read/write lock, but one wrote with only its shared side, which lets \
             others in"
        }
        Rule::LockOrderIgnored => {
            "only the order in which locks were taken kept them apart, and the next run may take \
             them in another: predicted"
        }
        Rule::MixedAtomic => "one access is atomic and the other is not",
        Rule::LockTouched => {
            "the memory is also touched by atomic instructions, but neither access is one"
        }
        Rule::FreeIsWrite => "giving memory back counts as writing it",
        Rule::NoLockHeld => "the access held no lock and was parallel to the one before",
        Rule::NoCandidateLock => "no lock was held at every access since the memory became shared",
        Rule::Repeated => "the same suspicion came up for the second time",
    };
    let origin = finding.origin.iter().map(|tool| format!("{tool} reported it"));
    let mut reasons: Vec<String> = origin
        .chain(finding.rules.iter().map(|rule| format!("{} ({rule})", words(rule))))
        .collect();
    let helgrind =
        |rule: &Rule| matches!(rule, Rule::NoLockHeld | Rule::NoCandidateLock | Rule::Repeated);
    if finding.kind == FindingKind::LockOrder {
        reasons.push(
            "each asks for what the next one holds, the last for what the first holds; no common lock and \
             no order keeps them from being there at once: a deadlock, in another run"
                .into(),
        );
    }
    if finding.certainty == Certainty::Observed && !finding.rules.iter().any(helgrind) {
        reasons.push("nothing that Raddle knows of ordered them in this run: observed".into());
    }
    reasons
}

/// `bank.c:31 in withdraw`, or as much of it as is known.
pub(in crate::findings) fn place(frame: &Frame, base: &Path) -> String {
    let bare = || match &frame.module {
        Some(path) => format!("{}+{:#x}", file_name(path), frame.offset.0),
        None => format!("{:#x}", frame.offset.0),
    };
    match (source(frame.file.as_deref(), frame.line, base), &frame.function) {
        (Some(source), Some(function)) => format!("{source} in {function}"),
        (Some(source), None) => source,
        (None, Some(function)) => format!("{function} ({})", bare()),
        (None, None) => bare(),
    }
}

/// `bank.c:31`, or as much of it as is known.
pub(in crate::findings) fn short_place(frame: &Frame) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
        _ => place(frame, Path::new("")),
    }
}

/// Where in the program's own code a stack comes from, in words.
pub(in crate::findings) fn called_at(stack: &[Frame], base: &Path) -> Option<String> {
    called_from(stack).map(|frame| place(frame, base))
}

/// Where in the program's own code a stack comes from.
pub(in crate::findings) fn called_from(stack: &[Frame]) -> Option<&Frame> {
    stack.get(own_frame(stack).unwrap_or(0)).filter(|frame| says_something(frame))
}

/// Is anything known of it? What the kernel mapped for a thread's stack, say, nobody called for.
pub(in crate::findings) fn says_something(frame: &Frame) -> bool {
    frame.module.is_some() || frame.function.is_some() || frame.offset.0 != 0
}

/// `1 thread`, `2 threads`.
pub(in crate::findings) fn number(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// What a terminal would obey is shown instead: names and source come from the target.
pub(in crate::findings) fn clean(text: &str) -> String {
    let dangerous =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(dangerous) {
        return text.to_owned();
    }
    let shown = |c: char| if dangerous(c) { c.escape_default().to_string() } else { c.into() };
    text.chars().map(shown).collect()
}

fn bytes(n: u64) -> String {
    number(n, "byte", "bytes")
}

/// `./bank` for what lies below `base`.
fn path_text(path: &str, base: &Path) -> String {
    match Path::new(path).strip_prefix(base) {
        Ok(below) if below.components().count() > 0 => format!("./{}", below.display()),
        _ => path.to_owned(),
    }
}

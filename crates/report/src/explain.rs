//! What the words of a report mean, in plain language, and what to do about it: for `raddle
//! explain`, the rules of SARIF and the HTML page. One text for each, written once.

use raddle_model::finding::{FindingKind, Rule};

/// A word and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topic {
    /// The word, as reports use it.
    pub name: &'static str,
    /// In a line.
    pub short: &'static str,
    /// In a few paragraphs, of Markdown that reads well as it is.
    pub long: &'static str,
    /// What to do about it; empty where there is nothing to do.
    pub fix: &'static str,
}

/// Every topic.
pub fn topics() -> impl Iterator<Item = &'static Topic> {
    KINDS.iter().chain(&RULES).chain(&WORDS)
}

/// The topic of this name.
pub fn topic(name: &str) -> Option<&'static Topic> {
    topics().find(|topic| topic.name == name)
}

/// The topic of a kind of finding.
pub fn kind(kind: FindingKind) -> Option<&'static Topic> {
    topic(&kind_name(kind))
}

/// The name of a kind of finding, as `report.json` has it.
pub fn kind_name(kind: FindingKind) -> String {
    let value = serde_json::to_value(kind).ok();
    value.and_then(|value| value.as_str().map(String::from)).unwrap_or_default()
}

/// The topic of a rule.
pub fn rule(rule: Rule) -> Option<&'static Topic> {
    topic(rule.name())
}

const KINDS: [Topic; 5] = [
    Topic {
        name: "data-race",
        short: "Two threads access the same memory, at least one writes, and nothing orders them",
        long: "\
Two threads touch the same memory, at least one of them writes, and nothing keeps the two apart: no
lock held by both, no join, no wait, no hand-over from one to the other. Which of them comes first is
chance. In C, C++ and Rust that is undefined behaviour: the compiler may assume that it never
happens, so the harm need not look like 'the older value was seen'.

It is not always visible: a race can be harmless on this machine for years, until a compiler, a
processor or a load changes the timing.",
        fix: "\
- Hold the same lock at both accesses, also at the one that only reads.
- Or make both accesses atomic (`_Atomic`, `std::atomic`, `AtomicUsize`). `volatile` is not atomic.
- Or order them: join the thread before reading, hand over through a queue, a condition variable or
  a channel.
- Or do not share: give each thread its own copy and put them together at the end.",
    },
    Topic {
        name: "deadlock",
        short: "Threads wait for each other in a circle",
        long: "\
Each thread of the circle holds a lock that the next one waits for, so none can go on.

A deadlock that `raddle hunt` found (H1) really happened: either such a circle was closed, or no thread
could run at all, because what they wait for (a signal of a condition variable, a semaphore, the end of
another thread) could no longer come. `raddle replay H1` repeats it.",
        fix: "\
- Take locks in one order everywhere, by rank or by address.
- Or take them together (`std::scoped_lock`), or hold one at a time.
- Where a signal was missed: test the condition under the lock, in a loop, before waiting for it.",
    },
    Topic {
        name: "failing-execution",
        short: "Under some schedule the program ends otherwise than it does by itself",
        long: "\
`raddle hunt` executed the program under many schedules. In this one it crashed, aborted, failed an
assertion, hung, made no progress (every thread that could run went round in circles and changed
nothing, so that it would never end), or left with another exit code than when nobody directed it. Only the order in which
threads ran was another, so the program depends on that order. It happened, so it is no false alarm;
what is not known is which line is to blame.

Where a data race is confirmed, too, it may be the cause. Without one, look for a sequence that other
threads can get into: looking and acting in two critical sections, using before making, giving back
too early.",
        fix: "\
- `raddle replay H1` repeats it as often as you like, and with `--gdb` lets gdb look at it.
- `raddle replay H1 --events` shows how the threads synchronised on the way there.
- When it is fixed, `raddle hunt` again: a replay of a program that was built anew proves nothing.",
    },
    Topic {
        name: "lock-order",
        short: "Locks are taken in opposite orders: threads can come to wait for each other",
        long: "\
One thread takes lock A and then B, another B and then A. In this run it went well; in another both
have their first lock and wait for the second for ever. With more threads the circle can be longer.

It is predicted from one run (docs/analysers/deadlock.md): different threads, no order by fork, join or
signals between them, and no lock that all of them hold around it. `raddle confirm` makes the
deadlock happen; where it cannot, something that Raddle does not know may keep the threads apart.",
        fix: "\
- Take locks in one order everywhere, by rank or by address.
- Or take them together (`std::scoped_lock`), or hold one at a time.",
    },
    Topic {
        name: "atomicity",
        short: "A sequence that must not be interrupted can be",
        long: "\
Each access is protected, but the sequence is not: between looking and acting on what was seen,
another thread can change it.",
        fix: "\
- Hold the lock over the whole sequence.
- Or use one operation that looks and acts (compare-and-exchange, `insert-if-absent`).",
    },
];

const RULES: [Topic; 9] = [
    Topic {
        name: "no-common-lock",
        short: "No lock was held at both accesses",
        long: "\
Each access may hold locks, but there is none that both hold. Two threads with two different locks
are as free as two without any.",
        fix: "Decide which lock guards the memory, and hold it at every access.",
    },
    Topic {
        name: "shared-sides-only",
        short: "Both held the same read/write lock, but only its shared side",
        long: "\
The shared (reading) side of a read/write lock lets any number of holders in at once, so it does not
keep a write apart from anything.",
        fix: "Take the exclusive (writing) side where the memory is written.",
    },
    Topic {
        name: "lock-order-ignored",
        short: "Only the order in which locks happened to be taken kept the accesses apart",
        long: "\
In this run one thread released a lock before the other took it, and that happened to put the
accesses in order. The next run may take the locks the other way round, and then nothing orders
them. Such a finding is predicted, not observed. It can be a false alarm where the lock hands
something over (a flag set under the lock and tested under it): then the order is no chance.",
        fix: "\
Hold a common lock at both accesses. If the lock does hand the memory over, confirming will fail to
make the race happen, and a suppression with that reason is right.",
    },
    Topic {
        name: "mixed-atomic",
        short: "One access is atomic and the other is not",
        long: "\
An atomic access is ordered against other atomic ones only. Without debug information the binary
cannot tell whether a plain `mov` was meant to be atomic: a release store and an acquire load compile
to it on x86-64.",
        fix: "\
Make both atomic. If both are in the source, compile with debug information (`-g`), which lets Raddle
see it.",
    },
    Topic {
        name: "lock-touched",
        short: "The memory is also touched by atomic instructions, but neither access is one",
        long: "\
Some instruction with a `lock` prefix works on this memory, so it is meant for synchronisation; yet
both of these accesses are plain, and one of them writes.",
        fix: "Use the atomic type everywhere, also for initialising it again.",
    },
    Topic {
        name: "free-is-write",
        short: "Giving memory back counts as writing it",
        long: "\
After `free` or `delete` the memory can belong to anybody. An access that nothing orders before that
is a use after free waiting to happen.",
        fix: "Join or otherwise wait for the other thread before freeing, or count references.",
    },
    Topic {
        name: "no-lock-held",
        short: "Helgrind+: an access without any lock, parallel to the one before",
        long: "A rule of `--detector helgrind+`, whose memory states are in docs/analysers.",
        fix: "As for data-race.",
    },
    Topic {
        name: "no-candidate-lock",
        short: "Helgrind+: no lock was held at every access since the memory became shared",
        long: "A rule of `--detector helgrind+`, whose memory states are in docs/analysers.",
        fix: "As for data-race.",
    },
    Topic {
        name: "repeated",
        short: "Helgrind+, long: the same suspicion for the second time",
        long: "A rule of `--detector helgrind+ --states long`, which does not warn the first time.",
        fix: "As for data-race.",
    },
];

const WORDS: [Topic; 6] = [
    Topic {
        name: "confirmed",
        short: "Two threads were made to stand at the accesses at the same time",
        long: "\
Raddle ran the program again and held one thread at its access until the other reached its own.
There is no false alarm among the confirmed, and the seed repeats it.",
        fix: "",
    },
    Topic {
        name: "observed",
        short: "Nothing that Raddle knows of ordered the accesses in this run",
        long: "\
Given the synchronisation that Raddle knows, the accesses were unordered in this very run. It can be
wrong where the program synchronises in a way that Raddle does not recognise: a hook file teaches it
(docs/hooks.md).",
        fix: "",
    },
    Topic {
        name: "predicted",
        short: "Another run could have the accesses unordered",
        long: "\
In this run the order of locks kept the accesses apart, and that order is chance. `--detector hb`
leaves predicted findings out.",
        fix: "",
    },
    Topic {
        name: "unconfirmed",
        short: "Confirming was tried and did not succeed",
        long: "Not the same as false: another input or more seeds may succeed.",
        fix: "",
    },
    Topic {
        name: "fingerprint",
        short: "A name for a finding that survives rebuilding the program",
        long: "\
Made of the functions, the kinds of access, the variable or the allocating function, and the text of
the lines; not of line numbers or addresses. Baselines and suppressions use it.",
        fix: "",
    },
    Topic {
        name: "suppression",
        short: "A finding that somebody decided to live with, and why",
        long: "\
`--suppressions FILE` reads Raddle's own TOML, and the files of ThreadSanitizer and Valgrind as they
are. `--gen-suppressions FILE` writes one for each finding. See docs/suppressions.md.",
        fix: "",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_a_report_says_is_explained_once() {
        let mut names: Vec<&str> = topics().map(|topic| topic.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(kind(FindingKind::DataRace).map(|topic| topic.name), Some("data-race"));
        for named in [Rule::NoCommonLock, Rule::FreeIsWrite, Rule::Repeated, Rule::LockTouched] {
            assert!(rule(named).is_some(), "{named}");
        }
        for topic in topics() {
            assert!(!topic.short.ends_with('.') && topic.short.len() < 100, "{}", topic.name);
        }
    }
}

//! From JSON lines to the events of the program, in the words of expectations.

use super::program::{Expected, Program, Who};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// One event that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub who: Who,
    /// The line of the program's source.
    pub line: Option<u64>,
    pub text: String,
}

/// How libraries block, and what loading brings: not the program's doing. What is known of loops, and
/// what compilers register for the end, depends on them.
const LEFT_OUT: [&str; 9] = [
    "futex-wait",
    "futex-wait-end",
    "futex-wake",
    "module-load",
    "module-unload",
    "process-end",
    "release",
    "acquire",
    "condition-loop-left",
];

/// The events that count, as text.
pub fn select(program: &Program, binary: &Path, build: &str, events: &[Value]) -> Vec<Seen> {
    let mut names = Names::default();
    // Names first: an event may mention an object that only a later one names.
    events.iter().for_each(|event| names.learn(event));
    let nameless = is_nameless(build);
    let mut seen: Vec<Seen> = Vec::new();
    for event in events {
        names.learn_handle(event);
        let name = string(event, "event");
        let also = |what: &str| program.also.iter().any(|a| a == what);
        let left_out =
            LEFT_OUT.contains(&name) && !also(name) || is_on_stack(event) && !also("stack");
        let counts = match nameless {
            true => concerns_module(event, binary),
            false => concerns_source(program, binary, event),
        };
        if !left_out && counts {
            let who = names.who(event);
            let text = if nameless { names.nameless(event) } else { names.text(event) };
            seen.push(Seen { who, line: line(program, event), text });
        }
    }
    if nameless {
        let mut objects = Objects::default();
        seen.iter_mut().for_each(|s| s.text = objects.numbered(&s.text));
    }
    seen
}

/// What the program expects, as far as this build can show it: without symbols, objects have no
/// names and events no lines.
pub fn as_visible(program: &Program, build: &str) -> Vec<Expected> {
    let mut expected = program.expected.clone();
    if is_nameless(build) {
        let mut objects = Objects::default();
        for e in &mut expected {
            e.line = None;
            e.text = objects.numbered(&e.text);
        }
    }
    expected
}

/// A mapping this large is a thread's stack: no program here maps so much for itself.
const STACK: u64 = 1 << 20;

/// An access to a stack: what it is depends on the compiler. Of the first thread's stack nothing is
/// known; the others' are mapped.
fn is_on_stack(event: &Value) -> bool {
    let touches = ["read", "write", "read-range", "write-range"].contains(&string(event, "event"));
    touches && object_name(&event["object"]).as_deref() == Some("stack")
}

fn is_nameless(build: &str) -> bool {
    build.split_whitespace().any(|word| word == "-s")
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}

/// The place's line in the program's source, also if something is inlined there.
fn line(program: &Program, event: &Value) -> Option<u64> {
    let place = &event["place"];
    let outer = place["inlined_in"].as_array().into_iter().flatten();
    let frames = std::iter::once(place).chain(outer);
    let source = program.source.file_name()?.to_str()?;
    let mut own = frames.filter(|f| string(f, "file").rsplit('/').next() == Some(source));
    own.next()?["line"].as_u64()
}

fn concerns_source(program: &Program, binary: &Path, event: &Value) -> bool {
    if string(event, "family") == "function" {
        // Not what the compiler's or a library's code calls behind the program's back.
        return line(program, event).is_some() && is_word_of(program, string(event, "function"));
    }
    line(program, event).is_some()
        || matches!(string(event, "family"), "thread" | "output" | "process")
        || string(event, "event").starts_with("team-")
        || string(event, "event").starts_with("task-")
        || is_variable_of(program, binary, &event["object"])
}

/// Is the object a variable that the program's source names?
fn is_variable_of(program: &Program, binary: &Path, object: &Value) -> bool {
    let name = variable_name(string(object, "name"));
    // `name.0` is a variable inside some function, and another one than `name`.
    let root = name.split(['[', '+']).next().unwrap_or("");
    let root = match root.split_once('.') {
        Some((_, rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => root,
        Some((root, _)) => root,
        None => root,
    };
    string(object, "kind") == "variable"
        && Path::new(string(object, "module")) == binary
        && is_word_of(program, root)
}

fn is_word_of(program: &Program, name: &str) -> bool {
    let code = program.text.lines().map(|line| line.split("//").next().unwrap_or(""));
    let mut words = code.flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.any(|word| word == name)
}

fn concerns_module(event: &Value, binary: &Path) -> bool {
    let of_binary = |value: &Value| Path::new(string(value, "module")) == binary;
    of_binary(&event["place"])
        || of_binary(&event["object"])
        || matches!(string(event, "family"), "thread" | "output" | "process")
}

/// What addresses, handles and processes are called.
#[derive(Debug, Default)]
struct Names {
    processes: Vec<u64>,
    threads: HashMap<(u64, String), u64>,
    objects: HashMap<String, String>,
    teams: Vec<String>,
}

impl Names {
    fn learn(&mut self, event: &Value) {
        let process = event["process"].as_u64().unwrap_or(0);
        if !self.processes.contains(&process) {
            self.processes.push(process);
        }
        if let Some(name) = object_name(&event["object"]) {
            self.objects.insert(string(event, "address").to_owned(), name);
        }
        if string(event, "event") == "team-fork" {
            let team = string(event, "address").to_owned();
            if !self.teams.contains(&team) {
                self.teams.push(team);
            }
        }
    }

    /// Handles are used again when their thread is gone, so this happens in the order of events.
    fn learn_handle(&mut self, event: &Value) {
        if let (Some(thread), Some(handle)) = (event["created"].as_u64(), event["handle"].as_str())
        {
            let process = event["process"].as_u64().unwrap_or(0);
            self.threads.insert((process, handle.to_owned()), thread);
        }
    }

    fn who(&self, event: &Value) -> Who {
        let process = event["process"].as_u64().unwrap_or(0);
        let index = self.processes.iter().position(|p| *p == process).unwrap_or(0);
        Who { process: index as u64 + 1, thread: event["thread"].as_u64().unwrap_or(0) }
    }

    fn text(&self, event: &Value) -> String {
        let address = string(event, "address");
        let object = match self.teams.iter().position(|team| team == address) {
            Some(team) => format!("team{}", team + 1),
            None => object_name(&event["object"]).unwrap_or_else(|| "?".into()),
        };
        let lock = string(event, "lock");
        let lock = self.objects.get(lock).cloned().unwrap_or_else(|| "?".into());
        self.render(event, &object, &lock)
    }

    /// Addresses instead of names, to be numbered.
    fn nameless(&self, event: &Value) -> String {
        self.render(event, string(event, "address"), string(event, "lock"))
    }

    fn render(&self, event: &Value, object: &str, lock: &str) -> String {
        let name = string(event, "event");
        let number = |key: &str| event[key].as_u64().map_or("?".into(), |n| n.to_string());
        let thread = |key: &str| event[key].as_u64().map_or("?".into(), |n| format!("T{n}"));
        let by_handle = || {
            let process = event["process"].as_u64().unwrap_or(0);
            let handle = string(event, "handle").to_owned();
            self.threads.get(&(process, handle)).map_or("?".into(), |t| format!("T{t}"))
        };
        let flag = |key: &str, yes, no| if event[key] == true { yes } else { no };
        let rest = match name {
            "read" | "write" | "atomic-update" | "atomic-read" | "atomic-write" | "read-range"
            | "write-range" | "spin-read" | "memory-renewed" | "benign-race" => {
                format!("{} {object}", number("size"))
            }
            "allocate" => number("size"),
            "free" if event["size"].is_null() => object.to_owned(),
            "free" => format!("{} {object}", number("size")),
            "transaction-access" => {
                format!("{} {} {object}", string(event, "access"), number("size"))
            }
            "lock-requested" | "lock-acquired" | "lock-failed" | "lock-released" => {
                let mode = match event["mode"].as_str() {
                    Some("exclusive") => "",
                    Some(mode) => mode,
                    None => "either",
                };
                format!("{object} {mode}")
            }
            "condition-signal" => format!("{object} {}", flag("all", "all", "")),
            "condition-wait-begin" => format!("{object} {lock}"),
            "condition-wait-end" => {
                format!("{object} {lock} {}", flag("woken", "woken", "unwoken"))
            }
            "barrier-created" => format!("{object} {}", number("count")),
            "semaphore-created" => format!("{object} {}", number("value")),
            "once-end" => format!("{object} {}", flag("done", "done", "undone")),
            "lock-created"
            | "lock-destroyed"
            | "barrier-enter"
            | "barrier-leave"
            | "semaphore-post"
            | "semaphore-acquired"
            | "once-begin"
            | "once-passed"
            | "lock-hands-over"
            | "condition-loop-left"
            | "team-fork"
            | "team-body-begin"
            | "team-body-end"
            | "team-join"
            | "task-create"
            | "task-begin"
            | "task-end" => object.to_owned(),
            "release" | "acquire" if event["queue"] == true => format!("queue {object}"),
            "release" | "acquire" if event["signal"].is_u64() => {
                format!("signal {}", number("signal"))
            }
            "release" | "acquire" if event["process_end"] == true => "process end".into(),
            "release" | "acquire" if event["channel"].is_u64() => {
                format!("channel {}", number("channel"))
            }
            "release" | "acquire" => object.to_owned(),
            "ignore-begin" | "ignore-end" => string(event, "what").to_owned(),
            "detection-switched" => flag("on", "on", "off").to_owned(),
            "futex-wait" | "futex-wait-end" | "futex-wake" => object.to_owned(),
            "thread-create" => thread("child"),
            "thread-start" if event["creator"].is_null() => String::new(),
            "thread-start" => format!("by {}", thread("creator")),
            "thread-created" => thread("created"),
            "thread-joined" => thread("joined"),
            "thread-detached" | "thread-cancelled" => by_handle(),
            "thread-name" => string(event, "name").to_owned(),
            "function-enter" => {
                let arguments = event["arguments"].as_array().into_iter().flatten();
                let arguments: Vec<_> = arguments.map(|a| self.value(a)).collect();
                format!("{} {}", string(event, "function"), arguments.join(" "))
            }
            "function-exit" => {
                format!("{} = {}", string(event, "function"), self.value(&event["result"]))
            }
            "output" => format!("{} to {}", number("size"), event["descriptor"]),
            "signal-delivered" => number("signal"),
            "process-exec" => string(event, "path").to_owned(),
            "process-end" => event["status"].to_string(),
            "thread-exit" | "task-waited" | "transaction-start" | "transaction-commit"
            | "transaction-abort" | "process-forked" => String::new(),
            other => panic!("an event this test does not know: {other}"),
        };
        format!("{name} {rest}").trim_end().to_owned()
    }

    /// A number as a function event shows it: an object's name, or decimal.
    fn value(&self, value: &Value) -> String {
        let Some(text) = value.as_str() else { return "nothing".into() };
        let number = text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        match (self.objects.get(text), number) {
            (Some(name), _) => name.clone(),
            (None, Some(number)) => number.to_string(),
            (None, None) => text.to_owned(),
        }
    }
}

/// Without the path of a Rust static, nor the private fields of the lock it is: `MUTEX` for
/// `rust_sync::MUTEX.inner.futex`.
fn variable_name(name: &str) -> String {
    match name.split_once("::") {
        Some((krate, rest)) if krate.starts_with("rust_") => {
            rest.split('.').next().unwrap_or(rest).to_owned()
        }
        _ => name.replace(' ', "_"),
    }
}

/// `table[3]`, `block(64)`, `block(64)+8`, `stack`.
fn object_name(object: &Value) -> Option<String> {
    match string(object, "kind") {
        "variable" => Some(variable_name(string(object, "name"))),
        "unknown" => Some("stack".into()),
        "block" if object["size"].as_u64() >= Some(STACK) => Some("stack".into()),
        "block" => {
            let offset = string(object, "offset").trim_start_matches("0x").to_owned();
            let offset = u64::from_str_radix(&offset, 16).unwrap_or(0);
            let suffix = if offset == 0 { String::new() } else { format!("+{offset}") };
            Some(format!("block({}){suffix}", object["size"]))
        }
        _ => None,
    }
}

/// Objects without names, numbered in the order of appearance.
#[derive(Debug, Default)]
struct Objects {
    known: Vec<String>,
}

impl Objects {
    /// The text with its objects (what is neither a number nor a word of ours) numbered.
    fn numbered(&mut self, text: &str) -> String {
        const WORDS: [&str; 11] = [
            "shared", "either", "all", "woken", "unwoken", "done", "undone", "by", "to", "read",
            "write",
        ];
        let mut words = text.split_whitespace();
        let mut numbered = words.next().unwrap_or("").to_owned();
        // A thread's name is no object.
        let is_name = numbered == "thread-name";
        for word in words {
            let digits = word.strip_prefix('T').unwrap_or(word);
            let is_number = digits.bytes().all(|b| b.is_ascii_digit());
            numbered.push(' ');
            if is_name || is_number || WORDS.contains(&word) {
                numbered += word;
                continue;
            }
            let known = self.known.iter().position(|k| k == word);
            let number = known.unwrap_or_else(|| {
                self.known.push(word.to_owned());
                self.known.len() - 1
            });
            numbered += &format!("#{number}");
        }
        numbered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_numbered_alike_by_name_and_by_address() {
        let numbered = |texts: &[&str]| -> Vec<String> {
            let mut objects = Objects::default();
            texts.iter().map(|text| objects.numbered(text)).collect()
        };
        let names = ["lock-acquired m", "condition-wait-end c m woken", "thread-created T2"];
        let addresses = ["lock-acquired 0x10", "condition-wait-end 0x20 0x10 woken"];
        assert_eq!(numbered(&names)[..2], numbered(&addresses));
        assert_eq!(numbered(&names)[2], "thread-created T2");
    }
}

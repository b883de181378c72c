//! SARIF 2.1.0 (OASIS), in the shape that GitHub's code scanning accepts: rules with help, a
//! location in the repository, both accesses as related locations, both stacks as a code flow, and
//! a fingerprint that survives rebuilding.

use super::{FilePath, Repository, Weight};
use super::{column, file, looked_at, main_frame, said, sentence, weight};
use crate::explain::{self, Topic};
use crate::findings::entry::Entry;
use crate::findings::fingerprint::fingerprint_of_failure;
use crate::findings::party::Party;
use crate::findings::runtime::{is_runtime, own_frame};
use crate::findings::schema::{Failure, Finding, Frame, Report};
use crate::findings::text::words;
use serde_json::{Value, json};
use std::path::Path;

/// Where relative paths begin.
const ROOT: &str = "SRCROOT";
/// The schema, by its published address.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Calls of one stack: code-scanning pages cut longer flows anyway.
const CALLS: usize = 40;

/// The log.
pub fn log(report: &Report, repository: Repository<'_>) -> Value {
    let entries = report.entries();
    let mut kinds: Vec<String> = entries.iter().map(|entry| kind(*entry)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let writer = Writer { report, repository, kinds: &kinds };
    let rules: Vec<Value> = kinds.iter().map(|kind| rule(kind)).collect();
    let results: Vec<Value> = entries.iter().map(|entry| writer.result(*entry)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Raddle",
                "version": report.tool.version,
                "semanticVersion": report.tool.version,
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": report.outcome.failure.is_none(),
                "commandLine": report.target.argv.join(" "),
                "toolExecutionNotifications": report.summary.warnings.iter().map(|warning| json!({
                    "level": "warning", "message": { "text": warning },
                })).collect::<Vec<_>>(),
            }],
            "originalUriBaseIds": { ROOT: { "uri": directory_uri(repository.root) } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// The rule of an entry, by name.
fn kind(entry: Entry<'_>) -> String {
    match entry {
        Entry::Finding(finding) => explain::kind_name(finding.kind),
        Entry::Failure(failed) => failed.kind().to_owned(),
    }
}

fn rule(name: &str) -> Value {
    let unknown = Topic { name: "", short: "A concurrency bug", long: "", fix: "" };
    let topic = explain::topic(name).copied().unwrap_or(unknown);
    let words: Vec<String> = name.split('-').map(capital).collect();
    json!({
        "id": name,
        "name": words.concat(),
        "shortDescription": { "text": topic.short },
        "fullDescription": { "text": format!("{}.", topic.short) },
        "help": {
            "text": format!("{}\n\nHow to fix it:\n{}", topic.long, topic.fix),
            "markdown": format!("{}\n\n### How to fix it\n\n{}", topic.long, topic.fix),
        },
        "defaultConfiguration": { "level": "error" },
        "properties": {
            "tags": ["concurrency", "correctness", "reliability"],
            "precision": "high",
            "problem.severity": "error",
        },
    })
}

struct Writer<'a> {
    report: &'a Report,
    repository: Repository<'a>,
    kinds: &'a [String],
}

impl Writer<'_> {
    fn result(&self, entry: Entry<'_>) -> Value {
        let kind = kind(entry);
        let mut result = match entry {
            Entry::Finding(finding) => self.finding(finding),
            Entry::Failure(failed) => self.failure(failed),
        };
        result["ruleIndex"] = json!(self.kinds.iter().position(|known| *known == kind));
        result["ruleId"] = json!(kind);
        result
    }

    /// Nobody knows which line is to blame; where threads stood is a beginning.
    fn failure(&self, failed: &Failure) -> Value {
        let entry = Entry::Failure(failed);
        let base = Path::new(&self.report.target.cwd);
        let mut message = plain(&said(entry, self.report));
        let mut related = Vec::new();
        for frame in failed.stacks.iter().filter_map(|stack| stack.get(own_frame(stack)?)) {
            let id = related.len() + 1;
            let place = words::place(frame, base);
            let Some(mut location) = self.location(frame, Some(place.clone())) else { continue };
            location["id"] = json!(id);
            message += if id == 1 { "; stood at " } else { ", " };
            message += &link(&place, id);
            related.push(location);
        }
        let frame = looked_at(entry, self.report);
        let location = frame.and_then(|frame| self.location(&frame, None));
        let mut result = json!({
            "level": "error",
            "message": { "text": message },
            "locations": location.into_iter().collect::<Vec<_>>(),
            "relatedLocations": related,
            "partialFingerprints": { "raddle/v1": fingerprint_of_failure(failed, self.report) },
            "occurrenceCount": failed.count.clamp(1, i64::MAX as u64),
            "properties": { "id": failed.id, "policy": failed.policy, "seed": failed.seed },
        });
        let stacks = failed.stacks.iter().map(|stack| {
            let frames = stack.iter().take(CALLS);
            let frames = frames.filter_map(|frame| self.location(frame, None));
            json!({ "frames": frames.map(|at| json!({ "location": at })).collect::<Vec<_>>() })
        });
        if !failed.stacks.is_empty() {
            result["stacks"] = stacks.collect();
        }
        result
    }

    fn finding(&self, finding: &Finding) -> Value {
        let level = match weight(finding) {
            Weight::Error => "error",
            Weight::Warning => "warning",
            Weight::Note => "note",
        };
        let locations: Vec<Value> =
            main_frame(finding).and_then(|f| self.location(f, None)).into_iter().collect();
        let related = finding.parties().enumerate();
        let related: Vec<Value> =
            related.filter_map(|(at, party)| self.related(at, party)).collect();
        // Pages show a related location only if the message leads to it.
        let is_related = |id: &usize| related.iter().any(|location| location["id"] == json!(id));
        let linked = |at: Option<usize>, text: String| match at.map(|at| at + 1).filter(is_related)
        {
            Some(id) => link(&text, id),
            None => plain(&text),
        };
        let flows: Vec<Value> = finding.parties().map(|party| self.thread_flow(party)).collect();
        let base = Path::new(&self.report.target.cwd);
        json!({
            "level": level,
            "message": { "text": sentence(finding, self.report, &linked) },
            "locations": locations,
            "relatedLocations": related,
            "codeFlows": [{
                "message": { "text": words::subject(finding, base) },
                "threadFlows": flows,
            }],
            "partialFingerprints": { "raddle/v1": finding.fingerprint },
            "occurrenceCount": finding.count.clamp(1, i64::MAX as u64),
            "properties": {
                "id": finding.id,
                "certainty": words::standing(finding),
                "rules": finding.rules,
            },
        })
    }

    fn related(&self, at: usize, party: Party<'_>) -> Option<Value> {
        let mut location = self.location(party.frame()?, Some(self.said(party)))?;
        // As reports number them.
        location["id"] = json!(at + 1);
        Some(location)
    }

    /// The stack of an access, outermost first, as a reader follows it to the access.
    fn thread_flow(&self, party: Party<'_>) -> Value {
        let thread = words::thread(self.report, party.thread, party.process);
        let own = party.own_frame().unwrap_or(0);
        let calls = party.stack.iter().enumerate().skip(own).take(CALLS);
        let mut locations: Vec<Value> = calls
            .filter(|(at, frame)| *at == own || !is_runtime(frame))
            .filter_map(|(at, frame)| {
                let text = match at == own {
                    true => self.said(party),
                    false => "calls".to_owned(),
                };
                let importance = if at == own { "essential" } else { "important" };
                let location = self.location(frame, Some(text))?;
                Some(json!({ "location": location, "importance": importance }))
            })
            .collect();
        locations.reverse();
        if locations.is_empty() {
            let text = format!("{thread}: {}", self.said(party));
            locations.push(json!({ "location": { "message": { "text": text } } }));
        }
        json!({ "id": thread, "locations": locations })
    }

    fn said(&self, party: Party<'_>) -> String {
        words::said(self.report, party, Path::new(&self.report.target.cwd))
    }

    fn location(&self, frame: &Frame, message: Option<String>) -> Option<Value> {
        let artifact = match file(frame, self.report, self.repository)? {
            FilePath::InRepository(path) => json!({ "uri": path_uri(&path), "uriBaseId": ROOT }),
            FilePath::Absolute(path) => json!({ "uri": format!("file://{}", path_uri(&path)) }),
            FilePath::Somewhere(path) => json!({ "uri": path_uri(&path) }),
        };
        let mut location = json!({
            "physicalLocation": { "artifactLocation": artifact, "region": region(frame) },
        });
        if let Some(function) = &frame.function {
            location["logicalLocations"] =
                json!([{ "fullyQualifiedName": function, "kind": "function" }]);
        }
        if let Some(text) = message {
            location["message"] = json!({ "text": text });
        }
        Some(location)
    }
}

/// Where in its file a frame is. Code scanning takes no location without a line: the first stands for the
/// file.
fn region(frame: &Frame) -> Value {
    // Line 0 is the compiler's word for none.
    let Some(line) = frame.line.filter(|line| *line > 0 && frame.file.is_some()) else {
        return json!({ "startLine": 1 });
    };
    let mut region = json!({ "startLine": line });
    if let Some(column) = column(frame) {
        region["startColumn"] = json!(column);
    }
    if let Some(text) = &frame.text {
        region["snippet"] = json!({ "text": text });
    }
    region
}

/// A place that leads to the related location of this id (section 3.11.6 of the standard).
fn link(place: &str, id: usize) -> String {
    let escaped = place.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
    format!("[{escaped}]({id})")
}

/// Text in which nothing is a link: `operator[](int)` would be one.
fn plain(text: &str) -> String {
    text.replace("](", "] (")
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn directory_uri(root: &Path) -> String {
    let path = path_uri(&root.display().to_string());
    format!("file://{}/", path.trim_end_matches('/'))
}

/// A path as a URI has it: everything but letters, digits and a few signs as percent signs.
fn path_uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links() {
        assert_eq!(link("a.cc:7 in v::operator[]", 2), "[a.cc:7 in v::operator\\[\\]](2)");
        assert_eq!(plain("v::operator[](int)"), "v::operator[] (int)");
    }

    #[test]
    fn paths_become_uris() {
        assert_eq!(path_uri("src/größe a.c"), "src/gr%C3%B6%C3%9Fe%20a.c");
        assert_eq!(directory_uri(Path::new("/")), "file:///");
        assert_eq!(directory_uri(Path::new("/w/x")), "file:///w/x/");
    }
}

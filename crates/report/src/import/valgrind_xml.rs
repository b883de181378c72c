//! Helgrind's and DRD's XML (`--xml=yes --xml-file=FILE`, protocol 4).

use super::valgrind_text::{access, conflicting, is_valgrinds, variable};
use super::{Candidate, ImportError, Place};
use roxmltree::{Document, Node};

pub fn parse(text: &str) -> Result<Vec<Candidate>, ImportError> {
    let document = Document::parse(text).map_err(|error| ImportError::Xml(error.to_string()))?;
    let root = document.root_element();
    if !root.has_tag_name("valgrindoutput") {
        return Err(ImportError::Unknown);
    }
    let errors = root.children().filter(|child| child.has_tag_name("error"));
    Ok(errors.filter_map(candidate).collect())
}

/// A race, if the error is one. Stacks follow what they belong to.
fn candidate(error: Node) -> Option<Candidate> {
    let mut found: Option<Candidate> = None;
    let mut second = false;
    for child in error.children().filter(Node::is_element) {
        match child.tag_name().name() {
            "what" | "xwhat" => {
                let (tool, access) = access(&said(child))?;
                found = Some(Candidate { tool, access, other: None, variable: None });
            }
            "auxwhat" | "xauxwhat" => {
                let text = said(child);
                let candidate = found.as_mut()?;
                if let Some(rest) = text.trim().strip_prefix("This conflicts with a previous ") {
                    candidate.other = Some(conflicting(rest));
                    second = true;
                }
                if let Some(name) = variable(&text) {
                    candidate.variable = Some(name);
                }
            }
            "stack" => {
                let candidate = found.as_mut()?;
                match (second, &mut candidate.other) {
                    (true, Some(other)) if other.stack.is_empty() => other.stack = stack(child),
                    (false, _) if candidate.access.stack.is_empty() => {
                        candidate.access.stack = stack(child);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let mut candidate = found?;
    candidate.other.take_if(|other| other.stack.is_empty());
    (!candidate.access.stack.is_empty()).then_some(candidate)
}

/// The text of `<what>`, or of `<text>` in `<xwhat>`.
fn said(node: Node) -> String {
    let inner = node.children().find(|child| child.has_tag_name("text"));
    inner.unwrap_or(node).text().unwrap_or_default().to_owned()
}

fn stack(node: Node) -> Vec<Place> {
    let frames = node.children().filter(|child| child.has_tag_name("frame"));
    frames.map(frame).filter(|place| !is_valgrinds(place)).collect()
}

fn frame(node: Node) -> Place {
    let part = |name: &str| {
        let child = node.children().find(|child| child.has_tag_name(name));
        child.and_then(|child| child.text()).map(String::from)
    };
    let file = match (part("dir"), part("file")) {
        (Some(dir), Some(file)) => Some(format!("{dir}/{file}")),
        (_, file) => file,
    };
    Place {
        function: part("fn"),
        file,
        line: part("line").and_then(|line| line.parse().ok()),
        module: part("obj"),
        offset: None,
    }
}

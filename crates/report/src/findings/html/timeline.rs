//! The interleaving around a race or before a deadlock on the page: a lane for each thread, time going
//! down.

use super::escape::{escape, prose};
use crate::findings::interleaving::{Step, StepKind, Timeline};
use crate::findings::text::words;
use std::fmt::Write;
use std::path::Path;

/// Writes a timeline.
pub(super) fn write(out: &mut String, timeline: &Timeline, base: &Path) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<figure class=\"timeline\"><figcaption>{}</figcaption>\n<div class=\"lanes\"{}>",
        prose(&timeline.caption),
        columns(timeline.lanes.len()),
    );
    for (at, lane) in timeline.lanes.iter().enumerate() {
        let (column, lane) = (at + 1, escape(lane));
        let _ = writeln!(
            out,
            "<div class=\"lane-head\" style=\"grid-column:{column};grid-row:1\">{lane}</div>"
        );
    }
    for (row, step) in timeline.steps.iter().enumerate() {
        write_step(out, step, row + 2, base);
    }
    let _ = writeln!(out, "</div><p class=\"missing\">{}</p>", escape(&timeline.missing));
    if let Some(then) = &timeline.then {
        let _ = writeln!(out, "<p class=\"then\">then: {}</p>", escape(then));
    }
    let _ = writeln!(out, "</figure>");
}

/// A column for each lane, where there are not the usual two.
fn columns(lanes: usize) -> String {
    match lanes {
        2 => String::new(),
        other => format!(" style=\"grid-template-columns:repeat({other},minmax(0,1fr))\""),
    }
}

fn write_step(out: &mut String, step: &Step, row: usize, base: &Path) {
    let held = if step.holds.is_empty() { "" } else { " holding" };
    let _ = write!(
        out,
        "<div class=\"step {}{held}\" style=\"grid-column:{};grid-row:{row}\"><b>{}</b>",
        class(step.kind),
        step.lane + 1,
        escape(&step.what),
    );
    if let Some(values) = step.values.as_ref().and_then(|values| values.words()) {
        let _ = write!(out, " <span class=\"value\">{}</span>", escape(&values));
    }
    for lock in &step.holds {
        let _ = write!(out, " <span class=\"held\">{}</span>", escape(lock));
    }
    if let Some(at) = &step.at {
        let _ = write!(out, "<small>{}</small>", escape(&words::place(at, base)));
        if let Some(text) = &at.text {
            let _ = write!(out, "<code>{}</code>", escape(text.trim()));
        }
    }
    let _ = writeln!(out, "</div>");
}

fn class(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Start => "start",
        StepKind::Take => "take",
        StepKind::Release => "release",
        StepKind::Sync => "sync",
        StepKind::Access => "other",
        StepKind::Race => "access",
        StepKind::Wait => "wait",
        StepKind::End => "end",
    }
}

//! The interleaving around a race on a terminal: two columns, time going down, every step in the
//! column of its thread.

use super::Style;
use super::line::{Line, beside};
use super::words;
use crate::findings::interleaving::{Step, StepKind, Timeline};
use crate::paint::Tint;
use std::io::{self, Write};

/// Columns where nobody says how many there are.
const WIDTH: usize = 120;
/// Below this, two columns hold no line of source.
const NARROWEST: usize = 40;

/// Writes a timeline.
pub fn write_timeline(timeline: &Timeline, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for line in lines(timeline, style) {
        writeln!(out, "{}", line.painted(style.paint))?;
    }
    Ok(())
}

fn lines(timeline: &Timeline, style: &Style) -> Vec<Line> {
    let width = style.width.unwrap_or(WIDTH).max(NARROWEST);
    let columns = (width - 3) / 2;
    let mut lines = Line::new(0).hanging(2).tinted(Tint::Heading, &timeline.caption).fitted(width);
    let heads: Vec<Vec<Line>> =
        timeline.lanes.iter().map(|lane| vec![Line::new(0).tinted(Tint::Thread, lane)]).collect();
    if let [left, right] = heads.as_slice() {
        lines.extend(beside(left, right, columns));
    }
    for step in &timeline.steps {
        let block = step_lines(step, style);
        lines.extend(match step.lane {
            0 => beside(&block, &[], columns),
            _ => beside(&[], &block, columns),
        });
    }
    lines.extend(Line::new(0).hanging(2).tinted(Tint::Finding, &timeline.missing).fitted(width));
    if let Some(then) = &timeline.then {
        lines.extend(Line::new(0).hanging(2).text("then: ").text(then).fitted(width));
    }
    lines
}

fn step_lines(step: &Step, style: &Style) -> Vec<Line> {
    let head = match step.kind {
        StepKind::Race => Line::new(0).tinted(Tint::Finding, "▶ ").tinted(Tint::Write, &step.what),
        StepKind::Take | StepKind::Release | StepKind::Sync => {
            Line::new(2).tinted(Tint::Sync, &step.what)
        }
        StepKind::Start | StepKind::Access | StepKind::End => Line::new(2).text(&step.what),
    };
    let values = step.values.as_ref().and_then(|values| values.words());
    let head = match values {
        Some(values) => head.text(", ").tinted(Tint::Heading, &values),
        None => head,
    };
    let head = match step.holds.as_slice() {
        [] => head,
        held => head.text(&format!(" [holds {}]", held.join(", "))),
    };
    let mut lines = vec![head.hanging(4)];
    if let Some(at) = &step.at {
        lines.push(Line::new(4).hanging(6).tinted(Tint::Place, &words::place(at, &style.base)));
        if let Some(text) = at.text.as_ref().filter(|text| !text.trim().is_empty()) {
            lines.push(Line::source(4).text(text.trim()));
        }
    }
    lines
}

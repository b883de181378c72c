//! The interleaving around a race or before a deadlock on a terminal: a column for each thread, time
//! going down, every step in the column of its thread.

use super::Style;
use super::line::{Line, abreast};
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
    let count = timeline.lanes.len().max(1);
    let columns = (width.saturating_sub(3 * (count - 1)) / count).max(1);
    let mut lines = Line::new(0).hanging(2).tinted(Tint::Heading, &timeline.caption).fitted(width);
    let heads: Vec<Vec<Line>> =
        timeline.lanes.iter().map(|lane| vec![Line::new(0).tinted(Tint::Thread, lane)]).collect();
    let heads: Vec<&[Line]> = heads.iter().map(Vec::as_slice).collect();
    lines.extend(abreast(&heads, columns));
    for step in &timeline.steps {
        let block = step_lines(step, style);
        let mut row: Vec<&[Line]> = vec![&[]; count];
        row[step.lane.min(count - 1)] = &block;
        lines.extend(abreast(&row, columns));
    }
    lines.extend(Line::new(0).hanging(2).tinted(Tint::Finding, &timeline.missing).fitted(width));
    if let Some(then) = &timeline.then {
        lines.extend(Line::new(0).hanging(2).text("then: ").text(then).fitted(width));
    }
    lines
}

fn step_lines(step: &Step, style: &Style) -> Vec<Line> {
    let head = match step.kind {
        StepKind::Race | StepKind::Wait => {
            Line::new(0).tinted(Tint::Finding, "▶ ").tinted(Tint::Write, &step.what)
        }
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
            // Where nobody says how wide the screen is, nothing is cut.
            let line = if style.width.is_some() { Line::source(4) } else { Line::new(4) };
            lines.push(line.text(text.trim()));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::interleaving::{Interleaving, Lane, Values};
    use crate::findings::{Confirmation, Effect, Order, typed};
    use raddle_model::ThreadId;

    fn shown(width: Option<usize>) -> String {
        let mut finding = typed::bank().findings.remove(0);
        let frame = |at: usize| finding.accesses[at].stack[0].clone();
        let values = |writes, before: &str, after: &str| {
            let (before, after) = (Some(before.into()), Some(after.into()));
            Some(Values { size: 4, writes, before, after })
        };
        let (holds, lane, at) = (vec!["m".to_owned()], 0, Some(frame(0)));
        let take = Step {
            kind: StepKind::Take,
            what: "takes m".into(),
            holds: holds.clone(),
            ..Step::default()
        };
        let read = Step {
            lane,
            kind: StepKind::Race,
            what: "read 4 bytes, counter".into(),
            at,
            holds,
            values: values(false, "0x7", "0x7"),
        };
        let write = Step {
            lane: 1,
            kind: StepKind::Race,
            what: "write 4 bytes, counter".into(),
            at: Some(frame(1)),
            values: values(true, "0x0", "0x7"),
            ..Step::default()
        };
        let lane = |thread, name: Option<&str>| Lane {
            thread: ThreadId(thread),
            name: name.map(String::from),
        };
        let lanes = vec![lane(2, None), lane(3, Some("worker"))];
        let interleaving = Interleaving { lanes, steps: vec![take, write, read] };
        let effect =
            Effect { order: 2, effect: "exit code 3".into(), count: 12, ..Effect::default() };
        finding.confirmation =
            Some(Confirmation { effects: vec![effect], ..Confirmation::default() });
        let order = Order { order: 2, seed: "7".into(), ..Order::default() };
        let timeline = Timeline::recorded(&finding, &order, &interleaving).unwrap();
        let mut out = Vec::new();
        let style = Style { width, ..Style::plain("/w") };
        write_timeline(&timeline, &style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn two_columns() {
        insta::assert_snapshot!(shown(Some(80)), @r#"
        order 2: the write of T3 first (replayed, seed 7); time goes down
        T2                                     │ T3 'worker'
          takes m [holds m]                    │
                                               │ ▶ write 4 bytes, counter, 0 → 7
                                               │     bank.c:16 in worker
                                               │     counter += 1;
        ▶ read 4 bytes, counter, sees 7 [holds │
            m]                                 │
            bank.c:20 in reader                │
            printf("%d\n", counter);           │
        T2 holds m, T3 'worker' holds no lock: nothing makes one wait for the other
        then: exit code 3 (12 times)
        "#);
    }

    #[test]
    fn a_deadlock_has_a_column_for_each_thread() {
        let report = typed::deadlocked();
        let timeline = Timeline::of(&report.findings[0], &report).remove(0);
        let mut out = Vec::new();
        let style = Style { width: Some(80), ..Style::plain("/w") };
        write_timeline(&timeline, &style, &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"
        how they come to wait for each other (replayed, seed 7); time goes down
        T1                       │ T2                       │ T3
                                 │                          │ ▶ asks for m [holds o]
        ▶ asks for n [holds m]   │                          │
                                 │ ▶ asks for o [holds n]   │
        each waits for what the next one holds, the last for what the first holds:
          nobody can go on
        then: deadlock (2 times)
        "#);
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        for width in [40, 61, 80, 120] {
            let widest = shown(Some(width)).lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}: {}", shown(Some(width)));
        }
        assert!(shown(None).lines().next().is_some_and(|line| line.starts_with("order 2: ")));
    }
}

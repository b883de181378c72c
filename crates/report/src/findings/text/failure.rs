//! One failing execution as lines: what happened and how often, who waited for whom, where, and what to type.

use super::Style;
use super::finding::Detail;
use super::line::Line;
use super::words::{clean, place};
use crate::findings::runtime::own_frame;
use crate::findings::schema::{Failure, Frame};
use crate::paint::Tint;

/// `killed by signal 11 in 7 of 49 executions (random, seed 12)`.
pub(in crate::findings) fn headline(failure: &Failure) -> String {
    let Failure { effect, count, executions, .. } = failure;
    clean(&format!("{effect} in {count} of {executions} executions ({})", found_with(failure)))
}

/// `random, seed 12`.
fn found_with(failure: &Failure) -> String {
    let Failure { policy, seed, .. } = failure;
    let seed = format!("seed {seed}");
    [policy, &seed]
        .map(String::as_str)
        .into_iter()
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Who waited for what in a deadlock, a line each; that it is one is said already.
pub(in crate::findings) fn waits(failure: &Failure) -> impl Iterator<Item = &str> {
    let text = failure.deadlock.as_deref().unwrap_or_default();
    let said = ["deadlock: ", "no progress: "];
    said.iter().find_map(|said| text.strip_prefix(said)).unwrap_or(text).lines()
}

/// What repeats it.
pub(in crate::findings) fn command(failure: &Failure) -> String {
    clean(&format!("raddle replay {}", failure.id))
}

/// The lines of a failing execution.
pub(super) fn lines(style: &Style, failure: &Failure, detail: Detail) -> Vec<Line> {
    let head = Line::new(0).hanging(4).tinted(Tint::Heading, &failure.id).text("  ");
    let mut lines = vec![head.tinted(Tint::Finding, &headline(failure)), Line::default()];
    let waits: Vec<&str> = waits(failure).collect();
    // The first says what it is; then, as a rule, each of the threads has a line and a stack.
    let each = waits.len() == failure.stacks.len() + 1;
    for (number, line) in waits.iter().enumerate() {
        lines.push(Line::new(2).hanging(6).text(line));
        let stack = number.checked_sub(1).filter(|_| each).and_then(|at| failure.stacks.get(at));
        lines.extend(stack.into_iter().flat_map(|stack| stack_lines(style, stack, detail)));
    }
    let others = failure.stacks.iter().filter(|_| !each);
    lines.extend(others.flat_map(|stack| stack_lines(style, stack, detail)));
    lines.push(Line::new(2).hanging(9).tinted(Tint::Heading, "again: ").text(&command(failure)));
    match style.width {
        Some(columns) => lines.iter().flat_map(|line| line.fitted(columns)).collect(),
        None => lines,
    }
}

/// A stack from the program's own code on: what the C library does to fail or to wait is the same everywhere.
fn stack_lines(style: &Style, stack: &[Frame], detail: Detail) -> Vec<Line> {
    let from = own_frame(stack).filter(|_| !style.everything).unwrap_or(0);
    let shown = if detail == Detail::Whole { usize::MAX } else { 1 + detail.calls() };
    let frames = stack.iter().skip(from).enumerate().take(shown);
    let line = |(at, frame): (usize, &Frame)| {
        let relation = if at == 0 { "at" } else { "called from" };
        Line::new(6).tinted(Tint::Place, &format!("{relation} {}", place(frame, &style.base)))
    };
    frames.map(line).collect()
}

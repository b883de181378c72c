//! The source around an access.

use crate::findings::schema::{Frame, Report};
use crate::findings::text::words;
use crate::names::tidy;
use std::path::Path;

/// Lines shown before and after the one of the access.
const AROUND: u32 = 5;

/// Source files.
pub trait Sources {
    /// A line of a file, from 1.
    fn line(&mut self, file: &Path, line: u32) -> Option<String>;
}

/// No source at all: what the report has must do.
impl Sources for () {
    fn line(&mut self, _: &Path, _: u32) -> Option<String> {
        None
    }
}

/// A line to show.
pub(super) struct Line {
    pub number: u32,
    pub here: bool,
    text: String,
    /// Bytes of the line that are the access.
    marked: std::ops::Range<usize>,
}

impl Line {
    /// Before, inside and behind what is marked.
    pub fn parts(&self) -> (&str, &str, &str) {
        let std::ops::Range { start, end } = self.marked;
        (&self.text[..start], &self.text[start..end], &self.text[end..])
    }
}

/// The lines around a frame. The line of the access itself is the report's, which was read when the
/// program ran: if the file has another there now, it has changed, and its other lines would lie.
pub(super) fn around(frame: &Frame, report: &Report, sources: &mut dyn Sources) -> Vec<Line> {
    let (Some(here), Some(file)) = (frame.line, &frame.file) else { return Vec::new() };
    let path = tidy(&Path::new(&report.target.cwd).join(file));
    let now = sources.line(&path, here);
    let text = match (&frame.text, &now) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => text.clone(),
        (None, None) => return Vec::new(),
    };
    let same = now.as_deref().map(str::trim_end) == Some(text.trim_end());
    let numbers = match same {
        true => here.saturating_sub(AROUND).max(1)..=here.saturating_add(AROUND),
        false => here..=here,
    };
    let mut lines: Vec<Line> = numbers
        .filter_map(|number| {
            if number == here {
                let marked = words::marked(&text, frame.column);
                return Some(Line { number, here: true, text: text.clone(), marked });
            }
            let text = sources.line(&path, number)?;
            Some(Line { number, here: false, text, marked: 0..0 })
        })
        .collect();
    unindent(&mut lines);
    lines
}

/// Takes away what all lines begin with: how deep the code stands says nothing about it, and takes room.
fn unindent(lines: &mut [Line]) {
    let filled = || lines.iter().map(|line| line.text.as_str()).filter(|t| !t.trim().is_empty());
    let Some(first) = filled().next() else { return };
    // Blanks of the same kind: a tab is not so many spaces.
    let shared = |text: &str| first.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    let margin = first.len() - first.trim_start_matches([' ', '\t']).len();
    let common = filled().map(shared).fold(margin, usize::min);
    for line in lines {
        // A blank line may be shorter than that.
        let cut = common.min(line.text.len() - line.text.trim_start_matches([' ', '\t']).len());
        line.text.drain(..cut);
        let marked = &mut line.marked;
        *marked = marked.start.saturating_sub(cut)..marked.end.saturating_sub(cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unindented(texts: &[&str]) -> Vec<String> {
        let line = |text: &&str| Line {
            number: 1,
            here: true,
            marked: words::marked(text, Some(9)),
            text: text.to_string(),
        };
        let mut lines: Vec<Line> = texts.iter().map(line).collect();
        unindent(&mut lines);
        let shown = |line: &Line| {
            let (before, marked, after) = line.parts();
            format!("{before}[{marked}]{after}")
        };
        lines.iter().map(shown).collect()
    }

    #[test]
    fn the_margin_that_all_lines_share_goes() {
        let shown = unindented(&["    if x {", "        y += 1;", "", "      ", "    }"]);
        assert_eq!(shown, ["if x[ ]{", "    [y] += 1;", "[]", "[]  ", "[]}"]);
        // Nothing in common, or not the same.
        assert_eq!(unindented(&["a", "        y"]), ["[]a", "        [y]"]);
        assert_eq!(unindented(&["\ta", "        y"]), ["[]\ta", "        [y]"]);
        assert_eq!(unindented(&["", "  "]), ["[]", "[]  "]);
    }
}

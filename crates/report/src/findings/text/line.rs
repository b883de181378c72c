//! Lines made of tinted pieces, whose width on the screen is known: what wrapping, cutting and
//! setting side by side need. Everything a line holds is cleaned of what a terminal would obey.

use super::words::clean;
use crate::paint::{Paint, Tint};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    pieces: Vec<(Option<Tint>, String)>,
    /// Blanks that a continuation begins with; a line without is cut instead of wrapped.
    hang: Option<usize>,
}

impl Line {
    /// A line that begins with blanks and wraps under its text.
    pub fn new(indent: usize) -> Self {
        Line { pieces: vec![(None, " ".repeat(indent))], hang: Some(indent + 2) }
    }

    /// A line of source: what does not fit is cut.
    pub fn source(indent: usize) -> Self {
        Line { hang: None, ..Line::new(indent) }
    }

    /// A continuation begins after this many blanks.
    pub fn hanging(mut self, hang: usize) -> Self {
        self.hang = Some(hang);
        self
    }

    /// What does not fit a row is cut.
    pub fn in_a_row(self) -> Self {
        Line { hang: None, ..self }
    }

    /// With more text.
    pub fn text(mut self, text: &str) -> Self {
        self.pieces.push((None, clean(text)));
        self
    }

    /// With more text that means something.
    pub fn tinted(mut self, tint: Tint, text: &str) -> Self {
        self.pieces.push((Some(tint), clean(text)));
        self
    }

    /// Columns it takes.
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    /// As it is written.
    pub fn painted(&self, paint: Paint) -> String {
        let piece = |(tint, text): &(Option<Tint>, String)| match tint {
            Some(tint) if !text.is_empty() => paint.text(*tint, text),
            _ => text.clone(),
        };
        self.pieces.iter().map(piece).collect::<String>().trim_end().to_owned()
    }

    /// The same in lines of at most so many columns.
    pub fn fitted(&self, columns: usize) -> Vec<Line> {
        if self.width() <= columns {
            return vec![self.clone()];
        }
        match self.hang {
            Some(hang) => self.wrapped(columns, hang.min(columns / 2)),
            None => vec![self.cut(columns)],
        }
    }

    fn cut(&self, columns: usize) -> Line {
        let mut left = columns.saturating_sub(1);
        let mut pieces = Vec::new();
        for (tint, text) in &self.pieces {
            let shown: String = text
                .chars()
                .take_while(|c| {
                    let width = c.width().unwrap_or(0);
                    let fits = width <= left;
                    left = if fits { left - width } else { 0 };
                    fits
                })
                .collect();
            let whole = shown.len() == text.len();
            pieces.push((*tint, shown));
            if !whole {
                break;
            }
        }
        pieces.push((None, "…".into()));
        Line { pieces, hang: None }
    }

    /// Wrapped at blanks; a word longer than a line is left whole, because a cut path is no path.
    fn wrapped(&self, columns: usize, hang: usize) -> Vec<Line> {
        let mut lines = vec![Line { pieces: Vec::new(), hang: self.hang }];
        let mut used = 0;
        for (tint, text) in &self.pieces {
            for word in text.split_inclusive(' ') {
                let wide = word.trim_end().width();
                let is_bare =
                    |line: &Line| line.pieces.iter().all(|(_, text)| text.trim().is_empty());
                let at_start = lines.last().is_some_and(is_bare);
                if used + wide > columns && !at_start && wide > 0 {
                    // The blank before the break would push what stands beside the line.
                    if let Some((_, last)) = lines.last_mut().and_then(|l| l.pieces.last_mut()) {
                        last.truncate(last.trim_end().len());
                    }
                    let blanks = (None, " ".repeat(hang));
                    lines.push(Line { pieces: vec![blanks], hang: self.hang });
                    used = hang;
                }
                used += word.width();
                if let Some(line) = lines.last_mut() {
                    line.pieces.push((*tint, word.to_owned()));
                }
            }
        }
        lines
    }

    /// What has another line beside it must not be wider than its column: of a word that is, the end is shown,
    /// which of a path is the file.
    fn squeezed(mut self, columns: usize) -> Line {
        let Some(over) = self.width().checked_sub(columns + 1) else { return self };
        let widest = self.pieces.iter_mut().max_by_key(|(_, text)| text.width());
        if let Some((_, text)) = widest {
            // The mark takes a column, too.
            let (mut dropped, most) = (0, over + 2);
            let kept: String = text
                .chars()
                .skip_while(|c| {
                    let drops = dropped < most;
                    dropped += c.width().unwrap_or(0);
                    drops
                })
                .collect();
            *text = format!("…{kept}");
        }
        self
    }
}

/// Two blocks of lines side by side, each so many columns wide, with a rule between them.
pub(super) fn beside(left: &[Line], right: &[Line], columns: usize) -> Vec<Line> {
    abreast(&[left, right], columns)
}

/// The same of any number of blocks.
pub(super) fn abreast(blocks: &[&[Line]], columns: usize) -> Vec<Line> {
    let fit = |block: &&[Line]| -> Vec<Line> {
        let fitted = block.iter().flat_map(|line| line.fitted(columns));
        fitted.map(|line| line.squeezed(columns)).collect()
    };
    let blocks: Vec<Vec<Line>> = blocks.iter().map(fit).collect();
    let nothing = Line::default();
    let row = |at: usize| {
        let mut pieces = Vec::new();
        for (number, block) in blocks.iter().enumerate() {
            let line = block.get(at).unwrap_or(&nothing);
            pieces.extend(line.pieces.iter().cloned());
            if number + 1 < blocks.len() {
                pieces.push((None, " ".repeat(columns.saturating_sub(line.width()))));
                pieces.push((Some(Tint::Place), " │ ".into()));
            }
        }
        Line { pieces, hang: None }
    };
    (0..blocks.iter().map(Vec::len).max().unwrap_or(0)).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.painted(Paint::Plain)).collect()
    }

    #[test]
    fn beside_another_a_long_word_shows_its_end() {
        let long =
            Line::new(4).hanging(6).text("/usr/include/c++/12/bits/gthr-default.h:749 in lock");
        let lines = plain(&beside(&[long], &[Line::new(0).text("x")], 24));
        assert_eq!(lines, ["    …/gthr-default.h:749 │ x", "      in lock            │"]);
    }

    #[test]
    fn sentences_wrap_and_source_is_cut() {
        let line = Line::new(2).text("one two three four five six");
        assert_eq!(plain(&line.fitted(14)), ["  one two", "    three four", "    five six"]);
        let line = Line::source(2).text("one two three four five six");
        assert_eq!(plain(&line.fitted(14)), ["  one two thr…"]);
        let long = Line::new(0).text("a /very/long/path/that/cannot/be/cut b");
        assert_eq!(plain(&long.fitted(12)), ["a", "  /very/long/path/that/cannot/be/cut", "  b"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(Line::new(0).text("漢字").width(), 4);
        assert_eq!(plain(&Line::source(0).text("漢字漢字").fitted(5)), ["漢字…"]);
    }

    #[test]
    fn blocks_stand_side_by_side() {
        let left = [Line::new(0).text("left"), Line::new(0).text("more")];
        let right = [Line::new(0).text("right side")];
        assert_eq!(plain(&beside(&left, &right, 6)), ["left   │ right", "more   │   side"]);
        let exact = [Line::new(0).text("filled up")];
        assert_eq!(plain(&beside(&exact, &[], 6)), ["filled │", "  up   │"]);
    }

    #[test]
    fn colour_does_not_count() {
        let line = Line::new(0).tinted(Tint::Finding, "red").text(" x");
        assert_eq!(line.width(), 5);
        assert_eq!(line.painted(Paint::Colour), "\x1b[1;31mred\x1b[0m x");
    }
}

//! A line of source with the access underlined. Where the line is wider than its column of the screen,
//! it loses its indentation first, and then what stands left of the access: the underline is always seen.

use super::words::{clean, marked};
use crate::findings::schema::Frame;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A tab is shown as this.
const TAB: &str = "    ";
/// Stands for what was cut.
const CUT: &str = "…";

/// What is written of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snippet {
    /// `   12 |`
    pub number: String,
    /// The line.
    pub text: String,
    /// `      |`
    pub margin: String,
    /// Blanks before the underline.
    pub indent: String,
    /// `^^^^`, where the column is known.
    pub underline: Option<String>,
}

/// The source of a frame, if it has any, moved so that its access is within so many columns.
pub(super) fn snippet(frame: &Frame, columns: Option<usize>) -> Option<Snippet> {
    let (text, line) = (frame.text.as_deref()?, frame.line?);
    let number = format!("{line:>5} |");
    let margin = format!("{:>1$}", "|", number.len());
    let mut source = Source::new(text, marked(text, frame.column));
    if let Some(columns) = columns {
        source.move_into(columns.saturating_sub(number.len() + 1));
    }
    let Source { before, access, behind } = source;
    let length = access.width();
    Some(Snippet {
        number,
        margin,
        indent: " ".repeat(before.width()),
        underline: (length > 0).then(|| "^".repeat(length)),
        text: before + &access + &behind,
    })
}

/// A line of source as it is shown, around its access.
struct Source {
    before: String,
    access: String,
    behind: String,
}

impl Source {
    fn new(text: &str, access: std::ops::Range<usize>) -> Self {
        let shown = |text: &str| clean(&text.replace('\t', TAB));
        Source {
            before: shown(&text[..access.start]),
            behind: shown(text[access.end..].trim_end()),
            access: shown(&text[access]),
        }
    }

    fn width(&self) -> usize {
        self.before.width() + self.access.width() + self.behind.width()
    }

    /// Takes away on the left what keeps the access from being within `room` columns. What is too
    /// much on the right is for the line's writer to cut.
    fn move_into(&mut self, room: usize) {
        if self.width() <= room {
            return;
        }
        let first = if self.access.is_empty() { &mut self.behind } else { &mut self.before };
        *first = first.trim_start().to_owned();
        // Something of what follows says more about an access than what is far before it.
        let follows = self.behind.width().min(room / 4).max(CUT.width());
        let left = room.saturating_sub(self.access.width() + follows);
        if self.width() > room && self.before.width() > left {
            let kept = last(&self.before, left.saturating_sub(CUT.width()));
            self.before = format!("{CUT}{kept}");
        }
    }
}

/// The last characters of a text, at most so many columns wide.
fn last(text: &str, columns: usize) -> &str {
    let mut left = columns;
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    let length: usize = text.chars().rev().take_while(fits).map(char::len_utf8).sum();
    &text[text.len() - length..]
}

/// Characters of the word or operator that the text begins with.
pub(super) fn token(text: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let operator = |c: char| "+-*/%=<>!&|^".contains(c);
    let run = |is: &dyn Fn(char) -> bool| text.chars().take_while(|c| is(*c)).count();
    run(&word).max(run(&operator)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::Hex;

    fn underlined(text: &str, column: u32) -> String {
        within(None, text, column)
    }

    fn within(columns: Option<usize>, text: &str, column: u32) -> String {
        let frame = Frame {
            module: None,
            offset: Hex(0),
            function: None,
            file: None,
            line: Some(7),
            column: (column > 0).then_some(column),
            inlined: false,
            text: Some(text.into()),
        };
        let Snippet { text, indent, underline, .. } = snippet(&frame, columns).unwrap();
        format!("{text}\n{indent}{}", underline.unwrap_or_default())
    }

    #[test]
    fn the_word_or_operator_at_the_column_is_underlined() {
        assert_eq!(underlined("\tcounter += 1;", 2), "    counter += 1;\n    ^^^^^^^");
        assert_eq!(underlined("    counter += 1;", 13), "    counter += 1;\n            ^^");
        assert_eq!(underlined("a[i] = 1;", 2), "a[i] = 1;\n ^");
        assert_eq!(underlined("größe = wert;", 11), "größe = wert;\n        ^^^^");
    }

    #[test]
    fn an_unknown_column_underlines_nothing() {
        for column in [0, 4, 99] {
            // 4 is in the middle of a character.
            assert_eq!(underlined("grö;", column), "grö;\n", "{column}");
        }
    }

    #[test]
    fn without_a_screen_lines_are_whole() {
        let long = format!("\t\tx = {};", "y".repeat(200));
        let shown = underlined(&long, 3);
        assert_eq!(shown, format!("        x = {};\n        ^", "y".repeat(200)));
    }

    #[test]
    fn a_long_line_is_moved_until_its_access_is_seen() {
        // Eight columns are the number's.
        let line = "        shelf.at(i % 3).sold += who; revenue[who] += 3;";
        assert_eq!(within(Some(63), line, 38), format!("{line}\n{:37}^^^^^^^", ""));
        assert_eq!(
            within(Some(60), line, 38),
            "shelf.at(i % 3).sold += who; revenue[who] += 3;\n                             ^^^^^^^"
        );
        assert_eq!(
            within(Some(40), line, 38),
            "…3).sold += who; revenue[who] += 3;\n                 ^^^^^^^"
        );
        assert_eq!(
            within(Some(40), line, 9),
            "shelf.at(i % 3).sold += who; revenue[who] += 3;\n^^^^^"
        );
        // Not marked: from its beginning.
        assert_eq!(within(Some(40), line, 0), format!("{}\n", line.trim()));
    }

    #[test]
    fn the_underline_is_seen_at_any_width() {
        let line = format!("\t漢字({}) + counter; // {}", "x".repeat(150), "y".repeat(90));
        let column = line.find("counter").unwrap() as u32 + 1;
        for columns in 20..200 {
            let shown = within(Some(columns), &line, column);
            let (text, underline) = shown.split_once('\n').unwrap();
            assert!(8 + underline.width() < columns, "{columns}: {shown}");
            let before = &text[..text.find("counter").unwrap()];
            assert_eq!(before.width(), underline.find('^').unwrap(), "{columns}: {shown}");
        }
    }
}

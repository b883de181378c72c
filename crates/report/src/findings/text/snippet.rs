//! A line of source with the access underlined.

use super::words::marked;
use crate::findings::schema::Frame;

/// A tab is shown as this.
const TAB: &str = "    ";
/// Longer lines are cut, if what is underlined stays.
const WIDEST: usize = 110;

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

/// The source of a frame, if it has any.
pub(super) fn snippet(frame: &Frame) -> Option<Snippet> {
    let (text, line) = (frame.text.as_deref()?, frame.line?);
    let number = format!("{line:>5} |");
    let margin = format!("{:>5} |", "");
    let marked = marked(text, frame.column);
    let indent = text[..marked.start].replace('\t', TAB).chars().count();
    let length = text[marked].chars().count();
    let mut text = text.replace('\t', TAB).trim_end().to_owned();
    if text.chars().count() > WIDEST && indent + length < WIDEST {
        text = text.chars().take(WIDEST).chain(['…']).collect();
    }
    Some(Snippet {
        number,
        text,
        margin,
        indent: " ".repeat(indent),
        underline: (length > 0).then(|| "^".repeat(length)),
    })
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
        let Snippet { text, indent, underline, .. } = snippet(&frame).unwrap();
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
    fn long_lines_are_cut() {
        let long = format!("x = {};", "y".repeat(200));
        let shown = underlined(&long, 1);
        assert!(shown.ends_with("y…\n^") && shown.chars().count() < 120, "{shown}");
        assert!(underlined(&format!("{long} z"), 207).contains("; z\n"));
    }
}

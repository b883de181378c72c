//! What was expected against what was seen, as a person wants to read it.

use super::program::{Expected, Program, Who};
use super::seen::{self, Seen};
use std::collections::BTreeSet;

/// Lines of a difference that anybody reads.
const LONGEST: usize = 200;

/// `None` when every thread did exactly what was expected.
pub fn compare(program: &Program, build: &str, seen: &[Seen]) -> Option<String> {
    let expected = seen::as_visible(program, build);
    let everybody: BTreeSet<Who> =
        expected.iter().map(|e| e.who).chain(seen.iter().map(|s| s.who)).collect();
    let mut text = String::new();
    for who in everybody {
        let expected: Vec<&Expected> = expected.iter().filter(|e| e.who == who).collect();
        let seen: Vec<&Seen> = seen.iter().filter(|s| s.who == who).collect();
        let same = expected.len() == seen.len()
            && expected.iter().zip(&seen).all(|(expected, seen)| is(expected, seen));
        if !same {
            text += &format!("  {who}: expected (-) and seen (+)\n");
            text += &difference(&expected, &seen);
        }
    }
    (!text.is_empty()).then_some(text)
}

/// Lines are compared where both are known: what happens inside a library is at none of ours.
fn is(expected: &Expected, seen: &Seen) -> bool {
    let elsewhere = expected.line.zip(seen.line).is_some_and(|(expected, seen)| expected != seen);
    expected.text == seen.text && !elsewhere
}

/// By the longest common subsequence.
fn difference(expected: &[&Expected], seen: &[&Seen]) -> String {
    let (rows, columns) = (expected.len(), seen.len());
    let mut longest = vec![vec![0usize; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            longest[row][column] = if is(expected[row], seen[column]) {
                longest[row + 1][column + 1] + 1
            } else {
                longest[row + 1][column].max(longest[row][column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut text = String::new();
    let mut shown = 0;
    while row < rows || column < columns {
        shown += 1;
        if shown > LONGEST {
            let left = (rows - row).max(columns - column);
            return text + &format!("    … and {left} more\n");
        }
        if row < rows && column < columns && is(expected[row], seen[column]) {
            text += &line(" ", seen[column].line, &seen[column].text);
            (row, column) = (row + 1, column + 1);
        } else if row < rows
            && (column == columns || longest[row + 1][column] >= longest[row][column + 1])
        {
            text += &line("-", expected[row].line, &expected[row].text);
            row += 1;
        } else {
            text += &line("+", seen[column].line, &seen[column].text);
            column += 1;
        }
    }
    text
}

fn line(sign: &str, number: Option<u64>, event: &str) -> String {
    let number = number.map_or_else(String::new, |n| n.to_string());
    format!("  {sign} {number:>5}  {event}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn program(lines: &str) -> Program {
        Program::parse(Path::new("x.c"), format!("// build: gcc\n// watch: memory\n{lines}"))
    }

    fn seen(thread: u64, line: u64, text: &str) -> Seen {
        let who = Who { process: 1, thread };
        Seen { who, line: Some(line), text: text.to_owned() }
    }

    #[test]
    fn the_same_is_no_difference() {
        let program = program("x; // expect: read 4 x\n// expect T2: write 4 x");
        let events = [seen(2, 9, "write 4 x"), seen(1, 3, "read 4 x")];
        assert_eq!(compare(&program, "gcc", &events), None);
    }

    #[test]
    fn a_missing_a_surplus_and_a_misplaced_event_are_shown() {
        let program = program("x; // expect: read 4 x\ny; // expect: read 4 y; write 4 y");
        let events = [seen(1, 3, "read 4 x"), seen(1, 5, "read 4 y"), seen(1, 4, "write 4 y")];
        let text = compare(&program, "gcc", &events).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "        3  read 4 x",
                "  -     4  read 4 y",
                "  +     5  read 4 y",
                "        4  write 4 y",
            ]
        );
        assert!(compare(&program, "gcc", &events[..2]).is_some());
        let surplus = [&events[..1], &[seen(3, 1, "thread-exit")]].concat();
        assert!(compare(&program, "gcc", &surplus).unwrap().contains("T3: expected"));
    }
}

//! Did two executions write the same? Durations do not count: time is virtual in a controlled execution
//! and goes with the schedule, so that `finished in 0.03s` differs where the program did nothing
//! else. What counts as a duration is narrow, so that a wrong result is not taken for one: a number with a
//! decimal point before a unit of time, or a whole number directly before a unit below the second. Nor does
//! the notice count by which Rust's test harness says that a test takes long: while a thread is held back, a
//! minute may pass.

/// Units from the longest, so that `ms` is not taken for a number of `m`.
const UNITS: [&str; 10] = ["seconds", "second", "secs", "sec", "ms", "µs", "μs", "us", "ns", "s"];
/// Those that a whole number may stand before.
const SMALL_UNITS: [&str; 5] = ["ms", "µs", "μs", "us", "ns"];

/// Are they the same but for durations?
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one == other || without_durations(one) == without_durations(other)
}

/// `test NAME has been running for over 60 seconds`.
fn is_notice(line: &[u8]) -> bool {
    line.starts_with(b"test ") && line.ends_with(b" has been running for over 60 seconds\n")
}

/// The text with every duration's number taken out.
fn without_durations(text: &[u8]) -> Vec<u8> {
    let lines = text.split_inclusive(|c| *c == b'\n').filter(|line| !is_notice(line));
    lines.flat_map(line_without_durations).collect()
}

fn line_without_durations(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let in_a_word = out.last().is_some_and(|c: &u8| c.is_ascii_alphanumeric() || *c == b'.');
        let number = if in_a_word { 0 } else { digits(rest) };
        let length = match number {
            0 => 1,
            _ => duration(rest).unwrap_or(number),
        };
        match number > 0 && length > number {
            true => out.push(b'#'),
            false if number > 0 => out.extend_from_slice(&rest[..length]),
            false => out.push(first),
        }
        rest = &rest[length..];
    }
    out
}

/// Bytes of the duration at the start, with its unit.
fn duration(text: &[u8]) -> Option<usize> {
    let whole = digits(text);
    let fraction = match text.get(whole) {
        Some(b'.') => digits(&text[whole + 1..]),
        _ => 0,
    };
    let number = if fraction > 0 { whole + 1 + fraction } else { whole };
    let (units, blank) = match fraction {
        0 => (&SMALL_UNITS[..], 0),
        _ => (&UNITS[..], usize::from(text.get(number) == Some(&b' '))),
    };
    let behind = &text[number + blank..];
    let unit = units.iter().find(|unit| {
        let end = behind.get(unit.len());
        behind.starts_with(unit.as_bytes()) && end.is_none_or(|c| !c.is_ascii_alphanumeric())
    })?;
    Some(number + blank + unit.len())
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|c| c.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_do_not_count() {
        let same = |one: &str, other: &str| same(one.as_bytes(), other.as_bytes());
        assert!(same("ok. 1 passed; finished in 0.00s\n", "ok. 1 passed; finished in 12.31s\n"));
        assert!(same("took 1.5 ms, 3us", "took 20.25 ms, 120us"));
        let slow =
            "\nrunning 1 test\ntest a::b has been running for over 60 seconds\ntest a::b ... ok\n";
        assert!(same(slow, "\nrunning 1 test\ntest a::b ... ok\n"));
        assert!(same("0.1 seconds", "0.25 seconds") && same("7µs.", "70µs."));
    }

    #[test]
    fn everything_else_does() {
        let same = |one: &str, other: &str| same(one.as_bytes(), other.as_bytes());
        assert!(!same("1 passed; finished in 0.00s", "2 passed; finished in 0.00s"));
        assert!(!same("balance 12", "balance 13") && !same("3 seats", "4 seats"));
        // A whole number of seconds may be a result; a version and a name are no numbers.
        assert!(!same("waited 1s", "waited 2s") && !same("v1.2.3s", "v1.2.4s"));
        assert!(!same("x1ms", "x2ms") && !same("12.5 stones", "13.5 stones"));
        assert!(!same("a", "") && same("", "") && !same("0.5", "0.6"));
    }
}

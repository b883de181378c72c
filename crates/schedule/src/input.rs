//! Input: what an execution was given from outside, stored as text, so that a replay can be given
//! the same.
//!
//! ```text
//! raddle-input/1
//! T1 woken 12 1034000 came
//! T1 answer 0 5 68656c6c6f
//! T2 same 17 4096 9f3c2a1100ab12cd
//! T1 signal 31 1052000 1100000000000000…
//! ```
//!
//! A line for everything that came, in the order it came, and to whom: a wait for somebody outside was over (at which
//! scheduling point, what the clock showed, why); a system call was answered (its number, its result, what it wrote to memory,
//! piece by piece, in hex); a call read a file, which is not kept but must be the same again (its number,
//! its result, a digest of what was read); a signal was taken (at which moment, what the clock showed, what is told with it, in hex).

use raddle_model::ThreadId;
use std::fmt;
use std::str::FromStr;

/// First line of the file.
const MAGIC: &str = "raddle-input/1";

/// Something that came from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// To whom.
    pub thread: ThreadId,
    /// What.
    pub what: Came,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// A wait was over.
    Woken {
        /// Scheduling points before.
        point: u64,
        /// Nanoseconds of virtual time.
        clock: u64,
        /// Why.
        why: Why,
    },
    /// A system call was answered.
    Answer {
        /// Its number.
        call: u32,
        /// As the kernel has it: an error is negative.
        result: i64,
        /// What it wrote to memory.
        pieces: Vec<Vec<u8>>,
    },
    /// A system call read what is not kept.
    Same {
        /// Its number.
        call: u32,
        /// As the kernel has it.
        result: i64,
        /// Of what it wrote to memory.
        digest: u64,
    },
    /// A signal was taken.
    Signal {
        /// Scheduling points before, and moments at which there was one thread that could have taken one.
        moment: u64,
        /// Nanoseconds of virtual time.
        clock: u64,
        /// Its `siginfo`, as far as it says anything.
        about: Vec<u8>,
    },
}

/// Why a wait was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// What was waited for came.
    Came,
    /// Its time was up.
    Late,
    /// A signal came.
    Interrupted,
}

impl Why {
    const ALL: [(Why, &'static str); 3] =
        [(Why::Came, "came"), (Why::Late, "late"), (Why::Interrupted, "interrupted")];
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.thread)?;
        match &self.what {
            Came::Woken { point, clock, why } => {
                let word = Why::ALL.iter().find(|(w, _)| w == why).map_or("", |(_, word)| word);
                write!(f, "woken {point} {clock} {word}")
            }
            Came::Answer { call, result, pieces } => {
                write!(f, "answer {call} {result}")?;
                for piece in pieces {
                    f.write_str(" ")?;
                    if piece.is_empty() {
                        f.write_str("-")?;
                    }
                    f.write_str(&hex(piece))?;
                }
                Ok(())
            }
            Came::Same { call, result, digest } => {
                write!(f, "same {call} {result} {digest:016x}")
            }
            Came::Signal { moment, clock, about } => {
                write!(f, "signal {moment} {clock} {}", hex(about))
            }
        }
    }
}

impl FromStr for Arrival {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Arrival, &'static str> {
        let expected = "T1 woken 12 1034000 came, T1 answer 0 5 68656c6c6f, T1 same 0 5 …, or T1 signal 12 1034000 …";
        parse(line).ok_or(expected)
    }
}

fn parse(line: &str) -> Option<Arrival> {
    let mut words = line.split(' ');
    let thread = ThreadId(words.next()?.strip_prefix('T')?.parse().ok()?);
    let what = match words.next()? {
        "woken" => {
            let (point, clock) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let word = words.next()?;
            let why = Why::ALL.iter().find(|(_, w)| *w == word)?.0;
            Came::Woken { point, clock, why }
        }
        "answer" => {
            let (call, result) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let pieces = words.by_ref().map(bytes).collect::<Option<Vec<_>>>()?;
            Came::Answer { call, result, pieces }
        }
        "same" => {
            let (call, result) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Came::Same { call, result, digest: u64::from_str_radix(words.next()?, 16).ok()? }
        }
        "signal" => {
            let (moment, clock) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Came::Signal { moment, clock, about: bytes(words.next()?)? }
        }
        _ => return None,
    };
    words.next().is_none().then_some(Arrival { thread, what })
}

/// Two digits a byte: what a table of them is faster at than formatting each, for there may be
/// megabytes.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    if word == "-" {
        return Some(Vec::new());
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let two = |pair: &[u8]| Some((digit(pair.first()?)? << 4 | digit(pair.get(1)?)?) as u8);
    word.as_bytes().chunks(2).map(two).collect()
}

/// Why input cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The first line is another.
    #[error(
        "not recorded input of Raddle's, or of another version: it does not begin with {MAGIC}"
    )]
    NotOurs,
    /// A line says nothing we know.
    #[error("line {line} is damaged: expected {expected}")]
    Damaged {
        /// From 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
}

/// The text of a file with these lines, each an [`Arrival`] as it is written.
pub fn input_text<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = format!("{MAGIC}\n");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Back from a file.
pub fn parse_input(text: &str) -> Result<Vec<Arrival>, InputError> {
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, line)| line) != Some(MAGIC) {
        return Err(InputError::NotOurs);
    }
    let arrival = |(index, line): (usize, &str)| {
        line.parse().map_err(|expected| InputError::Damaged { line: index + 1, expected })
    };
    lines.map(arrival).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_comes_back_from_its_file() {
        let thread = ThreadId(3);
        let arrivals = [
            Came::Woken { point: 12, clock: u64::MAX, why: Why::Interrupted },
            Came::Answer { call: 0, result: 5, pieces: vec![b"hello".to_vec(), Vec::new()] },
            Came::Answer { call: 7, result: -11, pieces: Vec::new() },
            Came::Same { call: 17, result: 4096, digest: 0x9f3c },
            Came::Signal { moment: 31, clock: 7, about: vec![17, 0, 0, 0] },
        ]
        .map(|what| Arrival { thread, what });
        let lines = arrivals.each_ref().map(ToString::to_string);
        let text = input_text(lines.iter().map(String::as_str));
        assert!(text.contains("\nT3 answer 0 5 68656c6c6f -\n"), "{text}");
        assert_eq!(parse_input(&text), Ok(arrivals.to_vec()));
    }

    #[test]
    fn damage_is_told_with_its_line() {
        assert_eq!(parse_input("raddle-schedule/1\n"), Err(InputError::NotOurs));
        for line in [
            "T1",
            "T1 woken 1 2 sometime",
            "T1 answer 0 5 6",
            "T1 answer 0 5 zz",
            "1 same 0 1 ff",
            "T1 signal 3 4",
        ] {
            let text = format!("{MAGIC}\nT1 same 0 1 ff\n{line}\n");
            let error = parse_input(&text).unwrap_err();
            assert!(matches!(error, InputError::Damaged { line: 3, .. }), "{line}: {error}");
        }
    }
}

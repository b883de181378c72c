//! What functions touch that print or scan by a format: `snprintf`, `sscanf` and their like.
//!
//! Their insides touch the thread's own locals some hundred times for each time that they touch what the program has given them. What that
//! is stands in the format and in the arguments behind it, which are found as the ABI places them. A format
//! with anything in it that is not known here is not understood, and then nothing is said.

use smallvec::SmallVec;

/// Stretches of memory: where each begins, and how many bytes it has. Most calls touch a few.
pub type Stretches = SmallVec<[(u64, u64); 4]>;

/// A function's variable arguments (System V ABI 3.5.7), taken one after the other.
pub struct Values<'a> {
    registers: Registers<'a>,
    /// So many integer and vector registers have been taken.
    integers: usize,
    doubles: usize,
    /// Where the next one is that is in no register.
    stack: u64,
    word: &'a dyn Fn(u64) -> Option<u64>,
}

enum Registers<'a> {
    /// As they were at the call.
    Call(&'a [u64; INTEGERS]),
    /// Saved here.
    Saved(u64),
}

/// Integer and vector registers that can hold arguments.
const INTEGERS: usize = 6;
const DOUBLES: usize = 8;

impl<'a> Values<'a> {
    /// Of a call with these in its integer registers: from the one with this number, counted from one, on. `stack`: where those are
    /// that had no room there. `word` reads memory.
    pub fn of_call(
        registers: &'a [u64; INTEGERS],
        first: u8,
        stack: u64,
        word: &'a dyn Fn(u64) -> Option<u64>,
    ) -> Values<'a> {
        let integers = usize::from(first).saturating_sub(1);
        Values { registers: Registers::Call(registers), integers, doubles: 0, stack, word }
    }

    /// Of a `va_list`.
    pub fn of_list(list: u64, word: &'a dyn Fn(u64) -> Option<u64>) -> Option<Values<'a>> {
        let offsets = word(list)?;
        let (stack, saved) = (word(list.wrapping_add(8))?, word(list.wrapping_add(16))?);
        let integers = (offsets & 0xffff_ffff) as usize / 8;
        let doubles = ((offsets >> 32) as usize).saturating_sub(INTEGERS * 8) / 16;
        Some(Values { registers: Registers::Saved(saved), integers, doubles, stack, word })
    }

    fn integer(&mut self) -> Option<u64> {
        if self.integers >= INTEGERS {
            return self.on_stack(8);
        }
        let value = match self.registers {
            Registers::Call(registers) => Some(registers[self.integers]),
            Registers::Saved(at) => (self.word)(at.wrapping_add(self.integers as u64 * 8)),
        };
        self.integers += 1;
        value
    }

    fn double(&mut self) -> Option<()> {
        if self.doubles >= DOUBLES {
            return self.on_stack(8).map(drop);
        }
        self.doubles += 1;
        Some(())
    }

    fn long_double(&mut self) -> Option<()> {
        self.stack = self.stack.next_multiple_of(16);
        self.on_stack(16).map(drop)
    }

    fn on_stack(&mut self, size: u64) -> Option<u64> {
        let value = (self.word)(self.stack);
        self.stack = self.stack.wrapping_add(size);
        value
    }
}

/// What stands between `%` and the letter of a conversion, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Char,
    Short,
    Int,
    Long,
    LongDouble,
}

impl Size {
    /// Bytes of an integer of this size.
    fn of_integer(self) -> u64 {
        match self {
            Size::Char => 1,
            Size::Short => 2,
            Size::Int => 4,
            Size::Long | Size::LongDouble => 8,
        }
    }

    /// Of a number that is scanned with a fraction.
    fn of_fraction(self) -> u64 {
        match self {
            Size::Long => 8,
            Size::LongDouble => 16,
            Size::Char | Size::Short | Size::Int => 4,
        }
    }
}

/// A format that is being read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.0.first() == Some(&byte);
        if is_next {
            self.next();
        }
        is_next
    }

    /// The next conversion begins here. False at the end.
    fn find_conversion(&mut self) -> bool {
        while let Some(byte) = self.next() {
            if byte == b'%' && !self.skip(b'%') {
                return true;
            }
        }
        false
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = None;
        while let Some(digit @ b'0'..=b'9') = self.0.first().copied() {
            self.next();
            let before: u64 = number.unwrap_or(0);
            number = Some(before.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
        }
        number
    }

    fn size(&mut self) -> Size {
        let short = if self.skip(b'h') { Size::Short } else { Size::Int };
        if short == Size::Short {
            return if self.skip(b'h') { Size::Char } else { Size::Short };
        }
        if self.skip(b'l') {
            // An integer is no longer than that; a fraction with two is one with `L`.
            return if self.skip(b'l') { Size::LongDouble } else { Size::Long };
        }
        match self.0.first() {
            Some(b'j' | b'z' | b't') => {
                self.next();
                Size::Long
            }
            Some(b'L' | b'q') => {
                self.next();
                Size::LongDouble
            }
            _ => Size::Int,
        }
    }
}

/// The strings that a function reads that prints by this format: where each begins, and how many bytes are read. `length`: of
/// the string at an address, at most so many bytes. `None` if the format is not understood.
pub fn printed(
    format: &[u8],
    mut values: Values<'_>,
    length: impl Fn(u64, u64) -> u64,
) -> Option<Stretches> {
    let mut reader = Reader(format);
    let mut read = Stretches::new();
    while reader.find_conversion() {
        while matches!(reader.0.first(), Some(b'-' | b'+' | b' ' | b'#' | b'0' | b'\'')) {
            reader.next();
        }
        if reader.skip(b'*') {
            values.integer()?;
        } else {
            reader.number();
        }
        let mut precision = None;
        if reader.skip(b'.') {
            precision = match reader.skip(b'*') {
                // A negative one is none.
                true => u64::try_from(values.integer()? as i32).ok(),
                false => Some(reader.number().unwrap_or(0)),
            };
        }
        let size = reader.size();
        match reader.next()? {
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' | b'p' => drop(values.integer()?),
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => match size {
                Size::LongDouble => values.long_double()?,
                _ => values.double()?,
            },
            b's' if size == Size::Int => {
                let at = values.integer()?;
                let limit = precision.unwrap_or(u64::MAX);
                // Of no string it is said that it is none.
                if at != 0 {
                    let bytes = length(at, limit);
                    // With the NUL, where it is looked for.
                    let all = bytes.saturating_add(1).min(limit);
                    read.extend((all != 0).then_some((at, all)));
                }
            }
            _ => return None,
        }
    }
    Some(read)
}

/// What a conversion of a scanned format leaves in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Bytes(u64),
    /// With its NUL.
    String,
    /// How much has been read so far, in so many bytes: not counted as a conversion.
    Progress(u64),
}

/// What a function writes that scans by this format, when it has returned and says that `done` conversions were. `None` if the format
/// is not understood, which it is with any values and any result, or with none.
pub fn scanned(
    format: &[u8],
    mut values: Values<'_>,
    done: u64,
    length: impl Fn(u64, u64) -> u64,
) -> Option<Stretches> {
    let mut written = Stretches::new();
    let mut left = done;
    for conversion in conversions(format)? {
        let size = match conversion {
            Left::Progress(_) if written.is_empty() && done == 0 => break,
            Left::Progress(size) => size,
            _ if left == 0 => break,
            Left::Bytes(size) => size,
            Left::String => 0,
        };
        let Some(at) = values.integer() else { break };
        match conversion {
            Left::Progress(_) => {}
            _ => left -= 1,
        }
        let size = if size == 0 { length(at, u64::MAX).saturating_add(1) } else { size };
        written.push((at, size));
    }
    Some(written)
}

/// Is a format to scan by understood?
pub fn is_scanned(format: &[u8]) -> bool {
    conversions(format).is_some()
}

/// The conversions of a format to scan by that leave something in memory.
fn conversions(format: &[u8]) -> Option<SmallVec<[Left; 8]>> {
    let mut reader = Reader(format);
    let mut all = SmallVec::new();
    while reader.find_conversion() {
        let is_kept = !reader.skip(b'*');
        let width = reader.number();
        let size = reader.size();
        let left = match reader.next()? {
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => Left::Bytes(size.of_integer()),
            b'p' if size == Size::Int => Left::Bytes(8),
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                Left::Bytes(size.of_fraction())
            }
            b'c' if size == Size::Int => Left::Bytes(width.unwrap_or(1)),
            b's' if size == Size::Int => Left::String,
            b'[' if size == Size::Int => {
                reader.skip(b'^');
                reader.skip(b']');
                while reader.next()? != b']' {}
                Left::String
            }
            b'n' => Left::Progress(size.of_integer()),
            _ => return None,
        };
        all.extend(is_kept.then_some(left));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    /// Strings at hundreds: "0", "11", "222" and so on, as long as their digit says and one more.
    fn length(at: u64, limit: u64) -> u64 {
        (at / 100).min(limit)
    }

    /// The stack is at 1,000: its n-th word holds 100 n.
    fn word(at: u64) -> Option<u64> {
        (1000..2000).contains(&at).then(|| (at - 1000) / 8 * 100)
    }

    const ARGUMENTS: [u64; INTEGERS] = [0, 100, 200, 300, 400, 500];

    fn prints(format: &str, first: u8) -> Option<Vec<(u64, u64)>> {
        let values = Values::of_call(&ARGUMENTS, first, 1000, &word);
        printed(format.as_bytes(), values, length).map(SmallVec::into_vec)
    }

    fn scans(format: &str, done: u64) -> Option<Vec<(u64, u64)>> {
        let values = Values::of_call(&ARGUMENTS, 2, 1000, &word);
        scanned(format.as_bytes(), values, done, length).map(SmallVec::into_vec)
    }

    #[test]
    fn strings_are_read_to_their_ends() {
        assert_eq!(prints("100 %% and %d", 2), Some(vec![]));
        assert_eq!(prints("%s", 2), Some(vec![(100, 2)]));
        assert_eq!(prints("%-10s%+5ld|%s\n", 2), Some(vec![(100, 2), (300, 4)]));
        assert_eq!(prints("%s", 1), Some(vec![]), "no string");
    }

    #[test]
    fn precisions_end_strings_sooner() {
        assert_eq!(prints("%.3s%.2s", 4), Some(vec![(300, 3), (400, 2)]));
        assert_eq!(prints("%.5s%.s", 4), Some(vec![(300, 4)]));
        // 200 and 300 are the width and the precision.
        assert_eq!(prints("%*.*s", 3), Some(vec![(400, 5)]));
    }

    #[test]
    fn arguments_beyond_the_registers_are_on_the_stack() {
        assert_eq!(
            prints("%d%s%s%s", 5),
            Some(vec![(500, 6), (100, 2)]),
            "the stack's first is none"
        );
        let nine = "%f%f%f%f%f%f%f%f%f%d%s%s";
        assert_eq!(prints(nine, 5), Some(vec![(500, 6), (100, 2)]));
        // Sixteen bytes, at a multiple of them.
        for format in ["%d%d%d%Lf%s", "%d%d%Lf%s"] {
            assert_eq!(prints(format, 5), Some(vec![(300, 4)]));
        }
        assert_eq!(prints("%s", 7), Some(vec![]));
    }

    #[test]
    fn lists_say_what_was_taken() {
        let memory = |at: u64| match at {
            0 => Some(40 | 48 << 32),
            8 => Some(1008),
            16 => Some(500),
            540 => Some(700),
            _ => word(at),
        };
        let values = Values::of_list(0, &memory).unwrap();
        assert_eq!(
            printed(b"%s%s%s", values, length),
            Some(smallvec![(700, 8), (100, 2), (200, 3)])
        );
        assert!(Values::of_list(0, &|_| None).is_none());
    }

    #[test]
    fn what_is_not_known_is_not_understood() {
        for format in ["%1$s", "%ls", "%n", "%m", "%", "%5", "%C", "%S", "%l"] {
            assert_eq!(prints(format, 2), None, "{format}");
        }
        for format in ["%1$s", "%ms", "%ls", "%lc", "%[abc", "%[]", "%", "%v"] {
            assert!(!is_scanned(format.as_bytes()), "{format}");
        }
    }

    #[test]
    fn what_was_scanned_is_written() {
        assert_eq!(scans("set %23s %31s", 2), Some(vec![(100, 2), (200, 3)]));
        assert_eq!(scans("set %23s %31s", 1), Some(vec![(100, 2)]));
        assert_eq!(scans("set %23s", 0), Some(vec![]));
        assert_eq!(
            scans("%d %ld%hd%hhd%lf", 5),
            Some(vec![(100, 4), (200, 8), (300, 2), (400, 1), (500, 8)])
        );
        assert_eq!(scans("%*d %u %4c %f", 3), Some(vec![(100, 4), (200, 4), (300, 4)]));
        assert_eq!(scans("%[^]x]%[]]%p", 3), Some(vec![(100, 2), (200, 3), (300, 8)]));
        assert_eq!(scans("%d%n%d%n", 1), Some(vec![(100, 4), (200, 4)]));
        assert_eq!(scans("%Lf%lld", 2), Some(vec![(100, 16), (200, 8)]));
        assert_eq!(scans("%d%d", u64::MAX), Some(vec![(100, 4), (200, 4)]), "as many as there are");
    }
}

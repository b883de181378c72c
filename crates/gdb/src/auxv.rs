//! The auxiliary vector: what a program is told at its start about itself, and what tells gdb where a
//! position-independent program was loaded.
//!
//! `/proc/PID/auxv` is the engine's, which the kernel has started; the program's own is on its initial
//! stack, where the engine has set it right: `argc, argv…, 0, envp…, 0, pairs of words up to AT_NULL`.

use crate::memory::Words;

/// Ends the vector.
const AT_NULL: u64 = 0;
/// Where the program headers are, the size of one, and how many.
pub const AT_PHDR: u64 = 3;
pub const AT_PHENT: u64 = 4;
pub const AT_PHNUM: u64 = 5;
/// Arguments and variables that are believed: the kernel allows a quarter of the stack, which is
/// less than this many pointers.
const LONGEST: u64 = 1 << 22;
/// Pairs that are believed; there are some twenty.
const MOST_PAIRS: u64 = 256;

/// An auxiliary vector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Auxv {
    pairs: Vec<(u64, u64)>,
}

impl Auxv {
    /// Behind the arguments and variables on the initial stack.
    pub fn read(memory: &impl Words, stack: u64) -> Option<Auxv> {
        let word = |index: u64| memory.word(stack.checked_add(index.checked_mul(8)?)?);
        let argc = word(0).filter(|argc| *argc < LONGEST)?;
        let mut at = 1 + argc;
        if word(at)? != 0 {
            return None;
        }
        at += 1;
        let end_of_variables = at + LONGEST;
        while word(at)? != 0 {
            at += 1;
            if at > end_of_variables {
                return None;
            }
        }
        at += 1;
        let mut pairs = Vec::new();
        for pair in 0..MOST_PAIRS {
            let kind = word(at + 2 * pair)?;
            if kind == AT_NULL {
                return Some(Auxv { pairs });
            }
            pairs.push((kind, word(at + 2 * pair + 1)?));
        }
        None
    }

    /// The value of an entry.
    pub fn get(&self, kind: u64) -> Option<u64> {
        self.pairs.iter().find(|pair| pair.0 == kind).map(|pair| pair.1)
    }

    /// As the kernel has it, its end included.
    pub fn bytes(&self) -> Vec<u8> {
        let all = self.pairs.iter().chain(&[(AT_NULL, 0)]);
        all.flat_map(|(kind, value)| [kind.to_le_bytes(), value.to_le_bytes()].concat()).collect()
    }
}

/// Where the kernel has put `argc`: field 28 of `/proc/PID/stat`, behind a name that may hold anything.
pub fn initial_stack(stat: &str) -> Option<u64> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_whitespace().nth(25)?.parse().ok().filter(|stack| *stack != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::Typed;

    fn memory(words: &[u64]) -> Typed {
        let mut memory = Typed::default();
        memory.put(0x7000, words);
        memory
    }

    #[test]
    fn it_is_behind_arguments_and_variables() {
        let words = [2, 0xa, 0xb, 0, 0xc, 0xd, 0xe, 0, AT_PHDR, 0x5040, 9, 0x6000, 0, 0];
        let auxv = Auxv::read(&memory(&words), 0x7000).unwrap();
        assert_eq!(auxv.get(AT_PHDR), Some(0x5040));
        assert_eq!(auxv.get(9), Some(0x6000));
        assert_eq!(auxv.get(7), None);
        let expected: Vec<u8> = words[8..].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(auxv.bytes(), expected);
    }

    #[test]
    fn a_program_may_have_neither() {
        let auxv = Auxv::read(&memory(&[0, 0, 0, 0, 0]), 0x7000).unwrap();
        assert_eq!(auxv, Auxv::default());
    }

    #[test]
    fn what_is_no_stack_is_refused() {
        assert_eq!(Auxv::read(&memory(&[u64::MAX, 0]), 0x7000), None);
        assert_eq!(Auxv::read(&memory(&[1, 5, 6, 7]), 0x7000), None);
        assert_eq!(Auxv::read(&memory(&[0, 0, 0, 3]), 0x7000), None);
        assert_eq!(Auxv::read(&memory(&[]), 0x7000), None);
    }

    #[test]
    fn the_stack_is_found_behind_any_name() {
        let fields = |n: usize| (4..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(" ");
        let stat = format!("12 (a) b) S {}\n", fields(52));
        assert_eq!(initial_stack(&stat), Some(28));
        assert_eq!(initial_stack("12 (cut"), None);
        assert_eq!(initial_stack("12 (a) S 1 2"), None);
    }
}

//! What `libc-strings.toml` says each function touches, against what it is known to touch.
//!
//! The expressions are evaluated by the plainest interpreter, over a memory of one small page.

use raddle_hooks::shipped;
use raddle_model::hook::Span;
use raddle_model::{Expr, Hook, Role};
use std::sync::LazyLock;

/// Where the page begins: addresses must not be small numbers by accident.
const BASE: u64 = 0x10_0000;

struct Call<'a> {
    memory: &'a [u8],
    arguments: &'a [u64],
    result: u64,
}

impl Call<'_> {
    fn byte(&self, address: u64) -> u8 {
        self.memory[(address - BASE) as usize]
    }

    fn length(&self, address: u64, limit: u64) -> u64 {
        (0..limit).find(|n| self.byte(address + n) == 0).unwrap_or(limit)
    }

    fn value(&self, expression: &Expr) -> u64 {
        let v = |inner: &Expr| self.value(inner);
        match expression {
            Expr::Arg(n) => self.arguments[usize::from(*n) - 1],
            Expr::Result => self.result,
            Expr::Number(n) => *n,
            Expr::After(a) => v(a),
            Expr::Add(a, b) => v(a).wrapping_add(v(b)),
            Expr::Sub(a, b) => v(a).wrapping_sub(v(b)),
            Expr::Mul(a, b) => v(a).wrapping_mul(v(b)),
            Expr::Min(a, b) => v(a).min(v(b)),
            Expr::Bits(a, b) => v(a) & (v(b)),
            Expr::If(a, b, c) => v(if v(a) != 0 { b } else { c }),
            Expr::Strlen(a) => self.length(v(a), u64::MAX),
            Expr::Strnlen(a, b) => self.length(v(a), v(b)),
            Expr::Common(a, b, c) => {
                let (a, b) = (v(a), v(b));
                let ends = |n: &u64| {
                    let (x, y) = (self.byte(a + n), self.byte(b + n));
                    x != y || x == 0
                };
                (0..v(c)).find(ends).unwrap_or(v(c))
            }
            Expr::Team | Expr::Deref(_) => unreachable!("no string function needs this"),
        }
    }

    fn stretches(&self, spans: &[Span]) -> Vec<(u64, u64)> {
        let all = spans.iter().map(|span| (self.value(&span.at) - BASE, self.value(&span.len)));
        all.filter(|(_, length)| *length > 0).collect()
    }
}

/// A function's (offset, length) read and written, for a page of memory and arguments; pointers,
/// also the result, are given as offsets.
#[track_caller]
fn touches(
    function: &str,
    memory: &str,
    arguments: &[Value],
    result: Value,
    reads: &[(u64, u64)],
    writes: &[(u64, u64)],
) {
    static HOOKS: LazyLock<Vec<Hook>> = LazyLock::new(|| {
        let strings = shipped().into_iter().find(|file| file.library == "libc-strings");
        strings.map(|file| file.hooks).unwrap_or_default()
    });
    let hook = HOOKS.iter().find(|hook| hook.functions.iter().any(|name| name == function));
    let Some(Role::Range { reads: r, writes: w }) = hook.map(|hook| &hook.role) else {
        panic!("{function} is no range");
    };
    let arguments: Vec<u64> = arguments.iter().map(|value| value.number()).collect();
    let call = Call { memory: memory.as_bytes(), arguments: &arguments, result: result.number() };
    assert_eq!(call.stretches(r), reads, "reads of {function}");
    assert_eq!(call.stretches(w), writes, "writes of {function}");
}

#[derive(Clone, Copy)]
enum Value {
    /// A pointer to this byte of the page.
    At(u64),
    Number(u64),
}

use Value::{At, Number as N};

impl Value {
    fn number(self) -> u64 {
        match self {
            At(offset) => BASE + offset,
            N(number) => number,
        }
    }
}

const NULL: Value = N(0);

/// "hello" at 0, "help" at 8, "HELlo" at 16, nothing at 24, and no end at 32.
const PAGE: &str = "hello\0..help\0...HELlo\0..\0.......abcdefgh";

#[test]
fn copying() {
    touches("memcpy", PAGE, &[At(8), At(0), N(4)], At(8), &[(0, 4)], &[(8, 4)]);
    touches("memmove", PAGE, &[At(8), At(0), N(0)], At(8), &[], &[]);
    touches("mempcpy", PAGE, &[At(8), At(0), N(4)], At(12), &[(0, 4)], &[(8, 4)]);
    touches("bcopy", PAGE, &[At(0), At(8), N(4)], NULL, &[(0, 4)], &[(8, 4)]);
    touches("memset", PAGE, &[At(8), N(0), N(3)], At(8), &[], &[(8, 3)]);
    touches("bzero", PAGE, &[At(8), N(3)], NULL, &[], &[(8, 3)]);
    touches("strcpy", PAGE, &[At(32), At(0)], At(32), &[(0, 6)], &[(32, 6)]);
    touches("strcpy", PAGE, &[At(32), At(24)], At(32), &[(24, 1)], &[(32, 1)]);
    touches("strncpy", PAGE, &[At(32), At(0), N(3)], At(32), &[(0, 3)], &[(32, 3)]);
    touches("strncpy", PAGE, &[At(32), At(0), N(8)], At(32), &[(0, 6)], &[(32, 8)]);
    touches("strncpy", PAGE, &[At(32), At(0), N(0)], At(32), &[], &[]);
    touches("stpncpy", PAGE, &[At(32), At(0), N(5)], At(37), &[(0, 5)], &[(32, 5)]);
    touches("strcat", PAGE, &[At(8), At(0)], At(8), &[(8, 5), (0, 6)], &[(12, 6)]);
    touches("strncat", PAGE, &[At(8), At(0), N(2)], At(8), &[(8, 5), (0, 2)], &[(12, 3)]);
    touches("strncat", PAGE, &[At(8), At(0), N(9)], At(8), &[(8, 5), (0, 6)], &[(12, 6)]);
    touches("strncat", PAGE, &[At(8), At(0), N(0)], At(8), &[(8, 5)], &[(12, 1)]);
}

#[test]
fn lengths() {
    touches("strlen", PAGE, &[At(0)], N(5), &[(0, 6)], &[]);
    touches("strlen", PAGE, &[At(24)], N(0), &[(24, 1)], &[]);
    touches("strnlen", PAGE, &[At(0), N(3)], N(3), &[(0, 3)], &[]);
    touches("strnlen", PAGE, &[At(0), N(9)], N(5), &[(0, 6)], &[]);
    touches("strnlen", PAGE, &[At(0), N(0)], N(0), &[], &[]);
    touches("strnlen", PAGE, &[At(0), N(u64::MAX)], N(5), &[(0, 6)], &[]);
}

#[test]
fn comparing() {
    touches("memcmp", PAGE, &[At(0), At(8), N(5)], N(1), &[(0, 5), (8, 5)], &[]);
    touches("strcmp", PAGE, &[At(0), At(8)], N(1), &[(0, 4), (8, 4)], &[]);
    touches("strcmp", PAGE, &[At(0), At(0)], N(0), &[(0, 6), (0, 6)], &[]);
    touches("strcmp", PAGE, &[At(0), At(24)], N(1), &[(0, 1), (24, 1)], &[]);
    touches("strncmp", PAGE, &[At(0), At(8), N(2)], N(0), &[(0, 2), (8, 2)], &[]);
    touches("strncmp", PAGE, &[At(0), At(8), N(3)], N(0), &[(0, 3), (8, 3)], &[]);
    touches("strncmp", PAGE, &[At(0), At(8), N(9)], N(1), &[(0, 4), (8, 4)], &[]);
    touches("strncmp", PAGE, &[At(0), At(8), N(0)], N(0), &[], &[]);
    touches("strcasecmp", PAGE, &[At(0), At(16)], N(0), &[(0, 6), (16, 6)], &[]);
    touches("strcasecmp", PAGE, &[At(0), At(8)], N(1), &[(0, 4), (8, 4)], &[]);
    touches("strncasecmp", PAGE, &[At(0), At(16), N(4)], N(0), &[(0, 4), (16, 4)], &[]);
}

#[test]
fn searching() {
    touches("memchr", PAGE, &[At(0), N(b'l'.into()), N(8)], At(2), &[(0, 3)], &[]);
    touches("memchr", PAGE, &[At(0), N(b'z'.into()), N(8)], NULL, &[(0, 8)], &[]);
    touches("memrchr", PAGE, &[At(0), N(b'l'.into()), N(5)], At(3), &[(3, 2)], &[]);
    touches("memrchr", PAGE, &[At(0), N(b'z'.into()), N(5)], NULL, &[(0, 5)], &[]);
    touches("rawmemchr", PAGE, &[At(0), N(0)], At(5), &[(0, 6)], &[]);
    touches("strchr", PAGE, &[At(0), N(b'l'.into())], At(2), &[(0, 3)], &[]);
    touches("strchr", PAGE, &[At(0), N(b'z'.into())], NULL, &[(0, 6)], &[]);
    touches("strchrnul", PAGE, &[At(0), N(b'z'.into())], At(5), &[(0, 6)], &[]);
    touches("strrchr", PAGE, &[At(0), N(b'h'.into())], At(0), &[(0, 6)], &[]);
    touches("strspn", PAGE, &[At(0), At(8)], N(4), &[(0, 5), (8, 5)], &[]);
    touches("strcspn", PAGE, &[At(0), At(24)], N(5), &[(0, 6), (24, 1)], &[]);
    touches("strpbrk", PAGE, &[At(0), At(16)], At(2), &[(0, 3), (16, 6)], &[]);
    touches("strstr", PAGE, &[At(0), At(24)], At(0), &[(24, 1)], &[]);
    touches("strstr", PAGE, &[At(0), At(8)], NULL, &[(0, 6), (8, 5)], &[]);
    touches("strstr", PAGE, &[At(0), At(3)], At(3), &[(0, 5), (3, 3)], &[]);
}

#[test]
fn wide_characters() {
    touches("wcslen", PAGE, &[At(0)], N(2), &[(0, 12)], &[]);
    touches("wcsnlen", PAGE, &[At(0), N(2)], N(2), &[(0, 8)], &[]);
    touches("wmemset", PAGE, &[At(0), N(7), N(3)], At(0), &[], &[(0, 12)]);
    touches("wmemchr", PAGE, &[At(0), N(7), N(3)], At(4), &[(0, 8)], &[]);
    touches("wmemchr", PAGE, &[At(0), N(7), N(3)], NULL, &[(0, 12)], &[]);
    touches("wcsncmp", PAGE, &[At(0), At(8), N(0)], N(0), &[], &[]);
}

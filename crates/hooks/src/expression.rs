//! The expression language of hook files: `arg1`, `*arg1`, `if(result, result - arg1 + 1, arg3)`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = operand { "*" operand }
//! operand = "*" operand | number | word | word "(" sum { "," sum } ")" | "(" sum ")"
//! ```
//!
//! Numbers are decimal or `0x` hexadecimal. The words are in [`WORDS`] and [`FUNCTIONS`].

use crate::error::nearest;
use raddle_model::Expr;
use winnow::Parser;
use winnow::ascii::{multispace0, multispace1};
use winnow::combinator::{alt, opt, preceded};
use winnow::error::{ErrMode, ModalResult, ParserError};
use winnow::stream::{LocatingSlice, Location, Stateful};
use winnow::token::{any, one_of, take_while};

/// Operands with a name.
const WORDS: [&str; 8] = ["arg1", "arg2", "arg3", "arg4", "arg5", "arg6", "result", "team"];

/// Functions, and how each is called.
const FUNCTIONS: [(&str, &str); 7] = [
    ("after", "after(x)"),
    ("min", "min(a, b)"),
    ("bits", "bits(a, b)"),
    ("if", "if(condition, then, else)"),
    ("strlen", "strlen(address)"),
    ("strnlen", "strnlen(address, limit)"),
    ("common", "common(address, address, limit)"),
];

/// The System V calling convention passes this many integer arguments in registers.
const ARGUMENTS: u8 = 6;

/// Longer than any sensible expression, and short enough for the stack of whoever walks it.
const OPERANDS: usize = 100;

/// What is wrong with an expression, and at which byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub at: usize,
    pub message: String,
    pub expected: String,
}

/// Reads a whole expression.
pub(crate) fn parse(text: &str) -> Result<Expr, Fault> {
    let mut input = Stateful { input: LocatingSlice::new(text), state: 0 };
    let whole = |input: &mut Text<'_>| {
        let expression = sum(input)?;
        match word_at(input) {
            "" => Ok(expression),
            rest => fault(
                input.current_token_start(),
                format!("the expression goes on with \"{rest}\""),
                "an operator (+, -, *) or the end",
            ),
        }
    };
    whole(&mut input).map_err(|error| match error {
        ErrMode::Backtrack(fault) | ErrMode::Cut(fault) => fault,
        ErrMode::Incomplete(_) => Fault::from_input(&input),
    })
}

/// The text, where in it we are, and how many operands there were so far.
type Text<'a> = Stateful<LocatingSlice<&'a str>, usize>;

fn sum(input: &mut Text<'_>) -> ModalResult<Expr, Fault> {
    let mut left = product(input)?;
    while let Some(operator) = opt(preceded(multispace0, one_of(['+', '-']))).parse_next(input)? {
        let (a, b) = (Box::new(left), Box::new(product(input)?));
        left = if operator == '+' { Expr::Add(a, b) } else { Expr::Sub(a, b) };
    }
    multispace0.parse_next(input)?;
    Ok(left)
}

fn product(input: &mut Text<'_>) -> ModalResult<Expr, Fault> {
    let mut left = operand(input)?;
    while opt(preceded(multispace0, '*')).parse_next(input)?.is_some() {
        left = Expr::Mul(Box::new(left), Box::new(operand(input)?));
    }
    Ok(left)
}

fn operand(input: &mut Text<'_>) -> ModalResult<Expr, Fault> {
    opt(multispace1).parse_next(input)?;
    let at = input.current_token_start();
    input.state += 1;
    if input.state > OPERANDS {
        return fault(at, "the expression is too long", &format!("at most {OPERANDS} operands"));
    }
    if opt('*').parse_next(input)?.is_some() {
        return Ok(Expr::Deref(Box::new(operand(input)?)));
    }
    if opt('(').parse_next(input)?.is_some() {
        let inner = sum(input)?;
        close(input)?;
        return Ok(inner);
    }
    let letters = take_while(1.., |c: char| c.is_alphanumeric() || c == '_');
    match opt(letters).parse_next(input)? {
        Some(text) if text.starts_with(|c: char| c.is_ascii_digit()) => number(text, at),
        Some(name) => match opt(preceded(multispace0, '(')).parse_next(input)? {
            Some(_) => call(name, at, input),
            None => word(name, at),
        },
        None => {
            let expected = "an operand such as arg1, *arg1, result or a number";
            match word_at(input) {
                "" => fault(at, "the expression ends too early", expected),
                text => fault(at, format!("\"{text}\" stands where an operand should"), expected),
            }
        }
    }
}

fn number(text: &str, at: usize) -> ModalResult<Expr, Fault> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match parsed {
        Ok(number) => Ok(Expr::Number(number)),
        Err(_) => fault(
            at,
            format!("{text} is no number of 64 bits"),
            "decimal digits, or 0x and hexadecimal ones",
        ),
    }
}

fn word(name: &str, at: usize) -> ModalResult<Expr, Fault> {
    match name {
        "result" => return Ok(Expr::Result),
        "team" => return Ok(Expr::Team),
        _ => {}
    }
    if let Some((_, usage)) = FUNCTIONS.iter().find(|(function, _)| *function == name) {
        return fault(at, format!("\"{name}\" has no arguments"), usage);
    }
    match name.strip_prefix("arg").map(str::parse::<u8>) {
        Some(Ok(n @ 1..=ARGUMENTS)) => Ok(Expr::Arg(n)),
        Some(Ok(_)) => {
            fault(at, format!("there is no {name}"), "arg1 to arg6, those passed in registers")
        }
        _ => unknown(name, at),
    }
}

/// A function's arguments, its opening parenthesis read.
fn call(name: &str, at: usize, input: &mut Text<'_>) -> ModalResult<Expr, Fault> {
    let Some((_, usage)) = FUNCTIONS.iter().find(|(function, _)| *function == name) else {
        if WORDS.contains(&name) {
            return fault(at, format!("\"{name}\" is no function"), &format!("plain {name}"));
        }
        return unknown(name, at);
    };
    let mut arguments = vec![Box::new(sum(input)?)];
    while opt(',').parse_next(input)?.is_some() {
        arguments.push(Box::new(sum(input)?));
    }
    close(input)?;
    let count = arguments.len();
    let mut next = arguments.into_iter();
    let expression = match (name, next.next(), next.next(), next.next(), next.next()) {
        ("after", Some(a), None, ..) => Expr::After(a),
        ("strlen", Some(a), None, ..) => Expr::Strlen(a),
        ("min", Some(a), Some(b), None, _) => Expr::Min(a, b),
        ("bits", Some(a), Some(b), None, _) => Expr::Bits(a, b),
        ("strnlen", Some(a), Some(b), None, _) => Expr::Strnlen(a, b),
        ("if", Some(a), Some(b), Some(c), None) => Expr::If(a, b, c),
        ("common", Some(a), Some(b), Some(c), None) => Expr::Common(a, b, c),
        ("common", Some(a), Some(b), None, _) => {
            Expr::Common(a, b, Box::new(Expr::Number(u64::MAX)))
        }
        _ => {
            let plural = if count == 1 { "" } else { "s" };
            return fault(at, format!("\"{name}\" has {count} argument{plural}"), usage);
        }
    };
    Ok(expression)
}

fn close(input: &mut Text<'_>) -> ModalResult<(), Fault> {
    multispace0.parse_next(input)?;
    if opt(')').parse_next(input)?.is_some() {
        return Ok(());
    }
    let found = match word_at(input) {
        "" => "the expression ends inside parentheses".to_owned(),
        text => format!("\"{text}\" stands inside parentheses"),
    };
    fault(input.current_token_start(), found, "an operator, \",\" or \")\"")
}

fn unknown<T>(name: &str, at: usize) -> ModalResult<T, Fault> {
    let words = WORDS.into_iter().chain(FUNCTIONS.iter().map(|(function, _)| *function));
    fault(at, format!("unknown word \"{name}\""), &nearest(name, words))
}

/// The word or character that comes next, for messages.
fn word_at<'a>(input: &Text<'a>) -> &'a str {
    let mut ahead = *input;
    let mut next = alt((
        take_while(1.., |c: char| c.is_alphanumeric() || c == '_'),
        any::<_, ErrMode<Fault>>.take(),
    ));
    next.parse_next(&mut ahead).unwrap_or("")
}

fn fault<T>(at: usize, message: impl Into<String>, expected: &str) -> ModalResult<T, Fault> {
    Err(ErrMode::Cut(Fault { at, message: message.into(), expected: expected.to_owned() }))
}

impl<'a> ParserError<Text<'a>> for Fault {
    type Inner = Self;

    fn from_input(input: &Text<'a>) -> Self {
        Fault {
            at: input.current_token_start(),
            message: "this is no expression".to_owned(),
            expected: "an operand such as arg1".to_owned(),
        }
    }

    fn into_inner(self) -> Result<Self::Inner, Self> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arg(n: u8) -> Box<Expr> {
        Box::new(Expr::Arg(n))
    }

    fn num(n: u64) -> Box<Expr> {
        Box::new(Expr::Number(n))
    }

    #[test]
    fn operands() {
        assert_eq!(parse("arg1"), Ok(Expr::Arg(1)));
        assert_eq!(parse("  arg6 "), Ok(Expr::Arg(6)));
        assert_eq!(parse("result"), Ok(Expr::Result));
        assert_eq!(parse("team"), Ok(Expr::Team));
        assert_eq!(parse("42"), Ok(Expr::Number(42)));
        assert_eq!(parse("0xffffffffffffffff"), Ok(Expr::Number(u64::MAX)));
        assert_eq!(parse("(arg2)"), Ok(Expr::Arg(2)));
    }

    #[test]
    fn operators_bind_as_usual() {
        let product = Expr::Mul(arg(2), num(4));
        assert_eq!(parse("arg1+arg2*4"), Ok(Expr::Add(arg(1), Box::new(product))));
        let sum = Expr::Add(arg(1), arg(2));
        assert_eq!(parse("(arg1 + arg2) * 4"), Ok(Expr::Mul(Box::new(sum), num(4))));
        let left = Expr::Sub(arg(1), arg(2));
        assert_eq!(parse("arg1 - arg2 - arg3"), Ok(Expr::Sub(Box::new(left), arg(3))));
    }

    #[test]
    fn a_star_before_an_operand_reads_memory() {
        assert_eq!(parse("*arg1"), Ok(Expr::Deref(arg(1))));
        assert_eq!(parse("**arg1"), Ok(Expr::Deref(Box::new(Expr::Deref(arg(1))))));
        let field = Expr::Deref(Box::new(Expr::Add(arg(3), num(8))));
        assert_eq!(parse("*(arg3 + 8)"), Ok(field));
        assert_eq!(parse("arg1 * *arg2"), Ok(Expr::Mul(arg(1), Box::new(Expr::Deref(arg(2))))));
        assert_eq!(parse("after(*arg1)"), Ok(Expr::After(Box::new(Expr::Deref(arg(1))))));
    }

    #[test]
    fn functions() {
        assert_eq!(parse("min( arg1 ,arg2 )"), Ok(Expr::Min(arg(1), arg(2))));
        assert_eq!(parse("strlen(arg2)+1"), Ok(Expr::Add(Box::new(Expr::Strlen(arg(2))), num(1))));
        assert_eq!(parse("strnlen(arg1,arg2)"), Ok(Expr::Strnlen(arg(1), arg(2))));
        assert_eq!(parse("common(arg1,arg2,arg3)"), Ok(Expr::Common(arg(1), arg(2), arg(3))));
        assert_eq!(parse("common(arg1,arg2)"), Ok(Expr::Common(arg(1), arg(2), num(u64::MAX))));
        let found = Expr::Sub(Box::new(Expr::Result), arg(1));
        assert_eq!(
            parse("if(result, result - arg1, arg3)"),
            Ok(Expr::If(Box::new(Expr::Result), Box::new(found), arg(3)))
        );
    }

    #[test]
    fn every_fault_has_its_place_and_a_remedy() {
        let operand = "an operand such as arg1, *arg1, result or a number";
        let operator = "an operator (+, -, *) or the end";
        let inside = "an operator, \",\" or \")\"";
        let words = "arg1, arg2, arg3, arg4, arg5, arg6, result, team, after, min, bits, if, strlen, \
                     strnlen or common";
        for (text, at, message, expected) in [
            ("", 0, "the expression ends too early", operand),
            ("arg1 +", 6, "the expression ends too early", operand),
            ("arg1 + )", 7, "\")\" stands where an operand should", operand),
            ("arg1 arg2", 5, "the expression goes on with \"arg2\"", operator),
            ("arg1)", 4, "the expression goes on with \")\"", operator),
            ("(arg1", 5, "the expression ends inside parentheses", inside),
            ("min(arg1; 3)", 8, "\";\" stands inside parentheses", inside),
            ("arg0", 0, "there is no arg0", "arg1 to arg6, those passed in registers"),
            ("1 + arg7", 4, "there is no arg7", "arg1 to arg6, those passed in registers"),
            ("reslt", 0, "unknown word \"reslt\"", "\"result\""),
            ("strln(arg1)", 0, "unknown word \"strln\"", "\"strlen\""),
            ("zzz", 0, "unknown word \"zzz\"", words),
            ("arg1(2)", 0, "\"arg1\" is no function", "plain arg1"),
            ("min", 0, "\"min\" has no arguments", "min(a, b)"),
            ("min(arg1)", 0, "\"min\" has 1 argument", "min(a, b)"),
            ("if(1,2,3,4)", 0, "\"if\" has 4 arguments", "if(condition, then, else)"),
            (
                "18446744073709551616",
                0,
                "18446744073709551616 is no number of 64 bits",
                "decimal digits, or 0x and hexadecimal ones",
            ),
            ("0xg", 0, "0xg is no number of 64 bits", "decimal digits, or 0x and hexadecimal ones"),
            ("arg1 & 1", 5, "the expression goes on with \"&\"", operator),
        ] {
            let fault = Fault { at, message: message.into(), expected: expected.into() };
            assert_eq!(parse(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn length_and_depth_are_bounded() {
        for text in ["(".repeat(100_000), "*".repeat(100_000), "1+".repeat(100_000) + "1"] {
            let fault = parse(&text).unwrap_err();
            assert_eq!(fault.message, "the expression is too long");
            assert_eq!(fault.expected, "at most 100 operands");
        }
    }
}

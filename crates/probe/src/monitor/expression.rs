//! Evaluating a hook's expressions over a call. Unreadable memory reads as zero: a hook must never
//! crash a program that would have handled the bad pointer itself.

use crate::memory::target;
use raddle_model::{Address, Expr};

/// A call as expressions see it.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub arguments: [u64; 6],
    /// Zero while the call has not returned.
    pub result: u64,
    pub team: Address,
}

/// The value of an expression.
pub fn evaluate(expression: &Expr, call: &Call) -> u64 {
    let value = |e: &Expr| evaluate(e, call);
    match expression {
        Expr::Arg(n) => call.arguments[usize::from(*n).saturating_sub(1).min(5)],
        Expr::Result => call.result,
        Expr::Number(n) => *n,
        Expr::Team => call.team.0,
        Expr::Deref(at) => target::word(value(at)).unwrap_or(0),
        Expr::After(e) => value(e),
        Expr::Add(a, b) => value(a).wrapping_add(value(b)),
        Expr::Sub(a, b) => value(a).wrapping_sub(value(b)),
        Expr::Mul(a, b) => value(a).wrapping_mul(value(b)),
        Expr::Min(a, b) => value(a).min(value(b)),
        Expr::Bits(a, b) => value(a) & value(b),
        Expr::If(condition, yes, no) => value(if value(condition) != 0 { yes } else { no }),
        Expr::Strlen(at) => target::string_length(value(at), u64::MAX),
        Expr::Strnlen(at, limit) => target::string_length(value(at), value(limit)),
        Expr::Common(a, b, limit) => target::common_length(value(a), value(b), value(limit)),
    }
}

//! Functions that print or scan by a format: what they touch, by what [`raddle_model::format`] makes of it.

use super::expression::{Call, evaluate};
use super::roles::touch;
use crate::analysis::Touching;
use crate::memory::target;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::ThreadState;
use raddle_model::AccessKind;
use raddle_model::format::{Values, is_scanned, printed, scanned};
use raddle_model::hook::{Role, Variadic};

/// A longer one is not understood.
const LONGEST: u64 = 1 << 12;

/// The function was entered: is its format understood? If so, what it reads by it is reported.
pub(super) fn entered(
    probe: &Probe,
    thread: &mut ThreadState,
    role: &Role,
    call: &Call,
    spot: Spot,
) -> bool {
    match role {
        Role::Print { format, values, .. } => {
            let at = evaluate(format, call);
            let Some(format) = target::bytes_of_string(at, LONGEST) else { return false };
            let word = |at| target::word(at);
            let strings = find(values, call, spot, &word)
                .and_then(|values| printed(&format, values, target::string_length));
            let Some(strings) = strings else { return false };
            for (address, length) in [(at, format.len() as u64 + 1)].into_iter().chain(strings) {
                touch(probe, thread, spot, Touching { kind: AccessKind::Read, address, length });
            }
            true
        }
        Role::Scan { format, .. } => {
            let address = evaluate(format, call);
            let format = target::bytes_of_string(address, LONGEST);
            let Some(format) = format.filter(|format| is_scanned(format)) else { return false };
            let length = format.len() as u64 + 1;
            touch(probe, thread, spot, Touching { kind: AccessKind::Read, address, length });
            true
        }
        _ => false,
    }
}

/// A function whose format was understood has returned: what it has written by it is reported.
pub(super) fn left(
    probe: &Probe,
    thread: &mut ThreadState,
    role: &Role,
    call: &Call,
    result: u64,
    spot: Spot,
) {
    let Role::Scan { format, first, .. } = role else { return };
    // An `int`, and less than zero at the end of what there is.
    let done = u64::try_from(result as i32).unwrap_or(0);
    let format = target::bytes_of_string(evaluate(format, call), LONGEST);
    let word = |at| target::word(at);
    let written = format.and_then(|format| {
        let values = Values::of_call(&call.arguments, *first, spot.sp, &word);
        scanned(&format, values, done, target::string_length)
    });
    for (address, length) in written.unwrap_or_default() {
        touch(probe, thread, spot, Touching { kind: AccessKind::Write, address, length });
    }
}

/// The arguments of which the format speaks. The stack pointer behind the call, before and after it, is where those are that are in no
/// register.
fn find<'a>(
    values: &Variadic,
    call: &'a Call,
    spot: Spot,
    word: &'a dyn Fn(u64) -> Option<u64>,
) -> Option<Values<'a>> {
    match values {
        Variadic::From(first) => Some(Values::of_call(&call.arguments, *first, spot.sp, word)),
        Variadic::List(list) => Values::of_list(evaluate(list, call), word),
    }
}

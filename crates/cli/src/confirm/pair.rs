//! From a finding of a report to the two places that are watched.

use raddle_model::finding::FindingKind;
use raddle_report::findings::{Access, Finding};
use raddle_wire::options::WatchedPlace;

/// The places of a data race; absent where one of them has none (code that belongs to no file).
pub fn places(finding: &Finding) -> Option<Vec<WatchedPlace>> {
    if finding.kind != FindingKind::DataRace {
        return None;
    }
    let [first, second] = finding.accesses.as_slice() else { return None };
    let size = finding.location.size;
    let first = place(first, (true, false), size)?;
    let second = place(second, (false, true), size)?;
    let is_one = first.module == second.module
        && first.offset == second.offset
        && first.caller == second.caller;
    if is_one {
        return Some(vec![WatchedPlace { sides: (true, true), ..first }]);
    }
    Some(vec![first, second])
}

fn place(access: &Access, sides: (bool, bool), size: Option<u64>) -> Option<WatchedPlace> {
    let inner = access.stack.first()?;
    // A place inside a library function belongs to every caller of it: this finding's is the first
    // outside.
    let own = access.own_frame.and_then(|own| access.stack.get(own));
    let outside = own.filter(|own| own.module != inner.module || own.offset != inner.offset);
    let caller = outside.and_then(|own| Some((own.module.clone()?, own.offset.0)));
    let is_free = access.kind == raddle_model::finding::TouchKind::Free;
    Some(WatchedPlace {
        sides,
        module: inner.module.clone()?,
        offset: inner.offset.0,
        caller,
        size: size.filter(|_| is_free),
    })
}

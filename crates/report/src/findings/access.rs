//! One side of a finding with its names.

use super::gather::Program;
use super::party::{Wait, Wanted};
use super::schema::{Access, Lock};
use super::{Library, location, stack};
use crate::hex::Hex;

use raddle_model::finding::{FindingAccess, FindingWait};
use raddle_model::lockset::{HeldLock, LockSet};

/// What a transaction is called among the locks: it excludes other transactions as a lock would.
pub(super) const TRANSACTION: &str = "transaction";

/// An access as it stands in the report; `process` is said where there are several.
pub(super) fn access(
    program: &mut Program,
    access: &FindingAccess,
    process: Option<u32>,
    library: &mut dyn Library,
) -> Access {
    let mut calls = stack::named(&mut program.world, access.stack, access.place, library);
    let own_frame = stack::with_source(&mut calls, library);
    Access {
        kind: access.kind,
        size: access.size,
        atomic: access.atomic,
        thread: access.thread,
        process,
        locks: access.locks.iter().map(|held| lock(program, held, library)).collect(),
        stack: calls,
        own_frame,
    }
}

/// A wait as it stands in the report.
pub(super) fn wait(
    program: &mut Program,
    wait: &FindingWait,
    process: Option<u32>,
    library: &mut dyn Library,
) -> Wait {
    let wants = &wait.wants;
    let mut calls = stack::named(&mut program.world, wants.stack, wants.place, library);
    let own_frame = stack::with_source(&mut calls, library);
    Wait {
        thread: wait.thread,
        process,
        wants: Wanted {
            address: Hex(wants.lock.0),
            name: location::variable(program, wants.lock, library),
            mode: wants.mode.into(),
        },
        locks: wait.holds.iter().map(|held| lock(program, held, library)).collect(),
        stack: calls,
        own_frame,
    }
}

fn lock(program: &mut Program, held: &HeldLock, library: &mut dyn Library) -> Lock {
    let name = match held.lock {
        LockSet::TRANSACTION => Some(TRANSACTION.to_owned()),
        address => location::variable(program, address, library),
    };
    Lock {
        address: Hex(held.lock.0),
        name,
        mode: held.mode.into(),
        taken_at: stack::named(&mut program.world, held.stack, held.place, library),
    }
}

//! What lies at an address: a variable by name, a heap block by where it was allocated.

use super::gather::{Found, Program};
use super::schema::{Location, LocationKind};
use super::{Library, stack};
use crate::hex::Hex;
use raddle_model::Address;

/// The memory of a finding.
pub(super) fn location(
    program: &mut Program,
    found: &Found,
    library: &mut dyn Library,
) -> Location {
    let address = found.finding.address;
    let unknown = Location {
        kind: LocationKind::Unknown,
        name: None,
        offset: None,
        allocated_at: None,
        allocated_by: None,
        address: Hex(address.0),
        size: None,
        module: None,
        thread: None,
    };
    if let Some(local) = found.local
        && let Some(module) = program.modules.first()
        && let Some((name, extent)) = library.thread_local(module, local.below)
    {
        return Location {
            kind: LocationKind::ThreadLocal,
            name: Some(name),
            offset: Some(Hex(extent.within)),
            size: Some(extent.size),
            module: Some(module.clone()),
            thread: Some(local.thread),
            ..unknown
        };
    }
    if let Some(block) = &found.block {
        return Location {
            kind: LocationKind::Heap,
            offset: Some(Hex(address.0.saturating_sub(block.start.0))),
            allocated_at: Some(stack::named(&mut program.world, block.stack, block.place, library)),
            allocated_by: Some(block.thread),
            size: Some(block.size),
            ..unknown
        };
    }
    let Some((module, offset)) = program.module_at(address) else { return unknown };
    match library.variable(&module, offset) {
        Some(name) => {
            let extent = library.extent(&module, offset);
            Location {
                kind: LocationKind::Global,
                name: Some(name),
                offset: extent.map(|extent| Hex(extent.within)),
                size: extent.map(|extent| extent.size),
                module: Some(module),
                ..unknown
            }
        }
        None => Location {
            kind: LocationKind::Module,
            offset: Some(Hex(offset)),
            module: Some(module),
            ..unknown
        },
    }
}

/// The variable at an address.
pub(super) fn variable(
    program: &Program,
    address: Address,
    library: &mut dyn Library,
) -> Option<String> {
    let (module, offset) = program.module_at(address)?;
    library.variable(&module, offset)
}

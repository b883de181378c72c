//! Call stacks with their names.

use super::Library;
use super::runtime::own_frame;
use super::schema::Frame;
use crate::hex::Hex;
use crate::names::PlaceName;
use crate::world::World;
use raddle_model::{Place, StackId};

/// The stack of an event, innermost first: its place, then the callers where a stack was taken.
pub(super) fn named(
    world: &mut World,
    stack: StackId,
    place: Place,
    library: &mut dyn Library,
) -> Vec<Frame> {
    let symbols = as_symbols(library);
    let innermost = world.place(place, symbols);
    let callers = world.stack_names(stack, symbols).into_iter().skip(1);
    [innermost]
        .into_iter()
        .chain(callers)
        .flat_map(|name| frames(&name).collect::<Vec<_>>())
        .collect()
}

/// A stack of modules and offsets, innermost first; all but the first are where calls return to.
pub fn stack_of(places: &[(String, u64)], library: &mut dyn Library) -> Vec<Frame> {
    let mut stack = Vec::new();
    for (depth, (module, offset)) in places.iter().enumerate() {
        if *offset == Place::RECURSION.offset {
            stack.extend(frames(&PlaceName::recursion()));
            continue;
        }
        let inside = offset.saturating_sub(u64::from(depth > 0));
        let known = as_symbols(library).frames(module, inside);
        let name =
            PlaceName { module: Some(module.as_str().into()), offset: *offset, frames: known };
        stack.extend(frames(&name));
    }
    with_source(&mut stack, library);
    stack
}

/// Puts the source line to the frame that stands for the access, and says which that is.
pub(crate) fn with_source(stack: &mut [Frame], library: &mut dyn Library) -> Option<usize> {
    let own = own_frame(stack);
    if let Some(frame) = stack.get_mut(own.unwrap_or(0))
        && let (Some(file), Some(line)) = (&frame.file, frame.line)
    {
        frame.text = library.source_line(file, line);
    }
    own
}

/// [`Library`] as what it extends.
pub(super) fn as_symbols(library: &mut dyn Library) -> &mut dyn crate::names::Symbols {
    library
}

fn frames(name: &PlaceName) -> impl Iterator<Item = Frame> + '_ {
    let count = name.frames.len().max(1);
    (0..count).map(|at| {
        let known = name.frames.get(at).cloned().unwrap_or_default();
        Frame {
            module: name.module.as_deref().map(String::from),
            offset: Hex(name.offset),
            function: known.function,
            file: known.file,
            line: known.line,
            column: known.column,
            inlined: known.inlined,
            text: None,
        }
    })
}

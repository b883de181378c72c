//! Strips: granules whose bytes are touched one by one.
//!
//! A cell has one tick, and names one access or a combination of some. That is enough where memory is touched as it is divided
//! into variables. Tables of small numbers and text are not: of four counters side by side each is touched in another segment,
//! and of eight characters each is written at another place of the program, so that combinations are ever new. Such a granule is
//! *split*: each of its bytes has a cell of its own, side by side in a strip, and what the planes have names it
//! ([`super::AccessId::is_strip`]).
//!
//! ```text
//! cell     tick of the last access, the bytes touched in this tick, the strip
//! older    a tick not before that of any other byte, all bytes, the strip
//! strip    byte by byte: tick, byte, access
//! ```
//!
//! So who compares ticks and bytes need not know. The cells of the bytes are written before those that name the strip; the thread
//! whose slot it is writes them, nobody else, and members of the crowd have none. A byte's cell that a newer access does not
//! stand for is kept behind the lock ([`super::special`]).

use super::access::AccessId;
use super::cell::{Bytes, Cell, GRANULE, WHOLE};
use super::protocol::{Planes, Side, set_aside};
use smallvec::SmallVec;

/// The cells of some bytes.
pub type Cells = SmallVec<[Cell; GRANULE as usize]>;

/// The numbers of bytes.
#[inline]
pub fn each_byte(bytes: Bytes) -> impl Iterator<Item = u32> {
    (0..GRANULE as u32).filter(move |byte| bytes >> byte & 1 == 1)
}

/// A granule whose newest access is `newest` is split, the cells of its bytes being these; nothing for those that are in the strip
/// already. Whoever looks meanwhile finds what there was in one form or the other.
pub fn split<P: Planes>(
    planes: &P,
    at: (usize, Side, u64),
    newest: Cell,
    (strip, bytes): (AccessId, [Option<Cell>; GRANULE as usize]),
) {
    for (byte, cell) in bytes.into_iter().enumerate() {
        if let Some(cell) = cell {
            planes.set_strip_cell(strip, byte as u32, cell);
        }
    }
    set_aside(planes, at, Cell::new(newest.tick(), WHOLE, strip));
    let (slot, side, granule) = at;
    planes.set_cell(slot, side, granule, Cell::new(newest.tick(), newest.bytes(), strip));
}

/// Stamps some bytes of a granule that is split.
pub fn stamp<P: Planes>(
    planes: &P,
    at: (usize, Side, u64),
    tick: u32,
    (bytes, access): (Bytes, AccessId),
) {
    let (slot, side, granule) = at;
    let newest = planes.cell(slot, side, granule);
    let strip = newest.access();
    for byte in each_byte(bytes) {
        planes.set_strip_cell(strip, byte, Cell::new(tick, 1 << byte, access));
    }
    let mut touched = bytes;
    if newest.tick() == tick {
        touched |= newest.bytes();
    } else {
        set_aside(planes, at, Cell::new(newest.tick(), WHOLE, strip));
    }
    planes.set_cell(slot, side, granule, Cell::new(tick, touched, strip));
}

/// What a strip, named by a cell of this granule, says of some bytes; what one access touched in one tick together.
pub fn cells<P: Planes>(
    planes: &P,
    (slot, side, granule): (usize, Side, u64),
    named: Cell,
    bytes: Bytes,
) -> Cells {
    let strip = named.access();
    let mut cells = Cells::new();
    for byte in each_byte(bytes) {
        let cell = planes.strip_cell(strip, byte);
        let is_like = |known: &Cell| (known.tick(), known.access()) == (cell.tick(), cell.access());
        match cells.iter().position(is_like) {
            _ if cell.bytes() == 0 => {}
            Some(at) => {
                let bytes = cells[at].bytes() | cell.bytes();
                cells[at] = Cell::new(cell.tick(), bytes, cell.access());
            }
            None => cells.push(cell),
        }
    }
    // Memory that was given back meanwhile may have left the strip to another granule.
    let names_it = |cell: Cell| cell.access() == strip;
    let is_still = names_it(planes.cell(slot, side, granule))
        || planes.older(slot, side, granule).is_some_and(names_it);
    if !is_still {
        cells.clear();
    }
    cells
}

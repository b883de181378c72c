//! All that the target can write, as a number: is it the same as before?

use super::maps::mappings;
use super::own;
use raddle_dynamorio::process;
use raddle_schedule::told::Line;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// More than this is not looked at: it would take longer than it is worth.
const MOST: u64 = 256 << 20;
/// Bytes looked at together.
const CHUNK: u64 = 1 << 16;

/// A digest of the memory that the target alone writes, but for what lies below these addresses in the
/// regions they are in: the living ends of stacks. `None` if that is too much.
pub fn digest(stacks: &[u64]) -> Option<u64> {
    let mut parts = Vec::new();
    let its = |line: &Line| line.is_writable() && !line.is_shared();
    for Line { bytes, .. } in mappings().into_iter().filter(its) {
        let above = stacks.iter().filter(|at| bytes.contains(at)).max();
        parts.extend(own::without(above.map_or(bytes.start, |at| *at)..bytes.end));
    }
    if parts.iter().map(|part| part.end - part.start).sum::<u64>() > MOST {
        return None;
    }
    let mut hasher = FxHasher::default();
    let mut bytes = vec![0; CHUNK as usize];
    for part in parts {
        for start in part.clone().step_by(CHUNK as usize) {
            if process::is_ours(start) {
                continue;
            }
            let length = CHUNK.min(part.end - start) as usize;
            let read = process::read(start, &mut bytes[..length]);
            hasher.write(&bytes[..read]);
        }
    }
    Some(hasher.finish())
}

//! All that the target can write, as a number: is it the same as before?

use super::own;
use raddle_dynamorio::process;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::ops::Range;

/// More than this is not looked at: it would take longer than it is worth.
const MOST: u64 = 256 << 20;
/// Bytes looked at together.
const CHUNK: u64 = 1 << 16;

/// A digest of the memory that the target alone writes, but for what lies below these addresses in the
/// regions they are in: the living ends of stacks. `None` if that is too much.
pub fn digest(stacks: &[u64]) -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let regions: Vec<Range<u64>> = maps.lines().filter_map(region).collect();
    let mut parts = Vec::new();
    for region in regions {
        let above = stacks.iter().filter(|at| region.contains(at)).max();
        let region = above.map_or(region.start, |at| *at)..region.end;
        parts.extend(own::without(region));
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

/// The memory of a line of `/proc/self/maps`, if it can be written and nobody else has it.
fn region(line: &str) -> Option<Range<u64>> {
    let (range, rest) = line.split_once(' ')?;
    if !rest.starts_with("rw") || rest.as_bytes().get(3) != Some(&b'p') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_that_can_be_written_and_are_not_shared() {
        let line = "7f00a000-7f00b000 rw-p 00000000 00:00 0 ";
        assert_eq!(region(line), Some(0x7f00_a000..0x7f00_b000));
        assert_eq!(
            region("7f00a000-7f00b000 rwxp 00000000 00:00 0"),
            Some(0x7f00_a000..0x7f00_b000)
        );
        assert_eq!(region("7f00a000-7f00b000 rw-s 00000000 00:01 7 /dev/shm/x"), None);
        assert_eq!(region("7f00a000-7f00b000 r--p 00000000 08:01 7 /usr/bin/true"), None);
        assert_eq!(region(""), None);
    }
}

//! What is mapped in this process, as the kernel says.

use std::ops::Range;

/// A stretch of memory with the same rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub bytes: Range<u64>,
    pub writable: bool,
    /// Another process may have it, too.
    pub shared: bool,
}

/// All of them.
pub fn mappings() -> Vec<Mapping> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// A line: range, rights, and more.
fn parse(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let rights = rest.split(' ').next()?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        bytes: number(start)?..number(end)?,
        writable: rights.starts_with("rw"),
        shared: rights.ends_with('s'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_of_lines() {
        let rights =
            |line| parse(line).map(|found| (found.bytes.start, found.writable, found.shared));
        let start = 0x7f00_a000;
        assert_eq!(rights("7f00a000-7f00b000 rw-p 00000000 00:00 0 "), Some((start, true, false)));
        assert_eq!(rights("7f00a000-7f00b000 rwxp 00000000 00:00 0"), Some((start, true, false)));
        assert_eq!(
            rights("7f00a000-7f00b000 rw-s 0 00:01 7 /dev/shm/x"),
            Some((start, true, true))
        );
        assert_eq!(
            rights("7f00a000-7f00b000 r--p 0 08:01 7 /bin/true"),
            Some((start, false, false))
        );
        assert_eq!(rights(""), None);
    }
}

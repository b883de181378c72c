//! The `#!` line, read byte for byte as the kernel reads it (`fs/binfmt_script.c`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// How much of a file the kernel looks at (`BINPRM_BUF_SIZE`).
pub(super) const LOOKED_AT: usize = 256;

/// A `#!` line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The interpreter.
    pub program: OsString,
    /// Everything after it, in one argument.
    pub argument: Option<OsString>,
}

/// The interpreter named by a file's first bytes, if they are a script's.
pub(super) fn interpreter(head: &[u8]) -> Option<Interpreter> {
    let rest = head.strip_prefix(b"#!")?;
    let line = match rest.iter().position(|b| *b == b'\n') {
        Some(end) => &rest[..end],
        // A line that goes on past what the kernel sees must at least show the whole name.
        None if head.len() >= LOOKED_AT && !trim_start(rest).iter().any(|b| ends_name(*b)) => {
            return None;
        }
        None => rest,
    };
    let line = trim_start(line);
    let name_end = line.iter().position(|b| ends_name(*b)).unwrap_or(line.len());
    let (program, rest) = line.split_at(name_end);
    if program.is_empty() {
        return None;
    }
    let rest = rest.split(|b| *b == 0).next().unwrap_or_default();
    let argument = trim_end(trim_start(rest));
    Some(Interpreter {
        program: OsString::from_vec(program.to_vec()),
        argument: (!argument.is_empty()).then(|| OsString::from_vec(argument.to_vec())),
    })
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn ends_name(byte: u8) -> bool {
    is_blank(byte) || byte == 0
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|b| !is_blank(*b)).unwrap_or(bytes.len());
    &bytes[start..]
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| !is_blank(*b)).map_or(0, |i| i + 1);
    &bytes[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Option<(String, Option<String>)> {
        let text = |s: OsString| s.into_string().unwrap();
        interpreter(head.as_bytes()).map(|i| (text(i.program), i.argument.map(text)))
    }

    #[test]
    fn name_and_one_argument() {
        let sh = || "/bin/sh".to_owned();
        assert_eq!(read("#!/bin/sh\n"), Some((sh(), None)));
        assert_eq!(read("#!/bin/sh"), Some((sh(), None)));
        assert_eq!(read("#! \t/bin/sh \t\nx"), Some((sh(), None)));
        assert_eq!(read("#!/bin/sh -e -u \n"), Some((sh(), Some("-e -u".into()))));
        assert_eq!(read("#!/bin/sh -e\0junk\n"), Some((sh(), Some("-e".into()))));
        assert_eq!(read("#!/bin/sh\r\n"), Some(("/bin/sh\r".into(), None)));
    }

    #[test]
    fn no_interpreter() {
        assert_eq!(read("#!\n/bin/sh"), None);
        assert_eq!(read("#!  \t \n"), None);
        assert_eq!(read("# !/bin/sh\n"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn a_name_cut_off_by_the_kernels_buffer_is_none() {
        let long = format!("#!/{}", "x".repeat(LOOKED_AT));
        assert_eq!(read(&long[..LOOKED_AT]), None);
        let argument = format!("#!/bin/sh {}", "x".repeat(LOOKED_AT));
        assert!(read(&argument[..LOOKED_AT]).is_some());
    }
}

//! Whose code is it: the program's own, or a runtime library's that every program has? A race
//! inside the C library is shown where the program called it.

use super::schema::Frame;
use crate::names::file_name;

/// Libraries that belong to a language or to the system: their names up to the version.
const LIBRARIES: [&str; 17] = [
    "ld-linux-x86-64",
    "ld-musl-x86_64",
    "libatomic",
    "libc",
    "libc++",
    "libc++abi",
    "libdl",
    "libgcc_s",
    "libgomp",
    "libitm",
    "libm",
    "libomp",
    "libpthread",
    "librt",
    "libstdc++",
    "linux-vdso",
    "[vdso]",
];

/// Source of standard libraries that is compiled into the program: generic code, and Rust's std.
const SOURCES: [&str; 3] = ["/rustc/", "/rustlib/src/rust/library/", "/include/c++/"];

/// What calls `main` and the first function of a thread, wherever it is linked to.
const STARTERS: [&str; 6] =
    ["_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone", "clone3"];

/// Does the frame belong to a runtime library?
pub(super) fn is_runtime(frame: &Frame) -> bool {
    if frame.function.as_deref().is_some_and(|function| STARTERS.contains(&function)) {
        return true;
    }
    let library =
        frame.module.as_deref().is_some_and(|module| is_runtime_module(file_name(module)));
    let source = |file: &str| SOURCES.iter().any(|part| file.contains(part));
    library || frame.file.as_deref().is_some_and(source)
}

/// Index of the first frame that is the program's own.
pub(super) fn own_frame(stack: &[Frame]) -> Option<usize> {
    // A frame without a module is nobody's we know: a JIT's code is the program's.
    stack.iter().position(|frame| !is_runtime(frame))
}

fn is_runtime_module(name: &str) -> bool {
    LIBRARIES.iter().any(|library| {
        name.strip_prefix(library).is_some_and(|rest| {
            // `libc.so.6`, and `libc-2.31.so` of older days; not `libcurl.so.4`.
            let old = |rest: &str| {
                rest.strip_prefix('-').is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
            };
            rest.is_empty() || rest.starts_with(".so") || old(rest)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::Hex;

    fn frame(module: &str, file: &str) -> Frame {
        Frame {
            module: Some(module.into()),
            offset: Hex(0),
            function: None,
            file: (!file.is_empty()).then(|| file.to_owned()),
            line: None,
            column: None,
            inlined: false,
            text: None,
        }
    }

    #[test]
    fn runtime_libraries_are_known_by_name_and_their_generic_code_by_its_source() {
        for module in ["libc.so.6", "libc-2.31.so", "libstdc++.so.6.0.33", "ld-linux-x86-64.so.2"] {
            assert!(is_runtime(&frame(&format!("/lib/x86_64-linux-gnu/{module}"), "")), "{module}");
        }
        for module in ["libcurl.so.4", "libmy.so", "libc-client.so", "bank", "libomptest.so"] {
            assert!(!is_runtime(&frame(&format!("/w/{module}"), "")), "{module}");
        }
        assert!(is_runtime(&frame("/w/bank", "/rustc/9fc6b431/library/core/src/cell.rs")));
        assert!(is_runtime(&frame("/w/bank", "/usr/include/c++/14/bits/stl_vector.h")));
        assert!(!is_runtime(&frame("/w/bank", "/w/src/main.rs")));
        let start = Frame { function: Some("_start".into()), ..frame("/w/bank", "") };
        assert!(is_runtime(&start));
    }

    #[test]
    fn the_first_own_frame_stands_for_the_access() {
        let stack = [frame("/lib/libc.so.6", ""), frame("/w/bank", "/w/bank.c")];
        assert_eq!(own_frame(&stack), Some(1));
        assert_eq!(own_frame(&stack[..1]), None);
    }
}

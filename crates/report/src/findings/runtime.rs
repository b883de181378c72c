//! Whose code is it: the program's own, or a runtime library's that every program has? A race
//! inside the C library is shown where the program called it.

use super::schema::Frame;
use crate::names::{RECURSION, file_name};

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

/// Source of Rust's standard library, which is compiled into the program.
const SOURCES: [&str; 2] = ["/rustc/", "/rustlib/src/rust/library/"];

/// What only standard libraries may define: their names begin so. For code without lines.
const STANDARD: [&str; 7] =
    ["std::", "core::", "alloc::", "__gnu_cxx::", "__gthread_", "__rust_", "__rdl_"];

/// What calls `main` and the first function of a thread, wherever it is linked to.
const STARTERS: [&str; 6] =
    ["_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone", "clone3"];

/// Does the frame stand for calls of a recursion that were left out?
pub(super) fn is_recursion(frame: &Frame) -> bool {
    frame.module.is_none() && frame.function.as_deref() == Some(RECURSION)
}

/// Does the frame belong to a runtime library, or to nobody?
pub(super) fn is_runtime(frame: &Frame) -> bool {
    if is_recursion(frame) {
        return true;
    }
    if frame.function.as_deref().is_some_and(|function| STARTERS.contains(&function)) {
        return true;
    }
    let library =
        frame.module.as_deref().is_some_and(|module| is_runtime_module(file_name(module)));
    let standard = match (&frame.file, &frame.function) {
        (Some(file), _) => is_standard_source(file),
        (None, Some(function)) => is_standard_function(function),
        (None, None) => false,
    };
    library || standard
}

/// Generic code of a standard library: `/usr/include/c++/14/…`, `/usr/include/x86_64-linux-gnu/c++/14/…`,
/// `…/include/c++/v1/…`, and Rust's.
fn is_standard_source(file: &str) -> bool {
    let of_rust = || SOURCES.iter().any(|part| file.contains(part));
    let versioned = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || c == 'v');
    let of_cxx = || {
        let (_, included) = file.split_once("/include/")?;
        let (_, rest) = included.split_once("c++/")?;
        Some(versioned(rest))
    };
    of_rust() || of_cxx() == Some(true)
}

/// `std::vector<int>::push_back`, `<alloc::vec::Vec<T> as core::ops::Drop>::drop`; not what a program makes of them,
/// `<alloc::vec::Vec<T> as bank::Account>::pay`.
fn is_standard_function(function: &str) -> bool {
    let begins = |name: &str| STANDARD.iter().any(|prefix| name.starts_with(prefix));
    match function.strip_prefix('<').map(|inner| inner.split_once(" as ").ok_or(inner)) {
        None => begins(function),
        Some(Ok((what, interface))) => begins(what) && begins(interface),
        Some(Err(inner)) => begins(inner),
    }
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
        let thread = "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h";
        assert!(is_runtime(&frame("/w/bank", thread)));
        assert!(is_runtime(&frame("/w/bank", "/opt/llvm/include/c++/v1/vector")));
        assert!(!is_runtime(&frame("/w/bank", "/w/src/main.rs")));
        assert!(!is_runtime(&frame("/w/bank", "/w/include/c++/bank.h")));
        let start = Frame { function: Some("_start".into()), ..frame("/w/bank", "") };
        assert!(is_runtime(&start));
        let recursion = Frame { module: None, function: Some(RECURSION.into()), ..start };
        assert!(is_runtime(&recursion) && is_recursion(&recursion));
    }

    #[test]
    fn code_without_lines_is_known_by_the_names_that_only_libraries_may_give() {
        let named = |function: &str| {
            is_runtime(&Frame { function: Some(function.into()), ..frame("/w/bank", "") })
        };
        assert!(named("std::vector<int>::push_back(int&&)"));
        assert!(named("<alloc::raw_vec::RawVecInner>::finish_grow"));
        assert!(named("<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"));
        assert!(named("__rust_try"));
        assert!(!named("<alloc::vec::Vec<T> as bank::Account>::pay"));
        assert!(!named("<bank::Account as core::ops::drop::Drop>::drop"));
        assert!(!named("standard::pay"));
    }

    #[test]
    fn the_first_own_frame_stands_for_the_access() {
        let stack = [frame("/lib/libc.so.6", ""), frame("/w/bank", "/w/bank.c")];
        assert_eq!(own_frame(&stack), Some(1));
        assert_eq!(own_frame(&stack[..1]), None);
    }
}

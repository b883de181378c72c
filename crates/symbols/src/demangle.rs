//! Linker names into names people write, in two forms.
//!
//! [`display`] is for reports: `Counter::bump(int)`, `demo::worker::{{closure}}`. [`path`] is for
//! comparing with what hook files and command lines say: generic arguments, parameters, return
//! types and hash suffixes are gone, and `<T as Trait>::method` is `T::method`, so that
//! `std::sync::poison::mutex::Mutex<i32>::lock`, `<std::sync::poison::mutex::Mutex<i32>>::lock`
//! and the pattern `std::sync::poison::mutex::Mutex::lock` are all the same.

use cpp_demangle::{DemangleOptions, ParseOptions};
use raddle_model::demangled;

/// Types nested deeper than this are shown mangled; the demangler would go on for megabytes.
const RECURSION: u32 = 192;

/// The name for reports. What is not mangled is returned as it is.
pub fn display(name: &str) -> String {
    demangle(name, DemangleOptions::new().no_return_type()).unwrap_or_else(|| name.to_owned())
}

/// The name for comparing, of a linker name; none if it is not mangled.
pub fn path(name: &str) -> Option<String> {
    demangle(name, DemangleOptions::new().no_params().no_return_type()).map(|text| normalise(&text))
}

/// The part of a function that the compiler split off or changed the arguments of (`f.cold`,
/// `f.isra.0`): it has the function's name and is not the function.
pub fn is_partial(name: &str) -> bool {
    ["cold", "part", "isra", "constprop"]
        .iter()
        .any(|kind| name.split('.').skip(1).any(|piece| piece == *kind))
}

/// A written-out name without generic arguments, parameters and other decoration.
pub fn normalise(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name.split(" [clone").next().unwrap_or(name).trim();
    while let Some(c) = rest.chars().next() {
        if let Some(operator) = operator_at(rest, &out) {
            out.push_str(operator);
            rest = &rest[operator.len()..];
            continue;
        }
        let closing = match c {
            '<' => demangled::closing(rest, '<', '>'),
            '[' if rest.starts_with("[abi:") => demangled::closing(rest, '[', ']'),
            _ => None,
        };
        match closing {
            // `<T as Trait>::method` and `<T>::method`: the type is the path.
            Some(end) if out.is_empty() && c == '<' => {
                let inner = &rest[1..end - 1];
                let subject = split_as(inner).unwrap_or(inner);
                out.push_str(&normalise(subject));
                rest = &rest[end..];
            }
            // Generic arguments, `::<impl Trait for T>::`, `[abi:cxx11]`.
            Some(end) => {
                rest = &rest[end..];
                if out.ends_with("::") {
                    out.truncate(out.len() - 2);
                }
            }
            // `{lambda(int)#1}`, `{{closure}}`: a component of its own.
            None if c == '{' => {
                let end = demangled::closing(rest, '{', '}').unwrap_or(rest.len());
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            None if c == '(' && !rest.starts_with("(anonymous namespace)") => {
                // Parameters end the name, unless a local entity of the function follows.
                let Some(end) = demangled::closing(rest, '(', ')') else { break };
                let after = rest[end..].trim_start_matches(" const");
                if !after.starts_with("::") {
                    break;
                }
                rest = after;
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out.trim().to_owned()
}

/// The last component of a path: `lock` of `std::mutex::lock`.
pub fn last_component(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

fn demangle(name: &str, options: DemangleOptions) -> Option<String> {
    // Link-time optimisation numbers the functions it makes visible; they are still themselves.
    let name = name.split_once(".llvm.").map_or(name, |(name, _)| name);
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // The alternate form leaves the hash away.
        return Some(format!("{rust:#}"));
    }
    if !name.starts_with("_Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(RECURSION);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parse).ok()?;
    symbol.demangle_with_options(&options.recursion_limit(RECURSION)).ok()
}

/// `T` of `T as Trait`, not looking inside brackets.
fn split_as(text: &str) -> Option<&str> {
    let mut depth = 0i32;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if previous == '-' => {}
            '>' | ')' | ']' => depth -= 1,
            ' ' if depth == 0 && text[at..].starts_with(" as ") => return Some(&text[..at]),
            _ => {}
        }
        previous = c;
    }
    None
}

/// `operator<`, `operator->`, `operator()` …, where one begins.
fn operator_at<'a>(rest: &'a str, before: &str) -> Option<&'a str> {
    let begins = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    begins.then(|| demangled::operator(rest))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linker_names_become_readable() {
        let cases = [
            ("_ZN7Counter4bumpEi", "Counter::bump(int)"),
            (
                "_ZNKSt6atomicIiE4loadESt12memory_order",
                "std::atomic<int>::load(std::memory_order) const",
            ),
            ("_ZN4demo7COUNTER17h0123456789abcdefE", "demo::COUNTER"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("main", "main"),
            ("_ZN3foo3barEv.llvm.12345", "foo::bar()"),
        ];
        for (name, expected) in cases {
            assert_eq!(display(name), expected, "{name}");
        }
    }

    #[test]
    fn paths_forget_what_hook_files_do_not_say() {
        let cases = [
            ("std::sync::poison::mutex::Mutex<i32>::lock", "std::sync::poison::mutex::Mutex::lock"),
            (
                "<std::sync::poison::mutex::Mutex<i32>>::lock",
                "std::sync::poison::mutex::Mutex::lock",
            ),
            ("<a::Guard<T> as core::ops::drop::Drop>::drop", "a::Guard::drop"),
            ("core::ptr::mut_ptr::<impl *mut T>::add", "core::ptr::mut_ptr::add"),
            ("std::atomic<std::pair<int, A<3>>>::load", "std::atomic::load"),
            ("std::atomic<int>::operator++(int)", "std::atomic::operator++"),
            ("A::operator<<int>(int)", "A::operator<<int>"),
            ("A::operator-><B>()", "A::operator->"),
            ("A::operator()(int) const", "A::operator()"),
            ("A::operator bool() const", "A::operator bool"),
            ("(anonymous namespace)::run(int)", "(anonymous namespace)::run"),
            ("f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda(int)#1}::operator()"),
            ("std::string::size[abi:cxx11]() const", "std::string::size"),
            ("a::b::{{closure}}", "a::b::{{closure}}"),
            ("<fn(i32) -> A<u8> as X>::call", "fn::call"),
            ("x<", "x<"),
            ("", ""),
        ];
        for (name, expected) in cases {
            assert_eq!(normalise(name), expected, "{name}");
        }
        assert_eq!(path("_ZNSt6atomicIiE5storeEiSt12memory_order").unwrap(), "std::atomic::store");
        assert_eq!(path("pthread_mutex_lock"), None);
    }

    #[test]
    fn split_off_parts_are_known() {
        assert!(is_partial("f.cold") && is_partial("_Z1fv.part.0") && is_partial("f.isra.0.cold"));
        assert!(!is_partial("f") && !is_partial("f.avx2.0") && !is_partial("f.llvm.1"));
    }
}

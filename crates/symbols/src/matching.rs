//! Which of many name patterns a symbol matches: a hook's `functions` and `inlined`.
//!
//! Most patterns are plain names and are found in a hash table. A path (`std::mutex::lock`) is
//! compared with the demangled symbol; demangling is dear, so it is tried only on symbols in which
//! some path's most telling word occurs literally, as both manglings keep identifiers readable.
//! Where several hooks match, the later one holds: that is how hook files override.

use crate::demangle;
use memchr::memmem::Finder;
use raddle_model::Hook;
use std::collections::HashMap;

/// The patterns of a hook table, ready for comparing. Values are indices in the table.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    names: HashMap<String, u32>,
    globs: Vec<(Glob, u32)>,
    paths: HashMap<String, u32>,
    path_globs: Vec<(Glob, u32)>,
    /// A mangled symbol that contains none of these matches no path. Empty: no such filter.
    words: Vec<Finder<'static>>,
    unfiltered: bool,
}

impl Matcher {
    /// Patterns for linker names; those with `::` are paths.
    pub fn functions(hooks: &[Hook]) -> Matcher {
        let mut matcher = Matcher::default();
        for (index, hook) in (0..).zip(hooks) {
            for pattern in &hook.functions {
                if pattern.contains("::") {
                    matcher.add_path(pattern, index);
                } else {
                    matcher.add_name(pattern, index);
                }
            }
        }
        matcher
    }

    /// Patterns for inlined functions: all are paths, that of a C function being its name.
    pub fn inlined(hooks: &[Hook]) -> Matcher {
        let mut matcher = Matcher::default();
        for (index, hook) in (0..).zip(hooks) {
            for pattern in &hook.inlined {
                matcher.add_path(pattern, index);
            }
        }
        matcher
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
            && self.globs.is_empty()
            && self.paths.is_empty()
            && self.path_globs.is_empty()
    }

    /// Could a function of a C program match?
    pub fn has_plain_names(&self) -> bool {
        let plain_glob = |glob: &Glob| glob.first.is_empty() || !glob.contains("::");
        !self.names.is_empty()
            || !self.globs.is_empty()
            || self.paths.keys().any(|pattern| !pattern.contains("::"))
            || self.path_globs.iter().any(|(glob, _)| plain_glob(glob))
    }

    /// The hook for a linker name, mangled or not.
    pub fn symbol(&self, name: &str) -> Option<u32> {
        let plain = lookup(&self.names, &self.globs, name);
        let mangled = name.starts_with("_Z") || name.starts_with("_R");
        if !mangled {
            return plain.max(self.path(name));
        }
        let telling = || self.words.iter().any(|word| word.find(name.as_bytes()).is_some());
        let path = (self.unfiltered || telling()).then(|| demangle::path(name)).flatten();
        plain.max(path.and_then(|path| self.path(&path)))
    }

    /// The hook for a path as [`demangle::normalise`] writes it.
    pub fn path(&self, path: &str) -> Option<u32> {
        lookup(&self.paths, &self.path_globs, path)
    }

    fn add_name(&mut self, pattern: &str, index: u32) {
        if pattern.contains('*') {
            self.globs.push((Glob::new(pattern), index));
        } else {
            self.names.insert(pattern.to_owned(), index);
        }
    }

    fn add_path(&mut self, pattern: &str, index: u32) {
        let path = demangle::normalise(pattern);
        match telling_word(&path) {
            Some(word) if self.words.iter().any(|known| known.needle() == word.as_bytes()) => {}
            Some(word) => self.words.push(Finder::new(word.as_bytes()).into_owned()),
            None => self.unfiltered = true,
        }
        if path.contains('*') {
            self.path_globs.push((Glob::new(&path), index));
        } else {
            self.paths.insert(path, index);
        }
    }
}

fn lookup(exact: &HashMap<String, u32>, globs: &[(Glob, u32)], name: &str) -> Option<u32> {
    let matching = globs.iter().filter(|(glob, _)| glob.matches(name)).map(|(_, index)| *index);
    exact.get(name).copied().max(matching.max())
}

/// The longest word of a path that mangling keeps.
fn telling_word(path: &str) -> Option<&str> {
    // C++ mangling abbreviates some names of its library.
    let abbreviated = |word: &str| {
        word == "std" || word == "allocator" || word.ends_with("string") || word.ends_with("stream")
    };
    path.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.len() > 1 && !abbreviated(word) && !word.starts_with("operator"))
        .max_by_key(|word| word.len())
}

/// A pattern in which `*` stands for any run of characters.
#[derive(Debug)]
pub(crate) struct Glob {
    /// Up to the first `*`.
    first: String,
    /// Between the others.
    middle: Vec<String>,
    /// After the last, if there is any.
    last: Option<String>,
}

impl Glob {
    pub fn new(pattern: &str) -> Glob {
        let mut pieces = pattern.split('*').map(str::to_owned);
        let first = pieces.next().unwrap_or_default();
        let mut middle: Vec<String> = pieces.collect();
        let last = middle.pop();
        Glob { first, middle, last }
    }

    pub fn matches(&self, text: &str) -> bool {
        let Some(mut rest) = text.strip_prefix(&*self.first) else { return false };
        let Some(last) = &self.last else { return rest.is_empty() };
        for piece in &self.middle {
            let Some(at) = rest.find(&**piece) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(&**last)
    }

    fn contains(&self, text: &str) -> bool {
        let rest = self.middle.iter().chain(&self.last);
        self.first.contains(text) || rest.into_iter().any(|piece| piece.contains(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::{Role, Success};

    fn hook(functions: &[&str], inlined: &[&str]) -> Hook {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Hook {
            library: "test".into(),
            functions: owned(functions),
            inlined: owned(inlined),
            role: Role::Function,
            success: Success::Always,
            opaque: false,
            callback: None,
            arguments: vec![],
        }
    }

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("*", "", true),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("*lock*", "unlocked", true),
            ("a*a", "a", false),
            ("a*b*b", "ab", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_later_hook_holds() {
        let hooks = [
            hook(&["pthread_mutex_lock", "__strlen_*"], &[]),
            hook(&["std::*::Mutex::lock", "std::mutex::lock"], &["std::sys::*::Mutex<T>::lock"]),
            hook(&["pthread_mutex_*"], &["spin_lock"]),
        ];
        let functions = Matcher::functions(&hooks);
        assert_eq!(functions.symbol("pthread_mutex_lock"), Some(2));
        assert_eq!(functions.symbol("__strlen_avx2"), Some(0));
        assert_eq!(functions.symbol("strlen"), None);
        assert_eq!(functions.symbol("_ZNSt5mutex4lockEv"), Some(1));
        let rust = "_ZN3std4sync6poison5mutex14Mutex$LT$T$GT$4lock17h0123456789abcdefE";
        assert_eq!(functions.symbol(rust), Some(1));

        let inlined = Matcher::inlined(&hooks);
        assert_eq!(inlined.path("std::sys::sync::mutex::futex::Mutex::lock"), Some(1));
        assert_eq!(inlined.symbol("spin_lock"), Some(2));
        assert_eq!(inlined.symbol("_Z9spin_lockPi"), Some(2));
        assert!(inlined.has_plain_names() && !Matcher::inlined(&hooks[..2]).has_plain_names());
    }
}

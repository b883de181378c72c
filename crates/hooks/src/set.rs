//! All hooks of an execution: files merged, later ones winning.
//!
//! A hook table is what module facts refer to by index, so its [digest](HookSet::digest) is part of
//! the key under which they are kept.

use crate::{HookError, HookFile};
use raddle_model::Hook;
use std::collections::HashSet;

/// The hook table. Where several hooks match a function (one by a pattern), the later one holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSet {
    /// In the order of the files given to [`merge`].
    pub hooks: Vec<Hook>,
    /// The modules that are some library's own, each once.
    pub runtime: Vec<String>,
    /// The modules that no detector looks into, each once.
    pub private: Vec<String>,
    /// The functions, wherever they are, that no detector looks into, each once.
    pub linked: Vec<String>,
}

/// Merges hook files: a name in a later file takes that name away from the earlier ones, so a
/// user's file wins over a shipped one. `functions` and `inlined` are told apart.
///
/// Fails only on files that were not made by [`parse`](crate::parse), when one gives a function two
/// meanings.
pub fn merge(files: Vec<HookFile>) -> Result<HookSet, HookError> {
    let mut set = HookSet::default();
    for file in files {
        let functions = names(&file, |hook| &hook.functions)?;
        let inlined = names(&file, |hook| &hook.inlined)?;
        for hook in &mut set.hooks {
            hook.functions.retain(|name| !functions.contains(name));
            hook.inlined.retain(|name| !inlined.contains(name));
        }
        set.hooks.retain(|hook| !hook.functions.is_empty() || !hook.inlined.is_empty());
        set.hooks.extend(file.hooks);
        for (all, more) in [
            (&mut set.runtime, file.runtime),
            (&mut set.private, file.private),
            (&mut set.linked, file.linked),
        ] {
            for name in more {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        }
    }
    Ok(set)
}

impl HookSet {
    /// A number that is the same for equal tables, in every process and on every machine: part of
    /// the key under which what was made with a table is kept.
    pub fn digest(&self) -> u64 {
        // Writing to memory cannot fail, and hooks hold only plain data.
        let bytes =
            postcard::to_allocvec(&(&self.hooks, &self.runtime, &self.linked)).unwrap_or_default();
        fnv1a(&bytes)
    }
}

/// All names on one side of a file's hooks.
fn names(file: &HookFile, side: fn(&Hook) -> &Vec<String>) -> Result<HashSet<String>, HookError> {
    let mut seen = HashSet::new();
    for name in file.hooks.iter().flat_map(side) {
        if !seen.insert(name.clone()) {
            return Err(HookError {
                file: file.library.clone(),
                position: None,
                message: format!("\"{name}\" is hooked twice"),
                expected: "each function once in a file".to_owned(),
            });
        }
    }
    Ok(seen)
}

/// Fowler, Noll and Vo's hash, 64 bits, variant 1a.
fn fnv1a(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn file(library: &str, hooks: &[(&str, &str)]) -> HookFile {
        let mut text =
            format!("[library]\nname = \"{library}\"\nruntime = [\"lib{library}.so\"]\n");
        for (names, role) in hooks {
            text += &format!("[[hook]]\n{names}\nrole = \"{role}\"\nobject = \"arg1\"\n");
        }
        parse(&text, library).unwrap()
    }

    #[test]
    fn a_later_file_takes_names_away_from_earlier_ones() {
        let shipped = file(
            "a",
            &[
                ("functions = [\"lock\", \"lock_it\"]", "lock.acquire"),
                ("functions = [\"unlock\"]", "lock.release"),
            ],
        );
        let users =
            file("b", &[("functions = [\"unlock\"]\ninlined = [\"lock\"]", "lock.release")]);
        let set = merge(vec![shipped, users]).unwrap();
        let table: Vec<_> =
            set.hooks.iter().map(|h| (&*h.library, h.functions.join(" "))).collect();
        assert_eq!(table, [("a", "lock lock_it".into()), ("b", "unlock".into())]);
        assert_eq!(set.runtime, ["liba.so", "libb.so"]);
    }

    #[test]
    fn one_file_cannot_say_two_things() {
        let mut twice = file("a", &[("functions = [\"lock\"]", "lock.acquire")]);
        twice.hooks.push(twice.hooks[0].clone());
        assert_eq!(
            merge(vec![twice]).unwrap_err().to_string(),
            "a: \"lock\" is hooked twice; expected each function once in a file"
        );
    }

    #[test]
    fn the_digest_depends_on_the_content_only() {
        let one = || merge(vec![file("a", &[("functions = [\"f\"]", "lock.acquire")])]).unwrap();
        let other = merge(vec![file("a", &[("functions = [\"f\"]", "lock.release")])]).unwrap();
        assert_eq!(one().digest(), one().digest());
        assert_ne!(one().digest(), other.digest());
        // Fixed: it must not change from one run of the program to the next.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

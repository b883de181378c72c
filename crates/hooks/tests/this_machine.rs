//! The shipped files against the libraries of the machine at hand, where it has them: names exist,
//! and no two hooks meet at one address (as `pthread_spin_init` and `pthread_spin_unlock` would).

use object::{Object, ObjectSymbol};
use raddle_hooks::{merge, shipped};
use std::collections::{BTreeMap, BTreeSet};

/// Exported functions of the first of these files that exists.
fn exports(paths: &[&str]) -> Option<Vec<(String, u64)>> {
    let bytes = paths.iter().find_map(|path| std::fs::read(path).ok())?;
    let file = object::File::parse(&*bytes).ok()?;
    let functions = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    let named = functions.filter_map(|s| Some((s.name().ok()?.to_owned(), s.address())));
    Some(named.collect())
}

fn libc() -> Option<Vec<(String, u64)>> {
    exports(&["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"])
}

fn libgomp() -> Option<Vec<(String, u64)>> {
    exports(&["/usr/lib/x86_64-linux-gnu/libgomp.so.1", "/usr/lib64/libgomp.so.1"])
}

fn libstdcxx() -> Option<Vec<(String, u64)>> {
    exports(&["/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6"])
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).any(|at| tail.is_char_boundary(at) && matches(rest, &tail[at..]))
        }),
    }
}

#[test]
fn no_two_hooks_meet_at_one_address() {
    let hooks = merge(shipped()).unwrap().hooks;
    for symbols in [libc(), libgomp(), libstdcxx()].into_iter().flatten() {
        let mut at: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        for (name, address) in &symbols {
            for (index, hook) in hooks.iter().enumerate() {
                if hook.functions.iter().any(|pattern| matches(pattern, name)) {
                    at.entry(*address).or_default().insert(index);
                }
            }
        }
        assert!(!at.is_empty(), "nothing of this library is hooked");
        for (address, indices) in at {
            let names: Vec<&str> = indices.iter().map(|index| hooks[*index].name()).collect();
            assert_eq!(names.len(), 1, "{names:?} at {address:#x}");
        }
    }
}

#[test]
fn what_pthreads_exports_is_hooked() {
    let Some(symbols) = libc() else { return };
    let hooks = merge(shipped()).unwrap().hooks;
    // These synchronise nothing that another thread waits for, or only ask.
    let plain = [
        "attr",
        "_key_",
        "specific",
        "_self",
        "_equal",
        "_get",
        "_set",
        "_kill",
        "_sig",
        "_yield",
        "_atfork",
        "_testcancel",
        "_consistent",
        "_cleanup",
        "_cond_init",
        "_cond_destroy",
        "_barrier_destroy",
        "_spin_init",
        "register_cancel",
        "_unwind",
    ];
    for (name, _) in symbols {
        let pthread = name.starts_with("pthread_") && !plain.iter().any(|part| name.contains(part));
        if pthread {
            let hooked = hooks.iter().any(|hook| hook.functions.contains(&name));
            assert!(hooked, "{name}");
        }
    }
}

//! Facts kept in a directory.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Workshop, hook};
use raddle_symbols::{
    DebugSources, FactsRequest, Symboliser, SymboliserOptions, cached_facts_from, module_facts_from,
};
use raddle_wire::facts::FactsView;
use std::path::PathBuf;

const TEXT: &str = "int take(void) { return 1; } int main(void) { return take(); }";

#[test]
fn facts_are_made_once_and_mended_when_damaged() {
    let shop = Workshop::new();
    let binary = shop.compile("p.c", TEXT, &["-g"]);
    let hooks = [hook(&["take"], &[])];
    let request = FactsRequest { hooks: &hooks, runtime: &[], linked: &[] };
    let sources = DebugSources::none();
    let cache = shop.path("a/cache");
    let get = |digest| cached_facts_from(&binary, &request, digest, &cache, &sources).unwrap();

    let file = get(1);
    let expected = module_facts_from(&binary, &request, &sources).unwrap().encode();
    assert_eq!(std::fs::read(&file).unwrap(), expected);
    assert_eq!(FactsView::new(&expected).unwrap().hooks_at(expected_entry(&expected)).count(), 1);

    let made = std::fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(get(1), file);
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), made, "made again");
    assert_ne!(get(2), file, "other hooks, other facts");

    for damage in [&expected[..expected.len() - 1], b"", b"something else"] {
        std::fs::write(&file, damage).unwrap();
        assert_eq!(get(1), file);
        assert_eq!(std::fs::read(&file).unwrap(), expected);
    }
    let left: Vec<PathBuf> =
        std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 2, "nothing temporary stays: {left:?}");
}

/// The offset in the first row of an encoded table.
fn expected_entry(encoded: &[u8]) -> u64 {
    u64::from_le_bytes(*encoded[44..].first_chunk().unwrap())
}

#[test]
fn what_facts_depend_on_makes_another_file() {
    let shop = Workshop::new();
    let cache = shop.path("cache");
    let hooks = [hook(&["take"], &[])];
    let request = FactsRequest { hooks: &hooks, runtime: &[], linked: &[] };
    let get = |binary: &PathBuf| {
        cached_facts_from(binary, &request, 7, &cache, &DebugSources::none()).unwrap()
    };
    // The same build-id with and without names, with and without a debug file.
    let binary = shop.compile("p.c", TEXT, &["-g"]);
    let whole = get(&binary);
    let debug = shop.path("p.debug");
    shop.split_debug(&binary, &debug);
    let beside = get(&binary);
    std::fs::remove_file(&debug).unwrap();
    let stripped = get(&binary);
    assert!(whole != beside && beside != stripped && whole != stripped);

    // No build-id: the content decides.
    let anonymous = shop.compile("p.c", TEXT, &["-Wl,--build-id=none"]);
    let first = get(&anonymous);
    assert_eq!(get(&anonymous), first);
    let other = shop.compile("p.c", &TEXT.replace('1', "2"), &["-Wl,--build-id=none"]);
    assert_ne!(get(&other), first);
}

#[test]
fn a_cache_that_cannot_be_written_is_an_error() {
    let shop = Workshop::new();
    let binary = shop.compile("p.c", TEXT, &[]);
    let file = shop.path("file");
    std::fs::write(&file, "").unwrap();
    let request = FactsRequest { hooks: &[], runtime: &[], linked: &[] };
    let error = cached_facts_from(&binary, &request, 7, &file, &DebugSources::none()).unwrap_err();
    assert!(error.to_string().contains("cannot write the facts cache"), "{error}");
}

#[test]
fn names_are_read_once_and_a_new_build_has_its_own() {
    let shop = Workshop::new();
    let cache = shop.path("names");
    let symboliser = || {
        let (sources, cache) = (DebugSources::none(), Some(cache.clone()));
        Symboliser::new(SymboliserOptions { sources, cache })
    };
    let binary = shop.compile("p.c", TEXT, &["-g"]);
    let offset = common::address(&binary, "take");
    let fresh = symboliser().frames(&binary, offset);
    assert_eq!(fresh[0].function.as_deref(), Some("take"));
    let file = std::fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();

    // What is in the file is believed: no debug information is read for it.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("take", "kept")).unwrap();
    assert_eq!(symboliser().frames(&binary, offset)[0].function.as_deref(), Some("kept"));

    // Damaged, it is as good as none; another build is another module.
    std::fs::write(&file, "{").unwrap();
    assert_eq!(symboliser().frames(&binary, offset), fresh);
    let binary = shop.compile("p.c", &TEXT.replace("take", "make"), &["-g"]);
    let offset = common::address(&binary, "make");
    assert_eq!(symboliser().frames(&binary, offset)[0].function.as_deref(), Some("make"));
}

//! Names of data: variables, elements, members.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Workshop, address, line_of, run, symboliser};
use raddle_symbols::Variable;
use std::path::Path;
use std::process::Command;

const C: &str = r#"
#include <pthread.h>
struct inner { short a, b; };
struct node { int key; struct node *next; union { float f; int i; } u; struct inner parts[2]; unsigned low : 3, high : 5; };
struct node table[10]; /* the table */
int grid[3][4];
int plain;
const char *const text = "x";
static int (*callback)(void *, int);
volatile long ticks;
_Atomic int ready;
pthread_mutex_t lock;
struct { int x, y; } point;
char *names[4];
enum colour { RED, GREEN } colour;
int grow(int n) { static int calls; /* the static */ calls += n; return calls; }
int main(int argc, char **argv) {
    table[argc].next = &table[0]; grid[argc][1] = argc; callback = 0; ticks++; ready = 1; names[0] = argv[0];
    pthread_mutex_lock(&lock); point.y = 2; colour = GREEN;
    return grow(argc) + plain + (callback != 0) + *text;
}
"#;

fn at(binary: &Path, symbol: &str, within: u64) -> Variable {
    let found = symboliser().variable(binary, address(binary, symbol) + within);
    found.unwrap_or_else(|| panic!("{symbol}+{within:#x} in {}", binary.display()))
}

#[test]
fn elements_and_members_of_c_variables() {
    let shop = Workshop::new();
    for options in [&["-g"][..], &["-g", "-O2"], &["-gdwarf-4"], &["-g", "-gz"]] {
        let binary = shop.compile("v.c", C, options);
        let node = 32; // bytes: key, padding, next, u, parts[2], bits, padding
        for (symbol, within, expected) in [
            ("table", 3 * node + 8, "table[3].next"),
            ("table", 0, "table[0].key"),
            ("table", 4, "table[0]+0x4"), // padding
            ("table", 2 * node + 16, "table[2].u.f"),
            ("table", 9 * node + 20, "table[9].parts[0].a"),
            ("table", 9 * node + 26, "table[9].parts[1].b"),
            ("table", 9 * node + 28, "table[9]+0x1c"), // bit fields
            ("table", node + 10, "table[1].next+0x2"),
            ("grid", 4 * (4 * 2 + 3), "grid[2][3]"),
            ("plain", 0, "plain"),
            ("plain", 2, "plain+0x2"),
            ("lock", 0, "lock"),
            ("lock", 8, "lock+0x8"),
            ("point", 4, "point.y"),
            ("names", 24, "names[3]"),
        ] {
            let variable = at(&binary, symbol, within);
            assert_eq!(variable.name, expected, "{options:?}");
            assert_eq!(variable.root, symbol);
            assert_eq!(variable.within, within);
            assert_eq!(variable.offset, address(&binary, symbol));
        }
        let table = at(&binary, "table", 0);
        assert_eq!(table.size, 320);
        assert_eq!(table.line, Some(line_of(C, "the table")));
        assert!(table.file.unwrap().ends_with("v.c"));
        assert_eq!(symboliser().variable(&binary, address(&binary, "main")), None);
    }
}

#[test]
fn types_are_written_as_in_c() {
    let shop = Workshop::new();
    let binary = shop.compile("v.c", C, &["-g"]);
    for (symbol, expected) in [
        ("table", "struct node[10]"),
        ("grid", "int[3][4]"),
        ("plain", "int"),
        ("text", "const char *const"),
        ("callback", "int (*)(void *, int)"),
        ("ticks", "volatile long int"),
        ("ready", "_Atomic int"),
        ("lock", "pthread_mutex_t"),
        ("names", "char *[4]"),
        ("colour", "enum colour"),
        ("point", "struct (anonymous)"),
    ] {
        assert_eq!(at(&binary, symbol, 0).type_name.as_deref(), Some(expected), "{symbol}");
    }
}

#[test]
fn statics_of_functions_go_by_their_own_name() {
    let shop = Workshop::new();
    let binary = shop.compile("v.c", C, &["-g"]);
    let listing = run(Command::new("nm").arg(&binary));
    let symbol = listing.split_whitespace().find(|word| word.starts_with("calls.")).unwrap();
    let variable = at(&binary, symbol, 0);
    assert_eq!(variable.name, "calls");
    assert_eq!(variable.line, Some(line_of(C, "the static")));
}

#[test]
fn without_debug_information_the_symbol_table_is_left() {
    let shop = Workshop::new();
    let binary = shop.compile("v.c", C, &[]);
    let variable = at(&binary, "table", 0x10);
    assert_eq!(variable.name, "table+0x10");
    assert_eq!((variable.root.as_str(), variable.within, variable.size), ("table", 0x10, 320));
    assert_eq!(variable.type_name, None);
    assert_eq!(at(&binary, "plain", 0).name, "plain");

    let debug = shop.path("v.debug");
    let binary = shop.compile("v.c", C, &["-g", "-O1"]);
    let place = address(&binary, "table") + 8;
    shop.split_debug(&binary, &debug);
    assert_eq!(symboliser().variable(&binary, place).unwrap().name, "table[0].next");
    std::fs::remove_file(debug).unwrap();
    assert_eq!(symboliser().variable(&binary, place), None);
}

#[test]
fn a_program_at_a_fixed_address() {
    let shop = Workshop::new();
    let binary = shop.compile("v.c", C, &["-g", "-static"]);
    let base = 0x400000;
    let place = address(&binary, "table") + 8 - base;
    let variable = symboliser().variable(&binary, place).unwrap();
    assert_eq!((variable.name.as_str(), variable.offset), ("table[0].next", place - 8));
}

#[test]
fn cpp_variables() {
    let text = r#"
#include <array>
#include <atomic>
#include <mutex>
namespace ns {
struct Base { long id; };
struct Derived : Base { int value; std::atomic<int> hits; };
Derived derived;
std::array<int, 5> numbers;
template <typename T> struct Pool { static T shared; };
template <typename T> T Pool<T>::shared;
}
namespace { int hidden; }
std::mutex lock;
std::atomic<int> *pointer;
int main() { ns::derived.value = 1; ns::numbers[2] = 2; ns::Pool<long>::shared = 3; hidden++; lock.lock(); pointer = &ns::derived.hits; return hidden; }
"#;
    let shop = Workshop::new();
    for options in [&["-g"][..], &["-g", "-O2"]] {
        let binary = shop.compile("v.cc", text, options);
        for (symbol, within, expected, type_name) in [
            ("_ZN2ns7derivedE", 0, "ns::derived.id", "ns::Derived"),
            ("_ZN2ns7derivedE", 8, "ns::derived.value", "ns::Derived"),
            ("_ZN2ns7derivedE", 12, "ns::derived.hits", "ns::Derived"),
            ("_ZN2ns7numbersE", 8, "ns::numbers[2]", "std::array<int, 5>"),
            ("_ZN2ns4PoolIlE6sharedE", 0, "ns::Pool<long>::shared", "long"),
            ("_ZN12_GLOBAL__N_16hiddenE", 0, "(anonymous namespace)::hidden", "int"),
            ("lock", 0, "lock", "std::mutex"),
            ("lock", 8, "lock+0x8", "std::mutex"),
            ("pointer", 0, "pointer", "std::atomic<int> *"),
        ] {
            let variable = at(&binary, symbol, within);
            assert_eq!(variable.name, expected, "{options:?}");
            let found = variable.type_name.unwrap();
            assert!(found.starts_with(type_name), "{symbol}: {found}");
        }
    }
}

#[test]
fn rust_statics() {
    let text = r#"
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
pub mod state {
    pub struct Pair { pub left: u32, pub right: (u16, u16) }
    pub static COUNTER: super::AtomicUsize = super::AtomicUsize::new(0);
    pub static PAIRS: super::Mutex<[Pair; 3]> = super::Mutex::new([const { Pair { left: 1, right: (2, 3) } }; 3]);
}
fn main() {
    state::COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut pairs = state::PAIRS.lock().unwrap();
    pairs[2].right.1 = std::env::args().count() as u16;
    println!("{} {} {}", pairs[2].right.1, pairs[0].left, pairs[1].right.0);
}
"#;
    let shop = Workshop::new();
    let binary = shop.compile("v.rs", text, &["-g"]);
    let listing = run(Command::new("nm").arg(&binary));
    let find = |part: &str| {
        let line = listing.lines().find(|line| line.contains(part)).unwrap();
        u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap()
    };
    let mut symbols = symboliser();
    let counter = symbols.variable(&binary, find("5state7COUNTER")).unwrap();
    assert_eq!(counter.name, "v::state::COUNTER");
    assert_eq!(counter.line, Some(line_of(text, "static COUNTER")));
    assert_eq!(counter.size, 8);
    let pairs = find("5state5PAIRS");
    let size = symbols.variable(&binary, pairs).unwrap().size;
    let names: Vec<String> =
        (0..size).filter_map(|n| Some(symbols.variable(&binary, pairs + n)?.name)).collect();
    let found = |name: &str| names.iter().any(|known| known == name);
    assert!(found("v::state::PAIRS.data[2].left"), "{names:?}");
    assert!(found("v::state::PAIRS.data[1].right.1"), "{names:?}");
    assert!(found("v::state::PAIRS.inner.futex"), "{names:?}");
}

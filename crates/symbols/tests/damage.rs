//! Damaged binaries: whatever the bytes, there is an answer, and soon.
//!
//! A small generator flips bytes all over a program with debug information. What comes back does
//! not matter; that something does, without panic, is the point.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Workshop, hook};
use raddle_symbols::{
    DebugSources, FactsRequest, Symboliser, SymboliserOptions, module_facts_from,
};

const TEXT: &str = r#"
#include <atomic>
namespace ns { struct Node { int key; Node *next; double w[2][3]; }; Node table[10]; std::atomic<int> ready; }
static inline __attribute__((always_inline)) int twice(int n) { return __sync_fetch_and_add(&ns::table[n].key, n); }
extern "C" int chosen(int n) { return n; }
extern "C" { static int (*choose(void))(int) { return chosen; } }
int work(int) __attribute__((ifunc("choose")));
int main(int argc, char **argv) { ns::ready = twice(argc); return work(1); }
"#;

/// A few seconds' worth; `RADDLE_DAMAGE=n` runs more (60,000 were, with overflow checks).
const ROUNDS: u64 = 150;

#[test]
fn flipped_bytes_never_panic() {
    let shop = Workshop::new();
    let binary = shop.compile("d.cc", TEXT, &["-g", "-O1"]);
    let good = std::fs::read(&binary).unwrap();
    let hooks = [hook(&["work", "ns::*", "*a*"], &["twice", "std::*::load"])];
    let request = FactsRequest { hooks: &hooks, runtime: &[], linked: &[] };
    let rounds = std::env::var("RADDLE_DAMAGE").ok().and_then(|n| n.parse().ok());
    for round in 0..rounds.unwrap_or(ROUNDS) {
        let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut bytes = good.clone();
        // Everywhere, or close together so that one structure is hit often: the header, the section
        // table at the end, some page of what lies between.
        let page = 4096.min(bytes.len());
        let (start, length) = match random.next() % 4 {
            0 => (0, bytes.len()),
            1 => (0, 1024),
            2 => (bytes.len() - page, page),
            _ => (random.next() as usize % (bytes.len() - page), page),
        };
        for _ in 0..1 + random.next() % 64 {
            bytes[start + random.next() as usize % length] = random.next() as u8;
        }
        if round % 8 == 0 {
            bytes.truncate(random.next() as usize % good.len());
        }
        let path = shop.path("damaged");
        std::fs::write(&path, &bytes).unwrap();
        let _ = module_facts_from(&path, &request, &DebugSources::none());
        let sources = DebugSources::none();
        let mut symbols = Symboliser::new(SymboliserOptions { sources, cache: None });
        for _ in 0..20 {
            let offset = random.next() % 0x6000;
            assert!(!symbols.frames(&path, offset).is_empty());
            symbols.variable(&path, offset);
        }
        symbols.function_ranges(&path, "main");
        symbols.function_ranges(&path, "d.cc:7");
    }
}

/// Xorshift: the same bytes on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

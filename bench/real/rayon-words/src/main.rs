//! Work stealing with rayon: a parallel sort, a map-reduce over words, nested joins, a scope.
//!
//! usage: rayon-words [words]     prints what it counted

use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Mutex;

fn word(number: u64) -> String {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    format!("word{}", mixed % 500)
}

fn sum(values: &[u64]) -> u64 {
    if values.len() < 64 {
        return values.iter().sum();
    }
    let (left, right) = values.split_at(values.len() / 2);
    let (left, right) = rayon::join(|| sum(left), || sum(right));
    left + right
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(5000), |word| word.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(2).build_global()?;
    let mut words: Vec<String> = (0..count).into_par_iter().map(word).collect();
    let counts = words
        .par_iter()
        .fold(HashMap::<&str, u64>::new, |mut counts, word| {
            *counts.entry(word).or_default() += 1;
            counts
        })
        .reduce(HashMap::new, |mut left, right| {
            right.into_iter().for_each(|(word, count)| *left.entry(word).or_default() += count);
            left
        });
    let total: u64 = counts.values().sum();
    let distinct = counts.len();
    words.par_sort_unstable();
    let values: Vec<u64> = (0..count).collect();
    let log = Mutex::new(Vec::new());
    rayon::scope(|scope| {
        for part in values.chunks(values.len() / 4 + 1) {
            let log = &log;
            scope.spawn(move |_| log.lock().unwrap().push(sum(part)));
        }
    });
    let parts: u64 = log.into_inner()?.iter().sum();
    println!("{total} words, {distinct} distinct, first {:?}, sum {parts}", words.first());
    Ok(())
}

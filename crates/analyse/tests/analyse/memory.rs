//! Memory: bytes, ranges, allocation; and the shadow against a map of single bytes.

use crate::dsl::*;
use proptest::prelude::*;
use raddle_analyse::Options;
use raddle_analyse::shadow::Shadow;
use raddle_model::finding::{Certainty::*, Rule};
use raddle_model::{Address, EventKind};
use std::collections::BTreeMap;

#[test]
fn neighbours_never_race() {
    let script = [
        t(1).forks(2),
        t(1).writes(X).sized(1),
        t(2).writes(X + 1).sized(1),
        t(1).writes(X + 8).sized(8),
        t(2).writes(X + 16).sized(8),
    ];
    assert_eq!(run(HYBRID, &script), []);
    assert_eq!(run(SHORT, &script), []);
}

#[test]
fn a_wide_access_overlapping_a_narrow_one_races_at_the_shared_byte() {
    let script =
        [t(1).forks(2), t(1).writes(X + 5).sized(1).at(1), t(2).reads(X + 3).sized(16).at(2)];
    let findings = run_with(HYBRID, Options::default(), &script);
    assert_eq!(places(&findings), [(1, 2, Observed)]);
    assert_eq!(findings[0].address, Address(X + 5));
}

#[test]
fn a_range_is_an_access_to_each_of_its_bytes() {
    let script = [
        t(1).forks(2),
        t(1).clears(X, 1 << 40).at(1),
        t(2).reads(X + (1 << 39)).at(2),
        t(2).reads(X + (1 << 40)).at(3),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

#[test]
fn freeing_is_a_write_that_can_race_with_what_came_before_and_after() {
    let script = [
        t(1).allocates(X, 64),
        t(1).forks(2),
        t(2).reads(X + 8).at(1),
        t(1).frees(X).at(2),
        t(2).reads(X + 8).at(3),
    ];
    let findings = run_with(HYBRID, Options::default(), &script);
    assert_eq!(places(&findings), [(1, 2, Observed), (2, 3, Observed)]);
    assert_eq!(findings[0].rules, [Rule::NoCommonLock, Rule::FreeIsWrite]);
    assert_eq!(run(SHORT, &script), [(1, 2, Observed), (2, 3, Observed)]);
}

#[test]
fn memory_allocated_again_is_new() {
    let script = [
        t(1).forks(2),
        t(1).allocates(X, 64),
        t(1).writes(X),
        t(1).frees(X),
        t(2).allocates(X, 64),
        t(2).writes(X),
    ];
    for detector in [HYBRID, SHORT, LONG] {
        assert_eq!(run(detector, &script), []);
    }
}

#[test]
fn freed_twice_by_two_threads_races() {
    let script = [
        t(1).allocates(X, 8),
        t(1).forks(2),
        t(1).frees(X).at(1),
        t(2).does(EventKind::Free { address: Address(X), size: 8 }).at(2),
    ];
    assert_eq!(run(HYBRID, &script), [(1, 2, Observed)]);
}

#[test]
fn a_block_of_unknown_size_is_left_alone() {
    assert_eq!(run(HYBRID, &[t(1).forks(2), t(2).writes(X), t(1).frees(X)]), []);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The shadow keeps, for each byte, what a map of single bytes would, and no more stretches
    /// than there are changes of value.
    #[test]
    fn the_shadow_is_a_map_of_bytes(changes in prop::collection::vec((0u64..40, 0u64..12, 0u8..4), 0..60)) {
        let mut shadow: Shadow<u8> = Shadow::default();
        let mut bytes: BTreeMap<u64, u8> = BTreeMap::new();
        for (start, length, value) in changes {
            let range = start..start + length;
            if value == 3 {
                shadow.clear(range.clone());
                bytes.retain(|at, _| !range.contains(at));
            } else {
                let mut seen = Vec::new();
                shadow.update(range.clone(), |piece, known| {
                    seen.extend(piece.map(|at| (at, *known)));
                    *known = (*known + value) % 3;
                });
                let expected: Vec<(u64, u8)> =
                    range.clone().map(|at| (at, bytes.get(&at).copied().unwrap_or(0))).collect();
                prop_assert_eq!(seen, expected);
                for at in range {
                    let known = bytes.entry(at).or_default();
                    *known = (*known + value) % 3;
                }
            }
        }
        let of = |at: u64| bytes.get(&at).copied().unwrap_or(0);
        for at in 0..60 {
            prop_assert_eq!(shadow.get(at), of(at));
        }
        let stretches = (0..60u64).filter(|at| of(*at) != 0 && (*at == 0 || of(at - 1) != of(*at)));
        prop_assert!(shadow.len() <= stretches.count());
    }
}

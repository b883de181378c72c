//! The findings of an analyser, one per distinct pair (or, of locks, circle) of places, counted.

use raddle_model::Place;
use raddle_model::finding::Finding;
use std::collections::HashMap;

/// Findings in the order of their first instance.
#[derive(Debug, Default)]
pub struct Findings {
    findings: Vec<Finding>,
    /// Index by places, wherever one begins.
    index: HashMap<Vec<Place>, usize>,
}

impl Findings {
    /// All of them.
    pub fn all(&self) -> &[Finding] {
        &self.findings
    }

    /// Adds what one event gave rise to: `found` may hold the same places several times
    /// (for several of the bytes touched, or several earlier accesses), which counts once.
    pub fn add(&mut self, found: Vec<Finding>) {
        let mut counted: Vec<Vec<Place>> = Vec::new();
        for finding in found {
            let places = places(&finding);
            let again = counted.contains(&places);
            if !again {
                counted.push(places.clone());
            }
            match self.index.get(&places) {
                None => {
                    self.index.insert(places, self.findings.len());
                    self.findings.push(finding);
                }
                Some(&at) => {
                    let known = &mut self.findings[at];
                    let count = known.count + u64::from(!again);
                    if finding.certainty > known.certainty {
                        *known = finding;
                    }
                    known.count = count;
                }
            }
        }
    }
}

/// What tells a finding from others: the places of its accesses, in a fixed order, and, for a cycle of locks,
/// where each lock of it was taken and the next one asked for, from the least on.
fn places(finding: &Finding) -> Vec<Place> {
    let mut places: Vec<Place> = finding.accesses.iter().map(|access| access.place).collect();
    places.sort_unstable();
    let waits = &finding.waits;
    let step = |at: usize| {
        let (wait, before) = (&waits[at], &waits[(at + waits.len() - 1) % waits.len()]);
        let held = wait.holds.iter().find(|held| held.lock == before.wants.lock);
        [held.map_or(wait.wants.place, |held| held.place), wait.wants.place]
    };
    let from = |first: usize| -> Vec<Place> {
        (0..waits.len()).flat_map(|at| step((first + at) % waits.len())).collect()
    };
    places.extend((0..waits.len()).map(from).min().unwrap_or_default());
    places
}

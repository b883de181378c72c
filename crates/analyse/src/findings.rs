//! The findings of an analyser, one per distinct pair of places, counted.

use raddle_model::Place;
use raddle_model::finding::Finding;
use std::collections::HashMap;

/// Findings in the order of their first instance.
#[derive(Debug, Default)]
pub struct Findings {
    findings: Vec<Finding>,
    /// Index by pair of places, whichever came first.
    index: HashMap<(Place, Place), usize>,
}

impl Findings {
    /// All of them.
    pub fn all(&self) -> &[Finding] {
        &self.findings
    }

    /// Adds what one access gave rise to: `found` may hold the same pair of places several times
    /// (for several of the bytes touched, or several earlier accesses), which counts once.
    pub fn add(&mut self, found: Vec<Finding>) {
        let mut counted: Vec<(Place, Place)> = Vec::new();
        for finding in found {
            let Some(pair) = places(&finding) else { continue };
            let again = counted.contains(&pair);
            if !again {
                counted.push(pair);
            }
            match self.index.get(&pair) {
                None => {
                    self.index.insert(pair, self.findings.len());
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

/// The pair of places of a finding, in a fixed order.
fn places(finding: &Finding) -> Option<(Place, Place)> {
    match finding.accesses.as_slice() {
        [a, b] => Some((a.place.min(b.place), a.place.max(b.place))),
        _ => None,
    }
}

//! Findings that were there before: a file of fingerprints, which keep their meaning when the
//! program is rebuilt. What is in it is counted and kept quiet; what is not is new.

use super::schema::{Finding, Report};
use super::text;
use crate::explain::kind_name;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The schema's name and version.
pub const SCHEMA: &str = "raddle-baseline/1";

/// What is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    schema: String,
    findings: Vec<Known>,
}

/// A known finding: its fingerprint, and for people what it was when it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    fingerprint: String,
    kind: String,
    about: String,
}

impl Baseline {
    /// Back from a file.
    pub fn from_json(text: &str) -> Result<Baseline, String> {
        let baseline: Baseline = serde_json::from_str(text)
            .map_err(|error| format!("not a baseline of Raddle, or damaged: {error}"))?;
        match baseline.schema.as_str() {
            SCHEMA => Ok(baseline),
            other => {
                Err(format!("its schema is {other}, and this version of Raddle reads {SCHEMA}"))
            }
        }
    }

    /// As a file: sorted, so that a change of it is a readable difference.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Is it known?
    pub fn knows(&self, finding: &Finding) -> bool {
        self.findings.iter().any(|known| known.fingerprint == finding.fingerprint)
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.findings.len()
    }

    /// Is nothing known?
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Learns the findings of a report; returns how many were new.
    pub fn learn(&mut self, report: &Report) -> usize {
        self.schema = SCHEMA.to_owned();
        let before = self.findings.len();
        for finding in &report.findings {
            if !self.knows(finding) {
                self.findings.push(Known {
                    fingerprint: finding.fingerprint.clone(),
                    kind: kind_name(finding.kind),
                    about: text::news(finding, Path::new(&report.target.cwd)),
                });
            }
        }
        self.findings.sort_by(|a, b| (&a.about, &a.fingerprint).cmp(&(&b.about, &b.fingerprint)));
        self.findings.len() - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;

    #[test]
    fn what_was_learnt_is_known_after_a_rebuild() {
        let mut report = typed::bank();
        let mut baseline = Baseline::default();
        assert_eq!(baseline.learn(&report), 3);
        assert_eq!(baseline.learn(&report), 0);
        let back = Baseline::from_json(&baseline.to_json()).unwrap();
        assert_eq!(back, baseline);
        for finding in &mut report.findings {
            finding.accesses[0].stack[0].line = Some(999);
            assert!(back.knows(finding));
            finding.fingerprint = "0123456789abcdef".into();
            assert!(!back.knows(finding));
        }
    }

    #[test]
    fn what_is_no_baseline_gets_a_sentence() {
        assert!(Baseline::from_json("{}").unwrap_err().starts_with("not a baseline of Raddle"));
        let other = Baseline::from_json(r#"{"schema": "x/2", "findings": []}"#).unwrap_err();
        assert!(other.starts_with("its schema is x/2"), "{other}");
    }
}

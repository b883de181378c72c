//! What a report lists, in one order: findings of the detector, and executions that failed.

use super::schema::{Failure, Finding, Harm, Report};

/// One item of a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Entry<'a> {
    /// Something a detector found.
    Finding(&'a Finding),
    /// An execution that failed.
    Failure(&'a Failure),
}

impl<'a> Entry<'a> {
    /// `R1` or `H1`.
    pub fn id(self) -> &'a str {
        match self {
            Entry::Finding(finding) => &finding.id,
            Entry::Failure(failure) => &failure.id,
        }
    }
}

impl Report {
    /// Everything, the most important first. A finding that made the program fail says why it fails, so it
    /// leads; then come failing executions, whose cause is not known; then all other findings.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let fails = |finding: &&Finding| finding.harm() == Some(Harm::Failure);
        let leading = self.findings.iter().take_while(fails).count();
        let (first, rest) = self.findings.split_at(leading);
        let failures = self.failures.iter().map(Entry::Failure);
        let rest = rest.iter().map(Entry::Finding);
        first.iter().map(Entry::Finding).chain(failures).chain(rest).collect()
    }

    /// The same report of one entry only.
    pub fn only(&self, entry: Entry<'_>) -> Report {
        let (findings, failures) = match entry {
            Entry::Finding(finding) => (vec![finding.clone()], Vec::new()),
            Entry::Failure(failure) => (Vec::new(), vec![failure.clone()]),
        };
        Report { findings, failures, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Confirmation, Effect, typed};

    #[test]
    fn failing_executions_stand_behind_what_explains_a_failure_and_before_all_else() {
        let mut report = typed::failing();
        let ids = |report: &Report| -> Vec<String> {
            report.entries().into_iter().map(|entry| entry.id().to_owned()).collect()
        };
        assert_eq!(ids(&report), ["H1", "H2", "R1", "R2", "R3"]);
        let mut confirm = |effect: &str| {
            let effects =
                vec![Effect { order: 1, effect: effect.into(), count: 1, ..Effect::default() }];
            let confirmation = Confirmation { confirmed: true, effects, ..Confirmation::default() };
            report.findings[0].confirmation = Some(confirmation);
            ids(&report)
        };
        assert_eq!(confirm("other output"), ["H1", "H2", "R1", "R2", "R3"]);
        assert_eq!(confirm("abort"), ["R1", "H1", "H2", "R2", "R3"]);
    }
}

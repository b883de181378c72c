//! One report of many executions: of the tests of a crate, say. The same finding in many of them is
//! one, counted; findings and failing executions are numbered anew.

use super::group;
use super::schema::{Finding, Report, Thread};
use raddle_model::ThreadId;

/// Puts reports together; none if there are none. What was run, threads and outcome are the
/// first's, because a merged report has no single answer; processes tell the threads apart, so the
/// reports must come from different ones or not name any.
pub fn merge(reports: Vec<Report>) -> Option<Report> {
    let mut reports = reports.into_iter();
    let mut merged = reports.next()?;
    let mut all: Vec<Finding> = std::mem::take(&mut merged.findings);
    for (at, report) in reports.enumerate() {
        // Thread numbers begin anew in each execution. One that has the same number, name and creator in
        // both is the same to a reader.
        let (same, others): (Vec<Thread>, Vec<Thread>) =
            report.threads.into_iter().partition(|thread| merged.threads.contains(thread));
        let process = |known: Option<u32>, thread: ThreadId| {
            let is_same = same.iter().any(|same| same.id == thread && same.process == known);
            if is_same { known } else { known.or(Some(at as u32 + 2)) }
        };
        for mut thread in others {
            thread.process = process(thread.process, thread.id);
            merged.threads.push(thread);
        }
        for mut finding in report.findings {
            for access in &mut finding.accesses {
                access.process = process(access.process, access.thread);
            }
            for wait in &mut finding.waits {
                wait.process = process(wait.process, wait.thread);
            }
            if finding.target.is_none() && report.target != merged.target {
                finding.target = Some(report.target.clone());
            }
            all.push(finding);
        }
        for mut failure in report.failures {
            failure.kept = Some(failure.kept().to_owned());
            failure.id = format!("H{}", merged.failures.len() + 1);
            merged.failures.push(failure);
        }
        for module in report.modules {
            if !merged.modules.iter().any(|known| known.path == module.path) {
                merged.modules.push(module);
            }
        }
        let (sum, more) = (&mut merged.summary, report.summary);
        sum.hidden += more.hidden;
        sum.suppressed += more.suppressed;
        sum.known += more.known;
        sum.processes += more.processes;
        sum.threads += more.threads;
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        sum.accesses = add(sum.accesses, more.accesses);
        sum.synchronisations = add(sum.synchronisations, more.synchronisations);
        sum.locks = add(sum.locks, more.locks);
        // A suppression is unused when nobody used it.
        sum.unused_suppressions.retain(|unused| more.unused_suppressions.contains(unused));
        for (known, new) in
            [(&mut sum.without_symbols, more.without_symbols), (&mut sum.warnings, more.warnings)]
        {
            for text in new {
                if !known.contains(&text) {
                    known.push(text);
                }
            }
        }
    }
    let mut findings = group::grouped(all);
    findings.sort_by_key(Finding::importance);
    for (at, finding) in findings.iter_mut().enumerate() {
        finding.id = format!("R{}", at + 1);
    }
    let count = |certainty| findings.iter().filter(|f| f.certainty == certainty).count() as u64;
    merged.summary.findings = findings.len() as u64;
    merged.summary.observed = count(raddle_model::finding::Certainty::Observed);
    merged.summary.predicted = count(raddle_model::finding::Certainty::Predicted);
    merged.findings = findings;
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;

    #[test]
    fn the_same_finding_of_two_executions_is_one() {
        assert_eq!(merge(Vec::new()), None);
        let one = typed::bank();
        assert_eq!(merge(vec![one.clone()]), Some(one.clone()));
        let mut other = one.clone();
        other.findings.remove(0);
        other.findings[0].accesses[0].stack[1].function = Some("another".into());
        other.findings[0].accesses[0].stack[1].line = Some(65);
        let merged = merge(vec![one, other]).unwrap();
        let counts: Vec<(&str, u64)> =
            merged.findings.iter().map(|f| (f.id.as_str(), f.count)).collect();
        assert_eq!(counts, [("R1", 12), ("R2", 1), ("R3", 1), ("R4", 2)]);
        assert_eq!((merged.summary.findings, merged.summary.predicted), (4, 2));
        assert_eq!(merged.summary.accesses, Some(2468));
        assert!(merged.findings.iter().all(|finding| finding.target.is_none()));
        let process = merged.findings[2].accesses[0].process;
        assert!(merged.thread(merged.findings[2].accesses[0].thread, process).is_some());
    }

    #[test]
    fn only_threads_that_differ_are_told_apart() {
        let (one, mut other) = (typed::bank(), typed::bank());
        other.findings.truncate(1);
        let access = |at: usize| other.findings[0].accesses[at].thread;
        let (changed, same) = (access(0), access(1));
        assert_ne!(changed, same);
        for frame in &mut other.findings[0].accesses[0].stack {
            frame.line = Some(99);
        }
        let thread = other.threads.iter_mut().find(|thread| thread.id == changed).unwrap();
        thread.name = Some("another".into());
        let threads = one.threads.len();
        let merged = merge(vec![one, other]).unwrap();
        assert_eq!(merged.threads.len(), threads + 1);
        let is_new = |finding: &&Finding| finding.accesses[0].stack[0].line == Some(99);
        let new = merged.findings.iter().find(is_new).unwrap();
        assert_eq!(new.accesses[0].process, Some(2));
        assert_eq!(new.accesses[1].process, None);
        let named = merged.thread(changed, Some(2)).unwrap();
        assert_eq!(named.name.as_deref(), Some("another"));
    }

    #[test]
    fn failing_executions_of_both_are_there() {
        let merged = merge(vec![typed::failing(), typed::bank(), typed::failing()]).unwrap();
        let names: Vec<(&str, &str)> =
            merged.failures.iter().map(|failure| (failure.id.as_str(), failure.kept())).collect();
        assert_eq!(names, [("H1", "H1"), ("H2", "H2"), ("H3", "H1"), ("H4", "H2")]);
    }

    #[test]
    fn a_finding_of_another_program_says_whose_it_is() {
        let (one, mut other) = (typed::bank(), typed::bank());
        other.target.argv = vec!["./shop".into(), "--open".into()];
        other.findings.truncate(1);
        other.findings[0].accesses[0].stack[0].line = Some(99);
        let merged = merge(vec![one, other]).unwrap();
        let shop = |finding: &&Finding| merged.target_of(finding).argv[0] == "./shop";
        let shops: Vec<&Finding> = merged.findings.iter().filter(shop).collect();
        assert_eq!(shops.len(), 1);
        assert_eq!(shops[0].accesses[0].stack[0].line, Some(99));
    }
}

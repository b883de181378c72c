//! From what was gathered to the report.

use super::filter::Filter;
use super::gather::{Birth, Found, Gathered, Looked, Program};
use super::schema::{Finding, Module, Outcome, Report, SCHEMA, Summary, Target, Thread, Tool};
use super::{Library, access, fingerprint, group, location, stack, text};
use raddle_model::ThreadId;
use std::collections::BTreeSet;
use std::path::Path;

/// Of a program with more threads than this, only those are listed that matter: a report is for reading.
const LISTED: usize = 1000;

/// What a report says that the target's process does not know.
#[derive(Debug, Clone)]
pub struct Circumstances {
    /// Who writes it.
    pub tool: Tool,
    /// What was run.
    pub target: Target,
    /// How it ended.
    pub outcome: Outcome,
    /// Modules that have no names beyond their exports.
    pub without_symbols: Vec<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Gathered {
    /// The report of everything gathered so far.
    pub fn report(
        &mut self,
        circumstances: Circumstances,
        filter: &Filter,
        library: &mut dyn Library,
    ) -> Report {
        let mut findings = group::grouped(self.findings(library));
        for finding in &mut findings {
            finding.fingerprint = fingerprint::fingerprint(finding);
        }
        let Circumstances { tool, target, outcome, without_symbols, warnings } = circumstances;
        let modules = self.modules(library);
        let mut summary = Summary { warnings, ..Summary::default() };
        filter.sift(&mut findings, &modules, &mut summary);
        // The sort is stable: what is equally important stays in the order of appearance.
        findings.sort_by_key(Finding::importance);
        for (at, finding) in findings.iter_mut().enumerate() {
            finding.id = format!("R{}", at + 1);
        }
        let threads = self.threads(library);
        let looked = self.looked_at();
        let processes: BTreeSet<u32> = self.programs.iter().map(|p| p.process).collect();
        let summary = Summary {
            processes: processes.len() as u64,
            threads: self.programs.iter().map(|p| p.world.thread_count() as u64).sum(),
            accesses: looked.map(|looked| looked.accesses),
            synchronisations: looked.map(|looked| looked.synchronisations),
            locks: looked.map(|looked| looked.locks),
            without_symbols,
            ..summary
        };
        let schema = SCHEMA.to_owned();
        let more = serde_json::Map::new();
        let failures = Vec::new();
        Report {
            schema,
            tool,
            target,
            modules,
            threads,
            outcome,
            summary,
            findings,
            failures,
            more,
        }
    }

    /// A line about each finding that has come since the last call and is not the same as an
    /// earlier one.
    pub fn news(&mut self, filter: &Filter, library: &mut dyn Library, base: &Path) -> Vec<String> {
        let mut lines = Vec::new();
        for (at, number) in std::mem::take(&mut self.unannounced) {
            let several = self.several();
            let program = &mut self.programs[at];
            let Some(found) = program.found.get(&number).cloned() else { continue };
            let mut finding = named(program, &found, several, library);
            finding.fingerprint = fingerprint::fingerprint(&finding);
            if self.announced.insert(group::key(&finding)) && filter.shows(&finding) {
                lines.push(text::news(&finding, base));
            }
        }
        lines
    }

    fn findings(&mut self, library: &mut dyn Library) -> Vec<Finding> {
        let several = self.several();
        let mut findings = Vec::new();
        for program in &mut self.programs {
            let found: Vec<Found> = program.found.values().cloned().collect();
            findings.extend(found.iter().map(|found| named(program, found, several, library)));
        }
        findings
    }

    /// The threads; of a program that had very many, those that matter.
    fn threads(&mut self, library: &mut dyn Library) -> Vec<Thread> {
        let several = self.several();
        let mut threads = Vec::new();
        for program in &mut self.programs {
            let concerned = match program.world.thread_count() > LISTED {
                true => Some(program.concerned()),
                false => None,
            };
            let is_listed =
                |id: &ThreadId| concerned.as_ref().is_none_or(|concerned| concerned.contains(id));
            let heard = program.world.threads().filter(|(id, _)| is_listed(id));
            let heard: Vec<(ThreadId, Option<String>)> =
                heard.map(|(id, name)| (id, name.map(String::from))).collect();
            for (id, name) in heard {
                let Birth { creator, at } = program.births.get(id).copied().unwrap_or_default();
                let created_at = at
                    .map(|(calls, place)| stack::named(&mut program.world, calls, place, library));
                threads.push(Thread {
                    id,
                    process: several.then_some(program.process),
                    name,
                    creator,
                    created_at: created_at.unwrap_or_default(),
                });
            }
        }
        threads
    }

    fn modules(&self, library: &mut dyn Library) -> Vec<Module> {
        let mut seen = BTreeSet::new();
        let paths = self.programs.iter().flat_map(|program| &program.modules);
        let paths = paths.filter(|path| seen.insert(path.as_str()));
        paths.map(|path| Module { path: path.clone(), build_id: library.build_id(path) }).collect()
    }

    /// What all detectors looked at; unknown when one could not tell.
    fn looked_at(&self) -> Option<Looked> {
        let mut sum = Looked::default();
        for program in &self.programs {
            let looked = program.looked?;
            sum.accesses += looked.accesses;
            sum.synchronisations += looked.synchronisations;
            sum.locks += looked.locks;
        }
        (!self.programs.is_empty()).then_some(sum)
    }

    /// Were several programs watched, so that a thread's number is not enough?
    fn several(&self) -> bool {
        self.programs.len() > 1
    }
}

/// A finding with its names, but for those that need to know the others: id and fingerprint.
fn named(
    program: &mut Program,
    found: &Found,
    several: bool,
    library: &mut dyn Library,
) -> Finding {
    let process = several.then_some(program.process);
    let accesses = found.finding.accesses.iter();
    let accesses = accesses.map(|side| access::access(program, side, process, library)).collect();
    Finding {
        id: String::new(),
        kind: found.finding.kind,
        certainty: found.finding.certainty,
        fingerprint: String::new(),
        count: found.finding.count,
        rules: found.finding.rules.clone(),
        origin: None,
        target: None,
        accesses,
        waits: found
            .finding
            .waits
            .iter()
            .map(|wait| access::wait(program, wait, process, library))
            .collect(),
        location: location::location(program, found, library),
        confirmation: None,
        classification: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Baseline, Selector, Suppressions, typed};
    use raddle_model::finding::Certainty;
    use raddle_model::{Event, EventKind, StackId};

    /// Does no access of it come from the program's own code?
    fn is_nobodys(finding: &Finding) -> bool {
        finding.accesses.iter().all(|access| access.own_frame.is_none())
    }

    #[test]
    fn the_most_important_come_first_and_are_numbered() {
        let report = typed::bank();
        let order: Vec<(&str, Certainty, bool)> =
            report.findings.iter().map(|f| (f.id.as_str(), f.certainty, is_nobodys(f))).collect();
        let expected = [
            ("R1", Certainty::Observed, false),
            ("R2", Certainty::Predicted, false),
            ("R3", Certainty::Observed, true),
        ];
        assert_eq!(order, expected);
        let Summary { findings, observed, predicted, hidden, threads, locks, .. } = report.summary;
        assert_eq!((findings, observed, predicted, hidden), (3, 2, 1, 0));
        assert_eq!((threads, locks), (3, Some(2)));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let ignore = vec![Selector::new("libc.so.6", Path::new("/w"), None)];
        let report = typed::report(&Filter { ignore, ..Filter::default() });
        assert_eq!((report.summary.findings, report.summary.hidden), (1, 2));
    }

    #[test]
    fn what_is_suppressed_or_known_is_counted() {
        let mut suppressions = Suppressions::default();
        let text = "race:counter\nrace:nobody";
        suppressions.read("s", text, &|name| name.to_owned()).unwrap();
        let mut baseline = Baseline::default();
        let mut report = typed::bank();
        report.findings.retain(|finding| finding.id == "R2");
        baseline.learn(&report);
        let report = typed::report(&Filter { suppressions, baseline, ..Filter::default() });
        let Summary { findings, hidden, suppressed, known, unused_suppressions, .. } =
            report.summary;
        assert_eq!((findings, hidden, suppressed, known), (1, 0, 1, 1));
        assert_eq!(unused_suppressions, ["s:2 race:nobody"]);
        assert_eq!(report.findings[0].id, "R1");
    }

    #[test]
    fn threads_know_where_they_come_from() {
        let report = typed::bank();
        let worker = report.thread(ThreadId(3), None).unwrap();
        assert_eq!((worker.name.as_deref(), worker.creator), (Some("worker"), Some(ThreadId(1))));
        assert_eq!(worker.created_at[0].function.as_deref(), Some("main"));
        let modules: Vec<&str> = report.modules.iter().map(|m| m.path.as_str()).collect();
        assert_eq!(modules, ["/w/bank", "/lib/libc.so.6"]);
        assert_eq!(report.modules[0].build_id.as_deref(), Some("b1"));
    }

    #[test]
    fn of_very_many_threads_those_are_listed_that_findings_speak_of() {
        let (mut gathered, mut library) = typed::gathered();
        let all = typed::bank().threads;
        for child in 1000..3000 {
            let kind = EventKind::ThreadStart { creator: Some(ThreadId(1)), os_id: child };
            let place = typed::place(1, 0x10);
            let thread = ThreadId(child);
            gathered.event(7, &Event { order: 0, thread, place, stack: StackId::NONE, kind });
        }
        let report = gathered.report(typed::circumstances(), &Filter::default(), &mut library);
        assert_eq!(report.summary.threads, all.len() as u64 + 2000);
        assert_eq!(report.threads, all);
    }

    #[test]
    fn news_come_once_for_each_pair_of_places() {
        let (mut gathered, mut library) = typed::gathered();
        let filter = Filter::default();
        let mut news = || gathered.news(&filter, &mut library, Path::new("/w"));
        insta::assert_snapshot!(news().join("\n"), @r#"
        data race on libc.so.6+0x4000 (observed): write at libc.so.6+0x30, read at libc.so.6+0x30
        data race on a heap block of 64 bytes from bank.c:56 in main (predicted): free at bank.c:48 in main, write at bank.c:64 in fill
        data race on counter (observed): write at bank.c:16 in worker, read at bank.c:20 in reader
        "#);
        assert!(news().is_empty());
    }

    #[test]
    fn several_programs_make_one_report() {
        let (mut gathered, mut library) = typed::gathered();
        typed::tell(&mut gathered, 8);
        let report = gathered.report(typed::circumstances(), &Filter::default(), &mut library);
        let Summary { findings, processes, threads, accesses, .. } = report.summary;
        assert_eq!((findings, processes, threads, accesses), (3, 2, 6, Some(2468)));
        assert_eq!(report.threads[0].process, Some(7));
        assert_eq!(report.findings[0].accesses[0].process, Some(7));
        assert_eq!(report.findings[0].count, 24);
    }
}

//! What a report is about: whose code matters (`--only-in`, `--ignore`), what somebody decided to
//! live with (`--suppressions`) and what was there before (`--baseline`).
//!
//! A finding is *in* a module or directory when one of those who take part is: by the instruction
//! itself, or by the first frame of the program's own code above it.

use super::baseline::Baseline;
use super::party::Party;
use super::schema::{Finding, Frame, Module, Summary};
use super::suppress::Suppressions;
use crate::names::{file_name, tidy};
use crate::nearest::did_you_mean;
use raddle_model::finding::Certainty;
use std::path::{Path, PathBuf};

/// What is left out of a report.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// If there are any, only findings in one of them are shown.
    pub only_in: Vec<Selector>,
    /// Findings in one of them are not shown.
    pub ignore: Vec<Selector>,
    /// Findings that match one of them are not shown.
    pub suppressions: Suppressions,
    /// Findings it knows are not shown.
    pub baseline: Baseline,
}

/// What becomes of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It is shown.
    Shown,
    /// Nobody asked for it.
    Hidden,
    /// The suppression of this index matches.
    Suppressed(usize),
    /// The baseline has it.
    Known,
}

impl Filter {
    /// Judges a finding that has its fingerprint.
    pub fn judge(&self, finding: &Finding) -> Judgement {
        let in_any = |selectors: &[Selector]| selectors.iter().any(|s| s.selects(finding));
        let asked_for = self.only_in.is_empty() || in_any(&self.only_in);
        if !asked_for || in_any(&self.ignore) {
            return Judgement::Hidden;
        }
        match self.suppressions.matching(finding) {
            Some(at) => Judgement::Suppressed(at),
            None if self.baseline.knows(finding) => Judgement::Known,
            None => Judgement::Shown,
        }
    }

    /// Takes out what is not shown; the summary tells how much, and of `--only-in` with a name that
    /// stands for nothing.
    pub fn sift(&self, findings: &mut Vec<Finding>, modules: &[Module], summary: &mut Summary) {
        summary.warnings.extend(self.strays(modules, findings).into_iter().map(|stray| {
            let near = did_you_mean(stray, modules.iter().map(|module| file_name(&module.path)));
            format!("--only-in {stray}: no module of the program is there, and no finding{near}")
        }));
        let mut used = Vec::new();
        findings.retain(|finding| {
            let judgement = self.judge(finding);
            match judgement {
                Judgement::Shown => {}
                Judgement::Hidden => summary.hidden += 1,
                Judgement::Suppressed(by) => used.push(by),
                Judgement::Known => summary.known += 1,
            }
            judgement == Judgement::Shown
        });
        summary.suppressed += used.len() as u64;
        summary.unused_suppressions.extend(self.suppressions.unused(&used));
        let count = |certainty| findings.iter().filter(|f| f.certainty == certainty).count() as u64;
        summary.findings = findings.len() as u64;
        summary.observed = count(Certainty::Observed);
        summary.predicted = count(Certainty::Predicted);
    }

    /// Names given to `--only-in` that stand for nothing: no module of the program, no finding, and
    /// no directory; or for a directory that no finding is in, though there are some elsewhere.
    fn strays(&self, modules: &[Module], all: &[Finding]) -> Vec<&str> {
        let is_stray = |selector: &&Selector| {
            let module = modules.iter().any(|module| selector.selects_module(&module.path));
            let found = all.iter().any(|finding| selector.selects(finding));
            !module && !found && (selector.paths.len() == 1 || !all.is_empty())
        };
        self.only_in.iter().filter(is_stray).map(|selector| selector.text.as_str()).collect()
    }

    /// Is the finding to be shown?
    pub fn shows(&self, finding: &Finding) -> bool {
        self.judge(finding) == Judgement::Shown
    }
}

/// A module or a directory, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// As typed.
    text: String,
    /// As a path from the root: the file of a module, or a directory of modules or sources.
    paths: Vec<PathBuf>,
    /// Relative source paths (of libraries compiled elsewhere) begin here.
    base: PathBuf,
}

impl Selector {
    /// What was typed in the directory `base`; `real` is where symbolic links lead, if it exists.
    pub fn new(text: &str, base: &Path, real: Option<PathBuf>) -> Self {
        let mut paths = vec![tidy(&base.join(text))];
        paths.extend(real);
        Selector { text: text.to_owned(), paths, base: base.to_owned() }
    }

    fn selects(&self, finding: &Finding) -> bool {
        finding.parties().any(|party| self.selects_party(party))
    }

    fn selects_party(&self, party: Party<'_>) -> bool {
        let innermost = party.stack.first();
        innermost.into_iter().chain(party.frame()).any(|frame| self.selects_frame(frame))
    }

    fn selects_frame(&self, frame: &Frame) -> bool {
        let module = frame.module.as_deref().is_some_and(|module| self.selects_module(module));
        let file = frame.file.as_deref();
        module || file.is_some_and(|file| self.holds(&tidy(&self.base.join(file))))
    }

    fn selects_module(&self, module: &str) -> bool {
        self.is_name_of(file_name(module)) || self.holds(Path::new(module))
    }

    /// `libfoo.so.1`, and less exactly `libfoo.so` or `libfoo`.
    fn is_name_of(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.text.as_str());
        !self.text.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    fn holds(&self, path: &Path) -> bool {
        self.paths.iter().any(|selected| path.starts_with(selected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;

    /// A race of `/w/src/bank.c` in `/w/bank` with `/w/lib/queue.c` in `/w/libqueue.so.1`.
    fn finding() -> Finding {
        let mut finding = typed::bank().findings.remove(0);
        for (access, (module, file)) in finding
            .accesses
            .iter_mut()
            .zip([("/w/bank", "/w/src/bank.c"), ("/w/libqueue.so.1", "./lib/queue.c")])
        {
            access.stack[0].module = Some(module.into());
            access.stack[0].file = Some(file.into());
            access.own_frame = Some(0);
        }
        finding
    }

    fn select(text: &str) -> Vec<Selector> {
        vec![Selector::new(text, Path::new("/w"), None)]
    }

    #[test]
    fn modules_and_directories_of_either_access_select() {
        let here =
            ["bank", "./bank", "/w/bank", "libqueue", "libqueue.so", "src", "./lib", "/w", "."];
        for text in here {
            let only = Filter { only_in: select(text), ..Filter::default() };
            assert!(only.shows(&finding()), "--only-in {text}");
            let ignore = Filter { ignore: select(text), ..Filter::default() };
            assert!(!ignore.shows(&finding()), "--ignore {text}");
        }
        for text in ["ban", "libq", "sr", "/usr/lib", "queue.c"] {
            let only = Filter { only_in: select(text), ..Filter::default() };
            assert!(!only.shows(&finding()), "--only-in {text}");
            let ignore = Filter { ignore: select(text), ..Filter::default() };
            assert!(ignore.shows(&finding()), "--ignore {text}");
        }
    }

    #[test]
    fn a_name_that_stands_for_nothing_is_a_stray() {
        let modules = &typed::bank().modules;
        let strays = |text: &str, real: Option<&str>, all: &[Finding]| {
            let only_in = vec![Selector::new(text, Path::new("/w"), real.map(PathBuf::from))];
            let filter = Filter { only_in, ..Filter::default() };
            filter.strays(modules, all).iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(strays("bnak", None, &[]), ["bnak"]);
        assert!(
            strays("bank", None, &[]).is_empty() && strays("src", None, &[finding()]).is_empty()
        );
        // A directory may hold the sources of a program that has no findings.
        assert!(strays("docs", Some("/w/docs"), &[]).is_empty());
        assert_eq!(strays("docs", Some("/w/docs"), &[finding()]), ["docs"]);
    }

    #[test]
    fn to_ignore_is_stronger() {
        let (only_in, ignore) = (select("bank"), select("libqueue"));
        let both = Filter { only_in, ignore, ..Filter::default() };
        assert!(!both.shows(&finding()));
        assert!(Filter::default().shows(&finding()));
    }

    #[test]
    fn the_instruction_and_the_program_s_own_frame_count_both() {
        let mut finding = finding();
        let mut inner = finding.accesses[0].stack[0].clone();
        (inner.module, inner.file) = (Some("/lib/libc.so.6".into()), None);
        finding.accesses[0].stack.insert(0, inner);
        finding.accesses[0].own_frame = Some(1);
        for text in ["libc.so.6", "bank", "src"] {
            let only = Filter { only_in: select(text), ..Filter::default() };
            assert!(only.shows(&finding), "--only-in {text}");
        }
    }
}

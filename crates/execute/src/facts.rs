//! Answering the probe's questions about modules. Reading a large binary's debug information
//! takes seconds, so it is done beside the supervising loop, which must not stop for it.

use raddle_hooks::HookSet;
use raddle_symbols::{FactsRequest, cached_facts};
use raddle_wire::facts::{FactsView, ModuleFacts};
use raddle_wire::log::facts_file;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fs, thread};

/// A question: facts of the module `path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// Which log asked, by the supervisor's count.
    pub log: usize,
    /// The name of that log.
    pub name: String,
    /// The number of the request in that log.
    pub request: u32,
    /// The module's file.
    pub path: PathBuf,
}

/// A question that has been answered in the run directory.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The question.
    pub question: Question,
    /// Does the module have names beyond its exports? Or why the answer is empty.
    pub has_symbols: Result<bool, String>,
}

/// Makes facts, one question after another.
#[derive(Debug)]
pub(crate) struct FactsMaker {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
    /// What they are about, the one being made first.
    outstanding: VecDeque<PathBuf>,
}

impl FactsMaker {
    /// Starts the maker for one execution.
    pub(crate) fn start(hooks: HookSet, directory: PathBuf) -> io::Result<Self> {
        let (questions, asked) = channel::<Question>();
        let (answered, answers) = channel();
        thread::Builder::new().name("raddle-facts".into()).spawn(move || {
            let cache = cache_directory("facts").unwrap_or_else(|| directory.clone());
            for question in asked {
                let has_symbols = answer(&question, &hooks, &directory, &cache);
                if answered.send(Answer { question, has_symbols }).is_err() {
                    break;
                }
            }
        })?;
        Ok(FactsMaker { questions, answers, outstanding: VecDeque::new() })
    }

    /// Puts a question.
    pub(crate) fn ask(&mut self, question: Question) {
        // The thread ends only when this side is gone, or by a panic; then nothing is outstanding
        // and the probe's patience decides.
        let path = question.path.clone();
        if self.questions.send(question).is_ok() {
            self.outstanding.push_back(path);
        }
    }

    /// Is somebody waiting for us?
    pub(crate) fn busy(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// The module that is being read.
    pub(crate) fn reading(&self) -> Option<&Path> {
        self.outstanding.front().map(PathBuf::as_path)
    }

    /// The answers made since the last call.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        let answers: Vec<Answer> = self.answers.try_iter().collect();
        self.outstanding.drain(..answers.len().min(self.outstanding.len()));
        answers
    }
}

/// Puts the facts where the probe looks for them, and says whether the module has symbols.
/// Whatever happens, there is a file afterwards; the error is for the user.
fn answer(
    question: &Question,
    hooks: &HookSet,
    directory: &Path,
    cache: &Path,
) -> Result<bool, String> {
    let place = directory.join(facts_file(&question.name, question.request));
    let path = &question.path;
    // The kernel's own code (`[vdso]`) and memory files have no file to read.
    if !path.is_absolute() || !path.is_file() {
        return put_empty(&place).map(|()| true).map_err(|e| e.to_string());
    }
    let request =
        FactsRequest { hooks: &hooks.hooks, runtime: &hooks.runtime, linked: &hooks.linked };
    // A file we stumble over must not leave the target waiting for an answer.
    let make = || cached_facts(path, &request, hooks.digest(), cache).map_err(|e| e.to_string());
    let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(make))
        .unwrap_or_else(|_| Err("reading it failed, which is a bug of Raddle".to_owned()));
    made.and_then(|facts| {
        put(&facts, &place).map_err(|e| e.to_string())?;
        has_symbols(&facts)
    })
    .map_err(|error| {
        let note = match put_empty(&place) {
            Ok(()) => String::new(),
            Err(e) => format!(" (nor could {} be written: {e})", place.display()),
        };
        format!("{}: its functions are not recognised: {error}{note}", path.display())
    })
}

fn has_symbols(facts: &Path) -> Result<bool, String> {
    let bytes = fs::read(facts).map_err(|e| e.to_string())?;
    FactsView::new(&bytes).map(|view| view.has_symbols()).map_err(|e| e.to_string())
}

/// Makes `facts` appear at `place`, whole or not at all.
fn put(facts: &Path, place: &Path) -> io::Result<()> {
    let beside = place.with_extension("part");
    let _ = fs::remove_file(&beside);
    fs::hard_link(facts, &beside)
        .or_else(|_| std::os::unix::fs::symlink(facts, &beside))
        .or_else(|_| fs::copy(facts, &beside).map(|_| ()))?;
    fs::rename(&beside, place)
}

fn put_empty(place: &Path) -> io::Result<()> {
    let beside = place.with_extension("part");
    fs::write(&beside, ModuleFacts::default().encode())?;
    fs::rename(&beside, place)
}

/// Where things of this kind are kept between executions: under `$RADDLE_CACHE_DIR`, or the user's
/// cache directory; nowhere if that cannot be written.
pub fn cache_directory(kind: &str) -> Option<PathBuf> {
    let variable =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let chosen = variable("RADDLE_CACHE_DIR")
        .or_else(|| variable("XDG_CACHE_HOME").map(|home| home.join("raddle")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/raddle")))
        .map(|cache| cache.join(kind));
    chosen.filter(|cache| writable(cache))
}

fn writable(directory: &Path) -> bool {
    directory.is_absolute()
        && fs::create_dir_all(directory).is_ok()
        && rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(path: &Path) -> Question {
        Question { log: 0, name: "7.0.log".into(), request: 2, path: path.to_owned() }
    }

    #[test]
    fn a_module_that_cannot_be_read_gets_an_empty_answer_and_a_warning() {
        let run = tempfile::tempdir().unwrap();
        let hooks = raddle_hooks::merge(Vec::new()).unwrap();
        let broken = run.path().join("broken.so");
        fs::write(&broken, "not ELF").unwrap();
        let warning = answer(&question(&broken), &hooks, run.path(), run.path()).unwrap_err();
        assert!(warning.contains("broken.so: its functions are not recognised"), "{warning}");
        let bytes = fs::read(run.path().join("7.0.2.facts")).unwrap();
        assert!(FactsView::new(&bytes).is_ok());
    }

    #[test]
    fn code_without_a_file_gets_an_empty_answer_silently() {
        let run = tempfile::tempdir().unwrap();
        let hooks = raddle_hooks::merge(Vec::new()).unwrap();
        let vdso = question(Path::new("[vdso]"));
        assert_eq!(answer(&vdso, &hooks, run.path(), run.path()), Ok(true));
        assert!(run.path().join("7.0.2.facts").exists());
    }

    #[test]
    fn an_answer_replaces_an_older_one_whole() {
        let run = tempfile::tempdir().unwrap();
        let (one, place) = (run.path().join("one"), run.path().join("1.1.facts"));
        fs::write(&one, "1").unwrap();
        put(&one, &place).unwrap();
        put(&one, &place).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"1");
    }
}

//! Reading a program of the corpus: what it expects of a detector, from its comments.
//!
//! `corpus/README.md` says what the comments mean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A program with its expected verdict.
#[derive(Debug)]
pub struct Program {
    /// `race/mutex_forgotten.c`: how it is called in tables and in `known.toml`.
    pub name: String,
    pub source: PathBuf,
    pub text: String,
    /// Compiler and options instead of those of the language.
    pub build: Option<String>,
    pub needs: Vec<String>,
    pub undecidable: Option<String>,
    /// Races that must be found, by variable.
    pub races: BTreeMap<Variable, Marked>,
    /// Findings that are allowed, by variable.
    pub suspected: BTreeMap<Variable, Marked>,
    /// Lines that allocate a heap block, by the block's name.
    pub blocks: BTreeMap<Variable, Vec<u64>>,
}

/// The lines of one variable, and how certain a finding about it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marked {
    pub lines: Vec<u64>,
    pub certainty: Certainty,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Certainty {
    /// In a race: at least one finding is observed. In a suspicion: anything goes.
    #[default]
    Unsaid,
    /// Found, and never observed.
    Predicted,
    /// Whichever the interleaving brings.
    Either,
}

/// What races, as the comment names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variable {
    /// A global: `counter`, `accounts[].balance`, `record`.
    Global(String),
    /// A heap block: the name is the comment's own.
    Heap(String),
    /// A local of some frame.
    Stack(String),
    /// A thread-local variable.
    ThreadLocal(String),
}

impl std::fmt::Display for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Variable::Global(name) => write!(f, "{name}"),
            Variable::Heap(name) => write!(f, "heap {name}"),
            Variable::Stack(name) => write!(f, "stack {name}"),
            Variable::ThreadLocal(name) => write!(f, "thread-local {name}"),
        }
    }
}

impl Variable {
    fn parse(text: &str) -> Variable {
        match text.split_once(' ') {
            Some(("heap", name)) => Variable::Heap(name.to_owned()),
            Some(("stack", name)) => Variable::Stack(name.to_owned()),
            Some(("thread-local", name)) => Variable::ThreadLocal(name.to_owned()),
            _ => Variable::Global(text.to_owned()),
        }
    }
}

/// Where the corpus is.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").canonicalize().unwrap()
}

/// All programs, races first, by name.
pub fn all() -> Vec<Program> {
    let mut programs = Vec::new();
    for side in ["race", "clean"] {
        let mut files: Vec<PathBuf> = std::fs::read_dir(corpus().join(side))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "c" || e == "cc" || e == "rs"))
            .collect();
        files.sort();
        programs.extend(files.iter().map(|file| Program::read(side, file)));
    }
    programs
}

impl Program {
    fn read(side: &str, source: &Path) -> Program {
        let text = std::fs::read_to_string(source).unwrap();
        let name = format!("{side}/{}", source.file_name().unwrap().to_string_lossy());
        Program::parse(name, source, text).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// Parses, and checks that the comments make sense together.
    pub fn parse(name: String, source: &Path, text: String) -> Result<Program, String> {
        let mut program = Program {
            name,
            source: source.to_owned(),
            text: String::new(),
            build: None,
            needs: Vec::new(),
            undecidable: None,
            races: BTreeMap::new(),
            suspected: BTreeMap::new(),
            blocks: BTreeMap::new(),
        };
        let mut says_clean = false;
        for (line, number) in text.lines().zip(1..) {
            says_clean |= line.trim() == "// clean";
            program.take_line(line, number);
        }
        program.text = text;
        program.check(says_clean)?;
        Ok(program)
    }

    fn take_line(&mut self, line: &str, number: u64) {
        let Some((code, comment)) = line.split_once("// ") else { return };
        let Some((key, value)) = comment.split_once(": ") else { return };
        let value = value.trim();
        match (key, code.trim().is_empty()) {
            ("build", true) => self.build = Some(value.to_owned()),
            ("needs", true) => self.needs.extend(value.split_whitespace().map(str::to_owned)),
            ("undecidable", true) => self.undecidable = Some(value.to_owned()),
            ("race", false) => mark(&mut self.races, value, number),
            ("suspected", false) => mark(&mut self.suspected, value, number),
            ("block", false) => {
                self.blocks.entry(Variable::parse(value)).or_default().push(number);
            }
            _ => {}
        }
    }

    fn check(&self, says_clean: bool) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("corpus/{}: {what}", self.name));
        if !self.text.starts_with("// ") {
            return wrong("the first line must say what it is, and why");
        }
        let in_clean = self.name.starts_with("clean/");
        if in_clean != says_clean {
            return wrong("`// clean` stands in the programs of clean/, and in those only");
        }
        if in_clean && !self.races.is_empty() {
            return wrong("a clean program has no `// race:`");
        }
        if !in_clean && self.races.is_empty() && self.undecidable.is_none() {
            return wrong("a program of race/ says where: `// race: VARIABLE`");
        }
        if let Some(need) =
            self.needs.iter().find(|n| !["debug-info", "dynamic"].contains(&n.as_str()))
        {
            return wrong(&format!("`// needs: {need}` is unknown"));
        }
        if self.needs.iter().any(|need| need == "debug-info") && self.undecidable.is_none() {
            return wrong("`// needs: debug-info` wants a reason: `// undecidable: REASON`");
        }
        if let Some(block) = self.blocks.keys().find(|block| !self.races.contains_key(block)) {
            return wrong(&format!("`// block: {block}` has no race"));
        }
        Ok(())
    }

    pub fn needs(&self, what: &str) -> bool {
        self.needs.iter().any(|need| need == what)
    }
}

/// `counter`, `counter, predicted`, `heap one; heap other`.
fn mark(marked: &mut BTreeMap<Variable, Marked>, value: &str, line: u64) {
    for one in value.split(';').map(str::trim) {
        let (name, certainty) = match one.rsplit_once(", ") {
            Some((name, "predicted")) => (name, Certainty::Predicted),
            Some((name, "either")) => (name, Certainty::Either),
            _ => (one, Certainty::Unsaid),
        };
        let marked = marked.entry(Variable::parse(name)).or_default();
        marked.lines.push(line);
        if certainty != Certainty::Unsaid {
            marked.certainty = certainty;
        }
    }
}

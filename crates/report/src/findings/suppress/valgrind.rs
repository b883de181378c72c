//! Valgrind's suppressions, for Helgrind and DRD: entries in braces with a name, `TOOL:KIND`, and
//! frames from the innermost (`fun:`, `obj:`, `src:`, and `...` for any number of them). An entry
//! matches when its frames are the beginning of a stack of either access: which of two racing
//! accesses is the current one is chance. Functions are compared as [`function_names`] says: Valgrind has
//! the whole name of a function that stands for itself, and the bare one of a function that was inlined.
//!
//! [`function_names`]: crate::function_names

use super::pattern::Pattern;
use super::{Entry, Rule as Any, SuppressionError, fits_function, fits_path};
use crate::explain::kind_name;
use crate::findings::schema::{Finding, Frame};
use crate::function_names::FunctionName;
use crate::names::file_name;

/// Below a thread's own function: Valgrind's wrapper and the C library. They are not on our stacks,
/// or have other names there, and say nothing about the finding.
const STARTERS: [&str; 5] =
    ["mythread_wrapper", "start_thread", "clone", "clone3", "vgDrd_thread_wrapper"];

/// One entry.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The kinds of findings it is about.
    kinds: &'static [&'static str],
    frames: Vec<Matcher>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Matcher {
    Function(Function),
    Object(Pattern),
    Source(Pattern, Option<u32>),
    Any,
}

/// A function, by its name or a pattern for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Function {
    pattern: Pattern,
    /// The pattern taken apart; its parts are patterns.
    name: FunctionName,
}

impl Function {
    fn new(text: &str) -> Function {
        Function { pattern: Pattern::glob(text), name: FunctionName::new(text) }
    }

    fn fits(&self, frame: &Frame) -> bool {
        fits_function(&self.pattern, frame) || self.agrees(frame)
    }

    /// Does it fit as far as both names tell? A bare name is Valgrind's for inlined functions only.
    fn agrees(&self, frame: &Frame) -> bool {
        let Some(name) = frame.function.as_deref().map(FunctionName::new) else { return false };
        match (self.name.is_whole(), name.is_whole()) {
            // `Queue::*` must not fit every function of which no more than a bare name is known.
            (true, false) => self.name.agrees(&name, &|one, other| one == other),
            (false, true) if !frame.inlined => false,
            _ => self.name.agrees(&name, &|pattern, text| Pattern::glob(pattern).fits(text)),
        }
    }
}

pub fn read(text: &str, demangle: &dyn Fn(&str) -> String) -> Result<Vec<Entry>, SuppressionError> {
    let mut rules = Vec::new();
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let error = |line, what: &str| SuppressionError { line, what: what.to_owned() };
    while let Some((start, line)) = lines.next() {
        match line {
            "" => continue,
            line if line.starts_with('#') => continue,
            "{" => {}
            _ => return Err(error(start, "expected { at the beginning of an entry")),
        }
        let mut body = Vec::new();
        let end = loop {
            match lines.next() {
                Some((at, "}")) => break at,
                Some((_, line)) if line.is_empty() || line.starts_with('#') => {}
                Some(entry) => body.push(entry),
                None => return Err(error(start, "this entry has no closing }")),
            }
        };
        let [(_, name), (kind_at, kind), frames @ ..] = body.as_slice() else {
            return Err(error(end, "this entry has no TOOL:KIND line"));
        };
        let kinds = kinds(kind).ok_or_else(|| {
            error(*kind_at, &format!("expected TOOL:KIND, as Helgrind:Race, not '{kind}'"))
        })?;
        let frames: Vec<Matcher> = frames
            .iter()
            .map(|(at, frame)| matcher(frame, demangle).map_err(|what| error(*at, &what)))
            .collect::<Result<_, _>>()?;
        let rule = Any::Valgrind(Rule { kinds, frames: without_starters(frames) });
        rules.push(Entry { line: start, text: (*name).to_owned(), rule, expires: None });
    }
    Ok(rules)
}

/// What an entry is about; nothing for other tools and other errors.
fn kinds(line: &str) -> Option<&'static [&'static str]> {
    let (tools, kind) = line.split_once(':')?;
    let for_us = tools
        .split(',')
        .any(|tool| ["helgrind", "drd"].contains(&tool.trim().to_ascii_lowercase().as_str()));
    Some(match kind.trim() {
        "Race" | "ConflictingAccess" if for_us => &["data-race"],
        "LockOrder" if for_us => &["lock-order", "deadlock"],
        _ => &[],
    })
}

fn matcher(line: &str, demangle: &dyn Fn(&str) -> String) -> Result<Matcher, String> {
    if line == "..." {
        return Ok(Matcher::Any);
    }
    match line.split_once(':') {
        Some(("fun", name)) => Ok(Matcher::Function(Function::new(&demangle(name)))),
        Some(("obj", path)) => Ok(Matcher::Object(Pattern::glob(path))),
        Some(("src", place)) => Ok(match place.rsplit_once(':') {
            Some((file, line)) => Matcher::Source(Pattern::glob(file), line.parse().ok()),
            None => Matcher::Source(Pattern::glob(place), None),
        }),
        _ => Err(format!("expected fun:, obj:, src: or ..., not '{line}'")),
    }
}

/// The frames without those that start threads, at the end.
fn without_starters(mut frames: Vec<Matcher>) -> Vec<Matcher> {
    let is_starter = |matcher: &Matcher| match matcher {
        Matcher::Function(name) => STARTERS.iter().any(|starter| name.pattern.fits(starter)),
        Matcher::Object(object) => {
            object.fits("/usr/libexec/valgrind/vgpreload_helgrind-amd64-linux.so")
                || object.fits("/usr/libexec/valgrind/vgpreload_drd-amd64-linux.so")
        }
        Matcher::Source(..) | Matcher::Any => false,
    };
    while frames.len() > 1 && frames.last().is_some_and(is_starter) {
        frames.pop();
    }
    frames
}

impl Rule {
    pub fn matches(&self, finding: &Finding) -> bool {
        let kind = kind_name(finding.kind);
        self.kinds.contains(&kind.as_str())
            && finding.parties().any(|party| fit(&self.frames, party.stack))
    }
}

/// Are the matchers a beginning of the stack?
fn fit(matchers: &[Matcher], stack: &[Frame]) -> bool {
    match (matchers, stack) {
        ([], _) => true,
        ([Matcher::Any, rest @ ..], _) => {
            (0..=stack.len()).any(|skipped| fit(rest, &stack[skipped..]))
        }
        ([first, rest @ ..], [frame, callers @ ..]) => fits(first, frame) && fit(rest, callers),
        (_, []) => false,
    }
}

fn fits(matcher: &Matcher, frame: &Frame) -> bool {
    match matcher {
        Matcher::Function(name) => name.fits(frame),
        Matcher::Object(path) => fits_path(path, frame.module.as_deref()),
        Matcher::Source(file, line) => {
            let here = frame.file.as_deref().is_some_and(|path| file.fits(file_name(path)));
            here && line.is_none_or(|line| frame.line == Some(line))
        }
        Matcher::Any => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::Hex;

    fn frame(function: &str, inlined: bool) -> Frame {
        Frame {
            module: None,
            offset: Hex(0),
            function: Some(function.to_owned()),
            file: None,
            line: None,
            column: None,
            inlined,
            text: None,
        }
    }

    #[test]
    fn inlined_functions_have_bare_names_there() {
        let fits = |pattern: &str, name: &str| Function::new(pattern).fits(&frame(name, true));
        let invoke = "std::__invoke_impl<void, void (*)()>(std::__invoke_other, void (*&&)())";
        assert!(fits("__invoke_impl<void, void (*)()>", invoke) && fits("__invoke_*", invoke));
        assert!(fits("meth", "C::meth(int)") && fits("operator()", "C::operator()() const"));
        assert!(!fits("meth", "C::math(int)") && !fits("D::meth(int)", "C::meth(int)"));
    }

    #[test]
    fn others_have_whole_ones() {
        let fits = |pattern: &str, name: &str| Function::new(pattern).fits(&frame(name, false));
        assert!(fits("stat(int)", "stat") && fits("stat(int) [clone .isra.0]", "stat"));
        assert!(fits("Queue::*", "Queue::push(int)") && fits("f()", "f()"));
        assert!(!fits("push", "Queue::push(int)") && !fits("p*", "Queue::push(int)"));
        assert!(!fits("Queue::*", "worker") && !fits("f(int)", "f(long)"));
    }
}

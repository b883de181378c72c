//! From the text of a hook file to checked hooks.
//!
//! The TOML is walked by hand rather than through serde, so that each wrong word is reported
//! where it stands and with what should stand there.

use crate::HookFile;
use crate::error::{HookError, nearest, one_of};
use crate::names::{is_telling, overlap};
use crate::roles::{self, INLINED, Operands, ROLES, WITH_CALLBACK};
use crate::{expression, expression::Fault};
use raddle_model::hook::{Span, Variadic};
use raddle_model::{Dependences, Expr, Hook, LockMode, Success};
use std::collections::BTreeSet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys any hook may have, whatever its role.
const COMMON: &[&str] =
    &["functions", "inlined", "role", "success", "opaque", "callback", "arguments"];

/// Parses and checks the text of a hook file; the name is for messages.
pub fn parse(text: &str, file_name: &str) -> Result<HookFile, HookError> {
    let source = Source { name: file_name, text };
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let message = format!("this is not TOML: {}", error.message().replace('\n', ", "));
        source.error(at, message, "a [library] table and [[hook]] tables")
    })?;
    let top = Table::new(&source, 0, document.get_ref());
    top.only(&["library", "hook"], |key| format!("unknown table \"{key}\""))?;

    let library = match top.get("library") {
        Some(entry) => source.table(entry)?,
        None => return Err(source.error(0, "there is no [library]", "[library] with a name")),
    };
    library.only(&["name", "about", "runtime", "private", "linked"], |key| {
        format!("unknown key \"{key}\"")
    })?;
    let name = match library.get("name") {
        Some(entry) => source.string(entry)?.to_owned(),
        None => {
            return Err(source.error(library.at, "[library] has no name", "name = \"…\""));
        }
    };
    let about = library.get("about").map(|entry| source.string(entry)).transpose()?;
    let modules = |key| -> Result<Vec<String>, HookError> {
        let listed = library.get(key).map(|entry| source.strings(entry)).transpose()?;
        Ok(listed.into_iter().flatten().map(|(name, _)| name.to_owned()).collect())
    };
    let (runtime, private, linked) = (modules("runtime")?, modules("private")?, modules("linked")?);

    let mut taken = Taken::default();
    let mut hooks = Vec::new();
    if let Some(entry) = top.get("hook") {
        let DeValue::Array(array) = entry.value else {
            return Err(source.wrong_type(entry, "[[hook]] tables"));
        };
        for item in array.iter() {
            let entry = Entry::element("hook", item);
            let mut hook = Reader { source: &source, table: source.table(&entry)? }.hook()?;
            taken.claim(&source, hooks.len(), &hook)?;
            hook.hook.library.clone_from(&name);
            hooks.push(hook.hook);
        }
    }
    Ok(HookFile {
        library: name,
        about: about.unwrap_or_default().to_owned(),
        runtime,
        private,
        linked,
        hooks,
    })
}

/// A hook with the places of its names.
struct Placed {
    hook: Hook,
    functions: Vec<usize>,
    inlined: Vec<usize>,
}

/// Reads one `[[hook]]`.
struct Reader<'a> {
    source: &'a Source<'a>,
    table: Table<'a>,
}

impl Reader<'_> {
    fn hook(&self) -> Result<Placed, HookError> {
        self.check_words()?;
        let (functions, function_places) = self.names("functions")?;
        let (inlined, inlined_places) = self.names("inlined")?;
        if functions.is_empty() && inlined.is_empty() {
            return Err(self.source.error(
                self.table.at,
                "this hook names no function",
                "names in functions or inlined",
            ));
        }
        let Some(role_entry) = self.table.get("role") else {
            return Err(self.source.error(
                self.table.at,
                "this hook has no role",
                "role = \"lock.acquire\" or another role",
            ));
        };
        let name = self.source.string(role_entry)?;
        let Some((_, operands)) = ROLES.iter().find(|(role, _)| *role == name) else {
            let right = ROLES.iter().map(|(role, _)| *role);
            let message = format!("unknown role \"{name}\"");
            return Err(self.source.error(role_entry.at, message, nearest(name, right)));
        };
        self.check_operands(name, operands)?;
        if !inlined.is_empty() && !INLINED.contains(&name) {
            return Err(self.source.error(
                role_entry.at,
                format!("role \"{name}\" cannot be told from inlined code"),
                format!("functions instead, or the role {}", one_of(INLINED)),
            ));
        }
        let role = match roles::build(name, self) {
            Some(role) => role?,
            None => unreachable!("role \"{name}\" is listed and cannot be built"),
        };
        let callback = self.table.get("callback").map(|_| self.on_entry("callback")).transpose()?;
        if callback.is_none() && WITH_CALLBACK.contains(&name) {
            return Err(self.source.error(
                role_entry.at,
                format!("role \"{name}\" has no callback"),
                "callback = \"arg2\" or another expression",
            ));
        }
        let opaque = match self.table.get("opaque") {
            Some(entry) => self.source.boolean(entry)?,
            None => roles::is_opaque(name),
        };
        let hook = Hook {
            library: String::new(),
            functions,
            inlined,
            role,
            success: self.success()?,
            opaque,
            callback,
            arguments: self.arguments()?,
        };
        Ok(Placed { hook, functions: function_places, inlined: inlined_places })
    }

    fn names(&self, key: &str) -> Result<(Vec<String>, Vec<usize>), HookError> {
        let Some(entry) = self.table.get(key) else { return Ok((vec![], vec![])) };
        let names = self.source.strings(entry)?;
        for (name, at) in &names {
            if !is_telling(name) {
                let message = format!("\"{name}\" names no function");
                return Err(self.source.error(
                    *at,
                    message,
                    "a name, in which * may stand for more",
                ));
            }
        }
        Ok(names.into_iter().map(|(name, at)| (name.to_owned(), at)).unzip())
    }

    /// Keys that no hook has are typing errors, and explain what is missing.
    fn check_words(&self) -> Result<(), HookError> {
        let all = || COMMON.iter().chain(ROLES.iter().flat_map(|(_, operands)| *operands)).copied();
        match self.table.entries.iter().find(|entry| !all().any(|key| key == entry.key)) {
            Some(entry) => {
                let words: BTreeSet<&str> = all().collect();
                let message = format!("unknown key \"{}\"", entry.key);
                Err(self.source.error(entry.key_at, message, nearest(entry.key, words)))
            }
            None => Ok(()),
        }
    }

    fn check_operands(&self, role: &str, operands: &[&str]) -> Result<(), HookError> {
        let allowed = |key: &str| COMMON.contains(&key) || operands.contains(&key);
        match self.table.entries.iter().find(|entry| !allowed(entry.key)) {
            Some(entry) => {
                let message = format!("role \"{role}\" takes no {}", entry.key);
                Err(self.source.error(entry.key_at, message, one_of(operands)))
            }
            None => Ok(()),
        }
    }

    fn success(&self) -> Result<Success, HookError> {
        let Some(entry) = self.table.get("success") else { return Ok(Success::Always) };
        let text = self.source.string(entry)?;
        Ok(match text {
            "always" => Success::Always,
            "zero" => Success::Zero,
            "nonzero" => Success::NonZero,
            "true" => Success::True,
            "notnull" => Success::NotNull,
            _ => {
                let success: fn(i32) -> Success;
                let number = if let Some(number) = text.strip_prefix("equals ") {
                    success = Success::Equals;
                    number
                } else if let Some(number) = text.strip_prefix("zero or ") {
                    success = Success::ZeroOr;
                    number
                } else {
                    let right =
                        ["always", "zero", "nonzero", "true", "notnull", "equals N", "zero or N"];
                    let message = format!("unknown success \"{text}\"");
                    return Err(self.source.error(entry.at, message, nearest(text, right)));
                };
                let Ok(number) = number.trim().parse() else {
                    let message = format!("\"{text}\" compares with no number of 32 bits");
                    let right = "a number as in \"equals -1\"";
                    return Err(self.source.error(entry.at, message, right));
                };
                success(number)
            }
        })
    }

    fn arguments(&self) -> Result<Vec<Expr>, HookError> {
        let Some(entry) = self.table.get("arguments") else { return Ok(vec![]) };
        let DeValue::Array(array) = entry.value else {
            return Err(self.source.wrong_type(entry, "an array of expressions"));
        };
        let items = array.iter().map(|item| Entry::element("arguments", item));
        items.map(|item| self.known_on_entry(&item)).collect()
    }

    fn known_on_entry(&self, entry: &Entry<'_>) -> Result<Expr, HookError> {
        let expression = self.source.expression(entry)?;
        if expression.needs_return() {
            return Err(self.source.error(
                entry.at,
                format!("{} is needed before the function runs", entry.key),
                "an expression without result and after()",
            ));
        }
        Ok(expression)
    }

    fn operand(&self, key: &str) -> Result<&Entry<'_>, HookError> {
        self.table.get(key).ok_or_else(|| {
            let (at, role) = self.role();
            let message = format!("role \"{role}\" has no {key}");
            self.source.error(at, message, format!("{key} = \"arg1\" or another expression"))
        })
    }

    /// Where the role stands, and which it is.
    fn role(&self) -> (usize, &str) {
        match self.table.get("role") {
            Some(entry) => (entry.at, self.source.string(entry).unwrap_or_default()),
            None => (self.table.at, ""),
        }
    }

    /// Hooks of inlined code only: the object is the memory that the instruction touches, and no
    /// expression is ever asked for.
    fn is_implied(&self, key: &str) -> bool {
        key == "object"
            && self.table.get("object").is_none()
            && self.names("functions").is_ok_and(|(names, _)| names.is_empty())
    }

    fn stretch(&self, item: &Spanned<DeValue<'_>>, key: &str) -> Result<Span, HookError> {
        let entry = Entry::element(key, item);
        if entry.value.as_table().is_none() {
            return Err(self.source.wrong_type(&entry, "tables { at = \"…\", len = \"…\" }"));
        }
        let table = self.source.table(&entry)?;
        table.only(&["at", "len"], |key| format!("unknown key \"{key}\""))?;
        let part = |part: &str| match table.get(part) {
            Some(entry) => self.source.expression(entry),
            None => Err(self.source.error(
                table.at,
                format!("a stretch of {key} has no {part}"),
                "{ at = \"…\", len = \"…\" }",
            )),
        };
        Ok(Span { at: part("at")?, len: part("len")? })
    }
}

impl Operands for Reader<'_> {
    fn anytime(&self, key: &str) -> Result<Expr, HookError> {
        if self.is_implied(key) {
            return Ok(Expr::Arg(1));
        }
        self.source.expression(self.operand(key)?)
    }

    fn on_entry(&self, key: &str) -> Result<Expr, HookError> {
        if self.is_implied(key) {
            return Ok(Expr::Arg(1));
        }
        self.known_on_entry(self.operand(key)?)
    }

    fn mode(&self) -> Result<Option<LockMode>, HookError> {
        let Some(entry) = self.table.get("mode") else { return Ok(None) };
        match self.source.string(entry)? {
            "exclusive" => Ok(Some(LockMode::Exclusive)),
            "shared" => Ok(Some(LockMode::Shared)),
            other => Err(self.source.error(
                entry.at,
                format!("unknown mode \"{other}\""),
                nearest(other, ["exclusive", "shared"]),
            )),
        }
    }

    fn depends(&self) -> Result<Option<Dependences>, HookError> {
        let Some(entry) = self.table.get("depends") else { return Ok(None) };
        match self.source.string(entry)? {
            "gomp" => Ok(Some(Dependences::Gomp)),
            "kmp" => Ok(Some(Dependences::Kmp)),
            other => Err(self.source.error(
                entry.at,
                format!("unknown form of dependences \"{other}\""),
                nearest(other, ["gomp", "kmp"]),
            )),
        }
    }

    fn spans(&self) -> Result<(Vec<Span>, Vec<Span>), HookError> {
        let side = |key: &str| {
            let Some(entry) = self.table.get(key) else { return Ok(vec![]) };
            let DeValue::Array(array) = entry.value else {
                return Err(self
                    .source
                    .wrong_type(entry, "an array of { at = \"…\", len = \"…\" }"));
            };
            array.iter().map(|item| self.stretch(item, key)).collect()
        };
        let (reads, writes): (Vec<Span>, Vec<Span>) = (side("reads")?, side("writes")?);
        if reads.is_empty() && writes.is_empty() {
            let (at, role) = self.role();
            return Err(self.source.error(
                at,
                format!("role \"{role}\" has neither reads nor writes"),
                "reads or writes = [{ at = \"…\", len = \"…\" }]",
            ));
        }
        Ok((reads, writes))
    }

    fn first(&self) -> Result<u8, HookError> {
        let entry = self.operand("values")?;
        match self.source.expression(entry)? {
            Expr::Arg(first) => Ok(first),
            _ => Err(self.source.error(
                entry.at,
                "values begin with an argument of the call",
                "values = \"arg3\" or another argument",
            )),
        }
    }

    fn variadic(&self) -> Result<Variadic, HookError> {
        match (self.table.get("values"), self.table.get("list")) {
            (Some(_), None) => self.first().map(Variadic::From),
            (None, Some(entry)) => Ok(Variadic::List(self.known_on_entry(entry)?)),
            (both, _) => {
                let (at, role) = self.role();
                let found = if both.is_some() { "both values and list" } else { "no values" };
                let message = format!("role \"{role}\" has {found}");
                let right = "values = \"arg3\", or list = \"arg3\" for a va_list";
                Err(self.source.error(at, message, right))
            }
        }
    }
}

/// Names already given a meaning in this file: no function may have two.
#[derive(Default)]
struct Taken {
    functions: Vec<(String, usize, usize)>,
    inlined: Vec<(String, usize, usize)>,
}

impl Taken {
    fn claim(&mut self, source: &Source<'_>, index: usize, new: &Placed) -> Result<(), HookError> {
        let sides = [
            (&mut self.functions, &new.hook.functions, &new.functions),
            (&mut self.inlined, &new.hook.inlined, &new.inlined),
        ];
        for (taken, names, places) in sides {
            for (name, &at) in names.iter().zip(places) {
                let clash = taken.iter().find(|(other, _, owner)| {
                    if *owner == index { other == name } else { overlap(other, name) }
                });
                if let Some((other, place, _)) = clash {
                    let (line, _) = source.position(*place);
                    let message = if other == name {
                        format!("\"{name}\" is hooked already at line {line}")
                    } else {
                        format!(
                            "\"{name}\" can mean the same function as \"{other}\" at line {line}"
                        )
                    };
                    return Err(source.error(at, message, "each function once in a file"));
                }
                taken.push((name.clone(), at, index));
            }
        }
        Ok(())
    }
}

/// One `key = value`, with the places of both.
struct Entry<'a> {
    key: &'a str,
    key_at: usize,
    at: usize,
    value: &'a DeValue<'a>,
}

impl<'a> Entry<'a> {
    /// An element of the array that is the value of `key`.
    fn element(key: &'a str, item: &'a Spanned<DeValue<'a>>) -> Self {
        let at = item.span().start;
        Entry { key, key_at: at, at, value: item.get_ref() }
    }
}

/// A table's entries in the order of the file.
struct Table<'a> {
    source: &'a Source<'a>,
    at: usize,
    entries: Vec<Entry<'a>>,
}

impl<'a> Table<'a> {
    fn new(source: &'a Source<'a>, at: usize, table: &'a DeTable<'a>) -> Self {
        let mut entries: Vec<Entry<'a>> = table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref(),
                key_at: key.span().start,
                at: value.span().start,
                value: value.get_ref(),
            })
            .collect();
        entries.sort_by_key(|entry| entry.key_at);
        Table { source, at, entries }
    }

    fn get(&self, key: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn only(&self, keys: &[&str], message: impl Fn(&str) -> String) -> Result<(), HookError> {
        match self.entries.iter().find(|entry| !keys.contains(&entry.key)) {
            Some(entry) => Err(self.source.error(
                entry.key_at,
                message(entry.key),
                nearest(entry.key, keys.iter().copied()),
            )),
            None => Ok(()),
        }
    }
}

/// The text being read, for places and types.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> Source<'a> {
    fn error(
        &self,
        at: usize,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) -> HookError {
        HookError {
            file: self.name.to_owned(),
            position: Some(self.position(at)),
            message: message.into(),
            expected: expected.into(),
        }
    }

    /// Line and column, from 1, of a byte of the text.
    fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }

    fn wrong_type(&self, entry: &Entry<'_>, expected: &str) -> HookError {
        let found = match entry.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.error(entry.at, format!("{} is {found}", entry.key), expected)
    }

    fn string<'v>(&self, entry: &Entry<'v>) -> Result<&'v str, HookError> {
        entry.value.as_str().ok_or_else(|| self.wrong_type(entry, "a string"))
    }

    fn boolean(&self, entry: &Entry<'_>) -> Result<bool, HookError> {
        entry.value.as_bool().ok_or_else(|| self.wrong_type(entry, "true or false"))
    }

    fn strings<'v>(&self, entry: &Entry<'v>) -> Result<Vec<(&'v str, usize)>, HookError> {
        let wrong = |entry: &Entry<'_>| self.wrong_type(entry, "an array of strings");
        let array = entry.value.as_array().ok_or_else(|| wrong(entry))?;
        let items = array.iter().map(|item| match item.get_ref().as_str() {
            Some(text) => Ok((text, item.span().start)),
            None => Err(wrong(&Entry::element(entry.key, item))),
        });
        items.collect()
    }

    fn table(&'a self, entry: &Entry<'a>) -> Result<Table<'a>, HookError> {
        match entry.value.as_table() {
            Some(table) => Ok(Table::new(self, entry.at, table)),
            None => Err(self.wrong_type(entry, "a table")),
        }
    }

    /// An expression in quotes, or a plain number.
    fn expression(&self, entry: &Entry<'_>) -> Result<Expr, HookError> {
        match entry.value {
            DeValue::String(text) => expression::parse(text).map_err(|fault| {
                let Fault { at, message, expected } = fault;
                self.error(self.inside(entry.at, text, at), message, expected)
            }),
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
                .map(Expr::Number)
                .map_err(|_| {
                    let message = format!("{} is {}", entry.key, number.as_str());
                    self.error(entry.at, message, "a number from 0 to 2^64 - 1")
                }),
            _ => Err(self.wrong_type(entry, "an expression in quotes, or a number")),
        }
    }

    /// The place of a byte of a string's content, where the content stands in the file as it is
    /// (without escapes); otherwise that of the string.
    fn inside(&self, at: usize, content: &str, byte: usize) -> usize {
        let raw = &self.text[at..];
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let opening = quotes.into_iter().find(|quote| raw.starts_with(quote)).map_or(0, str::len);
        let verbatim = raw.get(opening..).is_some_and(|rest| rest.starts_with(content));
        if verbatim { at + opening + byte } else { at }
    }
}

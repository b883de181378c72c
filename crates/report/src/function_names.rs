//! Whether two tools mean the same function by the names they give it.
//!
//! A symbol table has a function's whole name, `ns::Shelf<int>::at(unsigned long)`. Debug information
//! often has no more than the bare one, `at`: compilers leave the rest away for static and local
//! functions, and Valgrind reads nothing else for inlined ones. So the same function is `sell(int)` to one
//! tool and `sell` to another. What both say must agree, and a bare name can agree only in what it has:
//! two whole names are compared with scopes, template arguments and parameters, a bare one with the other's
//! last part. Blanks, return types and the compiler's copies (`[clone .isra.0]`) do not count.

use raddle_model::demangled;

/// A function's name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunctionName {
    /// From the outermost: namespaces, classes, the functions around a local one.
    scopes: Vec<Part>,
    base: Part,
    /// Absent where they are not told: in C, in Rust, and of bare names.
    parameters: Option<String>,
}

/// `vector<int>`: one of the parts between which `::` stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Part {
    name: String,
    arguments: Option<String>,
}

/// Do two names mean the same function, as far as they tell?
pub fn same_function(one: &str, other: &str) -> bool {
    let equal = |one: &str, other: &str| one == other;
    one == other || FunctionName::new(one).agrees(&FunctionName::new(other), &equal)
}

impl FunctionName {
    /// Takes a demangled name apart.
    pub fn new(text: &str) -> FunctionName {
        Parser::new(without_clone(text.trim())).parse()
    }

    /// Is it more than the function's own name?
    pub fn is_whole(&self) -> bool {
        self.parameters.is_some() || !self.scopes.is_empty()
    }

    /// Is it the same function's? `fit` compares a text of ours with the other's.
    pub fn agrees(&self, other: &FunctionName, fit: &dyn Fn(&str, &str) -> bool) -> bool {
        let fit_if_told = |one: &Option<String>, other: &Option<String>| match (one, other) {
            (Some(one), Some(other)) => fit(one, other),
            _ => true,
        };
        let parts_fit = |one: &Part, other: &Part| {
            fit(&one.name, &other.name) && fit_if_told(&one.arguments, &other.arguments)
        };
        if self.is_whole() != other.is_whole() {
            // Debug information spells template arguments in its own way: `0` for `0ul`.
            return fit(closure(&self.base.name), closure(&other.base.name));
        }
        self.scopes.len() == other.scopes.len()
            && self.scopes.iter().zip(&other.scopes).all(|(one, other)| parts_fit(one, other))
            && parts_fit(&self.base, &other.base)
            && fit_if_told(&self.parameters, &other.parameters)
    }
}

/// Rust's closures have a number in debug information and in one of the two manglings only.
fn closure(name: &str) -> &str {
    match name.starts_with("{closure#") || name == "{{closure}}" {
        true => "{closure}",
        false => name,
    }
}

/// The name of the function that a compiler copied, split up or versioned.
fn without_clone(text: &str) -> &str {
    const COPIES: [&str; 8] =
        [" [clone", ".isra.", ".part.", ".constprop.", ".cold", ".lto_priv.", ".llvm.", "@"];
    let end = COPIES.iter().filter_map(|copy| text.find(copy)).filter(|at| *at > 0).min();
    &text[..end.unwrap_or(text.len())]
}

/// Reads a name from left to right; what turns out to be a return type is forgotten.
struct Parser<'a> {
    rest: &'a str,
    scopes: Vec<Part>,
    part: Part,
}

impl<'a> Parser<'a> {
    fn new(rest: &'a str) -> Self {
        Parser { rest, scopes: Vec::new(), part: Part::default() }
    }

    fn parse(mut self) -> FunctionName {
        let mut parameters = None;
        while let Some(c) = self.rest.chars().next() {
            if let Some(operator) = operator_at(self.rest, &self.part.name) {
                self.name(operator.len());
            } else if self.rest.starts_with("::") {
                self.rest = &self.rest[2..];
                self.scopes.push(std::mem::take(&mut self.part));
            } else if c == '<' {
                self.arguments();
            } else if c == '{' {
                self.name(closing(self.rest, '{', '}'));
            } else if self.rest.starts_with("[abi:") {
                self.rest = &self.rest[closing(self.rest, '[', ']')..];
            } else if c == '(' && (self.part.name.is_empty() || self.rest.starts_with("(anon")) {
                // `(anonymous namespace)`, Valgrind's `(below main)`.
                self.name(closing(self.rest, '(', ')'));
            } else if c == '(' {
                parameters = self.parameters();
            } else if c == ' ' {
                self.rest = self.rest.trim_start();
                // `operator<< <int>`
                if !self.rest.starts_with('<') {
                    self.forget();
                    parameters = None;
                }
            } else {
                self.name(c.len_utf8());
            }
        }
        FunctionName { scopes: self.scopes, base: self.part, parameters }
    }

    /// So many bytes belong to the part's name.
    fn name(&mut self, length: usize) {
        let (name, rest) = self.rest.split_at(length);
        self.part.name += name;
        self.rest = rest;
    }

    /// `<int>` behind a name, Rust's `::<i32>`, and `<T as Trait>` at the beginning, which is a name.
    fn arguments(&mut self) {
        let (text, rest) = self.rest.split_at(closing(self.rest, '<', '>'));
        self.rest = rest;
        if self.part.name.is_empty() {
            match self.scopes.pop() {
                Some(before) => self.part = before,
                None => {
                    self.part.name = evened(text);
                    return;
                }
            }
        }
        self.part.arguments = Some(evened(text));
    }

    /// The parameters here, unless they are those of a function around the one that is meant.
    fn parameters(&mut self) -> Option<String> {
        let (text, rest) = self.rest.split_at(closing(self.rest, '(', ')'));
        self.rest = behind_qualifiers(rest);
        (!self.rest.starts_with("::")).then(|| evened(text))
    }

    /// What came so far was the type that the function returns.
    fn forget(&mut self) {
        self.scopes.clear();
        self.part = Part::default();
    }
}

/// Without ` const`, ` &` and their like, which follow parameters.
fn behind_qualifiers(mut rest: &str) -> &str {
    const QUALIFIERS: [&str; 4] = [" const", " volatile", " &&", " &"];
    while let Some(shorter) = QUALIFIERS.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    rest
}

/// A list as every tool would write it: without blanks, empty places, and the suffixes of numbers.
fn evened(list: &str) -> String {
    let mut even = String::with_capacity(list.len());
    let mut in_number = false;
    for c in list.chars().filter(|c| !c.is_whitespace()) {
        let in_word = even.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        in_number = c.is_ascii_digit() && (in_number || !in_word)
            || in_number && matches!(c, 'u' | 'U' | 'l' | 'L');
        let is_suffix = in_number && c.is_alphabetic();
        let is_empty_place = c == ',' && even.ends_with([',', '<', '(']);
        if !is_suffix && !is_empty_place {
            even.push(c);
        }
    }
    even
}

/// The end of what the first bracket encloses; of everything, if it is never closed.
fn closing(text: &str, open: char, close: char) -> usize {
    demangled::closing(text, open, close).unwrap_or(text.len())
}

/// `operator<`, `operator()`, `operator bool` …, where one begins.
fn operator_at<'a>(rest: &'a str, before: &str) -> Option<&'a str> {
    let conversion = || {
        rest.starts_with("operator ").then(|| rest.split_once('(').map_or(rest, |(name, _)| name))
    };
    before.is_empty().then(|| demangled::operator(rest).or_else(conversion))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_that_of_every_whole_one() {
        for (bare, whole) in [
            ("stat", "stat(int)"),
            ("meth", "C::meth(int)"),
            (
                "__invoke_impl<void, void (*)()>",
                "std::__invoke_impl<void, void (*)()>(std::__invoke_other, void (*&&)())",
            ),
            (
                "_M_invoke<0>",
                "std::thread::_Invoker<std::tuple<void (*)()> >::_M_invoke<0ul>(std::_Index_tuple<0ul>)",
            ),
            ("operator()", "std::thread::_Invoker<std::tuple<void (*)()> >::operator()()"),
            ("operator()", "f(int)::{lambda(int)#1}::operator()(int) const"),
            ("operator<< <int>", "ns::operator<< <int>(ns::Out&, int)"),
            ("lock_guard", "std::lock_guard<std::mutex>::lock_guard(std::mutex&)"),
            ("size", "std::string::size[abi:cxx11]() const"),
            ("run", "(anonymous namespace)::run(int)"),
            ("drop_in_place<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place<alloc::vec::Vec<u8>>"),
            ("drop", "<alloc::sync::Arc<T,A> as core::ops::drop::Drop>::drop"),
            ("add<u32>", "core::ptr::mut_ptr::<impl *mut T>::add"),
            ("lang_start<()>", "std::rt::lang_start::<()>"),
            ("{closure#0}", "crat::main::{{closure}}"),
            ("pthread_create@@GLIBC_2.34", "pthread_create"),
            ("sell.isra.0", "sell"),
        ] {
            assert!(same_function(bare, whole) && same_function(whole, bare), "{bare} {whole}");
        }
    }

    #[test]
    fn spelling_is_no_difference() {
        for (one, other) in [
            ("f(std::vector<std::vector<int> >)", "f(std::vector<std::vector<int>>)"),
            ("void ns::f<int>(int)", "ns::f<int>(int)"),
            (
                "std::thread& std::vector<std::thread>::emplace_back<void (&)()>(void (&)())",
                "std::vector<std::thread>::emplace_back<void (&)()>(void (&)())",
            ),
            ("decltype (a()) f<int>(int)", "f<int>(int)"),
            ("sell(int) [clone .isra.0]", "sell(int)"),
            ("t::t<main::{lambda()#1}&, , void>(int)", "t::t<main::{lambda()#1}&, void>(int)"),
            ("a<1ul, b2u>::f()", "a<1, b2u>::f()"),
        ] {
            assert!(same_function(one, other) && same_function(other, one), "{one} {other}");
        }
    }

    #[test]
    fn what_both_names_tell_must_agree() {
        for (one, other) in [
            ("f(int)", "f(long)"),
            ("C::f(int)", "D::f(int)"),
            ("f(int)", "C::f(int)"),
            ("a::f", "b::f"),
            ("a::b::f", "b::f"),
            ("C<int>::f()", "C<long>::f()"),
            ("f<int>(int)", "f<long>(int)"),
            ("f<int>", "f<long>"),
            ("a::b::{closure#0}", "a::b::{closure#1}"),
            ("A::operator()()", "A::operator[](int)"),
            ("A::operator bool() const", "A::operator int() const"),
            ("stat", "glob(int)"),
            ("f", "f::g(int)"),
            ("(below main)", "main"),
            ("", "f"),
        ] {
            assert!(!same_function(one, other) && !same_function(other, one), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_name_is_taken_as_it_is() {
        for name in ["", "<", "(", "f(", "f<", "{", "a::", "::", " ", "operator", "x->y<z>"] {
            assert!(same_function(name, name), "{name}");
            let _ = same_function(name, "f(int)");
        }
    }
}

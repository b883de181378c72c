//! Patterns with `*` and `?`, as suppression files use them.

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: Vec<char>,
    /// `?` stands for one character.
    question: bool,
}

impl Pattern {
    /// Must fit the whole text; `*` stands for anything, `?` for one character.
    pub fn glob(text: &str) -> Self {
        Pattern { text: text.chars().collect(), question: true }
    }

    /// ThreadSanitizer's: fits anywhere in the text unless `^` and `$` say where, `*` stands for
    /// anything.
    pub fn template(text: &str) -> Self {
        let (front, text) = match text.strip_prefix('^') {
            Some(rest) => ("", rest),
            None => ("*", text),
        };
        let (text, back) = match text.strip_suffix('$') {
            Some(rest) => (rest, ""),
            None => (text, "*"),
        };
        Pattern { text: format!("{front}{text}{back}").chars().collect(), question: false }
    }

    /// Does it fit?
    pub fn fits(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        // The classic walk that goes back to the latest star only: linear in practice, and never
        // exponential.
        let (mut at, mut in_text) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while in_text < text.len() {
            match self.text.get(at) {
                Some('*') => {
                    star = Some((at, in_text));
                    at += 1;
                }
                Some(c) if *c == text[in_text] || (self.question && *c == '?') => {
                    at += 1;
                    in_text += 1;
                }
                _ => match &mut star {
                    Some((after, skipped)) => {
                        *skipped += 1;
                        (at, in_text) = (*after + 1, *skipped);
                    }
                    None => return false,
                },
            }
        }
        self.text[at..].iter().all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text) in [("a*c", "abbc"), ("*", ""), ("a?c", "abc"), ("**x", "x"), ("", "")]
        {
            assert!(Pattern::glob(pattern).fits(text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*c", "abcd"), ("a?c", "ac"), ("", "x"), ("x", "")] {
            assert!(!Pattern::glob(pattern).fits(text), "{pattern} {text}");
        }
        let hard = "a*".repeat(30);
        assert!(!Pattern::glob(&format!("{hard}b")).fits(&"a".repeat(200)));
    }

    #[test]
    fn templates() {
        assert!(Pattern::template("oo").fits("foobar"));
        assert!(!Pattern::template("^oo").fits("foobar"));
        assert!(Pattern::template("^foo").fits("foobar"));
        assert!(!Pattern::template("foo$").fits("foobar"));
        assert!(Pattern::template("f*r$").fits("foobar"));
        assert!(!Pattern::template("f?o").fits("foo"));
    }
}

//! What is wrong with a hook file: one sentence, with the place and what should stand there.
//!
//! For a wrong word that is the nearest right one, so that a typing error explains itself.

/// `file:line:column: message; expected …`
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}; expected {expected}", self.place())]
pub struct HookError {
    /// The file, as the caller named it.
    pub file: String,
    /// Line and column, from 1, in characters; absent for hooks that did not come from a text.
    pub position: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
    /// What would have been right.
    pub expected: String,
}

impl HookError {
    fn place(&self) -> String {
        match self.position {
            Some((line, column)) => format!("{}:{line}:{column}", self.file),
            None => self.file.clone(),
        }
    }
}

/// What to expect in place of `wrong`: the nearest of the right words, or all of them.
pub(crate) fn nearest<'a>(wrong: &str, right: impl IntoIterator<Item = &'a str>) -> String {
    /// Below this likeness (0 to 1) a suggestion is more of a riddle than a help.
    const ALIKE: f64 = 0.75;
    let right: Vec<&str> = right.into_iter().collect();
    let best = right
        .iter()
        .map(|word| {
            (strsim::damerau_levenshtein(wrong, word), strsim::jaro_winkler(wrong, word), word)
        })
        .filter(|(_, likeness, _)| *likeness >= ALIKE)
        .min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    match best {
        Some((_, _, word)) => format!("\"{word}\""),
        None => one_of(&right),
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_word() {
        let words = ["lock.acquire", "lock.release", "lock.create", "wait"];
        assert_eq!(nearest("lock.aquire", words), "\"lock.acquire\"");
        assert_eq!(nearest("lock_release", words), "\"lock.release\"");
        assert_eq!(nearest("spin", words), "lock.acquire, lock.release, lock.create or wait");
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(one_of(&[]), "nothing");
        assert_eq!(one_of(&["a"]), "a");
        assert_eq!(one_of(&["a", "b", "c"]), "a, b or c");
    }
}

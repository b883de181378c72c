//! Demangled names, as far as finding one's way in them goes: brackets, and operators that look like brackets.

/// The end of what the bracket that `text` begins with encloses, behind the one that closes it. `->` closes nothing.
pub fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0usize;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close && !(close == '>' && previous == '-') {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + c.len_utf8());
            }
        }
        previous = c;
    }
    None
}

/// `operator<`, `operator->`, `operator()` …, if `text` begins with one.
pub fn operator(text: &str) -> Option<&str> {
    const WORD: &str = "operator";
    const SYMBOLS: [&str; 22] = [
        "()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", "==", "!=",
        "++", "--", "+=", "-=", "&&", "||", "=",
    ];
    let symbol = text.strip_prefix(WORD)?;
    let found = SYMBOLS.iter().find(|known| symbol.starts_with(**known))?;
    Some(&text[..WORD.len() + found.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_close_where_they_were_opened() {
        assert_eq!(closing("<a<b>>::c", '<', '>'), Some(6));
        assert_eq!(closing("(f->g(x))", '(', ')'), Some(9));
        assert_eq!(closing("<a->b>c", '<', '>'), Some(6));
        assert_eq!(closing("<a", '<', '>'), None);
        assert_eq!(closing(">", '<', '>'), None);
    }

    #[test]
    fn the_longest_operator_is_meant() {
        assert_eq!(operator("operator<<=(int)"), Some("operator<<="));
        assert_eq!(operator("operator()(int)"), Some("operator()"));
        assert_eq!(operator("operator bool()"), None);
        assert_eq!(operator("operators"), None);
    }
}

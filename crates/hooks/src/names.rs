//! Names of functions as hook files write them: `*` stands for any run of characters.
//!
//! Matching names of real programs is the business of whoever reads them; here it only matters
//! whether two patterns of a file could mean the same function, which would give it two meanings.

/// Is there a name that both patterns match?
///
/// Both are walked at once: `reach[j]` says whether some text is matched by the first `i` tokens of
/// one and the first `j` tokens of the other.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    // Most pairs differ before the first star or after the last one.
    if differ(a.bytes(), b.bytes()) || differ(a.bytes().rev(), b.bytes().rev()) {
        return false;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut reach = vec![false; b.len() + 1];
    reach[0] = true;
    for j in 0..b.len() {
        reach[j + 1] = reach[j] && b[j] == b'*';
    }
    for &x in a {
        let mut diagonal = reach[0];
        reach[0] = diagonal && x == b'*';
        for (j, &y) in b.iter().enumerate() {
            let above = reach[j + 1];
            reach[j + 1] = match (x, y) {
                // A star may stand for nothing, or for one more token of the other pattern.
                (b'*', _) | (_, b'*') => diagonal || above || reach[j],
                _ => diagonal && x == y,
            };
            diagonal = above;
        }
    }
    reach[b.len()]
}

/// Do the texts differ in a place that no star can make up for?
fn differ(mut a: impl Iterator<Item = u8>, mut b: impl Iterator<Item = u8>) -> bool {
    loop {
        match (a.next(), b.next()) {
            (Some(b'*'), _) | (_, Some(b'*')) | (None, None) => return false,
            (x, y) if x != y => return true,
            _ => {}
        }
    }
}

/// Does the pattern name something, rather than everything?
pub(crate) fn is_telling(pattern: &str) -> bool {
    pattern.chars().any(|c| c != '*' && !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_can_mean_the_same_name_overlap() {
        for (a, b, expected) in [
            ("strlen", "strlen", true),
            ("strlen", "strnlen", false),
            ("strlen", "str*", true),
            ("strlen", "*len", true),
            ("strlen", "*", true),
            ("strlen", "strlen*", true),
            ("strlen", "strnlen*", false),
            ("__memcpy_avx*", "__memcpy_chk*", false),
            ("__memcpy_*", "*_chk", true),
            ("a*c", "ab*", true),
            ("a*c", "b*c", false),
            ("a*b", "ab", true),
            ("*a*", "b*b", true),
            ("*", "*", true),
            ("", "*", true),
            ("", "a*", false),
            ("GOMP_loop_*_start", "GOMP_loop_end", false),
        ] {
            assert_eq!(overlap(a, b), expected, "{a} {b}");
            assert_eq!(overlap(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn stars_alone_tell_nothing() {
        assert!(is_telling("a*") && !is_telling("**") && !is_telling(""));
    }
}

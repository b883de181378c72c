//! Text from the target, made harmless in HTML.

use crate::findings::text::words::clean;

/// Safe as text and inside a quoted attribute; control characters are shown, not obeyed.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c => out.push_str(&clean(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

/// Prose of ours, in which backticks quote what is typed: escaped, with that as code.
pub(super) fn prose(text: &str) -> String {
    let escaped = escape(text);
    let parts: Vec<&str> = escaped.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // One has no partner.
        return escaped;
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => part.to_string(),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_through() {
        assert_eq!(escape("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
        assert_eq!(escape("\0\u{202e}"), "\\u{0}\\u{202e}");
    }

    #[test]
    fn what_is_typed_is_code() {
        assert_eq!(prose("see `a<b>` and `c`"), "see <code>a&lt;b&gt;</code> and <code>c</code>");
        assert_eq!(prose("it`s"), "it`s");
    }
}

//! Is somebody watching? Colour and live news are for terminals only.

use raddle_report::Paint;
use std::io::IsTerminal;

/// Colour for a stream that is a terminal, unless `NO_COLOR` or a dumb terminal says otherwise.
pub fn paint(stream: &impl IsTerminal) -> Paint {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if stream.is_terminal() && unset("NO_COLOR") && !dumb { Paint::Colour } else { Paint::Plain }
}

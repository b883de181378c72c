//! Is somebody watching? Colour, live news and a report cut to the screen are for terminals only.

use raddle_report::Paint;
use raddle_report::findings::text::Style;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::Path;

/// Colour for a stream that is a terminal, unless `NO_COLOR` or a dumb terminal says otherwise.
pub fn paint(stream: &impl IsTerminal) -> Paint {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if stream.is_terminal() && unset("NO_COLOR") && !dumb { Paint::Colour } else { Paint::Plain }
}

/// How a report is written to a stream: to the measure of the screen, if it is one.
pub fn style(stream: &(impl IsTerminal + AsFd), base: &Path, everything: bool) -> Style {
    let size = match stream.is_terminal() {
        true => terminal_size::terminal_size_of(stream),
        false => None,
    };
    Style {
        paint: paint(stream),
        everything,
        width: size.map(|(width, _)| usize::from(width.0)).filter(|columns| *columns > 0),
        height: size.map(|(_, height)| usize::from(height.0)).filter(|rows| *rows > 0),
        ..Style::plain(base)
    }
}

//! Colour, on terminals that want it.

use std::fmt::Display;

/// Whether to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Plain text: files, pipes, `NO_COLOR`.
    Plain,
    /// Escape sequences.
    Colour,
}

/// What a piece of text is, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tint {
    Thread,
    Write,
    Sync,
    Place,
    Heading,
    Finding,
}

impl Paint {
    pub(crate) fn text(self, tint: Tint, text: impl Display) -> String {
        let code = match tint {
            _ if self == Paint::Plain => return text.to_string(),
            Tint::Thread => "36",
            Tint::Write => "33",
            Tint::Sync => "32",
            Tint::Place => "2",
            Tint::Heading => "1",
            Tint::Finding => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

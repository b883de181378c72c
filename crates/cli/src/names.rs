//! Names for the renderers, from the symboliser.

use raddle_report::{Frame, Symbols};
use raddle_symbols::{Symboliser, SymboliserOptions};
use std::path::Path;

/// The symboliser, as the renderers ask it.
pub struct Names(Symboliser);

impl Names {
    /// Reads modules when they are first asked about.
    pub fn new() -> Self {
        let cache = raddle_execute::cache_directory("names");
        Names(Symboliser::new(SymboliserOptions { cache, ..SymboliserOptions::default() }))
    }

    /// The symboliser itself.
    pub fn symboliser(&mut self) -> &mut Symboliser {
        &mut self.0
    }
}

impl Symbols for Names {
    fn frames(&mut self, module: &str, offset: u64) -> Vec<Frame> {
        let frames = self.0.frames(Path::new(module), offset);
        let known = frames.iter().any(|frame| frame.function.is_some() || frame.file.is_some());
        let frame = |frame: raddle_symbols::Frame| Frame {
            function: frame.function,
            file: frame.file.map(|file| file.to_string_lossy().into_owned()),
            line: frame.line,
            column: frame.column,
            inlined: frame.inlined,
        };
        if known { frames.into_iter().map(frame).collect() } else { Vec::new() }
    }

    fn variable(&mut self, module: &str, offset: u64) -> Option<String> {
        self.0.variable(Path::new(module), offset).map(|variable| variable.name)
    }
}

//! Progress, for whatever takes longer than somebody watching would wait in silence.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What ends sooner needs no excuse.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the sign of life moves.
const TICK: Duration = Duration::from_millis(120);

/// A sign of life on standard error, from when patience runs out until this is dropped. Nothing at
/// all where standard error is no terminal.
pub struct Progress {
    shown: Option<(Sender<News>, JoinHandle<()>)>,
}

/// What there is to say.
enum News {
    /// How far it has come.
    State(String),
    /// A line that stays.
    Line(String),
}

impl Progress {
    /// Says what is being done, should it take long.
    pub fn doing(what: impl Into<String>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Progress { shown: None };
        }
        let (news, heard) = channel();
        let what = what.into();
        Progress { shown: Some((news, std::thread::spawn(move || show(what, &heard)))) }
    }

    /// Says that a module is being read, as long as one is.
    pub fn reading(module: Option<&Path>) -> Option<Self> {
        module.map(|module| Progress::doing(reading(module)))
    }

    /// Says how far it has come.
    pub fn say(&self, what: impl Into<String>) {
        if let Some((news, _)) = &self.shown {
            // Nobody listens any more only when the terminal is gone.
            let _ = news.send(News::State(what.into()));
        }
    }

    /// Writes a line to standard error, where the sign of life does not disturb it.
    pub fn line(&self, line: impl Into<String>) {
        match &self.shown {
            Some((news, _)) => {
                let _ = news.send(News::Line(line.into()));
            }
            None => eprintln!("{}", line.into()),
        }
    }
}

/// What is said while a module is being read.
pub fn reading(module: &Path) -> String {
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    format!("reading the debug information of {name}")
}

fn show(mut what: String, heard: &Receiver<News>) {
    let until = Instant::now() + PATIENCE;
    loop {
        match heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(News::State(news)) => what = news,
            Ok(News::Line(line)) => eprintln!("{line}"),
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // The clock counts from when the work began, not from when it was shown.
    let bar = bar.with_elapsed(PATIENCE);
    if let Ok(style) = ProgressStyle::with_template("{spinner} raddle: {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(TICK);
    // An error means that the sender is gone, which is the end.
    while let Ok(news) = heard.recv() {
        match news {
            News::State(news) => bar.set_message(news),
            News::Line(line) => bar.suspend(|| eprintln!("{line}")),
        }
    }
    bar.finish_and_clear();
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((news, shower)) = self.shown.take() {
            drop(news);
            let _ = shower.join();
        }
    }
}

//! Progress, for whatever takes longer than somebody watching would wait in silence.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// What ends sooner needs no excuse.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the sign of life moves.
const TICK: Duration = Duration::from_millis(120);

/// A sign of life on standard error, from when patience runs out until this is dropped. Nothing at
/// all where standard error is no terminal.
pub struct Progress {
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Says what is being done, should it take long.
    pub fn doing(what: &'static str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Progress { shown: None };
        }
        let (done, over) = channel();
        let show = move || {
            if over.recv_timeout(PATIENCE).is_ok() {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} raddle: {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.set_message(what);
            bar.enable_steady_tick(TICK);
            // An error means that the sender is gone, which is the end as well.
            let _ = over.recv();
            bar.finish_and_clear();
        };
        Progress { shown: Some((done, std::thread::spawn(show))) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, shower)) = self.shown.take() {
            let _ = done.send(());
            let _ = shower.join();
        }
    }
}

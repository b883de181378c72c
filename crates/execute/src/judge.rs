//! Did the target end, or did we? A crash or hang of ours must never look like the target's, so
//! the way a process died is believed only together with what its log says: the engine lets the
//! probe finish its log before every end but `SIGKILL`, deadly signals included.

use crate::control::Control;
use crate::follow::Followed;
use crate::{End, ExecuteError, Outcome};
use raddle_wire::log::State;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// How long the engine may take to end a process in which nothing happens any more: ending takes
/// milliseconds, and a thousand times that on a machine that swaps.
pub(crate) const ENDING_PATIENCE: Duration = Duration::from_secs(30);

/// Where to look for what the engine itself had to say; it has only the target's standard error.
const ENGINES_WORDS: &str = "the engine's own words, if any, begin with \"<Application\"";

/// An execution when nothing of it runs any more.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Number of the first process.
    pub first: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// Was the probe asked for?
    pub probed: bool,
    /// We killed it for the time limit.
    pub timed_out: bool,
    /// We asked it to end, or killed it when it did not, because it had run long enough.
    pub stopped: bool,
    /// We killed it because it would not end; where its threads were.
    pub stuck: Option<String>,
    /// The process that we killed because it hung in code of ours, and where.
    pub hung: Option<(u32, String)>,
    /// The logs, in order of appearance.
    pub logs: Vec<LogEnd>,
    /// Modules without names.
    pub without_symbols: Vec<PathBuf>,
    /// What was noticed on the way.
    pub warnings: Vec<String>,
    /// What the scheduler did.
    pub control: Control,
}

/// A log when nothing more will be written to it.
#[derive(Debug)]
pub(crate) struct LogEnd {
    /// Its process.
    pub process: u32,
    /// How far the probe got.
    pub state: State,
    /// Why it gave up, if it did.
    pub failure: Option<String>,
    /// How far the events had come.
    pub whereabouts: String,
}

impl LogEnd {
    pub(crate) fn of(log: &mut Followed) -> Self {
        let whereabouts = match log.last {
            None => "before its first event".to_owned(),
            Some((thread, place)) => format!(
                "after {} events, the last by {thread} at module {} + {:#x}",
                log.events, place.module.0, place.offset
            ),
        };
        LogEnd { process: log.pid(), state: log.state(), failure: log.failure.clone(), whereabouts }
    }
}

/// A program that starts another in its own place (a script's interpreter, say) is one that was not looked at.
const UNWATCHED: &str =
    "the program became another one, which was not watched; --follow watches it";

/// The verdict.
pub(crate) fn judge(ended: Ended) -> Result<Outcome, ExecuteError> {
    let Ended { first, status, .. } = ended;
    let ours = |process, what| Err(ExecuteError::Inside { process, what });
    if let Some(log) = ended.logs.iter().find(|log| log.state == State::Failed) {
        let why = log.failure.as_deref().unwrap_or("it did not say why");
        return ours(log.process, format!("{why}, {}", log.whereabouts));
    }
    if let Some((process, what)) = ended.hung {
        return match ended.logs.iter().rfind(|log| log.process == process) {
            Some(log) => ours(process, format!("{what}, {}", log.whereabouts)),
            None => ours(process, what),
        };
    }
    if let Some(places) = ended.stuck {
        let seconds = ENDING_PATIENCE.as_secs();
        let what = format!("it did not end within {seconds} seconds and was killed: {places}");
        return ours(first, what);
    }
    let mut warnings = ended.warnings;
    warnings.extend(ended.control.refused.iter().cloned());
    let killed = ended.logs.iter().filter(|l| l.process != first && l.state == State::Running);
    warnings.extend(killed.map(|l| format!("process {} was killed, {}", l.process, l.whereabouts)));
    let last = ended.logs.iter().rfind(|log| log.process == first);
    if last.is_some_and(|log| log.state == State::Replaced) {
        warnings.push(UNWATCHED.into());
    }
    let end = match (status.code(), status.signal()) {
        _ if ended.timed_out => End::TimedOut,
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) if ended.stopped && is_ours(signal) => End::Stopped(signal),
        (None, Some(signal)) => End::Killed(signal),
        (None, None) => return ours(first, format!("it ended inexplicably ({status})")),
    };
    let by_force = ended.timed_out || status.signal() == Some(Signal::KILL.as_raw());
    if ended.probed && !by_force {
        // After an `exec` the last of the process's logs counts.
        match last {
            None => {
                let what = format!("the probe did not start ({status}); {ENGINES_WORDS}");
                return ours(first, what);
            }
            Some(log) if log.state == State::Running => {
                let what = format!("it broke off ({status}) {}; {ENGINES_WORDS}", log.whereabouts);
                return ours(first, what);
            }
            Some(_) => {}
        }
    }
    let processes = ended.logs.iter().map(|log| log.process).collect::<BTreeSet<_>>().len();
    let without_symbols = ended.without_symbols;
    Ok(Outcome { end, processes, without_symbols, warnings, control: ended.control })
}

/// Is this a signal that stops a target?
fn is_ours(signal: i32) -> bool {
    [Signal::TERM, Signal::KILL].iter().any(|ours| ours.as_raw() == signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT_3: i32 = 3 << 8;

    fn ended(status: i32, logs: &[(u32, State)]) -> Ended {
        let log = |&(process, state): &(u32, State)| LogEnd {
            process,
            state,
            failure: None,
            whereabouts: "after 5 events".into(),
        };
        Ended {
            first: 1,
            status: ExitStatus::from_raw(status),
            probed: true,
            timed_out: false,
            stopped: false,
            stuck: None,
            hung: None,
            logs: logs.iter().map(log).collect(),
            without_symbols: Vec::new(),
            warnings: Vec::new(),
            control: Control::default(),
        }
    }

    fn end(status: i32, logs: &[(u32, State)]) -> Result<End, String> {
        judge(ended(status, logs)).map(|outcome| outcome.end).map_err(|e| e.to_string())
    }

    #[test]
    fn an_end_that_the_log_confirms_is_the_targets() {
        for state in [State::Ended, State::Ending, State::Replaced] {
            assert_eq!(end(EXIT_3, &[(1, state)]), Ok(End::Exited(3)));
            assert_eq!(end(11, &[(1, state)]), Ok(End::Killed(11)));
        }
        assert_eq!(end(9, &[(1, State::Running)]), Ok(End::Killed(9)));
        assert_eq!(end(9, &[]), Ok(End::Killed(9)));
    }

    #[test]
    fn an_end_without_a_word_is_ours() {
        let error = end(11, &[(1, State::Running)]).unwrap_err();
        assert!(
            error.starts_with(
                "Raddle failed inside the target, process 1: \
                 it broke off (signal: 11 (SIGSEGV)) after 5 events; the engine's own words"
            ),
            "{error}"
        );
        let error = end(0, &[]).unwrap_err();
        assert!(error.contains("the probe did not start (exit status: 0)"), "{error}");
        // Replaced by a program that then broke off.
        assert!(end(0, &[(1, State::Replaced), (1, State::Running)]).is_err());
    }

    #[test]
    fn a_failure_is_ours_however_the_process_ended() {
        for status in [0, 9, 11] {
            let mut ended = ended(status, &[(1, State::Ended), (7, State::Failed)]);
            ended.logs[1].failure = Some("no room for a chunk".into());
            let error = judge(ended).unwrap_err();
            let text = "Raddle failed inside the target, process 7: \
                        no room for a chunk, after 5 events";
            assert_eq!((error.exit_code(), error.to_string()), (125, text.into()));
        }
        let stuck = Some("thread 1, is at work".to_owned());
        let stuck = Ended { stuck, ..ended(9, &[(1, State::Ending)]) };
        let text = judge(stuck).unwrap_err().to_string();
        assert!(text.ends_with("within 30 seconds and was killed: thread 1, is at work"), "{text}");
        let hung = Some((1, "it hung".to_owned()));
        let hung = Ended { hung, ..ended(9, &[(1, State::Running)]) };
        let error = judge(hung).unwrap_err();
        let text = "Raddle failed inside the target, process 1: it hung, after 5 events";
        assert_eq!((error.exit_code(), error.to_string()), (125, text.into()));
    }

    #[test]
    fn the_time_limit_and_lost_children_are_said() {
        let late = Ended { timed_out: true, ..ended(9, &[(1, State::Running)]) };
        assert_eq!(judge(late).unwrap().end, End::TimedOut);
        let logs = [(1, State::Replaced), (1, State::Ended), (2, State::Running)];
        let outcome = judge(ended(0, &logs)).unwrap();
        assert_eq!((outcome.end, outcome.processes), (End::Exited(0), 2));
        assert_eq!(outcome.warnings, ["process 2 was killed, after 5 events"]);
        let outcome = judge(ended(0, &[(1, State::Replaced)])).unwrap();
        assert_eq!(outcome.warnings, [UNWATCHED]);
    }

    #[test]
    fn a_target_that_was_stopped_may_still_end_as_it_likes() {
        let stopped = |status, state| {
            let ended = Ended { stopped: true, ..ended(status, &[(1, state)]) };
            judge(ended).map(|outcome| outcome.end).map_err(|e| e.to_string())
        };
        assert_eq!(stopped(15, State::Ended), Ok(End::Stopped(15)));
        assert_eq!(stopped(9, State::Running), Ok(End::Stopped(9)));
        assert_eq!(stopped(EXIT_3, State::Ended), Ok(End::Exited(3)));
        assert_eq!(stopped(11, State::Ended), Ok(End::Killed(11)));
    }

    #[test]
    fn without_a_probe_the_status_is_believed() {
        let bare = Ended { probed: false, ..ended(11, &[]) };
        assert_eq!(judge(bare).unwrap().end, End::Killed(11));
    }
}

//! What the command and a server say to each other: a line of JSON each, through two named pipes in
//! the run directory.
//!
//! A *server* is a target that has come to `main` and waits there. For each request it makes a copy
//! of itself, which goes on as the target would under the policy asked for, waits for its end, and
//! says how it ended. The named pipes end with the command, and a server without a command ends too.

use crate::options::PolicyChoice;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// The pipe by which the server is asked.
pub const REQUESTS: &str = "requests";
/// The pipe by which it answers.
pub const REPLIES: &str = "replies";

/// One execution that is asked for: what may differ from one to the next. All else is as the server
/// was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Who decides.
    pub policy: PolicyChoice,
    /// What it draws its decisions from.
    pub seed: u64,
    /// Threads stop, too, before they ask for a lock while they hold another.
    pub lock_points: bool,
}

/// What the server says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// It stands at `main`.
    Ready,
    /// It cannot serve, for this reason, and has ended.
    Cannot(String),
    /// The copy is this process; its log is the first of its number.
    Started(u32),
    /// The copy has ended with this wait status.
    Ended(i32),
}

/// A message as it is written.
pub fn line(message: &impl Serialize) -> String {
    // Numbers, strings and lists of them have no way to fail.
    serde_json::to_string(message).unwrap_or_default() + "\n"
}

/// The message in a line.
pub fn parse<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|e| format!("{line:?} is not a message between us: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_from_their_lines() {
        let policy = PolicyChoice::Pct { depth: 3, length: 200 };
        let request = Request { policy, seed: u64::MAX, lock_points: true };
        assert_eq!(parse(&line(&request)), Ok(request));
        for reply in
            [Reply::Ready, Reply::Cannot("a\nb".into()), Reply::Started(7), Reply::Ended(139)]
        {
            let text = line(&reply);
            assert_eq!(text.matches('\n').count(), 1, "{text:?}");
            assert_eq!(parse(&text), Ok(reply));
        }
        assert!(parse::<Reply>("ready").unwrap_err().contains("\"ready\" is not a message"));
    }
}

//! Run directories: where one execution's logs, options and facts live.
//!
//! A temporary one carries the process id of its command in its name, so that the next command can
//! remove what one that was killed outright has left.

use crate::ExecuteError;
use rustix::process::{Pid, test_kill_process};
use std::io;
use std::path::{Path, PathBuf};

/// A directory for one execution: temporary and gone with this value, or the user's and kept.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Removes the directory when dropped.
    _temporary: Option<tempfile::TempDir>,
}

/// How temporary run directories are called, before the process id.
const PREFIX: &str = "raddle-run-";

impl RunDirectory {
    /// A fresh directory that nobody else can read, removed at the end.
    pub fn temporary() -> Result<Self, ExecuteError> {
        remove_abandoned(&std::env::temp_dir());
        let context = || format!("making a directory in {}", std::env::temp_dir().display());
        let made = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir()
            .map_err(ExecuteError::during(context()))?;
        let path = made.path().canonicalize().map_err(ExecuteError::during(context()))?;
        Ok(RunDirectory { path, _temporary: Some(made) })
    }

    /// The user's own: made where it does not exist, and refused when something is in it, because
    /// a log of an earlier run must neither be lost nor be taken for ours.
    pub fn kept(path: &Path) -> Result<Self, ExecuteError> {
        let context = || format!("making the run directory {}", path.display());
        std::fs::create_dir_all(path).map_err(ExecuteError::during(context()))?;
        let mut entries = std::fs::read_dir(path).map_err(ExecuteError::during(context()))?;
        if entries.next().is_some() {
            let why = "it is not empty; name a new directory, or empty this one";
            return Err(ExecuteError::during(context())(io::Error::other(why)));
        }
        let path = path.canonicalize().map_err(ExecuteError::during(context()))?;
        Ok(RunDirectory { path, _temporary: None })
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes temporary run directories whose command is gone, and every target with a log there too.
/// Others' are not ours to remove, and what cannot be removed is left.
fn remove_abandoned(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_abandoned = name.to_str().and_then(command_of).is_some_and(is_gone)
            && logged_processes(&entry.path()).into_iter().all(is_gone);
        if is_abandoned && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The command that made the run directory of this name.
fn command_of(name: &str) -> Option<i32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// The processes with a log in a run directory: their files begin with the process id.
fn logged_processes(directory: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.split('.').next()?.parse().ok()).collect()
}

fn is_gone(pid: i32) -> bool {
    let exists = |pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH);
    !Pid::from_raw(pid).is_some_and(exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_command_left_is_removed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        let dead = gone.id();
        gone.wait().unwrap();
        let alive = std::process::id();
        let make = |name: String, log: u32| {
            let path = root.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join(format!("{log}.0.log")), "").unwrap();
            path
        };
        let abandoned = make(format!("raddle-run-{dead}-a"), dead);
        let target_lives = make(format!("raddle-run-{dead}-b"), alive);
        let command_lives = make(format!("raddle-run-{alive}-c"), dead);
        let other = make(format!("other-{dead}-d"), dead);
        remove_abandoned(root.path());
        assert!(!abandoned.exists());
        assert!(target_lives.exists() && command_lives.exists() && other.exists());
    }

    #[test]
    fn a_temporary_directory_goes_with_its_value() {
        let directory = RunDirectory::temporary().unwrap();
        let path = directory.path().to_owned();
        assert!(path.is_absolute() && path.is_dir());
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn a_kept_directory_is_made_and_must_be_empty() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let made = RunDirectory::kept(&path).unwrap();
        std::fs::write(made.path().join("1.log"), "").unwrap();
        drop(made);
        let error = RunDirectory::kept(&path).unwrap_err();
        assert!(error.to_string().contains("is not empty"), "{error}");
        assert_eq!(error.exit_code(), 125);
        assert!(path.join("1.log").exists());
    }
}

//! Run directories: where one execution's logs, options and facts live.

use crate::ExecuteError;
use std::io;
use std::path::{Path, PathBuf};

/// A directory for one execution: temporary and gone with this value, or the user's and kept.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Removes the directory when dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl RunDirectory {
    /// A fresh directory that nobody else can read, removed at the end.
    pub fn temporary() -> Result<Self, ExecuteError> {
        let context = || format!("making a directory in {}", std::env::temp_dir().display());
        let made = tempfile::Builder::new()
            .prefix("raddle-")
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

#[cfg(test)]
mod tests {
    use super::*;

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

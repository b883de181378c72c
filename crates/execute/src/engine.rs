//! Finding our own libraries, relative to the running command, so that an installed tree, a
//! development build and a plain `cargo build` all work, and a tree can be moved.

use crate::ExecuteError;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const PROBE: &str = "libraddle_probe.so";
const ENGINE: &str = "libdynamorio.so";
/// Where the engine's own build leaves its library, below its build directory.
const ENGINE_IN_BUILD: &str = "lib64/release/libdynamorio.so";

/// The libraries that go into the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFiles {
    /// The engine: an executable shared object that starts the target inside itself.
    pub engine: PathBuf,
    /// The probe, where it is needed.
    pub probe: Option<PathBuf>,
}

impl EngineFiles {
    /// Finds them for the command that is running.
    pub fn find(with_probe: bool) -> Result<Self, ExecuteError> {
        let exe = std::env::current_exe().map_err(ExecuteError::during("finding this command"))?;
        let home = exe.parent().unwrap_or(Path::new("/"));
        let build = std::env::var_os("DRIO_BUILD_DIR").map(PathBuf::from);
        Self::find_from(home, build.as_deref(), with_probe)
    }

    /// Finds them for a command in the directory `home`; `build` is a finished build of the engine,
    /// which a plain `cargo build` with `DRIO_BUILD_DIR` set leaves where it is.
    fn find_from(
        home: &Path,
        build: Option<&Path>,
        with_probe: bool,
    ) -> Result<Self, ExecuteError> {
        let installed = home.join("../lib/raddle");
        let engines = [
            vec![installed.join("engine").join(ENGINE), home.join("engine").join(ENGINE)],
            cargo_builds(home),
            build.map(|b| b.join(ENGINE_IN_BUILD)).into_iter().collect(),
        ];
        let engine = first("the engine", engines.concat())?;
        let probe = if with_probe {
            Some(first("the probe", vec![installed.join(PROBE), home.join(PROBE)])?)
        } else {
            None
        };
        Ok(EngineFiles { engine, probe })
    }
}

/// The engine as a plain `cargo build` made it, newest first.
fn cargo_builds(home: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.join("build")).into_iter().flatten().flatten();
    let mut found: Vec<(SystemTime, PathBuf)> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("dynamorio-sys-"))
        .map(|entry| entry.path().join("out/build").join(ENGINE_IN_BUILD))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

fn first(what: &'static str, looked: Vec<PathBuf>) -> Result<PathBuf, ExecuteError> {
    match looked.iter().find(|path| path.is_file()) {
        Some(path) => {
            let name = path.display().to_string();
            path.canonicalize().map_err(ExecuteError::during(format!("finding {what} {name}")))
        }
        None => Err(ExecuteError::Missing { what, looked }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn put(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path.canonicalize().unwrap()
    }

    #[test]
    fn an_installed_tree_comes_before_a_development_build_before_cargos() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("bin");
        let find = || EngineFiles::find_from(&home, None, true).unwrap();

        let cargo = put(home.join("build/dynamorio-sys-0a/out/build").join(ENGINE_IN_BUILD));
        let beside = put(home.join(PROBE));
        assert_eq!(find(), EngineFiles { engine: cargo, probe: Some(beside.clone()) });

        let developed = put(home.join("engine").join(ENGINE));
        assert_eq!(find(), EngineFiles { engine: developed, probe: Some(beside) });

        let engine = put(root.path().join("lib/raddle/engine").join(ENGINE));
        let probe = put(root.path().join("lib/raddle").join(PROBE));
        assert_eq!(find(), EngineFiles { engine, probe: Some(probe) });
    }

    #[test]
    fn the_newest_of_cargos_builds_is_taken_and_a_known_build_is_the_last_resort() {
        let root = tempfile::tempdir().unwrap();
        let known = put(root.path().join("known").join(ENGINE_IN_BUILD));
        let home = root.path().join("debug");
        let find =
            || EngineFiles::find_from(&home, Some(&root.path().join("known")), false).unwrap();
        assert_eq!(find(), EngineFiles { engine: known, probe: None });

        let path = |hash: &str| {
            let build = format!("build/dynamorio-sys-{hash}/out/build");
            home.join(build).join(ENGINE_IN_BUILD)
        };
        let newest = put(path("a"));
        let older = put(path("b"));
        let past = SystemTime::now() - std::time::Duration::from_secs(60);
        fs::File::options().write(true).open(older).unwrap().set_modified(past).unwrap();
        assert_eq!(find().engine, newest);
    }

    #[test]
    fn what_is_missing_is_said_with_every_place_and_the_remedy() {
        let root = tempfile::tempdir().unwrap();
        let error = EngineFiles::find_from(root.path(), None, false).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("cannot find the engine; looked for "), "{text}");
        assert!(text.contains("lib/raddle/engine/libdynamorio.so, "), "{text}");
        assert!(text.ends_with("`./dev build` makes it"), "{text}");
        assert_eq!(error.exit_code(), 125);

        put(root.path().join("engine").join(ENGINE));
        let error = EngineFiles::find_from(root.path(), None, true).unwrap_err();
        assert!(error.to_string().starts_with("cannot find the probe; "), "{error}");
    }
}

//! Where a module's debug information is: in the file, or in a separate one found by
//! `.gnu_debuglink`, by build-id, or through debuginfod.
//!
//! A candidate counts only if it belongs to the module: same build-id, or, where there is none,
//! the checksum of the link. Debuginfod may go to the network, so it is asked last, only if the
//! user has set `DEBUGINFOD_URLS`, and not for longer than the time limit.

use crate::elf::{Image, Layout, hex};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where to look.
#[derive(Debug, Clone)]
pub struct DebugSources {
    /// Directories that mirror the file system with debug files (`/usr/lib/debug`).
    pub directories: Vec<PathBuf>,
    /// How long debuginfod may take, if it may be asked at all.
    pub debuginfod: Option<Duration>,
}

/// Long enough for a large file over a good line; a run that waits longer looks stuck.
const DEBUGINFOD_LIMIT: Duration = Duration::from_secs(30);
const DEBUGINFOD_URLS: &str = "DEBUGINFOD_URLS";

impl Default for DebugSources {
    fn default() -> Self {
        DebugSources {
            directories: vec![PathBuf::from("/usr/lib/debug")],
            debuginfod: Some(DEBUGINFOD_LIMIT),
        }
    }
}

impl DebugSources {
    /// Only what is in the file itself or lies beside it.
    pub fn none() -> Self {
        DebugSources { directories: Vec::new(), debuginfod: None }
    }

    /// The separate debug file of a module, if it has one on this machine.
    pub(crate) fn local(&self, path: &Path, layout: &Layout) -> Option<PathBuf> {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let fits = |candidate: &PathBuf| *candidate != real && belongs(candidate, layout);
        self.by_link(&real, layout).into_iter().chain(self.by_build_id(&layout.build_id)).find(fits)
    }

    /// May debuginfod be asked?
    pub(crate) fn may_ask_debuginfod(&self) -> bool {
        self.debuginfod.is_some()
            && std::env::var_os(DEBUGINFOD_URLS).is_some_and(|urls| !urls.is_empty())
    }

    /// The separate debug file of a module, wherever it is.
    pub(crate) fn find(&self, path: &Path, layout: &Layout) -> Option<Image> {
        let found = self.local(path, layout).or_else(|| self.download(&layout.build_id));
        Image::open(&found?).ok()
    }

    /// The file that holds what dwz found in several debug files at once.
    pub(crate) fn find_alternative(&self, debug: &Image) -> Option<Image> {
        let (link, build_id) = debug.layout.alternative_link.as_ref()?;
        let beside = debug.path.canonicalize().ok()?.parent()?.join(link);
        let mirrored = self.directories.iter().map(|root| root.join(strip_root(link)));
        let candidates = std::iter::once(beside).chain(mirrored).chain(self.by_build_id(build_id));
        let fits = |path: &PathBuf| Layout::read(path).is_ok_and(|l| l.build_id == *build_id);
        let found = candidates.into_iter().find(fits).or_else(|| self.download(build_id));
        Image::open(&found?).ok()
    }

    fn by_link(&self, real: &Path, layout: &Layout) -> Vec<PathBuf> {
        let (Some((name, _)), Some(directory)) = (&layout.debug_link, real.parent()) else {
            return Vec::new();
        };
        let mut candidates = vec![directory.join(name), directory.join(".debug").join(name)];
        let mirrored = |root: &PathBuf| root.join(strip_root(directory)).join(name);
        candidates.extend(self.directories.iter().map(mirrored));
        candidates
    }

    fn by_build_id(&self, build_id: &[u8]) -> Vec<PathBuf> {
        let Some((first, rest)) = build_id.split_first().filter(|(_, rest)| !rest.is_empty())
        else {
            return Vec::new();
        };
        let name = format!(".build-id/{first:02x}/{}.debug", hex(rest));
        self.directories.iter().map(|root| root.join(&name)).collect()
    }

    fn download(&self, build_id: &[u8]) -> Option<PathBuf> {
        let limit = self.debuginfod.filter(|_| self.may_ask_debuginfod())?;
        if build_id.is_empty() {
            return None;
        }
        let child = Command::new("debuginfod-find")
            .args(["debuginfo", &hex(build_id)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let answer = output_within(child.ok()?, limit)?;
        Some(PathBuf::from(answer.lines().next()?)).filter(|path| path.is_file())
    }
}

/// Is this file the debug file of the module with this layout?
fn belongs(candidate: &Path, module: &Layout) -> bool {
    let Ok(layout) = Layout::read(candidate) else { return false };
    if !layout.has_debug_information() && !layout.has_symbol_table() {
        return false;
    }
    if !module.build_id.is_empty() && !layout.build_id.is_empty() {
        return module.build_id == layout.build_id;
    }
    let sum = || std::fs::read(candidate).ok().map(|bytes| crc32fast::hash(&bytes));
    module.debug_link.as_ref().is_some_and(|(_, expected)| sum() == Some(*expected))
}

fn strip_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// What a program wrote, if it ended well within the limit. It writes a path: less than a pipe holds.
fn output_within(mut child: Child, limit: Duration) -> Option<String> {
    const POLL: Duration = Duration::from_millis(5);
    let end = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(POLL),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let start = Instant::now();
        let spawn = |script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
        };
        assert_eq!(output_within(spawn("exec sleep 60"), Duration::from_millis(50)), None);
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(output_within(spawn("echo /x"), Duration::from_secs(20)).unwrap(), "/x\n");
        assert_eq!(output_within(spawn("echo /x; exit 1"), Duration::from_secs(20)), None);
    }

    #[test]
    fn build_id_paths() {
        let sources = DebugSources::default();
        let expected = PathBuf::from("/usr/lib/debug/.build-id/01/ab23.debug");
        assert_eq!(sources.by_build_id(&[1, 0xab, 0x23]), [expected]);
        assert!(sources.by_build_id(&[]).is_empty() && sources.by_build_id(&[1]).is_empty());
    }
}

//! What Cargo built, by its own messages.

use crate::failure::Failure;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An executable that Cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The target's name.
    pub name: String,
    pub path: PathBuf,
    /// Where Cargo would run it.
    pub home: PathBuf,
    /// Built with the test harness.
    pub is_test: bool,
    /// A benchmark.
    pub is_bench: bool,
    /// A program or an example.
    pub is_program: bool,
}

/// Builds with Cargo; its own messages go to standard error as always.
pub fn build(command: &[&str], words: &[OsString]) -> Result<Vec<Executable>, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .args(command)
        .arg("--message-format=json-render-diagnostics")
        .args(words)
        .stderr(Stdio::inherit())
        .output()
        .map_err(Failure::during(format_args!("starting {}", Path::new(&cargo).display())))?;
    if !output.status.success() {
        let code = output.status.code().map_or("a signal".into(), |code| format!("code {code}"));
        return Err(Failure::Other(format!("cargo {} ended with {code}", command.join(" "))));
    }
    Ok(executables(&String::from_utf8_lossy(&output.stdout)))
}

/// The executables among Cargo's messages, one a line.
fn executables(messages: &str) -> Vec<Executable> {
    messages.lines().filter_map(|line| executable(&serde_json::from_str(line).ok()?)).collect()
}

fn executable(message: &Value) -> Option<Executable> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let kinds: Vec<&str> =
        message["target"]["kind"].as_array()?.iter().filter_map(Value::as_str).collect();
    let is = |kind: &str| kinds.contains(&kind);
    let is_test = message["profile"]["test"].as_bool() == Some(true);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Executable {
        name: message["target"]["name"].as_str()?.to_owned(),
        path,
        home: manifest.parent()?.to_owned(),
        is_test,
        is_bench: is("bench"),
        is_program: !is_test && (is("bin") || is("example")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_told_from_libraries() {
        let line = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/p/Cargo.toml","target":{{"kind":["{kind}"],"name":"n"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let messages = [
            line("lib", false, "null"),
            line("lib", true, "\"/w/t/n-1\""),
            line("bin", false, "\"/w/t/n\""),
            line("bench", true, "\"/w/t/b\""),
            "not json".into(),
            r#"{"reason":"build-finished","success":true}"#.into(),
        ];
        let found = executables(&messages.join("\n"));
        let facts: Vec<(bool, bool, bool)> =
            found.iter().map(|e| (e.is_test, e.is_bench, e.is_program)).collect();
        assert_eq!(facts, [(true, false, false), (false, false, true), (true, true, false)]);
        assert_eq!(found[0].home, Path::new("/w/p"));
    }
}

//! The command at a real pseudo-terminal, made by Python: what it shows to somebody who watches.

#![allow(dead_code)] // Each test file uses its part.

use crate::support::raddle;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Rows of the terminal.
pub const ROWS: usize = 24;

/// Runs its arguments (after the columns, and what is waited for before Ctrl-C is pressed, if
/// anything) at a terminal; copies what they write, and writes the exit code to standard error.
const SCRIPT: &str = r#"
import fcntl, os, pty, struct, sys, termios, time
columns, wanted = int(sys.argv[1]), sys.argv[2].encode()
pid, terminal = pty.fork()
if pid == 0:
    if "STDOUT" in os.environ:
        os.dup2(os.open(os.environ["STDOUT"], os.O_WRONLY | os.O_CREAT), 1)
    os.execv(sys.argv[3], sys.argv[3:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
shown = b""
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    if wanted and wanted in shown:
        time.sleep(0.2)
        os.write(terminal, b"\x03")
        wanted = b""
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
sys.stderr.write(str(os.waitstatus_to_exitcode(status)))
"#;

/// What was shown, and how it ended.
#[derive(Debug)]
pub struct Shown {
    pub screen: String,
    pub code: i32,
}

/// Runs the command; presses Ctrl-C when it has shown this, unless it is empty. Its standard output goes to the file
/// `STDOUT` of the variables, if there is one. None where there is no Python.
pub fn at_terminal(
    directory: &Path,
    columns: u32,
    interrupt_at: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Option<Shown> {
    let child = Command::new("python3")
        .arg("-")
        .args([&columns.to_string(), interrupt_at])
        .arg(raddle())
        .args(arguments)
        .current_dir(directory)
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: there is no python3");
        return None;
    };
    child.stdin.take().unwrap().write_all(SCRIPT.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let screen = String::from_utf8_lossy(&output.stdout).into_owned();
    let code = String::from_utf8_lossy(&output.stderr).parse();
    Some(Shown { code: code.unwrap_or_else(|_| panic!("{output:?}")), screen })
}

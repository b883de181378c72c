//! Servers with threads, watched while clients talk to them: the answers and the exit code are those
//! of the server alone. Everything goes through sockets in a scratch directory.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Scratch, has_probe, raddle};

/// A server's command line, with `$S` for its socket.
struct Server {
    line: &'static [&'static str],
    /// Commands for `socat`, the last of which ends the connection.
    session: &'static str,
}

const REDIS: Server = Server {
    line: &[
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        "$S",
        "--save",
        "",
        "--appendonly",
        "no",
        "--io-threads",
        "2",
        "--daemonize",
        "no",
    ],
    session: "SET counter 41\r\nINCR counter\r\nLPUSH list a b c\r\nLRANGE list 0 -1\r\n\
              EVAL \"return 6*7\" 0\r\nFLUSHALL ASYNC\r\nDBSIZE\r\nQUIT\r\n",
};

const MEMCACHED: Server = Server {
    line: &["memcached", "-u", "root", "-t", "2", "-s", "$S"],
    session: "set key 0 0 5\r\nhello\r\nget key\r\nincr key 1\r\nset n 0 0 2\r\n41\r\nincr n 1\r\n\
              delete key\r\nget key\r\nquit\r\n",
};

fn start(server: &Server, socket: &Path, watched: Option<&Path>, scratch: &Scratch) -> Child {
    let line = server.line.iter().map(|word| word.replace("$S", socket.to_str().unwrap()));
    let mut words: Vec<String> = Vec::new();
    let program = raddle();
    if let Some(counts) = watched {
        let own = ["events", "--count", "--quiet", "--timeout", "90s", "--output"];
        words.push(program.to_str().unwrap().to_owned());
        words.extend(own.map(str::to_owned));
        words.extend([counts.to_str().unwrap().to_owned(), "--".to_owned()]);
    }
    words.extend(line);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(scratch.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Talks to the server and returns what it answered and how it ended.
fn served(server: &Server, watched: Option<&Path>, scratch: &Scratch) -> (String, i32) {
    let socket = scratch.path(if watched.is_some() { "watched.sock" } else { "alone.sock" });
    let mut child = start(server, &socket, watched, scratch);
    let patience = Instant::now() + Duration::from_secs(60);
    while !socket.exists() {
        assert!(child.try_wait().unwrap().is_none(), "{} ended early", server.line[0]);
        assert!(Instant::now() < patience, "{} does not listen", server.line[0]);
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut client = Command::new("socat")
        .args(["-t30", "-"])
        // The socket is there a moment before the server listens.
        .arg(format!("UNIX-CONNECT:{},retry=100,interval=0.1", socket.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    client.stdin.take().unwrap().write_all(server.session.as_bytes()).unwrap();
    let answer = client.wait_with_output().unwrap().stdout;
    // The command passes it on.
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    let code = child.wait().unwrap().code().unwrap_or(-1);
    (String::from_utf8_lossy(&answer).into_owned(), code)
}

fn same(server: &Server) {
    if !has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let counts = scratch.path("counts.txt");
    let alone = served(server, None, &scratch);
    let watched = served(server, Some(&counts), &scratch);
    assert!(alone.0.lines().count() > 5, "{alone:?}");
    assert_eq!(alone, watched, "alone, and watched");
    let counted = std::fs::read_to_string(&counts).unwrap();
    assert!(counted.contains("T2"), "only one thread was counted: {counted}");
}

#[test]
fn redis() {
    same(&REDIS);
}

#[test]
fn memcached() {
    same(&MEMCACHED);
}

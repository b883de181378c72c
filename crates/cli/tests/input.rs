//! What comes from outside is kept with an execution and given again when it is replayed, whoever was there
//! then; what is not kept and has changed is told at once.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{Ran, Scratch, raddle};

/// A lost update, with something from outside in between: `ask` is in the part that is put before.
const LOST_UPDATE: &str = r#"
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static char given[64];
static void *deposit(void *asks) {
    pthread_mutex_lock(&lock);
    int seen = balance;
    pthread_mutex_unlock(&lock);
    if (asks)
        ask(given, sizeof given - 1);
    pthread_mutex_lock(&lock);
    balance = seen + 1;
    pthread_mutex_unlock(&lock);
    return 0;
}
int main(int count, char **arguments) {
    where = arguments[1];
    pthread_t a, b;
    pthread_create(&a, NULL, deposit, NULL);
    pthread_create(&b, NULL, deposit, given);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("given %s\n", given);
    fflush(stdout);
    assert(balance == 2);
    return 0;
}
"#;

const CHILD: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
static const char *where;
static void ask(char *to, int size) {
    FILE *child = popen("od -An -N8 -tx8 /dev/urandom", "r");
    if (!fgets(to, size, child))
        strcpy(to, "nothing");
    int status = pclose(child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        strcpy(to, "an error");
}
"#;

const SERVER: &str = r#"
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static const char *where;
static void ask(char *to, int size) {
    struct sockaddr_in server = {AF_INET, htons(atoi(where)), {htonl(INADDR_LOOPBACK)}, {0}};
    struct sockaddr_in own;
    socklen_t length = sizeof own;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr *)&server, sizeof server) != 0) {
        strcpy(to, "nobody");
        return;
    }
    getsockname(s, (struct sockaddr *)&own, &length);
    if (send(s, "which?", 6, 0) != 6)
        abort();
    struct pollfd one = {s, POLLIN, 0};
    if (poll(&one, 1, 60000) != 1)
        abort();
    int n = recv(s, to, size, 0);
    sprintf(to + n, " at %d", ntohs(own.sin_port));
    close(s);
}
"#;

const FILE: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static const char *where;
static void ask(char *to, int size) {
    int file = open(where, O_RDONLY);
    if (read(file, to, size) < 0)
        perror("read");
    close(file);
}
"#;

/// Two threads make processes between the two halves of an update, while another sleeps, one waits for the end of all, and each
/// for what the other's child says. Nobody has a handler of signals, so no call may be interrupted.
const FORKS: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static void *deposit(void *unused) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        int seen = balance;
        pthread_mutex_unlock(&lock);
        int ends[2], status;
        if (pipe2(ends, O_CLOEXEC)) exit(9);
        pid_t child = fork();
        if (child == 0) {
            usleep(500);
            _exit(write(ends[1], "12345", 5) != 5);
        }
        close(ends[1]);
        char said[8];
        int got = 0;
        for (int n; (n = read(ends[0], said, sizeof said)) != 0; got += n)
            if (n < 0) exit(8);
        close(ends[0]);
        if (waitpid(child, &status, 0) != child || status != 0 || got != 5) exit(7);
        pthread_mutex_lock(&lock);
        balance = seen + 1;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
static void *sleeper(void *unused) {
    for (int i = 0; i < 20; i++)
        if (usleep(3000)) exit(6);
    return unused;
}
int main(void) {
    pthread_t a, b, c;
    pthread_create(&a, NULL, sleeper, NULL);
    pthread_create(&b, NULL, deposit, NULL);
    pthread_create(&c, NULL, deposit, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    pthread_join(c, NULL);
    assert(balance == 6);
    return 0;
}
"#;

fn command(scratch: &Scratch, arguments: &[&str]) -> Ran {
    let mut command = Command::new(raddle());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    Ran::new(command.output().unwrap())
}

/// Hunts for the lost update of a program that asks in this way; returns the run directory.
fn hunted(scratch: &Scratch, ask: &str, argument: &str) -> PathBuf {
    scratch.compile("bank", &(ask.to_owned() + LOST_UPDATE), &[]);
    let options = ["hunt", "--quiet", "--first", "--budget", "10m", "--executions", "400"];
    command(scratch, &[&options[..], &["--", "./bank", argument]].concat()).exits(66);
    let runs = std::fs::read_dir(scratch.path(".raddle")).unwrap().map(|e| e.unwrap().path());
    runs.filter(|run| run.join("H1.input").exists()).max().unwrap()
}

/// What the program says it was given.
fn given(ran: &Ran) -> &str {
    let line = ran.stdout.lines().find_map(|line| line.strip_prefix("given "));
    line.unwrap_or_else(|| panic!("{ran:?}"))
}

#[test]
fn what_a_child_process_said_is_said_again() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    hunted(&scratch, CHILD, "");
    let first = command(&scratch, &["replay", "H1"]);
    assert_eq!(given(first.exits(0)).trim().len(), 16, "{first:?}");
    for _ in 0..3 {
        assert_eq!(given(command(&scratch, &["replay", "H1"]).exits(0)), given(&first));
    }
    // With other observers on, too.
    assert_eq!(given(command(&scratch, &["replay", "H1", "--events"]).exits(0)), given(&first));
}

#[test]
fn threads_that_wait_know_nothing_of_processes_that_others_make() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.compile("bank", FORKS, &[]);
    let hunt = ["hunt", "--quiet", "--budget", "10m", "--executions", "12", "--", "./bank"];
    let ran = command(&scratch, &hunt);
    // Only the lost update: nothing was interrupted, and every failure was repeated.
    ran.exits(66);
    let told: Vec<&str> = ran.stdout.lines().collect();
    assert!(told.len() == 1 && told[0].starts_with("H1: failed assertion in "), "{ran:?}");
    let report = std::fs::read_to_string(scratch.path(".raddle/1/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let warnings = &report["summary"]["warnings"];
    assert!(!warnings.to_string().contains("which a replay did not"), "{warnings:#}");
    for _ in 0..5 {
        let replay = command(&scratch, &["replay", "H1"]);
        assert!(replay.exits(0).stderr.contains("H1 repeated"), "{replay:?}");
    }
}

#[test]
fn a_server_need_not_be_there_any_more() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It never says the same twice. It ends with the process, or when the test's program says so.
    let served = std::thread::spawn(move || {
        for (count, connection) in listener.incoming().enumerate() {
            let mut connection = connection.unwrap();
            let mut asked = [0; 6];
            connection.read_exact(&mut asked).unwrap();
            if &asked == b"enough" {
                return;
            }
            let answer = format!("answer {count}");
            connection.write_all(answer.as_bytes()).unwrap();
        }
    });
    let run = hunted(&scratch, SERVER, &port.to_string());
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(b"enough").unwrap();
    served.join().unwrap();
    let input = std::fs::read_to_string(run.join("H1.input")).unwrap();
    assert!(input.starts_with("raddle-input/1\n"), "{input}");
    let first = command(&scratch, &["replay", "H1"]);
    assert!(given(first.exits(0)).starts_with("answer "), "{first:?}");
    for _ in 0..3 {
        assert_eq!(given(command(&scratch, &["replay", "H1"]).exits(0)), given(&first));
    }
    // Without what was kept it asks again, and nobody is there.
    std::fs::remove_file(run.join("H1.input")).unwrap();
    let alone = command(&scratch, &["replay", "H1"]);
    assert_eq!(given(&alone), "nobody");
}

#[test]
fn a_file_that_has_changed_is_told_where_it_is_read() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    scratch.put("data", "one");
    let run = hunted(&scratch, FILE, "data");
    assert_eq!(given(command(&scratch, &["replay", "H1"]).exits(0)), "one");
    scratch.put("data", "two");
    let other = command(&scratch, &["replay", "H1"]);
    let words = "T3 reads a file that says something else than it did";
    assert!(other.exits(1).stderr.contains(words), "{other:?}");
    // Damage gets a sentence with its line.
    let mut input = std::fs::read_to_string(run.join("H1.input")).unwrap();
    input.push_str("T1 said something\n");
    std::fs::write(run.join("H1.input"), &input).unwrap();
    let damaged = command(&scratch, &["replay", "H1"]);
    let line = format!("H1.input: line {} is damaged", input.lines().count());
    assert!(damaged.exits(125).stderr.contains(&line), "{damaged:?}");
}

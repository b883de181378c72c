//! The launcher, with the engine alone: what goes in and comes out is what the program would see
//! and give without us.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, Scratch};

const BARE: [&str; 2] = ["--engine", "bare"];

fn bare(scratch: &Scratch, program: &[&str]) -> Ran {
    let program: Vec<&dyn AsRef<std::ffi::OsStr>> =
        program.iter().map(|p| p as &dyn AsRef<std::ffi::OsStr>).collect();
    scratch.events(&BARE, &program)
}

#[test]
fn exit_codes_and_signals_are_the_targets() {
    let scratch = Scratch::new();
    bare(&scratch, &["sh", "-c", "exit 0"]).exits(0);
    bare(&scratch, &["sh", "-c", "exit 37"]).exits(37);
    bare(&scratch, &["sh", "-c", "kill -SEGV $$"]).exits(128 + 11);
    bare(&scratch, &["sh", "-c", "kill -KILL $$"]).exits(128 + 9);
}

#[test]
fn arguments_names_and_environment_arrive_untouched() {
    let scratch = Scratch::new();
    let show = r#"
        #include <stdio.h>
        #include <stdlib.h>
        int main(int argc, char **argv) {
            for (int i = 0; i < argc; i++) printf("[%s]", argv[i]);
            printf("%s|%s", getenv("ODD"), getenv("LD_LIBRARY_PATH"));
            return 0;
        }
    "#;
    scratch.compile("show", show, &[]);
    let odd = ["a b", "", "'\"`;$x", "--count", "\u{e4}"];
    let program: Vec<&dyn AsRef<std::ffi::OsStr>> =
        std::iter::once(&"./show").chain(&odd).map(|p| p as &dyn AsRef<std::ffi::OsStr>).collect();
    let mut command = scratch.command(&BARE, &program);
    command.env("ODD", "x;y \"z\"").env("LD_LIBRARY_PATH", "/none");
    let ran = Ran::new(command.output().unwrap());
    ran.exits(0);
    assert_eq!(ran.stdout, "[./show][a b][]['\"`;$x][--count][\u{e4}]x;y \"z\"|/none");
}

#[test]
fn the_environment_keeps_its_order() {
    let scratch = Scratch::new();
    let variables = ["ZULU=1", "ALPHA=2", "MIKE=3 4", "BRAVO="];
    let output = Command::new("env")
        .arg("-i")
        .args(variables)
        .arg(support::raddle())
        .args(["events", "--count", "--out", "events", "--", "/usr/bin/env"])
        .current_dir(scratch.path(""))
        .output();
    let ran = Ran::new(output.unwrap());
    ran.exits(0);
    assert_eq!(ran.stdout.lines().take(4).collect::<Vec<_>>(), variables);
}

#[test]
fn descriptors_and_directory_are_those_of_the_command() {
    let scratch = Scratch::new();
    scratch.put("input", "line\n");
    // Descriptor 7 is open, and no descriptor of ours is.
    let script = r#"read x <&7; echo "$x"; pwd -P; ls /proc/self/fd | tr '\n' ' ' >&2"#;
    let raddle = support::raddle();
    let native = format!("exec sh -c '{}' 7<input", script.replace('\'', r"'\''"));
    let under = format!(
        "exec {} events --engine bare -- sh -c '{}' 7<input",
        raddle.display(),
        script.replace('\'', r"'\''")
    );
    let run = |line: &str| {
        let here = scratch.path("");
        Ran::new(Command::new("sh").args(["-c", line]).current_dir(here).output().unwrap())
    };
    let (alone, ran) = (run(&native), run(&under));
    ran.exits(0);
    assert_eq!((ran.stdout, ran.stderr), (alone.stdout, alone.stderr));
}

#[test]
fn what_cannot_be_run_is_refused_as_a_shell_would() {
    let scratch = Scratch::new();
    let refused = |program: &str, code: i32, why: &str| {
        let ran = bare(&scratch, &[program]);
        ran.exits(code);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        assert!(ran.stderr.starts_with("raddle: ") && ran.stderr.contains(why), "{ran:?}");
    };
    let executable = |name: &str, content: &[u8]| {
        let path = scratch.put(name, content);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    refused("no-such-program", 127, "command not found");
    refused("./no-such-file", 127, "no such file");
    refused("/", 126, "is a directory");
    scratch.put("plain", "x");
    refused("./plain", 126, "no permission");
    executable("text", b"hello\n");
    refused("./text", 126, "neither an ELF program nor a script");
    executable("script", b"#!/no/such/interpreter\n");
    refused("./script", 127, "/no/such/interpreter does not exist");
    let mut small = b"\x7fELF\x01\x01\x01".to_vec();
    small.resize(64, 0);
    executable("small", &small);
    refused("./small", 126, "32-bit");
}

#[test]
fn a_setuid_program_of_another_user_is_refused() {
    let scratch = Scratch::new();
    let program = scratch.compile("plain", "int main(void) { return 0; }", &[]);
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let owned = root && {
        // Somebody else's: root's own setuid bit changes nothing for root.
        Command::new("chown").arg("65534").arg(&program).status().unwrap().success()
    };
    if !owned {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let ran = bare(&scratch, &["./plain"]);
    ran.exits(126);
    assert!(ran.stderr.contains("the privileges of user 65534 (setuid)"), "{ran:?}");
}

#[test]
fn scripts_run_under_their_interpreter() {
    let scratch = Scratch::new();
    let script = scratch.put("show", "#!/bin/sh -e\necho \"$0 $1\"\nfalse\necho no\n");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = bare(&scratch, &["./show", "a b"]);
    ran.exits(1);
    assert_eq!(ran.stdout, "./show a b\n");
}

#[test]
fn the_time_limit_kills_and_says_so() {
    let scratch = Scratch::new();
    let started = Instant::now();
    // Long enough for the engine to start on a busy machine.
    let arguments = ["--engine", "bare", "--timeout", "3s"];
    let ran = scratch.events(&arguments, &[&"sh", &"-c", &"echo begun; exec sleep 60"]);
    ran.exits(124);
    assert_eq!(ran.stdout, "begun\n");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_fixed_layout_repeats_and_a_free_one_does_not_change() {
    let scratch = Scratch::new();
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        int main(void) { int x; printf("%p %p %p", (void *)&x, (void *)main, malloc(9)); return 0; }
    "#;
    scratch.compile("where", source, &[]);
    let fixed = || {
        scratch
            .events(&["--engine", "bare", "--fixed-layout"], &[&"./where"])
            .exits(0)
            .stdout
            .clone()
    };
    assert_eq!(fixed(), fixed());
    let free = || bare(&scratch, &["./where"]).exits(0).stdout.clone();
    assert_ne!(free(), free());
}

/// A command whose target has said that it is ready.
struct Ready {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Ready {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        assert_eq!(first, "ready\n");
        Ready { child, stdout }
    }

    fn finish(mut self) -> Ran {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let ran = Ran::new(self.child.wait_with_output().unwrap());
        Ran { stdout: rest, ..ran }
    }
}

fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn sigterm_is_passed_on() {
    let scratch = Scratch::new();
    let script = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let ready = Ready::start(scratch.command(&BARE, &[&"sh", &"-c", &script]));
    send("-TERM", ready.child.id());
    let ran = ready.finish();
    ran.exits(7);
    assert_eq!(ran.stdout, "caught\n");
}

#[test]
fn one_interrupt_is_the_targets_business_and_three_kill_it() {
    let scratch = Scratch::new();
    // Sent to the command only, as no terminal would: the target hears nothing of it.
    let script = "echo ready; while :; do sleep 0.05; done";
    let ready = Ready::start(scratch.command(&BARE, &[&"sh", &"-c", &script]));
    for _ in 0..3 {
        send("-INT", ready.child.id());
        std::thread::sleep(Duration::from_millis(250));
    }
    ready.finish().exits(128 + 9);
}

#[test]
fn signals_ignored_from_the_start_stay_ignored() {
    let scratch = Scratch::new();
    let raddle = support::raddle();
    let inner = "kill -INT $$; kill -HUP $$; echo alive";
    let line = format!(
        "trap '' INT HUP; exec {} events --engine bare -- sh -c '{inner}'",
        raddle.display()
    );
    let here = scratch.path("");
    let ran = Ran::new(Command::new("sh").args(["-c", &line]).current_dir(here).output().unwrap());
    ran.exits(0);
    assert_eq!(ran.stdout, "alive\n");
}

/// A signal that is ignored from the start ends nothing, and whoever is started by the target
/// ignores it too: so it is without us (`nohup`, background jobs of a script).
#[test]
fn ignored_signals_end_nothing_and_are_handed_down() {
    if !support::has_probe() {
        return;
    }
    let scratch = Scratch::new();
    let program = r#"
        #include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        static void handler(int signal) { (void)signal; write(1, "handled\n", 8); }
        int main(int count, char **words) {
            raise(SIGINT); raise(SIGQUIT);
            puts("alive"); fflush(stdout);
            signal(SIGHUP, SIG_IGN);
            signal(SIGUSR1, handler);
            /* One that fails must leave everything as it was. */
            execl("/none", "none", (char *)0);
            signal(SIGHUP, handler); raise(SIGHUP);
            signal(SIGHUP, SIG_IGN);
            execl("/bin/grep", "grep", "SigIgn", "/proc/self/status", (char *)0);
        }
    "#;
    scratch.compile("ignores", program, &[]);
    let run = |how: &str| {
        let line = format!("trap '' INT QUIT; exec {how} ./ignores");
        let shell = Command::new("sh").args(["-c", &line]).current_dir(scratch.path("")).output();
        let ran = Ran::new(shell.unwrap());
        visible(&ran.exits(0).stdout)
    };
    let native = run("");
    assert!(native.starts_with("alive\nhandled\nSigIgn:\t") && native.ends_with("7\n"), "{native}");
    let raddle = support::raddle();
    for command in ["run", "events --only sync --output events"] {
        assert_eq!(run(&format!("{} {command} --timeout 60s --", raddle.display())), native);
    }

    // What the child of a vfork says about signals is not its parent's.
    let script = "import signal, subprocess, os\n\
                  subprocess.run(['grep', 'SigIgn', '/proc/self/status'])\n\
                  os.kill(os.getpid(), signal.SIGPIPE)\n\
                  print('alive')\n";
    let script = scratch.put("spawns.py", script);
    let native = Ran::new(Command::new("python3").arg(&script).output().unwrap());
    assert!(native.exits(0).stdout.ends_with("alive\n"), "{native:?}");
    let ran = scratch.events(&["--only", "sync", "--output", "events"], &[&"python3", &script]);
    assert_eq!(visible(&ran.exits(0).stdout), visible(&native.stdout));
}

/// Without the two signals that the C library keeps to itself: whether they are ignored depends on who
/// started us.
fn visible(ignored: &str) -> String {
    ignored.replace("\t00000001", "\t00000000").replace("\t000000008", "\t000000000")
}

#[test]
fn wrong_use_is_125_and_help_is_not() {
    let run = |arguments: &[&str]| {
        Ran::new(Command::new(support::raddle()).args(arguments).output().unwrap())
    };
    let ran = run(&["events", "--only", "memry", "--", "true"]);
    ran.exits(125);
    assert!(ran.stderr.contains("'memory'"), "{ran:?}");
    run(&["events"]).exits(125);
    run(&["--version"]).exits(0);
    let help = run(&["events", "--help"]);
    help.exits(0);
    assert!(help.stdout.contains("Examples:"), "{help:?}");
}

#[test]
fn a_run_directory_in_use_is_left_alone() {
    let scratch = Scratch::new();
    let ran = scratch.events(&["--engine", "bare", "--out", "runs/1"], &[&"true"]);
    ran.exits(0);
    scratch.put("runs/1/1.0.log", "mine");
    let ran = scratch.events(&["--engine", "bare", "--out", "runs/1"], &[&"true"]);
    ran.exits(125);
    assert!(ran.stderr.contains("is not empty"), "{ran:?}");
    assert_eq!(std::fs::read(scratch.path("runs/1/1.0.log")).unwrap(), b"mine");
}

/// Types Ctrl-C at a terminal of its own once the program there has said `ready`; prints what the
/// terminal showed, and its exit code.
const AT_A_TERMINAL: &str = r#"
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
shown, typed = b"", False
while True:
    try:
        got = os.read(terminal, 4096)
    except OSError:
        break
    if not got:
        break
    shown += got
    if not typed and b"ready" in shown:
        # While the shell waits for its child, and not while it makes it: under the engine, bare or not, a fork
        # that a signal interrupts may fail.
        time.sleep(0.3)
        os.write(terminal, b"\x03")
        typed = True
_, status = os.waitpid(pid, 0)
print(shown.decode().replace("\r", ""))
print("code", os.waitstatus_to_exitcode(status))
"#;

#[test]
fn ctrl_c_at_a_terminal_is_the_targets() {
    let scratch = Scratch::new();
    let typed = |arguments: &[&str]| {
        let ran = Command::new("python3")
            .args(["-c", AT_A_TERMINAL])
            .arg(support::raddle())
            .args(arguments)
            .current_dir(scratch.path(""))
            .output()
            .unwrap();
        Ran::new(ran).exits(0).stdout.clone()
    };
    let bare = |script: &str| {
        typed(&["events", "--timeout", "60s", "--engine", "bare", "--", "sh", "-c", script])
    };
    // A shell within the shell, which is forked: a signal that comes in a vfork the engine now and then cannot place.
    let caught =
        bare("trap 'echo caught; exit 7' INT; echo ready; while :; do (exec sleep 1); done");
    assert!(caught.contains("caught") && caught.ends_with("code 7\n"), "{caught}");
    let died = bare("echo ready; while :; do (exec sleep 1); done");
    assert!(died.ends_with("code 130\n"), "{died}");

    if !support::has_probe() {
        return;
    }
    // What was found is told, after the target has died of it.
    let race = "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
                int counter; static void *work(void *x) { counter++; return x; }\n\
                int main(void) { pthread_t thread; pthread_create(&thread, 0, work, 0);\n\
                counter++; pthread_join(thread, 0); puts(\"ready\"); fflush(stdout);\n\
                for (;;) pause(); }";
    scratch.compile("race", race, &[]);
    let told = typed(&["run", "--timeout", "60s", "--", "./race"]);
    for part in ["data race on counter", "signal 2 killed the target", "code 66\n"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// An installed copy that everybody may use, as `./dev dist` lays it out; `None` if this is not
/// root, who alone can run it as somebody else.
fn installed_for_everybody(scratch: &Scratch) -> Option<std::path::PathBuf> {
    if Command::new("id").arg("-u").output().unwrap().stdout != b"0\n" || !support::has_probe() {
        eprintln!("skipped: only root can run a program as somebody else");
        return None;
    }
    let home = support::raddle().parent().unwrap().to_owned();
    let engine = std::env::var_os("DRIO_BUILD_DIR").map(std::path::PathBuf::from);
    let engines = [
        Some(home.join("engine/libdynamorio.so")),
        Some(home.join("../lib/raddle/engine/libdynamorio.so")),
        engine.map(|build| build.join("lib64/release/libdynamorio.so")),
    ];
    let engine = engines.into_iter().flatten().find(|path| path.exists()).unwrap();
    std::fs::create_dir_all(scratch.path("bin")).unwrap();
    std::fs::create_dir_all(scratch.path("lib/raddle/engine")).unwrap();
    std::fs::copy(support::raddle(), scratch.path("bin/raddle")).unwrap();
    let probe = [home.join("libraddle_probe.so"), home.join("../lib/raddle/libraddle_probe.so")];
    let probe = probe.iter().find(|path| path.exists()).unwrap();
    std::fs::copy(probe, scratch.path("lib/raddle/libraddle_probe.so")).unwrap();
    std::fs::copy(engine, scratch.path("lib/raddle/engine/libdynamorio.so")).unwrap();
    std::fs::set_permissions(scratch.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(scratch.path("bin/raddle"))
}

/// Runs the installed copy as a user with no home and no rights.
fn as_nobody(scratch: &Scratch, raddle: &std::path::Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new("runuser");
    command.args(["-u", "nobody", "--", "env", "-i", "PATH=/usr/bin:/bin", "HOME=/nonexistent"]);
    command.arg(raddle).args(arguments).current_dir(scratch.path(""));
    Ran::new(command.output().unwrap())
}

#[test]
fn a_user_without_rights_or_a_home_can_run_it() {
    let scratch = Scratch::new();
    let Some(raddle) = installed_for_everybody(&scratch) else { return };
    scratch.compile(
        "locks",
        "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
         pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         int main(void) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m);\n\
         printf(\"%d\\n\", (int)geteuid()); return 5; }",
        &[],
    );
    let ran = as_nobody(&scratch, &raddle, &["events", "--only", "sync", "--", "./locks"]);
    ran.exits(5);
    assert_eq!(ran.stdout, "65534\n");
    assert!(ran.stderr.lines().any(|line| line.contains("lock")), "{ran:?}");
}

#[test]
fn a_program_with_file_capabilities_is_refused() {
    let scratch = Scratch::new();
    let Some(raddle) = installed_for_everybody(&scratch) else { return };
    let program = scratch.compile("plain", "int main(void) { return 0; }", &[]);
    let set = Command::new("setcap").arg("cap_net_raw+ep").arg(&program).output();
    match set {
        Ok(set) if set.status.success() => {}
        Ok(set) => {
            eprintln!("skipped: {}", String::from_utf8_lossy(&set.stderr));
            return;
        }
        Err(e) => panic!("setcap (package libcap2-bin): {e}"),
    }
    let ran = as_nobody(&scratch, &raddle, &["events", "--engine", "bare", "--", "./plain"]);
    ran.exits(126);
    assert!(ran.stderr.contains("file capabilities"), "{ran:?}");
}

/// An engine that begins to end, and then does not. Takes as long as a command is patient.
const STUCK_ENGINE: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    char path[4096];
    static char header[HEADER_BYTES];
    int template = open(HEADER_FILE, O_RDONLY);
    if (read(template, header, sizeof header) != sizeof header) return 1;
    int pid = getpid();
    memcpy(header + PID_AT, &pid, 4);
    header[STATE_AT] = ENDING;
    snprintf(path, sizeof path, "%s/%d.0.log", getenv("DYNAMORIO_CONFIGDIR"), pid);
    int log = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (write(log, header, sizeof header) != sizeof header) return 1;
    for (;;) pause();
}
"#;

#[test]
#[ignore = "half a minute; the full tier runs it"]
fn a_process_that_never_finishes_ending_is_killed_and_is_our_failure() {
    use raddle_wire::log::{self, header};
    let scratch = Scratch::new();
    if !support::has_probe() {
        return;
    }
    std::fs::create_dir_all(scratch.path("bin")).unwrap();
    std::fs::create_dir_all(scratch.path("lib/raddle/engine")).unwrap();
    std::fs::copy(support::raddle(), scratch.path("bin/raddle")).unwrap();
    scratch.put("lib/raddle/libraddle_probe.so", "");
    let bytes = log::new_header(0);
    let template = scratch.put("header", bytes);
    let flags = [
        format!("-DHEADER_BYTES={}", bytes.len()),
        format!("-DHEADER_FILE=\"{}\"", template.display()),
        format!("-DPID_AT={}", header::PID),
        format!("-DSTATE_AT={}", header::STATE),
        format!("-DENDING={}", log::State::Ending as u32),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let engine = scratch.compile("stuck", STUCK_ENGINE, &flags);
    std::fs::rename(engine, scratch.path("lib/raddle/engine/libdynamorio.so")).unwrap();
    let started = Instant::now();
    let mut command = Command::new(scratch.path("bin/raddle"));
    command.args(["events", "--only", "sync", "--", "true"]).current_dir(scratch.path(""));
    let ran = Ran::new(command.output().unwrap());
    ran.exits(125);
    assert!(ran.stderr.contains("within 30 seconds and was killed: thread "), "{ran:?}");
    assert!(ran.stderr.contains(", waits in pause (libc.so.6+"), "{ran:?}");
    assert!(started.elapsed() >= Duration::from_secs(30));
}

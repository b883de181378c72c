//! The target behaves as it does alone: unmodified programs of Debian's packages give the same
//! bytes and the same exit code with and without Raddle, while every access and every
//! synchronisation is watched (`--count`).
//!
//! `./dev test` installs the programs; one that is missing is named and fails the test when the
//! environment says that all must be there (`RADDLE_BIN`), so that nothing passes by absence.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::Write;
use std::process::{Command, Output, Stdio};
use support::{Scratch, has_probe, raddle};

/// A command line for `sh -c`, without a pipe: the first word is the program that is watched. `$D`
/// is the scratch directory with `text` (1.5 MB), `text.gz`, `data.csv`, `data.json`.
struct Case {
    name: &'static str,
    program: &'static [&'static str],
    stdin: Option<&'static str>,
}

const fn case(name: &'static str, program: &'static [&'static str]) -> Case {
    Case { name, program, stdin: None }
}

const fn fed(name: &'static str, stdin: &'static str, program: &'static [&'static str]) -> Case {
    Case { name, program, stdin: Some(stdin) }
}

/// Programs with threads of their own.
const PARALLEL: &[Case] = &[
    case("pigz", &["pigz", "-p2", "-n", "-c", "text"]),
    case("pigz -d", &["pigz", "-d", "-c", "text.gz"]),
    case("pbzip2", &["pbzip2", "-p2", "-b1", "-c", "text"]),
    case("lbzip2", &["lbzip2", "-n2", "-c", "text"]),
    case("xz -T2", &["xz", "-T2", "-1", "--block-size=300000", "-c", "text"]),
    case("zstd -T2", &["zstd", "-T2", "-q", "-c", "text"]),
    case("pixz", &["pixz", "-p2", "-1", "-i", "text", "-o", "/dev/stdout"]),
    case("plzip", &["plzip", "-n2", "-0", "-c", "text"]),
    case("7z", &["7z", "a", "-mmt2", "-mx1", "-so", "-txz", "x", "text"]),
    case("sort --parallel", &["sort", "--parallel=2", "-S", "2M", "text"]),
    case(
        "python3 threads",
        &[
            "python3",
            "-c",
            "import threading,queue\nq=queue.Queue();r=[]\ndef w():\n  while True:\n    i=q.get()\n    \
             if i is None: return\n    r.append(i*i)\nts=[threading.Thread(target=w) for _ in \
             range(3)]\n[t.start() for t in ts]\n[q.put(i) for i in range(500)]\n[q.put(None) for _ \
             in ts]\n[t.join() for t in ts]\nprint(sum(r))",
        ],
    ),
    case(
        "node worker threads",
        &[
            "node",
            "-e",
            "const{Worker,isMainThread}=require('worker_threads');let n=0;for(let \
             i=0;i<2;i++)new Worker(`const{parentPort}=require('worker_threads');let s=0;for(let \
             j=0;j<1e5;j++)s+=j;parentPort.postMessage(s)`,{eval:true}).on('message',m=>{n+=m;\
             if(++done==2)console.log(n)});var done=0",
        ],
    ),
    case("rg", &["rg", "--sort", "path", "-j2", "-c", "fox", "."]),
    case("fdfind", &["fdfind", "-j2", "text.gz", "."]),
    case("git grep", &["git", "grep", "--no-index", "--threads=2", "-c", "fox", "text"]),
    case("convert", &["convert", "-size", "64x64", "gradient:red-blue", "-blur", "0x2", "ppm:-"]),
];

/// Programs with one thread: interpreters, signals, children, odd code.
const SINGLE: &[Case] = &[
    case("gzip", &["gzip", "-n", "-c", "text"]),
    case("bzip2", &["bzip2", "-c", "text"]),
    case("lz4", &["lz4", "-q", "-c", "text"]),
    case("brotli", &["brotli", "-q", "2", "-c", "text"]),
    case("zip", &["unzip", "-l", "/nonexistent.zip"]),
    case("tar", &["tar", "--mtime=@0", "--owner=0", "--group=0", "-cf", "-", "text", "data.csv"]),
    case(
        "perl",
        &[
            "perl",
            "-ne",
            "$n{length $_}++; END { print \"$_ $n{$_}\\n\" for sort keys %n }",
            "text",
        ],
    ),
    case(
        "perl fork",
        &["perl", "-e", "$p=fork(); if(!$p){exit 7} waitpid $p,0; print $?>>8,\"\\n\"; exit 3"],
    ),
    case(
        "bash pipeline",
        &["bash", "-c", "head -n 2000 text | grep fox | sort -u | wc -l; exit 5"],
    ),
    case("bash trap", &["bash", "-c", "trap 'echo caught; exit 9' USR1; kill -USR1 $$; sleep 5"]),
    case("sh killed", &["sh", "-c", "kill -TERM $$; sleep 5"]),
    case("gawk", &["gawk", "{ n += length($0) } END { print n, NR }", "text"]),
    case("mawk", &["mawk", "{ n += NF } END { print n }", "text"]),
    case("sed", &["sed", "-n", "s/fox/cat/gp;100q", "text"]),
    fed("bc", "scale=50; 4*a(1); 2^200\nquit\n", &["bc", "-lq"]),
    fed("dc", "2 100 ^ p 16 o p\n", &["dc"]),
    case("jq", &["jq", "-c", "map(.n) | add", "data.json"]),
    fed(
        "sqlite3",
        "create table t(a,b); insert into t select value, value*value from generate_series(1,5000); select sum(b), count(*) from t; .quit\n",
        &["sqlite3", ":memory:"],
    ),
    case("openssl", &["openssl", "dgst", "-sha256", "text"]),
    fed(
        "lua",
        "local t={} for i=1,20000 do t[i]=(i*7919)%10007 end table.sort(t) print(t[1],t[10000],t[20000])\n",
        &["lua5.4", "-"],
    ),
    fed(
        "tclsh",
        "proc fib n {expr {$n<2?$n:[fib [expr {$n-1}]]+[fib [expr {$n-2}]]}}; puts [fib 15]\n",
        &["tclsh"],
    ),
    fed("m4", "define(`f',`ifelse($1,0,,`$1 f(decr($1))')')f(20)\n", &["m4"]),
    case("file", &["file", "text", "text.gz", "data.csv"]),
    case("find", &["find", ".", "-name", "*.csv", "-exec", "wc", "-l", "{}", ";"]),
    case("xargs", &["xargs", "-a", "data.csv", "-n", "50", "-P", "1", "echo"]),
    case("diff", &["diff", "data.csv", "data.json"]),
    case("xmllint", &["xmllint", "--format", "doc.xml"]),
    case("dot", &["dot", "-Tplain", "graph.dot"]),
    case("xxd", &["xxd", "-l", "4096", "text"]),
    case("rsync", &["rsync", "--version-nonsense"]),
    case("git", &["git", "hash-object", "text"]),
    case("curl", &["curl", "-s", "file:///nonexistent"]),
    case("ls missing", &["ls", "/nonexistent-directory"]),
    case("env", &["env", "-u", "PWD", "-u", "OLDPWD", "-u", "_"]),
    case("units", &["units", "-t", "3 miles", "km"]),
    case("datamash", &["datamash", "-t,", "sum", "1", "mean", "2", "--input-file=data.csv"]),
];

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    let line = |i: u64| {
        let n = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        format!("{n} the quick brown fox {} jumps over {} lazy dogs\n", n % 97, n % 13)
    };
    let text: String = (0..30_000).map(line).collect();
    scratch.put("text", &text);
    let zipped = Command::new("gzip").args(["-n", "-c"]).arg(scratch.path("text")).output();
    scratch.put("text.gz", zipped.unwrap().stdout);
    let csv: String = (0..500).map(|i| format!("{i},{}\n", i * i % 1009)).collect();
    scratch.put("data.csv", csv);
    let json: Vec<String> = (0..500).map(|i| format!("{{\"n\":{i}}}")).collect();
    scratch.put("data.json", format!("[{}]", json.join(",")));
    scratch.put("doc.xml", "<a><b x='1'>text</b><c/></a>");
    scratch.put("graph.dot", "digraph { a -> b -> c; a -> c }");
    scratch
}

/// Runs a command line with its input.
fn run(mut command: Command, case: &Case, scratch: &Scratch) -> Output {
    command.current_dir(scratch.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if case.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().unwrap();
    if let (Some(text), Some(mut pipe)) = (case.stdin, child.stdin.take()) {
        // A program may leave without reading it all.
        let _ = pipe.write_all(text.as_bytes());
    }
    child.wait_with_output().unwrap()
}

fn native(case: &Case, scratch: &Scratch) -> Output {
    let mut command = Command::new(case.program[0]);
    command.args(&case.program[1..]);
    run(command, case, scratch)
}

/// Every access and every synchronisation is counted.
const COUNTED: &[&str] = &["--count"];
/// Every event with its call stack, but for accesses and for entries of functions: there are too many
/// of these to write (a dump of a megabyte calls libc a million times).
const STREAMED: &[&str] = &["--stacks", "--only", "sync,thread,output,process"];

fn watched(case: &Case, scratch: &Scratch, how: &[&str]) -> Output {
    let mut command = Command::new(raddle());
    command
        .arg("events")
        .args(how)
        .args(["--quiet", "--timeout", "300s", "--output"])
        .arg(scratch.path("counts.txt"))
        .arg("--")
        .args(case.program);
    run(command, case, scratch)
}

/// The exit code as a shell shows it.
fn code(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0))
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

fn same_with_and_without(cases: &[Case], how: &[&str]) {
    if !has_probe() {
        return;
    }
    let scratch = scratch();
    let mut wrong = Vec::new();
    for case in cases {
        if !is_installed(case.program[0]) {
            wrong.push(format!("{}: {} is not installed", case.name, case.program[0]));
            continue;
        }
        let (alone, with) = (native(case, &scratch), watched(case, &scratch, how));
        let counted = std::fs::read_to_string(scratch.path("counts.txt")).unwrap_or_default();
        if code(&alone) != code(&with) {
            let said = String::from_utf8_lossy(&with.stderr);
            wrong.push(format!(
                "{}: exit {} alone, {} watched: {said}",
                case.name,
                code(&alone),
                code(&with)
            ));
        } else if alone.stdout != with.stdout {
            wrong.push(format!(
                "{}: {} bytes alone, {} watched, not the same",
                case.name,
                alone.stdout.len(),
                with.stdout.len()
            ));
        } else if alone.stderr != with.stderr {
            let (a, b) =
                (String::from_utf8_lossy(&alone.stderr), String::from_utf8_lossy(&with.stderr));
            wrong.push(format!("{}: standard error {a:?} alone, {b:?} watched", case.name));
        } else if !counted.contains("T1") {
            wrong.push(format!("{}: nothing was counted", case.name));
        }
        let _ = std::fs::remove_file(scratch.path("counts.txt"));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn parallel_programs() {
    same_with_and_without(PARALLEL, COUNTED);
}

#[test]
fn single_threaded_programs() {
    same_with_and_without(SINGLE, COUNTED);
}

#[test]
#[ignore = "minutes; the full tier runs it"]
fn parallel_programs_with_every_event_and_its_stack() {
    same_with_and_without(PARALLEL, STREAMED);
}

#[test]
#[ignore = "minutes; the full tier runs it"]
fn single_threaded_programs_with_every_event_and_its_stack() {
    same_with_and_without(SINGLE, STREAMED);
}

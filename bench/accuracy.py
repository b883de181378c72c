"""The corpus under the peers, side by side: `./dev bench accuracy`.

Every program of corpus/race and corpus/clean is run once by each detector, and its reports are compared with the lines
that the program's comments mark (corpus/README.md). A verdict is

- right: a race program's races were all reported, and nothing else; a clean program's run was silent;
- false: something else was reported (in a clean program: anything);
- missed: a race was not reported;
- failed: the program could not be built or run this way.

Peers print text; what is compared is each report's innermost line in the program's own source, for as many of the
two sides as the peer shows. `suspected` lines count as allowed for everybody.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from measure import ROOT, WORK, progress, save, warn_if_busy

CORPUS = ROOT / "corpus"
TIME_LIMIT_SECONDS = 60


@dataclass
class Program:
    """A program and the lines it marks."""

    name: str
    source: Path
    build: list
    is_clean: bool
    races: dict = field(default_factory=dict)  # variable -> lines
    suspected: set = field(default_factory=set)  # lines


def read(source):
    text = source.read_text()
    language = source.suffix
    build = re.search(r"^// build: (.*)$", text, re.M)
    default = {".c": "gcc", ".cc": "g++", ".rs": "rustc"}[language]
    program = Program(f"{source.parent.name}/{source.name}", source,
                      (build.group(1) if build else default).split(),
                      source.parent.name == "clean")
    for number, line in enumerate(text.splitlines(), 1):
        marked = re.search(r"\S.*// (race|suspected|block): (.*)$", line)
        if not marked:
            continue
        for name in marked.group(2).split(";"):
            name = re.sub(r", (predicted|either)$", "", name.strip())
            # To ThreadSanitizer, allocating a block is a write to it, and it may name that one.
            if marked.group(1) in ("race", "block"):
                program.races.setdefault(name, set()).add(number)
            else:
                program.suspected.add(number)
    return program


@dataclass(frozen=True)
class Peer:
    """A detector: how it is compiled in, how it is run, how its reports are read."""

    name: str
    compile: tuple  # further compiler options
    run: tuple
    reports: object  # (output, directory, source's name) -> list of sets of lines
    swap: tuple = ()  # pairs: compilers that take the place of others
    languages: tuple = (".c", ".cc", ".rs")


def own_line(stack, name):
    """The innermost line of a printed stack that is in the program's own source."""
    found = re.search(rf"\b{re.escape(name)}:(\d+)", stack)
    return int(found.group(1)) if found else None


def tsan_reports(output, _directory, name):
    reports = []
    for report in re.findall(r"WARNING: ThreadSanitizer: (?:data race|heap-use-after-free).*?={18}", output, re.S):
        sides = re.split(r"\n  (?:Previous |As if |Location |Mutex |Thread |  Atomic )", report)[:2]
        reports.append({line for line in (own_line(side, name) for side in sides) if line})
    return reports


def helgrind_reports(output, _directory, name):
    text = re.sub(r"^==\d+== ?", "", output, flags=re.M)
    reports = []
    for report in re.split(r"\n-{40,}\n|\n\n(?=Possible data race)", text):
        if "Possible data race" not in report:
            continue
        body = report[report.index("Possible data race"):]
        sides = re.split(r"This conflicts with", body)[:2]
        reports.append({line for line in (own_line(side, name) for side in sides) if line})
    return reports


def drd_reports(output, _directory, name):
    text = re.sub(r"^==\d+== ?", "", output, flags=re.M)
    found = re.findall(r"Conflicting (?:load|store) by thread.*?(?=\n\n|\nConflicting|\Z)", text, re.S)
    return [{line for line in [own_line(report.split("Other segment")[0], name)] if line} for report in found]


def raddle_reports(_output, directory, name):
    report = json.loads((directory / "found" / "report.json").read_text())
    if report["outcome"].get("exit") != 0:
        raise RuntimeError(report["outcome"])
    reports = []
    for finding in report["findings"]:
        lines = set()
        for access in finding["accesses"]:
            own = [f["line"] for f in access["stack"] if (f["file"] or "").endswith("/" + name) and f["line"]]
            lines.update(own[:1])
        reports.append(lines)
    return reports


def peers(raddle):
    tsan = ("setarch", "-R", "env", "TSAN_OPTIONS=exitcode=0")
    valgrind = ("valgrind", "-q")
    run = (raddle, "run", "--quiet", "--error-exitcode", "0", "--timeout", f"{TIME_LIMIT_SECONDS}s", "--out", "found")
    compiled = (".c", ".cc")  # Rust's ThreadSanitizer needs a nightly compiler
    return [
        Peer("gcc-tsan", ("-fsanitize=thread",), tsan, tsan_reports, (("clang", "gcc"),), compiled),
        Peer("clang-tsan", ("-fsanitize=thread",), tsan, tsan_reports,
             (("gcc", "clang"), ("g++", "clang++")), compiled),
        Peer("helgrind", (), (*valgrind, "--tool=helgrind"), helgrind_reports),
        Peer("drd", (), (*valgrind, "--tool=drd"), drd_reports),
        Peer("hybrid", (), (*run, "--"), raddle_reports),
        Peer("hb", (), (*run, "--detector", "hb", "--"), raddle_reports),
    ]


def compile_for(program, peer, level):
    """The executable, made once."""
    directory = WORK / "accuracy"
    directory.mkdir(parents=True, exist_ok=True)
    variant = peer.name if peer.compile else "plain"
    made = directory / f"{program.name.replace('/', '-')}-{variant}{level}"
    newest = max(f.stat().st_mtime for f in [program.source, *(CORPUS / "support").iterdir()])
    if made.exists() and made.stat().st_mtime > newest:
        return made
    compiler, *options = program.build
    compiler = dict(peer.swap).get(compiler, compiler)
    if program.source.suffix == ".rs":
        words = [compiler, *options, "--edition=2024", "-Cdebuginfo=2", f"-Copt-level={level[2:]}"]
    else:
        standard = "-std=gnu17" if program.source.suffix == ".c" else "-std=c++20"
        words = [compiler, *options, "-g", "-pthread", standard, level, *peer.compile,
                 f"-I{CORPUS / 'support'}"]
    # No dots: rustc names its intermediate files by what stands before the first, and two of these would share them.
    unfinished = directory / f"{made.name.replace('.', '-')}-{os.getpid()}-{peer.name}"
    done = subprocess.run([*words, program.source, "-o", unfinished], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["compiler failed"])[0])
    os.rename(unfinished, made)
    return made


def verdict(program, peer, level):
    """right, false, missed or failed; and for failed, why."""
    if program.source.suffix not in peer.languages:
        return "-", ""
    try:
        executable = compile_for(program, peer, level)
        with tempfile.TemporaryDirectory(prefix="raddle-accuracy-") as directory:
            done = subprocess.run([*peer.run, executable], cwd=directory, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=TIME_LIMIT_SECONDS + 10)
            if done.returncode != 0:
                return "failed", f"exit {done.returncode}"
            output = (done.stderr + done.stdout).decode(errors="replace")
            reports = peer.reports(output, Path(directory), program.source.name)
    except subprocess.TimeoutExpired:
        return "failed", "did not finish"
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        return "failed", str(error)
    return compare(program, reports), ""


def compare(program, reports):
    allowed = [*program.races.values(), program.suspected]
    # A report without any line of the program's is out of place, too.
    misplaced = [lines for lines in reports if not lines or not any(lines <= some for some in allowed)]
    missed = [name for name, lines in program.races.items()
              if not any(report and report <= lines for report in reports)]
    if missed:
        return "missed"
    return "false" if misplaced else "right"


def main():
    options = parse()
    warn_if_busy()
    sources = sorted(path for side in ("race", "clean") for path in (CORPUS / side).iterdir()
                     if path.suffix in (".c", ".cc", ".rs"))
    chosen = [read(path) for path in sources]
    chosen = [p for p in chosen if not options.only or any(text in p.name for text in options.only)]
    some_peers = [p for p in peers(options.raddle) if not options.way or p.name in options.way]
    jobs = [(program, peer) for program in chosen for peer in some_peers]
    results = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {pool.submit(verdict, program, peer, options.level): (program.name, peer.name)
                   for program, peer in jobs}
        for count, future in enumerate(concurrent.futures.as_completed(started), 1):
            results[started[future]] = future.result()
            progress(f"{count} of {len(jobs)}")
    progress("")
    names = [p.name for p in some_peers]
    print_table(chosen, names, results, options.all)
    path = save("accuracy", {"level": options.level,
                             "verdicts": [{"program": p, "detector": d, "verdict": v, "why": why}
                                          for (p, d), (v, why) in sorted(results.items())]})
    print(f"\nall verdicts: {path}")


def print_table(chosen, names, results, everything):
    width = 12
    print(f"{'':<50}" + "".join(f"{n:>{width}}" for n in names))
    for program in chosen:
        row = [results[(program.name, n)][0] for n in names]
        if everything or any(v not in ("right", "-") for v in row):
            print(f"{program.name:<50}" + "".join(f"{'.' if v == 'right' else v:>{width}}" for v in row))
    print()
    for kind in ("right", "false", "missed", "failed", "-"):
        counts = [sum(results[(p.name, n)][0] == kind for p in chosen) for n in names]
        label = "cannot be run so" if kind == "-" else kind
        print(f"{label:<50}" + "".join(f"{c:>{width}}" for c in counts))


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench accuracy", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raddle", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--level", choices=["-O0", "-O2"], default="-O0", help="of optimisation (-O0)")
    parser.add_argument("--only", action="append", metavar="TEXT", help="programs whose name contains it")
    parser.add_argument("--way", action="append", metavar="DETECTOR", help="only this detector")
    parser.add_argument("--all", action="store_true", help="show the programs everybody gets right, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()

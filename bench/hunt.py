"""How many executions it takes to see a rare bug: `./dev bench hunt`.

Every program of corpus/hunt has a bug that running it practically never shows. Each is explored by

- random and pct: `raddle hunt --policy NAME`, scheduling points at synchronisation only;
- hunt: `raddle hunt` as it is: races looked for and confirmed, then lock-directed, random and PCT;
- rr: `rr record --chaos`, where rr is installed;

until an execution fails, or `--executions` have been spent. The number counts every execution of the program, those
of detection and confirmation included. `--native` runs the programs by themselves instead, `--runs` times each, and
says how often they failed: the corpus is kept at 0 of 2,000.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measure import ROOT, WORK, progress, save

CORPUS = ROOT / "corpus" / "hunt"
SUPPORT = ROOT / "corpus" / "support"
HANGS_AFTER_SECONDS = 10  # natively they take milliseconds
ENOUGH_FAILURES = 3  # of native runs


@dataclass(frozen=True)
class Program:
    """A program, compiled as anybody would, and how it fails."""

    name: str
    binary: Path
    fails: str


def build(source):
    WORK.mkdir(parents=True, exist_ok=True)
    binary = WORK / f"hunt-{source.stem}"
    compilers = {
        ".c": ["gcc", "-std=gnu17", "-g", "-O2", "-pthread", f"-I{SUPPORT}"],
        ".cc": ["g++", "-std=c++20", "-g", "-O2", "-pthread", f"-I{SUPPORT}"],
        ".rs": ["rustc", "--edition=2024", "-Cdebuginfo=2", "-Copt-level=2"],
    }
    subprocess.run([*compilers[source.suffix], source, "-o", binary], check=True)
    fails = re.search(r"^// fails: (.*)$", source.read_text(), re.M)
    if not fails:
        sys.exit(f"{source.name} does not say how it fails")
    return Program(source.name, binary, fails.group(1))


def native_failures(program, runs, directory):
    """How many of how many runs failed; a few failures are enough to know."""
    failed = 0
    for done in range(runs):
        if failed == ENOUGH_FAILURES:
            return failed, done
        try:
            ended = subprocess.run([program.binary], cwd=directory, timeout=HANGS_AFTER_SECONDS,
                                   stdin=subprocess.DEVNULL, capture_output=True, check=False)
            failed += ended.returncode != 0
        except subprocess.TimeoutExpired:
            failed += 1
    return failed, runs


def native(programs, runs):
    """Runs them all by themselves; two at a time, so that they disturb each other a little."""
    shown = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {program.name: pool.submit(native_failures, program, runs, scratch) for program in programs}
        for name, job in jobs.items():
            failed, done = job.result()
            shown += failed > 0
            print(f"{name:<28} {failed:>5} of {done}", flush=True)
    print(f"\n{shown} of {len(programs)} programs failed in a native run")
    return shown == 0


def hunted(raddle, program, policy, executions, seed):
    """The executions until the first failure and what it was, or None."""
    words = [raddle, "hunt", "--quiet", "--first", "--budget", "1h", "--executions", str(executions), "--seed", str(seed)]
    words += ["--policy", policy] if policy else []
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([*words, "--", program.binary], cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True,
                       check=False)
        reports = sorted(Path(scratch).glob(".raddle/*/report.json"), key=lambda p: int(p.parent.name))
        for report in reversed(reports):
            spent = json.loads(report.read_text()).get("hunt")
            if spent:
                count = spent["detections"] + spent["trials"] + spent["explored"]
                return (count, spent["effect"]) if spent.get("effect") else None
    return (0, "hunt itself failed")


def chaos(program, executions):
    """The same by rr's chaos mode; a hang counts as a failure."""
    with tempfile.TemporaryDirectory() as traces:
        for count in range(1, executions + 1):
            words = ["rr", "record", "--chaos", "-o", f"{traces}/trace", program.binary]
            try:
                ended = subprocess.run(words, timeout=HANGS_AFTER_SECONDS, stdin=subprocess.DEVNULL,
                                       capture_output=True, check=False)
                if ended.returncode != 0:
                    return (count, f"exit {ended.returncode}")
            except subprocess.TimeoutExpired:
                return (count, "hang")
            shutil.rmtree(f"{traces}/trace", ignore_errors=True)
    return None


def rr_works():
    """It needs a processor's counters, which virtual machines often lack."""
    if not shutil.which("rr"):
        return False
    with tempfile.TemporaryDirectory() as traces:
        tried = subprocess.run(["rr", "record", "-o", f"{traces}/trace", "true"], capture_output=True, check=False)
    return tried.returncode == 0


def compare(programs, options):
    ways = {way: (lambda p, policy=policy: hunted(options.raddle, p, policy, options.executions, options.seed))
            for way, policy in {"random": "random", "pct": "pct", "hunt": None}.items() if way in options.ways}
    if "rr" in options.ways:
        if rr_works():
            ways["rr"] = lambda p: chaos(p, options.executions)
        else:
            print("rr is not installed or does not run here: left out", file=sys.stderr)
    print(f"{'executions until it fails':<28}" + "".join(f"{way:>8}" for way in ways) + "   as")
    rows = {}
    for program in programs:
        row = {}
        for way, look in ways.items():
            progress(f"{program.name}: {way}")
            row[way] = look(program)
        progress("")
        cells = "".join(f"{row[way][0] if row[way] else '-':>8}" for way in ways)
        seen = next((row[way][1] for way in reversed(list(ways)) if row[way]), "")
        print(f"{program.name:<28}{cells}   {seen} ({program.fails})", flush=True)
        rows[program.name] = row
    for way in ways:
        found = sum(row[way] is not None for row in rows.values())
        print(f"{way}: {found} of {len(programs)} within {options.executions} executions")
    print(f"kept in {save('hunt', {'rows': rows, 'executions': options.executions})}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench hunt", description=__doc__.split("\n")[0])
    parser.add_argument("--raddle", default=ROOT / "target" / "release" / "raddle", type=Path)
    parser.add_argument("--native", action="store_true", help="run the programs by themselves")
    parser.add_argument("--runs", type=int, default=2000, help="with --native: how often")
    parser.add_argument("--executions", type=int, default=1000, help="at most so many of a program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="*", default=["random", "pct", "hunt", "rr"])
    parser.add_argument("--only", nargs="*", default=[], help="only programs whose name contains one of these")
    options = parser.parse_args()
    sources = sorted(p for p in CORPUS.iterdir() if p.suffix in (".c", ".cc", ".rs"))
    wanted = [s for s in sources if not options.only or any(text in s.name for text in options.only)]
    programs = [build(source) for source in wanted]
    if options.native:
        sys.exit(0 if native(programs, options.runs) else 1)
    compare(programs, options)


if __name__ == "__main__":
    main()

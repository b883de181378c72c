"""How many executions it takes to see a rare bug: `./dev bench hunt`.

Every program of corpus/hunt has a bug that running it practically never shows. Each is explored by

- random and pct: `raddle hunt --policy NAME`, scheduling points at synchronisation only;
- hunt: `raddle hunt` as it is: races looked for and confirmed, then lock-directed, random and PCT;
- rr: `rr record --chaos`, where rr is installed; `--rr` names another rr, `--rr-option` gives it an option more;

until an execution fails, or `--executions` or `--seconds` have been spent; `>N` is a program that did not fail in N. The
number counts every execution of the program, those of detection and confirmation included. `--native` runs the programs
by themselves instead, `--runs` times each, and says how often they failed: the corpus is kept at 0 of 2,000.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import ROOT, WORK, progress, save

CORPUS = ROOT / "corpus" / "hunt"
SUPPORT = ROOT / "corpus" / "support"
HANGS_AFTER_SECONDS = 10  # natively they take milliseconds
ENOUGH_FAILURES = 3  # of native runs
RR_FAILED = "rr itself failed"


@dataclass(frozen=True)
class Program:
    """A program, compiled as anybody would, and how it fails."""

    name: str
    binary: Path
    fails: str


@dataclass(frozen=True)
class Outcome:
    """How many executions were spent on a program, and how the last one failed, if it did."""

    executions: int
    effect: str | None = None
    broken: int = 0  # executions that the tool itself did not survive
    replayed: int | None = None  # replays that repeated the failure

    def cell(self):
        return str(self.executions) if self.effect else f">{self.executions}"


def build(source, cc, cxx):
    WORK.mkdir(parents=True, exist_ok=True)
    binary = WORK / f"hunt-{source.stem}"
    compilers = {
        ".c": [*cc, "-std=gnu17", "-g", "-O2", "-pthread", f"-I{SUPPORT}"],
        ".cc": [*cxx, "-std=c++20", "-g", "-O2", "-pthread", f"-I{SUPPORT}"],
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


def hunted(raddle, program, policy, options):
    """Executions until the first failure, and what it was."""
    words = [raddle, "hunt", "--quiet", "--first", "--budget", f"{options.seconds}s", "--executions",
             str(options.executions), "--seed", str(options.seed)]
    words += ["--policy", policy] if policy else []
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([*words, "--", program.binary], cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True,
                       check=False)
        reports = sorted(Path(scratch).glob(".raddle/*/report.json"), key=lambda p: int(p.parent.name))
        for report in reversed(reports):
            known = json.loads(report.read_text())
            spent = known.get("hunt")
            if spent:
                made = spent["detections"] + spent["trials"] + spent["explored"]
                again = replayed(raddle, (report.parent.name, known), scratch, options.replays) if spent.get("effect") else None
                return Outcome(made, spent.get("effect"), replayed=again)
    return Outcome(0, "hunt itself failed")


def replayed(raddle, run, directory, times):
    """How many replays of the failure repeat it. It may not be in the latest run."""
    number, report = run
    words = failing(report)
    if not times or not words:
        return None
    again = [raddle, "replay", f"{number}/{words[0]}", *words[1:]]

    def once(_):
        ended = subprocess.run(again, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if ended.returncode != 0:
            print(f"{' '.join(map(str, again))}: exit code {ended.returncode}\n{ended.stderr.decode(errors='replace')[-800:]}",
                  file=sys.stderr, flush=True)
        return ended.returncode

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(once, range(times))).count(0)


def failing(report):
    """What `raddle replay` is to be given: a failing execution, or a race in the order in which it does harm."""
    for failure in report.get("failures", []):
        return [failure["id"]]
    for finding in report["findings"]:
        for effect in (finding.get("confirmation") or {}).get("effects", []):
            if effect["effect"] not in ("nothing", "other output"):
                return [finding["id"], "--order", str(effect["order"])]
    return None


class Rr:
    """rr's chaos mode."""

    def __init__(self, options):
        self.words = [options.rr, "record", *options.rr_option]
        self.options = options

    def works(self):
        """It needs a processor's counters, which virtual machines often lack."""
        if not shutil.which(self.words[0]):
            return False
        with tempfile.TemporaryDirectory() as traces:
            tried = subprocess.run([*self.words, "-o", f"{traces}/trace", "true"], capture_output=True, check=False)
        return tried.returncode == 0

    def effect(self, program, trace):
        """How one execution failed, or None; a hang counts as a failure."""
        child = subprocess.Popen([*self.words, "--chaos", "-o", trace, program.binary], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            said = child.communicate(timeout=self.options.hangs_after)[1]
        except subprocess.TimeoutExpired:
            child.terminate()  # it ends the recording, so that it can be replayed
            try:
                child.communicate(timeout=self.options.hangs_after)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
            return "hang"
        if b"[FATAL " in said:
            return RR_FAILED
        return f"exit {child.returncode}" if child.returncode else None

    def chaos(self, program):
        """Executions until the first failure, and what it was; its recording is kept if so wished."""
        until = time.monotonic() + self.options.seconds
        broken = 0
        with tempfile.TemporaryDirectory() as traces:
            trace = Path(traces) / "trace"
            for count in range(1, self.options.executions + 1):
                effect = self.effect(program, trace)
                if effect == RR_FAILED:
                    effect, broken = None, broken + 1
                if effect and self.options.keep:
                    self.options.keep.mkdir(parents=True, exist_ok=True)
                    kept = self.options.keep / program.name
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.move(trace, kept)
                if effect or time.monotonic() > until:
                    return Outcome(count, effect, broken)
                shutil.rmtree(trace, ignore_errors=True)
        return Outcome(self.options.executions, None, broken)


def compare(programs, options):
    ways = {way: (lambda p, policy=policy: hunted(options.raddle, p, policy, options))
            for way, policy in {"random": "random", "pct": "pct", "hunt": None}.items() if way in options.ways}
    if "rr" in options.ways:
        rr = Rr(options)
        if rr.works():
            ways["rr"] = rr.chaos
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
        cells = "".join(f"{row[way].cell():>8}" for way in ways)
        seen = next((row[way].effect for way in reversed(list(ways)) if row[way].effect), "")
        again = row["hunt"].replayed if "hunt" in row else None
        again = f"; replayed {again} of {options.replays}" if again is not None else ""
        print(f"{program.name:<28}{cells}   {seen} ({program.fails}){again}", flush=True)
        rows[program.name] = {way: asdict(outcome) for way, outcome in row.items()}
    for way in ways:
        found = sum(row[way]["effect"] is not None for row in rows.values())
        broken = sum(row[way]["broken"] for row in rows.values())
        print(f"{way}: {found} of {len(programs)} within {options.executions} executions and {options.seconds} s each"
              + (f"; failed itself in {broken} executions" if broken else ""))
    print(f"kept in {save('hunt', {'rows': rows, 'executions': options.executions, 'seconds': options.seconds})}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench hunt", description=__doc__.split("\n")[0])
    parser.add_argument("--raddle", default=ROOT / "target" / "release" / "raddle", type=Path)
    parser.add_argument("--native", action="store_true", help="run the programs by themselves")
    parser.add_argument("--runs", type=int, default=2000, help="with --native: how often")
    parser.add_argument("--executions", type=int, default=1000, help="at most so many of a program")
    parser.add_argument("--seconds", type=int, default=3600, help="at most so long for a program, each way")
    parser.add_argument("--rr", default="rr", help="which rr")
    parser.add_argument("--rr-option", action="append", default=[], help="one more for `rr record`: --rr-option=-W")
    parser.add_argument("--hangs-after", type=int, default=HANGS_AFTER_SECONDS, metavar="SECONDS",
                        help=f"when an execution under rr hangs ({HANGS_AFTER_SECONDS}); more where others are at work")
    parser.add_argument("--keep", type=Path, help="keep rr's recordings of failures in this directory")
    parser.add_argument("--cc", type=shlex.split, default=["gcc"], help="another C compiler, perhaps with options")
    parser.add_argument("--cxx", type=shlex.split, default=["g++"], help="another C++ compiler, the same")
    parser.add_argument("--replays", type=int, default=0, help="how often each failure that hunt finds is replayed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="*", default=["random", "pct", "hunt", "rr"])
    parser.add_argument("--only", nargs="*", default=[], help="only programs whose name contains one of these")
    options = parser.parse_args()
    sources = sorted(p for p in CORPUS.iterdir() if p.suffix in (".c", ".cc", ".rs"))
    wanted = [s for s in sources if not options.only or any(text in s.name for text in options.only)]
    programs = [build(source, options.cc, options.cxx) for source in wanted]
    if options.native:
        sys.exit(0 if native(programs, options.runs) else 1)
    compare(programs, options)


if __name__ == "__main__":
    main()

"""Executions until a bug shows, beside Shuttle: `./dev bench shuttle`.

The programs of bench/shuttle are written once and built twice: on the standard library, to be explored by `raddle hunt`
as the binary it is, and on Shuttle's stand-ins for the standard library, to be explored by Shuttle's random and PCT
schedulers. Each is explored from several seeds until an execution fails or `--executions` are spent. What is compared
is the number of executions (every one of Raddle's counts, those of detection and confirmation included) and the time until
the failure, process start included. Shuttle executes inside one process and is bound to be faster by the execution; Raddle needs no
change to the program.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import ROOT, WORK, progress, save, warn_if_busy

CRATE = ROOT / "bench" / "shuttle"
PROGRAMS = ["lost_update", "transfer_deadlock", "missed_signal", "published_too_early"]
LIMIT_SECONDS = 300  # of one exploration


def build(name, *features):
    target = WORK / "shuttle" / name
    words = ["cargo", "build", "--quiet", "--release", "--manifest-path", CRATE / "Cargo.toml", "--target-dir", target]
    subprocess.run([*words, *features], check=True)
    return target / "release" / "explored"


def by_shuttle(binary, program, policy, seed, executions):
    """Executions until the failure, 0 for none."""
    words = [binary, program, policy, str(seed), str(executions)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True)
    return int(done.stdout.split()[-1])


def by_raddle(raddle, binary, program, seed, executions):
    words = [raddle, "hunt", "--quiet", "--first", "--budget", f"{LIMIT_SECONDS}s", "--executions", str(executions),
             "--seed", str(seed), "--", binary, program]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(words, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        reports = sorted(Path(scratch).glob(".raddle/*/report.json"), key=lambda p: int(p.parent.name))
        for report in reversed(reports):
            spent = json.loads(report.read_text()).get("hunt")
            if spent:
                return spent["detections"] + spent["trials"] + spent["explored"] if spent.get("effect") else 0
    sys.exit(f"raddle hunt failed on {program}")


def native_failures(binary, program, runs):
    """How often it fails by itself; a hang is a failure."""
    failed = 0
    for _ in range(runs):
        try:
            failed += subprocess.run([binary, program], capture_output=True, timeout=5, check=False).returncode != 0
        except subprocess.TimeoutExpired:
            failed += 1
    return failed


def main():
    parser = argparse.ArgumentParser(prog="./dev bench shuttle", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raddle", required=True, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="explorations of each program (10)")
    parser.add_argument("--executions", type=int, default=1000, metavar="N", help="at most, of one exploration (1000)")
    parser.add_argument("--native", type=int, default=1000, metavar="N", help="runs without an explorer (1000)")
    options = parser.parse_args()
    warn_if_busy()
    plain, shuttle = build("plain"), build("shuttle", "--features", "shuttle")
    ways = {
        "shuttle random": lambda p, s: by_shuttle(shuttle, p, "random", s, options.executions),
        "shuttle pct": lambda p, s: by_shuttle(shuttle, p, "pct", s, options.executions),
        "raddle hunt": lambda p, s: by_raddle(options.raddle, plain, p, s, options.executions),
    }
    print(f"{'executions (seconds) until it fails: median, worst':<52}{'natively':>12}"
          + "".join(f"{way:>28}" for way in ways))
    rows = {}
    for program in PROGRAMS:
        progress(f"{program}: natively")
        row = {"native": native_failures(plain, program, options.native)}
        for way, explore in ways.items():
            tried = []
            for seed in range(1, options.seeds + 1):
                progress(f"{program}: {way}, seed {seed}")
                start = time.monotonic()
                tried.append((explore(program, seed), time.monotonic() - start))
            row[way] = tried
        rows[program] = row
        progress("")
        print(f"{program:<52}{row['native']:>5} of {options.native}"
              + "".join(f"{cell(row[way]):>28}" for way in ways), flush=True)
    print(f"kept in {save('shuttle', {'rows': rows, 'executions': options.executions})}")


def cell(tried):
    """`3 (0.1), 9; 10 of 10`."""
    found = [(count, seconds) for count, seconds in tried if count]
    if not found:
        return f"0 of {len(tried)}"
    counts, seconds = zip(*found)
    median = statistics.median_high(counts)
    return f"{median} ({statistics.median(seconds):.2f}), {max(counts)}; {len(found)}/{len(tried)}"


if __name__ == "__main__":
    main()

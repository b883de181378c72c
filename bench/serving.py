"""How many executions a second: `./dev bench serving`.

`raddle hunt --policy random` instruments synchronisation only. It is timed with few executions and with many; what
it does once (the program by itself, looking for races, the start of a server) is in both and drops out of the
difference. Two ways: served, where the program is copied at its main function, and anew, where each execution starts it.

The goal is for the smallest program, on two processors, on a machine that does nothing else. Processor time says how
far a busy machine is to blame.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hunt import CORPUS, build
from measure import ROOT, compile_c, progress, save, table, warn_if_busy

GOAL = 200  # executions a second
FEW, MANY = 50, 850  # served
ANEW_FEW, ANEW_MANY = 4, 24  # a thirtieth as fast
OTHERS = ("barrier_reuse.c", "cxx_pool_stopped.cc", "rust_mutex_two_sections.rs")


def hunt(raddle, binary, executions, way):
    """Wall and processor seconds of a hunt."""
    words = [raddle, "hunt", "--quiet", "--policy", "random", "--budget", "1h", "--executions", str(executions), *way]
    with tempfile.TemporaryDirectory() as scratch:
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        ended = subprocess.run([*words, "--", binary], cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True,
                               check=False)
        wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 66):
        sys.exit(f"raddle hunt failed: {ended.stderr.decode()}")
    if not way and b"anew" in ended.stderr:
        sys.exit(f"{binary} is not served: {ended.stderr.decode()}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rate(raddle, binary, way, few, many):
    """Executions a second, and processor milliseconds of one."""
    (wall_few, busy_few), (wall, busy) = (hunt(raddle, binary, count, way) for count in (few, many))
    return (many - few) / (wall - wall_few), 1000 * (busy - busy_few) / (many - few)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench serving", description=__doc__.split("\n")[0])
    parser.add_argument("--raddle", default=ROOT / "target" / "release" / "raddle", type=Path)
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many: load only slows down")
    parser.add_argument("--served-only", action="store_true")
    parser.add_argument("--only-small", action="store_true", help="deposits.c alone, which has the goal")
    options = parser.parse_args()
    warn_if_busy()
    programs = {"deposits.c": compile_c("deposits.c")}
    if not options.only_small:
        programs |= {name: str(build(CORPUS / name, ["gcc"], ["g++"]).binary) for name in OTHERS}
    ways = {"served": ([], FEW, MANY)}
    if not options.served_only:
        ways["anew"] = (["--anew"], ANEW_FEW, ANEW_MANY)
    rows, kept = [], {}
    for name, binary in programs.items():
        best = {}
        for _ in range(options.repeat):
            for way, (words, few, many) in ways.items():
                progress(f"{name}: {way}")
                found = rate(options.raddle, binary, words, few, many)
                best[way] = max(best.get(way, found), found)
        progress("")
        kept[name] = best
        rows.append((name, [f"{value:.{digits}f}" for way in best for value, digits in zip(best[way], (0, 1))]))
    table("executions", [f"{way} {what}" for way in ways for what in ("1/s", "CPU ms")], rows)
    reached = kept["deposits.c"]["served"][0]
    verdict = "met" if reached >= GOAL else "MISSED"
    print(f"\n  {reached:.0f} executions a second of deposits.c on {os.cpu_count()} processors; goal {GOAL}: {verdict}")
    print(f"kept in {save('serving', {'rows': kept})}")


if __name__ == "__main__":
    main()

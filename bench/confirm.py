"""What a confirming run costs: `./dev bench confirm`.

A program that computes and one that reads and writes, both with a race at their end, are run by themselves and under the race-directed
policy with the two places of the race watched: one execution, started anew, as `raddle confirm --anew` makes them. Ratios of
processor time and of wall time; what a start under the engine takes is measured with no rounds at all, and shown apart. RaceFuzzer
reports 1.1x to 3x for its own, beside the Java machine.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import ROOT, Stopwatch, compile_c, progress, save, warn_if_busy


def plan(raddle, argv, scratch):
    """The plan of a trial that `confirm` has kept."""
    subprocess.run([raddle, "run", "--quiet", "--out", scratch / "run", "--", *argv], cwd=scratch, check=False,
                   stdin=subprocess.DEVNULL, capture_output=True)
    said = subprocess.run([raddle, "confirm", "--quiet", scratch / "run" / "report.json"], cwd=scratch, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True)
    kept = sorted((scratch / "run").glob("*.plan"))
    if not kept:
        sys.exit(f"the race of {argv} was not confirmed: {said.stderr.decode()}")
    return json.loads(kept[0].read_text())


def words(*argv):
    """A program and its arguments, as a plan has them."""
    return {"program": [{"Unix": list(word.encode())} for word in argv]}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench confirm", description=__doc__.split("\n")[0])
    parser.add_argument("--raddle", default=ROOT / "target" / "release" / "raddle", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warn_if_busy()
    binary, watch, rows = compile_c("racing.c"), Stopwatch(), {}
    with tempfile.TemporaryDirectory(prefix="raddle-confirm-") as scratch:
        scratch = Path(scratch)
        for kind, few in (("compute", "20"), ("io", "20")):
            progress(kind)
            directory = scratch / kind
            directory.mkdir()
            made = plan(options.raddle, [binary, kind, few], directory)
            long, short = made | words(binary, kind), made | words(binary, kind, "0")
            costs = {"native": [], "confirming": [], "start": []}
            for _ in range(options.repeats):
                costs["native"].append(watch.run([binary, kind]))
                for name, content in (("confirming", long), ("start", short)):
                    file = scratch / "plan"
                    file.write_text(json.dumps(content | {"limit_ms": 300_000}))
                    costs[name].append(watch.run([options.raddle, "trial", file, scratch / "result"], expected_exit=0))
            cost = {name: {"cpu": statistics.median(c.cpu for c in all_), "wall": statistics.median(c.wall for c in all_)}
                    for name, all_ in costs.items()}
            rows[kind] = cost
            progress("")
            ratio = {clock: (cost["confirming"][clock] - cost["start"][clock]) / cost["native"][clock]
                     for clock in ("cpu", "wall")}
            print(f"{kind:<10} native {cost['native']['cpu']:.2f} s processor, {cost['native']['wall']:.2f} s wall; "
                  f"confirming {ratio['cpu']:.2f}x processor, {ratio['wall']:.2f}x wall, "
                  f"and {cost['start']['wall']:.2f} s to start", flush=True)
    print(f"kept in {save('confirm', {'rows': rows})}")


if __name__ == "__main__":
    main()

"""What recording with rr costs, and whether its recordings replay: `./dev bench rr`.

Three programs of bench/programs. `rr record`, without and with `--chaos`, as ratios to native, processor and wall time (rr
runs all threads on one processor, so wall time would be longer if recording cost nothing); then `--replays` recordings of each,
made with smaller inputs, are replayed: it counts how many end in time with the output that was recorded.

`--rr` names another rr, `--rr-option` gives it an option more, for recording and replaying alike; `--cc` is the compiler of what
rr records, if that has to be built in a way of its own. Native is always plain `cc`.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile

from measure import Grid, Program, Stopwatch, Way, compile_c, save, shown, table, warn_if_busy

SMALLER = {"sort": "300000", "matmul": "500", "hash": "100000"}
REPLAY_LIMIT_SECONDS = 60


def built(options):
    """The programs, each also as rr is to record it."""
    compiler, *more = options.cc
    for name in options.only or SMALLER:
        ours = compile_c(f"{name}.c", *more, compiler=compiler, variant="rr")
        yield Program(name, (compile_c(f"{name}.c"),), (("rr", (ours,)),))


def replays(options, program, chaos):
    """Records and replays; how many of how many recordings repeated their output."""
    alike = 0
    command = [*dict(program.variants)["rr"], SMALLER[program.name]]
    for _ in range(options.replays):
        with tempfile.TemporaryDirectory(prefix="raddle-rr-") as scratch:
            trace = f"{scratch}/trace"
            made = subprocess.run([options.rr, "record", *options.rr_option, *chaos, "-o", trace, *command],
                                  stdin=subprocess.DEVNULL, capture_output=True, check=False)
            try:
                again = subprocess.run([options.rr, "replay", *options.rr_option, "-a", trace], stdin=subprocess.DEVNULL,
                                       capture_output=True, timeout=REPLAY_LIMIT_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                continue
            alike += made.returncode == 0 and again.returncode == 0 and made.stdout == again.stdout
    return f"{alike} of {options.replays}"


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench rr", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raddle", help=argparse.SUPPRESS)
    parser.add_argument("--rr", default="rr", help="which rr")
    parser.add_argument("--rr-option", action="append", default=[], help="one more: --rr-option=-W")
    parser.add_argument("--cc", type=shlex.split, default=["cc"], help="the compiler of what rr records, with options")
    parser.add_argument("--repetitions", type=int, default=3, help="how often each cell is measured (3)")
    parser.add_argument("--replays", type=int, default=5, help="how many recordings of each are replayed (5)")
    parser.add_argument("--only", action="append", choices=SMALLER, help="only this program; may be given again")
    return parser.parse_args()


def main():
    options = parse()
    if not shutil.which(options.rr):
        sys.exit("rr is not installed")
    warn_if_busy()
    programs = list(built(options))
    with tempfile.TemporaryDirectory(prefix="raddle-rr-") as traces:
        record = ("env", f"_RR_TRACE_DIR={traces}", options.rr, "record", *options.rr_option)
        ways = [Way("native"), Way("record", record, "rr"), Way("chaos", (*record, "--chaos"), "rr")]
        grid = Grid()
        grid.measure(Stopwatch(), programs, ways, options.repetitions, "programs")
    for field, title in (("cpu", "Processor time"), ("wall", "Wall time")):
        table(f"{title} (native in seconds, the others x native)", ["native", "record", "chaos"],
              [(p.name, [shown(grid.median(p.name, "native", field), ".2f")]
                + [shown(grid.ratio(p.name, way, field), ".2f") for way in ("record", "chaos")]) for p in programs])
    for (program, way), why in grid.failures.items():
        print(f"  failed: {program}, {way}: {why}")
    repeated = {p.name: [replays(options, p, chaos) for chaos in ([], ["--chaos"])] for p in programs}
    table(f"Recordings replayed within {REPLAY_LIMIT_SECONDS} s, with the same output", ["record", "chaos"], repeated.items())
    print(f"\nabsolute numbers: {save('rr', {'costs': grid.as_json(), 'replays': repeated})}")
    sys.exit(1 if grid.failures else 0)


if __name__ == "__main__":
    main()

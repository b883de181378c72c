"""What the engine and the monitoring cost: `./dev bench engine`.

Three ways of running each program, as ratios to native:

- bare: the engine alone, no client;
- counting: every memory access counted inline;
- sync: hooked synchronisation alone.

The goals stand as limits below; the output says which are met. Absolute numbers go to bench/results.
"""

import argparse
import shutil
import sys

from measure import Goal, Grid, Program, Stopwatch, Way
from measure import compile_c, save, shown, table, text_file, warn_if_busy

BARE_LIMIT = 1.25  # geometric mean, x native
COUNTING_LIMIT = 2.2  # geometric mean, x native
SYNC_LIMIT = 1.5  # on the mutex-heavy program, x native
PEAK_LIMIT_MB = 80  # above native, on a small program
START_UP_LIMIT_SECONDS = 0.15  # wall time of `true`

START_UP_ROUNDS = 15  # short and noisy: more rounds


def ways(raddle):
    """How each program is run."""
    return [
        Way("native"),
        Way("bare", (raddle, "events", "--engine", "bare", "--")),
        Way("counting", (raddle, "events", "--count", "--only", "memory", "--")),
        Way("sync", (raddle, "events", "--count", "--only", "sync", "--")),
    ]


def programs():
    """Three of our own, and two that everybody has."""
    found = [Program(name, (compile_c(f"{name}.c"),)) for name in ("sort", "matmul", "hash")]
    text = text_file(60)
    real = [
        ("pigz", ("-p2", "-c", text)),
        ("xz", ("-T2", "-1", "--block-size=4MiB", "-c", text_file(20))),
    ]
    for name, arguments in real:
        path = shutil.which(name)
        if path is None:
            sys.exit(f"{name} is not installed: ./dev setup bench")
        found.append(Program(name, (path, *arguments)))
    return found


def main():
    options = parse()
    warn_if_busy()
    stopwatch = Stopwatch()
    all_ways = ways(options.raddle)
    big = [p for p in programs() if not options.only or p.name in options.only]
    if not big:
        sys.exit("--only left no program")
    small = Program("hash, 1000 words", (compile_c("hash.c"), "1000"))
    true = Program("true", (shutil.which("true"),))

    grid = Grid()
    grid.measure(stopwatch, big, all_ways, options.repetitions, "programs")
    grid.measure(stopwatch, [small, true], all_ways, START_UP_ROUNDS, "start-up")

    print_tables(grid, big, small, true, all_ways)
    goals = judge(grid, big, small, true)
    print("\nGoals")
    for goal in goals:
        print(goal.line())
    for (program, way), why in grid.failures.items():
        print(f"  failed: {program}, {way}: {why}")
    path = save("engine", {"costs": grid.as_json(), "goals": [vars(g) for g in goals]})
    print(f"\nabsolute numbers: {path}")
    if grid.failures or (options.check and not all(g.met() for g in goals)):
        sys.exit(1)


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench engine", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raddle", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--repetitions", type=int, default=7, metavar="N",
                        help="how often each cell is measured (7)")
    parser.add_argument("--only", action="append", metavar="PROGRAM",
                        help="only this program; may be given again")
    parser.add_argument("--check", action="store_true",
                        help="exit with 1 when a goal is missed, not only when something failed")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    return options


def print_tables(grid, big, small, true, all_ways):
    tested = [w.name for w in all_ways if w.name != "native"]

    def row(program):
        return (program.name, [shown(grid.median(program.name, "native", "cpu"), ".2f")]
                + [shown(grid.ratio(program.name, way), ".2f") for way in tested])

    means = [None] + [shown(grid.geometric_mean(big, way), ".2f") for way in tested]
    table("Processor time (native in seconds, the others x native)", ["native"] + tested,
          [row(p) for p in big] + [("geometric mean", means)])

    def memory(program):
        cells = [grid.median(program.name, way.name, "peak_kb") for way in all_ways]
        return (program.name, [c and shown(c / 1024, ".1f") for c in cells])

    table("Peak memory (MB)", ["native"] + tested, [memory(p) for p in big + [small, true]])

    def start_up(program):
        cells = [grid.median(program.name, way.name, "wall") for way in all_ways]
        return (program.name, [c and shown(c * 1000, ".0f") for c in cells])

    table("Wall time of short programs (ms)", ["native"] + tested, [start_up(small), start_up(true)])


def judge(grid, big, small, true):
    """The promises with their values. The probe's memory: the dearer of its two ways."""
    goals = [
        Goal("bare engine, geometric mean", BARE_LIMIT, "x", grid.geometric_mean(big, "bare")),
        Goal("counting every access, geometric mean", COUNTING_LIMIT, "x",
             grid.geometric_mean(big, "counting")),
    ]
    if any(p.name == "hash" for p in big):
        goals.append(Goal("hooked synchronisation, hash", SYNC_LIMIT, "x",
                          grid.ratio("hash", "sync")))
    peaks = [grid.median(small.name, way, "peak_kb") for way in ("counting", "sync")]
    native_peak = grid.median(small.name, "native", "peak_kb")
    above = None if None in peaks + [native_peak] else (max(peaks) - native_peak) / 1024
    goals.append(Goal("peak memory above native, small program", PEAK_LIMIT_MB, "MB", above))
    # Of the two ways, counting also names the hottest places at the end, from libc's debug files
    # where there are any: that is no start-up, and the table above shows it all the same.
    goals.append(Goal("start-up of true, hooks on", START_UP_LIMIT_SECONDS, "s",
                      grid.median(true.name, "sync", "wall")))
    return goals


if __name__ == "__main__":
    main()

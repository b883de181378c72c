"""What detecting races costs, beside the peers: `./dev bench detect`.

Every program is run natively and by each detector in one run of this benchmark; processor time, wall time and peak
memory are given as ratios to native. The peers:

- gcc-tsan, clang-tsan: ThreadSanitizer, compiled in (so not for programs that are here as binaries only);
- helgrind, drd: of valgrind;
- hybrid, hb: Raddle's default detector, and the one that keeps happens-before only.

Then the same accesses are made by 2 to 512 threads, to see what a thread costs. The goals stand as limits below; a
program that did not end within the time limit is shown as such and takes no part in the means, whose line then says how
many programs it is over: means are only compared over programs that both sides finished.
"""

import argparse
import math
import shutil
import statistics
import sys

from measure import NOT_APPLICABLE, Goal, Grid, Program, Stopwatch, Way
from measure import compile_c, save, shown, table, text_file, warn_if_busy

GCC_LIMIT = 0.6  # geometric mean of processor time, x gcc's ThreadSanitizer
CLANG_LIMIT = 1.0  # x clang's
HELGRIND_LIMIT = 0.1  # x helgrind
WORST_LIMIT = 1.5  # on the worst program, x gcc's
PEAK_FACTOR, PEAK_ADDED_MB = 5, 100  # peak memory: at most so many times native, and so much more
SCALING_LIMIT = 1.5  # processor time per access, 512 threads x 2 threads

# Arguments: chosen so that helgrind, the slowest peer, takes seconds (small; natively hundredths of one, so that what it takes
# to start counts) or a minute (full; natively about half a second, so that it does not).
SIZES = {
    "small": {"sort": ("300000",), "matmul": ("160",), "hash": ("60000",), "fft": ("16",),
              "radix": ("200000",), "compress": ("1",), "server": ("1000",)},
    "full": {"sort": ("12000000",), "matmul": ("800",), "hash": ("1000000",), "fft": ("22",),
             "radix": ("20000000",), "compress": ("64",), "server": ("10000",)},
}
REAL_MEGABYTES = {"small": 1, "full": 10}
SCALING_ACCESSES = {"small": 1_000_000, "full": 20_000_000}
SCALING_THREADS = [2, 4, 8, 16, 32, 64, 128, 256, 512]


def ways(raddle):
    # A detector that finds something must not change the exit code, or the cell would count as failed. gcc 12's
    # ThreadSanitizer cannot live with as much address-space randomisation as new kernels give.
    tsan = ("setarch", "-R", "env", "TSAN_OPTIONS=exitcode=0")
    run = (raddle, "run", "--quiet", "--error-exitcode", "0")
    return [
        Way("native"),
        Way("gcc-tsan", tsan, "gcc-tsan"),
        Way("clang-tsan", tsan, "clang-tsan"),
        Way("helgrind", ("valgrind", "-q", "--tool=helgrind")),
        Way("drd", ("valgrind", "-q", "--tool=drd")),
        Way("hybrid", (*run, "--")),
        Way("hb", (*run, "--detector", "hb", "--")),
    ]


def compiled(name, arguments):
    """A program of ours, in all its variants."""
    source = f"{name}.c"
    variants = [("gcc-tsan", "gcc"), ("clang-tsan", "clang")]
    made = tuple((variant, (compile_c(source, "-fsanitize=thread", compiler=compiler,
                                      variant=variant), *arguments))
                 for variant, compiler in variants)
    return Program(name, (compile_c(source), *arguments), made)


def programs(size, only):
    found = [(name, lambda name=name, arguments=arguments: compiled(name, arguments))
             for name, arguments in SIZES[size].items()]
    text = text_file(REAL_MEGABYTES[size])
    for name, arguments in [("pigz", ("-p2", "-c", text)),
                            ("xz", ("-T2", "-1", "--block-size=256KiB", "-c", text))]:
        path = shutil.which(name)
        if path is None:
            sys.exit(f"{name} is not installed: ./dev setup bench")
        found.append((name, lambda name=name, argv=(path, *arguments): Program(name, argv)))
    chosen = [make() for name, make in found if not only or name in only]
    if not chosen:
        sys.exit("--only left no program")
    return chosen


def main():
    options = parse()
    warn_if_busy()
    stopwatch = Stopwatch(options.time_limit)
    all_ways = [w for w in ways(options.raddle)
                if w.name == "native" or not options.way or w.name in options.way]
    chosen = programs(options.size, options.only)

    grid = Grid()
    grid.measure(stopwatch, chosen, all_ways, options.repetitions, "programs")
    print_tables(grid, chosen, all_ways)
    goals = judge(grid, chosen)
    scaling = None
    if not options.no_scaling:
        scaling = measure_scaling(stopwatch, all_ways, SCALING_ACCESSES[options.size])
        goals += judge_scaling(scaling)

    print("\nGoals")
    for goal in goals:
        print(goal.line())
    for (program, way), why in grid.failures.items():
        if why != NOT_APPLICABLE:
            print(f"  {program}, {way}: {why}")
    path = save("detect", {"size": options.size, "costs": grid.as_json(), "scaling": scaling,
                           "goals": [vars(g) for g in goals]})
    print(f"\nabsolute numbers: {path}")
    if options.check and not all(g.met() for g in goals):
        sys.exit(1)


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench detect", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raddle", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--size", choices=SIZES, default="small", help="of the inputs (small)")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N",
                        help="how often each cell is measured (3)")
    parser.add_argument("--time-limit", type=float, default=120, metavar="SECONDS",
                        help="of one run (120)")
    parser.add_argument("--only", action="append", metavar="PROGRAM",
                        help="only this program; may be given again")
    parser.add_argument("--way", action="append", metavar="DETECTOR",
                        help="only this detector, beside native; may be given again")
    parser.add_argument("--no-scaling", action="store_true", help="leave out the run over threads")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    return options


def cell(grid, program, way, field):
    """A ratio as text, or why there is none."""
    why = grid.failures.get((program, way))
    if why == NOT_APPLICABLE:
        return None
    if why is not None:
        return "unfinished" if why.startswith("did not finish") else "failed"
    return shown(grid.ratio(program, way, field), ".2f")


def print_tables(grid, chosen, all_ways):
    tested = [w.name for w in all_ways if w.name != "native"]
    for title, field, scale, form in [("Processor time", "cpu", 1, ".2f"), ("Wall time", "wall", 1, ".2f"),
                                      ("Peak memory", "peak_kb", 1 / 1024, ".1f")]:
        unit = "MB" if field == "peak_kb" else "seconds"

        def row(program):
            native = grid.median(program.name, "native", field)
            return (program.name, [native and shown(native * scale, form)]
                    + [cell(grid, program.name, way, field) for way in tested])

        means = [None]
        for way in tested:
            done = [p for p in chosen if finished(grid, p, way)]
            mean = grid.geometric_mean(done, way, field) if done else None
            means.append(mean and f"{mean:.2f} ({len(done)})")
        table(f"{title} (native in {unit}, the others x native)", ["native"] + tested,
              [row(p) for p in chosen] + [("geometric mean", means)])


def finished(grid, program, *some_ways):
    return all((program.name, way) not in grid.failures and (program.name, way) in grid.costs
               for way in (*some_ways, "native"))


def compared(grid, chosen, peer, ours="hybrid"):
    """Our processor time x the peer's, per program that both finished."""
    both = [p for p in chosen if finished(grid, p, peer, ours)]
    return {p.name: grid.ratio(p.name, ours) / grid.ratio(p.name, peer) for p in both}


def mean_of(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None


def judge(grid, chosen):
    """The promises with their values. What we did not finish and the peer did makes a goal missed."""
    goals = []
    for peer, limit in [("gcc-tsan", GCC_LIMIT), ("clang-tsan", CLANG_LIMIT),
                        ("helgrind", HELGRIND_LIMIT)]:
        ratios = compared(grid, chosen, peer)
        unfinished = [p for p in chosen
                      if finished(grid, p, peer) and (p.name, "hybrid") in grid.failures]
        value = None if unfinished else mean_of(ratios.values())
        goals.append(Goal(f"processor time x {peer}, mean of {len(ratios)}", limit, "x", value))
    worst = compared(grid, chosen, "gcc-tsan")
    value = max(worst.values()) if worst else None
    name = max(worst, key=worst.get) if worst else "none"
    goals.append(Goal(f"worst program x gcc-tsan ({name})", WORST_LIMIT, "x", value))
    over = {}
    for program in chosen:
        if finished(grid, program, "hybrid"):
            native = grid.median(program.name, "native", "peak_kb") / 1024
            peak = grid.median(program.name, "hybrid", "peak_kb") / 1024
            over[program.name] = peak / (PEAK_FACTOR * native + PEAK_ADDED_MB)
    name = max(over, key=over.get) if over else "none"
    goals.append(Goal(f"peak memory / ({PEAK_FACTOR} x native + {PEAK_ADDED_MB} MB), worst ({name})",
                      1.0, "x", max(over.values()) if over else None))
    return goals


def measure_scaling(stopwatch, all_ways, accesses):
    """Nanoseconds of processor time per access, by way and number of threads; what the program costs with no
    accesses at all, thread starts included, is taken off."""
    grid = Grid()
    some_ways = [w for w in all_ways if w.name in ("native", "gcc-tsan", "hybrid", "hb")]
    pairs = [(threads, compiled_scaling(threads, 0), compiled_scaling(threads, accesses))
             for threads in SCALING_THREADS]
    grid.measure(stopwatch, [p for _, idle, busy in pairs for p in (idle, busy)], some_ways, 1, "scaling")
    found = {}
    for way in (w.name for w in some_ways):
        row = found[way] = {}
        for threads, idle, busy in pairs:
            costs = [grid.median(p.name, way, "cpu") for p in (idle, busy)]
            row[threads] = None if None in costs else max(costs[1] - costs[0], 0) / accesses * 1e9
    table("Processor time per access (ns), by threads", [str(t) for t in SCALING_THREADS],
          [(way, [shown(ns, ".1f") for ns in row.values()]) for way, row in found.items()])
    for (program, way), why in grid.failures.items():
        print(f"  {program}, {way}: {why}")
    return found


def compiled_scaling(threads, accesses):
    made = compiled("scaling", (str(threads), str(accesses)))
    return Program(f"{threads} threads, {accesses} accesses", made.argv, made.variants)


def judge_scaling(scaling):
    if "hybrid" not in scaling:
        return []
    first, last = (scaling["hybrid"][t] for t in (SCALING_THREADS[0], SCALING_THREADS[-1]))
    value = last / first if first and last is not None else None
    return [Goal(f"time per access, {SCALING_THREADS[-1]} threads x {SCALING_THREADS[0]}", SCALING_LIMIT, "x", value)]


if __name__ == "__main__":
    main()

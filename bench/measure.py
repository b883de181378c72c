"""What every benchmark shares: compile the programs, run them, compare the costs.

A measurement is a grid of programs and ways of running them. All cells are measured in one run,
repetition by repetition rather than cell by cell, and the ways change places from repetition to
repetition, so that a machine that grows slower or busier touches all of them alike. What is compared
is processor time (user and system, all processes), which other load disturbs least. A ratio is the
median over the repetitions of the ratios within one repetition.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "bench"  # compiled programs and generated input
RESULTS = ROOT / "bench" / "results"

# A hung cell must not hang the benchmark; the slowest honest one takes a few seconds.
TIME_LIMIT_SECONDS = 300

NOT_APPLICABLE = "only its binary is here"  # for a peer that has to be compiled in


@dataclass(frozen=True)
class Program:
    """Something to run; its arguments are complete, its output is thrown away.

    A peer that has to be compiled in needs a variant of the program; where there is none, the peer
    cannot run it.
    """

    name: str
    argv: tuple
    variants: tuple = ()  # pairs of a variant's name and its argv

    def argv_for(self, way):
        """What to run this way, or None."""
        argv = self.argv if way.variant is None else dict(self.variants).get(way.variant)
        return None if argv is None else way.prefix + argv


@dataclass(frozen=True)
class Way:
    """A way of running a program: what stands before its name."""

    name: str
    prefix: tuple = ()
    variant: str | None = None  # which build of the program


@dataclass
class Cost:
    """What one execution cost."""

    wall: float
    cpu: float
    peak_kb: int


class Failed(Exception):
    """An execution that did not end as it does natively."""


@functools.cache
def compile_c(source, *options, compiler="cc", variant=None):
    """Compiles one of bench/programs, once, and returns the executable's path."""
    source = ROOT / "bench" / "programs" / source
    WORK.mkdir(parents=True, exist_ok=True)
    executable = WORK / (source.stem if variant is None else f"{source.stem}-{variant}")
    subprocess.run([compiler, "-g", "-O2", "-pthread", *options, source, "-o", executable, "-lm"],
                   check=True)
    return str(executable)


def text_file(megabytes, seed=1):
    """A file of that size that compresses like text; made once."""
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / f"text-{megabytes}mb"
    size = megabytes * 1_000_000
    if path.exists() and path.stat().st_size == size:
        return str(path)
    generator = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(generator.choices(letters, range(26, 0, -1), k=generator.randint(2, 9)))
             for _ in range(5000)]
    lines = [" ".join(generator.choices(words, k=12)) + "\n" for _ in range(20_000)]
    text = ""
    while len(text) < size:
        text += "".join(generator.choices(lines, k=20_000))
    unfinished = path.with_suffix(".new")
    unfinished.write_text(text[:size])
    unfinished.rename(path)
    return str(path)


class Stopwatch:
    """Runs programs and tells what they cost."""

    def __init__(self, time_limit=TIME_LIMIT_SECONDS):
        self.time_limit = time_limit
        self.program = compile_c("stopwatch.c", "-static")
        self.scratch = tempfile.TemporaryDirectory(prefix="raddle-bench-")

    def run(self, argv, expected_exit=None):
        """Runs once, in a scratch directory; raises Failed when the exit code is another."""
        result = Path(self.scratch.name) / "result"
        errors = Path(self.scratch.name) / "errors"
        result.unlink(missing_ok=True)
        with open(errors, "wb") as stderr:
            child = subprocess.Popen([self.program, result, *argv], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=stderr,
                                     cwd=self.scratch.name, start_new_session=True)
            try:
                child.wait(self.time_limit)
            except subprocess.TimeoutExpired:
                raise Failed(f"did not finish in {self.time_limit} s") from None
            finally:
                if child.poll() is None:  # too slow, or we were interrupted
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        wall, user, system, peak_kb, exit_code = result.read_text().split()
        if expected_exit is not None and int(exit_code) != expected_exit:
            last = errors.read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise Failed(f"exit {exit_code} instead of {expected_exit}: {last[0]}")
        return Cost(float(wall), float(user) + float(system), int(peak_kb))


class Grid:
    """Costs of every program run in every way."""

    def __init__(self):
        self.costs = {}  # (program, way) -> [Cost]
        self.failures = {}  # (program, way) -> why

    def measure(self, stopwatch, programs, ways, repetitions, label):
        """Fills the grid. The first round warms caches up and is not counted."""
        for repetition in range(-1, repetitions):
            for program in programs:
                turn = repetition % len(ways)
                for way in ways[turn:] + ways[:turn]:
                    progress(f"{label}, round {repetition + 1} of {repetitions}: "
                             f"{program.name}, {way.name}")
                    self.add(stopwatch, program, way, counted=repetition >= 0)
        progress("")

    def add(self, stopwatch, program, way, counted=True):
        """Runs one cell once more, unless it failed before."""
        cell = (program.name, way.name)
        if cell in self.failures:
            return
        argv = program.argv_for(way)
        if argv is None:
            self.failures[cell] = NOT_APPLICABLE
            return
        try:
            cost = stopwatch.run(argv, expected_exit=0)
        except Failed as failure:
            self.failures[cell] = str(failure)
            return
        if counted:
            self.costs.setdefault(cell, []).append(cost)

    def median(self, program, way, field):
        """The median of a cost, or None for a cell that failed."""
        if (program, way) in self.failures:
            return None
        return statistics.median(getattr(c, field) for c in self.costs[(program, way)])

    def ratio(self, program, way, field="cpu", native="native"):
        """A cost in proportion to the native one."""
        if (program, way) in self.failures or (program, native) in self.failures:
            return None
        pairs = zip(self.costs[(program, way)], self.costs[(program, native)])
        return statistics.median(getattr(ours, field) / getattr(theirs, field)
                                 for ours, theirs in pairs)

    def geometric_mean(self, programs, way, field="cpu"):
        """Over all the programs, or None when one of them failed."""
        ratios = [self.ratio(p.name, way, field) for p in programs]
        if None in ratios:
            return None
        return math.exp(statistics.fmean(math.log(r) for r in ratios))

    def as_json(self):
        return [{"program": program, "way": way, "repetitions": [asdict(c) for c in costs],
                 "failure": self.failures.get((program, way))}
                for (program, way), costs in self.costs.items()] + [
               {"program": program, "way": way, "repetitions": [], "failure": why}
               for (program, way), why in self.failures.items()
               if (program, way) not in self.costs]


@dataclass
class Goal:
    """A promise, and whether it was kept."""

    what: str
    limit: float
    unit: str
    value: float | None  # None: could not be measured

    def met(self):
        return self.value is not None and self.value <= self.limit

    def line(self):
        value = "not measured" if self.value is None else f"{self.value:.2f}{self.unit}"
        verdict = "met" if self.met() else "MISSED"
        limit = f"{self.limit:g}{self.unit}"
        return f"  {self.what:<44} {value:>14}   goal {limit:<8} {verdict}"


def table(title, columns, rows):
    """Prints a table; a cell that is None is shown as a dash."""
    width = max(14, *(len(c) + 2 for c in columns))
    print(f"\n{title}")
    print(f"  {'':<16}" + "".join(f"{c:>{width}}" for c in columns))
    for name, cells in rows:
        print(f"  {name:<16}" + "".join(f"{'-' if c is None else c:>{width}}" for c in cells))


def shown(value, form):
    """A number as text, None as None."""
    return None if value is None else format(value, form)


def save(name, content):
    """Writes the absolute numbers for later; returns the file's path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps({"machine": machine(), **content}, indent=1) + "\n")
    return path.relative_to(ROOT)


def warn_if_busy():
    """Programs whose threads contend cost more or less according to who else is running."""
    load, processors = os.getloadavg()[0], os.cpu_count()
    if load > processors / 4:
        print(f"note: the machine is busy (load {load:.1f} on {processors} processors): "
              "expect noisy ratios", file=sys.stderr)


def machine():
    """What the numbers depend on."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"processor": model, "processors": os.cpu_count(), "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()), "load_at_end": os.getloadavg()[0]}


def progress(text):
    """One line that replaces itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

#!/usr/bin/env python3
"""The public data-race-test suite as a yardstick of accuracy.

    bench/datarace_test.py CHECKOUT [--annotations] [--all] [--tool NAME]... [--only NAME]... [--repeat N]

CHECKOUT is a directory with that suite's source (unittest/, dynamic_annotations/); nothing of it is
part of this project. It is compiled there, with and without its source annotations, needs googletest
(libgtest-dev), and every test is run by itself, as each has a verdict of its own: numbered tests by
the `// testN: TP` comment above them (FP and FN name what a tool got wrong: the truth is the other
word), the others by their group, PositiveTests or NegativeTests. Where there is neither, by the race
that the source says to expect; and IgnoreTests and SuppressionTests have races, which lists for another
tool would hide.

Without annotations, tests are left out whose verdict rests on them: a race that the source declares
benign, expected or to be ignored is a race all the same, and a "stealth notification", a flag that is
spun on, orders threads unless an annotation makes it invisible. With --all these are run too, and judged
by the suite's word all the same: the default set of the suite, 201 tests.

A test with a race is right if it is reported, one without if nothing is. Raddle is judged twice from
the same run: by observed findings alone, and with predicted ones. The names of those that are wrong
stand below the table.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SOURCES = ["racecheck_unittest.cc", "old_test_suite.cc", "test_utils.cc", "posix_tests.cc"]
# The suite is from 2013: newer compilers want to be asked for leniency.
FLAGS = ["-std=c++14", "-fpermissive", "-w", "-g", "-O1", "-DOS_linux", "-DARCH_amd64"]

# Not run: they measure, stress, demonstrate, or are excluded by the suite itself.
NOT_RUN = re.compile("EXCLUDE_FROM_ALL|PERFORMANCE|MEMORY_USAGE|RACE_DEMO")
# Groups that stress, or run the numbered tests.
GROUPS_NOT_RUN = ("StressTests", "NonGtestTests")
# Groups of races that another tool is told to hide.
HIDDEN_RACES = ("IgnoreTests", "SuppressionTests")
# By this a test without a verdict says that it has a race.
EXPECTS = re.compile(r"EXPECT_RACE(_FOR_\w+)?\(|\bFN\.")
# By these a test says that there is a race after all.
DECLARES = re.compile(r"ANNOTATE_(BENIGN_RACE|IGNORE_|ENABLE_RACE_DETECTION|EXPECT_RACE\()")
TIME_LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Test:
    """One test, and whether it has a race."""

    name: str
    arguments: tuple
    racy: bool


@dataclass
class Verdicts:
    """What one way of judging made of the tests."""

    right: int = 0
    false: list = field(default_factory=list)
    missed: list = field(default_factory=list)

    def add(self, test: Test, reported: bool) -> None:
        if reported == test.racy:
            self.right += 1
        else:
            (self.missed if test.racy else self.false).append(test.name)

    def row(self, name: str) -> str:
        return f"{name:28} {self.right:5} {len(self.false):5} {len(self.missed):6}"


def build(checkout: Path, annotations: bool, sanitizer: bool) -> Path:
    """Compiles the suite in one of its forms; what is there is kept."""
    name = ("annotated" if annotations else "plain") + ("-tsan" if sanitizer else "")
    program = checkout / "raddle-build" / name
    if program.exists():
        return program
    program.parent.mkdir(exist_ok=True)
    include = checkout / "dynamic_annotations"
    common = [f"-I{include}", "-DDYNAMIC_ANNOTATIONS_ENABLED=1"]
    if not annotations:
        # The suite does not compile with its annotations off; under other names nobody knows them.
        common.append("-DDYNAMIC_ANNOTATIONS_PREFIX=Unheard")
    if sanitizer:
        common.append("-fsanitize=thread")
    objects = []
    for source in [include / "dynamic_annotations.c", *(checkout / "unittest" / s for s in SOURCES)]:
        target = program.parent / f"{name}-{source.name}.o"
        compiler = ["gcc", "-g"] if source.suffix == ".c" else ["g++", *FLAGS]
        subprocess.run([*compiler, *common, "-c", source, "-o", target], check=True)
        objects.append(target)
    partial = program.with_suffix(".new")
    link = ["g++", *common, *objects, "-lgtest", "-lpthread", "-o", partial]
    subprocess.run(link, check=True)
    partial.rename(program)
    return program


def tests(checkout: Path, program: Path, annotations: bool, everything: bool) -> list[Test]:
    """All runnable tests with their verdicts."""
    text = "".join(
        (checkout / "unittest" / s).read_text(errors="replace")
        for s in ("racecheck_unittest.cc", "posix_tests.cc")
    )
    found = []
    resting = []

    def add(test: Test, source: str) -> None:
        if not annotations and rests_on_annotations(source, test.racy):
            resting.append(test.name)
            if not everything:
                return
        found.append(test)

    verdicts = {
        int(number): verdict
        for number, verdict in re.findall(r"^// test(\d+):? (TP|TN|FP|FN)\b", text, re.M)
    }
    registered = re.findall(r"REGISTER_TEST2?\(Run,\s*(\d+)(?:,\s*([^)]*))?\)", without_comments(text))
    for number, flags in sorted(registered, key=lambda r: int(r[0])):
        if NOT_RUN.search(flags):
            continue
        source = numbered_source(text, number)
        verdict = verdicts.get(int(number))
        racy = verdict in ("TP", "FN") if verdict else bool(EXPECTS.search(source))
        add(Test(f"test{number}", (number, "--gtest_filter=NonGtestTests*"), racy), source)
    listing = subprocess.run(
        [program, "--gtest_list_tests"], capture_output=True, text=True, check=True
    ).stdout
    group = ""
    for line in listing.splitlines():
        if not line.startswith(" "):
            group = line.split(".")[0]
        elif group and group not in GROUPS_NOT_RUN and "DISABLED" not in line:
            name = f"{group}.{line.split()[0]}"
            source = source_of(text, group, line.split()[0])
            racy = group in ("PositiveTests", *HIDDEN_RACES)
            if group not in ("PositiveTests", "NegativeTests"):
                # These share what stands around them.
                body = body_of(text, group, line.split()[0])
                racy |= "Race" in name or bool(EXPECTS.search(body))
                source = source if racy else body
            add(Test(name, (f"--gtest_filter={name}",), racy), source)
    if resting:
        what = "judged by the suite's word, though" if everything else "left out, as"
        print(f"{what} their verdict rests on annotations: {' '.join(resting)}")
    return found


def rests_on_annotations(source: str, racy: bool) -> bool:
    return ("StealthNotification" in source) if racy else bool(DECLARES.search(source))


def numbered_source(text: str, number: str) -> str:
    """The source of a numbered test, which is a namespace."""
    start = re.search(rf"^namespace test0*{number} ", text, re.M)
    if not start:
        return ""
    return without_comments(text[start.start() : text.find("REGISTER_TEST", start.start())])


def without_comments(text: str) -> str:
    return re.sub(r"//.*", "", text)


def source_of(text: str, group: str, name: str) -> str:
    """A test's source: from the beginning of its namespace to the end of its body."""
    place = place_of(text, group, name)
    if not place:
        return ""
    start = text.rfind("\nnamespace", 0, place.start())
    return without_comments(text[start : text.find("\n}", place.start())])


def body_of(text: str, group: str, name: str) -> str:
    """The test itself."""
    place = place_of(text, group, name)
    if not place:
        return ""
    indentation = place[0][: place[0].index("T")]
    return without_comments(text[place.start() : text.find(f"\n{indentation}}}", place.start())])


def place_of(text: str, group: str, name: str) -> re.Match | None:
    return re.search(rf"^ *TEST(_F)?\({group}, ?{name}\)", text, re.M)


class Raddle:
    """Judged by observed findings alone, and by all."""

    rows = ("raddle, observed", "raddle, with predicted")
    sanitizer = False

    def __init__(self, options: list[str]) -> None:
        command = os.environ.get("RADDLE_BIN", ROOT / "target" / "release" / "raddle")
        self.command = [command, "run", "--quiet", "--timeout", f"{TIME_LIMIT_SECONDS}s", *options]

    def run(self, program: Path, test: Test, scratch: Path) -> tuple | str:
        out = scratch / "run"
        ended = run([*self.command, "--out", out, "--", program, *test.arguments], scratch)
        try:
            report = json.loads((out / "report.json").read_text())
        except (OSError, ValueError):
            return f"no report, exit code {ended.returncode}"
        if report["outcome"]["timed_out"] or report["outcome"].get("failure"):
            return f"ended by {report['outcome']}"
        kinds = [f["certainty"] for f in report["findings"]]
        return ("observed" in kinds, bool(kinds))


class Sanitizer:
    """gcc's ThreadSanitizer."""

    rows = ("gcc ThreadSanitizer",)
    sanitizer = True

    def run(self, program: Path, test: Test, scratch: Path) -> tuple:
        # setarch: its shadow memory does not fit every layout.
        ended = run(["setarch", "-R", program, *test.arguments], scratch)
        return (b"WARNING: ThreadSanitizer: data race" in ended.stderr,)


class Valgrind:
    """helgrind or drd."""

    sanitizer = False

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.rows = (tool,)

    def run(self, program: Path, test: Test, scratch: Path) -> tuple:
        ended = run(["valgrind", f"--tool={self.tool}", program, *test.arguments], scratch)
        return (re.search(rb"Possible data race|Conflicting (load|store)", ended.stderr) is not None,)


def run(command: list, scratch: Path) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(command, capture_output=True, cwd=scratch, timeout=2 * TIME_LIMIT_SECONDS)
    except subprocess.TimeoutExpired as slow:
        return subprocess.CompletedProcess(command, -1, slow.stdout or b"", slow.stderr or b"")


def judge(tool, program: Path, chosen: list[Test], repeat: int) -> None:
    """Runs the tests under one tool and prints its rows."""

    def one(test: Test):
        seen = []
        for _ in range(repeat):
            scratch = Path(tempfile.mkdtemp(prefix="datarace-"))
            try:
                seen.append(tool.run(program, test, scratch))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        return test, seen

    verdicts = [Verdicts() for _ in tool.rows]
    unable = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for test, seen in pool.map(one, chosen):
            failures = [answer for answer in seen if isinstance(answer, str)]
            if failures:
                unable.append(f"{test.name}: {failures[0]}")
            # In several runs the worst one counts: a verdict must not depend on luck.
            answers = [answer for answer in seen if not isinstance(answer, str)]
            for number, verdict in enumerate(verdicts):
                reports = [answer[number] for answer in answers] or [not test.racy]
                verdict.add(test, all(reports) if test.racy else any(reports))
    for name, verdict in zip(tool.rows, verdicts):
        print(verdict.row(name))
        for what, names in (("false", verdict.false), ("missed", verdict.missed)):
            if names:
                print(f"    {what}: {' '.join(names)}")
    for line in unable:
        print(f"    could not be run: {line}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--annotations", action="store_true", help="with the suite's annotations")
    parser.add_argument("--all", action="store_true", help="also those that rest on annotations")
    parser.add_argument("--tool", action="append", choices=["raddle", "tsan", "helgrind", "drd"])
    parser.add_argument("--only", action="append", default=[], help="tests whose name contains this")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each test; the worst counts")
    parser.add_argument("--option", action="append", default=[], help="passed on to raddle run")
    arguments = parser.parse_args()

    checkout = arguments.checkout.resolve()
    kinds = {"raddle": lambda: Raddle(arguments.option), "tsan": Sanitizer}
    kinds |= {name: lambda name=name: Valgrind(name) for name in ("helgrind", "drd")}
    plain = build(checkout, arguments.annotations, False)
    chosen = [
        test
        for test in tests(checkout, plain, arguments.annotations, arguments.all)
        if not arguments.only or any(part in test.name for part in arguments.only)
    ]
    form = "with" if arguments.annotations else "without"
    print(f"data-race-test, {len(chosen)} tests, {form} annotations")
    print(f"{'':28} {'right':>5} {'false':>5} {'missed':>6}")
    for name in arguments.tool or ["raddle"]:
        tool = kinds[name]()
        program = build(checkout, arguments.annotations, True) if tool.sanitizer else plain
        judge(tool, program, chosen, arguments.repeat)
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

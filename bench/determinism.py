"""Is one seed one execution? `./dev bench determinism`.

Each program is executed `--repeats` times under one seed, while all processors are kept busy by others, and once
under each of `--seeds` seeds. Of every execution the events (synchronisation and threads), the schedule with its digests and
the output are taken together. Of one seed there must be one such trace; of many seeds, many. With programs that print
what order things happened in, the outputs differ, too.

Programs are those of the corpus that use many kinds of synchronisation, some that print in what order they ran, and real ones: pigz, pbzip2, xz, sqlite3, a chat on tokio,
rayon, std::async, OpenMP. What is not installed is left out, and said.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from measure import ROOT, WORK, progress, save, text_file

SUPPORT = ROOT / "corpus" / "support"
CORPUS = """
    atomic_counter.c barrier_phases.c c11_threads.c condition_broadcast.c condition_queue.c condition_timed.c
    cxx_async_future.cc cxx_call_once.cc cxx_counting_semaphore.cc cxx_jthread_stop.cc cxx_latch_and_barrier.cc
    cxx_shared_mutex.cc cxx_static_local.cc detached_with_semaphore.c eventfd_epoll_handover.c mutex_robust.c
    openmp_reduction.c openmp_tasks.c pipe_handover.c rust_barrier.rs rust_channel.rs rust_condvar.rs rust_park.rs
    rust_rwlock.rs rwlock.c semaphore_handover.c signal_to_thread.c socketpair_handover.c spin.c tcp_handover.c
""".split()
# Those that print in what order things happened.
TELLING = "channels.rs counter.c threads.cpp".split()
TIME_LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Program:
    name: str
    argv: tuple


def compiled(source):
    WORK.mkdir(parents=True, exist_ok=True)
    binary = WORK / f"determinism-{source.stem}"
    openmp = ["-fopenmp"] if "openmp" in source.name else []
    compilers = {
        ".c": ["gcc", "-std=gnu17", "-g", "-O2", "-pthread", *openmp, f"-I{SUPPORT}"],
        ".cc": ["g++", "-std=c++20", "-g", "-O2", "-pthread", *openmp, f"-I{SUPPORT}"],
        ".cpp": ["g++", "-std=c++20", "-g", "-O2", "-pthread"],
        ".rs": ["rustc", "--edition=2024", "-Cdebuginfo=2", "-Copt-level=2"],
    }
    libraries = [] if source.suffix == ".rs" else ["-lm"]
    subprocess.run([*compilers[source.suffix], source, "-o", binary, *libraries], check=True, capture_output=True)
    return str(binary)


def crate(name, *arguments):
    """A crate of bench/real, built where the network or the cache has what it needs."""
    directory = ROOT / "bench" / "real" / name
    target = WORK / name
    built = subprocess.run(["cargo", "build", "--release", "--quiet", "--target-dir", target], cwd=directory,
                           capture_output=True, check=False)
    if built.returncode != 0:
        print(f"{name} cannot be built here: left out", file=sys.stderr)
        return []
    return [Program(name, (str(target / "release" / name), *arguments))]


def programs():
    found = [Program(name, (compiled(ROOT / "corpus" / "clean" / name),)) for name in CORPUS]
    telling = ROOT / "crates" / "cli" / "tests" / "schedule"
    found += [Program(name, (compiled(telling / name),)) for name in TELLING]
    text = text_file(1)
    sql = WORK / "sorted.sql"
    sql.write_text("PRAGMA threads=2; CREATE TABLE t(a, b);\n"
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)\n"
                   "INSERT INTO t SELECT (i * 7919) % 3001, hex(i) FROM n;\n"
                   "CREATE INDEX u ON t(b, a); SELECT count(*), sum(a) FROM t;\n")
    packaged = {
        "pigz": ("pigz", "-p", "2", "-c", text),
        "pbzip2": ("pbzip2", "-p2", "-b1", "-c", text),
        "xz -T2": ("xz", "-T2", "-0", "--block-size=200000", "-c", text),
        "sqlite3 with threads": ("sqlite3", ":memory:", f".read {sql}"),
    }
    for name, argv in packaged.items():
        if shutil.which(argv[0]):
            found.append(Program(name, argv))
        else:
            print(f"{argv[0]} is not installed: left out", file=sys.stderr)
    found += crate("tokio-chat", "2", "3")
    found += crate("rayon-words", "200")
    for source in ("async_pipeline.cc", "openmp_stencil.c"):
        found.append(Program(source, (compiled(ROOT / "bench" / "real" / source), *SMALL.get(source, ()))))
    return found


# Arguments that make an execution short.
SMALL = {"async_pipeline.cc": ("4",), "openmp_stencil.c": ("16", "3")}


def trace(raddle, program, seed):
    """A digest of what happened, and one of the output; an explanation where it failed."""
    with tempfile.TemporaryDirectory(prefix="raddle-determinism-") as scratch:
        scratch = Path(scratch)
        words = [raddle, "events", "--quiet", "--timeout", f"{TIME_LIMIT_SECONDS}s", "--only", "sync,thread",
                 "--seed", str(seed), "--output", scratch / "events", "--out", scratch / "kept", "--"]
        # Into a file: when a full pipe has room again is its reader's doing.
        with open(scratch / "written", "wb") as written:
            ended = subprocess.run([*words, *program.argv], cwd=scratch, stdin=subprocess.DEVNULL, stdout=written,
                                   stderr=subprocess.PIPE, check=False)
        if ended.returncode != 0:
            return f"exit code {ended.returncode}: {ended.stderr.decode(errors='replace')[-200:]}", None
        output = (scratch / "written").read_bytes()
        events = (scratch / "events").read_bytes()
        digest = hashlib.sha256(events + (scratch / "kept" / "schedule").read_bytes() + output).hexdigest()
        if seed == DIFFERENCES.seed:
            DIFFERENCES.keep(program, digest, scratch)
        return digest, hashlib.sha256(output).hexdigest()


class Differences:
    """The first execution of one seed and every one that differs are kept, to be looked into."""

    def __init__(self):
        self.seed = None
        self.first = {}
        self.lock = threading.Lock()

    def keep(self, program, digest, scratch):
        with self.lock:
            first = self.first.setdefault(program.name, digest)
            place = WORK / "differences" / program.name.replace(" ", "-") / digest[:12]
            if not place.exists() and (digest != first or not place.parent.exists()):
                shutil.copytree(scratch, place)


DIFFERENCES = Differences()


class Load:
    """Keeps the processors busy, so that threads are held up anywhere."""

    def __enter__(self):
        spin = [sys.executable, "-c", "while True: pass"]
        self.processes = [subprocess.Popen(spin) for _ in range(os.cpu_count())]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def judge(raddle, program, options):
    DIFFERENCES.seed = options.seed
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        again = list(pool.map(lambda _: trace(raddle, program, options.seed), range(options.repeats)))
        others = list(pool.map(lambda seed: trace(raddle, program, seed), range(1, options.seeds + 1)))
    failed = [why for why, output in again + others if output is None]
    return {
        "repeats": len(again), "most_alike": max(again.count(one) for one in set(again)) if again else 0,
        "seeds": len(others), "traces": len({t for t, _ in others}), "outputs": len({o for _, o in others}),
        "failed": len(failed), "why": failed[:1],
    }


def main():
    parser = argparse.ArgumentParser(prog="./dev bench determinism", description=__doc__.split("\n")[0])
    parser.add_argument("--raddle", default=ROOT / "target" / "release" / "raddle", type=Path)
    parser.add_argument("--repeats", type=int, default=100, help="executions of one seed")
    parser.add_argument("--seeds", type=int, default=100, help="seeds, one execution each")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=[], help="only programs whose name contains one of these")
    parser.add_argument("--idle", action="store_true", help="without load from elsewhere")
    options = parser.parse_args()
    shutil.rmtree(WORK / "differences", ignore_errors=True)
    wanted = [p for p in programs() if not options.only or any(text in p.name for text in options.only)]
    print(f"{'program':<28}{'one seed alike':>18}{'seeds':>8}{'traces':>8}{'outputs':>9}{'failed':>8}")
    rows = {}
    for program in wanted:
        progress(program.name)
        if options.idle:
            row = judge(options.raddle, program, options)
        else:
            with Load():
                row = judge(options.raddle, program, options)
        progress("")
        alike = f"{row['most_alike']} of {row['repeats']}"
        print(f"{program.name:<28}{alike:>18}{row['seeds']:>8}{row['traces']:>8}{row['outputs']:>9}{row['failed']:>8}"
              + (f"   {row['why'][0]}" if row["why"] else ""), flush=True)
        rows[program.name] = row
    bad = [name for name, row in rows.items() if row["most_alike"] != row["repeats"] or row["failed"]]
    if bad:
        print(f"each program's executions that differ: {WORK / 'differences'}")
    print(f"{len(rows) - len(bad)} of {len(rows)} programs: every execution of one seed alike")
    print(f"kept in {save('determinism', {'rows': rows})}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

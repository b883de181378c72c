"""Real programs under Raddle, for reading: `./dev bench real`.

Runs `raddle run` on compressors and servers from Debian's packages, and on a program each with tokio, rayon, std::async
and OpenMP (bench/real/), and collects the reports as text and JSON in one directory, with a summary. Nothing is measured
and nothing judged: every report is to be read by a person, and found true or false.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from measure import ROOT, WORK, text_file

REAL = ROOT / "bench" / "real"


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench real", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raddle", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="PROGRAM", help="only this one; may be given again")
    parser.add_argument("--out", type=Path, default=WORK / "real-reports", help="where the reports go")
    parser.add_argument("--time-limit", type=int, default=120, metavar="SECONDS", help="of one program (120)")
    parser.add_argument("--serve", type=int, default=20, metavar="SECONDS", help="how long servers run (20)")
    parser.add_argument("--megabytes", type=int, default=1, help="what compressors compress (1)")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION",
                        help="a further option of raddle run, such as --detector=hb")
    return parser.parse_args()


def cargo(name):
    """A release build with debug information, outside of the workspace."""
    target = WORK / "real-cargo"
    subprocess.run(["cargo", "build", "--release", "--quiet", "--manifest-path", REAL / name / "Cargo.toml"],
                   check=True, env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    return (str(target / "release" / name),)


def compiled(source, *words):
    executable = WORK / Path(source).stem
    subprocess.run([*words, "-g", "-O2", "-pthread", REAL / source, "-o", executable, "-lm"], check=True)
    return (str(executable),)


def package(*argv):
    path = shutil.which(argv[0])
    if path is None:
        sys.exit(f"{argv[0]} is not installed: ./dev setup bench")
    return (path, *argv[1:])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def converse(port, requests, until):
    """Two clients that send these requests in turn, one answer each, until that time."""

    def client(number):
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                    for turn in range(100_000):
                        if time.monotonic() >= until:
                            return
                        connection.sendall(requests[(turn + number) % len(requests)])
                        if not connection.recv(4096):
                            break
            except OSError:
                time.sleep(0.2)  # not up yet, or gone

    clients = [threading.Thread(target=client, args=(number,)) for number in range(2)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


REDIS = [b"SET key value\r\n", b"GET key\r\n", b"INCR count\r\n", b"LPUSH list x\r\n", b"PING\r\n"]
MEMCACHED = [b"set key 0 0 5\r\nvalue\r\n", b"get key\r\n", b"set n 0 0 1\r\n1\r\n", b"incr n 1\r\n", b"stats\r\n"]


def programs(options):
    """Name, how its command line is made, and for servers the port and what to ask."""
    text = text_file(options.megabytes)
    redis, memcached = free_port(), free_port()
    user = ("-u", "nobody") if os.geteuid() == 0 else ()
    return [
        ("pigz", lambda: package("pigz", "-p2", "-b128", "-c", text), None),
        ("pbzip2", lambda: package("pbzip2", "-p2", "-b1", "-k", "-c", text), None),
        ("xz", lambda: package("xz", "-T2", "-1", "--block-size=256KiB", "-c", text), None),
        ("zstd", lambda: package("zstd", "-q", "-T2", "-c", text), None),
        ("tokio-chat", lambda: cargo("tokio-chat"), None),
        ("rayon-words", lambda: cargo("rayon-words"), None),
        ("async_pipeline", lambda: compiled("async_pipeline.cc", "g++", "-std=c++20"), None),
        ("openmp_stencil", lambda: compiled("openmp_stencil.c", "gcc", "-fopenmp"), None),
        ("redis-server", lambda: package("redis-server", "--port", str(redis), "--save", "", "--io-threads", "2",
                                         "--io-threads-do-reads", "yes"), (redis, REDIS)),
        ("memcached", lambda: package("memcached", "-p", str(memcached), "-U", "0", "-t", "2", *user),
         (memcached, MEMCACHED)),
    ]


def run(name, argv, server, options):
    """Runs one; a line of the summary."""
    place = options.out / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    words = [options.raddle, "run", *options.option, "--out", str(place / "run"), "--output", str(place / "report.txt")]
    words += ["--duration", f"{options.serve}s"] if server else ["--timeout", f"{options.time_limit}s"]
    began = time.monotonic()
    with open(place / "output", "wb") as output:
        child = subprocess.Popen([*words, "--", *argv], stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, cwd=place)
        if server:
            converse(*server, began + options.serve - 2)
        code = child.wait()
    took = time.monotonic() - began
    try:
        report = json.loads((place / "run" / "report.json").read_text())
    except (OSError, ValueError):
        return f"{name:<16} no report: exit {code}, see {place / 'output'}"
    summary, outcome = report["summary"], report["outcome"]
    ended = "timed out" if outcome.get("timed_out") else f"exit {outcome.get('exit')}, signal {outcome.get('signal')}"
    return (f"{name:<16} {summary['observed']:>4} observed {summary['predicted']:>4} predicted, "
            f"{summary['threads']} threads, {took:.0f} s, {ended}")


def main():
    options = parse()
    options.out = options.out.resolve()
    lines = []
    for name, make, server in programs(options):
        if options.only and name not in options.only:
            continue
        lines.append(run(name, make(), server, options))
        print(lines[-1], flush=True)
    (options.out / "summary.txt").write_text("\n".join(lines) + "\n")
    print(f"\nreports to read: {options.out}/*/report.txt")


if __name__ == "__main__":
    main()

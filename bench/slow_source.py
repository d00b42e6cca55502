#!/usr/bin/env python3
"""Sources on a slow file system (slow_fs.cc), against what its latency and bandwidth allow.

Each contender gets the source on a mount of its own, so that no page of it is cached; what it
writes lies in memory. bench/README.md says what the limit is.
"""

import argparse
import concurrent.futures
import contextlib
import mmap
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import bench_cases
from measure import MIB, Failure, files_of

WINDOW = 4 * MIB

# Answers that any program has to wait for one after the other before it can ask for contents: a
# file's first header, and then the others, of which it says where the next one lies.
SERIAL = 2

# Threads of the bare reader.
READERS = 8


class Device:
    """What a mount behaves like."""

    def __init__(self, text):
        kind, milliseconds, bandwidth, requests = text.split(":")
        self.kind, self.milliseconds = kind, float(milliseconds)
        self.bandwidth, self.requests = float(bandwidth), int(requests)

    def __str__(self):
        return (f"{self.kind}, {self.milliseconds:g} ms, {self.bandwidth:g} MiB/s, "
                f"{self.requests} at once")

    def limit(self, files, size):
        """The seconds that `size` bytes in `files` files take when whole windows are asked for."""
        waits = max(files, -(-size // WINDOW)) if self.kind == "network" else files
        return size / MIB / self.bandwidth + self.milliseconds / 1000 * waits / self.requests

    def serial(self):
        """The seconds of the answers that nobody can wait for side by side."""
        return SERIAL * self.milliseconds / 1000

    @contextlib.contextmanager
    def mounted(self, binaries, source, scratch):
        """The files of `source` at the path that is yielded, with the path of the log."""
        place, log = scratch / "mount", scratch / "log"
        place.mkdir(exist_ok=True)
        with subprocess.Popen([binaries / "slow_fs", source, place, self.kind,
                               str(int(self.milliseconds * 1000)), str(self.bandwidth),
                               str(self.requests), log]) as server:
            while not os.path.ismount(place):
                if server.poll() is not None:
                    raise Failure("slow_fs does not mount")
                time.sleep(0.002)
            try:
                yield place, log
            finally:
                server.terminate()
                server.wait()


class Request:
    """A line of the log."""

    def __init__(self, line):
        arrived, answered, size, busy, self.what, offset, self.path = line.split(" ", 6)
        self.arrived, self.answered, self.size = int(arrived), int(answered), int(size)
        self.busy, self.offset = int(busy), int(offset)


def longest_chain(reads):
    """The most reads of which each came when the last one was answered."""
    count, end = 0, -1
    for read in sorted(reads, key=lambda request: request.answered):
        if read.arrived >= end:
            count, end = count + 1, read.answered
    return count


def run(command, **options):
    """Runs a command to its end. Raises Failure."""
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True,
                          text=True, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def read_all(place, threads):
    """Reads all checkpoint files under `place`, 4 MiB at a time, past the page cache."""
    def read(piece):
        path, offset = piece
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, WINDOW) as buffer:
                os.preadv(file, [buffer], offset)
        finally:
            os.close(file)

    pieces = [(path, offset) for path in files_of(place)
              for offset in range(0, path.stat().st_size, WINDOW)]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(read, pieces):
            pass


def contenders(options, case, sample, target):
    """Yields (name, call(place)) for what is timed; `place` holds the sample's checkpoint."""
    reshard = options.binaries / "reshard"
    memory = ["--memory-limit", options.memory_limit] if options.memory_limit else []

    def source(place):
        if sample.source_strategy:
            return place
        return place / sample.source.relative_to(sample.checkpoint)

    def convert(place):
        strategies = []
        if sample.source_strategy:
            strategies += ["--src-strategy", sample.source_strategy]
        if sample.target_strategy:
            strategies += ["--dst-strategy", sample.target_strategy]
        run([reshard, "convert", source(place), target, *strategies, "--quiet",
             *memory])

    yield "reshard", convert
    yield "cp -r", lambda place: run(["cp", "-r", place, target])
    yield "pread", lambda place: read_all(place, READERS)
    if case.name == options.also:
        strategy = ["--strategy", sample.source_strategy] if sample.source_strategy else []
        yield "digest", lambda place: run([reshard, "digest", source(place), *strategy])
        yield "inspect", lambda place: run([reshard, "inspect", *[
            place / file.relative_to(sample.checkpoint) for file in sample.files]])


def measure(options, device, sample, call, target):
    """Returns the median of the seconds, and what the log says of the last run."""
    seconds, log = [], None
    for _ in range(options.runs):
        shutil.rmtree(target, ignore_errors=True)
        with device.mounted(options.binaries, sample.checkpoint, options.scratch) as (place, path):
            begin = time.monotonic()
            call(place)
            seconds.append(time.monotonic() - begin)
        log = [Request(line) for line in path.read_text().splitlines()]
    shutil.rmtree(target, ignore_errors=True)
    return statistics.median(seconds), log


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", type=pathlib.Path, default=pathlib.Path("build/bench/bin"))
    parser.add_argument("--scratch", type=pathlib.Path,
                        default=pathlib.Path("/dev/shm/slow_source"))
    parser.add_argument("--size", type=float, default=0.25, help="GiB of a sample")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--case", action="append",
                        choices=[case.name for case in bench_cases.CASES])
    parser.add_argument("--device", action="append", type=Device,
                        help="network|disk:MILLISECONDS:MIB_PER_SECOND:REQUESTS")
    parser.add_argument("--memory-limit", help="of reshard")
    parser.add_argument("--also", default="rows", help="the case for digest and inspect")
    options = parser.parse_args()
    devices = options.device or [Device(text) for text in (
        "network:1:1000:16", "network:5:1000:16", "network:20:1000:16", "disk:8:200:1")]
    options.scratch.mkdir(parents=True, exist_ok=True)
    print("| case | device | limit, s | what | s | ratio "
          f"| to the limit and {SERIAL} round trips | requests | mean, KiB "
          "| in flight, mean and most | one after the other | other requests |")
    print("|" + " --- |" * 12)
    for case in bench_cases.CASES:
        if case.name not in (options.case or ["rows"]):
            continue
        sample = bench_cases.make_sample(case, options.size, options.binaries,
                                         options.scratch / "sample")
        for device in devices:
            limit = device.limit(len(sample.files), sample.bytes)
            for name, call in contenders(options, case, sample, options.scratch / "target"):
                seconds, log = measure(options, device, sample, call, options.scratch / "target")
                reads = [request for request in log if request.what == "read"]
                busy = [read.busy for read in reads]
                size = statistics.mean(read.size for read in reads) / 1024
                print(f"| {case.name} | {device} | {limit:.2f} | {name} | {seconds:.2f} | "
                      f"{seconds / limit:.2f} | {seconds / (limit + device.serial()):.2f} | "
                      f"{len(reads)} | {size:.0f} | "
                      f"{statistics.mean(busy):.0f}, {max(busy)} | {longest_chain(reads)} | "
                      f"{len(log) - len(reads)} |", flush=True)
        shutil.rmtree(options.scratch / "sample")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"slow_source.py: {failure}")

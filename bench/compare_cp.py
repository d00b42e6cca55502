#!/usr/bin/env python3
"""Times a conversion, with checksums and without, against a plain copy of the same checkpoint, and
against MindSpore.

All of them read the checkpoint from the page cache and write it durably: fsync is counted. They run
in turns, one round that does not count and then --runs rounds; the table has medians. CPU seconds
are user and system time together. RssAnon is read from /proc every 10 ms.
"""

import argparse
import filecmp
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

MINDSPORE = """
import sys
import mindspore
source, target, source_strategy, target_strategy = sys.argv[1:]
mindspore.transform_checkpoints(source, target, "checkpoint_", source_strategy, target_strategy)
"""


def rss_anon(pid):
    """Anonymous memory of a process in bytes; 0 when it has just ended."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def run(command):
    """Runs a command to its end; returns its CPU seconds and the peak of its anonymous memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        peak = max(peak, rss_anon(process.pid))
        time.sleep(0.01)
    errors = process.stderr.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nfailed with {process.returncode}:\n{errors}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, peak


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def total_bytes(folder):
    return sum(path.stat().st_size for path in files_of(folder))


def sync(folder):
    """Makes a tree durable; what has been written back already costs nothing here."""
    for path in [*files_of(folder), *folder.rglob("*/"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def read_into_cache(paths):
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 22):
                pass


class Contender:
    def __init__(self, name, target, command):
        self.name, self.target, self.command = name, target, command
        self.seconds, self.cpu, self.peaks = [], [], []

    def take_turn(self, source, counts):
        shutil.rmtree(self.target, ignore_errors=True)
        os.sync()
        read_into_cache(files_of(source))
        start = time.monotonic()
        cpu, peak = run(self.command)
        sync(self.target)
        seconds = time.monotonic() - start
        if counts:
            self.seconds.append(seconds)
            self.cpu.append(cpu)
            self.peaks.append(peak)

    def median(self):
        return statistics.median(self.seconds)


def contenders(arguments):
    strategies = [arguments.src_strategy, arguments.dst_strategy]
    source, work = arguments.source, arguments.work

    def convert(target, *options):
        return [arguments.reshard, "convert", "--quiet", source, target,
                "--src-strategy", strategies[0], "--dst-strategy", strategies[1], *options]

    yield Contender("reshard", work / "reshard", convert(work / "reshard"))
    yield Contender("no checksums", work / "bare", convert(work / "bare", "--no-checksum"))
    yield Contender("cp -r, sync", work / "cp", ["cp", "-r", source, work / "cp"])
    if arguments.paths:
        paths = subprocess.run([arguments.paths], check=True, capture_output=True, text=True)
        for path in paths.stdout.split():
            yield Contender(f"by {path}", work / path,
                            [arguments.paths, path, source, work / path, *strategies])
    if arguments.mindspore:
        yield Contender("MindSpore, sync", work / "mindspore", [
            arguments.mindspore, "-c", MINDSPORE, source, work / "mindspore", *strategies])


def check_equal(first, second):
    """Every checkpoint of `second` has to be in `first` with the same bytes."""
    for path in second.glob("rank_*/*"):
        if not filecmp.cmp(first / path.relative_to(second), path, shallow=False):
            sys.exit(f"{path}: not what reshard wrote")
    print(f"{second.name} and {first.name} wrote the same bytes")


def print_table(entries, gigabytes):
    bare, copy = entries[1].median(), entries[2].median()
    print(f"{'':16} {'median s':>9} {'best s':>7} {'GB/s':>6} {'time / no sums':>14} {'time / cp':>10} "
          f"{'CPU s/GB':>9} {'peak RssAnon':>13}")
    for entry in entries:
        median = entry.median()
        print(f"{entry.name:16} {median:9.2f} {min(entry.seconds):7.2f} {gigabytes / median:6.2f} "
              f"{median / bare:14.2f} {median / copy:10.2f} "
              f"{statistics.median(entry.cpu) / gigabytes:9.2f} {max(entry.peaks) / 2**20:9.1f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="folder with rank_N")
    parser.add_argument("src_strategy", type=pathlib.Path)
    parser.add_argument("dst_strategy", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path, help="folder for what is written; on the same disk")
    parser.add_argument("--reshard", type=pathlib.Path, default="build/release/bin/reshard")
    parser.add_argument("--mindspore", metavar="PYTHON", help="a Python that has MindSpore")
    parser.add_argument("--paths", type=pathlib.Path, metavar="BIN",
                        help="convert_paths: each path of the logical digest beside it")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()

    arguments.work.mkdir(parents=True, exist_ok=True)
    entries = list(contenders(arguments))
    for round_number in range(arguments.runs + 1):
        for entry in entries:
            entry.take_turn(arguments.source, counts=round_number > 0)
    read, written = (total_bytes(folder) / 1e9 for folder in (arguments.source, entries[0].target))
    print(f"{read:.2f} GB read, {written:.2f} GB written; {arguments.runs} runs each, sources in the "
          f"page cache; {os.cpu_count()} cores, load average of all programs {os.getloadavg()[1]:.1f}")
    print_table(entries, read)
    for entry in entries[1:]:
        if entry.name != "cp -r, sync":
            check_equal(entries[0].target, entry.target)
    for entry in entries:
        shutil.rmtree(entry.target)


if __name__ == "__main__":
    main()

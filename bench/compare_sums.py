#!/usr/bin/env python3
"""Times `reshard verify` of a converted checkpoint against xxhsum -H128 and sha256sum of its files.

All of them read the same files, in turns: one round that does not count and then --runs rounds, with
the files in the page cache, or, with --cold, dropped from it before each turn. The table
has medians. CPU seconds are user and system time together.
"""

import argparse
import os
import pathlib
import statistics
import sys

from measure import Failure, drop_from_cache, files_of, read_into_cache, run


class Contender:
    def __init__(self, name, command):
        self.name, self.command = name, command
        self.seconds, self.cpu = [], []

    def take_turn(self, files, is_cold, counts):
        os.sync()
        if is_cold:
            drop_from_cache(files)
        else:
            read_into_cache(files)
        usage = run(self.command)
        if counts:
            self.seconds.append(usage.seconds)
            self.cpu.append(usage.cpu)


def print_table(entries, size):
    reference = statistics.median(entries[0].seconds)
    print(f"{'':24} {'median s':>9} {'best s':>7} {'GiB/s':>6} {'speed / xxhsum':>14} {'CPU s/GiB':>9}")
    for entry in entries:
        median = statistics.median(entry.seconds)
        print(f"{entry.name:24} {median:9.3f} {min(entry.seconds):7.3f} {size / 2**30 / median:6.2f} "
              f"{reference / median:14.2f} {statistics.median(entry.cpu) / size * 2**30:9.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=pathlib.Path, help="folder that `reshard convert` has written")
    parser.add_argument("--reshard", type=pathlib.Path, default="build/release/bin/reshard")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()

    files = [file for file in files_of(arguments.target) if file.suffix == ".ckpt"]
    if not files:
        sys.exit(f"{arguments.target}: no .ckpt files below it")
    verify = [arguments.reshard, "verify", "--quiet", arguments.target, "--jobs"]
    entries = [Contender("xxhsum -H128", ["xxhsum", "-H128", *files]),
               Contender("sha256sum", ["sha256sum", *files]),
               Contender("reshard verify --jobs 1", [*verify, "1"]),
               Contender("reshard verify --jobs 2", [*verify, "2"])]
    for round_number in range(arguments.runs + 1):
        for entry in entries:
            entry.take_turn(files, arguments.cold, counts=round_number > 0)
    size = sum(file.stat().st_size for file in files)
    print(f"{size / 2**30:.2f} GiB in {len(files)} files, {'cold' if arguments.cold else 'in the page cache'}; "
          f"{arguments.runs} runs each; {os.cpu_count()} cores, load average of all programs {os.getloadavg()[1]:.1f}")
    print_table(entries, size)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"compare_sums.py: {failure}")

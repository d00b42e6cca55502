#!/usr/bin/env python3
"""Times what reads checkpoints and writes nothing: `reshard verify`, `digest` and `diff`.

    bench/compare_sums.py                                  all cases, warm and cold
    bench/compare_sums.py --case rows --cache cold         one of them

Beside them `cat` and programs that compute a sum of each file. All take turns: one round that does
not count and then --runs rounds, first with the files in the page cache (warm), then without
(cold). The tables have medians; CPU seconds are user and system time together. Goals: cold at most
1.2 times as long as `cat` of the same bytes; warm 0.8 of the rate of the digest that is computed,
as digest_bench measures it on all cores at once, out of memory.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import measure
from bench_cases import CASES, Case, make_sample
from measure import GIB, Failure

MOST_OF_CAT = 1.2
LEAST_OF_DIGEST = 0.8

_BY_NAME = {case.name: case for case in CASES}
_MODEL = _BY_NAME["rows"].model


def _rows(*options):
    return ["--cut", "rows", *options]


# What is read is the target, and its source where two sets are compared.
SETS = [
    Case("rows", "8 ranks of few big matrices", _MODEL, _rows("--tp", 4), _rows("--tp", 8)),
    Case("replicas", "8 ranks, data parallel 4", _MODEL, _rows("--tp", 4, "--dp", 2),
         _rows("--tp", 2, "--dp", 4), gib=0.25),
    Case("tiny", "8 ranks of 10,000 tiny matrices", _BY_NAME["tiny"].model, _rows("--tp", 4),
         _rows("--tp", 8), gib=_BY_NAME["tiny"].gib),
    Case("one_file", "one file of few big matrices", _MODEL, _rows("--tp", 4), None),
]


class Contender:
    """A command, the files that it reads, and what it is held against: `cat` is the contender that
    reads the same files, `digest` the rate in bytes per second that the digest has on all cores.
    """

    def __init__(self, name, command, files, cat=None, digest=None):
        self.name, self.command, self.files = name, command, files
        self.has_goal = pathlib.Path(command[0]).name == "reshard"
        self.cat, self.digest = cat, digest
        self.bytes = sum(file.stat().st_size for file in files)
        self.usages = []

    def take_turn(self, is_cold, counts):
        os.sync()
        if is_cold:
            measure.drop_from_cache(self.files)
            # The program's own files do not count.
            subprocess.run([self.command[0], "--version"], check=False, capture_output=True)
        else:
            measure.read_into_cache(self.files)
        usage = measure.run(self.command)
        if counts:
            self.usages.append(usage)

    def seconds(self):
        return statistics.median(usage.seconds for usage in self.usages)

    def row(self, is_cold):
        seconds, size = self.seconds(), self.bytes / GIB
        cpu = statistics.median(usage.cpu for usage in self.usages)
        best = min(usage.seconds for usage in self.usages)
        of_cat = seconds / self.cat.seconds() if self.cat else None
        of_digest = self.bytes / seconds / self.digest if self.digest and not is_cold else None
        missed = self.has_goal and ((is_cold and of_cat > MOST_OF_CAT) or
                                    (of_digest is not None and of_digest < LEAST_OF_DIGEST))

        def ratio(value):
            return "-" if value is None else f"{value:.2f}"

        return (f"{self.name:26} {seconds:9.3f} {best:7.3f} {size / seconds:6.2f} {cpu / size:9.2f} "
                f"{ratio(of_cat):>10} {ratio(of_digest):>13}{'  missed' if missed else ''}")


def digest_rates(program):
    """Returns the rates of the digests on all cores, in bytes per second: both XXH3-128 that `verify`
    computes, of which the second finds the bytes in the cache, and the logical digest.
    """
    said = subprocess.run(
        [program, "--benchmark_format=json", "--benchmark_filter=xxh3-128|memory, all cores"],
        check=True, capture_output=True, text=True).stdout
    rates = [(entry["name"], entry["bytes_per_second"]) for entry in json.loads(said)["benchmarks"]]

    def rate(of, where):
        return next(value for name, value in rates if name.startswith(of) and where in name)

    cached = rate("xxh3-128", "cached, one run") * os.cpu_count()
    return (1 / (1 / rate("xxh3-128", "memory, all cores") + 1 / cached),
            rate("logical", "memory, all cores"))


def strategy(option, path):
    return [option, path] if path else []


def of_both(sample):
    return [*strategy("--src-strategy", sample.source_strategy),
            *strategy("--dst-strategy", sample.target_strategy)]


def contenders(case, sample, target, binaries, rates):
    reshard = binaries / "reshard"
    of_target = sorted(file for file in measure.files_of(target) if file.suffix == ".ckpt")
    both = [*sample.files, *of_target]
    xxh3, logical = rates

    target_path = target if case.target else of_target[0]
    layout = strategy("--strategy", sample.target_strategy)
    cat = Contender("cat", ["cat", *of_target], of_target)
    cat_both = Contender("cat, source too", ["cat", *both], both)
    sums = [Contender(name, [name, *of_target], of_target, cat)
            for name in ("xxh128sum", "sha256sum") if shutil.which(name)]
    return [cat, *sums,
            Contender("verify", [reshard, "verify", target], of_target, cat, xxh3),
            Contender("digest", [reshard, "digest", target_path, *layout], of_target, cat, logical),
            cat_both,
            Contender("verify --against", [reshard, "verify", target, "--against", sample.source,
                                       *of_both(sample)],
                      both, cat_both),
            Contender("diff", [reshard, "diff", sample.source, target_path,
                               *strategy("--a-strategy", sample.source_strategy),
                               *strategy("--b-strategy", sample.target_strategy)],
                      both, cat_both, logical)]


def measure_case(case, arguments, rates):
    folder = arguments.folder / case.name
    try:
        sample = make_sample(case, arguments.size, arguments.binaries, folder)
        target = folder / "target"
        measure.run([arguments.binaries / "reshard", "convert", sample.source, target,
                     *of_both(sample)])
        for cache in arguments.cache:
            entries = contenders(case, sample, target, arguments.binaries, rates)
            for round_number in range(arguments.runs + 1):
                for entry in entries:
                    entry.take_turn(cache == "cold", counts=round_number > 0)
            print(f"\n{case.name}: {case.title}, {entries[0].bytes / GIB:.2f} GiB in "
                  f"{len(entries[0].files)} files; {cache}, {arguments.runs} runs each")
            print(f"{'':26} {'median s':>9} {'best s':>7} {'GiB/s':>6} {'CPU s/GiB':>9} "
                  f"{'time / cat':>10} {'rate / digest':>13}")
            for entry in entries:
                print(entry.row(cache == "cold"), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=[case.name for case in SETS])
    parser.add_argument("--cache", action="append", choices=["warm", "cold"])
    parser.add_argument("--size", type=float, default=1.0, help="of a set, 1 for that of the table")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--binaries", type=pathlib.Path, default="build/release/bin")
    parser.add_argument("--digest-bench", type=pathlib.Path, default="build/bench/bin/digest_bench")
    parser.add_argument("--folder", type=pathlib.Path, default="build/sums",
                        help="for the samples, which are removed")
    arguments = parser.parse_args()
    arguments.binaries = arguments.binaries.resolve()
    arguments.folder = arguments.folder.resolve()
    arguments.cache = arguments.cache or ["warm", "cold"]

    rates = digest_rates(arguments.digest_bench.resolve())
    print(f"{os.cpu_count()} cores, together {rates[0] / GIB:.2f} GiB/s for both digests of verify, "
          f"{rates[1] / GIB:.2f} GiB/s for the logical digest")
    for case in SETS:
        if not arguments.case or case.name in arguments.case:
            measure_case(case, arguments, rates)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"compare_sums.py: {failure}")

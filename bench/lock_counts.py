#!/usr/bin/env python3
"""How often reshard locks a mutex, for each GiB, parameter or file, and where most of it is.

Counts do not depend on the machine, but for the share that had to wait: another thread had the
mutex, or the system had taken its core. Sources and targets lie in memory.
"""

import argparse
import collections
import os
import pathlib
import resource
import shutil
import subprocess
import sys

from measure import GIB, Failure, total_bytes

LARGE = ("--matrices", 8, "--columns", 2048, "--dtype", "Float32", "--no-optimizer", "--cut",
         "rows", "--rows", 8192)
SMALL = ("--matrices", 10000, "--rows", 32, "--columns", 32, "--dtype", "Float32",
         "--no-optimizer", "--cut", "rows")
FILES = ("--matrices", 4, "--rows", 4096, "--columns", 8, "--dtype", "Float32", "--no-optimizer",
         "--cut", "rows")


def run(command, **environment):
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True,
                          text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def counts_of(options, command):
    """Returns how often a mutex was locked, how often another thread had it, how often each place in
    the program locked one, and the share of the CPU time for which the mutex that is held longest
    is held."""
    log = options.scratch / "locks"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, LD_PRELOAD=str(options.binaries / "liblock_shim.so"), RESHARD_LOCKS=str(log))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    locked, waited, where, longest = 0, 0, collections.Counter(), 0
    for line in log.read_text().splitlines():
        kind, line = line.split(" ", 1)
        if kind == "mutex":
            longest = max(longest, int(line.split()[0]))
            continue
        program, place, took, stood = line.rsplit(" ", 3)
        locked += int(took)
        waited += int(stood)
        where[program, place] += int(took)
    return locked, waited, where, longest / 1e9 / seconds


def names_of(where, count):
    """The functions that lock most often, with their share."""
    names = collections.Counter()
    for (program, place), took in where.most_common(40):
        found = subprocess.run(["addr2line", "-Cfip", "-e", program, place], check=False,
                               capture_output=True, text=True).stdout
        lines = [line for line in found.splitlines() if "reshard::" in line]
        name = lines[0].split(" at ")[0].replace(" (inlined by) ", "") if lines else place
        names[name.split("(")[0].replace("reshard::", "").replace("(anonymous namespace)::", "")] += took
    all_of_them = sum(where.values())
    return ", ".join(f"{name} {took / all_of_them:.0%}" for name, took in names.most_common(count))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", type=pathlib.Path, default=pathlib.Path("build/bench/bin"))
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/dev/shm/locks"))
    parser.add_argument("--jobs", type=int, action="append")
    parser.add_argument("--ranks", type=int, default=2048, help="of the sample of many files")
    options = parser.parse_args()
    options.binaries = options.binaries.resolve()
    options.scratch.mkdir(parents=True, exist_ok=True)
    reshard = options.binaries / "reshard"
    print("| sample | command | jobs | locks | for each | waited | held longest, of the CPU time "
          "| most of them in |")
    print("|" + " --- |" * 8)
    for name, model, ranks, unit in (("large tensors", LARGE, 4, "GiB"),
                                     ("10,000 small ones", SMALL, 4, "parameter"),
                                     ("many files", FILES, options.ranks, "file")):
        source, target = options.scratch / "source", options.scratch / "target"
        run([options.binaries / "reshard-gen", source, *model, "--tp", ranks])
        run([options.binaries / "reshard-gen", target, *model, "--tp", ranks // 2,
             "--strategy-only"])
        strategies = [folder / "strategy" for folder in (source, target)]
        many = {"GiB": total_bytes(source) / GIB, "parameter": model[1] * ranks / 2,
                "file": ranks}[unit]
        made = options.scratch / "made"
        convert = [source, made, "--src-strategy", strategies[0], "--dst-strategy", strategies[1]]
        commands = {"plan": [source, made, *convert[2:]], "convert": convert, "verify": [made],
                    "digest": [source, "--strategy", strategies[0]]}
        for command, words in commands.items():
            for jobs in options.jobs or [2, 8]:
                if command == "convert":
                    shutil.rmtree(made, ignore_errors=True)
                locked, waited, where, held = counts_of(
                    options, [reshard, command, *words, "--jobs", jobs])
                print(f"| {name} | {command} | {jobs} | {locked} | {locked / many:.1f} a {unit} | "
                      f"{waited / max(locked, 1):.2%} | {held:.2%} | {names_of(where, 3)} |", flush=True)
        shutil.rmtree(source)
        shutil.rmtree(target)
        shutil.rmtree(made, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"lock_counts.py: {failure}")

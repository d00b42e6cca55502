#!/usr/bin/env python3
"""Conversions that cast, against one that copies as many bytes.

The sources lie in memory, as do the targets; all contenders by turns, in one run.
"""

import argparse
import pathlib
import shutil
import statistics
import sys

from measure import GIB, Failure, run

MATRICES, SIDE = 16, 4096

# Name, dtype of the source, --dtype. The first one casts nothing.
CONTENDERS = [("Float32 as it is", "Float32", None),
              ("Float32 to BFloat16", "Float32", "*=bfloat16"),
              ("Float32 to Float16", "Float32", "*=float16"),
              ("Float32 to Float8E4M3FN", "Float32", "*=float8_e4m3fn"),
              ("BFloat16 to Float32", "BFloat16", "*=float32")]


def generate(arguments, folder, dtype, ranks, cut, *more):
    run([arguments.binaries / "reshard-gen", folder, "--matrices", MATRICES, "--rows",
         int(SIDE * arguments.size), "--columns", SIDE, "--dtype", dtype, "--no-optimizer", "--tp",
         ranks, "--cut", cut, *more])


def measure(arguments, cut, scratch):
    """Prints the seconds of each contender, and their ratio to the first one's."""
    for dtype in ("Float32", "BFloat16"):
        generate(arguments, scratch / dtype, dtype, 8, cut)
    generate(arguments, scratch / "target", "Float32", 4, "rows", "--strategy-only")
    seconds = {name: [] for name, _, _ in CONTENDERS}
    for _ in range(arguments.runs):
        for name, dtype, rule in CONTENDERS:
            shutil.rmtree(scratch / "out", ignore_errors=True)
            source = scratch / dtype
            seconds[name].append(run(
                [arguments.binaries / "reshard", "convert", source, scratch / "out",
                 "--src-strategy", source / "strategy", "--dst-strategy",
                 scratch / "target" / "strategy", "-q", *(["--dtype", rule] if rule else [])
                 ]).seconds)
    print(f"{cut} of 8 ranks to rows of 4, {arguments.size:g} GiB of Float32, median of "
          f"{arguments.runs} runs (fastest)")
    copied = seconds[CONTENDERS[0][0]]
    for name, taken in seconds.items():
        print(f"  {name:24} {statistics.median(taken):6.3f} s ({min(taken):.3f})   "
              f"{statistics.median(taken) / statistics.median(copied):.2f} "
              f"({min(taken) / min(copied):.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--size", type=float, default=1.0, help="of the Float32 source, in GiB")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/dev/shm/casts"))
    arguments = parser.parse_args()
    needed = 3 * arguments.size * GIB
    if shutil.disk_usage(arguments.scratch.parent).free < needed:
        sys.exit(f"cast_times.py: {arguments.scratch.parent}: needs {needed / GIB:g} GiB")
    for cut in ("rows", "columns"):
        arguments.scratch.mkdir()
        try:
            measure(arguments, cut, arguments.scratch)
        except Failure as failure:
            sys.exit(f"cast_times.py: {failure}")
        finally:
            shutil.rmtree(arguments.scratch)


if __name__ == "__main__":
    main()
